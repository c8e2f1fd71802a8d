"""Replay of a schedule of a machine that plans limits, or the cores of particular nodes, for its head jobs.

The numbered rules are those of ``docs/reference/simulator.md``. Nodes that are not told apart are one node a partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parsim.system import LIMITS, System
from parsim.verify.beginning import FOR_EVER, Beginning, Outage, nodes_of
from parsim.verify.lists import ListReplay
from parsim.verify.needs import plans_limits, there_is
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy

Cores = dict[int, int]  #: by node


@dataclass(frozen=True, slots=True)
class Plan:
    """When a head job is to run, and on which cores of which nodes."""

    job: int
    begin: int
    end: int
    cores: Cores


class TopJobReplay(ListReplay):
    """A replay in which the head job of each list has a plan, and every plan of a pass counts."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.nodes = nodes_of(system, by_node=system.reserves_nodes)  #: partition and cores of each
        self.on: dict[int, Cores] = {}  #: what each running job takes
        self.chosen: Cores = {}  #: what the job that starts at its turn takes
        self.plans: list[Plan] = []
        self.on_before: dict[int, Cores] = {}  #: `on` when the pass began
        self.plans_limits = plans_limits(jobs.quotas, system)

    def _resume(self, job: int) -> None:
        super()._resume(job)
        state = None if self.beginning is None else self.beginning.state
        named = state.nodes.get(self.jobs.row[job]) if state is not None and self.system.reserves_nodes else None
        if named:
            self.on[job] = dict(named)
            return
        idle, taken = [size for _, size in self.nodes], {}
        for cores_of in self.on.values():
            for node, here in cores_of.items():
                idle[node] -= here
        for partition, cores in self.jobs.placement[job]:
            left = cores
            for node, (index, _) in enumerate(self.nodes):
                if index == partition and left and idle[node] > 0:
                    taken[node] = min(left, idle[node])
                    left -= taken[node]
        self.on[job] = taken

    def _end(self, job: int) -> None:
        super()._end(job)
        del self.on[job]

    def _begin(self, job: int) -> None:
        self.plans = [plan for plan in self.plans if plan.job != job]
        super()._begin(job)
        wanted = dict(self.jobs.placement[job])
        if self._by_partition(self.chosen) != wanted:  # it starts otherwise than by the rules
            idle, self.chosen = self._left(self.now, job), {}
            for node, (index, _) in enumerate(self.nodes):
                self.chosen[node] = min(
                    idle[node], wanted.get(index, 0) - self._by_partition(self.chosen).get(index, 0)
                )
        self.on[job], self.chosen = self.chosen, {}

    def _by_partition(self, cores: Cores) -> Cores:
        found: Cores = {}
        for node, here in cores.items():
            if here:
                found[self.nodes[node][0]] = found.get(self.nodes[node][0], 0) + here
        return found

    # Plans

    def _expected_end(self, job: int) -> int:
        return self.jobs.start[job] + self.jobs.walltime[job]

    def _there(self, moment: int, job: int) -> list[tuple[int, Cores]]:
        """Jobs, other than `job`, that take cores at a moment: running by their expected ends, or planned."""
        running = [(other, cores) for other, cores in self.on.items() if self._expected_end(other) > moment]
        return running + [(p.job, p.cores) for p in self.plans if p.job != job and p.begin <= moment < p.end]

    def _left(self, moment: int, job: int) -> list[int]:
        left = [size for _, size in self.nodes]
        for _, cores in self._there(moment, job):
            for node, here in cores.items():
                left[node] -= here
        for outage in self._known():
            if outage.begin <= moment < outage.known_end and not self._may_use(job, outage):
                for node, here in outage.cores.items():
                    left[node] -= max(0, here - self._used(outage, node))
        return left

    def _used(self, outage: Outage, node: int) -> int:
        """Rule 33: what the jobs that may use a window, and ran when the pass began, have of a node of it."""
        past = max(self.now, outage.begin)
        return sum(
            cores.get(node, 0)
            for other, cores in self.on_before.items()
            if self._may_use(other, outage) and self._expected_end(other) > past
        )

    def _may_use(self, job: int, outage: Outage) -> bool:
        return outage.is_for(self.jobs.user[job], self.jobs.walltime[job])

    def _moments(self, begin: int, job: int) -> list[int]:
        end = begin + self.jobs.walltime[job]
        begins = {plan.begin for plan in self.plans if plan.job != job} | {outage.begin for outage in self._known()}
        return [begin, *(other for other in begins if begin < other < end)]

    def _room(self, begin: int, job: int, places: Iterable[int]) -> list[int]:
        """Rule 23: cores of each node of some partitions that a job may take throughout its walltime."""
        moments = [self._left(moment, job) for moment in self._moments(begin, job)]
        return [
            max(0, min(left)) if index in places else 0 for (index, _), *left in zip(self.nodes, *moments, strict=True)
        ]

    def _held(self, job: int) -> str:
        return self._held_from(self.now, job) if self.plans_limits else super()._held(job)

    def _held_from(self, begin: int, job: int) -> str:
        """Rule 22: the first of `LIMITS` that the job, begun then, would be above; empty if none."""
        if not self.limited[self.jobs.queue[job]]:
            return ""
        for moment in self._moments(begin, job):
            others = {other for other, _ in self._there(moment, job)}
            name = self._above(job, others)
            if not name and self.throttles is not None:
                ends = {other: self._expected_end(other) for other in self.on} | {job: begin + self.jobs.walltime[job]}
                for plan in sorted(self.plans, key=lambda plan: plan.end):
                    if plan.job != job and plan.begin <= moment < plan.end:
                        ends[plan.job] = plan.end
                name = self.throttles.above(job, others, moment, ends)
            if name:
                return name
        return ""

    def _above(self, job: int, others: set[int]) -> str:
        jobs, limits = self.jobs, self.limits[self.jobs.queue[job]]
        mates = [job, *(other for other in others if jobs.queue[other] == jobs.queue[job])]
        own = [mate for mate in mates if jobs.user[mate] == jobs.user[job]] if jobs.user[job] >= 0 else []
        used = (len(mates), sum(jobs.cores[k] for k in mates), len(own), sum(jobs.cores[k] for k in own))
        above = zip(LIMITS, limits, used, strict=True)
        found = [name for name, most, amount in above if most is not None and amount > most]
        found = [name for name in found if not self._is_exempt(job, name)]
        for quota, wants in zip(jobs.quotas, jobs.wants, strict=True):
            if job in wants and sum(wants.get(each, 0) for each in {job, *others}) > there_is(quota, self.now):
                found.append(quota.name)
        return found[0] if found else ""

    def _plan(self, job: int, places: list[int]) -> int | None:
        """Rules 21 and 24: the earliest instant at which the job may start on these partitions, None if never."""
        instants = {self.now, *map(self._expected_end, self.on), *(plan.end for plan in self.plans)}
        instants |= {outage.known_end for outage in self._known() if outage.known_end < FOR_EVER}
        for instant in sorted(instants):
            if self.plans_limits and self._held_from(instant, job):
                continue
            if sum(self._room(instant, job, places)) >= self.jobs.cores[job]:
                return instant
        return None

    @staticmethod
    def _first_nodes(most: list[int], cores: int) -> Cores:
        taken: Cores = {}
        for node, here in enumerate(most):
            if here > 0 and cores > 0:
                taken[node] = min(here, cores)
                cores -= taken[node]
        return taken

    # One pass

    def _visit_reserved(self) -> None:
        """Rules 10, 13, 14, 20 and 27. It is the first of a pass."""
        self.plans, self.on_before = [], dict(self.on)
        jobs = self.jobs
        ordered = list(self.reserved)
        for at, job in enumerate(ordered, start=1):
            if self._held(job):
                self._pass_over(job, range(len(self.partitions)))
                if self.tracked:
                    self.held_before.append(job)
                if not self.plans_limits:
                    continue
            usable = [index for index, waits in enumerate(self.lists) if min(waits.starving[:1], default=job) >= job]
            time = None
            if sum(self.partitions[index].cores for index in usable) >= jobs.cores[job]:
                time = self._plan(job, usable)
            if time is None or time > self.now:
                if job in self.due:
                    raise Discrepancy("reservation", job, "starts, but the usable partitions do not hold it now")
                if time is not None:
                    self._promise(job, time, self._divided(job, time, usable))
                return
            self._start(job, self._divided(job, time, usable), ordered[at:])

    def _divided(self, job: int, time: int, usable: list[int]) -> Cores:
        room, cores = self._room(time, job, usable), self.jobs.cores[job]
        if self.system.reserves_nodes:
            return self._first_nodes(room, cores)
        free = {node: room[node] for node, (index, _) in enumerate(self.nodes) if index in usable}
        shares = {node: cores * here // sum(free.values()) for node, here in free.items()}
        for node in sorted(free, key=lambda node: (-free[node], node))[: cores - sum(shares.values())]:
            shares[node] += 1
        return shares

    def _promise(self, job: int, begin: int, cores: Cores) -> None:
        self.plans.append(Plan(job, begin, begin + self.jobs.walltime[job], cores))
        self.head_jobs.add(job)

    def _start(self, job: int, cores: Cores, later: Iterable[int]) -> None:
        self.chosen = cores
        self._must_start_on(job, tuple(self._by_partition(cores).items()), later)

    def _visit_list(self, index: int) -> None:
        if index == 0 and self.system.takes_own_nodes:  # rule 26
            self._visit_planned(self.pool, self._pool_order())
        self._visit_planned(index, self.lists[index].ordered(self.now))

    def _visit_pool(self) -> None:
        if self.system.pool_cores and not self.system.takes_own_nodes:
            self._visit_planned(self.pool, self._pool_order())

    def _visit_planned(self, index: int, ordered: list[int]) -> None:
        """Rules 3 and 20."""
        jobs, partition, plans_limits = self.jobs, self.partitions[index], self.plans_limits
        alone = index == self.pool or not self.combined  # no other visit starts a job of this list here
        for at, job in enumerate(ordered, start=1):
            places, found = self._places(index, job), partition.head_job >= 0
            if found and not self.tracked and jobs.cores[job] > self._idle(index, job):
                continue
            held = self._held(job)
            if held:
                self._pass_over(job, (index,) if alone else ())
                if self.tracked and self.at_home[job] == index:
                    self.held_before.append(job)
            cores = None if held else self._place(index, job)
            if cores is not None:
                self._start(job, cores, ordered[at:])
                continue
            if alone and job in self.due and any(place == index for place, _ in jobs.placement[job]):
                rule = "capacity" if jobs.cores[job] > self._idle(index, job) else "head job"
                raise Discrepancy(rule, job, f"may not start on {partition.name} now")
            wide = jobs.cores[job] > sum(self.partitions[place].cores for place in places)
            delayed = self.now - jobs.submit[job] < self.system.reservation_delay
            if not found and (plans_limits or not held) and not wide and not delayed:
                begin = self._plan(job, places)
                if begin is None:
                    continue  # rule 31
                self._promise(job, begin, self._first_nodes(self._room(begin, job, places), jobs.cores[job]))
                partition.head_job = job
                if not self.system.backfill:
                    break

    def _idle(self, index: int, job: int) -> int:
        """Cores idle now on which the job may run that has its turn in the list of this partition."""
        own = self.combined and index == self.pool
        return self.partitions[index].idle + (self.partitions[self.jobs.queue[job]].idle if own else 0)

    def _places(self, index: int, job: int) -> list[int]:
        """Rule 26: the partitions on which the list of one plans a job."""
        if index == self.pool and self.system.takes_own_nodes:
            return [self.jobs.queue[job], index]
        return [index]

    def _place(self, index: int, job: int) -> Cores | None:
        """Rules 17, 23 and 26: what the job takes when it starts now at its turn in a list."""
        cores, room = self.jobs.cores[job], self._room(self.now, job, self._places(index, job))
        if sum(room) >= cores:
            return self._first_nodes(room, cores)
        if index != self.pool or not self.combined or self.system.takes_own_nodes:
            return None
        own = self.jobs.queue[job]
        beside = min(cores - 1, sum(self._room(self.now, job, [own])))
        if beside < 1 or cores - beside > sum(room):
            return None
        nodes = {place: node for node, (place, _) in enumerate(self.nodes)}
        return {nodes[own]: beside, nodes[self.pool]: cores - beside}
