"""Lays out a `parsim.State` for the kernels: running jobs, their cores, and the windows by node.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.plans.rows import Plans
from parsim.engine.resources.chunks import NO_SHARE, Placing
from parsim.engine.resources.windows import UNKNOWN_END, WINDOW
from parsim.model.state import Cores, State, Window
from parsim.model.system import System
from parsim.model.workload import Column, Workload
from parsim.prepare.node_types import resources_of

Table = NDArray[np.void]


class Layout(NamedTuple):
    """The nodes of a system, partition by partition; where they are not told apart each partition is one node."""

    first: list[int]  # the first node of each partition, and the number of nodes
    sizes: list[int]  # cores of each node


def layout(system: System, *, by_node: bool) -> Layout:
    """Return the nodes of a system (rule "partitions of nodes")."""
    parts = []
    for cores in system.partition_cores:
        size = min(system.cores_per_node, max(1, cores))
        whole, rest = divmod(cores, size)
        parts.append([size] * whole + [rest] * (rest > 0) if by_node else [cores])
    return Layout([0, *accumulate(map(len, parts))], [size for part in parts for size in part])


class Begun(NamedTuple):
    """The state in which a simulation begins; instants count from the first submission (rule "jobs of a state")."""

    begin: int
    start: Column  # (R,): starts of the running jobs, which are the first of the workload
    shares: NDArray[np.int64]  # (R, P): their cores on each partition
    on_nodes: NDArray[np.int64]  # (k, 3): job, node, cores; where nodes are of several types, as the state names them
    windows: Table  # (W,) WINDOW, ascending by begin
    taken: NDArray[np.int64]  # as `parsim.engine.resources.windows.Outages` has it
    instants: Column  # instants at which windows become known or end, ascending
    exempt: NDArray[np.bool_] | None  # (G, n): whether windows for group g are for job j; None without such windows

    def runs_at_home(self, workload: Workload) -> bool:
        """Whether each running job has all its cores on the partition of its queue."""
        first = np.arange(self.start.size)
        return bool((self.shares[first, workload.queue[first]] == workload.cores[first]).all())


def resume(workload: Workload, system: System, state: State, rows: NDArray[np.intp]) -> Begun:
    """Lay out a state for the kernels.

    Parameters
    ----------
    workload : Workload
        The running jobs, ascending by start, then the others.
    system : System
    state : State
    rows : ndarray(int), shape (R,)
        Where the running jobs stand in the state.

    Returns
    -------
    Begun

    Raises
    ------
    ValueError
        A running job has more cores than are idle for it.
    """
    base = int(workload.submit.min())
    nodes = layout(system, by_node=system.reserves_nodes)
    shares, on_nodes = _place(workload, system, state, rows, nodes)
    if system.places_chunks:
        on_nodes = _named(system, state, rows)
    by_begin = sorted(range(len(state.windows)), key=lambda k: state.windows[k].begin)
    places = [k for k in by_begin if state.windows[k].end > state.begin]
    windows = [state.windows[k] for k in places]
    takes = taken_by_each(state.windows, system)
    groups = list(dict.fromkeys(_members(window) for window in windows if window.is_for_some))
    table = np.zeros(len(windows), dtype=WINDOW)
    taken = np.zeros((len(windows), len(nodes.sizes)), dtype=np.int64)
    if system.node_types:
        taken = np.ascontiguousarray(_taken_of_types([takes[k] for k in places], system))  # else of another type
    for k, window in enumerate(windows):
        known = state.begin if window.known_from is None else max(state.begin, window.known_from)
        table[k] = (
            window.begin - base,
            window.end - base,
            known - base,
            window.end - base if window.known_end else UNKNOWN_END,
            groups.index(_members(window)) if window.is_for_some else -1,
        )
        for node, cores in () if system.node_types else takes[places[k]].items():
            taken[k, node] = cores
    instants = np.unique(np.concatenate((table["known_from"], table["end"])))
    return Begun(
        begin=state.begin - base,
        start=state.start[rows] - base,
        shares=shares,
        on_nodes=on_nodes,
        windows=table,
        taken=taken,
        instants=instants[instants > state.begin - base],
        exempt=np.array([np.isin(workload.user, users) | (workload.walltime <= most) for users, most in groups])
        if groups
        else None,
    )


def _members(window: Window) -> tuple[tuple[int, ...], int]:
    """Return the users, or the most seconds of walltime, that a window is kept for; empty and 0 without."""
    return tuple(window.users), 0 if window.walltime is None else window.walltime


def taken_by_each(windows: Sequence[Window], system: System) -> list[dict[int, int]]:
    """Return what each window takes: 1 of each node if these have types, else as `taken_by` ("cores of a window").

    Windows that name nodes come first, then by begin: each prefers nodes that no other window takes at the same time.
    """
    if not (system.node_types or system.reserves_nodes):
        return [taken_by(window, system) for window in windows]
    found: dict[int, dict[int, int]] = {}
    before: list[int] = []
    for k in sorted(range(len(windows)), key=lambda k: (not windows[k].nodes, windows[k].begin)):
        before = [i for i in before if windows[i].nodes or windows[i].end > windows[k].begin]
        busy: dict[int, int] = {}
        for i in before:
            if windows[i].begin < windows[k].end and windows[k].begin < windows[i].end:
                for node, cores in found[i].items():
                    busy[node] = busy.get(node, 0) + cores
        before.append(k)
        if system.node_types:
            found[k] = dict.fromkeys(closed_nodes(windows[k], system, busy), 1)
        else:
            found[k] = taken_by(windows[k], system, busy)
    return [found[k] for k in range(len(windows))]


def taken_by(window: Window, system: System, busy: Mapping[int, int] | None = None) -> dict[int, int]:
    """Return the cores that a window takes of each node, or of each partition (rule "cores of a window").

    A window that only gives a number of cores avoids the `busy` ones of each node, if it can.
    """
    physical = layout(system, by_node=True)
    if window.nodes:
        lost = {node: physical.sizes[node] for node in sorted(set(window.nodes))}
        if system.reserves_nodes:
            return lost
        of_node = np.repeat(np.arange(len(system.partition_cores)), np.diff(physical.first))
        found: dict[int, int] = {}
        for node, cores in lost.items():
            found[int(of_node[node])] = found.get(int(of_node[node]), 0) + cores
        return found
    parts = dict(_of_partitions(window.cores, window.partition, system.partition_cores))
    if not system.reserves_nodes:
        return parts
    found = {}
    for partition, cores in parts.items():
        left = cores
        for others in (busy or {}, {}):
            for node in range(physical.first[partition + 1] - 1, physical.first[partition] - 1, -1):
                if not left:
                    break
                most = max(0, physical.sizes[node] - found.get(node, 0) - others.get(node, 0))
                found[node] = found.get(node, 0) + min(left, most)
                left -= min(left, most)
    return {node: cores for node, cores in found.items() if cores}


def _of_partitions(count: int | None, partition: int | None, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (partition, number) of `count` cores or nodes, of one partition or in proportion of all; None is all."""
    if partition is not None:
        yield partition, sizes[partition] if count is None else min(count, sizes[partition])
        return
    total = sum(sizes)
    count = total if count is None else min(count, total)
    shares = [count * size // max(total, 1) for size in sizes]
    by_size = sorted(range(len(sizes)), key=lambda p: (-sizes[p], p))
    for p in by_size[: count - sum(shares)]:
        shares[p] += 1
    yield from enumerate(shares)


def _taken_of_types(takes: Sequence[Mapping[int, int]], system: System) -> NDArray[np.int64]:
    """Return `Outages.taken` of windows on nodes of several types (rule "nodes of a window")."""
    counts = np.array([[each.nodes for each in its] for its in system.owned_types], dtype=np.int64)
    names = resources_of(system.node_types)
    of_node = np.array([[each.amount(name) for name in names] for each in system.node_types], dtype=np.int64)
    closed = np.zeros((len(takes), counts.sum()), dtype=np.int64)
    for row, taken in zip(closed, takes, strict=True):
        row[list(taken)] = 1
    if system.places_chunks:
        return closed
    first = np.cumsum([0, *counts.reshape(-1)])
    before = np.concatenate((np.zeros((len(takes), 1), dtype=np.int64), closed.cumsum(axis=1)), axis=1)
    nodes = np.diff(before[:, first], axis=1).reshape(len(takes), *counts.shape)
    return (nodes[:, :, :, np.newaxis] * of_node).reshape(len(takes), counts.size * len(names))


def closed_nodes(window: Window, system: System, busy: Collection[int] = ()) -> list[int]:
    """Return the numbers of the nodes of several types that a window takes, ascending (rule "nodes of a window").

    A window that only gives numbers of nodes avoids `busy` ones, if it can.
    """
    if window.nodes:
        return sorted(set(window.nodes))
    owned = system.owned_types
    first = np.cumsum([0, *(each.nodes for its in owned for each in its)])
    found: list[int] = []
    for t, each in enumerate(system.node_types):
        count = dict(window.node_types).get(each.name, 0) if window.node_types else None
        for p, nodes in _of_partitions(count, window.partition, [its[t].nodes for its in owned]):
            its = range(*first[p * len(system.node_types) + t :][:2].tolist())
            found += sorted(its, key=lambda node: (node in busy, -node))[:nodes]
    return sorted(found)


def _place(
    workload: Workload, system: System, state: State, rows: NDArray[np.intp], nodes: Layout
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cores of the running jobs on each partition, shape (R, P), and rows of job, node, cores."""
    partitions = len(system.partition_cores)
    if system.node_types and not system.is_whole:
        return _at_home(workload, system, state, len(rows)), np.empty((0, 3), dtype=np.int64)
    idle = np.array(nodes.sizes, dtype=np.int64)
    of_node = np.repeat(np.arange(partitions), np.diff(nodes.first))
    shares = np.zeros((len(rows), partitions), dtype=np.int64)
    on_nodes = []
    for job, row in enumerate(rows.tolist()):
        named = state.nodes.get(row) if system.reserves_nodes else None
        cores = int(workload.cores[job])
        found = dict(named) if named else _first_idle(state.placement.get(row), job, workload, system, idle, nodes)
        if sum(found.values()) != cores or any(not 0 <= node < idle.size for node in found):
            raise ValueError(f"start[{row}]: it runs at {state.begin}, but {cores} cores are not idle for it then")
        for node, here in found.items():
            if here > idle[node]:
                raise ValueError(
                    f"placement[{row}]: {here} cores of node or partition {node}, of {idle[node]} that are idle"
                )
            idle[node] -= here
            shares[job, of_node[node]] += here
            on_nodes.append((job, node, here))
    return shares, np.array(on_nodes, dtype=np.int64).reshape(-1, 3)


def held_on_nodes(placing: Placing | None, plans: Plans | None) -> dict[int, dict[int, int]]:
    """Return the cores on each node of the jobs that run when a simulation stopped, by job number."""
    found: dict[int, dict[int, int]] = {}
    if placing is not None:
        first, shares = placing.of_job, placing.shares
    elif plans is not None:
        first, shares = plans.nodes.first, plans.nodes.shares
    for job in np.flatnonzero(first != NO_SHARE).tolist():
        number, there = int(first[job]), found.setdefault(job, {})
        while number != NO_SHARE:
            share = shares[number]
            if placing is None:
                there |= dict.fromkeys(range(share["node"], share["node"] + share["nodes"]), int(share["cores"]))
            else:
                cores = int(share["copies"] * placing.amounts[share["kind"], 0])
                there[int(share["node"])] = there.get(int(share["node"]), 0) + cores
            number = int(share["next"])
    return found


def _at_home(workload: Workload, system: System, state: State, running: int) -> NDArray[np.int64]:
    """Return the cores of the running jobs on each partition, all on their queue's (rule "partitions of a state")."""
    queue, cores = workload.queue[:running], workload.cores[:running]
    if cores.sum() > system.cores:
        raise ValueError(f"start: {cores.sum()} cores run at {state.begin}, of {system.cores}")
    partitions = len(system.partition_cores)
    return np.eye(partitions, dtype=np.int64)[queue] * cores[:, np.newaxis]


def _named(system: System, state: State, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return the nodes that the state names for running jobs, as rows of job, node, cores (rule "named nodes")."""
    count, found = sum(each.nodes for its in system.owned_types for each in its), []
    for job, row in enumerate(rows.tolist()):
        for node, cores in sorted(state.nodes.get(row, {}).items()):
            if not 0 <= node < count:
                raise ValueError(f"nodes[{row}]: node {node}, of {count}")
            found.append((job, node, cores))
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _first_idle(
    placement: Cores | None, job: int, workload: Workload, system: System, idle: NDArray[np.int64], nodes: Layout
) -> Cores:
    """Return cores for a job by node: the first idle ones on the partitions of `placement`, or on any without it."""
    left = int(workload.cores[job])
    wanted: Iterator[tuple[int, int]]
    if placement is not None:
        wanted = ((partition, cores) for partition, cores in placement.items() if 0 <= partition < len(nodes.first) - 1)
    else:
        own = 0 if system.is_whole else int(workload.queue[job])
        last = len(nodes.first) - 2
        order = [own, *([last] if last != own else []), *(p for p in range(last) if p != own)]
        wanted = ((partition, left) for partition in order)
    found: dict[int, int] = {}
    for partition, most in wanted:
        need = min(left, most)
        here = idle[nodes.first[partition] : nodes.first[partition + 1]]
        for node in np.flatnonzero(here > 0).tolist():
            if not need:
                break
            taken = min(need, int(here[node]))
            found[nodes.first[partition] + node] = taken
            need -= taken
            left -= taken
    return found
