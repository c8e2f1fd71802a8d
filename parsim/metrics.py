"""What a schedule was worth: waits, slowdowns, and the use made of the machine.

Times are seconds, shares lie in 0..1, the names are those of `METRICS`. Response is end - submit, slowdown is
response over end - start; `_wa` weighs a mean by core-seconds, `_ww` by cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
from numba import njit
from numpy.typing import NDArray

from parsim.schedule import Schedule
from parsim.system import System
from parsim.workload import Column, Workload

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Runtimes below this many seconds count as this many in the bounded slowdown.
THRESHOLD = 10

METRICS = (
    "jobs",
    "art",
    "sld",
    "art_wa",
    "art_ww",
    "sld_wa",
    "sld_ww",
    "mean_wait",
    "median_wait",
    "p90_wait",
    "p95_wait",
    "p99_wait",
    "max_wait",
    "mean_bounded_slowdown",
    "makespan",
    "utilization",
    "utilization_window",
    "throughput",
    "loss_of_capacity",
    "jain_users",
)


@dataclass(frozen=True)
class Summary:
    """Every metric of `METRICS`, overall and per queue.

    Attributes
    ----------
    overall : dict of str to float
    queues : dict of str to dict of str to float
        By name, in configuration order; queues of the same name are taken together.
    """

    overall: dict[str, float]
    queues: dict[str, dict[str, float]]

    def __getitem__(self, metric: str) -> float:
        """Return the overall value of `metric`."""
        return self.overall[metric]


def mean_wait(schedule: Schedule) -> float:
    """Mean wait, seconds; NaN without jobs."""
    return float(schedule.wait.mean()) if len(schedule) else np.nan


def max_wait(schedule: Schedule) -> float:
    """Longest wait, seconds; NaN without jobs."""
    return float(schedule.wait.max()) if len(schedule) else np.nan


def p95(waits: Column) -> float:
    """95th percentile of some waits, seconds; NaN of none: what `numpy.percentile` gives, several times as fast."""
    if not waits.size:
        return np.nan
    place = 0.95 * (waits.size - 1)
    below = int(place)
    above = min(below + 1, waits.size - 1)
    low, high = np.partition(waits, (below, above))[[below, above]]
    return float(low + (place - below) * (high - low))


def slowdown(schedule: Schedule) -> Floats:
    """Response over runtime of each job, shape (n,)."""
    out: Floats = (schedule.end - schedule.submit) / (schedule.end - schedule.start)
    return out


def bounded_slowdown(schedule: Schedule, *, threshold: int = THRESHOLD) -> Floats:
    """Slowdown of each job with runtimes below `threshold` seconds taken as `threshold`, shape (n,).

    ``(wait + max(l, threshold)) / max(l, threshold)``, which is never below 1.

    References
    ----------
    Feitelson and Rudolph, JSSPP 1998, LNCS 1459, section 4.
    """
    runtime = np.maximum(schedule.end - schedule.start, threshold)
    out: Floats = (schedule.wait + runtime) / runtime
    return out


def mean_bounded_slowdown(schedule: Schedule, *, threshold: int = THRESHOLD) -> float:
    """Mean of `bounded_slowdown`; NaN without jobs."""
    return float(bounded_slowdown(schedule, threshold=threshold).mean()) if len(schedule) else np.nan


def makespan(schedule: Schedule) -> int:
    """Seconds from the first submission to the last end; 0 without jobs."""
    return int(schedule.end.max() - schedule.submit.min()) if len(schedule) else 0


def utilization(schedule: Schedule, cores: int, counted: Mask | None = None, members: Mask | None = None) -> float:
    """Share of the `cores` in use, by `members` or all, from first submission to last end of the `counted` jobs or all.

    NaN without jobs.
    """
    rows = slice(None) if counted is None else counted
    submit, end = schedule.submit[rows], schedule.end[rows]
    if not submit.size:
        return np.nan
    low, high = int(submit.min()), int(end.max())
    return _core_seconds(schedule, (low, high), members) / (cores * float(high - low))


def utilization_window(schedule: Schedule, cores: int, counted: Mask, members: Mask | None = None) -> float:
    """Share of the `cores` in use, by `members` or all, from first to last submission of the `counted` jobs.

    0 where that is but an instant.
    """
    submit = schedule.submit[counted]
    low, high = (int(submit.min()), int(submit.max())) if submit.size else (0, 0)
    if low == high:
        return 0.0
    return _core_seconds(schedule, (low, high), members) / (cores * float(high - low))


def loss_of_capacity(
    schedule: Schedule,
    cores: int,
    *,
    window: tuple[int, int] | None = None,
    waiting: Mask | None = None,
) -> float:
    """Share of the machine's core-seconds that idle while a waiting job would fit in them.

    Between two successive events all idle cores of the machine are lost if some waiting job (submitted, not
    started) asks for no more of them. What keeps that job out is not asked: a partition's border, a limit and
    a reservation all lose capacity.

    Parameters
    ----------
    schedule : Schedule
    cores : int
        Of the machine.
    window : (int, int), optional
        Seconds, from and to; by default from the first submission to the last end.
    waiting : ndarray(bool), shape (n,), optional
        Jobs whose wait is a loss; all by default.

    Returns
    -------
    float
        NaN where the window is empty.
    """
    if window is None:
        if not len(schedule):
            return np.nan
        window = (int(schedule.submit.min()), int(schedule.end.max()))
    low, high = window
    if high <= low:
        return np.nan
    delayed = schedule.wait > 0
    if waiting is not None:
        delayed &= waiting
    rows = np.flatnonzero(delayed)
    rows = rows[np.argsort(schedule.submit[rows], kind="stable")]
    started, ended = np.argsort(schedule.start, kind="stable"), np.argsort(schedule.end, kind="stable")
    lost = _lost_core_seconds(
        np.stack((schedule.start[started], schedule.cores[started])),
        np.stack((schedule.end[ended], schedule.cores[ended])),
        np.stack((schedule.submit[rows], schedule.start[rows], schedule.cores[rows])),
        cores,
        window,
    )
    return float(lost) / (cores * float(high - low))


def jain(values: Floats) -> float:
    """Jain's fairness index ``(sum x)^2 / (n sum x^2)``: 1 if all are equal, 1/n if one has all, NaN of none.

    References
    ----------
    Jain, Chiu and Hawe, DEC-TR-301, 1984, equation 2.
    """
    if not values.size:
        return np.nan
    return float(values.sum() ** 2 / (values.size * (values**2).sum()))


def jain_users(workload: Workload, schedule: Schedule, *, threshold: int = THRESHOLD) -> float:
    """Jain's index over the users' mean bounded slowdowns, without the jobs of no user; NaN without users."""
    return _jain_users(workload.user, bounded_slowdown(schedule, threshold=threshold))


def summary(
    workload: Workload,
    schedule: Schedule,
    system: System,
    *,
    threshold: int = THRESHOLD,
    counted: Mask | None = None,
) -> Summary:
    """Compute every metric, overall and per queue.

    The time that matters goes from the first submission to the last end of the counted jobs; core-seconds and
    lost capacity are those of all jobs in it. In a queue's row, `makespan` is that of its own counted jobs;
    `utilization`, `utilization_window` and `throughput` are the queue's part of the overall value, over the
    same time, so that they add up; `loss_of_capacity` is what is lost while jobs of the queue wait. A mean
    over no job is NaN.

    Parameters
    ----------
    workload : Workload
    schedule : Schedule
        Of that workload on that system.
    system : System
    threshold : int
        Seconds, of the bounded slowdown.
    counted : ndarray(bool), shape (n,), optional
        Jobs that enter the averages; the others, a warm-up for instance, only occupy the machine. Default:
        all.

    Raises
    ------
    ValueError
        If the lengths of `workload`, `schedule` and `counted` differ.
    """
    n = len(workload)
    counted = np.ones(n, dtype=np.bool_) if counted is None else np.asarray(counted, dtype=np.bool_)
    if len(schedule) != n or counted.shape != (n,):
        raise ValueError(f"{n} jobs, but the schedule has {len(schedule)} and counted has shape {counted.shape}")
    everyone = np.ones(n, dtype=np.bool_)
    overall = _row(
        workload, schedule, system.cores, counted=counted, rows=counted, members=everyone, threshold=threshold
    )
    queues = {}
    for name in dict.fromkeys(queue.name for queue in system.queues):
        same = [i for i, queue in enumerate(system.queues) if queue.name == name]
        members = np.isin(workload.queue, same)
        queues[name] = _row(
            workload,
            schedule,
            system.cores,
            counted=counted,
            rows=counted & members,
            members=members,
            threshold=threshold,
        )
    return Summary(overall, queues)


def _row(
    workload: Workload,
    schedule: Schedule,
    cores: int,
    *,
    counted: Mask,
    rows: Mask,
    members: Mask,
    threshold: int,
) -> dict[str, float]:
    """Averages over `rows`; use of the machine by `members` during the time of the `counted` jobs."""
    row = dict.fromkeys(METRICS, np.nan)
    row["jobs"] = float(rows.sum())
    if rows.any():
        row |= _averages(workload, schedule, rows, threshold)
    if counted.any():
        low, high = int(schedule.submit[counted].min()), int(schedule.end[counted].max())
        row["utilization"] = utilization(schedule, cores, counted, members)
        row["utilization_window"] = utilization_window(schedule, cores, counted, members)
        row["throughput"] = row["jobs"] / (high - low)
        row["loss_of_capacity"] = loss_of_capacity(schedule, cores, window=(low, high), waiting=members)
    return row


def _averages(workload: Workload, schedule: Schedule, rows: Mask, threshold: int) -> Mapping[str, float]:
    submit, start, end = schedule.submit[rows], schedule.start[rows], schedule.end[rows]
    width = schedule.cores[rows].astype(np.float64)
    area = width * (end - start)
    response, wait = end - submit, start - submit
    stretch = response / (end - start)
    bounded = bounded_slowdown(schedule, threshold=threshold)[rows]
    median, p90, p95, p99 = np.percentile(wait, (50, 90, 95, 99))
    return {
        "art": float(response.mean()),
        "sld": float(stretch.mean()),
        "art_wa": _weighted(response, area),
        "art_ww": _weighted(response, width),
        "sld_wa": _weighted(stretch, area),
        "sld_ww": _weighted(stretch, width),
        "mean_wait": float(wait.mean()),
        "median_wait": float(median),
        "p90_wait": float(p90),
        "p95_wait": float(p95),
        "p99_wait": float(p99),
        "max_wait": float(wait.max()),
        "mean_bounded_slowdown": float(bounded.mean()),
        "makespan": float(end.max() - submit.min()),
        "jain_users": _jain_users(workload.user[rows], bounded),
    }


def _weighted(values: Column | Floats, weights: Floats) -> float:
    return float((values * weights).sum() / weights.sum())


def _jain_users(user: Column, values: Floats) -> float:
    """Jain's index of the mean value of each user; -1 is no user."""
    known = user >= 0
    _, index = np.unique(user[known], return_inverse=True)
    return jain(np.bincount(index, weights=values[known]) / np.maximum(np.bincount(index), 1))


