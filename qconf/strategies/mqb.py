"""`mqb`: multiple-queue backfilling, the paper's rival: classes by walltime that lend one another their idle cores.

References
----------
Lawson and Smirni, Multiple-queue backfilling scheduling with priorities and reservations for parallel systems, 2002.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from qconf.config import format_duration
from qconf.evaluation.period import TrainingSet
from qconf.strategies import Options, Proposal
from qconf.strategies.fcfs_easy import undistinguished

NOT_EXPORTABLE = "no batch system keeps a reservation for the first job of every class of walltimes"


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Class the jobs by walltime; the classes are given, nothing is learned."""
    del options
    config = undistinguished(training.base, "fcfs")
    system = replace(config.system(), mode="multiqueue")
    jobs = training.workload
    which = np.searchsorted(system.class_limits, jobs.walltime, side="left")
    edges = [format_duration(limit) for limit in system.class_limits]
    log: list[dict[str, Any]] = [
        {
            "step": "class",
            "walltime": f"above {low} up to {high}" if high else f"above {low}",
            "jobs": int((which == k).sum()),
            "core_hours": round(float((jobs.cores * jobs.effective_runtime)[which == k].sum()) / 3600, 1),
        }
        for k, (low, high) in enumerate(zip(["0", *edges], [*edges, ""], strict=True))
    ]
    log.append({"step": "no search", "why": "each class has one reservation, for its first job; no partition binds"})
    return Proposal(config, log, not_exportable=NOT_EXPORTABLE, system=system)
