"""Lays out the order of a list for the kernels, and numbers the jobs that are alike under it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as orders
from parsim.engine import simulation as kernel
from parsim.engine.fairshare import Fair
from parsim.model.fairshare import FAIRSHARE
from parsim.model.formula import of_requests
from parsim.model.rising import never_falls
from parsim.model.system import USER_LIMITS, Queue, System
from parsim.model.workload import Column
from parsim.prepare.columns import Prepared, Table
from parsim.prepare.fairshare import NO_FAIR, lay_out

NEVER = int(kernel.NEVER)
AT_ONCE = 1 << 16  #: jobs for which the columns of a formula are computed at once: their values stay in the cache

_NONE = np.empty(0, dtype=np.int32)
NO_LINES = kernel.Alike(_NONE, _NONE, _NONE, _NONE, np.empty((2, 0), dtype=np.int32))

Ranks = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]


def rank(jobs: Table, queue: Column, queues: Sequence[Queue], order: str, bits: int, begin: int = 0) -> Ranks:
    """Rank the jobs of one list by queue priority, a constant order and submission (rule "order of a list").

    Returns the `rank`, `ranked` and `wake_ups` of `parsim.engine.fast.easy`.
    """
    n = len(jobs)
    numbers = np.arange(n, dtype=np.int32)
    ranked = numbers
    if order != "fcfs":
        walltime = jobs["walltime"]
        ranked = np.argsort(walltime if order == "sjf" else -walltime, kind="stable").astype(np.int32)
    greatest = sorted({queue.priority for queue in queues}, reverse=True)
    if len(greatest) > 1:
        group = np.array([greatest.index(queue.priority) for queue in queues], dtype=np.int16)
        ranked = ranked[np.argsort(group[queue[ranked]], kind="stable")]
    places = numbers
    if ranked is not numbers:
        places = np.empty_like(ranked)
        places[ranked] = numbers
    periods = {queue.starvation for queue in queues}
    if periods == {None} or (ranked is numbers and len(periods) == 1):  # the starving go first already
        return places, ranked, np.empty(0, dtype=np.int64)
    if 0 in periods or begin > 0:
        period = np.array([NEVER if its.starvation is None else min(its.starvation, NEVER) for its in queues])[queue]
        on_arrival = jobs["submit"] + period <= np.maximum(jobs["submit"], begin)
        places = np.where(on_arrival, numbers - np.int32(n), places)
    return places, ranked, wake_ups(jobs, queue, queues, bits, begin)


def wake_ups(jobs: Table, queue: Column, queues: Sequence[Queue], bits: int, begin: int = 0) -> Column:
    """Return keys, ascending, of the instants after submission and `begin` at which jobs begin to starve."""
    latest = 1 << (62 - bits)  # no job waits this long
    periods = [latest if its.starvation is None else min(its.starvation, latest) for its in queues]
    if min(periods) == latest:
        return np.empty(0, dtype=np.int64)
    period_of = np.array(periods, dtype=np.int64)
    parts = []
    for period in np.unique(period_of[(period_of > 0) & (period_of < latest)]):
        members = np.flatnonzero(period_of[queue] == period)
        instant = jobs["submit"][members].astype(np.int64) + period
        parts.append(((instant << bits) | members)[(instant < latest) & (instant > begin)])
    keys = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    keys.sort(kind="stable")  # which merges the parts, each ascending, in linear time
    return keys


def pack_alike(prepared: Prepared, system: System, columns: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the same number for jobs alike under an order, a formula of these columns; shape (n,).

    All numbers differ if a job may pass one like it: if the value of the formula may fall with time.
    """
    return prepared.alike(*_columns_of(system)) if keeps_turns(prepared, system, columns) else prepared.own_numbers


def lines_of(prepared: Prepared, system: System) -> kernel.Alike:
    """Return the lines of jobs alike, of which none passes another, as `pack_alike` numbers them."""
    return prepared.lines(*_columns_of(system))


def _columns_of(system: System) -> tuple[str, ...]:
    """Return the columns of the workload in which jobs alike under a system are the same."""
    if system.uses_estimate:
        return "queue", "user", "qos", "estimate"
    if system.uses_qos:
        return "queue", "user", "qos"
    return ("queue", "user") if distinguishes_users(system) else ("queue",)


def keeps_turns(prepared: Prepared, system: System, columns: NDArray[np.float64]) -> bool:
    """Whether, of jobs that are alike, the one submitted first always goes first."""
    if prepared.workload.has_needs:
        return False
    formula = system.formula
    # Jobs of one user may be of several groups, and jobs that are kept out of the lists are in no line.
    if system.keeps_out or any(throttle.each not in ("", "user", "qos") for throttle in system.throttles):
        return False
    if formula is None:
        return True
    return never_falls(formula, columns, prepared.longest_wait)


def has_user_limits(system: System) -> bool:
    """Whether some queue has running limits per user."""
    return any(getattr(queue, name) for queue in system.queues for name in USER_LIMITS)


def distinguishes_users(system: System) -> bool:
    """Whether otherwise equal jobs of two users differ: in their limits, or in values that the order reads."""
    throttled = any(throttle.each not in ("", "qos") for throttle in system.throttles)
    return has_user_limits(system) or system.reads_users or throttled


