"""A state as the replays see it: when they begin, with which jobs, and which cores are out of service.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim.schedule import Interruptions, Schedule
from parsim.state import State, Window
from parsim.system import Mode, System
from parsim.verify.places import partitions_of
from parsim.verify.violation import Violation
from parsim.workload import MAX_DURATION, Column, Workload

FOR_EVER = 2**61


@dataclass(frozen=True, slots=True)
class Outage:
    """A window, by node; nodes that are not told apart are one of a partition."""

    begin: int
    end: int
    known_from: int
    known_end: int
    cores: dict[int, int]
    users: frozenset[int] = frozenset()  #: whose jobs may use them
    walltime: int = 0  #: jobs that ask for no more may use them too

    @property
    def is_for_some(self) -> bool:
        """Whether it is kept for some jobs."""
        return bool(self.users or self.walltime)

    def is_for(self, user: int, walltime: int) -> bool:
        """Rules 33 and 53: whether a job may use these cores."""
        return user in self.users or walltime <= self.walltime


@dataclass(frozen=True)
class Beginning:
    """What a replay begins with; rows are those of its schedule."""

    state: State
    outages: list[Outage]
    running: set[int]
    until: int = FOR_EVER  #: nothing is checked from then on

    @classmethod
    def of(cls, system: System, schedule: Schedule, state: State, until: int = FOR_EVER) -> Beginning:
        """Return the beginning of a replay of a schedule none of whose jobs ended before it."""
        outages = []
        for window in state.windows:
            known_from = state.begin if window.known_from is None else max(state.begin, window.known_from)
            known_end = window.end if window.known_end else FOR_EVER
            taken, users = lost(window, system), frozenset(window.users)
            short = 0 if window.walltime is None else window.walltime
            outages.append(Outage(window.begin, window.end, known_from, known_end, taken, users, short))
        return cls(state, outages, set(np.flatnonzero(schedule.start < state.begin).tolist()), until)

    def known(self, now: int) -> list[Outage]:
        """Rule 30: the windows that are known at an instant."""
        return [outage for outage in self.outages if outage.known_from <= now < outage.end]

    def instants(self) -> set[int]:
        """Rule 31: the instants at which windows become known or end."""
        found = {outage.known_from for outage in self.outages} | {outage.end for outage in self.outages}
        return {instant for instant in found if instant > self.state.begin}


def with_windows(workload: Workload, system: System, state: State | None) -> tuple[System, State | None]:
    """Rule 52: let the state have the windows of the system, and the system none."""
    if not system.windows or not len(workload):
        return system, state
    if state is None:
        never = np.full(len(workload), FOR_EVER)
        found = State(int(min(workload.submit)), never, windows=system.windows)
    else:
        found = replace(state, windows=[*state.windows, *system.windows])
    return replace(system, windows=()), found


def nodes_of(system: System, *, by_node: bool) -> list[tuple[int, int]]:
    """Return partition and cores of each node."""
    if not by_node:
        return list(enumerate(system.partition_cores))
    return [
        (index, min(system.cores_per_node, cores - first))
        for index, cores in enumerate(system.partition_cores)
        for first in range(0, cores, system.cores_per_node)
    ]


def lost(window: Window, system: System) -> dict[int, int]:
    """Rule 32: the cores of each node that a window takes; of several types all of each (rule 81)."""
    if system.node_types:
        return {node: cores for node, (kept, cores) in enumerate(_kept_of_types(window, system)) if not kept}
    real = nodes_of(system, by_node=True)
    found: dict[int, int] = {}
    if window.nodes:
        found = {node: real[node][1] for node in sorted(window.nodes)}
    else:
        for index, cores in _shares(window, system).items():
            left = cores
            for node in range(len(real) - 1, -1, -1):
                if real[node][0] == index and left:
                    found[node] = min(left, real[node][1])
                    left -= found[node]
    if system.reserves_nodes:
        return found
    parts: dict[int, int] = {}
    for node, cores in found.items():
        parts[real[node][0]] = parts.get(real[node][0], 0) + cores
    return parts


def _kept_of_types(window: Window, system: System) -> Iterator[tuple[bool, int]]:
    """Yield whether each node of several types stays in service, and its cores (rule 81)."""
    owned, node = system.owned_nodes, 0
    wanted = dict(window.node_types)
    lost = {
        each.name: _shares_of(
            {p: its.get(each.name, 0) for p, its in enumerate(owned) if window.partition in (None, p)},
            wanted.get(each.name, 0) if wanted else None,
        )
        for each in system.node_types
    }
    for p, its in enumerate(owned):
        for each in system.node_types:
            count = its.get(each.name, 0)
            for k in range(count):
                yield (node not in window.nodes if window.nodes else k < count - lost[each.name].get(p, 0)), each.cores
                node += 1


def _shares(window: Window, system: System) -> dict[int, int]:
    sizes = dict(enumerate(system.partition_cores))
    if window.partition is not None:
        sizes = {window.partition: sizes[window.partition]}
    return _shares_of(sizes, window.cores)


def _shares_of(sizes: dict[int, int], count: int | None) -> dict[int, int]:
    """Return how many of so many cores, or nodes, each part loses; None is all."""
    whole = sum(sizes.values())
    cores = whole if count is None else min(count, whole)
    if not whole:
        return {}
    shares = {index: cores * size // whole for index, size in sizes.items()}
    for index in sorted(sizes, key=lambda index: (-sizes[index], index))[: cores - sum(shares.values())]:
        shares[index] += 1
    return shares


@dataclass(frozen=True)
class Part:
    """Jobs that are simulated apart from the others."""

    rows: Column
    workload: Workload
    system: System
    schedule: Schedule
    beginning: Beginning
    reserved: list[Window]  #: those that make its machine, of a reservation


def misplaced(part: Part, system: System, schedule: Schedule) -> Iterator[Violation]:
    """Yield the jobs of a part that a schedule of all jobs has on other cores than rules 29 and 33 say."""
    names = system.partition_names
    if system.node_types and bool(part.reserved) == system.is_whole:
        return  # rules 79 and 84: a replay knows
    for row, cores_of in _placed(part, system):
        there = {names[index]: cores for index, cores in cores_of.items() if cores}
        if schedule.placement(row) != there:
            message = f"runs on {schedule.placement(row)}, not on {there}"
            yield Violation("placement", row, int(schedule.start[row]), message)


def _placed(part: Part, system: System) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield the row, in the workload of all jobs, of each job whose place the state decides, and its cores."""
    start, cores, state = part.schedule.start, part.workload.cores, part.beginning.state
    by_node = nodes_of(system, by_node=system.reserves_nodes)
    if system.node_types:
        by_node = [
            (p, each.cores) for p, its in enumerate(system.owned_types) for each in its for _ in range(each.nodes)
        ]
    idle = list(system.partition_cores)
    if part.reserved:
        for k in np.flatnonzero(start < part.beginning.until).tolist():
            instant, left, found = max(state.begin, int(start[k])), int(cores[k]), dict.fromkeys(range(len(idle)), 0)
            for window in part.reserved:
                for node, here in lost(window, system).items() if window.begin <= instant < window.end else ():
                    taken = min(here, left)
                    found[by_node[node][0]] += taken
                    left -= taken
            yield int(part.rows[k]), found
        return
    for k in sorted(part.beginning.running, key=lambda k: (start[k], k)):
        own = 0 if system.is_whole else int(part.workload.queue[k])
        order = dict.fromkeys([own, len(idle) - 1, *range(len(idle))], int(cores[k]))
        found, left = dict.fromkeys(range(len(idle)), 0), int(cores[k])
        if system.reserves_nodes and k in state.nodes:
            for node, here in state.nodes[k].items():
                found[by_node[node][0]] += here
        else:
            for index, most in state.placement.get(k, order).items():
                found[index] = min(most, left, idle[index])
                left -= found[index]
        for index, here in found.items():
            idle[index] -= here
        yield int(part.rows[k]), found


