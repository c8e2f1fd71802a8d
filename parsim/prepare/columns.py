"""What the kernels need of a workload, whatever the system: computed once, and kept as long as the workload lives.

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

MOST_LAID_OUT = 64  #: machines of nodes of several types for which it is kept what jobs may take

MOST_KEPT = 2**22  #: jobs whose table for the general event loop is kept for the next system: more take much memory
MOST_JOBS = 2**28  #: of a simulation: so the keys of their instants have 34 bits, 544 years, for the seconds


@dataclass
class Depth:
    """Whether a queue is taken for deep, so that its lines of jobs alike are simulated at once.

    A loop that looks at every waiting job gives up where they are many. It is left out the next time then, twice if it
    gives up again, and so on.
    """

    _left_out: int = 0
    _next: int = 1

    def expected(self) -> bool:
        """Return whether it is left out this time."""
        self._left_out -= 1
        return self._left_out >= 0

    def found(self, *, deep: bool) -> bool:
        """Note, and return, whether the queue is deep."""
        self._left_out, self._next = (self._next, 2 * self._next) if deep else (0, 1)
        return deep


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the kernels need of a workload, whatever the system.

    Attributes
    ----------
    workload : Workload
        Ascending by submit.
    rows : ndarray(int64), shape (n,), or None
        Where each job stood before, None if in the same place.
    begun : Begun or None
        How the simulation begins, if not with the first submission; the jobs that run then come first.
    until : int
        Instant, counted from `base`, from which on nothing is decided.
    """

    workload: Workload
    rows: NDArray[np.int64] | None
    begun: Begun | None = None
    until: int = int(kernel.NEVER)

    @cached_property
    def base(self) -> int:
        """Instant from which the kernels count."""
        submit = self.workload.submit
        return int(submit[0] if self.begun is None else submit.min())

    @cached_property
    def depths(self) -> defaultdict[Hashable, Depth]:
        """Whether queues are taken for deep, by what `parsim.simulate` and `parsim.metrics.tabulate` tell apart."""
        return defaultdict(Depth)

    @cached_property
    def one_list(self) -> Prepared:
        """The jobs as if they were of one queue, and needed nothing but cores."""
        return Prepared(replace(self.workload.without_needs(), queue=np.zeros_like(self.workload.queue)), None)

    @cached_property
    def first(self) -> int:
        """How many jobs run when the simulation begins."""
        return 0 if self.begun is None else self.begun.start.size

    @property
    def begin(self) -> int:
        """First instant at which anything is decided, counted from `base`."""
        return 0 if self.begun is None else self.begun.begin

    @property
    def has_windows(self) -> bool:
        """Whether cores are out of service for a while."""
        return self.begun is not None and self.begun.windows.size > 0

    def unstarted(self) -> NDArray[np.int64]:
        """Return the column that a kernel fills with starts: -1, but for the jobs that run already."""
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
        """Low bits of a key that hold a job; the high ones hold an instant."""
        n = len(self.workload)
        if n > MOST_JOBS:
            raise ValueError(f"{n} jobs are more than the {MOST_JOBS} of one simulation: simulate a part of them")
        return max(1, (n - 1).bit_length())

    @cached_property
    def jobs(self) -> Table:
        """The jobs for the kernels of one list, shape (n,), `JOB`."""
        return self._table(kernel.JOB)

    def queued_jobs(self) -> Table:
        """Return the jobs for the general event loop, shape (n,), `QUEUED_JOB` without the homes, to be written to."""
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
        """Where each job stands in the workload as it was given; shape (n,)."""
        return np.arange(len(self.workload), dtype=np.int64) if self.rows is None else self.rows

    @cached_property
    def walltimes(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The longest walltime of each class of about as many jobs, ascending, and the class of each job."""
        walltime = np.sort(self.workload.walltime)
        longest = walltime[(np.arange(1, CLASSES + 1) * len(walltime) - 1) // CLASSES].astype(np.int32)
        return longest, np.searchsorted(longest, self.workload.walltime).astype(np.uint8)

    @cached_property
    def longest_wait(self) -> int:
        """Seconds; no job waits longer, whatever the system."""
        last = int(self.workload.submit[-1]) - self.base
        if self.begun is not None:
            last = max(last, self.begin, int(self.begun.windows["end"].max(initial=0)))
        return min(last + int(self.runtime.sum()) + MAX_DURATION, 1 << (62 - self.bits))

    @cached_property
    def single(self) -> NDArray[np.int32]:
        """A number for each job, as if none were like another."""
        return np.arange(len(self.workload), dtype=np.int32)

    @cached_property
    def alike(self) -> NDArray[np.int32]:
        """A number for the jobs of each size, walltime, queue and user."""
        return self._alike(self.workload.queue + self.queues * (self.users[1] + 1))

    @cached_property
    def alike_but_for_users(self) -> NDArray[np.int32]:
        """A number for the jobs of each size, walltime and queue."""
        return self._alike(self.workload.queue.copy())

    @cached_property
    def kinds(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first job of each number of `alike_but_for_users`, ascending, and these numbers."""
        kind = self.alike_but_for_users
        first = np.empty(kind.max(initial=-1) + 1, dtype=np.int32)
        first[kind[::-1]] = self.single[::-1]
        return first, kind

    @cached_property
    def alike_in_qos(self) -> NDArray[np.int32]:
        """A number for the jobs of each size, walltime, queue, user and QOS."""
        queue_and_user = self.workload.queue + self.queues * (self.users[1] + 1)
        return self._alike(queue_and_user + self.queues * (self.users[0] + 2) * self.classes[1])

    @cached_property
    def alike_in_estimate(self) -> NDArray[np.int32]:
        """A number for the jobs of each size, walltime, queue, user, QOS and estimate."""
        estimates = np.unique(self.workload.estimate, return_inverse=True)[1]
        of = np.empty(len(self.workload), dtype=np.int32)
        find_alike(self.jobs, self.alike_in_qos + len(self.workload) * estimates, of)
        return of

    @cached_property
    def alike_in_size(self) -> NDArray[np.int32]:
        """A number for the jobs of each size and walltime."""
        return self._alike(np.zeros(len(self.workload), dtype=np.int64))

    def _alike(self, other: Column) -> NDArray[np.int32]:
        of = np.empty(len(self.workload), dtype=np.int32)
        w = self.workload
        if w.requests:
            several = np.array([len(request) > 1 for request in w.requests])[w.request] & (w.request >= 0)
            single = len(w.requests) + np.arange(len(w))  # where less is idle one may start that might not before
            request = np.where(several, single, w.request)
            other = other * (1 + len(w.requests) + len(w)) + 1 + request
        find_alike(self.jobs, other, of)
        return of

    @cached_property
    def _gates(self) -> dict[Key, Layout]:
        return {}

    def gates(self, system: System) -> Layout:
        """Return the gates of a system for these jobs: laid out once, whatever the limits of its queues."""
        key = key_of(system)
        if key not in self._gates:
            of = self.workload, self.queues, self.users, self.base + self.begin
            self._gates[key] = lay_out_gates(key, *of)
        return self._gates[key]

    @cached_property
    def _on_types(self) -> dict[object, Any]:
        return {}

    def node_types(self, system: System) -> NodeTypes | None:
        """Return what the jobs may take of nodes of several types, where their totals count; else None."""
        return None if not system.node_types or system.places_chunks else self._laid_out(system, lay_out_node_types)

    def placing(self, system: System) -> Placing | None:
        """Return the chunks that the jobs ask for, where they are placed on nodes; else None."""
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

    @property
    def needs(self) -> Needs | None:
        """What the jobs need beside cores when the simulation begins, None for nothing."""
        return self.laid_needs if self.workload.has_needs else None

    @cached_property
    def laid_needs(self) -> Needs:
        """The same, of no job where they need nothing."""
        return lay_out(self.workload, self.base, self.begin)

    @cached_property
    def _lines(self) -> dict[str, kernel.Alike]:
        return {}

    def lines(self, alike: str) -> kernel.Alike:
        """Return the lines of jobs that have the same number by the attribute of this name."""
        if alike not in self._lines:
            self._lines[alike] = _lines(getattr(self, alike))
        return self._lines[alike]

    def restore(self, values: NDArray[Any]) -> NDArray[Any]:
        """Bring values of the jobs, ascending by submit, back into the order of the workload given."""
        if self.rows is None:
            return values
        restored = np.empty_like(values)
        restored[self.rows] = values
        return restored

    @cached_property
    def users(self) -> tuple[int, NDArray[np.int64]]:
        """How many users to keep account of, and their numbers: as given, unless these leave large gaps."""
        user = self.workload.user
        users = int(user.max(initial=-1)) + 1
        if users <= len(user):
            return users, user
        present, number = np.unique(user, return_inverse=True)
        return present.size, number - int(present[0] < 0)

    @cached_property
    def present(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the users who have jobs, empty for none, and which of them each job is of."""
        present, which = np.unique(self.workload.user, return_inverse=True)
        return tuple(map(self.workload.user_name, present.tolist())), which.astype(np.int64)

    @cached_property
    def classes(self) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the QOS that have jobs, empty for none, and which of them each job is of."""
        present, which = np.unique(self.workload.qos, return_inverse=True)
        return tuple(map(self.workload.qos_name, present.tolist())), which.astype(np.int64)

    @cached_property
    def queues(self) -> int:
        """How many queues a system must have at least."""
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
        """Jobs grouped by queue, in order within it."""
        queue = self.workload.queue.astype(np.min_scalar_type(self.queues))  # few bits are sorted in linear time
        return np.argsort(queue, kind="stable").astype(np.int32)


def _lines(line: NDArray[np.int32]) -> kernel.Alike:
    """Lay out the lines of jobs whose numbers these are; shape (n,)."""
    members = np.argsort(line, kind="stable").astype(np.int32)
    place = np.empty_like(members)
    place[members] = np.arange(line.size, dtype=np.int32)
    end = np.bincount(line).cumsum().astype(np.int32)
    return kernel.Alike(line, members, place, end, np.empty((2, end.size), dtype=np.int32))


def check_started(prepared: Prepared, start: Column) -> None:
    """Refuse a simulation that left the instants which the keys of its kernel can hold.

    Raises
    ------
    ValueError
        Not all jobs have started.
    """
    never = int(np.count_nonzero(start < 0))
    if never:
        seconds = 1 << (62 - prepared.bits)
        raise ValueError(
            f"{never} of {start.size} jobs do not start within {seconds} seconds ({seconds / 31_557_600:.0f} years) of "
            "the first submission, the longest that so many jobs can be simulated: simulate fewer, or check run times"
        )


def refuse_needs(workload: Workload, discipline: str) -> None:
    """Refuse jobs that need more than cores where only cores count (rule "disciplines without dependencies")."""
    if workload.has_needs:
        what = (
            "jobs wait for others to end" if workload.after.size else f"of {workload.quotas[0].name} there is a quota"
        )
        raise ValueError(f"{what}, which {discipline} does not plan: simulate Workload.without_needs(), or another one")


_prepared: WeakKeyDictionary[Workload, Prepared] = WeakKeyDictionary()


def prepare(workload: Workload) -> Prepared:
    """Return what the kernels need of `workload`, computed at its first simulation."""
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
    """Return what the kernels need of a workload, of which no job has ended, where they begin with a state."""
    runs = state.start < state.begin
    running = np.flatnonzero(runs)
    waits = np.flatnonzero(~runs)
    running = running[np.argsort(state.start[running], kind="stable")]
    waits = waits[np.argsort(workload.submit[waits], kind="stable")]
    rows = np.concatenate((running, waits))
    ordered = workload.take(rows)
    return Prepared(ordered, rows, resume(ordered, system, state, running) if len(workload) else None)
