"""Compares the starts of a schedule with those of the reference simulator for the same jobs.

Both are equal up to the first difference, so that the simulator's state at that instant explains it. Later differences
may follow from the first, and are not reported.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from parsim.model.schedule import SPANNING, Schedule
from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import Column, Workload
from parsim.naive.multiqueue import Multiqueue
from parsim.naive.planning import NaivePlanner
from parsim.naive.simulator import RESERVED, NaiveSchedule, Simulation, simulate_by
from parsim.planning.plan import Policy
from parsim.verify.violation import Difference, Violation

Simulated = Simulation | Multiqueue | NaivePlanner


def check_starts(workload: Workload, system: System, schedule: Schedule, state: State | None) -> Iterator[Violation]:
    """Yield the first start that differs from the reference simulator's; if none does, differences in other columns."""

    def followed(rows: list[int], until: float, jobs: Workload, machine: System, inner: State | None) -> NaiveSchedule:
        of = Multiqueue if system.mode == "multiqueue" else Simulation
        simulation = of(jobs, machine, inner)
        for _ in follow(simulation, schedule, rows, until):
            pass
        return simulation.schedule()

    try:
        found = simulate_by(followed, workload, system, state)
    except Difference as wrong:
        yield wrong.violation
        return
    yield from _compare(workload, system, schedule, state, found)


def check_planned_starts(
    workload: Workload, cores: int, policy: Policy, schedule: Schedule, state: State | None
) -> Iterator[Violation]:
    """Yield the first difference from the plans of the reference planner."""
    planner = NaivePlanner(workload, cores, policy, state)
    try:
        for _ in follow(planner, schedule, [*range(len(workload))]):
            pass
    except Difference as wrong:
        yield wrong.violation


def follow(simulation: Simulated, schedule: Schedule, rows: list[int], until: float = math.inf) -> Iterator[None]:
    """Run a simulation, yielding after each pass, as long as job k starts when row ``rows[k]`` of the schedule does.

    Nothing is compared from `until` on. A finite `until` is the end of a reservation, whose partitions are not those of
    the schedule.

    Raises
    ------
    Difference
        The first one.
    """
    number = {row: k for k, row in enumerate(rows)}
    starts: dict[int, list[int]] = defaultdict(list)
    stops: dict[int, list[int]] = defaultdict(list)
    for k, row in enumerate(rows):
        if k not in simulation.began:
            starts[int(schedule.start[row])].append(k)
    for job, begin, end in zip(*(column.tolist() for column in schedule.interruptions[:3]), strict=True):
        if job in number:
            starts[end].append(number[job])
            stops[begin].append(number[job])
    instants = sorted(starts.keys() | stops.keys(), reverse=True)
    for _ in simulation.passes():
        now = simulation.now
        while instants and instants[-1] < min(now, until):
            instant = instants.pop()
            job = rows[(starts[instant] or stops[instant])[0]]
            raise Difference("event", job, instant, f"starts or is preempted where no event is; the next is at {now}")
        if now < until:
            _same_starts(simulation, schedule, rows, starts[now], placed=until == math.inf)
            _same_stops(simulation, rows, stops[now])
            if instants and instants[-1] == now:
                instants.pop()
        yield


def placement_of(schedule: Schedule, row: int) -> dict[int, int]:
    """Return the cores of a job on each partition, by index, without zeros."""
    if schedule.partition[row] != SPANNING:
        return {int(schedule.partition[row]): int(schedule.cores[row])}
    return {partition: int(cores) for partition, cores in enumerate(schedule.shares[row]) if cores}


def _same_starts(simulation: Simulated, schedule: Schedule, rows: list[int], due: list[int], *, placed: bool) -> None:
    begun, now = simulation.begun, simulation.now
    more = [k for k in due if k not in begun]
    for k in begun:
        row = rows[k]
        here = _described(simulation.cores_on[k], schedule) if placed else "its reservation"
        if k not in due:
            before = _turns_before(simulation, k, more)
            if before is not None:
                raise Difference("reservation", rows[before], now, f"must wait: {simulation.obstacle(before, rows)[1]}")
            if more:
                raise Difference("order", row, now, f"must start on {here} before {[rows[j] for j in more]}")
            raise Difference("waiting", row, now, f"must start on {here}, and waits")
        there = placement_of(schedule, row)
        if placed and there != simulation.cores_on[k]:
            rule = "shares" if len(simulation.cores_on[k]) > 1 else "placement"
            message = f"starts on {_described(there, schedule)}, but its turn comes on {here}"
            raise Difference(rule, row, now, message)
    for k in more:
        rule, why = simulation.obstacle(k, rows)
        raise Difference(rule, rows[k], now, f"starts, and must wait: {why}")


def _turns_before(simulation: Simulated, k: int, others: list[int]) -> int | None:
    """Return the first of `others` in the reserved list, which goes before the list of job k; None without one."""
    if not isinstance(simulation, Simulation) or simulation.home(k) == RESERVED:
        return None
    return next((j for j in others if simulation.home(j) == RESERVED), None)


def _same_stops(simulation: Simulated, rows: list[int], due: list[int]) -> None:
    preempted = set(simulation.preempted) if isinstance(simulation, Simulation) else set()
    for k in sorted(preempted ^ set(due)):
        message = "is preempted, and had to go on" if k in due else "goes on, and had to be preempted"
        raise Difference("preemption", rows[k], simulation.now, message)


def _described(placement: dict[int, int], schedule: Schedule) -> str:
    names = schedule.partition_names
    return " and ".join(f"{cores} cores of {names[partition]}" for partition, cores in sorted(placement.items()))


def _compare(
    workload: Workload, system: System, schedule: Schedule, state: State | None, found: NaiveSchedule
) -> Iterator[Violation]:
    """Yield differences that no single pass shows: cores by partition, places, submits, ends, an interruption."""
    ended = np.zeros(len(workload), dtype=np.bool_)
    if state is not None:
        ended = (state.start < state.begin) & (state.start + workload.effective_runtime <= state.begin)
    nodes = schedule.node if system.places_chunks else schedule.place
    columns: list[tuple[str, Column | None, list[int] | None, str]] = [
        ("job", schedule.submit, found.came, "it came at"),
        ("end", schedule.end, found.end, "its end is"),
    ]
    if system.node_types:
        columns.append(("placement", nodes, found.place, "its place is"))
    for row in np.flatnonzero(~ended).tolist():
        time = int(schedule.start[row])
        there = {schedule.partition_names[p]: cores for p, cores in placement_of(schedule, row).items()}
        if there != found.placement[row]:
            yield Violation("placement", row, time, f"runs on {there}, not on {found.placement[row]}")
        for rule, column, right, what in columns:
            if right is not None and (column is None or column[row] != right[row]):
                yield Violation(rule, row, time, f"{what} {right[row]}, not {None if column is None else column[row]}")
    given, count = schedule.interruptions, 4 if system.node_types else 3
    here = sorted(zip(*(column.tolist() for column in (*given[:3], given.place)[:count]), strict=True))
    expected = sorted(tuple(each[:count]) for each in found.interruptions or [])
    for one, other in zip(here, expected, strict=False):
        if one != other:
            rule = "placement" if one[:3] == other[:3] else "preemption"
            yield Violation(rule, one[0], one[1], f"is interrupted as {one}, not as {other}")
            return
