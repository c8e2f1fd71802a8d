"""Logs that the simulator itself wrote, so that what ran at the site is known."""

from dataclasses import replace

import numpy as np
import pandas as pd

from parsim import Workload, simulate
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.history import History

HOUR, DAY = 3600, 86400


def site(**changes):
    """A machine of 64 cores with a short and a long queue."""
    queues = (QueueConfig(name="short", walltime=(0, 2 * HOUR)), QueueConfig(name="long", walltime=(2 * HOUR, DAY)))
    return SiteConfig(machine=MachineConfig(cores=64), queues=queues).replace(**changes)


def limited(config, **limits):
    """The same site with limits of each queue."""
    return config.replace(queues=tuple(queue.model_copy(update=limits) for queue in config.queues))


def workload(jobs=700, days=14, seed=0):
    """Jobs of five users that keep the machine busy, with waits of hours."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, days * DAY, jobs))
    walltime = rng.integers(600, 12 * HOUR, jobs)
    runtime = np.maximum(60, (walltime * rng.random(jobs)).astype(np.int64))
    cores = rng.choice([1, 2, 4, 8, 16, 32], jobs)
    return Workload(submit, cores, runtime, walltime, (walltime > 2 * HOUR).astype(np.int64), rng.integers(0, 5, jobs))


def history(w, start, config, **about):
    """The jobs as a cleaned history with these starts."""
    n = len(w)
    columns = {
        "job_id": [str(i) for i in range(n)],
        "submit": w.submit,
        "runtime": w.runtime,
        "walltime": w.walltime,
        "cores": w.cores,
        "queue": [config.names[q] for q in w.queue],
        "user": [f"u{u}" for u in w.user],
        "start": start,
        "end": np.where(start < 0, -1, start + w.runtime),
        "state": [""] * n,
        "group": [""] * n,
        "row": np.arange(n),
    }
    return History(jobs=pd.DataFrame(columns), dropped=pd.DataFrame({"reason": []}), read=n, **about)


def written(config, w=None, **about):
    """The log that a site of this configuration writes."""
    w = workload() if w is None else w
    return history(w, simulate(w, config.system()).start, config, **about)


def later(w, row, seconds):
    """The same jobs, one submitted later: as if something held it for so long."""
    submit = w.submit.copy()
    submit[row] += seconds
    return replace(w, submit=submit)
