"""Where a simulation begins: the jobs that run at that instant, and the cores out of service then or later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parsim.model.node_types import Amounts, by_name
from parsim.model.schedule import SPANNING, Schedule
from parsim.model.system import LARGEST, System
from parsim.model.workload import Column, Workload

#: A start that a job has not had yet: any at or after the begin of a `State` will do.
UNSTARTED = LARGEST

Cores = Mapping[int, int]  #: by partition, or by node


@dataclass(frozen=True, slots=True)
class Window:
    """Cores that are out of service for a while: a downtime, nodes that failed, a reservation, cores yet to come.

    A scheduler that knows of the window starts no job that would run into it. The window stops no running job.

    Attributes
    ----------
    begin, end : int
        Seconds; the cores are in service again from `end` on.
    cores : int or None
        Number of cores; None is all of the partition, or of the machine. On a divided machine each partition loses them
        in proportion to its size. Nodes of several types are taken whole, so it is None there.
    partition : int or None
        Index into ``System.partition_names``; None is the whole machine.
    nodes : sequence of int
        In place of `cores` and `partition`: whole nodes of ``System.cores_per_node`` cores, counted from 0 through the
        partitions in their order. Nodes of several types are numbered type by type in each.
    known_from : int or None
        Instant from which the scheduler knows of the window; None is from the begin of the simulation.
    known_end : bool
        Whether the scheduler knows the end, too. If not, it treats the cores as gone for good until they are back.
    queue : int or None
        A reservation for a queue: its jobs run on these cores only, and no others do. At the end of its last window,
        jobs that have not started count as submitted then, and run where any job does.
    users : sequence of int
        In place of `queue`, a reservation for users: only their jobs use these cores, and may use all others, too.
    walltime : int or None
        In place of `queue` and `users`, a shortpool: only jobs of at most this walltime, seconds, use these cores, and
        may use all others, too.
    node_types : mapping of str to int
        In place of `cores` where nodes are of several types: number of nodes by type, the last ones of each partition.
    """

    begin: int
    end: int
    cores: int | None = None
    partition: int | None = None
    nodes: Sequence[int] = ()
    known_from: int | None = None
    known_end: bool = True
    queue: int | None = None
    users: Sequence[int] = ()
    walltime: int | None = None
    node_types: Mapping[str, int] | Amounts = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "node_types", by_name(self.node_types))

    @property
    def is_for_some(self) -> bool:
        """Whether the window is a reservation for users or a shortpool, whose jobs may use other cores, too."""
        return bool(self.users) or self.walltime is not None

    def problems(self, system: System) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong with it) for everything that cannot be simulated."""
        if not self.begin < self.end < LARGEST or self.begin <= -LARGEST:
            yield "end", f"{self.end} does not come after its begin {self.begin}, or is beyond 2**62"
        if self.cores is not None and self.cores < 1:
            yield "cores", f"{self.cores} is not a number from 1 up, or None"
        if self.partition is not None and not 0 <= self.partition < len(system.partition_cores):
            yield "partition", f"{self.partition}, of {len(system.partition_cores)}"
        yield from self._node_type_problems(system)
        count = sum(-(-cores // system.cores_per_node) for cores in system.partition_cores)
        if system.node_types:
            count = sum(each.nodes for each in system.node_types)
        wrong = [node for node in self.nodes if not 0 <= node < count]
        if wrong:
            yield "nodes", f"{wrong[0]}, of {count}"
        if self.queue is not None and not 0 <= self.queue < len(system.queues):
            yield "queue", f"{self.queue}, of {len(system.queues)}"
        if self.queue is not None and self.users:
            yield "users", "a reservation is for a queue or for users"
        if any(user < 0 for user in self.users):
            yield "users", f"{min(self.users)} is negative"
        if self.walltime is not None and self.walltime < 1:
            yield "walltime", f"{self.walltime} is not a number from 1 up, or None"
        if self.walltime is not None and (self.users or self.queue is not None):
            yield "walltime", "a window is for short jobs, for a queue or for users"
        if self.is_for_some and system.mode == "multiqueue":
            of, named = ("users", "users") if self.users else ("walltime", "short jobs")
            why = "multiple-queue backfilling, whose classes all plan round one profile; one for a queue is"
            yield of, f"a reservation for {named} is not simulated with {why}"

    def _node_type_problems(self, system: System) -> Iterator[tuple[str, str]]:
        """Rule "nodes of a window"."""
        there = [each.name for each in system.node_types]
        for name, count in dict(self.node_types).items():
            if name not in there:
                yield "node_types", f"{name!r} is none of {', '.join(there) or 'the types of nodes, all are alike'}"
            elif not isinstance(count, int) or count < 1:
                yield "node_types", f"{count!r} nodes of {name} are no whole number from 1 up"
        if there and self.cores is not None:
            yield "cores", "nodes of several types are taken whole: name them, or how many of each type"


@dataclass(frozen=True, eq=False)
class State:
    """The machine at one instant, for `parsim.simulate`.

    Jobs with a start before `begin` run then, if they have not ended. Jobs submitted by then that have no such start
    wait. All others are submitted later. Nothing is decided before `begin`.

    Parameters
    ----------
    begin : int
        Seconds, in the time scale of the workload.
    start : array_like of int, shape (n,)
        When each job of the workload started; `UNSTARTED`, or any instant from `begin` on, for one that had not.
    placement : mapping of int to mapping of int to int
        By row of a running job: its cores by index of the partition. A job that is missing has idle cores of its
        queue's partition, then of the pool, then of the others; jobs are placed in order of start.
    nodes : mapping of int to mapping of int to int
        By row of a running job: its cores by node, where `System.reserve` tells nodes apart; a job that is missing has
        the first idle nodes. Nodes of several types are numbered type by type (rule "named nodes").
    windows : sequence of Window
    """

    begin: int
    start: Column
    placement: Mapping[int, Cores] = field(default_factory=dict)
    nodes: Mapping[int, Cores] = field(default_factory=dict)
    windows: Sequence[Window] = ()

    def __init__(
        self,
        begin: int,
        start: ArrayLike,
        placement: Mapping[int, Cores] | None = None,
        nodes: Mapping[int, Cores] | None = None,
        windows: Sequence[Window] = (),
    ) -> None:
        column = np.array(start, dtype=np.int64)
        column.flags.writeable = False
        for name, value in (
            ("begin", int(begin)),
            ("start", column),
            ("placement", dict(placement or {})),
            ("nodes", dict(nodes or {})),
            ("windows", tuple(windows)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def at(cls, schedule: Schedule, begin: int, windows: Sequence[Window] = ()) -> State:
        """Return the state of a schedule at an instant, before the decisions of that instant.

        Where nodes are told apart this takes as long as a simulation until then.

        Parameters
        ----------
        schedule : Schedule
        begin : int
            Seconds.
        windows : sequence of Window

        Returns
        -------
        State

        Raises
        ------
        ValueError
            A job that has not ended was preempted before: a state does not record its progress.
        """
        stops = schedule.interruptions
        early_stops = stops.job[(stops.begin < begin) & (schedule.end[stops.job] > begin)]
        if early_stops.size:
            raise ValueError(
                f"job {early_stops[0]} has been preempted before {begin}, and a state does not say what it did"
            )
        rows = np.flatnonzero((schedule.start < begin) & (schedule.end > begin)).tolist()
        placement = {}
        for row in rows:
            on = int(schedule.partition[row])
            shares = enumerate(schedule.shares[row].tolist()) if on == SPANNING else [(on, int(schedule.cores[row]))]
            placement[row] = {partition: cores for partition, cores in shares if cores}
        there = {} if schedule.nodes_at is None else schedule.nodes_at(begin)
        nodes = {row: there[row] for row in rows if row in there}
        return cls(begin, schedule.start, placement, nodes, windows)

    def take(self, rows: NDArray[np.intp]) -> State:
        """Return the state for a workload that has only the jobs at these rows, in that order.

        Parameters
        ----------
        rows : ndarray(int), shape (m,)

        Returns
        -------
        State
        """
        to = {row: i for i, row in enumerate(rows.tolist()) if row in self.placement or row in self.nodes}
        placement = {to[row]: cores for row, cores in self.placement.items() if row in to}
        nodes = {to[row]: cores for row, cores in self.nodes.items() if row in to}
        return State(self.begin, self.start[rows], placement, nodes, self.windows)

    @classmethod
    def with_windows_of(cls, system: System, workload: Workload, state: State | None) -> State:
        """Return a state, or an empty machine at the first submission, with a system's windows ("windows of a system").

        Parameters
        ----------
        system : System
        workload : Workload
            Of one job at least.
        state : State or None

        Returns
        -------
        State
        """
        if state is None:
            state = cls(int(workload.submit.min()), np.full(len(workload), UNSTARTED))
        return replace(state, windows=(*state.windows, *system.windows))

    def without_queue_reservations(self) -> State:
        """Return the state with reservations for queues turned into plain windows; those for users stay."""
        windows = [replace(window, queue=None) for window in self.windows]
        return replace(self, windows=windows)

    def problems(self, workload: Workload, system: System) -> Iterator[tuple[str, str]]:
        """Yield (path of the field, what is wrong with it) for everything that cannot be simulated."""
        if self.start.shape != (len(workload),):
            yield "start", f"shape {self.start.shape}, for {len(workload)} jobs"
            return
        early = np.flatnonzero((self.start < workload.submit) & (self.start < self.begin))
        if early.size:
            row = int(early[0])
            yield (
                f"start[{row}]",
                f"{self.start[row]} is before its submit {workload.submit[row]} ({early.size} such jobs)",
            )
        for i, window in enumerate(self.windows):
            for path, message in window.problems(system):
                yield f"windows[{i}].{path}", message
            if system.has_tiers and window.end > self.begin:
                yield f"windows[{i}]", "with queues of different tiers no cores are simulated as out of service"
