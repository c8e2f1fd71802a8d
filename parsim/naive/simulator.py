"""Reference simulator, slow and obvious: the oracle for the tests of the engine.

It shares only the dataclasses of its input with `parsim`. A pass starts from the running and the waiting jobs alone,
ratios are exact fractions, and instants are found by trying candidates and checking every moment of the interval.
Names of rules refer to ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from parsim.model.node_types import Chunk, NodeType
from parsim.model.state import State, Window
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.naive.fairshare import NAMES, Charge, Decayed, Values, rate_of
from parsim.naive.formula import formula_value
from parsim.naive.node_types import (
    Node,
    Taken,
    best_nodes,
    both,
    busy_first,
    can_run,
    closed_nodes,
    find_nodes,
    first_nodes,
    fits_beside,
    has_alone,
    idle,
    kinds,
    less,
    nodes_of,
    of_nodes,
    of_one,
    of_types,
    one_node_each,
    places,
    room,
    there_is,
    types_on,
)
from parsim.naive.node_types import fits as fits_on
from parsim.naive.throttles import NaiveThrottles

NAMED_ORDERS = ("fcfs", "sjf", "ljf", "lxf", "wfp3", "fairshare")
RESERVED = -1  # home of jobs that start by advance reservation


@dataclass
class NaiveSchedule:
    """Start of every job, and its cores by partition, in the workload's row order."""

    start: list[int]
    placement: list[dict[str, int]]
    came: list[int] | None = None  # start of each job's wait, after its dependencies
    place: list[int] | None = None  # with types of nodes: a job's place, or the node of its first chunk
    end: list[int] | None = None  # if jobs are preempted
    interruptions: list[list[int]] | None = None  # of each: job, begin, end, place of the run before


def on_machine(workload: Workload, start: list[int]) -> NaiveSchedule:
    """Return the schedule of an undivided machine from the starts."""
    return NaiveSchedule(start, [{"machine": int(cores)} for cores in workload.cores])


class Block(NamedTuple):
    """Cores of one partition that are taken throughout [begin, end)."""

    partition: int
    begin: int
    end: int
    cores: int


class Promise(NamedTuple):
    """The plan of a head job, if limits or nodes are planned."""

    job: int
    begin: int
    end: int
    cores_of: list[int]  # its cores by node


class Downtime(NamedTuple):
    """A window: cores out of service, by node."""

    begin: int
    end: int
    known_from: int
    known_end: float
    cores_of: dict[int, int]
    users: frozenset[int] = frozenset()  # users whose jobs may use them
    walltime: int = 0  # jobs of at most this walltime may use them too


class Running(NamedTuple):
    """A run of a job in progress."""

    job: int
    start: int
    cores_on: dict[int, int]  # partition -> cores


def exact(number: float) -> Fraction:
    """Return the exact decimal value of a float's shortest notation."""
    return Fraction(repr(float(number)))


def target_factor(target: float, eligible_time: int, walltime: int) -> float:
    """Rule "values of a QOS": the target factor, in float64 operation by operation."""
    if target == 0:
        return 0.0
    reached = float(eligible_time + walltime) / float(walltime)
    below = max(target - reached, 0.0001)
    return 1.0 / (below * below)


# --- partitions


def free_at(capacity: int, blocks: list[Block], moment: int) -> int:
    return capacity - sum(b.cores for b in blocks if b.begin <= moment < b.end)


def free_throughout(capacity: int, blocks: list[Block], begin: int, walltime: int) -> int:
    """Return the cores of a partition that are free throughout [begin, begin + walltime) beside ``blocks``."""
    moments = [begin, *(b.begin for b in blocks if begin < b.begin < begin + walltime)]  # only there free cores fall
    return max(0, min(free_at(capacity, blocks, moment) for moment in moments))


def fits(capacity: int, blocks: list[Block], cores: int, begin: int, walltime: int) -> bool:
    return free_throughout(capacity, blocks, begin, walltime) >= cores


def earliest(capacity: int, blocks: list[Block], cores: int, now: int, walltime: int) -> float:
    """Return the first instant at which the job fits: ``now`` or the end of a block; else infinity."""
    candidates = sorted({now} | {b.end for b in blocks if now < b.end < math.inf})
    return next((t for t in candidates if fits(capacity, blocks, cores, t, walltime)), math.inf)


# --- states


def sizes_of_nodes(system: System, *, by_node: bool) -> list[tuple[int, int]]:
    """Return partition and cores of each node; without `by_node`, each partition is one node."""
    sizes = list(enumerate(system.partition_cores))
    if by_node:  # rule "nodes in order"
        size = system.cores_per_node
        sizes = [(p, min(size, cores - first)) for p, cores in sizes for first in range(0, cores, size)]
    return sizes


