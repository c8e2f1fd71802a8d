"""The columns and tables of a workload that kernels read on any system: computed once, kept while the workload lives.

A search simulates the same jobs on thousands of systems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from parsim.engine import simulation as kernel
from parsim.engine.fast.listed import CLASSES
from parsim.engine.gates.needs import Needs
from parsim.engine.lists.alike import find_alike
from parsim.engine.resources.chunks import Placing
from parsim.engine.resources.node_types import NodeTypes
from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import MAX_DURATION, Column, Workload
from parsim.prepare.chunks import lay_out as lay_out_placing
from parsim.prepare.gates import Key, Layout, key_of
from parsim.prepare.gates import lay_out as lay_out_gates
from parsim.prepare.needs import lay_out
from parsim.prepare.node_types import lay_out as lay_out_node_types
from parsim.prepare.state import Begun, resume

Table = NDArray[np.void]  #: a structured array: one record of named fields per row

MOST_LAID_OUT = 64  #: layouts of jobs on nodes of several types that are kept, one for each machine

MOST_KEPT = 2**22  #: jobs whose table for the general event loop is kept for the next system: more take much memory
MOST_JOBS = 2**28  #: of a simulation: so the keys of their instants have 34 bits, 544 years, for the seconds


@dataclass
class Depth:
    """Whether to expect a deep queue, and begin with the loop over lines of jobs alike.

    The loop over every waiting job gives up in a deep queue. Then the next simulation skips it; if it gives up again
    after that, the next two skip it, then four, and so on.
    """

    _left_out: int = 0
    _next: int = 1

    def expected(self) -> bool:
        """Return whether to skip the loop over every waiting job this time."""
        self._left_out -= 1
        return self._left_out >= 0

    def found(self, *, deep: bool) -> bool:
        """Record, and return, whether the loop gave up in a deep queue."""
        self._left_out, self._next = (self._next, 2 * self._next) if deep else (0, 1)
        return deep


@dataclass(frozen=True, eq=False)
class Prepared:
    """A workload with the columns and tables that kernels read on any system.

    Attributes
    ----------
    workload : Workload
        Ascending by submit; with `begun` the running jobs come first.
    rows : ndarray(int64), shape (n,), or None
        Row of each job in the workload as given, None if unchanged.
    begun : Begun or None
        The state in which the simulation begins, None for the first submission on an empty machine.
    until : int
        Instant, counted from `base`, from which on nothing is decided.
    """

    workload: Workload
    rows: NDArray[np.int64] | None
    begun: Begun | None = None
    until: int = int(kernel.NEVER)

    @cached_property
    def base(self) -> int:
        """The first submission, from which kernels count seconds."""
        submit = self.workload.submit
        return int(submit[0] if self.begun is None else submit.min())

    @cached_property
    def depths(self) -> defaultdict[Hashable, Depth]:
        """The `Depth` of each kind of simulation, by a key of the caller."""
        return defaultdict(Depth)

    @cached_property
    def one_list(self) -> Prepared:
        """The jobs in one queue, without dependencies and quotas."""
        return Prepared(replace(self.workload.without_needs(), queue=np.zeros_like(self.workload.queue)), None)

    @cached_property
    def first(self) -> int:
        """Number of jobs that run when the simulation begins."""
        return 0 if self.begun is None else self.begun.start.size

    @property
    def begin(self) -> int:
        """First instant at which anything is decided, counted from `base`."""
        return 0 if self.begun is None else self.begun.begin

    @property
    def has_windows(self) -> bool:
        """Whether cores are out of service, or kept for some jobs, for a while."""
        return self.begun is not None and self.begun.windows.size > 0

    def unstarted(self) -> NDArray[np.int64]:
        """Return a column for the kernel to fill with starts: -1 except for jobs that run already."""
        start = np.full(len(self.workload), -1, dtype=np.int64)
        if self.begun is not None:
            start[: self.first] = self.begun.start
        return start

    @cached_property
    def runtime(self) -> NDArray[np.int64]:
        """Seconds that each job occupies its cores."""
        return self.workload.effective_runtime

    @cached_property
    def bits(self) -> int:
        """Number of low bits of a key that hold the job; the others hold an instant."""
        n = len(self.workload)
        if n > MOST_JOBS:
            raise ValueError(f"{n} jobs are more than the {MOST_JOBS} of one simulation: simulate a part of them")
        return max(1, (n - 1).bit_length())

    @cached_property
    def jobs(self) -> Table:
        """Records of the jobs for the kernels of one list; `JOB`, shape (n,)."""
        return self._table(kernel.JOB)

    def queued_jobs(self) -> Table:
        """Return writable records for the general event loop, without homes; `QUEUED_JOB`, shape (n,)."""
        if len(self.workload) > MOST_KEPT:
            return self._table(kernel.QUEUED_JOB)
        return self._queued_jobs.view(np.uint8).copy().view(kernel.QUEUED_JOB)  # by fields it is ten times as slow

    @cached_property
    def _queued_jobs(self) -> Table:
        return self._table(kernel.QUEUED_JOB)

    def _table(self, record: np.dtype[np.void]) -> Table:
        w = self.workload
        jobs = np.zeros(len(w), dtype=record)
        jobs["submit"] = w.submit - self.base if len(w) else 0
        jobs["cores"] = w.cores
        jobs["runtime"] = self.runtime
        jobs["walltime"] = w.walltime
        if record == kernel.QUEUED_JOB:
            jobs["queue"] = w.queue
        return jobs

    @cached_property
    def position(self) -> Column:
        """Row of each job in the workload as given; shape (n,)."""
        return np.arange(len(self.workload), dtype=np.int64) if self.rows is None else self.rows

    @cached_property
    def walltimes(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Longest walltimes, ascending, of CLASSES classes of about equally many jobs; and the class of each job."""
        walltime = np.sort(self.workload.walltime)
        longest = walltime[(np.arange(1, CLASSES + 1) * len(walltime) - 1) // CLASSES].astype(np.int32)
        return longest, np.searchsorted(longest, self.workload.walltime).astype(np.uint8)

    @cached_property
    def longest_wait(self) -> int:
        """Upper bound of waits on any system, seconds."""
        last = int(self.workload.submit[-1]) - self.base
        if self.begun is not None:
            last = max(last, self.begin, int(self.begun.windows["end"].max(initial=0)))
        return min(last + int(self.runtime.sum()) + MAX_DURATION, 1 << (62 - self.bits))

    @cached_property
    def own_numbers(self) -> NDArray[np.int32]:
        """A different number for each job, as `alike` would give if no jobs were alike; shape (n,)."""
        return np.arange(len(self.workload), dtype=np.int32)

    @cached_property
    def kinds(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first job with each number of `alike("queue")`, and the number of each job."""
        kind = self.alike("queue")
        first = np.empty(kind.max(initial=-1) + 1, dtype=np.int32)
        first[kind[::-1]] = self.own_numbers[::-1]
        return first, kind

    @cached_property
    def _alike(self) -> dict[tuple[str, ...], NDArray[np.int32]]:
        return {}

    def alike(self, *columns: str) -> NDArray[np.int32]:
        """Return one number for all jobs of equal cores, request, walltime and values of these columns, shape (n,)."""
        if columns not in self._alike:
            w = self.workload
            other, width = np.zeros(len(w), dtype=np.int64), 0
            for values in (self._request, *(getattr(w, name) for name in columns)):
                bits = (int(values.max(initial=-1)) + 1).bit_length()
                if width + bits > 62:
                    other, width = np.unique(other, return_inverse=True)[1], MOST_JOBS.bit_length()
                other, width = (other << bits) + values + 1, width + bits
            self._alike[columns] = np.empty(len(w), dtype=np.int32)
            find_alike(self.jobs, other, self._alike[columns])
        return self._alike[columns]

    @property
    def _request(self) -> Column:
        """The request of each job; those of several chunks all differ: a job may fit only where less is idle."""
        w = self.workload
        several = np.array([len(request) > 1 for request in w.requests] + [False])[w.request]  # the last of no request
        return np.where(several, len(w.requests) + self.own_numbers, w.request)

    @cached_property
    def _gates(self) -> dict[Key, Layout]:
        return {}

    def gates(self, system: System) -> Layout:
        """Return the layout of a system's gates for these jobs, which does not depend on the limits of its queues."""
        key = key_of(system)
        if key not in self._gates:
            of = self.workload, self.queues, self.users, self.base + self.begin
            self._gates[key] = lay_out_gates(key, *of)
        return self._gates[key]

    @cached_property
    def _on_types(self) -> dict[object, Any]:
        return {}

    def node_types(self, system: System) -> NodeTypes | None:
        """Return the places of the jobs, where they take amounts of the totals of node types; else None."""
        return None if not system.node_types or system.places_chunks else self._laid_out(system, lay_out_node_types)

    def placing(self, system: System) -> Placing | None:
        """Return the chunks of the jobs, where these are placed on particular nodes; else None."""
        return self._laid_out(system, lay_out_placing) if system.places_chunks else None

    def _laid_out(self, system: System, lay_out: Callable[[System, Workload], Any]) -> Any:  # noqa: ANN401 - what that returns
        owned = tuple(tuple(its.items()) for its in system.owned_nodes)
        bound = tuple((queue.node_types, queue.exclusive) for queue in system.queues)
        kept = tuple(queue.preempted for queue in system.queues) if system.has_tiers else ()
        key = (lay_out, tuple(system.node_types), bound, owned, system.fits_best, kept)
        if key not in self._on_types:
            if len(self._on_types) >= MOST_LAID_OUT:
                self._on_types.clear()
            self._on_types[key] = lay_out(system, self.workload)
        return self._on_types[key]

    @cached_property
    def needs(self) -> Needs:
        """Dependencies of jobs, and changes of quotas, at the begin of the simulation."""
        return lay_out(self.workload, self.base, self.begin)

    @cached_property
    def _lines(self) -> dict[tuple[str, ...], kernel.Alike]:
        return {}

    def lines(self, *columns: str) -> kernel.Alike:
        """Return the lines of jobs that are alike in these columns."""
        if columns not in self._lines:
            self._lines[columns] = _lines(self.alike(*columns))
        return self._lines[columns]

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the jobs, shape (n,), in the order of the workload as given."""
        if self.rows is None:
            return values
        restored = np.empty_like(values)
        restored[self.rows] = values
        return restored

    @cached_property
    def users(self) -> tuple[int, NDArray[np.int64]]:
        """Number of users, and the user of each job, -1 for none: as given, unless these numbers leave large gaps."""
        user = self.workload.user
        users = int(user.max(initial=-1)) + 1
        if users <= len(user):
            return users, user
        present, number = np.unique(user, return_inverse=True)
        return present.size, number - int(present[0] < 0)

    @cached_property
    def present(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the users who have jobs, "" for jobs without a user; and the index of each job's user."""
        present, which = np.unique(self.workload.user, return_inverse=True)
        return tuple(map(self.workload.user_name, present.tolist())), which.astype(np.int64)

    @cached_property
    def qos_classes(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the QOS that have jobs, "" for jobs without a QOS; and the index of each job's QOS."""
        present, which = np.unique(self.workload.qos, return_inverse=True)
        return tuple(map(self.workload.qos_name, present.tolist())), which.astype(np.int64)

    @cached_property
    def queues(self) -> int:
        """Least number of queues that a system must have."""
        return int(self.workload.queue.max(initial=-1)) + 1

    @cached_property
    def per_queue(self) -> NDArray[np.int64]:
        """Number of jobs, most cores of a job, most cores of a job that has a user; shape (3, `queues`)."""
        w = self.workload
        table = np.zeros((3, self.queues), dtype=np.int64)
        table[0] = np.bincount(w.queue, minlength=self.queues)
        np.maximum.at(table[1], w.queue, w.cores)
        np.maximum.at(table[2], w.queue, np.where(w.user >= 0, w.cores, 0))
        return table

    @cached_property
    def by_queue(self) -> NDArray[np.int32]:
        """Jobs sorted by queue, in their order within a queue; shape (n,)."""
        queue = self.workload.queue.astype(np.min_scalar_type(self.queues))  # few bits are sorted in linear time
        return np.argsort(queue, kind="stable").astype(np.int32)


def _lines(line: NDArray[np.int32]) -> kernel.Alike:
    """Return the lines of jobs with equal numbers; `line` has the number of each job, shape (n,)."""
    members = np.argsort(line, kind="stable").astype(np.int32)
    place = np.empty_like(members)
    place[members] = np.arange(line.size, dtype=np.int32)
    end = np.bincount(line).cumsum().astype(np.int32)
    return kernel.Alike(line, members, place, end, np.empty((2, end.size), dtype=np.int32))


def check_started(prepared: Prepared, start: Column) -> None:
    """Raise ValueError unless all jobs have started: the keys of a kernel hold no later instants.

    Raises
    ------
    ValueError
        Names the longest time that so many jobs can be simulated for.
    """
    never = int(np.count_nonzero(start < 0))
    if never:
        seconds = 1 << (62 - prepared.bits)
        raise ValueError(
            f"{never} of {start.size} jobs do not start within {seconds} seconds ({seconds / 31_557_600:.0f} years) of "
            "the first submission, the longest that so many jobs can be simulated: simulate fewer, or check run times"
        )


def refuse_needs(workload: Workload, discipline: str) -> None:
    """Raise ValueError if a workload has dependencies or quotas (rule "disciplines without dependencies")."""
    if workload.has_needs:
        what = (
            "jobs wait for others to end" if workload.after.size else f"of {workload.quotas[0].name} there is a quota"
        )
        raise ValueError(f"{what}, which {discipline} does not plan: simulate Workload.without_needs(), or another one")


_prepared: WeakKeyDictionary[Workload, Prepared] = WeakKeyDictionary()


def prepare(workload: Workload) -> Prepared:
    """Return the prepared workload, which is kept from its first simulation on."""
    found = _prepared.get(workload)
    if found is None:
        rows = None
        ordered = copy(workload)  # shares the columns; the key itself must be able to die
        if len(workload) > 1 and (workload.submit[1:] < workload.submit[:-1]).any():
            rows = np.argsort(workload.submit, kind="stable")
            ordered = workload.take(rows)
        found = _prepared[workload] = Prepared(ordered, rows)
    return found


def prepare_from(workload: Workload, system: System, state: State) -> Prepared:
    """Return the prepared workload for a simulation that begins with a state, by which no job has ended."""
    runs = state.start < state.begin
    running = np.flatnonzero(runs)
    waits = np.flatnonzero(~runs)
    running = running[np.argsort(state.start[running], kind="stable")]
    waits = waits[np.argsort(workload.submit[waits], kind="stable")]
    rows = np.concatenate((running, waits))
    ordered = workload.take(rows)
    return Prepared(ordered, rows, resume(ordered, system, state, running) if len(workload) else None)
