"""A configuration for a history that came without one: a queue per queue name, on one shared machine."""

from __future__ import annotations

import numpy as np

from parsim.workload import MAX_DURATION
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.history.names import legal_names
from qconf.history.records import Records

NAMELESS = "all"  #: queue of the jobs that name none


def derive_config(records: Records, cores: int | None = None) -> SiteConfig:
    """Return the plainest configuration that takes every job: one shared machine, fcfs-easy, no limits.

    A queue's ranges are those of its jobs; with a job that gave no walltime it has no known maximum.

    Parameters
    ----------
    records : Records
    cores : int, optional
        Of the machine; default what the log's header says.

    Raises
    ------
    InputError
        The size of the machine is unknown, or no job is usable on it.
    """
    size = cores or records.machine_cores
    path = records.sources[0].path if records.sources else None
    if size is None:
        raise InputError(
            "the size of the machine is unknown",
            file=path,
            fix="give it with --cores, or a configuration with --config",
        )
    table = records.table
    lacks = {
        "no submit time": table["submit"] < 0,
        "no cores": table["cores"] < 1,
        f"more than {size} cores": table["cores"] > size,
        "no run time": table["runtime"] <= 0,
    }
    usable = table[~np.any(list(lacks.values()), axis=0)]
    if usable.empty:
        counts = records.reasons | {what: int(rows.sum()) for what, rows in lacks.items()}
        why = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        raise InputError(
            f"no usable job among {records.read} records" + (f": {why}" if why else ""),
            file=path,
            fix="a job needs a submit time, cores that the machine has and at least one second of run time",
        )
    legal = legal_names(records.queue_names)
    nameless = NAMELESS
    while nameless in legal.values():
        nameless += "-"
    queues = []
    for name, jobs in usable.groupby("queue", sort=False):
        limit = int(jobs["walltime"].max()) if (jobs["walltime"] > 0).all() else MAX_DURATION
        queues.append(
            {
                "name": legal.get(str(name), nameless),
                "cores": [int(np.min(jobs["cores"])), int(np.max(jobs["cores"]))],
                "walltime": [0, limit],
                "priority": 1,
            }
        )
    queues.sort(key=lambda queue: (queue["cores"][1], queue["walltime"][1], queue["name"]))  # type: ignore[index]
    return SiteConfig.model_validate(
        {"machine": {"name": "derived", "cores": size}, "mode": "shared", "order": "fcfs", "queues": queues}
    )
