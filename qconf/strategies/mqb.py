"""`mqb`: multiple-queue backfilling, a rival in the paper: classes by walltime lend each other idle cores.

References
----------
Lawson and Smirni, Multiple-queue backfilling scheduling with priorities and reservations for parallel systems, 2002.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qconf.config import format_duration
from qconf.evaluation.period import NotApplicableError, TrainingSet
from qconf.strategies.base import Options, Proposal, Step, Strategy, step
from qconf.strategies.plain import undistinguished

NOT_EXPORTABLE = "no batch system keeps a reservation for the first job of every class of walltimes"


@step
class Class(Step):
    """One class of jobs."""

    walltime: str
    jobs: int
    core_hours: float


@step
class NoSearch(Step):
    """A note that nothing is searched: the classes are given."""

    why: str = "each class has one reservation, for its first job; no partition binds"


class Mqb(Strategy):
    """Jobs classed by walltime, one reservation a class; nothing is trained."""

    name = "mqb"
    position = 20

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Class the jobs by walltime."""
        del options
        config = undistinguished(training.base, "fcfs")
        system = replace(config.system(), mode="multiqueue")
        jobs = training.workload
        if jobs.has_needs:
            raise NotApplicableError("jobs wait for others, licences or places in an array, which it does not know of")
        which = np.searchsorted(system.class_limits, jobs.walltime, side="left")
        edges = [format_duration(limit) for limit in system.class_limits]
        if config.shortpools:
            raise NotApplicableError("cores are kept for short jobs, which it does not know of")
        steps = [
            Class(
                walltime=f"above {low} up to {high}" if high else f"above {low}",
                jobs=int((which == k).sum()),
                core_hours=round(float((jobs.cores * jobs.effective_runtime)[which == k].sum()) / 3600, 1),
            )
            for k, (low, high) in enumerate(zip(["0", *edges], [*edges, ""], strict=True))
        ]
        return Proposal(config, (*steps, NoSearch()), not_exportable=NOT_EXPORTABLE, system=system)


STRATEGIES = (Mqb(),)
