"""Replay of a schedule on nodes of several types, of which there are totals, or where each node counts by itself.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from parsim.node_types import Chunk, NodeType, Request
from parsim.schedule import Schedule
from parsim.system import System
from parsim.verify.beginning import Beginning
from parsim.verify.columns import first_excess
from parsim.verify.lists import ListReplay
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy, Violation
from parsim.workload import Workload

UNSHARED = 2**31  #: of a node without jobs

Sums = NDArray[np.int64]  #: of each resource of each type, or node
Place = tuple[int, Sums]  #: its number, or that of its first node, and what it takes


class Machine:
    """The nodes of a system, and what jobs may take of them (rule 58)."""

    def __init__(self, system: System) -> None:
        self.types = system.node_types
        allowed = [queue.node_types for queue in system.queues]
        self.allowed = [[names is None or each.name in names for each in self.types] for names in allowed]
        named = {name for each in self.types for name in dict(each.resources)}
        self.of = {
            (each.name, name): at
            for at, (each, name) in enumerate((each, name) for each in self.types for name in ("cores", *sorted(named)))
        }
        self.all = self._sums((each, each.nodes, _node(each)) for each in self.types)

    def _sums(self, parts: Iterator[tuple[NodeType, int, dict[str, int]]]) -> Sums:
        found = np.zeros(len(self.of), dtype=np.int64)
        for each, count, amounts in parts:
            for name, amount in amounts.items():
                found[self.of[each.name, name]] += count * amount
        return found

    def places(self, queue: int, request: Request | None, cores: int) -> list[Sums]:
        """Return what a job may take, in the order in which it is tried."""
        types = [each for each, may in zip(self.types, self.allowed[queue], strict=True) if may]
        alone = _is_exclusive(request)
        if request is None or request == (Chunk(cores, 1, exclusive=alone),):
            wide = [each for each in types if each.nodes * each.cores >= cores]
            if wide:
                return [self._sums(iter([_of_cores(each, cores, alone=alone)])) for each in wide]
            parts, left = [], cores
            for each in types:
                part = min(left, each.nodes * each.cores)
                parts.append(_of_cores(each, part, alone=alone))
                left -= part
            return [] if left else [self._sums(iter(parts))]
        found = []
        for each in types:
            if alone or each.exclusive or any(chunk.scattered for chunk in request):
                nodes = _nodes_of_all(each, request)
                if nodes > each.nodes:
                    continue
                if alone or each.exclusive:
                    found.append(self._sums(iter([(each, nodes, _node(each))])))
                    continue
            if all(_room(each, chunk) >= chunk.count for chunk in request):
                taken = self._sums((each, chunk.count, _takes(chunk)) for chunk in request)
                found += [taken] if (taken <= self.all).all() else []
        if found:
            return found
        taken = np.zeros_like(self.all)
        for chunk in request:
            beside = [
                taken + self._sums(iter([_of_chunk(each, chunk, whole=alone or each.exclusive)]))
                for each in types
                if _room(each, chunk) >= chunk.count
            ]
            fitting = [sums for sums in beside if (sums <= self.all).all()]
            if not fitting:
                return []
            taken = fitting[0]
        return [taken]


def _node(each: NodeType) -> dict[str, int]:
    return {"cores": each.cores, **dict(each.resources)}


def _is_exclusive(request: Request | None) -> bool:
    return any(chunk.exclusive for chunk in request or ())


def _takes(chunk: Chunk) -> dict[str, int]:
    return {name: amount for name, amount in (("cores", chunk.cores), *dict(chunk.resources).items()) if amount}


def _on_node(left: dict[str, int], chunk: Chunk) -> int:
    """Return how many such chunks fit where so much is left of a node."""
    copies = min(left.get(name, 0) // amount for name, amount in _takes(chunk).items())
    return min(copies, 1) if chunk.scattered else copies


def _room(each: NodeType, chunk: Chunk) -> int:
    """Return how many such chunks fit on idle nodes of a type."""
    return 0 if chunk.features - each.features else each.nodes * _on_node(_node(each), chunk)


def _of_cores(each: NodeType, cores: int, *, alone: bool) -> tuple[NodeType, int, dict[str, int]]:
    """Return what a job of cores alone takes of a type: times so much."""
    return (each, -(-cores // each.cores), _node(each)) if alone or each.exclusive else (each, cores, {"cores": 1})


def _of_chunk(each: NodeType, chunk: Chunk, *, whole: bool) -> tuple[NodeType, int, dict[str, int]]:
    """Return what chunks take of a type that has room for them: times so much, of nodes that are taken whole."""
    if whole:
        return each, -(-chunk.count // _on_node(_node(each), chunk)), _node(each)
    return each, chunk.count, _takes(chunk)


def _nodes_of_all(each: NodeType, request: Request) -> int:
    """Return how many idle nodes of a type a job has, each chunk on the first with room; too many if it has none."""
    left: list[tuple[dict[str, int], set[int]]] = []  # of each node in turn, and which chunks of the job it has
    for k, chunk in enumerate(request):
        if _room(each, chunk) < chunk.count:
            return each.nodes + 1
        need, at = chunk.count, 0
        while need:
            if at == len(left):
                left.append((_node(each), set()))
            node, has = left[at]
            copies = 0 if chunk.scattered and has else min(need, _on_node(node, chunk))
            if copies:
                has.add(k)
                for name, amount in _takes(chunk).items():
                    node[name] -= copies * amount
            need, at = need - copies, at + 1
    return len(left)


def places_of(workload: Workload, system: System) -> list[list[Sums]]:
    """Return what each job may take of the nodes, by row."""
    machine, known = Machine(system), dict[tuple[int, int], list[Sums]]()
    found = []
    for queue, number, cores in zip(
        workload.queue.tolist(), workload.request.tolist(), workload.cores.tolist(), strict=True
    ):
        key = queue, number if number >= 0 else -cores
        if key not in known:
            request = workload.requests[number] if number >= 0 else None
            if system.queues[queue].exclusive:
                chunks = request or (Chunk(cores, 1),)
                request = tuple(replace(chunk, exclusive=True) for chunk in chunks)
            known[key] = machine.places(queue, request, cores)
        found.append(known[key])
    return found


def check_node_types(workload: Workload, system: System, schedule: Schedule) -> list[Violation]:
    """Check that each job has one of its places, and that no more is taken than there is."""
    chosen = schedule.node if system.places_chunks else schedule.place
    if chosen is None or chosen.shape != (len(workload),):
        return [Violation("job", -1, 0, f"no place for each of {len(workload)} jobs")]
    if system.places_chunks:
        return []  # a replay finds the nodes
    places = places_of(workload, system)
    found = [
        Violation("placement", row, int(schedule.start[row]), f"has place {k} of {len(places[row])}")
        for row, k in enumerate(chosen.tolist())
        if not 0 <= k < len(places[row])
    ]
    if found or not len(workload):
        return found
    machine = Machine(system)
    taken = np.stack([of[k] for of, k in zip(places, chosen.tolist(), strict=True)])
    rows, which = np.nonzero(taken)
    for at, over in first_excess(which, taken[rows, which], schedule.start[rows], schedule.end[rows], machine.all):
        row, (name, resource) = int(rows[at]), list(machine.of)[which[at]]
        message = f"brings {resource} of {name} to {over} in use, of {machine.all[which[at]]}"
        found.append(Violation("capacity", row, int(schedule.start[row]), message))
    return found


class TypedReplay(ListReplay):
    """A replay in which a job may start where all that it takes is left (rules 59 to 61)."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        number = jobs.schedule.node if system.places_chunks else jobs.schedule.place
        self.chosen = [0 if number is None else int(number[row]) for row in jobs.row]  #: places, or first nodes
        self.on: dict[int, tuple[int, Sums]] = {}  #: expected end and place of the running jobs
        self.head: tuple[int, Sums] | None = None  #: when the head job is to begin, and what others may take past that
        self.head_job = -1
        self.at_turn: tuple[int, Sums] | None = None  #: the last job that may start now, and what it takes
        self.misplaced: list[Violation] = []
        self._set_nodes()

    def _set_nodes(self) -> None:
        of = places_of(self.jobs.workload, self.system)
        self.places = [of[row] for row in self.jobs.row]
        self.machine = Machine(self.system)
        self.idle = self.machine.all.copy()

    def run(self) -> list[Violation]:
        """Return all violations, in order of time."""
        found = super().run()
        return [*self.misplaced, *found]

    def _resume(self, job: int) -> None:
        super()._resume(job)
        expected, takes = self._resumed(job)
        if self.chosen[job] != expected:
            self.misplaced.append(
                self._violation("placement", job, f"runs at place {self.chosen[job]}, not {expected}")
            )
        self._take(job, self.jobs.start[job] + self.jobs.walltime[job], takes)

    def _resumed(self, job: int) -> Place:
        """Rule 61: the place of a job that runs when the simulation begins."""
        return self._in(job, self.idle) or (0, self.places[job][0])

    def _take(self, job: int, end: int, takes: Sums) -> None:
        self.on[job] = (end, takes)
        self.idle -= takes
        if self.head is not None and end > self.head[0]:
            self.head[1][:] -= takes

    def _end(self, job: int) -> None:
        super()._end(job)
        self.idle += self.on.pop(job)[1]

    def _begin(self, job: int) -> None:
        super()._begin(job)
        self._take(job, self.now + self.jobs.walltime[job], self._takes(job))

    def _takes(self, job: int) -> Sums:
        """Return what a job takes that begins."""
        return self.places[job][self.chosen[job]]

    def _visit_list(self, index: int) -> None:
        jobs, partition, self.head = self.jobs, self.partitions[index], None
        if not (partition.idle or self.tracked):
            return  # no job can start
        ordered = self.lists[index].ordered(self.now)
        for at, job in self._turns(index, ordered):
            place = self._place(job)
            if place is not None:
                if job in self.due and self.chosen[job] != place[0]:
                    raise Discrepancy("placement", job, f"starts at place {self.chosen[job]}, but may at {place[0]}")
                self.at_turn = job, place[1]
                self._must_start_on(job, ((index, jobs.cores[job]),), ordered[at:])
            elif job in self.due:
                raise Discrepancy("head job" if self.head else "capacity", job, "may not start now")
            elif self.head is None and self.now - jobs.submit[job] >= self.system.reservation_delay:
                self.head_jobs.add(job)
                self.head_job, self.head = job, self._plan(job)
                if not self.system.backfill:
                    break

    def _lacking(self, job: int) -> str:
        """Name what is not idle for a job at its first place, empty where all is."""
        lacking = np.flatnonzero(self.places[job][0] > self.idle)
        names = list(self.machine.of)
        return " and ".join(f"{self.places[job][0][k]} {names[k][1]} of {names[k][0]}" for k in lacking.tolist())

    def _in(self, job: int, left: Sums) -> Place | None:
        """Return the first place of a job of which all is left."""
        return next(((k, place) for k, place in enumerate(self.places[job]) if (place <= left).all()), None)

    def _place(self, job: int) -> Place | None:
        """Rule 59: the first place of a job where it may start now."""
        left = self.idle
        if self.head is not None and self.now + self.jobs.walltime[job] > self.head[0]:
            left = np.minimum(left, self.head[1])
        return self._in(job, left)

    def _plan(self, job: int) -> tuple[int, Sums]:
        """Rule 60: when the head job is expected to have one of its places, and what is left of all then."""
        left, by_end = self.idle.copy(), sorted((end, other) for other, (end, _) in self.on.items())
        for at, (end, other) in enumerate(by_end):
            left += self.on[other][1]
            if at + 1 < len(by_end) and by_end[at + 1][0] == end:
                continue
            place = self._in(job, left)
            if place is not None:
                return end, left - place[1]
        raise Discrepancy("head job", job, "has no place though nothing runs")


