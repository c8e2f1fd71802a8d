"""Where the event loop of `parsim.kernels.machine` keeps what: the arrays of its state and their columns.

P parts, of which the last is the pool (a shared machine is a pool that all call home), Q queues, n jobs. A waiting list is a stretch
of the arrays `w_job`, `w_cores`, ...: in its order if that is constant, else by number, and then who goes first is selected, not sorted:
a pass asks for the first job and, behind a head, for the few that fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

NEVER = np.int64(2**62)  #: after every instant
LONGEST = np.int64(2**31 - 1)  # of all durations that fit an int32
STARVING = np.int32(2**30)  #: group of the starving, above every rank of a queue
PASSED = np.int32(-(2**31))  #: sign of a group: the visit has passed this entry, or its limits hold it
GROUP = np.int32(2**31 - 1)  #: mask that takes that sign away

# Columns of `jobs`; the kernels of one list have the first four of them.
JOB_COLUMNS = 8
(
    SUBMIT,
    CORES,
    RUNTIME,
    WALLTIME,
    QUEUE,
    USER,
    HOME,  #: part in whose list it waits first
    IS_HEAD,  #: whether it is the head of some list in this pass
) = range(JOB_COLUMNS)

# Columns of `held`.
HELD_COLUMNS = 2
(
    HELD_SINCE,  #: instant from which its limits hold a job, or -1
    HELD_FOR,  #: seconds for which they did before
) = range(HELD_COLUMNS)

# Columns of `queues`; what is used counts the heads of the present pass.
QUEUE_COLUMNS = 10
(
    STARVATION,  #: seconds of waiting until a job starves, or `NEVER`
    RANK,  #: of its priority among those of all queues, the greatest last
    MAX_RUN,
    MAX_RUN_CORES,
    MAX_USER_RUN,
    MAX_USER_CORES,
    MAX_WALLTIME,
    WEIGHT,  #: its priority as a whole number, in proportion to the others'
    USED_JOBS,
    USED_CORES,
) = range(QUEUE_COLUMNS)

# Columns of `parts`; one row more, the last, has the list of jobs by reservation.
PART_COLUMNS = 21
(
    CAPACITY,  #: cores
    FREE,  #: of them idle
    OFFSET,  #: first entry of its waiting list
    LAST,  #: how many entries that list has
    LEAST,  #: no job in the list is narrower
    FIRST_STARVING,  #: least number of a starving job in the list; `NEVER` without one, or `UNKNOWN`
    FIRST_RUNNING,  #: first entry of its running jobs in `expected`
    RUNNING,  #: how many they are
    STANDS,  #: whether the last plan of its head still stands
    KEPT_HEAD,  #: whose plan that is
    SEEN,  #: jobs from this number on were not there when it was made
    FRESH,  #: whether anybody has come to the list since
    T_RESERVED,  #: in this pass: instant at which the reserved job is to start, or `NEVER`
    T_RELEASED,  #: ... at which it is expected to end
    SHARE,  #: ... cores of this part that it takes
    HEAD,  #: ... the first job of the list that does not fit, or -1
    INSTANT,  #: ... from which the head is expected to fit
    EXTRA,  #: ... cores that jobs running past INSTANT may take without delaying the head
    SLACK,  #: ... cores that jobs running past T_RESERVED may take without delaying the reserved job or the head
    SLACK_ALONE,  #: ... the same as if there were no head
    PLANNED,  #: ... whether the head's plan has been made
) = range(PART_COLUMNS)

# Entries of `settings`; from RUNNING_JOBS on they count.
SETTINGS = 18
(
    BACKFILL,
    ORDER,
    COMBINED,  #: jobs of the pool may take cores of their partition too
    STARVING_FIRST,
    MOVE,  #: who enters the pool leaves the partition's list
    LIMITS,  #: some queue has running limits
    USER_LIMITS,  #: ... per user
    TRACK_HELD,  #: limits hold jobs whose eligible time a formula asks for
    STARVES,  #: some queue has a starvation period
    BITS,  #: low bits of a key that hold the job; the high ones hold an instant
    LONE,  #: one shared machine: there is one list
    RESERVE_AFTER,  #: seconds that a job has waited before it may be a head
    RUNNING_JOBS,
    WAKES,  #: entries of `wakes`
    WAITING,  #: jobs that have been submitted and not started
    SPREAD,  #: rows of `shares` in use
    NEXT_STARVING,  #: instant at which the next job starves
    SUBMITTED,
) = range(SETTINGS)
BLOCK = 32  #: entries of a list examined at once; the lists are padded by as many
UNKNOWN = np.int64(-1)  #: `FIRST_STARVING`, before somebody asks

#: The event loop allocates nothing, so it needs no reference counts: they took two thirds of its time.
kernel = njit(cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True)
#: Helpers become part of the event loop: they are many, small, and called for every job.
inlined = njit(cache=True, nogil=True, forceinline=True, _nrt=False)
#: Those that take the `State` have no entry from Python, which would take longer to compile than they do.
inlined_in_loop = njit(
    cache=True, nogil=True, forceinline=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
)


class State(NamedTuple):
    """Everything that the event loop reads and writes."""

    jobs: NDArray[np.int32]  # (n, JOB_COLUMNS), ascending by submit, from 0
    start: NDArray[np.int64]  # (n,), -1 before
    place: NDArray[np.int32]  # (n,): part that a job runs on, or -1 - its row in `shares`
    eligible: NDArray[np.int64]  # (n,): instant from which a job may enter the pool
    held: NDArray[np.int64]  # (n, HELD_COLUMNS), or empty where nobody asks
    queues: NDArray[np.int64]  # (Q, QUEUE_COLUMNS)
    parts: NDArray[np.int64]  # (P + 1, PART_COLUMNS)
    settings: NDArray[np.int64]  # (SETTINGS,)
    w_job: NDArray[np.int32]  # (...): waiting jobs, list after list, each ascending
    w_cores: NDArray[np.int32]  # (...), beside `w_job`, as all that follow
    w_time: NDArray[np.int32]  # walltime
    w_group: NDArray[np.int32]  # the largest goes first; negative: see `PASSED`
    value: NDArray[np.float64]  # sorts within a group, largest first
    origin: NDArray[np.float64]  # submit, and
    slope: NDArray[np.float64]  # what the wait (or its cube) is multiplied by in the orders that are ratios
    pick: NDArray[np.int32]  # entries that may be backfilled, a heap
    expected: NDArray[np.int64]  # (...): keys of the running jobs of each part, ascending by expected end
    held_cores: NDArray[np.int64]  # (...), beside `expected`
    ends: NDArray[np.int64]  # heap of real ends
    wakes: NDArray[np.int64]  # heap of eligibility instants
    used_by: NDArray[np.int64]  # (users * Q, 2): running jobs and cores of each user in each queue
    shares: NDArray[np.int64]  # (..., P): cores on each part of the jobs that are spread
    code: NDArray[np.int64]  # (k, 2): a formula's operations and operands
    constants: NDArray[np.float64]
    columns: NDArray[np.float64]  # (m, n): what a formula computes from a job alone
    scratch: NDArray[np.float64]  # (1 + depth, CHUNK): eligible times, then the formula's stack
    by_queue: NDArray[np.int32]  # (n,): jobs grouped by queue, in order; empty where nothing starves
    cursors: NDArray[np.int64]  # (Q, 2): begin and end of each queue's group
    usable: NDArray[np.bool_]  # (P,): parts that a reservation may use
    idle: NDArray[np.int64]  # (P,): their idle cores at its instant


@njit(cache=True, nogil=True)
def find_homes(jobs, part_cores, lone, entries):
    """Set the part that each job calls home (rule 9 of docs/reference/simulator.md), and count the jobs of each in `entries`."""
    pool = part_cores.size - 1
    for j in range(jobs.shape[0]):
        home = 0
        if not lone:
            home = jobs[j, QUEUE]
            if jobs[j, CORES] > part_cores[home]:
                home = pool if jobs[j, CORES] <= part_cores[pool] else pool + 1
        jobs[j, HOME] = home
        entries[home] += 1


@njit(cache=True, nogil=True)
def find_eligible(jobs, bounds, fractions, pool, widest, latest, eligible):
    """Set the instants from which jobs of the partitions may enter the pool (rule 15); how many ever may.

    `fractions`, shape (Q, 2), has threshold over priority of each queue; where the denominator is 0 the delay is left out.
    """
    count = 0
    for j in range(jobs.shape[0]):
        if jobs[j, HOME] < pool and jobs[j, CORES] <= widest:
            q = jobs[j, QUEUE]
            count += 1
            eligible[j] = jobs[j, SUBMIT]
            if fractions[q, 1] > 0:
                seconds = min(np.int64(jobs[j, WALLTIME]), bounds[q])
                eligible[j] += min(-(-(seconds * fractions[q, 0]) // fractions[q, 1]), latest)
    return count