def pack_formula(prepared: Prepared, system: System) -> tuple[kernel.Formula, Fair]:
    """Return the formula of the system's order, ``fairshare`` as one, and the tree that it reads; else empty arrays."""
    formula, workload = system.formula, prepared.workload
    eligible = np.empty(orders.BATCH)
    if system.order == FAIRSHARE and system.is_fair:  # rule "order of users"
        fair, share = lay_out(system, workload, *prepared.present, first=0, begin=prepared.begin)
        return _program([(orders.COLUMN, 0)], [], np.empty((1, share.size))), fair
    if formula is None:
        empty = np.empty((0, 2), np.int64), np.empty(0), np.empty((0, 0)), eligible, np.empty((0, orders.BATCH))
        return kernel.Formula(*empty), NO_FAIR
    priority = np.array([queue.priority for queue in system.queues], dtype=np.float64)
    fair, share, own = NO_FAIR, np.zeros(len(workload)), len(formula.column_codes)
    if system.reads_users:
        fair, share = lay_out(system, workload, *prepared.present, first=own, begin=prepared.begin)
    each = system.reads_users or formula.uses_qos or formula.uses_estimate
    jobs, kind = (prepared.own_numbers, prepared.own_numbers) if each else prepared.kinds
    found = np.empty((own, jobs.size))
    for first in range(0, jobs.size, AT_ONCE):
        part = jobs[first : first + AT_ONCE]
        walltime, cores = workload.walltime[part], workload.cores[part]
        base = np.stack([priority[workload.queue[part]], walltime, cores, np.zeros(cores.size), share[part]])
        if formula.uses_optional:
            worth = _of_qos(prepared, system)[:, prepared.qos_classes[1][part]]
            requests = of_requests(workload.requests)[:, workload.request[part]]
            base = np.vstack([base, worth, requests, workload.expected_runtime[part]])
        found[:, first : first + AT_ONCE] = formula.columns(base)
    columns = np.empty((own + len(formula.uses), len(workload)))
    np.take(found, kind, axis=1, out=columns[:own], mode="clip")  # else it would copy them once more
    stack = np.empty((formula.depth, orders.BATCH))
    return kernel.Formula(formula.code, formula.constants, columns, eligible, stack), fair


def _of_qos(prepared: Prepared, system: System) -> NDArray[np.float64]:
    """Return priority and target of each QOS that has jobs, 0 without; shape (2, k) (rule "values of a QOS")."""
    found = {qos.name: (qos.priority, qos.target or 0) for qos in system.qos}
    return np.array([found.get(name, (0, 0)) for name in prepared.qos_classes[0]], dtype=np.float64).T


def is_formula(prepared: Prepared, system: System) -> bool:
    """Whether values of a formula order one list: of the system's, or of ``lxf`` or ``fairshare`` in a single group.

    Different quotients of ``lxf`` are different floats if numerators and denominators have at most 50 bits together.
    """
    if system.order not in ("lxf", FAIRSHARE):
        return system.formula is not None
    if len({queue.priority for queue in system.queues}) > 1 or any(its.starvation is not None for its in system.queues):
        return False
    return system.order == FAIRSHARE or prepared.longest_wait * int(prepared.workload.walltime.max()) < 1 << 50


def pack_order(prepared: Prepared, system: System) -> tuple[kernel.Formula, Fair]:
    """Return a formula for the order of one list, if `is_formula` or the order is constant but for starving jobs."""
    if system.formula is not None or system.order == FAIRSHARE:
        return pack_formula(prepared, system)
    return _pack_named(prepared, system), NO_FAIR


def _pack_named(prepared: Prepared, system: System) -> kernel.Formula:
    """Return a formula for a named order."""
    walltime = prepared.workload.walltime.astype(np.float64)
    if system.order == "lxf":
        return _program([(orders.ELIGIBLE_TIME, 0), (orders.COLUMN, 0), (orders.DIVIDE, 0)], [], walltime[np.newaxis])
    queue = prepared.workload.queue
    greatest = sorted({its.priority for its in system.queues})
    rank = np.array([greatest.index(its.priority) for its in system.queues], dtype=np.float64)[queue]
    within: NDArray[np.float64] = {
        "fcfs": -np.arange(queue.size, dtype=np.float64),
        "sjf": -walltime,
        "ljf": walltime,
    }[system.order]
    value = rank * 2.0**32 + within
    if all(its.starvation is None for its in system.queues):
        return _program([(orders.COLUMN, 0)], [], value[np.newaxis])
    period = np.array([np.inf if its.starvation is None else its.starvation for its in system.queues])[queue]
    code = [
        *((orders.ELIGIBLE_TIME, 0), (orders.CONSTANT, 0), (orders.ADD, 0)),  # of the starving, by submit
        *((orders.COLUMN, 1), (orders.ELIGIBLE_TIME, 0), (orders.LESS_EQUAL, 0)),
        *((orders.COLUMN, 0), (orders.SELECT, 0)),
    ]
    return _program(code, [2.0**52], np.stack([value, period]))


def _program(code: list[tuple[int, int]], constants: list[float], columns: NDArray[np.float64]) -> kernel.Formula:
    stack = np.empty((3, orders.BATCH))
    return kernel.Formula(np.array(code, dtype=np.int64), np.array(constants), columns, np.empty(orders.BATCH), stack)
