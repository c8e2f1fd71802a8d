"""Reservations for queues: each is simulated as a machine of its own (rule "windows of a queue")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.model.state import State, Window
from parsim.model.system import System
from parsim.model.throttles import of_resources
from parsim.model.workload import MAX_CORES, MAX_DURATION, Workload
from parsim.prepare.chunks import has_place
from parsim.prepare.state import closed_nodes, taken_by


class Reservation(NamedTuple):
    """The machine that consists of the windows of a queue."""

    queue: int
    rows: NDArray[np.intp]  # the jobs that may run on it
    end: int  # of its last window
    system: System
    state: State


def reservations(workload: Workload, system: System, state: State) -> Iterator[Reservation]:
    """Yield the machine of each queue that has a window which has not ended at the begin of the state."""
    ended = (state.start < state.begin) & (state.start + workload.effective_runtime <= state.begin)
    for queue in sorted({window.queue for window in state.windows if window.queue is not None}):
        windows = [window for window in state.windows if window.queue == queue and window.end > state.begin]
        if not windows:
            continue
        end = max(window.end for window in windows)
        if system.node_types:
            yield from _of_types(workload, system, state, queue, windows, ended)
            continue
        steps = list(_capacity(windows, system, min(state.begin, *(window.begin for window in windows)), end))
        cores = max(cores for _, _, cores in steps)
        if not cores:  # of a partition that has none
            continue
        rows = np.flatnonzero((workload.queue == queue) & ~ended & (workload.cores <= cores))
        running = rows[state.start[rows] < state.begin]
        in_force = sum(cores for begin, until, cores in steps if begin <= state.begin < until)
        if workload.cores[running].sum() > in_force:  # they run elsewhere
            rows = np.setdiff1d(rows, running)
        closed = [Window(begin, until, cores - here) for begin, until, here in steps if here < cores]
        closed.append(Window(end, end + MAX_DURATION + 1))
        yield Reservation(
            queue=queue,
            rows=rows,
            end=end,
            system=replace(
                system,
                cores=cores,
                mode="multiqueue" if system.mode == "multiqueue" else "shared",
                queues=[replace(each, cores=(1, MAX_CORES)) for each in system.queues],
                pool=None,
                reserve="cores" if system.reserves_nodes else system.reserve,
            ),
            state=State(state.begin, state.start[rows], windows=closed),
        )


def _of_types(
    workload: Workload, system: System, state: State, queue: int, windows: list[Window], ended: NDArray[np.bool_]
) -> Iterator[Reservation]:
    """Yield a queue's machine, with the most nodes of each type in its windows at a time (rule "nodes for a queue")."""
    end = max(window.end for window in windows)
    owned = system.owned_types
    first = np.cumsum([0, *(each.nodes for its in owned for each in its)])
    of_parts = [np.histogram(closed_nodes(window, system), first)[0] for window in windows]
    sizes = np.reshape(of_parts, (len(windows), len(owned), -1)).sum(axis=1)
    edges = sorted({state.begin, *(edge for window in windows for edge in (window.begin, window.end))})
    there = np.array([sizes[[each.begin <= edge < each.end for each in windows]].sum(axis=0) for edge in edges])
    types = [replace(each, nodes=n) for each, n in zip(system.node_types, there.max(axis=0).tolist(), strict=True) if n]
    names = [each.name for each in types]
    if not names:
        return
    alone = replace(
        system,
        cores=sum(each.nodes * each.cores for each in types),
        mode="shared",
        pool=None,
        node_types=types,
        queues=[
            replace(
                each,
                cores=(1, MAX_CORES),
                node_types=None if each.node_types is None else [name for name in each.node_types if name in names],
            )
            for each in system.queues
        ],
        throttles=of_resources(system.throttles, {name for each in types for name in dict(each.resources)}),
    )
    jobs = np.flatnonzero((workload.queue == queue) & ~ended)
    rows = jobs[has_place(alone, workload.take(jobs))]
    running = rows[state.start[rows] < state.begin]
    in_force = there[edges.index(state.begin)] @ [each.cores for each in system.node_types]
    if workload.cores[running].sum() > in_force:  # they run elsewhere
        rows = np.setdiff1d(rows, running)
    closed = [Window(end, end + MAX_DURATION + 1)]
    for (low, high), here in zip(pairwise(edges), there, strict=False):
        lacking = zip(system.node_types, (there.max(axis=0) - here).tolist(), strict=True)
        if gone := {each.name: n for each, n in lacking if n}:
            closed.append(Window(low, high, node_types=gone))
    yield Reservation(queue, rows, end, alone, State(state.begin, state.start[rows], windows=closed))


def _capacity(windows: list[Window], system: System, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (begin, end, cores): the cores of all windows together, from `begin` to `end`."""
    edges = sorted({begin, end, *(window.begin for window in windows), *(window.end for window in windows)})
    sizes = [sum(taken_by(window, system).values()) for window in windows]
    for low, high in pairwise(edges):
        yield (
            low,
            high,
            sum(size for window, size in zip(windows, sizes, strict=True) if window.begin <= low < window.end),
        )


def place(reservation: Reservation, state: State, system: System, begin: int, cores: int) -> dict[int, int]:
    """Return, by partition, the cores of a job that runs on a reservation from `begin` on; it has `cores` in total."""
    if system.is_whole:
        return {0: cores}
    found: dict[int, int] = {}
    for window in state.windows:
        if window.queue == reservation.queue and window.begin <= begin < window.end:
            for partition, here in _of_parts(window, system):
                taken = min(here, cores - sum(found.values()))
                if taken:
                    found[partition] = found.get(partition, 0) + taken
    return found


def _of_parts(window: Window, system: System) -> Iterator[tuple[int, int]]:
    """Yield (partition, cores) of each node, or of each partition, that a window takes."""
    if system.node_types:
        of = [(p, each.cores) for p, its in enumerate(system.owned_types) for each in its for _ in range(each.nodes)]
        yield from (of[node] for node in closed_nodes(window, system))
        return
    parts = system.partition_cores
    first = np.repeat(np.arange(len(parts)), [_nodes(size, system) for size in parts])
    for node, here in taken_by(window, system).items():
        yield int(first[node]) if system.reserves_nodes else node, here


def _nodes(cores: int, system: System) -> int:
    return -(-cores // min(system.cores_per_node, max(1, cores)))