def _core_seconds(schedule: Schedule, window: tuple[int, int], members: Mask | None) -> float:
    """Core-seconds used within `window`, by `members` or all."""
    start, end = np.maximum(schedule.start, window[0]), np.minimum(schedule.end, window[1])
    used = schedule.cores.astype(np.float64) * np.maximum(end - start, 0)
    return float(used.sum() if members is None else used[members].sum())


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _lost_core_seconds(
    starts: Column, ends: Column, waits: Column, cores: int, window: tuple[int, int]
) -> float:  # pragma: no cover
    """Idle core-seconds in [low, high) while the narrowest waiting job fits.

    `starts`, `ends`: (2, n) times ascending and cores. `waits`: (3, m) submit ascending, start and cores of
    the jobs that waited.
    """
    # Heap of (cores, start); its top is dropped once started.
    narrowest = [(waits[2, 0], waits[1, 0]) for _ in range(0)]
    low, high = window
    never = np.iinfo(np.int64).max
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
        then = high
        then = min(then, ends[0, e] if e < ends.shape[1] else never)
        then = min(then, starts[0, s] if s < starts.shape[1] else never)
        then = min(then, waits[0, w] if w < waits.shape[1] else never)
        if len(narrowest) > 0 and narrowest[0][0] <= idle:
            lost += float(idle) * float(then - now)
        now = then
    return lost
