"""Metrics of a schedule: waits, slowdowns, fairness, and use of the machine.

`summary` computes all of it; `METRICS` names each value, its unit and its meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.simulation import NEVER
from parsim.metrics.bottleneck import by_run
from parsim.metrics.nodes import NodeUse, node_use
from parsim.metrics.usage import distance, share_uses
from parsim.model.node_types import CORES
from parsim.model.schedule import Schedule
from parsim.model.system import System
from parsim.model.workload import Column, Workload

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Taken = NDArray[np.int64] | Floats

#: Runtimes below this many seconds count as this many in the bounded slowdown.
THRESHOLD = 10


class Metric(NamedTuple):
    """A value of a summary.

    Attributes
    ----------
    name : str
    unit : str
        ``s``, ``jobs``, ``jobs/s``, or empty for a ratio.
    description : str
        Response is end - submit, slowdown is response over run time, and a wait is response - run time.
    """

    name: str
    unit: str
    description: str


#: The values of a summary by name, in the order of its columns.
METRICS = {
    metric.name: metric
    for metric in (
        Metric("jobs", "jobs", "counted jobs"),
        Metric("art", "s", "mean response time"),
        Metric("sld", "", "mean slowdown"),
        Metric("art_wa", "s", "mean response time, weighted by core-seconds"),
        Metric("art_ww", "s", "mean response time, weighted by cores"),
        Metric("sld_wa", "", "mean slowdown, weighted by core-seconds"),
        Metric("sld_ww", "", "mean slowdown, weighted by cores"),
        Metric("mean_wait", "s", "mean wait"),
        Metric("median_wait", "s", "median of the waits"),
        Metric("p90_wait", "s", "90th percentile of the waits"),
        Metric("p95_wait", "s", "95th percentile of the waits"),
        Metric("p99_wait", "s", "99th percentile of the waits"),
        Metric("max_wait", "s", "longest wait"),
        Metric("mean_bounded_slowdown", "", "mean of 1 + wait over run time, run times below 10 s taken as 10 s"),
        Metric("bsld", "", "mean bounded slowdown as most papers have it: response over run time or 10 s, at least 1"),
        Metric("makespan", "s", "first submission to last end"),
        Metric("utilization", "", "share of the cores in use, from the first submission to the last end"),
        Metric("utilization_window", "", "share of the cores in use, from the first to the last submission"),
        Metric("throughput", "jobs/s", "counted jobs over the time from the first submission to the last end"),
        Metric("loss_of_capacity", "", "share of the core-seconds that idle while a waiting job would fit in them"),
        Metric("jain_users", "", "Jain's fairness index of the users' mean bounded slowdowns"),
        Metric("spread_users", "", "decile ratio of the users' mean bounded slowdowns: 90th over 10th percentile"),
        Metric(
            "share_distance",
            "",
            "part of all use, as far as it has not decayed, that is beyond the shares of users who have or want some",
        ),
        Metric("preempted", "jobs", "counted jobs that were preempted"),
        Metric(
            "suspended", "", "core-seconds that preempted jobs waited for their cores again, over those that jobs ran"
        ),
        Metric("work_lost", "", "share of the core-seconds that jobs ran which were lost, and done again"),
    )
}


@dataclass(frozen=True)
class Summary:
    """Every metric of `METRICS`, overall and per queue.

    Attributes
    ----------
    overall : dict of str to float
    queues : dict of str to dict of str to float
        By name, in configuration order; queues of the same name are taken together.
    nodes : dict of str to NodeUse
        Of each type of nodes, then of all (`parsim.metrics.nodes.ALL_NODES`); empty where all nodes are alike.
    resource : str
        The resource that utilization and loss of capacity measure.
    """

    overall: dict[str, float]
    queues: dict[str, dict[str, float]]
    nodes: dict[str, NodeUse] = field(default_factory=dict)
    resource: str = CORES

    def __getitem__(self, metric: str) -> float:
        """Return the overall value of `metric`."""
        return self.overall[metric]


def summary(
    workload: Workload,
    schedule: Schedule,
    system: System,
    *,
    threshold: int = THRESHOLD,
    counted: Mask | None = None,
    resource: str = CORES,
) -> Summary:
    """Compute every metric, overall and per queue.

    The measured time goes from the first submission to the last end of the counted jobs; use and loss of capacity are
    those of all jobs in it. In a queue's row, `makespan` is that of its own counted jobs; `utilization`,
    `utilization_window` and `throughput` are the queue's part of the overall value, over the same time, so that they
    add up; `loss_of_capacity` is the capacity lost while jobs of the queue wait. A mean over no job is NaN.

    Parameters
    ----------
    workload : Workload
    schedule : Schedule
        Of that workload on that system.
    system : System
    threshold : int
        Seconds, of both bounded slowdowns.
    counted : ndarray(bool), shape (n,), optional
        Jobs that enter the averages; the others, a warm-up for instance, only occupy the machine. By default all.
    resource : str
        Of `parsim.metrics.bottleneck.RESOURCES`: the one that utilization and loss of capacity measure.

    Returns
    -------
    Summary

    Raises
    ------
    ValueError
        If the lengths of `workload`, `schedule` and `counted` differ.
    """
    n = len(workload)
    counted = np.ones(n, dtype=np.bool_) if counted is None else np.asarray(counted, dtype=np.bool_)
    if len(schedule) != n or counted.shape != (n,):
        raise ValueError(f"{n} jobs, but the schedule has {len(schedule)} and counted has shape {counted.shape}")
    bounded = bounded_slowdown(schedule, threshold=threshold)
    taken, there = by_run(schedule, system, resource)

    def row(members: Mask) -> dict[str, float]:
        """Averages over the counted members; use of the machine by all of them during the counted jobs."""
        rows = counted & members
        values = dict.fromkeys(METRICS, np.nan) | {"jobs": float(rows.sum())}
        if rows.any():
            of_users = _user_means(workload.user[rows], bounded[rows])
            values |= _averages(schedule, rows) | {
                "mean_bounded_slowdown": float(bounded[rows].mean()),
                "bsld": float(bsld(schedule, threshold=threshold)[rows].mean()),
                "jain_users": jain(of_users),
                "spread_users": decile_ratio(of_users),
            }
        if counted.any():
            low, high = int(schedule.submit[counted].min()), int(schedule.end[counted].max())
            values["utilization"] = utilization(schedule, there, counted, members, taken)
            values["utilization_window"] = utilization_window(schedule, there, counted, members, taken)
            values["throughput"] = values["jobs"] / (high - low)
            values |= _preemption(schedule, counted, members)
            if system.is_fair and members.all():
                values["share_distance"] = distance(share_uses(workload, schedule, system, counted))
            values["loss_of_capacity"] = loss_of_capacity(
                schedule, int(there), window=(low, high), waiting=members, taken=taken
            )
        return values

    queues = {}
    for name in dict.fromkeys(queue.name for queue in system.queues):
        same = [i for i, queue in enumerate(system.queues) if queue.name == name]
        queues[name] = row(np.isin(workload.queue, same))
    return Summary(row(np.ones(n, dtype=np.bool_)), queues, node_use(workload, schedule, system, counted), resource)


def _preemption(schedule: Schedule, counted: Mask, members: Mask) -> dict[str, float]:
    """Return the preempted jobs, and core-seconds suspended and lost over those that all counted jobs ran."""
    if not schedule.interruptions.job.size:
        return {"preempted": 0.0, "suspended": 0.0, "work_lost": 0.0}
    cores, rows = schedule.cores.astype(np.float64), counted & members
    ran = float((cores * (schedule.runtime + schedule.lost))[counted].sum())
    return {
        "preempted": float((schedule.preempted[rows] > 0).sum()),
        "suspended": float((cores * schedule.preempted)[rows].sum()) / ran,
        "work_lost": float((cores * schedule.lost)[rows].sum()) / ran,
    }


def _averages(schedule: Schedule, rows: Mask) -> dict[str, float]:
    submit, end, run = schedule.submit[rows], schedule.end[rows], schedule.runtime[rows]
    width = schedule.cores[rows].astype(np.float64)
    area = width * run
    response, wait = end - submit, schedule.wait[rows]
    slowdown = response / run
    median, p90, p95, p99 = np.percentile(wait, (50, 90, 95, 99))
    return {
        "art": float(response.mean()),
        "sld": float(slowdown.mean()),
        "art_wa": _weighted(response, area),
        "art_ww": _weighted(response, width),
        "sld_wa": _weighted(slowdown, area),
        "sld_ww": _weighted(slowdown, width),
        "mean_wait": float(wait.mean()),
        "median_wait": float(median),
        "p90_wait": float(p90),
        "p95_wait": float(p95),
        "p99_wait": float(p99),
        "max_wait": float(wait.max()),
        "makespan": float(end.max() - submit.min()),
    }


def _weighted(values: Column | Floats, weights: Floats) -> float:
    return float((values * weights).sum() / weights.sum())


def _user_means(user: Column, values: Floats) -> Floats:
    """Return the mean value of each user; -1 is no user."""
    known = user >= 0
    _, index = np.unique(user[known], return_inverse=True)
    means: Floats = np.bincount(index, weights=values[known]) / np.maximum(np.bincount(index), 1)
    return means


def p95(waits: Column) -> float:
    """Return the 95th percentile of waits as `numpy.percentile` does, several times as fast.

    Parameters
    ----------
    waits : ndarray(int64), shape (m,)
        Seconds.

    Returns
    -------
    float
        Seconds; NaN of none.
    """
    if not waits.size:
        return np.nan
    position = 0.95 * (waits.size - 1)
    below = int(position)
    above = min(below + 1, waits.size - 1)
    low, high = np.partition(waits, (below, above))[[below, above]]
    return float(low + (position - below) * (high - low))


def bounded_slowdown(schedule: Schedule, *, threshold: int = THRESHOLD) -> Floats:
    """Return the slowdown of each job, run times below `threshold` taken as `threshold`.

    ``(wait + max(runtime, threshold)) / max(runtime, threshold)``, which is never below 1. It is above `bsld` for jobs
    shorter than the threshold that wait, and equal to it for all others.

    Parameters
    ----------
    schedule : Schedule
    threshold : int
        Seconds.

    Returns
    -------
    ndarray(float64), shape (n,)

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, section IV.B.2, which gives no value of the threshold.
    """
    runtime = np.maximum(schedule.runtime, threshold)
    out: Floats = (schedule.wait + runtime) / runtime
    return out


def bsld(schedule: Schedule, *, threshold: int = THRESHOLD) -> Floats:
    """Return the bounded slowdown of each job as most papers define it.

    ``max(1, (wait + runtime) / max(runtime, threshold))``.

    Parameters
    ----------
    schedule : Schedule
    threshold : int
        Seconds.

    Returns
    -------
    ndarray(float64), shape (n,)

    References
    ----------
    Feitelson and Rudolph, JSSPP 1998, LNCS 1459, section 4.
    """
    runtime = np.maximum(schedule.runtime, threshold)
    out: Floats = np.maximum((schedule.end - schedule.submit) / runtime, 1.0)
    return out


def utilization(
    schedule: Schedule,
    there: float,
    counted: Mask | None = None,
    members: Mask | None = None,
    taken: Taken | None = None,
) -> float:
    """Return the fraction of the machine in use from the first submission to the last end.

    Parameters
    ----------
    schedule : Schedule
    there : int or float
        Cores of the machine, or how much it has of another resource.
    counted : ndarray(bool), shape (n,), optional
        Jobs whose first submission and last end bound the time; all by default.
    members : ndarray(bool), shape (n,), optional
        Jobs whose use counts; all by default.
    taken : ndarray(int64 or float64), shape (n + k,), optional
        Amount that each run of a job takes (`parsim.metrics.bottleneck.by_run`); its cores by default.

    Returns
    -------
    float
        In 0..1; NaN without jobs.
    """
    rows = slice(None) if counted is None else counted
    submit, end = schedule.submit[rows], schedule.end[rows]
    return _use(schedule, there, (int(submit.min()), int(end.max())), members, taken) if submit.size else np.nan


def utilization_window(
    schedule: Schedule, there: float, counted: Mask, members: Mask | None = None, taken: Taken | None = None
) -> float:
    """Return the fraction of the machine in use from the first to the last submission.

    Parameters
    ----------
    schedule : Schedule
    there : int or float
        Cores of the machine, or how much it has of another resource.
    counted : ndarray(bool), shape (n,)
        Jobs whose first and last submission bound the time.
    members : ndarray(bool), shape (n,), optional
        Jobs whose use counts; all by default.
    taken : ndarray(int64 or float64), shape (n + k,), optional
        Amount that each run of a job takes (`parsim.metrics.bottleneck.by_run`); its cores by default.

    Returns
    -------
    float
        In 0..1; 0 without time between them.
    """
    submit = schedule.submit[counted]
    low, high = (int(submit.min()), int(submit.max())) if submit.size else (0, 0)
    return _use(schedule, there, (low, high), members, taken) if low < high else 0.0


def _use(schedule: Schedule, there: float, window: tuple[int, int], members: Mask | None, taken: Taken | None) -> float:
    """Return the fraction in use by `members`, or all, in a window; runs whose work was lost count, too."""
    low, high = window
    job, begin, stop = schedule.runs
    start, end = np.maximum(begin, low), np.minimum(stop, high)
    used = (schedule.cores[job] if taken is None else taken).astype(np.float64) * np.maximum(end - start, 0)
    return float(used.sum() if members is None else used[members[job]].sum()) / (there * float(high - low))


def loss_of_capacity(
    schedule: Schedule,
    there: int,
    *,
    window: tuple[int, int] | None = None,
    waiting: Mask | None = None,
    taken: Taken | None = None,
) -> float:
    """Return the fraction of the machine's core-seconds that idle while a waiting job would fit in them.

    Between two successive events all idle cores of the machine are lost if some waiting job (submitted, not
    started, or preempted) needs no more than these. The reason of its wait does not matter: a partition's border, a
    limit and a reservation all lose capacity.

    Parameters
    ----------
    schedule : Schedule
    there : int
        Cores of the machine, or how much it has of another resource.
    window : (int, int), optional
        Seconds, from and to; by default from the first submission to the last end.
    waiting : ndarray(bool), shape (n,), optional
        Jobs whose wait is a loss; all by default.
    taken : ndarray(int64 or float64), shape (n + k,), optional
        Amount that each run of a job takes, rounded; its cores by default. Jobs that take nothing lose nothing.

    Returns
    -------
    float
        In 0..1; NaN where the window is empty.
    """
    if window is None:
        if not len(schedule):
            return np.nan
        window = (int(schedule.submit.min()), int(schedule.end.max()))
    low, high = window
    if high <= low:
        return np.nan
    job, start, end = schedule.runs
    stops = schedule.interruptions
    waits = np.concatenate((np.arange(len(schedule)), stops.job))
    since, until = np.concatenate((schedule.submit, stops.begin)), np.concatenate((schedule.start, stops.end))
    taken = schedule.cores[job] if taken is None else np.rint(taken).astype(np.int64)
    of_job = np.zeros(len(schedule), dtype=np.int64)
    of_job[job] = taken
    delayed = (until > since) & (of_job[waits] > 0)
    if waiting is not None:
        delayed &= waiting[waits]
    rows = np.flatnonzero(delayed)
    rows = rows[np.argsort(since[rows], kind="stable")]
    started, ended = np.argsort(start, kind="stable"), np.argsort(end, kind="stable")
    lost = _lost_core_seconds(
        np.stack((start[started], taken[started])),
        np.stack((end[ended], taken[ended])),
        np.stack((since[rows], until[rows], of_job[waits[rows]])),
        there,
        window,
    )
    return float(lost) / (there * float(high - low))


def jain(values: Floats) -> float:
    """Return Jain's fairness index ``(sum x)^2 / (n sum x^2)``.

    Parameters
    ----------
    values : ndarray(float64), shape (m,)

    Returns
    -------
    float
        1 if all are equal, 1/m if one has all, NaN of none.

    References
    ----------
    Jain, Chiu and Hawe, DEC-TR-301, 1984, equation 2.
    """
    if not values.size:
        return np.nan
    return float(values.sum() ** 2 / (values.size * (values**2).sum()))


def decile_ratio(values: Floats) -> float:
    """Return the 90th over the 10th percentile of values, the P90/P10 ratio of income statistics.

    Extreme values do not matter; in Jain's index, which is ``1 / (1 + CV^2)`` of the coefficient of variation, the
    largest values do.

    Parameters
    ----------
    values : ndarray(float64), shape (m,)
        Above 0.

    Returns
    -------
    float
        1 if all are equal, NaN of none.

    References
    ----------
    OECD Income Distribution Database, P90/P10 disposable income decile ratio.
    """
    if not values.size:
        return np.nan
    low, high = np.percentile(values, (10, 90))
    return float(high / low)


@on_disk
def _lost_core_seconds(
    starts: Column, ends: Column, waits: Column, cores: int, window: tuple[int, int]
) -> float:  # pragma: no cover
    """Return the idle core-seconds in [low, high) while the narrowest waiting job fits.

    `starts`, `ends`: (2, n) times ascending and cores. `waits`: (3, m) submit ascending, start and cores of
    the jobs that waited.
    """
    # Heap of (cores, start); its top is dropped once started.
    narrowest = [(waits[2, 0], waits[1, 0]) for _ in range(0)]
    low, high = window
    lost = 0.0
    idle = cores
    s = e = w = 0
    now = low
    while now < high:
        while e < ends.shape[1] and ends[0, e] <= now:
            idle += ends[1, e]
            e += 1
        while s < starts.shape[1] and starts[0, s] <= now:
            idle -= starts[1, s]
            s += 1
        while w < waits.shape[1] and waits[0, w] <= now:
            heappush(narrowest, (waits[2, w], waits[1, w]))
            w += 1
        while len(narrowest) > 0 and narrowest[0][1] <= now:
            heappop(narrowest)
        then: Any = high
        then = min(then, ends[0, e] if e < ends.shape[1] else NEVER)
        then = min(then, starts[0, s] if s < starts.shape[1] else NEVER)
        then = min(then, waits[0, w] if w < waits.shape[1] else NEVER)
        if len(narrowest) > 0 and narrowest[0][0] <= idle:
            lost += float(idle) * float(then - now)
        now = then
    return lost
