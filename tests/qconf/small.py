"""Small periods and training sets on a small machine."""

import numpy as np

from parsim import Workload
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.evaluation.period import Period, TrainingSet

DAY = 86400
SHORT = {"name": "short", "cores": (1, 8), "walltime": (0, 7200), "partition": 24}
LONG = {"name": "long", "cores": (1, 16), "walltime": (0, 36000), "partition": 40}
WIDE = {"name": "wide", "cores": (17, 64), "walltime": (0, 36000), "reservation": True}


def site(*queues, cores=64, mode="partitioned", **changes):
    return SiteConfig(
        machine=MachineConfig(cores=cores), mode=mode, queues=tuple(QueueConfig(**queue) for queue in queues), **changes
    )


def period(base, jobs=300, seed=0, span=10 * DAY, only=None):
    """Jobs uniform in time, queue, cores and walltime; each runs for a uniform part of its walltime.

    Their five users are called u0 to u4.
    """
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, max(span, 1), jobs))
    queue = rng.choice(len(base.queues) if only is None else only, jobs)
    cores, walltime = np.empty(jobs, dtype=np.int64), np.empty(jobs, dtype=np.int64)
    for i, q in enumerate(base.queues):
        mine = queue == i
        cores[mine] = rng.integers(q.cores[0], q.cores[1] + 1, mine.sum())
        walltime[mine] = rng.integers(q.walltime[0] + 1, q.walltime[1] + 1, mine.sum())
    runtime = np.maximum(1, (walltime * rng.random(jobs)).astype(np.int64))
    user = rng.integers(0, 5, jobs)
    position = {name: i for i, target in enumerate(base.targets) for name in target.users}
    group = np.array([position.get(f"u{i}", -1) for i in range(5)])[user] if position else None
    return Period(Workload(submit, cores, runtime, walltime, queue=queue, user=user), base, group=group)


def training(base, *given, **about):
    """A training set of the jobs of `period`."""
    return TrainingSet(period(base, *given, **about))


def two(**changes):
    return site(SHORT, LONG, **changes)


def three(**changes):
    return site(SHORT, LONG, WIDE, **changes)


def compared(bootstrap, subjects):
    """Compare proposals, one for each holdout, with the current configuration."""
    (found,) = bootstrap.compare_all({"proposal": subjects})
    return found
