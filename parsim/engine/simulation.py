"""The data of the kernels: records of jobs, queues, partitions, settings, and the state of the general loop.

A table is a structured array: ``queues[q].starvation`` is one field of one queue. P partitions, of which the last is
the common pool (a shared machine is a pool of all its cores), Q queues, n jobs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.compile.compiled import kernel, routine, step  # noqa: F401 - for kernels
from parsim.engine.compile.native import by_pointer
from parsim.engine.fairshare import Fair

NEVER = np.int64(2**62)  #: after every instant
LONGEST = np.int64(2**31 - 1)  #: of all durations that fit an int32
BLOCK = 32  #: entries of a waiting list examined at once; the lists are padded by as many

Fields = list[tuple[str, type[np.generic]]]


def _record(fields: Fields) -> np.dtype[np.void]:
    return np.dtype(fields, align=True)


def one(record: np.dtype[np.void], **values: float) -> np.void:
    """Return one record with these values of all its fields."""
    return np.array([tuple(values[name] for name in record.names)], dtype=record)[0]


_JOB: Fields = [("submit", np.int32), ("cores", np.int32), ("runtime", np.int32), ("walltime", np.int32)]
JOB = _record(_JOB)  #: `submit` counts from the first one; `runtime` is at most `walltime`
QUEUED_JOB = _record(
    [
        *_JOB,
        ("queue", np.int32),
        ("home", np.int32),  #: partition in whose list the job waits first; P: the reserved list (rule "home list")
        ("is_head_job", np.bool_),  #: whether it is the head job of some list in this pass
    ]
)
HELD = _record(
    [
        ("since", np.int64),  #: instant from which limits hold a job, or -1
        ("before", np.int64),  #: seconds for which limits held it before
    ]
)
ALLOWANCE = _record([("jobs", np.int64), ("cores", np.int64)])  #: more that running limits allow; `NEVER` without one
QUEUE = _record(
    [
        ("starvation", np.int64),  #: seconds of waiting until a job starves, or `NEVER`
        ("rank", np.int64),  #: rank of the priority among those of all queues; the greatest has the largest
        ("max_walltime", np.int64),  #: seconds
        ("weight", np.int64),  #: priority as a whole number, in proportion to the other queues'
        ("next_starving", np.int64),  #: entry of `by_queue` that may starve next
        ("end", np.int64),  #: last entry of the queue in `by_queue`, plus one
        ("waiting", np.int64),  #: jobs that have been submitted and not started
    ]
)
PARTITION = _record(
    [
        ("cores", np.int64),
        ("free", np.int64),  #: idle cores
        ("first", np.int64),  #: first entry of the waiting list
        ("waiting", np.int64),  #: number of entries of the list
        ("narrowest", np.int64),  #: lower bound of the cores of a job in the list
        ("first_starving", np.int64),  #: least number of a starving job in the list; `NEVER` without one, or `UNKNOWN`
        ("first_running", np.int64),  #: first entry of the running jobs
        ("running", np.int64),  #: number of the running jobs
        ("plan_stands", np.bool_),  #: whether the last plan of the head job is still valid
        ("planned_job", np.int64),  #: the head job of this plan
        ("seen", np.int64),  #: number of jobs that were submitted when the plan was made
        ("has_new", np.bool_),  #: whether a job has entered the list since
        ("waits_first", np.int64),  #: where nothing is reserved: first job that did not start at the last visit
        ("first_since", np.int64),  #: instant since which it has been this job
        # Of the present pass:
        ("reserved_from", np.int64),  #: instant at which the reserved job is to start, or `NEVER`
        ("reserved_until", np.int64),  #: instant at which it is expected to end
        ("share", np.int64),  #: cores of this partition that the reserved job takes
        ("head_job", np.int64),  #: the first job of the list that does not fit, or -1
        ("head_planned", np.bool_),  #: whether the head job has been planned
        ("shadow", np.int64),  #: shadow time: the instant from which the head job is expected to fit
        ("extra", np.int64),  #: cores that jobs running past `shadow` may take without delaying the head job
        ("slack", np.int64),  #: cores that jobs running past `reserved_from` may take without delaying either
        ("slack_alone", np.int64),  #: the same without a head job
    ]
)
UNKNOWN = np.int64(-1)  #: `first_starving` until it is needed
SETTINGS = _record(
    [
        ("bits", np.int64),  #: number of low bits of a key that hold the job; the others hold an instant
        ("first", np.int64),  #: number of jobs that run when the simulation begins; the next job is submitted first
        ("begin", np.int64),  #: first instant at which anything is decided
        ("order", np.int64),  #: of the lists, a constant of `parsim.engine.order`
        ("calc_period", np.int64),  #: seconds between the instants as of which eligible times are read; 0: all instants
        ("calc_phase", np.int64),  #: seconds since the last of these at instant 0
        ("backfill", np.bool_),
        ("single_list", np.bool_),  #: a shared machine
        ("reserves", np.bool_),  #: a head job reserves cores; else it stops its list after a delay ("nothing reserved")
        ("plans_limits", np.bool_),  #: a job that its limits hold may be a head job (rule "limits beside plans")
        ("by_nodes", np.bool_),  #: nodes that are all alike are told apart (rule "nodes in order")
        ("reservation_delay", np.int64),  #: seconds that a job must wait before it may be a head job
        ("starvation", np.bool_),  #: some queue has a starvation period
        ("limits", np.bool_),  #: there are gates
        ("wide_limits", np.bool_),  #: a job may become able to start though no job of its list has ended
        ("track_held", np.bool_),  #: limits hold jobs whose eligible time a formula reads
        ("combined", np.bool_),  #: jobs of the pool may take cores of their partition, too
        ("move", np.bool_),  #: a job that enters the pool leaves its partition's list
        ("starving_first", np.bool_),  #: starving jobs go first in the pool's list
        ("alike", np.bool_),  #: lists have only the first of jobs alike
        ("looks", np.int64),  #: looks at entries of waiting lists that each submitted job adds
        ("until", np.int64),  #: instant from which on nothing is decided
    ]
)
PROGRESS = _record(
    [
        ("now", np.int64),  #: instant of the present event
        ("submitted", np.int64),  #: number of submitted jobs
        ("waiting", np.int64),  #: number of jobs that have been submitted and not started
        ("running", np.int64),  #: number of running jobs
        ("wake_ups", np.int64),  #: number of keys in `wake_ups`
        ("next_starving", np.int64),  #: instant at which the next job starves
        ("spanning", np.int64),  #: number of rows of `shares` in use
        ("outside", np.int64),  #: number of jobs that throttles keep out of the lists
        ("windows", np.int64),  #: number of instants of `outages` that have passed
        ("retry", np.int64),  #: the second after the last start
        ("looks", np.int64),  #: looks at entries of waiting lists that are left before the loop gives up
    ]
)
CLASS = _record(  #: of multiple-queue backfilling: its jobs wait in ``waiting[first:last]``, the pivot first
    [("first", np.int64), ("last", np.int64)]
)


class Running(NamedTuple):
    """Running jobs, ascending by expected end."""

    keys: NDArray[np.int64]  # expected end and job
    cores: NDArray[np.int64]


class Waiting(NamedTuple):
    """Waiting lists, one stretch each: sorted in a constant order, else by job number."""

    job: NDArray[np.int32]
    cores: NDArray[np.int32]
    walltime: NDArray[np.int32]
    group: NDArray[np.int32]  # the largest goes first; negative: see `PASSED`
    queue: NDArray[np.int32]
    value: NDArray[np.float64]  # sorts entries within a group, largest first
    origin: NDArray[np.float64]  # submit
    slope: NDArray[np.float64]  # factor of the wait (or of its cube) in orders by ratios


STARVING = np.int32(2**20)  #: bit of the group of starving jobs, above every rank of a queue
PREEMPTED = np.int32(2**21)  #: bit of the group of jobs that have been preempted, above `STARVING`
BY_SUBMIT = STARVING | PREEMPTED  #: jobs with either bit go by their number
TIER = 22  #: number of bits of a group below the rank of the queue's tier
PASSED = np.int32(-(2**31))  #: sign bit of a group: the visit has passed this entry, or limits hold its job
GROUP = np.int32(2**31 - 1)  #: mask that removes `PASSED`


class Formula(NamedTuple):
    """A formula's program, as `parsim.engine.order.interpret` takes it."""

    code: NDArray[np.int64]
    constants: NDArray[np.float64]
    columns: NDArray[np.float64]
    eligible: NDArray[np.float64]
    stack: NDArray[np.float64]


