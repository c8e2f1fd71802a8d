"""Replay of a schedule on nodes of several types, of which there are totals, or where each node counts by itself.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.node_types import Chunk, Request
from parsim.schedule import Schedule
from parsim.system import System
from parsim.verify.beginning import FOR_EVER, Beginning
from parsim.verify.columns import first_excess
from parsim.verify.lists import ListReplay
from parsim.verify.places import Machines, Sums, is_exclusive, meets, places_of, takes_of
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Column, Workload

UNSHARED = 2**31  #: of a node without jobs

Place = tuple[int, Sums]  #: its number, or that of its first node, and what it takes


def check_node_types(workload: Workload, system: System, schedule: Schedule) -> list[Violation]:
    """Check that each job has one of its places, and that no more is taken than there is."""
    chosen = schedule.node if system.places_chunks else schedule.place
    if chosen is None or chosen.shape != (len(workload),):
        return [Violation("job", -1, 0, f"no place for each of {len(workload)} jobs")]
    if system.places_chunks:
        return []  # a replay finds the nodes
    places = places_of(workload, system)
    found = []
    for row, k in enumerate(chosen.tolist()):
        start, on = int(schedule.start[row]), int(schedule.partition[row])
        if not 0 <= k < len(places[row]):
            found.append(Violation("placement", row, start, f"has place {k} of {len(places[row])}"))
        elif places[row][k][0] != on:
            found.append(
                Violation("placement", row, start, f"has place {k}, which is on partition {places[row][k][0]}")
            )
    if found or not len(workload):
        return found
    machines = Machines(system)
    taken = np.zeros((len(workload), *machines.all.shape), dtype=np.int64)
    for row, (of, k) in enumerate(zip(places, chosen.tolist(), strict=True)):
        taken[row, of[k][0]] = of[k][1]
    taken, there = taken.reshape(len(workload), -1), machines.all.reshape(-1)
    rows, which = np.nonzero(taken)
    for at, over in first_excess(which, taken[rows, which], schedule.start[rows], schedule.end[rows], there):
        row, (name, resource) = int(rows[at]), machines.names[which[at] % len(machines.names)]
        message = f"brings {resource} of {name} to {over} in use, of {there[which[at]]}"
        found.append(Violation("capacity", row, int(schedule.start[row]), message))
    return found


@dataclass(slots=True)
class Head:
    """The plan of a list's head job: when it is to begin, and what others may take past that."""

    job: int
    time: int
    left: Sums