def lost_by(window: Window, system: System, others: Sequence[dict[int, int]] = ()) -> dict[int, int]:
    """Rule "cores of a window": the cores that a window takes, by node, beside those of other windows."""
    nodes = sizes_of_nodes(system, by_node=True)
    by_nodes = system.reserves_nodes
    if window.nodes:
        lost = {node: nodes[node][1] for node in sorted(window.nodes)}
    else:
        sizes = system.partition_cores
        of = range(len(sizes)) if window.partition is None else [window.partition]
        total = sum(sizes[p] for p in of)
        cores = total if window.cores is None else min(total, window.cores)
        shares = {p: sizes[p] * cores // total for p in of} if total else {}
        for p in sorted(of, key=lambda p: (-sizes[p], p))[: cores - sum(shares.values())]:
            shares[p] += 1
        lost = {}
        for p, cores in shares.items():
            left = cores
            its = [node for node, (q, _) in enumerate(nodes) if q == p][::-1]
            for busy in (others, ()):
                for node in its:
                    most = max(0, nodes[node][1] - lost.get(node, 0) - sum(other.get(node, 0) for other in busy))
                    lost[node] = lost.get(node, 0) + min(left, most)
                    left -= min(left, most)
    if by_nodes:
        return lost
    parts: dict[int, int] = {}
    for node, cores in lost.items():
        parts[nodes[node][0]] = parts.get(nodes[node][0], 0) + cores
    return parts


def lost_by_each(windows: Sequence[Window], system: System) -> list[dict[int, int]]:
    """Rule "cores of a window": cores by node for each window; with types of nodes, 1 for each closed node."""
    lost: dict[int, dict[int, int]] = {}
    for k in sorted(range(len(windows)), key=lambda k: (not windows[k].nodes, windows[k].begin)):
        at_once = [i for i in lost if windows[i].begin < windows[k].end and windows[k].begin < windows[i].end]
        if system.node_types:
            lost[k] = dict.fromkeys(closed_nodes(windows[k], system, {node for i in at_once for node in lost[i]}), 1)
        elif not system.reserves_nodes:
            lost[k] = lost_by(windows[k], system)
        else:
            lost[k] = lost_by(windows[k], system, [lost[i] for i in at_once])
    return [lost[k] for k in range(len(windows))]


def downtimes(system: System, state: State | None) -> list[Downtime]:
    windows = state.windows if state else ()
    return [
        Downtime(
            window.begin,
            window.end,
            state.begin if window.known_from is None else max(state.begin, window.known_from),
            window.end if window.known_end else math.inf,
            lost,
            frozenset(window.users),
            window.walltime or 0,
        )
        for window, lost in zip(windows, lost_by_each(windows, system), strict=True)
    ]


def runs_at(workload: Workload, state: State | None) -> list[int]:
    """Return the jobs that run when the simulation begins, ordered by start and position."""
    if state is None:
        return []
    start, length = state.start.tolist(), workload.effective_runtime.tolist()
    running = [j for j in range(len(workload)) if start[j] < state.begin < start[j] + length[j]]
    return sorted(running, key=lambda j: (start[j], j))


def started_before(workload: Workload, state: State | None) -> dict[int, int]:
    """Return the starts of the jobs that began before the simulation."""
    if state is None:
        return {}
    return {j: int(state.start[j]) for j in range(len(workload)) if state.start[j] < state.begin}


# --- simulator


class Simulation:
    """A shared, partitioned or hybrid machine during a simulation; jobs are their rows in the workload."""

    def __init__(self, workload: Workload, system: System, state: State | None = None) -> None:
        self.system = system
        self.n = len(workload)
        self.submit = [int(x) for x in workload.submit]
        self.submitted = list(self.submit)
        self.place = [(submit, j) for j, submit in enumerate(self.submit)]  # rule "admission to lists"
        self.waits_for: list[set[int]] = [set() for _ in range(self.n)]
        for job, other in workload.after.tolist():
            self.waits_for[job].add(other)
        self.wants = [dict(zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True)) for quota in workload.quotas]
        self.quotas = workload.quotas
        self.cores = [int(x) for x in workload.cores]
        self.walltime = [int(x) for x in workload.walltime]
        self.estimate = [min(int(e) or w, w) for e, w in zip(workload.estimate, self.walltime, strict=True)]
        self.runtime = [min(int(r), w) for r, w in zip(workload.runtime, self.walltime, strict=True)]
        self.queue_index = [int(x) for x in workload.queue]
        self.user = [int(x) for x in workload.user]
        self.called = [workload.user_name(user) for user in self.user]
        self.throttles = NaiveThrottles(system, workload)
        self.reads_use = any(name in system.order for name in ("fairshare", *NAMES))

        self.capacity = list(system.partition_cores)
        self.idle = list(self.capacity)  # in a pass: idle cores of each partition
        self.shared = system.mode == "shared"
        self.pool = len(self.capacity) - 1  # partition number of the pool, meaningless on a shared machine
        self.pool_cores = system.pool_cores
        reads_waits = "eligible_time" in system.order or "qos_target_factor" in system.order
        self.calculates = system.priority_calc_period > 0 and reads_waits
        self.reads_waits = reads_waits
        starves = any(queue.starvation is not None for queue in system.queues)
        self.keeps_order = system.order in ("fcfs", "sjf", "ljf") and not (starves or system.has_tiers)
        self.keys: dict[int, tuple] = {}  # last sort key of each job
        self.weights = [exact(queue.priority) for queue in system.queues]
        self.classes = {qos.name: qos for qos in system.qos}
        self.class_of = [workload.qos_name(qos) for qos in workload.qos.tolist()]
        self.plans_limits = system.held_jobs == "reserve"
        self.by_nodes = system.reserve == "nodes" and not system.node_types
        self.nodes = sizes_of_nodes(system, by_node=self.by_nodes)
        self.combined = self.pool_cores > 0 and system.pool.placement == "combined"
        self.nodes_combined = self.combined and self.by_nodes
        self.move = self.pool_cores > 0 and system.pool.entry == "move"

        self.now = 0
        self.waiting: set[int] = set()
        self.wake_ups: list[tuple[int, int]] = []  # heap of instants at which jobs starve or become eligible
        self.entries: dict[int, int | None] = {}  # job -> earliest entry to the pool
        self.outside: list[int] = []  # submitted jobs kept out of the lists, by submit
        self.refused: set[int] = set()  # jobs that `max_queued` has kept out
        self.running: list[Running] = []
        self.ran_before: list[Running] = []  # running jobs when the pass began
        self.moved: set[int] = set()  # jobs that left their partition's list for the pool
        self.eligible_time = [0] * self.n
        self.held_in_last_pass: set[int] = set()
        self.last_pass: int | None = None
        self.start = [0] * self.n
        ended = state is None or all(window.end <= state.begin for window in state.windows)
        self.passes_over = system.reserves_nothing and ended
        self.first_of_list = (-1, 0)  # first job of the last pass that could not start, and since when
        self.interruptions: list[list[int]] = []
        self.end = [0] * self.n
        self.begun: list[int] = []  # jobs started in this pass, in order
        self.held_by: dict[int, str] = {}  # job held in this pass -> the limit
        self.ahead: dict[int, dict[int, tuple[int, int]]] = {}  # job started in this pass -> `planned` at that moment
        self.preempted: list[int] = []  # jobs preempted in this pass
        self.in_place_of: dict[int, list[int]] = {}  # job -> the jobs that it preempted last
        self.kept_by: dict[int, str] = {}  # job -> the limit that kept it out of its list in the last pass
        self.planned: dict[int, tuple[int, int]] = {}  # waiting head job -> its list and planned start
        self.charges: dict[tuple[int, int], Charge] = {}  # (job, start) -> charge, until decayed
        self.decayed: Decayed = {}
        self.values: Values | None = None  # fair-share values in this pass
        self.cores_on: list[dict[int, int]] = [{} for _ in range(self.n)]
        self.nodes_of: dict[int, list[int]] = {}  # running job -> its cores by node

        requests = self.requests = [workload.requests[k] if k >= 0 else None for k in workload.request.tolist()]
        for j, q in enumerate(self.queue_index):
            if system.queues[q].exclusive:  # rule "exclusive nodes"
                chunks = requests[j] or [Chunk(self.cores[j], 1)]
                requests[j] = tuple(replace(chunk, exclusive=True) for chunk in chunks)
        self.goes_round = not ended  # windows
        self.placed = bool(system.node_types) and system.reserve in ("nodes", "queue_nodes")
        self.typed = bool(system.node_types) and not self.placed
        self.on_nodes: list[list[int | None]] = [[] for _ in range(self.n)]  # job -> the node of each copy
        self.types_there: list[Taken] = []  # by partition: total resources
        for partition in range(len(self.capacity)) if self.typed else ():
            self.types_there.append(there_is(types_on(system, partition)))
        self.places_of = [
            places(system, queue, request, cores) if self.typed else []
            for queue, request, cores in zip(self.queue_index, requests, self.cores, strict=True)
        ]
        self.place_on_types = [0] * self.n
        self.nodes_in = [
            p for p in range(len(self.capacity)) for each in types_on(system, p) for _ in range(each.nodes)
        ]
        self.nodes_heads: dict[int, tuple[int, int, int, list[int | None]]] = {}
        self.typed_heads: dict[int, tuple[int, int, Taken]] = {}  # partition -> plan of its head job

        limits = ("max_run", "max_run_cores", "max_user_run", "max_user_cores")
        of_queues = any(getattr(queue, name) is not None for queue in system.queues for name in limits)
        self.limited = of_queues or bool(system.throttles) or bool(self.quotas)
        # Whether a pass has other effects than the jobs that it starts.
        waits = self.reads_waits and self.limited
        self.remembers = waits or self.passes_over or system.has_tiers

        apart = all(self.home(j) != RESERVED for j in range(self.n))
        self.by_queues = apart and (system.reserves_for_queues or system.reserves_for_many)
        self.many = system.reserves_for_many

        # Results of one pass, reset before the next.
        self.head_jobs: set[int] = set()
        self.head_job_of: dict[int, tuple[int, Block]] = {}  # partition -> (its head job, that job's block)
        self.reservation: list[Block] = []
        self.promises: list[Promise] = []

        self.downtimes = downtimes(system, state)
        self.began = started_before(workload, state)
        self.first_instant = min(self.submit, default=0) if state is None else state.begin
        self.now = self.first_instant - 1
        for j, instant in self.began.items():
            self.start[j] = instant
        for j in runs_at(workload, state):
            self.resume(j, state)

    def resume(self, j: int, state: State) -> None:
        """Rule "jobs of a state": give cores to a job that runs when the simulation begins."""
        cores_of = [0] * len(self.nodes)
        idle = self.idle_nodes(self.now, j)
        if self.by_nodes and j in state.nodes:
            for node, cores in state.nodes[j].items():
                cores_of[node] = cores
        else:
            own = 0 if self.shared else self.queue_index[j]
            others = [p for p in range(len(self.capacity)) if p not in (own, self.pool)]
            wanted = dict.fromkeys(dict.fromkeys([own, self.pool, *others]), self.cores[j])
            for p, cores in state.placement.get(j, wanted).items():
                most = cores
                for node, (partition, _) in enumerate(self.nodes):
                    if partition == p:
                        cores_of[node] = max(0, min(idle[node], most, self.cores[j] - sum(cores_of)))
                        most -= cores_of[node]
        if self.system.node_types:  # rule "partitions of a state"
            on = self.home(j)
            cores_of = [self.cores[j] if p == on else 0 for p, _ in self.nodes]
        if self.typed:  # rule "places of a state"
            its = enumerate(self.places_of[j])
            free = [k for k, place in its if self.idle_on_types(on, place, self.now, None)]
            self.place_on_types[j] = min(free, default=0)
        if self.placed:  # rule "nodes of a state"
            self.put_on_nodes(j, self.where(on, j, self.left_on_nodes(self.now, None), state.nodes.get(j)))
        self.nodes_of[j] = cores_of
        for (partition, _), cores in zip(self.nodes, cores_of, strict=True):
            if cores:
                self.cores_on[j][partition] = self.cores_on[j].get(partition, 0) + cores
        self.running.append(Running(j, self.start[j], self.cores_on[j]))
        end = self.start[j] + self.runtime[j]
        self.charges[j, self.start[j]] = Charge(self.called[j], self.first_instant, end, self.rate(j))

    def known(self) -> list[Downtime]:
        """Rule "windows as plans": return the windows that are known now."""
        return [d for d in self.downtimes if d.known_from <= self.now < d.end]

    def may_use(self, j: int, d: Downtime) -> bool:
        """Rule "windows of users": whether a job may use a window's cores."""
        return self.user[j] in d.users or self.walltime[j] <= d.walltime

    def out_of_service(self, partition: int, j: int) -> list[Block]:
        """Return the blocks of a partition taken by windows that j may not use."""
        if self.system.node_types:  # see rules of "windows of several types"
            return []
        found = []
        for d in self.known():
            if not self.may_use(j, d):
                cores = sum(n for node, n in self.taken_by(d).items() if self.nodes[node][0] == partition)
                found.append(Block(partition, d.begin, d.known_end, cores))
        return found

    def taken_by(self, d: Downtime) -> dict[int, int]:
        """Rule "windows of users": a window's cores by node, less those of its users' jobs when the pass began."""
        past = max(self.now, d.begin)
        own = [r.job for r in self.ran_before if self.may_use(r.job, d) and self.expected_end(r) > past]
        return {node: max(0, n - sum(self.cores_at(j, node) for j in own)) for node, n in d.cores_of.items()}

    def begins(self, first: int, last: int) -> list[int]:
        """Return the begins of known windows in (first, last]."""
        return [d.begin for d in self.known() if first < d.begin <= last]

    def lost_on_types(self, j: int, moment: int) -> Taken:
        """Rule "windows by totals": the resources taken at a moment by windows that j may not use."""
        lost: Taken = {}
        for d in self.known():
            if d.begin <= moment < d.known_end and not self.may_use(j, d):
                past = max(self.now, d.begin)
                all_of_it = of_nodes(self.system, [*d.cores_of])
                for r in self.ran_before:
                    if self.may_use(r.job, d) and self.expected_end(r) > past:
                        has = self.places_of[r.job][self.place_on_types[r.job]]
                        all_of_it = {what: max(0, n - has.get(what, 0)) for what, n in all_of_it.items()}
                lost = both(lost, all_of_it)
        return lost

    def in_service(self, j: int, left: list[Node], begin: int, end: int) -> list[Node]:
        """Rule "windows on nodes": `left`, empty for nodes that windows close for j in [begin, end)."""
        closed = {
            node
            for d in self.known()
            if d.begin < end and begin < d.known_end and not self.may_use(j, d)
            for node in d.cores_of
        }
        return [{} if number in closed else node for number, node in enumerate(left)]

    def ends(self) -> set[int]:
        """Return the instants at which a head job may be planned on nodes of several types."""
        ends = {self.expected_end(r) for r in self.running} | {d.known_end for d in self.known()}
        return {self.now} | {end for end in ends if self.now < end < math.inf}

    def cores_at(self, j: int, node: int) -> int:
        """Return the cores of a running job on a node (a partition, if nodes are not distinguished)."""
        if self.by_nodes or j in self.nodes_of:
            return self.nodes_of[j][node]
        return self.cores_on[j].get(node, 0)

    # --- job by job

    def queue(self, j: int):
        return self.system.queues[self.queue_index[j]]

    def home(self, j: int) -> int:
        """Rule "home list": return its partition, or `RESERVED`."""
        if self.shared:
            return 0
        if j in self.moved:
            return self.pool
        if self.system.node_types:  # rule "home by type"
            return self.queue_index[j]
        if self.cores[j] <= self.queue(j).partition:
            return self.queue_index[j]
        if self.cores[j] <= self.pool_cores:
            return self.pool
        return RESERVED

    def starving_from(self, j: int) -> int | None:
        period = self.queue(j).starvation
        return None if period is None or self.was_preempted(j) else self.submit[j] + period

    def starves(self, j: int) -> bool:
        instant = self.starving_from(j)
        return instant is not None and self.now >= instant

    def capped_walltime(self, j: int) -> int:
        return min(self.walltime[j], self.queue(j).walltime[1])

    def eligible_from(self, j: int) -> int | None:
        """Rule "pool eligibility": the instant e at which the pool may take a job of a partition, else None."""
        if j not in self.entries:
            self.entries[j] = self.enters_from(j)
        return self.entries[j]

    def enters_from(self, j: int) -> int | None:
        if self.shared or self.pool_cores == 0 or self.cores[j] > self.queue(j).partition:
            return None
        if self.cores[j] > self.pool_cores and not self.combined:
            return None
        wait = exact(self.system.pool.threshold) / exact(self.queue(j).priority) * self.capped_walltime(j)
        return self.submit[j] + (math.floor(wait) + 1 if wait else 0)

    def eligible(self, j: int) -> bool:
        if self.home(j) == self.pool:
            return True
        instant = self.eligible_from(j)
        return instant is not None and self.now >= instant

    def held(self, j: int) -> str:
        """Rule "held by limits": the limit that holds j, or ""."""
        return self.held_beside(j, [h for h in self.head_jobs if h != j])

    def held_beside(self, j: int, head_jobs: list[int]) -> str:
        """Return a limit that j exceeds beside the running jobs and head jobs that would start now, or ""."""
        if not self.limited:
            return ""
        ends = {r.job: self.expected_end(r) for r in self.running}
        others = [*ends, *head_jobs]
        left = lambda k: ends[k] - self.now if k in ends else self.walltime[k]  # noqa: E731
        return self.above_limits(j, others) or self.throttles.above(j, others, left)

    def expected_end(self, r: Running) -> int:
        return r.start + self.walltime[r.job]

    def running_after(self, instant: int) -> list[int]:
        return [r.job for r in self.running if self.expected_end(r) > instant]

    def hold(self, j: int, by: str) -> None:
        """Note that a limit holds a job at its turn."""
        self.held_by[j] = by
        self.held_in_last_pass.add(j)

    def used(self, j: int, others: list[int]) -> list[int]:
        """Return jobs and cores of j and `others` in j's queue, then those of j's user in it."""
        mates = [j, *(k for k in others if self.queue_index[k] == self.queue_index[j])]
        own = [k for k in mates if self.user[k] == self.user[j] != -1]
        return [len(mates), sum(self.cores[k] for k in mates), len(own), sum(self.cores[k] for k in own)]

    def above_limits(self, j: int, others: list[int]) -> str:
        """Return a limit of queues or quotas that j would exceed beside `others`, or ""."""
        queue = self.queue(j)
        names = ("max_run", "max_run_cores", "max_user_run", "max_user_cores")
        for amount, name in zip(self.used(j, others), names, strict=True):
            limit = getattr(queue, name)
            if limit is not None and amount > limit and not self.throttles.exempt(j, name):
                return f"{name} = {limit} of queue {queue.name}"
        for quota, wants in zip(self.quotas, self.wants, strict=True):  # rule "changes of quotas"
            most = [quota.most, *(then for instant, then in quota.changes if instant <= self.now)][-1]
            if j in wants and sum(wants.get(k, 0) for k in {j, *others}) > most:
                return quota.name
        return ""

    # --- orders

    def calculated(self) -> int:
        """Rule "eligible time": the instant up to which formulas count eligible times."""
        period = self.system.priority_calc_period
        return self.now // period * period if self.calculates else self.now

    def worth(self, j: int) -> tuple[float, float]:
        """Rule "values of a QOS": priority and target of a job's QOS."""
        qos = self.classes.get(self.class_of[j])
        return (0.0, 0.0) if qos is None else (float(qos.priority), float(qos.target or 0))

    def rate(self, j: int) -> Fraction:
        """Rule "charges and decay": the charge per second of a job."""
        takes = {"cores": self.cores[j]}
        qos = self.classes.get(self.class_of[j])
        factor = 1 if qos is None else qos.usage_factor
        return rate_of(self.system, self.queue(j), factor, lambda name: takes.get(name) or self.takes(j, name))

    def was_preempted(self, j: int) -> bool:
        return any(k == j for k, *_ in self.interruptions)

    def goes_back(self, j: int) -> bool:
        """Rules "same place again" and "same nodes again": whether a job may resume only at its old place."""
        return self.was_preempted(j) and self.queue(j).preempted == "suspend"

    def list_key(self, j: int) -> tuple:
        """Rule "order of tiers": the sort key of a job in its list, ascending."""
        if self.keeps_order and j in self.keys:
            return self.keys[j]
        self.keys[j] = self.key_now(j)
        return self.keys[j]

    def key_now(self, j: int) -> tuple:
        tier = -self.queue(j).tier
        return (tier, 0, self.place[j]) if self.was_preempted(j) else (tier, 1, self.key_in_tier(j))

    def key_in_tier(self, j: int) -> tuple:
        """Rule "order of a list": the sort key within a tier, ascending."""
        order, w, wait = self.system.order, self.walltime[j], self.now - self.submit[j]
        if order not in NAMED_ORDERS:
            eligible = max(0, self.eligible_time[j] - (self.now - self.calculated()))
            priority, target = self.worth(j)
            value = formula_value(
                order,
                queue_priority=self.queue(j).priority,
                eligible_time=eligible,
                walltime=w,
                ncpus=self.cores[j],
                job_priority=0,
                qos_priority=priority,
                qos_target=target,
                qos_target_factor=target_factor(target, eligible, w),
                ngpus=self.takes(j, "gpus"),
                mem=1024 * self.takes(j, "memory"),
                estimate=self.estimate[j],
                **(self.values.of(self.called[j]) if self.values else {}),
            )
            return (-value, self.place[j])
        if self.starves(j):
            return (0, self.place[j])
        by_order = {
            "fcfs": lambda: 0,
            "sjf": lambda: w,
            "ljf": lambda: -w,
            "lxf": lambda: -Fraction(wait + w, w),
            "wfp3": lambda: -(Fraction(wait, w) ** 3) * self.cores[j],
            "fairshare": lambda: self.values.key(self.called[j]),
        }[order]()
        return (1, -self.queue(j).priority, by_order, self.place[j])

    def takes(self, j: int, resource: str) -> int:
        """Rule "sums over chunks": a job's total amount of a resource."""
        return sum(chunk.count * dict(chunk.resources).get(resource, 0) for chunk in self.requests[j] or ())

    def pool_key(self, j: int) -> tuple:
        """Rule "priority factor": the sort key in the pool, ascending."""
        if self.system.pool.starving_first and self.starves(j):
            return (0, self.place[j])
        weight = self.weights[self.queue_index[j]]
        wait = self.now - self.submit[j]
        factor = Fraction(wait * weight.numerator, self.capped_walltime(j) * weight.denominator)
        return (1, -factor, self.place[j])

    # --- event loop

    def passes(self) -> Iterator[None]:
        """Simulate pass by pass: yield after each, with its instant in `now`."""
        pending = [j for j in range(self.n) if j not in self.began]
        pending.sort(key=lambda j: (self.submit[j], j), reverse=True)
        parked: set[int] = set()  # submitted jobs that wait for dependencies
        ended = set(self.began) - {r.job for r in self.running}
        changes = sorted({instant for quota in self.quotas for instant, _ in quota.changes})
        while pending or self.waiting or self.outside or self.running:
            instants = [r.start + self.runtime[r.job] for r in self.running]
            instants += [max(self.submit[j], self.first_instant) for j in pending[-1:]]
            # rules "events of windows" and "changes of quotas"
            instants += [t for d in self.downtimes for t in (d.known_from, d.end) if t > self.now]
            here = bool(self.waiting or self.outside)
            instants += [t for t in changes if t > max(self.now, self.first_instant) and here]
            if self.preempted:
                instants.append(self.now + 1)  # rule "after a preemption"
                self.preempted = []
            if self.outside and any(r.start == self.now for r in self.running):
                instants.append(self.now + 1)  # rule "room after a start"
            while self.wake_ups and not self.wakes(*self.wake_ups[0]):
                heapq.heappop(self.wake_ups)
            instants += [instant for instant, _ in self.wake_ups[:1]]
            if self.calculates and here and self.running:  # rule "eligible time"
                instants.append(self.calculated() + self.system.priority_calc_period)
            if not instants:
                raise RuntimeError(f"jobs {sorted(self.waiting)} wait for ever")
            self.now = min(instants)
            over = [r for r in self.running if r.start + self.runtime[r.job] <= self.now]
            for r in over:
                ended.add(r.job)
                self.end[r.job] = r.start + self.runtime[r.job]
            if over:
                self.running = [r for r in self.running if r.start + self.runtime[r.job] > self.now]
            for j in [j for j in parked if self.waits_for[j] <= ended]:  # rule "dependencies of jobs"
                parked.remove(j)
                self.submit[j] = self.now
                self.come(j)
            while pending and self.submit[pending[-1]] <= self.now:
                j = pending.pop()
                if self.waits_for[j] <= ended:
                    self.come(j)
                else:
                    parked.add(j)
            for j in sorted(self.outside, key=lambda j: self.place[j]):  # rule "admission to lists"
                there = self.waiting, [r.job for r in self.running]
                self.kept_by[j] = self.throttles.kept_out(j, *there)
                if not self.kept_by[j]:
                    self.outside.remove(j)
                    self.waiting.add(j)
                    if j in self.refused:
                        self.place[j] = self.now, j
                elif self.throttles.kept_out(j, *there, names=("max_queued",)):
                    self.refused.add(j)
            self.one_pass()
            yield
            self.waiting |= set(self.preempted)

    def come(self, j: int) -> None:
        """Add a job to those outside the lists, and its wake-ups."""
        self.outside.append(j)
        for instant in (self.starving_from(j), self.eligible_from(j)):
            if instant is not None:
                heapq.heappush(self.wake_ups, (instant, j))

    def wakes(self, instant: int, j: int) -> bool:
        """Whether a wake-up is still due: its job waits, and starves or becomes eligible at that instant."""
        waits = j in self.waiting or j in self.outside
        return waits and instant > self.now and instant in (self.starving_from(j), self.eligible_from(j))

    def take_cores(self, cores_on: dict[int, int], sign: int) -> None:
        """Update `idle` by the cores that a job takes (`sign` -1) or returns (1)."""
        for partition, cores in cores_on.items():
            self.idle[partition] += sign * cores

    def one_pass(self) -> None:
        for j in [*self.waiting, *self.outside] if self.reads_waits else []:  # rule "eligible time"
            if self.submit[j] < self.now and j not in self.held_in_last_pass:
                before = self.submit[j] if self.last_pass is None else max(self.submit[j], self.last_pass)
                self.eligible_time[j] += self.now - before
        self.last_pass = self.now
        self.ran_before = list(self.running)
        self.held_in_last_pass = set(self.outside)
        self.head_jobs, self.head_job_of, self.reservation = set(), {}, []
        self.promises = []
        self.begun, self.planned, self.held_by, self.ahead = [], {}, {}, {}
        self.idle = list(self.capacity)
        for r in self.running:
            self.take_cores(r.cores_on, -1)
        if not (any(self.idle) or self.remembers):
            return  # no core is idle, so no job can start
        if self.reads_use:  # rule "use in a pass"
            users, first = sorted(set(self.called)), self.first_instant
            self.values = Values(self.system.fairshare, users, [*self.charges.values()], first, self.now, self.decayed)
            period = self.system.fairshare.decay_time
            decay = first + (self.now - first) // period * period  # the last decay
            self.charges = {run: each for run, each in self.charges.items() if each.end > decay}
            self.values.active = Counter(self.called[r.job] for r in self.running)  # rule "active jobs"

        if self.plans_limits or self.by_nodes:
            self.planning_pass()
            return
        if self.by_queues:
            self.pass_by_queues()
            return
        if self.shared:
            self.visit(0, sorted(self.waiting, key=self.list_key))
            return
        self.move_eligible()
        self.visit_reserved()
        for partition in [p for p in range(self.pool) if self.idle[p] or self.limited or self.remembers]:
            self.visit(partition, sorted((j for j in self.waiting if self.home(j) == partition), key=self.list_key))
        if self.pool_cores and (self.idle[self.pool] or self.limited or self.remembers):
            self.visit(self.pool, sorted((j for j in self.waiting if self.eligible(j)), key=self.pool_key))

    def move_eligible(self) -> None:
        """Rule "moves to the pool"; for nodes, rule "partitions of nodes"."""
        if self.move:
            widest = math.inf if self.nodes_combined else self.pool_cores
            self.moved |= {j for j in self.waiting if self.cores[j] <= widest and self.eligible(j)}

    def begin(self, j: int, cores_on: dict[int, int]) -> None:
        self.waiting.remove(j)
        self.begun.append(j)
        self.head_jobs.discard(j)
        self.planned.pop(j, None)
        self.ahead[j] = dict(self.planned)
        if self.was_preempted(j):
            next(each for each in reversed(self.interruptions) if each[0] == j)[2] = self.now
        else:
            self.start[j] = self.now
        self.cores_on[j] = cores_on
        self.take_cores(cores_on, -1)
        self.running.append(Running(j, self.now, cores_on))
        if self.reads_use:
            charge = Charge(self.called[j], self.now, self.now + self.runtime[j], self.rate(j))
            self.charges[j, self.now] = charge

    def expected(self, partition: int) -> list[Block]:
        """Return the blocks of running jobs on a partition, up to their expected ends."""
        on_partition = [r for r in self.running if partition in r.cores_on]
        return [Block(partition, r.start, self.expected_end(r), r.cores_on[partition]) for r in on_partition]

    def promised(self, partition: int, j: int) -> list[Block]:
        """Return the blocks on a partition of running jobs, the reservation and windows that j may not use."""
        reserved = [block for block in self.reservation if block.partition == partition]
        return self.expected(partition) + reserved + self.out_of_service(partition, j)

    # --- lists

    def visit(self, partition: int, jobs: list[int]) -> None:
        """Rule "visit of a list": go once through the list of a partition."""
        found = False
        for j in jobs:
            idle = self.has_idle_cores(partition, j)
            if found and not idle and not self.remembers:
                continue
            if name := self.held(j):
                if self.home(j) == partition:
                    self.hold(j, name)
                continue
            cores_on = self.placement(partition, j) if idle else None
            if cores_on is None and self.system.has_tiers and self.make_room(partition, j):
                cores_on = self.placement(partition, j)
            if cores_on is not None:
                self.begin(j, cores_on)
            elif self.passes_over:  # rule "nothing reserved"
                if not found:
                    found = True
                    if self.first_of_list[0] != j:
                        self.first_of_list = (j, self.now)
                    if self.now >= self.first_of_list[1] + self.system.reserve_after:
                        break
            elif not found and self.cores[j] <= self.capacity[partition] and self.may_be_head_job(j):
                c, w = self.cores[j], self.walltime[j]
                instant = earliest(self.capacity[partition], self.promised(partition, j), c, self.now, w)
                if self.typed:
                    instant = self.plan_on_types(partition, j)
                if self.placed:
                    instant = self.plan_on_nodes(partition, j, instant)
                if instant == math.inf:
                    continue  # rule "jobs without an instant"
                found = True
                self.head_jobs.add(j)
                self.planned[j] = partition, instant
                self.head_job_of[partition] = (j, Block(partition, instant, instant + w, c))
                if not self.system.backfill:
                    break

    def has_idle_cores(self, partition: int, j: int) -> bool:
        """Whether enough cores for a job are idle at its turn in the list of a partition."""
        idle = self.idle[partition]
        if partition == self.pool and self.combined and not self.shared and self.queue_index[j] != partition:
            idle += self.idle[self.queue_index[j]]
        return self.cores[j] <= idle

    def make_room(self, partition: int, j: int) -> bool:
        """Rule "jobs to preempt": preempt the jobs that let j start, if possible; return whether it is."""
        tier = lambda r: self.queue(r.job).tier  # noqa: E731
        of_lower = [r for r in self.running if tier(r) < self.queue(j).tier and self.queue(r.job).preempted != "off"]
        of_lower.sort(key=lambda r: (-tier(r), r.start, self.place[r.job]), reverse=True)
        taken: list[Running] = []
        while not self.may_start_without(taken, partition, j):
            if len(taken) == len(of_lower):
                return False
            taken.append(of_lower[len(taken)])
        for r in reversed(list(taken)):
            others = [each for each in taken if each.job != r.job]
            if self.may_start_without(others, partition, j):
                taken = others
        self.in_place_of[j] = [r.job for r in taken]
        for r in taken:
            self.preempt(r)
        return True

    def may_start_without(self, ended: list[Running], partition: int, j: int) -> bool:
        """Whether j could start if these running jobs had ended."""
        running = self.running
        self.running = [r for r in running if r.job not in [each.job for each in ended]]
        may = self.placement(partition, j) is not None
        self.running = running
        return may

    def preempt(self, r: Running) -> None:
        """Rule "after a preemption": stop a running job."""
        j, ran = r.job, self.now - r.start
        self.running.remove(r)
        self.take_cores(r.cores_on, 1)
        if self.reads_use:
            self.charges[j, r.start] = self.charges[j, r.start]._replace(end=self.now)
        if self.queue(j).preempted != "requeue":
            self.runtime[j] -= ran
            self.walltime[j] -= ran
        self.interruptions.append([j, self.now, 0, self.place_on_types[j]])
        self.preempted.append(j)

    def pass_by_queues(self) -> None:
        if self.shared:
            self.visit_by_queues(0, sorted(self.waiting, key=self.list_key))
            return
        self.move_eligible()
        for p in range(self.pool + 1):
            key = self.pool_key if p == self.pool else self.list_key
            self.visit_by_queues(p, sorted((j for j in self.waiting if self.home(j) == p), key=key))

    def visit_by_queues(self, p: int, jobs: list[int]) -> None:
        """Rule "head jobs of queues": one per queue on a shared machine, else per list; limits count running jobs."""
        if self.typed:
            self.visit_typed_by_queues(p, jobs)
            return
        if self.placed:
            self.visit_placed_by_queues(p, jobs)
            return
        if self.many:
            self.visit_many(p, jobs)
            return
        plans: dict[int, Block] = {}  # queue, or list -> the block of its head job
        keeps: dict[int, int] = {}  # queue, or list -> idle cores kept for it
        for j in jobs:
            whose = self.queue_index[j] if self.shared else p
            if whose in plans and self.cores[j] > self.idle[p] and not self.remembers:
                continue
            if name := self.held_beside(j, []):
                self.hold(j, name)
                continue
            c, w, busy = self.cores[j], self.walltime[j], [*self.expected(p), *self.out_of_service(p, j)]
            blocks = [*busy, *plans.values()]
            moments = [plan.begin for plan in plans.values() if plan.begin <= self.now + w]
            kept = [sum(keeps[k] for k, plan in plans.items() if plan.begin <= at < plan.end) for at in moments]
            idle = free_at(self.capacity[p], busy, self.now)
            if fits(self.capacity[p], blocks, c, self.now, w + 1) and c + max(kept, default=0) <= idle:
                self.begin(j, {p: c})
                keeps |= {k: 0 for k, plan in plans.items() if plan.begin > self.now + w}
            elif whose not in plans and c <= self.capacity[p] and self.may_be_head_job(j):
                instant = earliest(self.capacity[p], blocks, c, self.now, w)
                if instant == math.inf:
                    continue  # rule "jobs without an instant"
                self.planned[j] = p, instant
                plans[whose], keeps[whose] = Block(p, instant, instant + w, c), self.system.cores_per_node

    def visit_typed_by_queues(self, p: int, jobs: list[int]) -> None:
        """Rule "places of head jobs": `visit_by_queues` for types of nodes, by total resources."""
        depth = self.system.reservation_depth
        most = math.inf if depth is None else depth
        plans: dict[int, tuple[int, int, Taken]] = {}  # queue, with a depth job -> begin, end and place of a head job
        keeps: dict[int, Taken] = {}  # of the same -> resources kept idle for it

        def in_use(j: int, moment: int) -> Taken:
            taken = self.lost_on_types(j, moment)
            for k in self.running_after(moment):
                taken = both(taken, self.places_of[k][self.place_on_types[k]])
            return taken

        def left(j: int, place: Taken, begin: int, last: int) -> bool:
            moments = [begin, *(first for first, _, _ in plans.values() if begin < first <= last)]
            for moment in moments + self.begins(begin, last):
                taken = in_use(j, moment)
                for first, until, held in plans.values():
                    taken = both(taken, held) if first <= moment < until else taken
                if not fits_beside(place, taken, self.types_there[p]):
                    return False
            return True

        def leaves_kept(j: int, place: Taken, end: int) -> bool:
            for at in [first for first, _, _ in plans.values() if first <= end]:
                kept = place
                for k, (first, until, _) in plans.items():
                    kept = both(kept, keeps[k]) if first <= at < until else kept
                if not fits_beside(of_types(kept, place), in_use(j, self.now), self.types_there[p]):
                    return False
            return True

        for j in jobs:
            if name := self.held_beside(j, []):
                self.hold(j, name)
                continue
            w, its = self.walltime[j], self.places_of[j]
            whose = j if self.many else self.queue_index[j]  # on a divided machine a list is of one queue
            end = self.now + w
            last = end - self.many
            may = [k for k, place in enumerate(its) if left(j, place, self.now, last) and leaves_kept(j, place, end)]
            if may and self.has_cores(p, j):
                self.place_on_types[j] = may[0]
                self.begin(j, {p: self.cores[j]})
                for k, (first, _, _) in plans.items():
                    if first > end:
                        keeps[k] = {what: n for what, n in keeps[k].items() if not of_types({what: 1}, its[may[0]])}
            elif (len(plans) < most if self.many else whose not in plans) and self.may_be_head_job(j):
                ends = self.ends() | {until for _, until, _ in plans.values()}
                found = (
                    (instant, place)
                    for instant in sorted(end for end in ends if end >= self.now)
                    for place in its
                    if left(j, place, instant, instant + w - 1)
                )
                instant, place = next(found, (math.inf, {}))
                if instant == math.inf:
                    continue  # rule "jobs without an instant"
                self.planned[j] = p, instant
                plans[whose] = (instant, instant + w, place)
                keeps[whose] = {} if self.many else one_node_each(types_on(self.system, p), place)

    def visit_placed_by_queues(self, p: int, jobs: list[int]) -> None:
        """Rule "plan of whole nodes": `visit_by_queues` with head jobs that hold whole nodes."""
        plans: dict[int, tuple[int, int, set[int]]] = {}  # queue -> begin, end and nodes of its head job

        def not_held(j: int, left: list[Node], begin: int, end: int) -> list[Node]:
            held = [nodes for first, until, nodes in plans.values() if first < end and until > begin]
            held.append({number for number, of in enumerate(self.nodes_in) if of != p})
            left = [{} if any(number in nodes for nodes in held) else node for number, node in enumerate(left)]
            return self.in_service(j, left, begin, end)

        for j in jobs:
            if name := self.held_beside(j, []):
                self.hold(j, name)
                continue
            w, queue, wanted = self.walltime[j], self.queue_index[j], (self.requests[j], self.cores[j])
            now = self.left_on_nodes(self.now, None)
            on = best_nodes(self.system, queue, *wanted, not_held(j, now, self.now, self.now + w + 1))
            if None not in on and self.has_cores(p, j):
                self.put_on_nodes(j, on)
                self.begin(j, {p: self.cores[j]})
            elif not self.system.backfill:
                break
            elif queue not in plans and self.may_be_head_job(j):
                ends = self.ends() | {until for _, until, _ in plans.values()}
                busy = [node != whole for node, whole in zip(now, idle(self.system), strict=True)]
                for instant in sorted(end for end in ends if end >= self.now):
                    left = not_held(j, self.left_on_nodes(instant, None), instant, instant + w)
                    on, holds = busy_first(self.system, queue, *wanted, left, busy)
                    if None not in on:
                        self.planned[j] = p, instant
                        plans[queue] = (instant, instant + w, holds)
                        break

    def visit_many(self, p: int, jobs: list[int]) -> None:
        """Rule "reservation depth": the first jobs that cannot start are head jobs; limits count running jobs."""
        depth = self.system.reservation_depth
        plans: list[Block] = []
        for j in jobs:
            if name := self.held_beside(j, []):
                self.hold(j, name)
                continue
            c, w = self.cores[j], self.walltime[j]
            blocks = [*self.expected(p), *self.out_of_service(p, j), *plans]
            if fits(self.capacity[p], blocks, c, self.now, w):
                self.begin(j, {p: c})
            elif (depth is None or len(plans) < depth) and c <= self.capacity[p] and self.may_be_head_job(j):
                instant = earliest(self.capacity[p], blocks, c, self.now, w)
                if instant < math.inf:  # rule "jobs without an instant"
                    self.planned[j] = p, instant
                    plans.append(Block(p, instant, instant + w, c))

    def planning_pass(self) -> None:
        """Rules of "top jobs" and of "nodes": one pass, if limits or nodes are planned."""
        if self.shared:
            self.visit_planning(0, sorted(self.waiting, key=self.list_key))
            return
        self.move_eligible()
        self.visit_reserved_planning()
        lists = list(range(self.pool))
        if self.pool_cores:  # rule "partitions of nodes"
            lists.insert(0 if self.nodes_combined else self.pool, self.pool)
        for partition in lists:
            if partition == self.pool:
                jobs = sorted((j for j in self.waiting if self.eligible(j)), key=self.pool_key)
            else:
                jobs = sorted((j for j in self.waiting if self.home(j) == partition), key=self.list_key)
            self.visit_planning(partition, jobs)

    def visit_planning(self, partition: int, jobs: list[int]) -> None:
        """Rules "visit of a list" and "top job": go once through the list of a partition."""
        found = False
        for j in jobs:
            if found and not self.has_idle_cores(partition, j) and not self.remembers:
                continue
            held = self.held_at(self.now, j) if self.plans_limits else self.held(j)
            if held and self.home(j) == partition:
                self.hold(j, held)
            cores_of = None if held else self.place_at_turn(partition, j)
            if cores_of is not None:
                self.begin_on_nodes(j, cores_of)
            elif not found and (self.plans_limits or not held) and self.may_be_top_job(partition, j):
                places = self.places(partition, j)
                shadow = min((t for t in self.instants() if self.may_start_at(t, j, places)), default=math.inf)
                if shadow == math.inf:
                    continue  # rule "jobs without an instant"
                found = True
                self.planned[j] = partition, shadow
                self.promise(j, shadow, self.take(self.may_take(shadow, j, places), self.cores[j]))
                if not self.system.backfill:
                    break

    def visit_reserved_planning(self) -> None:
        for g in sorted((j for j in self.waiting if self.home(j) == RESERVED), key=lambda j: self.place[j]):
            held = self.held_at(self.now, g) if self.plans_limits else self.held(g)
            if held:
                self.hold(g, held)
                if not self.plans_limits:
                    continue
            usable = self.usable(g)
            if sum(self.capacity[partition] for partition in usable) < self.cores[g]:
                return  # rule "waiting without reservation"
            shadow = min((t for t in self.instants() if self.may_start_at(t, g, usable)), default=math.inf)
            if shadow == math.inf:
                return  # rule "jobs without an instant"
            cores_of = self.shares_at(shadow, g, usable)
            if shadow == self.now:
                self.begin_on_nodes(g, cores_of)
                continue
            self.planned[g] = RESERVED, shadow
            self.promise(g, shadow, cores_of)
            return

    def shares_at(self, instant: int, g: int, usable: list[int]) -> list[int]:
        """Rules "shares of a reservation" and "nodes of a reservation": the reservation's cores by node."""
        idle = self.may_take(instant, g, usable)
        if self.by_nodes:
            return self.take(idle, self.cores[g])
        shares = [self.cores[g] * here // sum(idle) for here in idle]
        by_idle = sorted(usable, key=lambda partition: (-idle[partition], partition))
        for partition in by_idle[: self.cores[g] - sum(shares)]:
            shares[partition] += 1
        return shares

    def places(self, partition: int, j: int) -> list[int]:
        """Return the partitions on which the list of `partition` plans its head job j."""
        if partition == self.pool and self.nodes_combined and not self.shared:
            return [self.queue_index[j], self.pool]
        return [partition]

    def may_be_top_job(self, partition: int, j: int) -> bool:
        fits_there = self.cores[j] <= sum(self.capacity[place] for place in self.places(partition, j))
        return fits_there and self.may_be_head_job(j)

    def place_at_turn(self, partition: int, j: int) -> list[int] | None:
        """Return the cores by node that j takes if it starts now at its turn in a list, else None."""
        c = self.cores[j]
        most = self.may_take(self.now, j, self.places(partition, j))
        if sum(most) >= c:
            return self.take(most, c)
        if self.shared or partition != self.pool or not self.combined or self.nodes_combined:
            return None
        own = self.queue_index[j]  # rule "combined placement"; partitions are nodes here
        beside = min(c - 1, self.may_take(self.now, j, [own])[own])
        if beside >= 1 and c - beside <= most[self.pool]:
            return [beside if node == own else c - beside if node == self.pool else 0 for node in range(self.pool + 1)]
        return None

    def begin_on_nodes(self, j: int, cores_of: list[int]) -> None:
        self.promises = [promise for promise in self.promises if promise.job != j]
        self.nodes_of[j] = cores_of
        cores_on: dict[int, int] = {}
        for (partition, _), cores in zip(self.nodes, cores_of, strict=True):
            if cores:
                cores_on[partition] = cores_on.get(partition, 0) + cores
        self.begin(j, cores_on)

    def promise(self, j: int, shadow: int, cores_of: list[int]) -> None:
        self.head_jobs.add(j)
        self.promises.append(Promise(j, shadow, shadow + self.walltime[j], cores_of))

    def instants(self) -> set[int]:
        """Return the instants at which a plan may begin: now, and the ends of jobs, windows and promises."""
        ends = [self.expected_end(r) for r in self.running] + [d.known_end for d in self.known()]
        return {self.now} | {end for end in ends if end < math.inf} | {p.end for p in self.promises}

    def moments(self, instant: int, j: int) -> list[int]:
        """Return the moments in [instant, instant + walltime) at which more cores may be taken."""
        begins = [promise.begin for promise in self.promises if promise.job != j]
        begins += [d.begin for d in self.known()]
        return [instant, *(begin for begin in begins if instant < begin < instant + self.walltime[j])]

    def may_start_at(self, instant: int, j: int, places: list[int]) -> bool:
        """Rules "planned top job" and "nodes of head jobs": whether j may start at an instant."""
        held = self.plans_limits and self.held_at(instant, j)
        return not held and sum(self.may_take(instant, j, places)) >= self.cores[j]

    def held_at(self, instant: int, j: int) -> str:
        """Rule "limits beside plans": a limit that j, started at this instant, would exceed at any moment, or ""."""
        if not self.limited:
            return ""
        for moment in self.moments(instant, j):
            promised = {p.job for p in self.promises if p.job != j and p.begin <= moment < p.end}
            others = [*self.running_after(moment), *promised]
            ends = {r.job: self.expected_end(r) for r in self.running} | {j: instant + self.walltime[j]}
            for k in promised:
                ends[k] = max(p.end for p in self.promises if p.job == k and p.begin <= moment < p.end)
            left = lambda k: ends[k] - moment  # noqa: B023, E731
            if name := self.above_limits(j, others) or self.throttles.above(j, others, left):
                return name
        return ""

    def may_take(self, instant: int, j: int, places: list[int]) -> list[int]:
        """Rule "nodes in order": the cores by node that j may take throughout its walltime from an instant on."""
        idle = [self.idle_nodes(moment, j) for moment in self.moments(instant, j)]
        return [
            max(0, min(cores)) if partition in places else 0
            for (partition, _), *cores in zip(self.nodes, *idle, strict=True)
        ]

    def idle_nodes(self, moment: int, j: int) -> list[int]:
        """Return the idle cores by node at a moment, by expected ends and the plans of other head jobs."""
        taken = [self.nodes_of[k] for k in self.running_after(moment)]
        taken += [p.cores_of for p in self.promises if p.job != j and p.begin <= moment < p.end]
        known = [d for d in self.known() if d.begin <= moment < d.known_end and not self.may_use(j, d)]
        lost = [self.taken_by(d) for d in known]
        return [
            size - sum(cores[node] for cores in taken) - sum(cores.get(node, 0) for cores in lost)
            for node, (_, size) in enumerate(self.nodes)
        ]

    def take(self, most: list[int], cores: int) -> list[int]:
        """Rule "nodes in order": take `cores` from the first node on, at most `most` of each."""
        taken = []
        for here in most:
            taken.append(min(here, cores - sum(taken)))
        return taken

    def may_be_head_job(self, j: int) -> bool:
        """Whether j has waited for the reservation delay, which only a shared machine has."""
        delayed = self.shared and self.system.backfill
        return not delayed or self.now >= self.submit[j] + self.system.reserve_after

    def may_start(self, partition: int, j: int, cores: int) -> bool:
        return self.may_take_now(partition, j) >= cores

    def may_take_now(self, partition: int, j: int) -> int:
        """Rule "shadow time": cores that j can take now, beside the reservation and any other waiting head job."""
        head_jobs = [self.head_job_of[partition]] if partition in self.head_job_of else []
        blocks = self.promised(partition, j) + [b for k, b in head_jobs if k != j and k in self.waiting]
        return free_throughout(self.capacity[partition], blocks, self.now, self.walltime[j])

    def placement(self, partition: int, j: int) -> dict[int, int] | None:
        """Return the cores by partition with which j may start now, at its turn in a list, else None."""
        c = self.cores[j]
        if self.typed:
            return {partition: c} if self.find_on_types(partition, j) else None
        if self.placed:
            return {partition: c} if self.may_start(partition, j, c) and self.find_on_nodes(partition, j) else None
        if self.may_start(partition, j, c):
            return {partition: c}
        if self.shared or partition != self.pool or not self.combined:
            return None
        own = self.queue_index[j]  # rule "combined placement"
        most = min(c - 1, self.may_take_now(own, j))
        if most >= 1 and self.may_start(self.pool, j, c - most):
            return {own: most, self.pool: c - most}
        return None

    # --- nodes of several types

    def idle_on_types(
        self, partition: int, place: Taken, moment: int, head: tuple[int, int, Taken] | None, j: int = -1
    ) -> bool:
        """Whether a place on a partition is idle at a moment, by expected ends and the plan of the head job.

        With windows, also by those that job j may not use.
        """
        taken = self.lost_on_types(j, moment) if self.goes_round and j >= 0 else place
        for k in self.running_after(moment):
            taken = both(taken, self.places_of[k][self.place_on_types[k]])
        if head is not None and head[0] <= moment < head[1]:
            taken = both(taken, head[2])
        if self.goes_round and j >= 0:
            return fits_beside(place, taken, self.types_there[partition])
        here = {name for name, _ in self.types_there[partition]}
        return fits_on({what: n for what, n in taken.items() if what[0] in here}, self.types_there[partition])

    def has_cores(self, partition: int, j: int) -> bool:
        """Rule "windows by totals": whether the cores of the running jobs and of j are at most the partition's."""
        running = sum(r.cores_on.get(partition, 0) for r in self.running)
        return running + self.cores[j] <= self.capacity[partition]

    def find_on_types(self, partition: int, j: int) -> bool:
        """Rule "start at a place": choose the first place where j may start now; return whether there is one."""
        head_job = self.head_job_of.get(partition, (-1,))[0]
        head = self.typed_heads[partition] if head_job in self.waiting else None
        moments = [self.now]
        if head is not None and self.now < head[0] < self.now + self.walltime[j]:
            moments.append(head[0])
        moments += self.begins(self.now, self.now + self.walltime[j] - 1)
        if self.goes_round and not self.has_cores(partition, j):
            return False
        for k, place in self.open_places(j):
            if all(self.idle_on_types(partition, place, moment, head, j) for moment in moments):
                self.place_on_types[j] = k
                return True
        return False

    def open_places(self, j: int) -> list[tuple[int, Taken]]:
        """Return the places, by number, that j may have now."""
        its = [*enumerate(self.places_of[j])]
        return [its[self.place_on_types[j]]] if self.goes_back(j) else its

    def plan_on_types(self, partition: int, j: int) -> float:
        """Rule "planned place": find the first instant and place for the head job, and reserve them."""
        for instant in sorted(self.ends()):
            moments = [instant, *self.begins(instant, instant + self.walltime[j] - 1)]
            for _, place in self.open_places(j):
                if all(self.idle_on_types(partition, place, moment, None, j) for moment in moments):
                    self.typed_heads[partition] = (instant, instant + self.walltime[j], place)
                    return instant
        return math.inf

    # --- nodes of several types, each by itself

    def where(self, partition: int, j: int, left: list[Node], named: dict[int, int] | None = None) -> list[int | None]:
        left = [node if p == partition else {} for p, node in zip(self.nodes_in, left, strict=True)]
        if self.goes_back(j):
            return self.own_nodes(j, left)
        of = self.system, self.queue_index[j], self.requests[j], self.cores[j], left
        return first_nodes(*of, named) if named else find_nodes(*of)

    def own_nodes(self, j: int, left: list[Node]) -> list[int | None]:
        """Rule "same nodes again": the nodes of a suspended job, or [None] if they have no room for it."""
        on = self.on_nodes[j]
        types = [each for each, _ in nodes_of(self.system.node_types)]
        whole = [node for node in {*on} - {None} if has_alone(types[node], self.requests[j])]
        its_own = all(left[node]["no job"] == 1 for node in whole)
        shared = all(left[node]["not alone"] == 1 for node in {*on} - {None, *whole})
        beside = less(self.system, left, self.requests[j], self.cores[j], on)
        fits = all(amount >= 0 for node in beside for amount in node.values())
        return on if its_own and shared and fits else [None]

    def put_on_nodes(self, j: int, on: list[int | None]) -> None:
        self.on_nodes[j] = on
        self.place_on_types[j] = next((node for node in on if node is not None), -1)

    def left_on_nodes(self, moment: int, head: tuple[int, int, int, list[int | None]] | None) -> list[Node]:
        """Return the resources left on each node at a moment, by expected ends and the plan of the head job."""
        left = idle(self.system)
        for k in self.running_after(moment):
            left = less(self.system, left, self.requests[k], self.cores[k], self.on_nodes[k])
        if head is not None and head[0] <= moment < head[1]:
            left = less(self.system, left, self.requests[head[2]], self.cores[head[2]], head[3])
        return left

    def find_on_nodes(self, partition: int, j: int) -> bool:
        """Rule "start on nodes": place a job that may start now; return whether it may."""
        head_job = self.head_job_of.get(partition, (-1,))[0]
        head = self.nodes_heads[partition] if head_job in self.waiting else None
        left = self.left_on_nodes(self.now, head)
        if head is not None and self.now < head[0] < self.now + self.walltime[j]:
            then = self.left_on_nodes(head[0], head)
            left = [{what: min(one[what], other[what]) for what in one} for one, other in zip(left, then, strict=True)]
        on = self.where(partition, j, self.in_service(j, left, self.now, self.now + self.walltime[j]))
        if None in on and on is not self.on_nodes[j]:  # a copy may have no node by rule "nodes of a state"
            return False
        self.put_on_nodes(j, on)
        return True

    def plan_on_nodes(self, partition: int, j: int, by_cores: float) -> float:
        """Rule "planned nodes": find the first instant and nodes for the head job, and reserve them."""
        for instant in sorted(self.ends()):
            left = self.in_service(j, self.left_on_nodes(instant, None), instant, instant + self.walltime[j])
            on = self.where(partition, j, left)
            if instant >= by_cores and (None not in on or on is self.on_nodes[j]):
                self.nodes_heads[partition] = (instant, instant + self.walltime[j], j, on)
                return instant
        return math.inf

    # --- reports on a pass

    def lacks(self, j: int) -> str:
        """Return a text of the resources that a job lacks on types of nodes, or "" if none."""
        home, queue = self.home(j), self.queue_index[j]
        if self.typed:
            place = self.places_of[j][0]
            idle_now = dict(self.types_there[home])
            for k in self.running_after(self.now):
                for what, amount in self.places_of[k][self.place_on_types[k]].items():
                    idle_now[what] = idle_now.get(what, 0) - amount
            lacking = [what for what, amount in place.items() if amount > idle_now.get(what, 0)]
            return " and ".join(f"{place[name, of]} {of} of {name.partition(' of ')[0]}" for name, of in lacking)
        left = self.left_on_nodes(self.now, None)
        for chunk in kinds(self.requests[j], self.cores[j]) if self.placed else ():
            of = self.system, queue, self.requests[j], chunk
            here = sum(room(*of, left[n], n, []) for n in range(len(left)) if self.nodes_in[n] == home)
            if here < chunk.count:
                words = " with ".join(f"{n} {name}" for name, n in of_one(chunk).items())
                words += "".join(f" on {feature}" for feature in sorted(chunk.features))
                return f"{chunk.count} times {words} on one node each, of which {here} are idle"
        return ""

    def fits_in_service(self, j: int) -> bool:
        """Whether a job fits now on nodes of several types, without regard to the plans of others."""
        home = self.home(j)
        if self.placed:
            left = self.in_service(j, self.left_on_nodes(self.now, None), self.now, self.now + self.walltime[j])
            return None not in self.where(home, j, left)
        moments = [self.now, *self.begins(self.now, self.now + self.walltime[j] - 1)]
        its = self.places_of[j]
        return any(all(self.idle_on_types(home, place, moment, None, j) for moment in moments) for place in its)

    def schedule(self) -> NaiveSchedule:
        names = self.system.partition_names
        return NaiveSchedule(
            start=self.start,
            placement=[{names[partition]: n for partition, n in cores_on.items()} for cores_on in self.cores_on],
            came=self.submit,
            place=self.place_on_types if self.system.node_types else None,
            end=self.end,
            interruptions=self.interruptions,
        )

    def held_now(self, j: int) -> str:
        """Return the limit that holds j in this pass, or ""."""
        if self.plans_limits:
            return self.held_at(self.now, j)
        return self.held_beside(j, []) if self.by_queues else self.held(j)

    def obstacle(self, j: int, rows: Sequence[int]) -> tuple[str, str]:
        """Return kind and text of the reason that j did not start in this pass; texts number job k as ``rows[k]``."""
        if j not in self.waiting:
            by = f"kept out by {self.kept_by.get(j)}" if j in self.outside else "it waits for other jobs to end"
            return "order", by
        if name := self.held_by.get(j) or self.held_now(j):
            return "limit", f"held by {name}"
        home = self.home(j)
        plans = " and ".join(
            f"job {rows[k]} is planned at {instant}" for k, (_, instant) in self.planned.items() if k != j
        )
        own = [instant for k, (_, instant) in self.planned.items() if k == j]
        plans = plans or "no job is planned"
        if home == RESERVED:
            return "reservation", f"it is to start at {own[0]}" if own else f"no reservation is made for it: {plans}"
        if not self.has_idle_cores(self.pool if self.pool_cores and self.eligible(j) else home, j):
            return "capacity", f"{self.idle[home]} cores are idle on {self.system.partition_names[home]}"
        if not self.system.backfill:
            return "order", f"none goes before another: {plans}"
        if any(k != j and on != RESERVED for k, (on, _) in self.planned.items()):
            return "head job", plans
        if RESERVED in [on for on, _ in self.planned.values()]:
            return "reservation", plans
        if own:
            return "capacity", f"it is to start at {own[0]}"
        return "order", "its turn does not come in this pass"

    # --- reservations

    def visit_reserved(self) -> None:
        for g in sorted((j for j in self.waiting if self.home(j) == RESERVED), key=lambda j: self.place[j]):
            if name := self.held(g):
                self.hold(g, name)
                continue
            usable = self.usable(g)
            if sum(self.capacity[partition] for partition in usable) < self.cores[g]:
                return  # rule "waiting without reservation"
            instant, shares = self.divide(g, usable)
            if instant == math.inf:
                return  # rule "jobs without an instant"
            if instant == self.now:
                self.begin(g, shares)
                continue
            end = instant + self.walltime[g]
            self.reservation = [Block(partition, instant, end, cores) for partition, cores in shares.items()]
            self.head_jobs.add(g)
            self.planned[g] = RESERVED, instant
            return

    def usable(self, g: int) -> list[int]:
        """Rule "usable partitions": those that no starving job before g closes."""
        blockers = [j for j in self.waiting if self.starves(j) and self.place[j] < self.place[g]]
        closed = {self.home(j) for j in blockers}
        return [partition for partition in range(len(self.capacity)) if partition not in closed]

    def divide(self, g: int, usable: list[int]) -> tuple[float, dict[int, int]]:
        """Rule "shares of a reservation": the instant T of the reserved list's head job, and its nonzero shares."""
        need = self.cores[g]
        blocks = {partition: self.expected(partition) + self.out_of_service(partition, g) for partition in usable}
        ends = {b.end for partition in usable for b in blocks[partition] if self.now < b.end < math.inf}
        for instant in sorted({self.now} | ends):
            free = {p: free_throughout(self.capacity[p], blocks[p], instant, self.walltime[g]) for p in usable}
            if sum(free.values()) >= need:
                break
        else:
            return math.inf, {}
        shares = {partition: need * free[partition] // sum(free.values()) for partition in usable}
        by_free = sorted(usable, key=lambda partition: (-free[partition], partition))  # the pool is last
        for partition in by_free[: need - sum(shares.values())]:
            shares[partition] += 1
        return instant, {partition: cores for partition, cores in shares.items() if cores}


def with_windows(workload: Workload, system: System, state: State | None) -> tuple[System, State | None]:
    """Rule "windows of a system": move the windows of the system to the state."""
    if not system.windows or not len(workload):
        return system, state
    if state is None:
        state = State(min(workload.submit.tolist()), [2**62] * len(workload))
    state = State(state.begin, state.start, state.placement, state.nodes, [*state.windows, *system.windows])
    return replace(system, windows=()), state


#: Simulates the jobs of these rows on a machine of their own up to an instant; infinity for the remaining jobs.
Simulated = Callable[[list[int], float, Workload, System, State | None], NaiveSchedule]


def simulate(workload: Workload, system: System, state: State | None = None) -> NaiveSchedule:
    """Simulate a shared, partitioned or hybrid machine."""
    return simulate_by(lambda _, __, *of: to_the_end(Simulation(*of)), workload, system, state)


def simulate_by(simulated: Simulated, workload: Workload, system: System, state: State | None) -> NaiveSchedule:
    """Simulate each reservation by `simulated`, then the remaining jobs."""
    system, state = with_windows(workload, system, state)
    if state is None:
        return simulated(list(range(len(workload))), math.inf, workload, system, None)
    return simulate_apart(workload, system, state, simulated)


def to_the_end(simulation: Any) -> NaiveSchedule:
    for _ in simulation.passes():
        pass
    return simulation.schedule()


def simulate_apart(workload: Workload, system: System, state: State, simulated: Simulated) -> NaiveSchedule:
    """Rule "windows of a queue": simulate each reservation, then the remaining jobs."""
    n = len(workload)
    start, length = state.start.tolist(), workload.effective_runtime.tolist()
    submit = workload.submit.tolist()
    left = [j for j in range(n) if start[j] >= state.begin or start[j] + length[j] > state.begin]
    names = system.partition_names
    own_names = [names[0 if system.is_whole else queue] for queue in workload.queue.tolist()]
    placement = [{name: int(cores)} for name, cores in zip(own_names, workload.cores, strict=True)]  # of ended jobs
    for j, other in workload.after.tolist():  # rule "dependencies of jobs", for ended ones
        if start[j] >= state.begin and other not in left:
            submit[j] = max(submit[j], start[other] + length[other])
    waits = [pair for pair in workload.after.tolist() if start[pair[0]] >= state.begin and pair[1] in left]
    workload = replace(workload, submit=submit, after=waits)
    came, part = list(submit), [()] * n  # start of each wait, and the reservation that ran it
    place = [-1 if system.places_chunks else 0] * n
    for queue in sorted({window.queue for window in state.windows if window.queue is not None}):
        own = [window for window in state.windows if window.queue == queue and window.end > state.begin]
        if not own:
            continue
        end = max(window.end for window in own)
        if system.node_types:
            before = list(left)
            simulate_on_types(workload, system, state, own, left, start, place, simulated)
            for j in set(before) - set(left):
                part[j] = (queue,)
                placement[j] = _reserved_place(int(workload.cores[j]), max(start[j], state.begin), own, system)
            for j in left:
                if workload.queue[j] == queue and start[j] >= state.begin and machine_of(system, own) is not None:
                    submit[j] = max(submit[j], end)
            continue

        def size(instant: int, own: list[Window] = own) -> int:
            return sum(sum(lost_by(w, system).values()) for w in own if w.begin <= instant < w.end)

        most = max(size(window.begin) for window in own)
        if not most:
            continue
        its = [j for j in left if workload.queue[j] == queue and workload.cores[j] <= most]
        if sum(workload.cores[j] for j in its if start[j] < state.begin) > size(state.begin):
            its = [j for j in its if start[j] >= state.begin]
        edges = sorted({state.begin, end} | {edge for window in own for edge in (window.begin, window.end)})
        gaps = [Window(a, b, most - size(a)) for a, b in itertools.pairwise(edges) if size(a) < most]
        gaps.append(Window(end, end + 2**31))
        alone = replace(
            system,
            cores=most,
            mode="multiqueue" if system.mode == "multiqueue" else "shared",
            queues=[replace(each, cores=(1, 2**31 - 1)) for each in system.queues],
            pool=None,
            reserve="cores" if system.reserve == "nodes" else system.reserve,
        )
        inner = State(state.begin, state.start[its], windows=gaps)
        found = simulated(its, end, workload.take(np.array(its, int)), alone, inner)
        for k, j in enumerate(its):
            if found.start[k] < end:
                start[j] = found.start[k]
                left.remove(j)
                part[j] = (queue,)
                placement[j] = _reserved_place(int(workload.cores[j]), max(start[j], state.begin), own, system)
        for j in left:
            if workload.queue[j] == queue and start[j] >= state.begin:
                submit[j] = max(submit[j], end)
    rest = replace(workload, submit=submit).take(np.array(left, int))
    found = simulated(left, math.inf, rest, system, state.take(np.array(left, int)).without_queue_reservations())
    end = [begin + seconds for begin, seconds in zip(start, length, strict=True)]
    for k, j in enumerate(left):
        start[j], placement[j] = found.start[k], found.placement[k]
        end[j] = found.end[k] if found.end else start[j] + length[j]
        place[j] = found.place[k] if found.place else 0
    for j, other in workload.after.tolist():
        if part[j] == part[other]:
            came[j] = max(came[j], end[other] if other in left else start[other] + length[other])
    interruptions = [[left[k], *when] for k, *when in found.interruptions or ()]
    places = place if system.node_types else None
    return NaiveSchedule(start, placement, came, places, end, interruptions)


def machine_of(system: System, own: list[Window]) -> System | None:
    """Rule "nodes for a queue": the machine of the nodes in a queue's windows; None without nodes."""
    most = {each.name: max(nodes_at(system, own, w.begin)[each.name] for w in own) for each in system.node_types}
    types = [replace(each, nodes=most[each.name]) for each in system.node_types if most[each.name]]
    if not types:
        return None
    queues = []
    for each in system.queues:
        names = each.node_types and [name for name in each.node_types if most[name]]
        queues.append(replace(each, cores=(1, 2**31 - 1), node_types=names))
    there = {name for each in types for name, _ in each.resources}
    throttles = []
    for each in system.throttles:
        kept = replace(each, max_run_resources=[(name, n) for name, n in each.max_run_resources if name in there])
        throttles += [kept] if kept.limits else []
    cores = sum(each.nodes * each.cores for each in types)
    alone = {"mode": "shared", "pool": None, "cores": cores}
    return replace(system, node_types=types, queues=queues, throttles=throttles, **alone)


def typed_nodes(system: System) -> list[tuple[int, NodeType]]:
    """Rule "partitions by type": return partition and type of each node."""
    return [
        (p, each) for p in range(len(system.partition_names)) for each in types_on(system, p) for _ in range(each.nodes)
    ]


def nodes_at(system: System, own: list[Window], instant: int) -> dict[str, int]:
    """Return the number of nodes of each type in these windows at an instant."""
    names = [each.name.partition(" of ")[0] for _, each in typed_nodes(system)]
    nodes = [names[node] for w in own if w.begin <= instant < w.end for node in closed_nodes(w, system)]
    return {each.name: nodes.count(each.name) for each in system.node_types}


def simulate_on_types(workload, system, state, own, left, start, place, simulated) -> None:
    """Rule "nodes for a queue": simulate its jobs that fit on its machine, and remove the started ones from `left`."""
    alone = machine_of(system, own)
    if alone is None:
        return
    queue, end, most = own[0].queue, max(window.end for window in own), {t.name: t.nodes for t in alone.node_types}
    its = []
    for j in left:
        request = workload.requests[workload.request[j]] if workload.request[j] >= 0 else None
        if alone.queues[queue].exclusive:
            request = tuple(replace(each, exclusive=True) for each in request or [Chunk(int(workload.cores[j]), 1)])
        if workload.queue[j] == queue and can_run(alone, queue, request, int(workload.cores[j])):
            its.append(j)
    size = {each.name: each.cores for each in system.node_types}
    in_force = sum(size[name] * count for name, count in nodes_at(system, own, state.begin).items())
    if sum(workload.cores[j] for j in its if start[j] < state.begin) > in_force:
        its = [j for j in its if start[j] >= state.begin]
    gaps = [Window(end, end + 2**31)]
    for low, high in itertools.pairwise(sorted({state.begin} | {edge for w in own for edge in (w.begin, w.end)})):
        there = nodes_at(system, own, low)
        gone = {name: count - there[name] for name, count in most.items() if count > there[name]}
        gaps += [Window(low, high, node_types=gone)] if gone else []
    inner = State(state.begin, state.start[its], windows=gaps)
    found = simulated(its, end, workload.take(np.array(its, int)), alone, inner)
    for k, j in enumerate(its):
        if found.start[k] < end:
            start[j], place[j] = found.start[k], found.place[k]
            left.remove(j)


def _reserved_place(cores: int, instant: int, own: list[Window], system: System) -> dict[str, int]:
    names, nodes = system.partition_names, sizes_of_nodes(system, by_node=system.reserves_nodes)
    if system.node_types:
        nodes = [(p, each.cores) for p, each in typed_nodes(system)]
    found: dict[str, int] = {}
    for window in own:
        if window.begin <= instant < window.end:
            if system.node_types:
                lost = {node: nodes[node][1] for node in closed_nodes(window, system)}
            else:
                lost = lost_by(window, system)
            for node, here in lost.items():
                taken = min(here, cores - sum(found.values()))
                if taken:
                    name = names[nodes[node][0]]
                    found[name] = found.get(name, 0) + taken
    return found
