"""Where the event loop of `parsim.kernels.machine` keeps what: the columns of its few arrays.

P parts, of which the last is the pool (a shared machine is a pool that all call home), Q queues, n jobs. All are int64 but where said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

NEVER = np.int64(2**62)
STARVING = np.int32(2**30)  #: group of the starving, above every rank of a queue

#: Columns of `jobs`: what was submitted, where the job may wait, what became of it, what its limits do to it.
(SUBMIT, CORES, RUNTIME, WALLTIME, QUEUE, USER, HOME, ELIGIBLE,
 START, PLACE, HOW, CAUSE, IS_HEAD, HELD_SINCE, HELD_FOR) = range(15)  # fmt: skip
#: Columns of `queues`; what runs counts the heads of the present pass.
(
    STARVATION,
    RANK,
    MAX_RUN,
    MAX_RUN_CORES,
    MAX_USER_RUN,
    MAX_USER_CORES,
    MAX_WALLTIME,
    USED_JOBS,
    USED_CORES,
) = range(9)
#: Columns of `parts`: its cores, its waiting list and its running jobs; from T_RESERVED on, the plan of the present pass. One row more,
#: the last, has the reserved list.
(CAPACITY, FREE, OFFSET, LAST, DIRTY, FIRST_RUNNING, RUNNING,
 T_RESERVED, T_RELEASED, SHARE, HEAD, INSTANT, EXTRA, SLACK, SLACK_ALONE, PLANNED) = range(16)  # fmt: skip
#: Entries of `settings`, the last four of which count.
(BACKFILL, ORDER, COMBINED, STARVING_FIRST, MOVE, LIMITS, TRACK_HELD, STARVES, BITS, LONE,
 RUNNING_JOBS, WAKES, WAITING, SPREAD) = range(14)  # fmt: skip
#: How a job came to start: before any head in its list, behind one, by a reservation, on its partition and the pool together.
IN_TURN, BACKFILLED, RESERVED, SPANNING = range(4)

#: The event loop allocates nothing, so it needs no reference counts: they took two thirds of its time.
kernel = njit(cache=True, nogil=True, _nrt=False)
#: Helpers become part of the event loop: they are many, small, and called for every job.
inlined = njit(cache=True, nogil=True, forceinline=True, _nrt=False)


class State(NamedTuple):
    """Everything that the event loop reads and writes."""

    jobs: NDArray[np.int64]  # (n, 15), ascending by submit, from 0
    queues: NDArray[np.int64]  # (Q, 9)
    parts: NDArray[np.int64]  # (P + 1, 16)
    settings: NDArray[np.int64]  # (14,)
    waiting: NDArray[np.int32]  # (3, ...): job, cores and group of each waiting job, list after list
    value: NDArray[np.float64]  # (...), beside `waiting`: sorts within a group, largest first
    expected: NDArray[np.int64]  # (...): keys of the running jobs of each part, ascending by expected end
    held_cores: NDArray[np.int64]  # (...), beside `expected`
    ends: NDArray[np.int64]  # (...): heap of real ends
    wakes: NDArray[np.int64]  # (...): heap of eligibility instants
    used_by: NDArray[np.int64]  # (users * Q, 2): running jobs and cores of each user in each queue
    shares: NDArray[np.int64]  # (..., P): cores on each part of the jobs that are spread; PLACE is -1 - row
    code: NDArray[np.int64]  # (k, 2): a formula's operations and operands
    constants: NDArray[np.float64]  # (...)
    columns: NDArray[
        np.float64
    ]  # (1 + m, n): the priority of each job's queue, then what a formula computes from a job alone
    scratch: NDArray[np.float64]  # (1 + depth, CHUNK): eligible times, then the formula's stack
    by_queue: NDArray[
        np.int32
    ]  # (n,): jobs grouped by queue, in order within it; empty where nothing starves
    cursors: NDArray[np.int64]  # (Q, 2): begin and end of each queue's group
    usable: NDArray[np.bool_]  # (P,): parts that a reservation may use
    idle: NDArray[np.int64]  # (P,): their idle cores at its instant
