"""Replay of a schedule: at each event instant, the pass that the rules demand against the starts found.

The schedule's past is trusted, and a pass is judged up to its first discrepancy, so that one mistake is
reported once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from parsim.system import LIMITS, System
from parsim.verify.formula import compile_formula
from parsim.verify.orders import STATIC, Line, Ratio, Value, by_ratio
from parsim.verify.part import Part
from parsim.verify.rules import RESERVED, Jobs, Placement
from parsim.verify.violation import Discrepancy, Violation


class Replay:
    """The machine as the schedule has it, instant by instant."""

    def __init__(self, jobs: Jobs, system: System) -> None:
        self.jobs, self.system = jobs, system
        self.now = self.before = 0
        self.parts = [Part(*both) for both in zip(system.part_names, system.part_cores, strict=True)]
        self.pool = jobs.pool
        self.combined = system.pool is not None and system.pool.placement == "combined"
        self.waiting: set[int] = set()
        self.due: set[int] = set()  #: jobs that the schedule starts at this instant, and that have not yet
        self.heads: set[int] = set()  #: found in this pass, and not started since
        self.reserved: list[int] = []
        self.in_pool: list[int] = []  #: jobs of the pool's list
        self.at_home = list(jobs.home)  #: with the moves made so far
        self._set_limits()
        self._set_lines()

    def _set_limits(self) -> None:
        queues = self.system.queues
        self.limits = [(q.max_run, q.max_run_cores, q.max_user_run, q.max_user_cores) for q in queues]
        self.limited = [any(limit is not None for limit in limits) for limits in self.limits]
        self.used: dict[tuple[int, int], list[int]] = {}  #: running jobs and cores by (queue, user); user -1: all

    def _set_lines(self) -> None:
        jobs, order = self.jobs, self.system.order
        ratio: Ratio | None = None
        value: Value | None = None
        submit, walltime, cores = jobs.submit, jobs.walltime, jobs.cores
        if order == "lxf":  # (wait + w) / w sorts like wait / w
            ratio = lambda job, now: (now - submit[job], walltime[job])  # noqa: E731
        elif order == "wfp3":
            ratio = lambda job, now: ((now - submit[job]) ** 3 * cores[job], walltime[job] ** 3)  # noqa: E731
        elif order not in STATIC:
            value = self._formula(order)
        # Rule 5 asks for the held jobs of every pass, but only a formula asks for eligible_time.
        self.tracked = value is not None and "eligible_time" in order and any(self.limited)
        self.held_before: list[int] = []
        ranks = sorted({queue.priority for queue in self.system.queues}, reverse=True)
        rank = [ranks.index(queue.priority) for queue in self.system.queues]
        shared = self.system.mode == "shared"
        level = [rank[q] if shared else 0 for q in jobs.queue]
        self.lines = [Line(order, level, walltime, ratio, value) for _ in self.parts]

    def _formula(self, text: str) -> Value:
        jobs = self.jobs
        formula = compile_formula(text)
        priority = [float(queue.priority) for queue in self.system.queues]
        self.held_time = [0] * len(jobs.row)

        def value(job: int, now: int) -> float:
            eligible_time = now - jobs.submit[job] - self.held_time[job]
            walltime, cores = float(jobs.walltime[job]), float(jobs.cores[job])
            return formula((priority[jobs.queue[job]], float(eligible_time), walltime, cores, 0.0))

        return value

    # Events

    def run(self) -> list[Violation]:
        """Go over all instants; return what is wrong, in order of time."""
        jobs, found = self.jobs, list[Violation]()
        happens: dict[int, list[tuple[int, int]]] = {}
        starts: dict[int, list[int]] = {}
        for job in range(len(jobs.row)):
            happens.setdefault(jobs.end[job], []).append((0, job))
            happens.setdefault(jobs.submit[job], []).append((1, job))
            starts.setdefault(jobs.start[job], []).append(job)
            for kind, instant in ((2, jobs.starve[job]), (3, jobs.eligible[job])):
                if instant <= jobs.start[job]:
                    happens.setdefault(instant, []).append((kind, job))
        for now in sorted(happens.keys() | starts.keys()):
            self.now = now
            for kind, job in sorted(happens.get(now, ())):
                (self._end, self._submit, self._starve, self._become_eligible)[kind](job)
            self.due = set(starts.get(now, ()))
            if now in happens:
                found += self._judge()
            else:
                found += [self._violation("event", job, "starts where no event is") for job in sorted(self.due)]
            for job in sorted(self.due):
                self._start(job, self.jobs.place[job])
            self.before = now
        return found

    def _end(self, job: int) -> None:
        jobs = self.jobs
        for part, cores in jobs.place[job]:
            self.parts[part].release(jobs.start[job] + jobs.walltime[job], cores)
        self._count(job, -1)

    def _submit(self, job: int) -> None:
        home = self.at_home[job]
        self.waiting.add(job)
        if home == RESERVED:
            insort(self.reserved, job)
        else:
            self.lines[home].add(job)
            if home == self.pool:
                insort(self.in_pool, job)

    def _starve(self, job: int) -> None:
        if self.at_home[job] != RESERVED:
            self.lines[self.at_home[job]].starve(job)

    def _become_eligible(self, job: int) -> None:
        insort(self.in_pool, job)
        if self.jobs.moves(job):
            self.lines[self.at_home[job]].remove(job)
            self.at_home[job] = self.pool
            self.lines[self.pool].add(job)
            if self.jobs.starve[job] <= self.now:
                self.lines[self.pool].starve(job)

    def _start(self, job: int, place: Placement) -> None:
        jobs, home = self.jobs, self.at_home[job]
        self.due.discard(job)
        self.waiting.discard(job)
        self.heads.discard(job)
        for part in self.parts:
            if part.head == job:
                part.abandon_head()
        if home == RESERVED:
            del self.reserved[bisect_left(self.reserved, job)]
        else:
            self.lines[home].remove(job)
            if home == self.pool or jobs.eligible[job] <= self.now:
                del self.in_pool[bisect_left(self.in_pool, job)]
        for index, cores in place:
            self.parts[index].occupy(self.now + jobs.walltime[job], cores)
        self._count(job, 1)

    def _count(self, job: int, sign: int) -> None:
        jobs = self.jobs
        if self.limited[jobs.queue[job]]:
            for user in {-1, jobs.user[job]}:
                used = self.used.setdefault((jobs.queue[job], user), [0, 0])
                used[0] += sign
                used[1] += sign * jobs.cores[job]

    # One pass

    def _judge(self) -> list[Violation]:
        if self.tracked:
            for job in self.held_before:
                self.held_time[job] += self.now - self.before
            self.held_before = []
        if not self.waiting or not (self.tracked or any(part.idle for part in self.parts)):
            return []
        self.heads.clear()
        for part in self.parts:
            part.forget_promises()
        try:
            self._visit_reserved()
            for index in range(len(self.parts)):
                if index != self.pool:
                    self._visit_line(index)
            self._visit_pool()
        except Discrepancy as wrong:
            return [self._violation(wrong.rule, wrong.job, wrong.message)]
        return [
            self._violation("order", job, "starts though its turn does not come in this pass")
            for job in sorted(self.due)
        ]

    def _violation(self, rule: str, job: int, message: str) -> Violation:
        return Violation(rule, self.jobs.row[job], self.now, message)

    def _held(self, job: int) -> str:
        """Rule 4: the first of `LIMITS` that holds `job`, counting the heads that wait; empty if none does."""
        jobs, queue = self.jobs, self.jobs.queue[job]
        if not self.limited[queue]:
            return ""
        user = jobs.user[job]
        limits = self.limits[queue]
        for who, first in ((-1, 0), (user, 2))[: 1 + (user >= 0)]:
            running, cores = self.used.get((queue, who), (0, 0))
            running, cores = running + 1, cores + jobs.cores[job]
            for head in self.heads:
                if head != job and jobs.queue[head] == queue and (who < 0 or jobs.user[head] == who):
                    running, cores = running + 1, cores + jobs.cores[head]
            for which, used in ((first, running), (first + 1, cores)):
                most = limits[which]
                if most is not None and used > most:
                    return LIMITS[which]
        return ""

    def _pass_over(self, job: int, parts: Iterable[int]) -> None:
        """`job` is held by its limits: it must not start on `parts` in this visit."""
        if job in self.due and any(part in parts for part, _ in self.jobs.place[job]):
            raise Discrepancy("limit", job, "starts though its limits hold it, counting the heads that wait")

    def _demand(self, job: int, place: Placement, rest: Iterable[int]) -> None:
        """`job` has to start now, on `place`; `rest` are the jobs that come after it in its list."""
        if job in self.due:
            if sorted(self.jobs.place[job]) != sorted(place):
                there, here = self._describe(self.jobs.place[job]), self._describe(place)
                rule = "shares" if len(place) > 1 else "placement"
                raise Discrepancy(rule, job, f"starts on {there}, but its turn comes on {here}")
            self._start(job, place)
            return
        others = [other for other in rest if other in self.due]
        if others:
            rows = [self.jobs.row[other] for other in others]
            raise Discrepancy("order", job, f"must start on {self._describe(place)} before {rows}")
        raise Discrepancy("waiting", job, f"must start on {self._describe(place)}, and waits")

    def _describe(self, place: Placement) -> str:
        return " and ".join(f"{cores} cores of {self.parts[part].name}" for part, cores in place)

    def _visit_line(self, index: int) -> None:
        """One list on one set of cores."""
        jobs, part = self.jobs, self.parts[index]
        if not (part.idle or self.tracked or any(self.limited)):
            return  # nobody can start, and no limit asks who is the head
        line = self.lines[index].ordered(self.now)
        for at, job in enumerate(line):
            cores, has_head = jobs.cores[job], part.head >= 0
            if has_head and cores > part.idle and not self.tracked:
                if not part.idle:
                    break
                continue
            if self._held(job):
                self._pass_over(job, (index,))
                if self.tracked:
                    self.held_before.append(job)
                continue
            end = self.now + jobs.walltime[job]
            if cores <= part.room(end):
                self._demand(job, ((index, cores),), line[at + 1 :])
                continue
            if job in self.due and jobs.place[job] == ((index, cores),):
                raise Discrepancy(part.obstacle(end, cores), job, f"may not start on {part.name} now")
            if not has_head and self.now - jobs.submit[job] >= self.system.patience:
                self.heads.add(job)
                part.promise(job, cores, jobs.walltime[job], self.now)
                if not self.system.backfill:
                    break

    def _visit_pool(self) -> None:
        """Eligible jobs by priority factor, on the pool and, combined, on their partitions too."""
        if self.pool < 0 or not self.parts[self.pool].idle:
            return
        jobs, pool = self.jobs, self.parts[self.pool]
        line = self._pool_line()
        for at, job in enumerate(line):
            if not pool.idle:
                break
            if self._held(job):
                self._pass_over(job, range(len(self.parts)))
                continue
            cores, end = jobs.cores[job], self.now + jobs.walltime[job]
            place = self._place_from_pool(job, cores, end)
            if place:
                self._demand(job, place, line[at + 1 :])
                continue
            if job in self.due:
                raise Discrepancy(pool.obstacle(end, cores), job, "may not start in the pool now")
            if pool.head < 0 and cores <= pool.cores:
                self.heads.add(job)
                pool.promise(job, cores, jobs.walltime[job], self.now)
                if not self.system.backfill:
                    break

    def _pool_line(self) -> list[int]:
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

    def _place_from_pool(self, job: int, cores: int, end: int) -> Placement | None:
        """Rule 17: wholly in the pool, else on its partition and the pool."""
        room = self.parts[self.pool].room(end)
        if cores <= room:
            return ((self.pool, cores),)
        if self.combined:
            own = self.jobs.queue[job]
            partition = self.parts[own]
            taken = min(cores - 1, partition.room(end, beside_head=partition.head != job))
            if taken >= 1 and cores - taken <= room:
                return ((own, taken), (self.pool, cores - taken))
        return None

    def _visit_reserved(self) -> None:
        """Rules 10, 13, 14: the reserved list, by submit."""
        jobs = self.jobs
        line = list(self.reserved)
        for at, job in enumerate(line):
            if self._held(job):
                self._pass_over(job, range(len(self.parts)))
                continue
            cores = jobs.cores[job]
            usable = [index for index, waits in enumerate(self.lines) if min(waits.starving[:1], default=job) >= job]
            time = self._first_time(usable, cores)
            if time is None or time > self.now:
                if job in self.due:
                    when = "at no time" if time is None else f"at {time}"
                    raise Discrepancy("reservation", job, f"starts, but the usable parts hold it {when}")
                if time is not None:
                    self.heads.add(job)
                    for index, share in self._shares(usable, cores, time):
                        self.parts[index].reserve(time, time + jobs.walltime[job], share)
                return
            self._demand(job, self._shares(usable, cores, time), line[at + 1 :])

    def _first_time(self, usable: list[int], cores: int) -> int | None:
        """Earliest instant at which the usable parts together have `cores` by expected ends."""
        left = sum(self.parts[index].idle for index in usable)
        if left >= cores:
            return self.now
        if sum(self.parts[index].cores for index in usable) < cores:
            return None
        for end, released in sorted(item for index in usable for item in self.parts[index].running):
            left += released
            if left >= cores:
                return end
        return None

    def _shares(self, usable: list[int], cores: int, time: int) -> Placement:
        """Rule 13."""
        free = {index: self.parts[index].available(time) for index in usable}
        total = sum(free.values())
        shares = {index: cores * free[index] // total for index in usable}
        left = cores - sum(shares.values())
        for index in sorted(usable, key=lambda index: (-free[index], index))[:left]:
            shares[index] += 1
        return tuple((index, share) for index, share in shares.items() if share)


def check_passes(jobs: Jobs, system: System) -> list[Violation]:
    """Judge every pass; the schedule's columns must be in order (`columns`, `Jobs.misplaced`)."""
    if not jobs.row:
        return []
    return Replay(jobs, system).run()