class TypedReplay(ListReplay):
    """A replay in which a job may start where all that it takes is left (rules 59 to 61, and 76 to 79).

    What is idle is a row for each partition.
    """

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        number = jobs.schedule.node if system.places_chunks else jobs.schedule.place
        self.chosen = [0 if number is None else int(number[row]) for row in jobs.row]  #: places, or first nodes
        self.on: dict[int, tuple[int, Sums]] = {}  #: expected end, and what they take, of the running jobs
        self.heads: dict[int, Head] = {}  #: of the lists in this pass
        self.at_turn: tuple[int, Sums] | None = None  #: the last job that may start now, and what it takes
        self.misplaced: list[Violation] = []
        self._set_nodes()

    def _set_nodes(self) -> None:
        self.machines = Machines(self.system)
        self.idle = self.machines.all.copy()
        self.places: list[list[Place]] = []  #: of each job
        self.partition_of: list[list[int]] = []  #: of each of these
        of = places_of(self.jobs.workload, self.system)
        for row in self.jobs.row:
            self.partition_of.append([p for p, _ in of[row]])
            self.places.append([(k, self._on(p, taken)) for k, (p, taken) in enumerate(of[row])])

    def _on(self, partition: int, taken: Sums) -> Sums:
        found = np.zeros_like(self.machines.all)
        found[partition] = taken
        return found

    def run(self) -> list[Violation]:
        """Return all violations, in order of time."""
        found = super().run()
        return [*self.misplaced, *found]

    def _resume(self, job: int) -> None:
        super()._resume(job)
        on = self._begun_on(job)
        expected, takes = self._resumed(job, on)
        if self.chosen[job] != expected or self.jobs.placement[job] != ((on, self.jobs.cores[job]),):
            self.misplaced.append(
                self._violation("placement", job, f"runs at place {self.chosen[job]}, not {expected}")
            )
        self._take(job, self.jobs.start[job] + self.jobs.walltime[job], takes)

    def _begun_on(self, job: int) -> int:
        """Rule 79: the partition of a job that runs when the simulation begins."""
        state = None if self.beginning is None else self.beginning.state
        named = {} if state is None else state.placement.get(self.jobs.row[job], {})
        if len(named) == 1 and set(named) & set(self.partition_of[job]):
            return next(iter(named))
        return self.jobs.home[job]

    def _resumed(self, job: int, partition: int) -> Place:
        """Rule 61: the place of a job that runs when the simulation begins."""
        return self._in(job, partition, self.idle) or self.places[job][self.partition_of[job].index(partition)]

    def _take(self, job: int, end: int, takes: Sums) -> None:
        self.on[job] = (end, takes)
        self.idle -= takes
        for head in self.heads.values():
            if end > head.time:
                head.left -= takes

    def _end(self, job: int) -> None:
        super()._end(job)
        end, takes = self.on.pop(job)
        self.idle += takes
        for head in self.heads.values():  # of a job that is preempted
            if end > head.time:
                head.left += takes

    def _begin(self, job: int) -> None:
        super()._begin(job)
        self.heads = {p: head for p, head in self.heads.items() if head.job != job}
        self._take(job, self.now + self.jobs.walltime[job], self._takes(job))

    def _takes(self, job: int) -> Sums:
        """Return what a job takes that begins."""
        return self.places[job][self.chosen[job]][1]

    def _check_pass(self) -> list[Violation]:
        self.heads = {}
        return super()._check_pass()

    def _visit_list(self, index: int) -> None:
        if self.partitions[index].idle or self.tracked or any(self.limited):  # else no job can start
            self._go_over(index, self.lists[index].ordered(self.now))

    def _visit_pool(self) -> None:
        if self.pool >= 0:
            self._go_over(self.pool, self._pool_order())

    def _go_over(self, index: int, ordered: list[int]) -> None:
        jobs = self.jobs
        for at, job in self._turns(index, ordered):
            self._make_room(job, index)
            place, on = self._place(job, index), ((index, jobs.cores[job]),)
            if place is not None:
                if job in self.due and self.chosen[job] != place[0]:
                    raise Discrepancy("placement", job, f"starts at place {self.chosen[job]}, but may at {place[0]}")
                self.at_turn = job, place[1]
                self._must_start_on(job, on, ordered[at:])
            elif job in self.due and jobs.placement[job] == on:
                raise Discrepancy("head job" if index in self.heads else "capacity", job, "may not start now")
            elif index not in self.heads and self.now - jobs.submit[job] >= self.system.reservation_delay:
                head = self._plan(job, index)
                if head is None:
                    continue  # rule 31
                self.head_jobs.add(job)
                self.heads[index] = head
                if not self.system.backfill:
                    break

    def _make_room(self, job: int, index: int) -> None:
        """Preempt for a job at its turn, where queues have tiers."""

    def _lacking(self, job: int) -> str:
        """Name what is not idle for a job at its first place on the partition of its list, empty where all is."""
        partition = self.at_home[job]
        _, place = self.places[job][self.partition_of[job].index(partition)]
        lacking = np.flatnonzero(place[partition] > self.idle[partition])
        names = self.machines.names
        return " and ".join(f"{place[partition][k]} {names[k][1]} of {names[k][0]}" for k in lacking.tolist())

    def _in(self, job: int, partition: int, left: Sums) -> Place | None:
        """Return the first place of a job on a partition of which all is left."""
        fitting = (
            (k, place)
            for on, (k, place) in zip(self.partition_of[job], self.places[job], strict=True)
            if on == partition and (place[partition] <= left[partition]).all()
        )
        return next(fitting, None)

    def _place(self, job: int, partition: int) -> Place | None:
        """Rule 59: the first place of a job on a partition where it may start now."""
        left, head = self.idle, self.heads.get(partition)
        if head is not None and self.now + self.jobs.walltime[job] > head.time:
            left = np.minimum(left, head.left)
        return self._in(job, partition, self._in_service(job, left, self.now))

    def _plan(self, job: int, partition: int) -> Head | None:
        """Rule 60: when the head job is expected to have one of its places, and what is left of all then."""
        for instant in self._ends():
            left = self._idle_at(instant)
            place = self._in(job, partition, self._in_service(job, left, instant))
            if place is not None:
                return Head(job, instant, left - place[1])
        if self._known():
            return None  # rule 31
        raise Discrepancy("head job", job, "has no place though nothing runs")

    def _ends(self) -> list[int]:
        """Return the expected ends of jobs and windows."""
        ends = {end for end, _ in self.on.values()} | {outage.known_end for outage in self._known()}
        return sorted(end for end in ends if self.now < end < FOR_EVER)

    def _idle_at(self, moment: int) -> Sums:
        """Return what is idle then by the expected ends, whatever windows take."""
        left = self.idle.copy()
        for end, takes in self.on.values():
            if end <= moment:
                left += takes
        return left

    def _fits_beside_windows(self, job: int, partition: int, begin: int) -> bool:
        """Whether a job might begin then but for other jobs' plans, by what is idle now."""
        return self._in(job, partition, self._in_service(job, self.idle, begin)) is not None

    def _in_service(self, job: int, left: Sums, begin: int) -> Sums:  # noqa: ARG002 - nodes tell
        """Return what windows leave to a job that begins then."""
        return left