def parts(workload: Workload, system: System, schedule: Schedule, state: State) -> Iterator[Part]:
    """Yield the machine of each reservation (rule 33), then the rest."""
    present = (state.start >= state.begin) | (state.start + workload.effective_runtime > state.begin)
    submit = workload.submit.copy()
    for queue in sorted({window.queue for window in state.windows if window.queue is not None}):
        own = [window for window in state.windows if window.queue == queue and window.end > state.begin]
        if not own:
            continue
        if system.node_types:
            part = _reserved_types(workload, system, schedule, state, own, present)
            if part is not None:
                yield part
                last = part.beginning.until
                may = np.zeros(len(workload), dtype=np.bool_)
                may[part.rows] = True
                present &= ~(may & (schedule.start < last))
                late = (workload.queue == queue) & (state.start >= state.begin) & present
                submit[late] = np.maximum(submit[late], last)
            continue
        sizes = {id(window): sum(lost(window, system).values()) for window in own}
        last = max(window.end for window in own)
        edges = sorted({state.begin, *(edge for window in own for edge in (window.begin, window.end))})
        there = [sum(sizes[id(w)] for w in own if w.begin <= edge < w.end) for edge in edges]
        cores = max(there)
        if not cores:
            continue
        may = present & (workload.queue == queue) & (workload.cores <= cores)
        runs = may & (state.start < state.begin)
        if workload.cores[runs].sum() > sum(sizes[id(w)] for w in own if w.begin <= state.begin):
            may &= ~runs
        gaps = [Window(last, last + MAX_DURATION + 1)]
        for k, edge in enumerate(edges[:-1]):
            if there[k] < cores:
                gaps.append(Window(edge, edges[k + 1], cores - there[k]))
        reserve = "cores" if system.reserves_nodes else system.reserve
        mode: Mode = "multiqueue" if system.mode == "multiqueue" else "shared"
        queues = [replace(each, cores=(1, 2**31 - 1)) for each in system.queues]
        alone = replace(system, cores=cores, mode=mode, queues=queues, pool=None, reserve=reserve)
        rows = np.flatnonzero(may)
        on_it = schedule_of(rows, schedule, alone)
        inner = State(state.begin, state.start[rows], windows=gaps)
        yield Part(rows, workload.take(rows), alone, on_it, Beginning.of(alone, on_it, inner, last), own)
        present &= ~(may & (schedule.start < last))
        late = (workload.queue == queue) & (state.start >= state.begin) & present
        submit[late] = np.maximum(submit[late], last)
    rows = np.flatnonzero(present)
    rest = schedule_of(rows, schedule)
    yield Part(
        rows,
        replace(workload, submit=submit).take(rows),
        system,
        rest,
        Beginning.of(system, rest, state.take(rows)),
        [],
    )


