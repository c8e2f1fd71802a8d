"""Use, waits and fragmentation under a schedule on nodes of several types, by type and resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import on_disk
from parsim.engine.simulation import NEVER
from parsim.metrics.bottleneck import first_places
from parsim.model.schedule import Schedule
from parsim.model.system import System
from parsim.model.workload import Column, Workload

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ALL_NODES = "all nodes"  #: the key of all nodes among the names of types

#: Metrics of a resource, and their meaning. The time measured is from the first to the last counted submission.
RESOURCE_METRICS = {
    "there": "how much of it there is",
    "used": "how much of it jobs have, times seconds",
    "utilization": "share of it that jobs have",
    "fragmentation": "share of it that is idle and of no use to any waiting job, for want of another resource",
}
#: Metrics of the waits of jobs, seconds but for the number of jobs.
WAIT_METRICS = ("jobs", "mean_wait", "median_wait", "p95_wait", "max_wait")


@dataclass(frozen=True)
class NodeUse:
    """Metrics of the nodes of one type, or of all.

    Attributes
    ----------
    resources : dict of str to dict of str to float
        `RESOURCE_METRICS` by resource, cores first; only resources that these nodes have.
    node_seconds : float
        Nodes times seconds in use; a job counts the largest fraction of nodes that it takes of any resource.
    ran : dict of str to float
        `WAIT_METRICS` of the counted jobs that ran on these nodes; a job on several types counts for each.
    meant : dict of str to float
        `WAIT_METRICS` of the counted jobs whose first place is on these nodes (rule "places of a job"), wherever they
        ran: the same jobs in every schedule.
    """

    resources: dict[str, dict[str, float]]
    node_seconds: float
    ran: dict[str, float]
    meant: dict[str, float]


def node_use(workload: Workload, schedule: Schedule, system: System, counted: Mask | None = None) -> dict[str, NodeUse]:
    """Measure the nodes of each type, then all of them.

    Parameters
    ----------
    workload : Workload
        Its queues are those of `system`.
    schedule : Schedule
        Of these jobs, on these nodes. Its queues may be bound to other types than those of `system`, and its nodes may
        have other resources, which are measured.
    system : System
    counted : ndarray(bool), shape (n,), optional
        Jobs whose waits and first and last submission count; all by default. The use of all jobs counts.

    Returns
    -------
    dict of str to NodeUse
        By the name of the type, in the order of the system, then `ALL_NODES`; empty where all nodes are alike, or the
        schedule does not say what jobs may take.
    """
    demands = schedule.demands
    if not system.node_types or demands is None:
        return {}
    counted = np.ones(len(schedule), dtype=np.bool_) if counted is None else np.asarray(counted, dtype=np.bool_)
    names, types, there = demands.resources, system.node_types, demands.there
    node = there // np.array([[each.nodes] for each in types])
    taken = demands.taken
    submit = schedule.submit[counted]
    low, high = (int(submit.min()), int(submit.max())) if submit.size else (0, 0)
    _, begin, end = schedule.runs
    seconds = np.maximum(np.minimum(end, high) - np.maximum(begin, low), 0)
    by_place = np.bincount(schedule.taken_by_run, weights=seconds, minlength=len(demands.amounts))
    used = np.tensordot(by_place, demands.amounts.astype(np.float64), 1)
    shares = np.divide(demands.amounts, node, out=np.zeros(demands.amounts.shape), where=node > 0).max(axis=2)
    node_seconds = by_place @ shares
    idle = unusable(schedule, (low, high))
    on: Mask = np.transpose(demands.amounts[taken].any(axis=2))
    first = first_types(workload, system)

    def of(rows: slice | list[int], ran: Mask, meant: Mask) -> NodeUse:
        resources = {}
        for r, name in enumerate(names):
            most = float(there[rows, r].sum())
            all_of_it = most * (high - low)
            if most:
                values = (used[rows, r].sum(), idle[rows, r].sum())
                part = [float(value) / all_of_it if all_of_it else 0.0 for value in values]
                resources[name] = {
                    "there": most,
                    "used": float(values[0]),
                    "utilization": part[0],
                    "fragmentation": part[1],
                }
        waits = (_waits(schedule, counted & jobs) for jobs in (ran, meant))
        return NodeUse(resources, float(node_seconds[rows].sum()), *waits)

    found = {each.name: of([t], on[t], first == t) for t, each in enumerate(types)}
    every = np.ones(len(schedule), dtype=np.bool_)
    return found | {ALL_NODES: of(slice(None), every, every)}


def first_types(workload: Workload, system: System) -> Column:
    """Return the first type of nodes of each job's first place (rule "places of a job").

    Parameters
    ----------
    workload : Workload
        Its queues are those of `system`.
    system : System
        With nodes of several types.

    Returns
    -------
    ndarray(int64), shape (n,)
        Positions in `System.node_types`; 0 for a job without a place.
    """
    amounts, row = first_places(workload, system)
    found: Column = amounts.any(axis=2).argmax(axis=1)[row]
    return found


def _waits(schedule: Schedule, rows: Mask) -> dict[str, float]:
    wait = schedule.wait[rows]
    if not wait.size:
        return {"jobs": 0.0} | dict.fromkeys(WAIT_METRICS[1:], np.nan)
    median, p95 = np.percentile(wait, (50, 95))
    values = (float(wait.size), float(wait.mean()), float(median), float(p95), float(wait.max()))
    return dict(zip(WAIT_METRICS, values, strict=True))


def unusable(schedule: Schedule, window: tuple[int, int]) -> Floats:
    """Return the idle amounts that no waiting job can use for want of another resource.

    At an instant all of a resource that is idle on the nodes of a type counts if (1) a waiting job (submitted, not
    started, or preempted) has a place that takes some of it, no more than is idle, and (2) no place of a waiting job
    that takes some of it has all its amounts idle. So the resource does not count if no waiting job wants it, if less
    is idle than any of them needs, or if one could have its place but is held back by its turn, a head job or a limit:
    that is loss of capacity.

    Parameters
    ----------
    schedule : Schedule
        With `Schedule.demands`.
    window : (int, int)
        Seconds, from and to.

    Returns
    -------
    ndarray(float64), shape (types, resources)
        Amounts times seconds.

    Raises
    ------
    ValueError
        The schedule has no `Schedule.demands`.
    """
    demands = schedule.demands
    if demands is None:
        raise ValueError("the schedule does not say what jobs may take of nodes")
    there = demands.there
    if window[0] >= window[1]:
        return np.zeros(there.shape)
    amounts, owned = demands.amounts, there[np.newaxis] if demands.owned is None else demands.owned
    if demands.partition is not None:  # what is idle on the nodes of one partition is of no use to jobs of another
        amounts = np.zeros((len(amounts), *owned.shape), dtype=np.int64)
        amounts[np.arange(len(amounts)), demands.partition] = demands.amounts
    job, start, end = schedule.runs
    since = schedule.submit[job]  # from when each run was waited for
    again = np.flatnonzero(job[:-1] == job[1:]) + 1
    since[again] = end[again - 1]
    waits = np.flatnonzero(start > since)
    found: Floats = _unusable(
        start,
        end,
        since,
        np.argsort(start, kind="stable"),
        np.argsort(end, kind="stable"),
        waits[np.argsort(since[waits], kind="stable")],
        demands.of[job],
        demands.first,
        amounts.reshape(len(amounts), -1),
        schedule.taken_by_run,
        owned.reshape(-1).copy(),
        window,
    )
    by_type: Floats = found.reshape(owned.shape).sum(axis=0)
    return by_type


@on_disk
def _unusable(
    start: Column,
    end: Column,
    submit: Column,
    started: Column,
    ended: Column,
    came: Column,
    of: NDArray[np.int32],
    first: Column,
    amounts: Column,
    taken: Column,
    idle: Column,
    window: tuple[int, int],
) -> Floats:  # pragma: no cover
    """Return unusable amounts times seconds, in a sweep over events with the distinct demands of waiting jobs.

    Each run counts as a job. `started` and `ended` are all of them, ascending by start and by end; `came` are those
    that waited, ascending by `submit`, the instant from which they waited.
    """
    low, high = window
    lost = np.zeros(idle.size)
    waiting = np.zeros(first.size - 1, np.int64)  # jobs of each demand
    present = np.empty(first.size - 1, np.int64)  # the demands of waiting jobs, `last` of them
    place = np.empty(first.size - 1, np.int64)
    last = 0
    wanted, usable = np.empty(idle.size, np.bool_), np.empty(idle.size, np.bool_)
    s = e = w = 0
    now = low
    while now < high:
        while e < ended.size and end[ended[e]] <= now:
            idle += amounts[taken[ended[e]]]
            e += 1
        while w < came.size and submit[came[w]] <= now:
            demand = of[came[w]]
            if waiting[demand] == 0:
                present[last] = demand
                place[demand] = last
                last += 1
            waiting[demand] += 1
            w += 1
        while s < started.size and start[started[s]] <= now:
            job = started[s]
            idle -= amounts[taken[job]]
            if start[job] > submit[job]:
                demand = of[job]
                waiting[demand] -= 1
                if waiting[demand] == 0:
                    last -= 1
                    present[place[demand]] = present[last]
                    place[present[last]] = place[demand]
            s += 1
        then: Any = high
        then = min(then, end[ended[e]] if e < ended.size else NEVER)
        then = min(then, start[started[s]] if s < started.size else NEVER)
        then = min(then, submit[came[w]] if w < came.size else NEVER)
        wanted[:] = False
        usable[:] = False
        left = np.count_nonzero(idle > 0)  # amounts that no job seen so far can use
        at = 0
        while at < last and left > 0:
            for row in range(first[present[at]], first[present[at] + 1]):
                fits = True
                for d in range(idle.size):
                    fits &= amounts[row, d] <= idle[d]
                for d in range(idle.size):
                    if amounts[row, d] > 0 and amounts[row, d] <= idle[d]:
                        if fits and not usable[d]:
                            usable[d] = True
                            left -= 1
                        wanted[d] = True
            at += 1
        for d in range(idle.size):
            if wanted[d] and not usable[d]:
                lost[d] += float(idle[d]) * float(then - now)
        now = then
    return lost