class Alike(NamedTuple):
    """Lines of jobs that are alike, each in the order of submission; empty unless `settings.alike`.

    The jobs of a line that are in the pool's list come before the others, so that both lists have the same first job.
    """

    line: NDArray[np.int32]  # (n,): line of each job
    members: NDArray[np.int32]  # (n,): the jobs, line by line
    place: NDArray[np.int32]  # (n,): entry of each job in `members`
    end: NDArray[np.int32]  # (lines,): last entry of each line in `members`, plus one
    first: NDArray[np.int32]  # (2, lines): the job that has the entry of its line in the home list, and in the pool's


@by_pointer
class Simulation(NamedTuple):
    """Everything that the general event loop reads and writes."""

    jobs: NDArray[np.void]  # (n,) QUEUED_JOB, ascending by submit
    start: NDArray[np.int64]  # (n,): start of each job, -1 before it
    placement: NDArray[np.int32]  # (n,): partition that a job runs on, or -1 - its row in `shares`
    shares: NDArray[np.int64]  # (..., P): cores on each partition of the jobs that span several
    eligible_at: NDArray[np.int64]  # (n,): instant from which a job may enter the pool; empty without a pool
    held: NDArray[np.void]  # (n,) HELD; empty unless `track_held`
    queues: NDArray[np.void]  # (Q,) QUEUE
    by_queue: NDArray[np.int32]  # (n,): jobs by queue, then by number; empty where no job starves
    partitions: NDArray[np.void]  # (P + 1,) PARTITION; the last row has the reserved list
    settings: np.void  # SETTINGS
    progress: np.void  # PROGRESS
    waiting: Waiting
    candidates: NDArray[np.int32]  # entries of a list that may be backfilled, a heap
    running: Any  # `Running` of each partition in turn; None where `parsim.engine.plans.promises.Plans` have them
    ends: NDArray[np.int64]  # heap of keys: real ends
    wake_ups: NDArray[np.int64]  # heap of keys: pool eligibility instants
    formula: Formula
    usable: NDArray[np.bool_]  # (P,): whether a reservation may use each partition
    idle: NDArray[np.int64]  # (P,): idle cores of each partition at the instant of the reservation
    alike: Alike
    fair: Fair
    gates: Any  # `parsim.engine.gates.counters.Gates`
    submit_keys: NDArray[np.int64]  # (n,): sort jobs by submission ("admission to lists"); empty if numbers do
    needs: Any  # `parsim.engine.gates.needs.Needs`
    node_types: Any  # `parsim.engine.resources.node_types.NodeTypes`, or None
    placing: Any  # `parsim.engine.resources.chunks.Placing`, or None
    preempting: Any  # `parsim.engine.preempt.preempting.Preempting`, or None
    windows: Any  # `parsim.engine.resources.typed_windows.TypedWindows`, or None
    plain: Any  # an empty array where a list has one head job that is planned alone, else None
    outages: Any  # `parsim.engine.resources.windows.Outages`: all windows of cores


@step
def count_waiting(s, j, sign):
    """Add job j to the counts of jobs that have been submitted and not started, or remove it."""
    s.progress.waiting += sign
    s.queues[s.jobs[j].queue].waiting += sign


@step
def submit_key(s, j):
    """Return the key of job j that sorts jobs by submission, and so breaks ties."""
    return s.submit_keys[j] if s.submit_keys.size > 0 else np.int64(j)


@step
def comes_before(s, i, j):
    """Whether job i was submitted before job j."""
    return submit_key(s, i) < submit_key(s, j)
