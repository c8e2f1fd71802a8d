"""Checks of what runs at an instant, each in one pass over the starts: cores, limits, nodes by type, partitions.

A job of a queue with a reservation may run there rather than on the machine: such queues are left to the replay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from parsim.model.node_types import Chunk, Request
from parsim.model.schedule import Schedule
from parsim.model.state import State
from parsim.model.system import LIMITS, System
from parsim.model.workload import Column, Workload
from parsim.naive.node_types import Taken, places, there_is, types_on
from parsim.naive.simulator import RESERVED, Simulation
from parsim.naive.throttles import NaiveThrottles
from parsim.verify.columns import cores_by_partition, first_excess
from parsim.verify.interruptions import by_run
from parsim.verify.starts import placement_of
from parsim.verify.violation import Violation

Group = TypeVar("Group")  #: the jobs that count together under a limit


@dataclass(frozen=True)
class Runs:
    """The runs on the machine: jobs, or their parts between interruptions, each a job of `workload`."""

    row: Column  #: the job of each run
    workload: Workload
    schedule: Schedule
    held: NDArray[np.bool_]  #: runs that must respect limits; the others began before the state

    @classmethod
    def of(cls, workload: Workload, schedule: Schedule, state: State | None) -> Runs:
        """Return the runs of a schedule that begins with a state, without those of queues with a reservation."""
        row, jobs, runs = by_run(workload, schedule)
        if state is None:
            return cls(row, jobs, runs, np.ones(row.size, dtype=np.bool_))
        apart = [window.queue for window in state.windows if window.queue is not None]
        chosen = np.flatnonzero(~np.isin(jobs.queue, apart) & (runs.end > state.begin))
        number = {int(k): at for at, k in enumerate(chosen)}
        there = replace(
            runs,
            submit=runs.submit[chosen],
            start=runs.start[chosen],
            end=runs.end[chosen],
            cores=runs.cores[chosen],
            partition=runs.partition[chosen],
            shares={number[k]: each for k, each in runs.shares.items() if k in number},
            place=None if runs.place is None else runs.place[chosen],
            node=None if runs.node is None else runs.node[chosen],
        )
        return cls(row[chosen], jobs.take(chosen), there, there.start >= state.begin)

    def over(
        self, rows: list[int], groups: list[Group], amounts: list[int], most: dict[Group, int], held: list[bool]
    ) -> Iterator[tuple[int, Group, int]]:
        """Yield (row, group, amount in use) of the first start that brings each group above its `most`."""
        if not rows:
            return
        names = list(dict.fromkeys(groups))
        number = {name: k for k, name in enumerate(names)}
        at, group = np.array(rows), np.array([number[name] for name in groups])
        cap = np.array([most[name] for name in names])
        must = np.array(held) & self.held[at]
        start, end = self.schedule.start[at], self.schedule.end[at]
        for k, used in first_excess(group, np.array(amounts), start, end, cap, must):
            yield rows[k], groups[k], used

    def wrong(self, rule: str, row: int, message: str) -> Violation:
        """Return a violation by the run at a row, at its start."""
        return Violation(rule, int(self.row[row]), int(self.schedule.start[row]), message)


def check_capacity(runs: Runs, partition_cores: tuple[int, ...]) -> Iterator[Violation]:
    """Yield impossible placements, and the first start that brings each partition above its cores."""
    job, partition, cores, found = cores_by_partition(runs.schedule, len(partition_cores))
    yield from (wrong.at(runs.row) for wrong in found)
    names, groups = runs.schedule.partition_names, partition.tolist()
    rows, amounts, most = job.tolist(), cores.tolist(), dict(enumerate(partition_cores))
    for row, p, used in runs.over(rows, groups, amounts, most, [True] * len(rows)):
        yield runs.wrong("capacity", row, f"brings {names[p]} to {used} cores in use, of {most[p]}")


def check_limits(runs: Runs, system: System) -> Iterator[Violation]:
    """Yield the first start above each limit of a queue, of its jobs together and of each user's."""
    workload, throttles = runs.workload, NaiveThrottles(system, runs.workload)
    queue, user, cores = (column.tolist() for column in (workload.queue, workload.user, workload.cores))
    for name in LIMITS:
        limit = [getattr(each, name) for each in system.queues]
        of_user = "user" in name
        rows = [j for j, q in enumerate(queue) if limit[q] is not None and not (of_user and user[j] < 0)]
        groups = [(queue[j], user[j] if of_user else -1) for j in rows]
        amounts = [cores[j] if name.endswith("cores") else 1 for j in rows]
        held = [not throttles.exempt(j, name) for j in rows]
        most = {group: limit[group[0]] for group in groups}
        for row, (q, whose), used in runs.over(rows, groups, amounts, most, held):
            of = (f"user {whose} in " if of_user else "") + f"queue {system.queues[q].name}"
            yield runs.wrong("limit", row, f"brings {of} to {used}, above {name} {limit[q]}")


