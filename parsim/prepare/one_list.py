"""Lays out one list with cores of its own, for the kernel of orders that change with time and of deep queues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as orders
from parsim.engine import simulation as kernel
from parsim.engine.fast.blocks import blocks_of
from parsim.engine.fast.listed import directory_of, listed_of
from parsim.engine.fast.time_dependent import Limits, OneList
from parsim.engine.fast.values import Batch, Epoch
from parsim.engine.lists.alike import NO_JOB, Lines
from parsim.model.fairshare import FAIRSHARE
from parsim.model.system import TOTAL_LIMITS, USER_LIMITS, System
from parsim.prepare.columns import Prepared, Table
from parsim.prepare.order import NEVER, NO_LINES, has_user_limits, lines_of, pack_alike, pack_order, wake_ups

MANY = 400  #: instructions of a formula for all waiting jobs; bounds of fewer values take as long as the values


def pack_one_list(prepared: Prepared, system: System) -> OneList:
    """Return one list, in which each line of jobs alike has an entry, with its order and limits."""
    jobs, bits, n = prepared.jobs, prepared.bits, len(prepared.workload)
    formula, fair = pack_order(prepared, system)
    of = pack_alike(prepared, system, formula.columns)
    lines = int(of.max(initial=-1)) + 1
    exact = not system.reads_users and orders.ELIGIBLE_TIME not in formula.code[:, 0]
    many = NEVER if of is prepared.own_numbers or system.reads_users else MANY  # a value that may fall has no bound
    many = 0 if exact else many
    most = min(n, system.cores)
    left, rows = _pack_limits(prepared, system)
    groups = left.size if system.has_limits else max(1, fair.nodes.size)
    return OneList(
        jobs=jobs,
        start=prepared.unstarted(),
        first=prepared.first,
        begin=prepared.begin,
        machine=system.cores,
        backfill=system.backfill,
        reserves=not system.reserves_nothing,
        reservation_delay=system.reservation_delay,
        bits=bits,
        formula=formula,
        fair=fair,
        limits=Limits(system.has_limits, system.stops_time, left, rows),
        wake_ups=wake_ups(jobs, prepared.workload.queue, system.queues, bits, prepared.begin),
        lines=Lines(of, np.full(lines, NO_JOB), np.empty(n, np.int32)),
        alike=lines_of(prepared, system) if system.stops_time and of is not prepared.own_numbers else NO_LINES,
        origin=jobs["submit"].astype(np.int64) if system.stops_time else np.empty(0, np.int64),
        since=np.full(n if system.stops_time else 0, NEVER),
        epoch=Epoch(prepared.longest_wait, exact, system.order == FAIRSHARE, many, np.array([-1, 1, 0, 0, 0])),
        waiting=listed_of(n, groups),
        directory=directory_of(n, groups, *prepared.walltimes),
        batch=Batch(np.empty(orders.BATCH, np.int32), np.empty(orders.BATCH, np.int32)),
        running=blocks_of(most),
        ends=np.empty(most + 1, np.int64),
    )


def _pack_limits(prepared: Prepared, system: System) -> tuple[Table, NDArray[np.uint32]]:
    """Return the jobs and cores that running limits allow each queue, and each user in it; and each job's two rows."""
    queues, queue = system.queues, prepared.workload.queue
    users, user = prepared.users if has_user_limits(system) else (0, np.int64(-1))
    left = np.full((users + 2, len(queues)), NEVER, dtype=kernel.ALLOWANCE)  # the second row is that of no user
    for part, names in ((left[:1], TOTAL_LIMITS), (left[2:], USER_LIMITS)):
        for field, name in zip(("jobs", "cores"), names, strict=True):
            part[field] = [NEVER if getattr(its, name) is None else getattr(its, name) for its in queues]
    rows = np.empty((queue.size, 2), dtype=np.uint32)
    rows[:, 0] = queue
    rows[:, 1] = queue + len(queues) * (2 + user)
    return left.reshape(-1), rows
