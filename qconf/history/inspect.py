"""Summary statistics of a history: the result of ``qconf inspect``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from parsim.metrics.bottleneck import bottleneck, first_places
from parsim.model.node_types import GPUS
from parsim.prepare.node_types import resources_of
from qconf.config import SiteConfig
from qconf.config.routing import Column, Mask
from qconf.history.chunks import read as chunks_of
from qconf.history.history import DAY, History
from qconf.history.records import Values

HOUR = 3600
ACCURACY = (10, 25, 50, 75, 90)
KIND = "gpu:"  #: prefix of a feature or resource that is a kind of GPU
ANY = "any"
MOST_USERS = 5


def overview(history: History, config: SiteConfig) -> dict[str, Any]:
    """Summarise a history, cleaned with `config`, for people and for JSON.

    The offered load is the jobs' core-seconds over the machine's from first to last submit, None if these are equal.
    `queues` includes those without jobs. The key `gpus` exists only if the jobs or the machine have GPUs.
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


def _queue(name: str, jobs: pd.DataFrame, area: Values) -> dict[str, Any]:
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
    """Count the distinct users; jobs without a user are ignored."""
    return int(jobs.loc[jobs["user"] != "", "user"].nunique())


def spread(values: Column) -> dict[str, float] | None:
    """Return min, median, p90 and max; None for an empty array."""
    if not values.size:
        return None
    median, p90 = np.percentile(values, (50, 90)).tolist()
    return {"min": int(values.min()), "median": round(median, 3), "p90": round(p90, 3), "max": int(values.max())}


def accuracy(jobs: pd.DataFrame) -> dict[str, float] | None:
    """Summarise run time over walltime; 1 is a perfect estimate or a job killed at its limit. None without jobs."""
    if jobs.empty:
        return None
    ratio = jobs["runtime"].to_numpy() / jobs["walltime"].to_numpy()
    points = np.percentile(ratio, ACCURACY).tolist()
    return {
        "mean": round(float(ratio.mean()), 6),
        **{f"p{percent}": round(point, 6) for percent, point in zip(ACCURACY, points, strict=True)},
        "at_limit": round(float((ratio >= 1).mean()), 6),
    }


def of_gpus(history: History, config: SiteConfig) -> dict[str, Any] | None:
    """Summarise the GPUs of a history, cleaned with `config`; None if neither jobs nor nodes have any.

    If the nodes have types, a job's GPUs count for the type of its first place (rule "places of a job"), or for
    "any" if it may run on several types and names none; else for the type that the job requests.
    """
    jobs = history.jobs
    code, texts = pd.factorize(jobs["needs"])
    wanted = [chunks_of(text) for text in texts]
    each = [sum(chunk.count * chunk.amount(GPUS) for chunk in request) for request in wanted]
    gpus = np.array(each, dtype=np.int64)[code]
    there = sum(each.count * each.gpus for each in config.nodes)
    if not gpus.any() and not there:
        return None
    hours = gpus * jobs["runtime"].to_numpy() / HOUR
    kind = np.array([_kind(request) for request in wanted], dtype=object)[code]
    kinds: list[tuple[str, Column, int | None]] = []  # type, GPUs of it per job, GPUs of it in total
    found: dict[str, Any] = {
        "jobs": int((gpus > 0).sum()),
        "gpu_hours": round(float(hours.sum()), 3),
        "machine_gpus": there or None,
        "offered_load": None,
        "bottleneck": None,
        "others_on_gpu_nodes": None,  # jobs without GPUs that may use nodes with some
    }
    if there:
        workload, system = history.workload(config), config.system()
        first, last = history.span
        window = (last - first) / HOUR
        amounts, row = first_places(workload, system)
        on = amounts[:, :, resources_of(system.node_types).index(GPUS)][row]
        with_gpus = {each.name for each in config.nodes if each.gpus}
        may = [queue.name for queue in config.queues if queue.nodes is None or with_gpus & {*queue.nodes}]
        found |= {
            "offered_load": round(float(hours.sum() / (there * window)), 6) if window else None,
            "bottleneck": bottleneck(workload, system).resource,
            "others_on_gpu_nodes": int((jobs["queue"].isin(may).to_numpy() & (gpus == 0)).sum()),
        }
        several = [name for name in may if len(with_gpus & {*(config.queue(name).nodes or with_gpus)}) > 1]
        names_none = np.array([not any(chunk.features for chunk in request) for request in wanted], dtype=np.bool_)
        of_any = (kind == ANY) & names_none[code] & (gpus > 0) & jobs["queue"].isin(several).to_numpy()
        kinds += [
            (each.name, np.where(of_any, 0, on[:, t]), each.count * each.gpus)
            for t, each in enumerate(config.nodes)
            if each.gpus
        ]
        kinds += [(ANY, np.where(of_any, gpus, 0), None)] * bool(of_any.any())
    else:
        kinds += [(name, np.where(kind == name, gpus, 0), None) for name in sorted({*kind[gpus > 0].tolist()})]
    seconds = jobs["runtime"].to_numpy()
    types = [(name, amount > 0, amount * seconds / HOUR) for name, amount, _ in kinds]
    queues = [(name, (jobs["queue"] == name).to_numpy() & (gpus > 0), hours) for name in config.names]
    users = [(name, (jobs["user"] == name).to_numpy() & (gpus > 0), hours) for name in _users(jobs, hours)]
    found["types"] = [each | {"gpus": count} for each, (_, _, count) in zip(_rows(types, hours), kinds, strict=True)]
    return found | {"queues": list(_rows(queues, hours)), "users": list(_rows(users, hours))}


def _kind(request: Any) -> str:  # noqa: ANN401 - a Request
    """Return the kinds of GPUs that a job names, else `ANY`."""
    words = {word for chunk in request for word in (*chunk.features, *dict(chunk.resources)) if word.startswith(KIND)}
    named = sorted(word.removeprefix(KIND) for word in words)
    return ", ".join(named) or ANY


def _users(jobs: pd.DataFrame, hours: Values) -> list[str]:
    """Return the users with the most GPU-hours, at most `MOST_USERS`, largest first."""
    used = pd.Series(hours).groupby(jobs["user"].to_numpy()).sum().sort_values(ascending=False, kind="stable")
    return [str(name) for name, value in used.items() if value > 0 and name][:MOST_USERS]


def _rows(of: list[tuple[str, Mask, Values]], hours: Values) -> Iterator[dict[str, Any]]:
    for name, members, own in of:
        used = float(own[members].sum())
        share = round(used / max(float(hours.sum()), 1e-9), 6)
        yield {"name": name, "jobs": int(members.sum()), "gpu_hours": round(used, 3), "share": share}
