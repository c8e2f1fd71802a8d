"""Lays out one list that is alone on its cores, for the kernel of orders that change with time and of deep queues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim.engine import order as orders
from parsim.engine import simulation as kernel
from parsim.engine.fast.blocks import blocks_of
from parsim.engine.fast.time_dependent import Limits, OneList
from parsim.engine.fast.values import Chunk, Epoch, valued_of
from parsim.engine.lists.alike import NO_JOB, Lines
from parsim.model.system import LIMITS, System
from parsim.prepare.columns import Prepared, Table
from parsim.prepare.order import NEVER, NO_LINES, has_user_limits, lines_of, pack_alike, pack_order, wake_ups

MANY = 400  #: instructions of a formula for the waiting jobs; with fewer, to bound values takes as long as to have them


def pack_one_list(prepared: Prepared, system: System) -> OneList:
    """Lay out one list, of jobs alike the first alone, and what gives it its order."""
    jobs, bits, n = prepared.jobs, prepared.bits, len(prepared.workload)
    formula, fair = pack_order(prepared, system)
    of = pack_alike(prepared, system, formula.columns)
    lines = int(of.max(initial=-1)) + 1
    many = NEVER if of is prepared.single or system.reads_users else MANY  # a value that may fall has no bound
    stop_time = system.has_limits and system.formula is not None and system.formula.uses_eligible_time
    most = min(n, system.cores)
    return OneList(
        jobs=jobs,
        start=prepared.unstarted(),
        first=prepared.first,
        begin=prepared.begin,
        machine=system.cores,
        backfill=system.backfill,
        reservation_delay=system.reservation_delay,
        bits=bits,
        formula=formula,
        fair=fair,
        limits=Limits(system.has_limits, stop_time, *_pack_limits(prepared, system)),
        wake_ups=wake_ups(jobs, prepared.workload.queue, system.queues, bits, prepared.begin),
        lines=Lines(of, np.full(lines, NO_JOB), np.empty(n, np.int32)),
        alike=lines_of(prepared, system) if stop_time and of is not prepared.single else NO_LINES,
        origin=jobs["submit"].astype(np.int64) if stop_time else np.empty(0, np.int64),
        since=np.full(n if stop_time else 0, NEVER),
        epoch=Epoch(prepared.longest_wait, many, np.array([-1, 1, 0])),
        waiting=valued_of(n),
        chunk=Chunk(np.empty(orders.CHUNK, np.int32), np.empty(orders.CHUNK, np.int32)),
        running=blocks_of(most),
        ends=np.empty(most + 1, np.int64),
    )


def _pack_limits(prepared: Prepared, system: System) -> tuple[Table, NDArray[np.uint32]]:
    """Lay out what running limits allow each queue, and each user in it; and the two rows that each job counts in."""
    queues, queue = system.queues, prepared.workload.queue
    users, user = prepared.users if has_user_limits(system) else (0, np.int64(-1))
    left = np.full((users + 2, len(queues)), NEVER, dtype=kernel.ALLOWANCE)  # the second row is that of no user
    for part, names in ((left[:1], LIMITS[:2]), (left[2:], LIMITS[2:])):
        for field, name in zip(("jobs", "cores"), names, strict=True):
            part[field] = [NEVER if getattr(its, name) is None else getattr(its, name) for its in queues]
    rows = np.empty((queue.size, 2), dtype=np.uint32)
    rows[:, 0] = queue
    rows[:, 1] = queue + len(queues) * (2 + user)
    return left.reshape(-1), rows
