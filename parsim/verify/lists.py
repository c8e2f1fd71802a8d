"""Replay of a schedule of waiting lists: a shared, a partitioned or a hybrid machine.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from fractions import Fraction

from parsim.fairshare import FAIRSHARE
from parsim.system import LIMITS, System
from parsim.verify.beginning import Beginning
from parsim.verify.fairshare import NAMES as SHARE_NAMES
from parsim.verify.fairshare import Uses, rate_of
from parsim.verify.formula import compile_formula
from parsim.verify.needs import there_is
from parsim.verify.orders import STATIC, Path, Ratio, Value, WaitingList, by_ratio
from parsim.verify.partition import Partition
from parsim.verify.qos import Classes
from parsim.verify.replay import Replay
from parsim.verify.rules import ALL, RESERVED, Jobs, Placement
from parsim.verify.violation import Discrepancy, Violation

NO_JOB = -1  #: of an event that is none of a job
NO_SHARES = (0.0,) * len(SHARE_NAMES)


class ListReplay(Replay):
    """A replay in which jobs wait in lists, one for each partition, the pool and the advance reservations."""

    jobs: Jobs

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, beginning)
        self.system = system
        self.partitions = list(map(Partition, system.partition_names, system.partition_cores))
        self.pool = jobs.pool
        self.combined = system.pool is not None and system.pool.placement == "combined"
        self.waiting: set[int] = set()
        self.head_jobs: set[int] = set()  #: found in this pass, and not started since
        self.first_since: dict[int, int] = {}  #: of the first job of the list; where nothing is reserved
        self.reserved: list[int] = []
        self.in_pool: list[int] = []  #: jobs of the pool's list
        self.at_home = list(jobs.home)  #: with the moves made so far
        self.outside: list[int] = []  #: kept out of the lists
        self.kept_by: dict[int, str] = {}  #: by what, at the last event
        self.happened = False  #: whether there is an event but for a start a second ago
        #: Instants that are events, whatever happens.
        self.known = {max(self.now, instant) for instant in jobs.submitted}
        self.known |= {instant for quota in jobs.quotas for instant, _ in quota.changes if instant > self.now}
        self.known |= set() if beginning is None else set(beginning.instants())
        self._set_limits()
        self._set_lists()

    def _set_limits(self) -> None:
        queues = self.system.queues
        self.limits = [(q.max_run, q.max_run_cores, q.max_user_run, q.max_user_cores) for q in queues]
        self.throttles = self.jobs.throttles
        self.classes = Classes(self.system)
        for_all = self.throttles is not None or bool(self.jobs.quotas)
        self.limited = [for_all or any(limit is not None for limit in limits) for limits in self.limits]
        self.in_use = [0] * len(self.jobs.quotas)  #: of each quota by running jobs
        self.used: dict[tuple[int, int], list[int]] = {}  #: running jobs and cores by (queue, user or `ALL`)

    def _set_lists(self) -> None:
        jobs, order = self.jobs, self.system.order
        ratio: Ratio | None = None
        value: Value | None = None
        submit, walltime, cores = jobs.submit, jobs.walltime, jobs.cores
        if order == "lxf":  # (wait + w) / w sorts like wait / w
            ratio = lambda job, now: (now - submit[job], walltime[job])  # noqa: E731
        elif order == "wfp3":
            ratio = lambda job, now: ((now - submit[job]) ** 3 * cores[job], walltime[job] ** 3)  # noqa: E731
        elif order not in STATIC and order != FAIRSHARE:
            value = self._formula(order)
        self.uses: Uses | None = None  #: where the order reads what users have used
        if any(name in order for name in (FAIRSHARE, *SHARE_NAMES, "active_jobs")):
            self.uses = Uses(self.system.fairshare, jobs.user_name, self.now)
            self.rates = [self._rate(job) for job in range(len(jobs.row))]
        # Rule 5 needs the held jobs of every pass, but only a formula uses eligible_time.
        reads_waits = "eligible_time" in order or "qos_target_factor" in order
        self.tracked = value is not None and reads_waits and any(self.limited)
        self.held_before: list[int] = []
        ranks = sorted({queue.priority for queue in self.system.queues}, reverse=True)
        rank = [ranks.index(queue.priority) for queue in self.system.queues]
        shared = self.system.mode == "shared"
        level = [rank[q] if shared else 0 for q in jobs.queue]
        path: Path | None = None
        if self.uses and order == FAIRSHARE:
            path = self.uses.path_of(jobs.user_name)
        self.lists = [WaitingList(order, level, walltime, ratio, value, path) for _ in self.partitions]

    def _rate(self, job: int) -> int | Fraction:
        jobs = self.jobs
        number = int(jobs.workload.request[jobs.row[job]])
        request = jobs.workload.requests[number] if number >= 0 else ()
        return rate_of(self.system, jobs.queue[job], jobs.qos_name[job], jobs.cores[job], request)

    def _formula(self, text: str) -> Value:
        jobs = self.jobs
        formula = compile_formula(text)
        priority = [float(queue.priority) for queue in self.system.queues]
        self.held_time = [0] * len(jobs.row)
        takes = [jobs.takes(job) for job in range(len(jobs.row))]
        period = self.system.priority_calc_period

        def value(job: int, now: int) -> float:
            since = now % period if period else 0  # rule 6: the last instant of the period
            eligible_time = max(now - since - jobs.submit[job] - self.held_time[job], 0)
            walltime, cores = float(jobs.walltime[job]), float(jobs.cores[job])
            uses = self.uses.values(jobs.user_name[job], now) if self.uses else NO_SHARES
            worth = self.classes.values(jobs.qos_name[job], float(eligible_time), walltime)
            active = self.uses.active.get(jobs.user_name[job], 0.0) if self.uses else 0.0
            own = (priority[jobs.queue[job]], float(eligible_time), walltime, cores, 0.0)
            return formula((*own, *uses, active, *worth, *takes[job]))

        return value

    # Events

    def _events(self) -> Iterator[tuple[int, int, int]]:
        yield from super()._events()
        for kind, column in ((2, self.jobs.starve), (3, self.jobs.eligible)):
            for job, instant in enumerate(column):
                if instant <= self.jobs.start[job]:
                    yield instant, kind, job
        yield from ((instant, 4, NO_JOB) for instant in self._calculations())
        if self.system.keeps_out:  # rule 48
            yield from ((start + 1, 5, job) for start, job in self._starts())

    def _calculations(self) -> Iterator[int]:
        """Yield the multiples of `priority_calc_period` at which jobs run and jobs wait (rule 5)."""
        formula = self.system.formula
        period = self.system.priority_calc_period if formula is not None and formula.uses_eligible_time else 0
        starts, ends, submits = self._counted()
        first = min(submits, default=0)
        for instant in range(first + -first % period, max(starts, default=first) + 1, period) if period else ():
            begun = bisect_left(starts, instant)
            if bisect_left(ends, instant) < begun < bisect_left(submits, instant):
                yield instant

    def _counted(self) -> tuple[list[int], list[int], list[int]]:
        """When jobs begin to run, cease to, and come to wait."""
        return sorted(self.jobs.start), sorted(self.jobs.end), sorted(self.jobs.submit)

    def _happen(self, kind: int, job: int) -> None:
        self.happened |= kind < 5
        if kind < 2 or (kind < 4 and job not in self.outside):
            (self._end, self._submit, self._starve, self._become_eligible)[kind](job)

    def _resume(self, job: int) -> None:
        jobs = self.jobs
        for index, cores in jobs.placement[job]:
            self.partitions[index].occupy(jobs.start[job] + jobs.walltime[job], cores)
        self._count(job, 1)
        self._charge(job, 1)

    def _end(self, job: int) -> None:
        jobs = self.jobs
        for partition, cores in jobs.placement[job]:
            self.partitions[partition].vacate(jobs.start[job] + jobs.walltime[job], cores)
        self._count(job, -1)
        self._charge(job, -1)

    def _submit(self, job: int) -> None:
        if self.system.keeps_out:
            insort(self.outside, job)
        else:
            self._enter(job)

    def _let_in(self) -> None:
        """Rule 47: let jobs into their lists, in the order of their submission."""
        for job in list(self.outside):
            self.kept_by[job] = "" if self.throttles is None else self.throttles.kept_out(job, self.waiting)
            if not self.kept_by[job]:
                self.outside.remove(job)
                self._enter(job)
                if self.jobs.starve[job] <= self.now:
                    self._starve(job)
                if self.jobs.eligible[job] <= self.now:
                    self._become_eligible(job)

    def _enter(self, job: int) -> None:
        home = self.at_home[job]
        self.waiting.add(job)
        if home == RESERVED:
            insort(self.reserved, job)
        else:
            self.lists[home].add(job)
            if home == self.pool:
                insort(self.in_pool, job)

    def _starve(self, job: int) -> None:
        if self.at_home[job] != RESERVED:
            self.lists[self.at_home[job]].starve(job)

    def _become_eligible(self, job: int) -> None:
        insort(self.in_pool, job)
        if self.jobs.moves(job):
            self.lists[self.at_home[job]].remove(job)
            self.at_home[job] = self.pool
            self.lists[self.pool].add(job)
            if self.jobs.starve[job] <= self.now:
                self.lists[self.pool].starve(job)

    def _begin(self, job: int) -> None:
        jobs, home = self.jobs, self.at_home[job]
        self.due.discard(job)
        self.waiting.discard(job)
        self.head_jobs.discard(job)
        for partition in self.partitions:
            if partition.head_job == job:
                partition.abandon_head_job()
        if job in self.outside:
            self.outside.remove(job)
        elif home == RESERVED:
            del self.reserved[bisect_left(self.reserved, job)]
        else:
            self.lists[home].remove(job)
            if home == self.pool or jobs.eligible[job] <= self.now:
                del self.in_pool[bisect_left(self.in_pool, job)]
        for index, cores in jobs.placement[job]:
            self.partitions[index].occupy(self.now + jobs.walltime[job], cores)
        self._count(job, 1)
        self._charge(job, 1)

    def _charge(self, job: int, sign: int) -> None:
        if self.uses:
            self.uses.charge(self.jobs.user_name[job], sign * self.rates[job], self.now, sign)

    def _count(self, job: int, sign: int) -> None:
        jobs = self.jobs
        if self.throttles is not None:
            (self.throttles.running.add if sign > 0 else self.throttles.running.discard)(job)
        if self.limited[jobs.queue[job]]:
            for user in {ALL, jobs.user[job]}:
                used = self.used.setdefault((jobs.queue[job], user), [0, 0])
                used[0] += sign
                used[1] += sign * jobs.cores[job]
        for k, wants in enumerate(jobs.wants):
            self.in_use[k] += sign * wants.get(job, 0)

    # One pass

    def _check_pass(self) -> list[Violation]:
        if self.tracked:
            for job in self.held_before:
                self.held_time[job] += self.now - self.before
        if self.system.keeps_out:
            if not (self.happened or self.outside or self.now in self.known):
                return [self._violation("event", job, "starts where no event is") for job in sorted(self.due)]
            self.happened = False
            self._let_in()
        self.held_before = list(self.outside) if self.tracked else []
        if not self.waiting or not self._matters():
            kept_out = sorted(self.due.intersection(self.outside))
            return [self._violation("order", job, "starts though it is kept out of its list") for job in kept_out]
        if self.uses:
            self.uses.begin_pass()
        self.head_jobs.clear()
        for partition in self.partitions:
            partition.forget_promises()
        try:
            self._visit_reserved()
            for index in range(len(self.partitions)):
                if index != self.pool:
                    self._visit_list(index)
            self._visit_pool()
        except Discrepancy as wrong:
            return [self._violation(wrong.rule, wrong.job, wrong.message)]
        return [
            self._violation("order", job, "starts though its turn does not come in this pass")
            for job in sorted(self.due)
        ]

    def _matters(self) -> bool:
        """Whether a job can start in this pass, or whether it counts otherwise."""
        return self.tracked or self.system.reserves_nothing or any(partition.idle for partition in self.partitions)

    def _held(self, job: int) -> str:
        """Rules 4, 41 and 45: what holds `job`, counting the head jobs that wait; empty if nothing does."""
        jobs, queue = self.jobs, self.jobs.queue[job]
        if not self.limited[queue]:
            return ""
        limits, user = self.limits[queue], jobs.user[job]
        for of_user, first in [(ALL, 0)] + [(user, 2)] * (user >= 0):
            running, cores = self.used.get((queue, of_user), (0, 0))
            others = [other for other in self.head_jobs if other != job and jobs.queue[other] == queue]
            counted = [job, *(other for other in others if of_user == ALL or jobs.user[other] == user)]
            running, cores = running + len(counted), cores + sum(jobs.cores[each] for each in counted)
            for which, used in ((first, running), (first + 1, cores)):
                most = limits[which]
                if most is not None and used > most and not self._is_exempt(job, LIMITS[which]):
                    return LIMITS[which]
        others = [other for other in self.head_jobs if other != job]
        for quota, wants, in_use in zip(jobs.quotas, jobs.wants, self.in_use, strict=True):
            if job in wants and in_use + sum(wants.get(each, 0) for each in (job, *others)) > there_is(quota, self.now):
                return quota.name
        return self._throttled(job)

    def _is_exempt(self, job: int, limit: str) -> bool:
        return self.classes.is_exempt(self.jobs.qos_name[job], limit)

    def _throttled(self, job: int) -> str:
        """Rule 45: the throttle that holds `job`, counting the head jobs that wait; empty if none does."""
        if self.throttles is None:
            return ""
        jobs, now = self.jobs, self.now
        ends = {other: jobs.start[other] + jobs.walltime[other] for other in self.throttles.running}
        ends |= {other: now + jobs.walltime[other] for other in {job, *self.head_jobs}}
        return self.throttles.above(job, ends, now, ends)

    def _pass_over(self, job: int, partitions: Iterable[int]) -> None:
        """`job` is held by its limits: it must not start on `partitions` in this visit."""
        if job in self.due and any(partition in partitions for partition, _ in self.jobs.placement[job]):
            raise Discrepancy("limit", job, "starts though its limits hold it, counting the head jobs that wait")

    def _turns(self, index: int, ordered: list[int]) -> Iterator[tuple[int, int]]:
        """Yield each job of a list whose turn comes and that no limit holds, behind the place of the next one."""
        for at, job in enumerate(ordered, start=1):
            if not self._held(job):
                yield at, job
                continue
            self._pass_over(job, (index,))
            if self.tracked and self.at_home[job] == index:
                self.held_before.append(job)

    def _must_start_on(self, job: int, placement: Placement, later: Iterable[int]) -> None:
        """Start `job`, or raise: the rules start it now on `placement`, before the jobs `later` in its list."""
        here = self._describe(placement)
        if job in self.due and sorted(self.jobs.placement[job]) != sorted(placement):
            rule = "shares" if len(placement) > 1 else "placement"
            there = self._describe(self.jobs.placement[job])
            raise Discrepancy(rule, job, f"starts on {there}, but its turn comes on {here}")
        self._must_start(job, later, f" on {here}")

    def _describe(self, placement: Placement) -> str:
        return " and ".join(f"{cores} cores of {self.partitions[partition].name}" for partition, cores in placement)

    def _visit_list(self, index: int) -> None:
        """One list on one set of cores."""
        jobs, partition = self.jobs, self.partitions[index]
        if not (partition.idle or self.tracked or any(self.limited) or self.system.reserves_nothing):
            return  # no job can start, and no limit counts the head job
        ordered = self.lists[index].ordered(self.now)
        none_waits = True
        for at, job in enumerate(ordered, start=1):
            cores, has_head_job = jobs.cores[job], partition.head_job >= 0
            if has_head_job and cores > partition.idle and not self.tracked:
                if not partition.idle:
                    break
                continue
            if self._held(job):
                self._pass_over(job, (index,))
                if self.tracked:
                    self.held_before.append(job)
                continue
            end = self.now + jobs.walltime[job]
            if cores <= partition.startable(end):
                self._must_start_on(job, ((index, cores),), ordered[at:])
                continue
            if job in self.due and jobs.placement[job] == ((index, cores),):
                raise Discrepancy(partition.obstacle(end, cores), job, f"may not start on {partition.name} now")
            if self.system.reserves_nothing:
                if none_waits and self._stops(job):
                    break
                none_waits = False
            elif not has_head_job and self.now - jobs.submit[job] >= self.system.reservation_delay:
                self.head_jobs.add(job)
                partition.promise(job, cores, jobs.walltime[job], self.now)
                if not self.system.backfill:
                    break

    def _stops(self, job: int) -> bool:
        """Rule 39: whether a job that is the first of the list, and may not start, has been so for too long."""
        since = self.first_since.get(job, self.now)
        self.first_since = {job: since}
        return self.now - since >= self.system.reservation_delay

    def _visit_pool(self) -> None:
        """Eligible jobs by priority factor, on the pool and, combined, on their partitions too."""
        if self.pool < 0 or not self.partitions[self.pool].idle:
            return
        jobs, pool = self.jobs, self.partitions[self.pool]
        ordered = self._pool_order()
        for at, job in enumerate(ordered, start=1):
            if not pool.idle:
                break
            if self._held(job):
                self._pass_over(job, range(len(self.partitions)))
                continue
            cores, end = jobs.cores[job], self.now + jobs.walltime[job]
            placement = self._placement_from_pool(job, cores, end)
            if placement:
                self._must_start_on(job, placement, ordered[at:])
                continue
            if job in self.due:
                raise Discrepancy(pool.obstacle(end, cores), job, "may not start in the pool now")
            if pool.head_job < 0 and cores <= pool.cores:
                self.head_jobs.add(job)
                pool.promise(job, cores, jobs.walltime[job], self.now)
                if not self.system.backfill:
                    break

    def _pool_order(self) -> list[int]:
        jobs, now = self.jobs, self.now
        first: list[int] = []
        rest = self.in_pool
        if self.system.pool is not None and self.system.pool.starving_first:
            first = [job for job in rest if jobs.starve[job] <= now]
            rest = [job for job in rest if jobs.starve[job] > now]
        weight, queue = jobs.weight, jobs.queue

        def factor(job: int, now: int) -> tuple[int, int]:
            return (now - jobs.submit[job]) * weight[queue[job]], jobs.short_walltime[job]

        return first + by_ratio(rest, factor, now)

    def _placement_from_pool(self, job: int, cores: int, end: int) -> Placement | None:
        """Rule 17: wholly in the pool, else on its partition and the pool."""
        most = self.partitions[self.pool].startable(end)
        if cores <= most:
            return ((self.pool, cores),)
        if self.combined:
            own = self.jobs.queue[job]
            partition = self.partitions[own]
            taken = min(cores - 1, partition.startable(end, beside_head_job=partition.head_job != job))
            if taken >= 1 and cores - taken <= most:
                return ((own, taken), (self.pool, cores - taken))
        return None

    def _visit_reserved(self) -> None:
        """Rules 10, 13, 14: the reserved list, by submit."""
        jobs = self.jobs
        ordered = list(self.reserved)
        for at, job in enumerate(ordered, start=1):
            if self._held(job):
                self._pass_over(job, range(len(self.partitions)))
                continue
            cores = jobs.cores[job]
            usable = [index for index, waits in enumerate(self.lists) if min(waits.starving[:1], default=job) >= job]
            time = self._first_time(usable, cores)
            if time is None or time > self.now:
                if job in self.due:
                    when = "at no time" if time is None else f"at {time}"
                    raise Discrepancy("reservation", job, f"starts, but the usable partitions hold it {when}")
                if time is not None:
                    self.head_jobs.add(job)
                    for index, share in self._shares(usable, cores, time):
                        self.partitions[index].reserve(time, time + jobs.walltime[job], share)
                return
            self._must_start_on(job, self._shares(usable, cores, time), ordered[at:])

    def _first_time(self, usable: list[int], cores: int) -> int | None:
        """Earliest instant at which the usable partitions together have `cores` by expected ends."""
        left = sum(self.partitions[index].idle for index in usable)
        if left >= cores:
            return self.now
        if sum(self.partitions[index].cores for index in usable) < cores:
            return None
        for end, released in sorted(item for index in usable for item in self.partitions[index].running):
            left += released
            if left >= cores:
                return end
        return None

    def _shares(self, usable: list[int], cores: int, time: int) -> Placement:
        """Rule 13."""
        free = {index: self.partitions[index].available(time) for index in usable}
        total = sum(free.values())
        shares = {index: cores * free[index] // total for index in usable}
        left = cores - sum(shares.values())
        for index in sorted(usable, key=lambda index: (-free[index], index))[:left]:
            shares[index] += 1
        return tuple((index, share) for index, share in shares.items() if share)