class PlacedReplay(TypedReplay):
    """A replay in which every copy of a chunk is placed on a node (rules 62 to 66, 69 and 70).

    What is left is a row for each node, and in a last one, at the resource `cores`, what the whole machine has. The
    last column is what is left of `UNSHARED`: a job takes one of a node, one that has it alone takes all.
    """

    def _set_nodes(self) -> None:
        system, types = self.system, self.system.node_types
        having = [*types, *(chunk for request in self.jobs.workload.requests for chunk in request)]
        self.resources = ["cores", *sorted({name for each in having for name in dict(each.resources)})]
        nodes = [
            [*(each.amount(name) for name in self.resources), UNSHARED] for each in types for _ in range(each.nodes)
        ]
        self.type_of = [each for each in types for _ in range(each.nodes)]
        self.exclusive = np.array([each.exclusive for each in self.type_of], dtype=np.bool_)
        whole = [system.cores] + [0] * len(self.resources)
        self.idle = np.array([*nodes, whole], dtype=np.int64)
        self.usable: dict[tuple[int, frozenset[str]], NDArray[np.int64]] = {}

    def _nodes_for(self, queue: int, features: frozenset[str]) -> NDArray[np.int64]:
        """Return the nodes with these features that a queue may use."""
        key = queue, features
        if key not in self.usable:
            names = self.system.queues[queue].node_types
            fit = [features <= each.features and (names is None or each.name in names) for each in self.type_of]
            self.usable[key] = np.flatnonzero(fit)
        return self.usable[key]

    def _chunks(self, job: int) -> Request:
        """Return the chunks that a job asks for."""
        number = int(self.jobs.workload.request[self.jobs.row[job]])
        return (Chunk(self.jobs.cores[job], 1),) if number < 0 else self.jobs.workload.requests[number]

    def _alone(self, job: int) -> NDArray[np.bool_]:
        """Return whether a job has each node alone."""
        queue = self.system.queues[self.jobs.queue[job]]
        return self.exclusive | (queue.exclusive or _is_exclusive(self._chunks(job)))

    def _room(self, job: int, chunk: Chunk, left: Sums, takes: Sums) -> tuple[NDArray[np.int64], Sums]:
        """Return the nodes that may have a chunk, and how many copies each has room for beside what the job takes."""
        nodes = self._nodes_for(self.jobs.queue[job], chunk.features)
        each = self._amounts(chunk)
        beside = np.maximum(left - takes, 0)[nodes][:, each > 0]
        fit = (beside // each[each > 0]).min(axis=1)
        if chunk.scattered:
            fit = np.where(takes[nodes].any(axis=1), 0, np.minimum(fit, 1))
        unshared = left[nodes, -1]
        return nodes, np.where(self._alone(job)[nodes], unshared == UNSHARED, unshared > 0) * fit

    def _amounts(self, chunk: Chunk) -> Sums:
        return np.array([*(chunk.amount(name) for name in self.resources), 0], dtype=np.int64)

    def _put(self, job: int, left: Sums) -> tuple[int, Sums, bool]:
        """Rule 62: the first node of a job, what it takes of each, and whether every copy finds one."""
        takes, first, complete = np.zeros_like(left), -1, True
        for chunk in self._chunks(job):
            nodes, fit = self._room(job, chunk, left, takes)
            fit = np.minimum(fit, np.maximum(chunk.count - (np.cumsum(fit) - fit), 0))
            takes[nodes] += fit[:, None] * self._amounts(chunk)
            if first < 0 and fit.any():
                first = int(nodes[np.flatnonzero(fit)[0]])
            complete &= int(fit.sum()) == chunk.count
        takes[:-1, -1] = takes[:-1].any(axis=1) * np.where(self._alone(job), UNSHARED, 1)
        takes[-1, 0] = self.jobs.cores[job]
        return first, takes, complete and bool(takes[-1, 0] <= left[-1, 0])

    def _in(self, job: int, left: Sums) -> Place | None:
        first, takes, complete = self._put(job, left)
        return (first, takes) if complete else None

    def _resumed(self, job: int) -> Place:
        """Rule 66: what a job takes that runs when the simulation begins."""
        return self._put(job, self.idle)[:2]

    def _takes(self, job: int) -> Sums:
        """Return what a job takes that begins: at its turn, else like one that runs already."""
        if self.at_turn is not None and self.at_turn[0] == job:
            return self.at_turn[1]
        return self._resumed(job)[1]

    def _lacking(self, job: int) -> str:
        """Name what no node has idle, or not as many nodes as a job needs; empty where all copies have a node."""
        for chunk in self._chunks(job):
            room = int(self._room(job, chunk, self.idle, np.zeros_like(self.idle))[1].sum())
            if room < chunk.count:
                words = " with ".join(f"{n} {name}" for name, n in _takes(chunk).items())
                wanted = words + "".join(f" on {feature}" for feature in sorted(chunk.features))
                return f"{chunk.count} times {wanted} on one node each, of which {room} are idle"
        return ""