def _reserved_types(
    workload: Workload, system: System, schedule: Schedule, state: State, own: list[Window], present: NDArray[np.bool_]
) -> Part | None:
    """Return the machine of the windows of a queue where nodes are of several types (rule 84); None without nodes."""
    name_of = [each.name for its in system.owned_types for each in its for _ in range(each.nodes)]
    edges = sorted({state.begin, *(edge for window in own for edge in (window.begin, window.end))})
    there = [
        Counter(name_of[node] for w in own if w.begin <= edge < w.end for node in lost(w, system)) for edge in edges
    ]
    most = {each.name: max(count[each.name] for count in there) for each in system.node_types}
    types = [replace(each, nodes=most[each.name]) for each in system.node_types if most[each.name]]
    if not types:
        return None
    named = [None if q.node_types is None else [n for n in q.node_types if most[n]] for q in system.queues]
    queues = [replace(q, cores=(1, 2**31 - 1), node_types=n) for q, n in zip(system.queues, named, strict=True)]
    there_is = {name for each in types for name in dict(each.resources)}
    limits = [
        replace(each, max_run_resources={k: n for k, n in dict(each.max_run_resources).items() if k in there_is})
        for each in system.throttles
    ]
    throttles = [each for each in limits if each.limits]
    size = {each.name: each.cores for each in types}
    cores = sum(each.nodes * each.cores for each in types)
    alone = replace(system, cores=cores, mode="shared", pool=None, queues=queues, node_types=types, throttles=throttles)
    has_place = np.array([bool(found) for found in partitions_of(workload, alone)], dtype=np.bool_)
    may = present & (workload.queue == own[0].queue) & has_place
    runs = may & (state.start < state.begin)
    if workload.cores[runs].sum() > sum(size[name] * n for name, n in there[edges.index(state.begin)].items()):
        may &= ~runs
    last = max(window.end for window in own)
    gaps = [Window(last, last + MAX_DURATION + 1)]
    for k, edge in enumerate(edges[:-1]):
        gone = {name: n - there[k][name] for name, n in most.items() if n > there[k][name]}
        gaps += [Window(edge, edges[k + 1], node_types=gone)] if gone else []
    rows = np.flatnonzero(may)
    on_it = schedule_of(rows, schedule, alone)
    inner = State(state.begin, state.start[rows], windows=gaps)
    return Part(rows, workload.take(rows), alone, on_it, Beginning.of(alone, on_it, inner, last), own)


def schedule_of(rows: Column, schedule: Schedule, alone: System | None = None) -> Schedule:
    """Return the jobs at these rows; on a machine that is `alone`, all on its one partition."""
    to = {row: k for k, row in enumerate(rows.tolist())}
    here = np.isin(schedule.interruptions.job, rows)
    stops = schedule.interruptions
    return Schedule(
        schedule.submit[rows],
        schedule.start[rows],
        schedule.end[rows],
        schedule.cores[rows],
        schedule.partition[rows] if alone is None else np.zeros(len(rows), dtype=np.int32),
        {to[row]: shares for row, shares in schedule.shares.items() if row in to} if alone is None else {},
        schedule.partition_names if alone is None else alone.partition_names,
        None if schedule.place is None else schedule.place[rows],
        Interruptions(
            np.array([to[row] for row in stops.job[here].tolist()], dtype=np.int64),
            stops.begin[here],
            stops.end[here],
            stops.loses[here],
            stops.place[here] if stops.place.size else stops.place,
        ),
        node=None if schedule.node is None else schedule.node[rows],
    )