def check_throttles(runs: Runs, system: System) -> Iterator[Violation]:
    """Yield the first start above each throttle of running jobs (rules of "throttles")."""
    throttles = NaiveThrottles(system, runs.workload)
    resources = sorted({name for throttle in system.throttles for name in dict(throttle.max_run_resources)})
    takes: list[dict[str, int]] = [defaultdict(int) for _ in range(len(runs.workload))]
    for j, parts in enumerate(throttles.parts):
        for name, amount in parts:
            takes[j][name] += amount
    for kind in throttles.counted:
        each, queue, qos = kind
        of_kind = [
            j
            for j in range(len(runs.workload))
            if throttles.whose[j][each] is not None
            and queue in (None, throttles.queue[j])
            and qos in ("", throttles.qos[j])
        ]
        for field, resource in [("max_run", ""), ("max_run_cores", ""), *(("max_run_resources", r) for r in resources)]:
            most: dict[str | None, int] = {}
            held = dict.fromkeys(of_kind, False)
            for j in of_kind:
                limit = throttles.limit(field, kind, j, resource)
                if limit is not None:
                    most[throttles.whose[j][each]] = limit
                    held[j] = not resource or takes[j][resource] > 0
            rows = [j for j in of_kind if throttles.whose[j][each] in most]
            amounts = [
                takes[j][resource] if resource else throttles.cores[j] if field == "max_run_cores" else 1 for j in rows
            ]
            groups: list[str | None] = [throttles.whose[j][each] for j in rows]
            for row, name, used in runs.over(rows, groups, amounts, most, [held[j] for j in rows]):
                of = f"{field}{'.' * bool(resource)}{resource} = {most[name]} of {throttles.called(kind, row)}"
                yield runs.wrong("limit", row, f"brings it to {used}, above {of}")


def check_quotas(runs: Runs) -> Iterator[Violation]:
    """Yield the first start that brings each quota above its amount then (rule "quotas and licences")."""
    start, end = runs.schedule.start.tolist(), runs.schedule.end.tolist()
    for quota in runs.workload.quotas:
        events = []
        for row, amount in zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True):
            events += [(end[row], 0, row, -amount), (start[row], 1, row, amount)]
        used = 0
        for instant, starts, row, amount in sorted(events):
            used += amount
            most = [quota.most, *(then for since, then in quota.changes if since <= instant)][-1]
            if starts and used > most and runs.held[row]:
                yield Violation("limit", int(runs.row[row]), instant, f"brings {quota.name} to {used}, of {most}")
                break


def check_types(runs: Runs, system: System) -> Iterator[Violation]:
    """Yield jobs without a place on nodes of several types, and the first start above each of their totals."""
    workload, schedule = runs.workload, runs.schedule
    chosen = schedule.node if system.places_chunks else schedule.place
    if chosen is None or chosen.shape != (len(workload),):
        yield Violation("job", -1, 0, f"no place for each of {len(workload)} jobs")
        return
    if system.places_chunks:
        return  # a replay finds the nodes
    rows: list[int] = []
    groups: list[tuple[str, str]] = []
    amounts: list[int] = []
    known: dict[tuple[int, int], list[Taken]] = {}
    for row, k in enumerate(chosen.tolist()):
        key = (
            int(workload.queue[row]),
            int(workload.request[row]) if workload.request[row] >= 0 else -int(workload.cores[row]),
        )
        if key not in known:
            known[key] = places(system, key[0], request_of(workload, system, row), int(workload.cores[row]))
        its, home = known[key], 0 if system.is_whole else key[0]
        if not 0 <= k < len(its):
            yield runs.wrong("placement", row, f"has place {k} of {len(its)}")
        elif schedule.partition[row] != home:
            yield runs.wrong("placement", row, f"has place {k}, which is on partition {home}")
        else:
            rows += [row] * len(its[k])
            groups += its[k]
            amounts += its[k].values()
    most: dict[tuple[str, str], int] = {}
    for partition in range(len(system.partition_names)):
        most |= there_is(types_on(system, partition))
    for row, (name, resource), used in runs.over(rows, groups, amounts, most, [True] * len(rows)):
        yield runs.wrong("capacity", row, f"brings {resource} of {name} to {used} in use, of {most[name, resource]}")


def request_of(workload: Workload, system: System, row: int) -> Request | None:
    """Return the request of a job, exclusive if its queue is (rule "exclusive nodes")."""
    request = workload.requests[workload.request[row]] if workload.request[row] >= 0 else None
    if system.queues[workload.queue[row]].exclusive:
        chunks = request or (Chunk(int(workload.cores[row]), 1),)
        request = tuple(replace(chunk, exclusive=True) for chunk in chunks)
    return request


def check_homes(runs: Runs, system: System) -> Iterator[Violation]:
    """Yield jobs that start on a wrong partition, or in the pool too early (rules of "partitions and pool")."""
    if system.mode == "shared":
        return
    rules = Simulation(replace(runs.workload.without_needs(), submit=runs.schedule.submit), system)
    for row in np.flatnonzero(runs.held).tolist():
        if problem := _misplaced(rules, row, set(placement_of(runs.schedule, row)), int(runs.schedule.start[row])):
            yield runs.wrong(problem[0], row, problem[1])


def _misplaced(rules: Simulation, j: int, there: set[int], start: int) -> tuple[str, str] | None:
    home, pool, system = rules.home(j), rules.pool, rules.system
    combines = rules.combined and there == {rules.queue_index[j], pool}
    if home == RESERVED:
        return None
    names = " and ".join(system.partition_names[partition] for partition in sorted(there))
    if home == pool:
        return None if there == {pool} or combines else ("placement", f"may run in the pool, but runs on {names}")
    eligible = rules.eligible_from(j)
    entered = eligible is not None and start >= eligible
    moves = rules.move and (rules.cores[j] <= rules.pool_cores or rules.nodes_combined)
    if there == {home} and not (entered and moves and not rules.nodes_combined):  # rule "moves to the pool"
        return None
    if pool not in there or not rules.pool_cores:
        return "placement", f"may not run on {names}"
    if not entered:
        when = "never" if eligible is None else f"from {eligible} on"
        return "pool", f"enters the pool, where it is eligible {when}"
    return None if there == {pool} or combines else ("placement", f"may not run on {names}")