class PlacedReplay(TypedReplay):
    """A replay in which every copy of a chunk is placed on a node (rules 62 to 66, 69 and 70).

    What is left is a row for each node, then one for each partition with the cores that it has. The last column is what
    is left of `UNSHARED`: a job takes one of a node, one that has it alone takes all.
    """

    def _set_nodes(self) -> None:
        system, types, parts = self.system, self.system.node_types, range(len(self.partitions))
        having = [*types, *(chunk for request in self.jobs.workload.requests for chunk in request)]
        self.resources = ["cores", *sorted({name for each in having for name in dict(each.resources)})]
        owned = system.owned_nodes
        self.nodes = [(p, each) for p in parts for each in types for _ in range(owned[p].get(each.name, 0))]
        self.weight = np.array([each.weight for _, each in self.nodes], dtype=np.int64)
        nodes = [[*(each.amount(name) for name in self.resources), UNSHARED] for _, each in self.nodes]
        self.exclusive = np.array([each.exclusive for _, each in self.nodes], dtype=np.bool_)
        whole = [[cores] + [0] * len(self.resources) for cores in system.partition_cores]
        self.idle = np.array([*nodes, *whole], dtype=np.int64)
        self.usable: dict[tuple[int, int, frozenset[str]], NDArray[np.int64]] = {}
        self.partition_of = [[p for p in parts if self._has_place(job, p)] for job in range(len(self.jobs.row))]

    def _has_place(self, job: int, partition: int) -> bool:
        """Whether the nodes of a partition that is its own, or the pool, can hold a job when nothing runs."""
        own = (0,) if self.system.is_whole else (self.jobs.queue[job], self.pool)
        return partition in own and self._put(job, partition, self.idle)[2]

    def _nodes_for(self, partition: int, queue: int, chunk: Chunk) -> NDArray[np.int64]:
        """Return the nodes of a partition with the features of a chunk that a queue may use."""
        key = partition, queue, chunk.features
        if key not in self.usable:
            names = self.system.queues[queue].node_types
            fit = [
                p == partition and meets(each, chunk) and (names is None or each.name in names)
                for p, each in self.nodes
            ]
            self.usable[key] = np.flatnonzero(fit)
        return self.usable[key]

    def _chunks(self, job: int) -> Request:
        """Return the chunks that a job asks for."""
        number = int(self.jobs.workload.request[self.jobs.row[job]])
        return (Chunk(self.jobs.cores[job], 1),) if number < 0 else self.jobs.workload.requests[number]

    def _is_exclusive(self, job: int) -> bool:
        """Whether a job has all its nodes alone, whatever they are."""
        return self.system.queues[self.jobs.queue[job]].exclusive or is_exclusive(self._chunks(job))

    def _alone(self, job: int) -> NDArray[np.bool_]:
        """Return whether a job has each node alone."""
        return self.exclusive | self._is_exclusive(job)

    def _room(self, job: int, partition: int, chunk: Chunk, left: Sums, takes: Sums) -> tuple[NDArray[np.int64], Sums]:
        """Return the nodes that may have a chunk, and how many copies each has room for beside what the job takes."""
        nodes = self._nodes_for(partition, self.jobs.queue[job], chunk)
        each = self._amounts(chunk)
        beside = np.maximum(left - takes, 0)[nodes][:, each > 0]
        fit = (beside // each[each > 0]).min(axis=1)
        if chunk.scattered:
            fit = np.where(takes[nodes].any(axis=1), 0, np.minimum(fit, 1))
        unshared = left[nodes, -1]
        return nodes, np.where(self._alone(job)[nodes], unshared == UNSHARED, unshared > 0) * fit

    def _in_service(self, job: int, left: Sums, begin: int) -> Sums:
        """Rule 83: nothing is left of nodes that windows take while the job would run."""
        jobs, end = self.jobs, begin + self.jobs.walltime[job]
        for outage in self._known():
            overlaps = outage.begin < end and begin < outage.known_end
            if overlaps and not outage.is_for(jobs.user[job], jobs.walltime[job]):
                left = left.copy()
                left[list(outage.cores)] = 0
        return left

    def _amounts(self, chunk: Chunk) -> Sums:
        return np.array([*(chunk.amount(name) for name in self.resources), 0], dtype=np.int64)

    def _put(
        self, job: int, partition: int, left: Sums, named: Mapping[int, int] | None = None
    ) -> tuple[int, Sums, bool]:
        """Rule 62: the first node of a job, what it takes of each, and whether every copy finds one.

        `named`, rule 72: these nodes alone, each up to so many cores.
        """
        most = np.array([named.get(node, 0) for node in range(len(left))], dtype=np.int64) if named else None
        choose = self._first_with_room if named else self._choose
        takes, first, complete = np.zeros_like(left), -1, True
        for chunk in self._chunks(job):
            nodes, fit = self._room(job, partition, chunk, left, takes)
            if most is not None:
                fit = np.minimum(fit, (most - takes[:, 0])[nodes] // chunk.cores) if chunk.cores else fit
                fit = np.where(np.isin(nodes, list(named or {})), fit, 0)
            more = {*dict(chunk.resources)}
            by_copies = bool(more - {"memory"}) or (not chunk.scattered and (chunk.cores == 1 or "memory" in more))
            size = fit if by_copies else np.maximum(left - takes, 0)[nodes, 0]
            if more - {"memory"} and chunk.count == 1:
                size = np.minimum(size, 1)
            weight = self._weight(job, chunk, np.maximum(left - takes, 0))
            chosen = choose(nodes, fit, size, weight, chunk.count)
            for at, copies in chosen:
                takes[nodes[at]] += copies * self._amounts(chunk)
            if first < 0 and chosen:
                first = int(nodes[chosen[0][0]])
            complete &= sum(copies for _, copies in chosen) == chunk.count
        count = len(self.nodes)
        takes[:count, -1] = takes[:count].any(axis=1) * np.where(self._alone(job), UNSHARED, 1)
        takes[count + partition, 0] = self.jobs.cores[job]
        return first, takes, complete and bool(takes[count + partition, 0] <= left[count + partition, 0])

    def _weight(self, job: int, chunk: Chunk, left: Sums) -> Column:
        """Rule 85: what nodes weigh for copies of a chunk."""
        most = chunk.amount("gpus") * (1 if chunk.scattered else chunk.count)
        if not most:
            return 256 * self.weight
        gpus = left[: len(self.nodes), self.resources.index("gpus")]
        return 256 * self.weight - np.minimum(gpus, 255 if self._is_exclusive(job) else min(most, 255))

    def _choose(self, nodes: Column, room: Column, size: Column, weight: Column, count: int) -> list[tuple[int, int]]:
        """Return which of the nodes have how many of the copies that they have room for, in turn."""
        return self._first_with_room(nodes, room, size, weight, count)

    @staticmethod
    def _first_with_room(
        nodes: Column, room: Column, size: Column, weight: Column, count: int
    ) -> list[tuple[int, int]]:
        """Rule 62: each copy goes to the first node with room."""
        del nodes, size, weight
        copies = np.minimum(room, np.maximum(count - (np.cumsum(room) - room), 0))
        return [(at, int(copies[at])) for at in np.flatnonzero(copies).tolist()]

    def _in(self, job: int, partition: int, left: Sums) -> Place | None:
        first, takes, complete = self._put(job, partition, left)
        return (first, takes) if complete else None

    def _resumed(self, job: int, partition: int) -> Place:
        """Rules 66 and 72: what a job takes that runs when the simulation begins."""
        return self._put(job, partition, self.idle, self._named(job))[:2]

    def _named(self, job: int) -> dict[int, int]:
        """Return the cores on each node that the state names for a job."""
        return {} if self.beginning is None else dict(self.beginning.state.nodes.get(int(self.jobs.row[job]), {}))

    def _takes(self, job: int) -> Sums:
        """Return what a job takes that begins: at its turn, else like one that runs already."""
        if self.at_turn is not None and self.at_turn[0] == job:
            return self.at_turn[1]
        return self._resumed(job, self.jobs.placement[job][0][0])[1]

    def _lacking(self, job: int) -> str:
        """Name what no node has idle, or not as many nodes as a job needs; empty where all copies have a node."""
        for chunk in self._chunks(job):
            room = int(self._room(job, self.at_home[job], chunk, self.idle, np.zeros_like(self.idle))[1].sum())
            if room < chunk.count:
                words = " with ".join(f"{n} {name}" for name, n in takes_of(chunk).items())
                wanted = words + "".join(f" on {feature}" for feature in sorted(chunk.features))
                return f"{chunk.count} times {wanted} on one node each, of which {room} are idle"
        return ""
