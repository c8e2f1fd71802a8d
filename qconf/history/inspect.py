"""What is in a history, as numbers: the result of ``qconf inspect``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.history.gpus import of_gpus
from qconf.history.history import History
from qconf.history.periods import DAY

HOUR = 3600
ACCURACY = (10, 25, 50, 75, 90)


def overview(history: History, config: SiteConfig) -> dict[str, Any]:
    """Summarise a history, cleaned with `config`, for people and for JSON.

    The offered load is core-seconds of the jobs over those of the machine from first to last submit, None for a single
    instant. Of `queues` those without jobs are listed too. `gpus` are there where the jobs or the machine have some.
    """
    gpus = of_gpus(history, config)
    jobs = history.jobs
    area = (jobs["cores"] * jobs["runtime"]).to_numpy(dtype=np.float64)
    first, last = history.span
    window = (last - first) * config.machine.cores
    return {
        "read": history.read,
        "jobs": len(jobs),
        "dropped": dict(history.reasons),
        "outside_period": history.outside,
        "changed": dict(history.changed),
        "first_submit": history.date(first),
        "last_submit": history.date(last),
        "days": round((last - first) / DAY, 3),
        "machine_cores": config.machine.cores,
        "users": users_of(jobs),
        "cpu_hours": round(float(area.sum()) / HOUR, 3),
        "offered_load": round(float(area.sum()) / window, 6) if window else None,
        "cores": spread(jobs["cores"].to_numpy()),
        "walltime": spread(jobs["walltime"].to_numpy()),
        "walltime_accuracy": accuracy(jobs),
        "queues": [_queue(name, jobs, area) for name in config.names],
        "sources": [source._asdict() for source in history.sources],
    } | ({} if gpus is None else {"gpus": gpus})


def _queue(name: str, jobs: pd.DataFrame, area: NDArray[np.float64]) -> dict[str, Any]:
    mine = (jobs["queue"] == name).to_numpy()
    part = jobs.loc[mine, ["user", "cores", "runtime", "walltime"]]
    hours = float(area[mine].sum()) / HOUR
    return {
        "queue": name,
        "jobs": len(part),
        "users": users_of(part),
        "cpu_hours": round(hours, 3),
        "share": round(float(area[mine].sum() / area.sum()), 6),
        "cores": spread(part["cores"].to_numpy()),
        "runtime": spread(part["runtime"].to_numpy()),
        "walltime": spread(part["walltime"].to_numpy()),
        "walltime_accuracy": accuracy(part),
    }


def users_of(jobs: pd.DataFrame) -> int:
    """Count the users; jobs without one do not."""
    return int(jobs.loc[jobs["user"] != "", "user"].nunique())


def spread(values: NDArray[np.int64]) -> dict[str, float] | None:
    """Least, median, 90th percentile and most; None of nothing."""
    if not values.size:
        return None
    median, p90 = np.percentile(values, (50, 90)).tolist()
    return {"min": int(values.min()), "median": round(median, 3), "p90": round(p90, 3), "max": int(values.max())}


def accuracy(jobs: pd.DataFrame) -> dict[str, float] | None:
    """Run time over walltime: 1 is a perfect estimate or a job that its limit killed."""
    if jobs.empty:
        return None
    ratio = jobs["runtime"].to_numpy() / jobs["walltime"].to_numpy()
    points = np.percentile(ratio, ACCURACY).tolist()
    return {
        "mean": round(float(ratio.mean()), 6),
        **{f"p{percent}": round(point, 6) for percent, point in zip(ACCURACY, points, strict=True)},
        "at_limit": round(float((ratio >= 1).mean()), 6),
    }
