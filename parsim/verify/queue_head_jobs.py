"""Replay of a schedule in which jobs are backfilled as Slurm does.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from parsim.system import System
from parsim.verify.beginning import FOR_EVER, Beginning
from parsim.verify.lists import ListReplay
from parsim.verify.rules import Jobs
from parsim.verify.violation import Discrepancy


class QueueHeadJobsReplay(ListReplay):
    """A replay in which the plans of all head jobs of a list count together, and nodes stay idle for them."""

    def __init__(self, jobs: Jobs, system: System, beginning: Beginning | None = None) -> None:
        super().__init__(jobs, system, beginning)
        self.plans: dict[int, tuple[int, int, int]] = {}  #: job -> from, to, cores, in the order they were made
        self.keeping: set[int] = set()  #: those of them for which a node stays idle

    def _taken(self, index: int) -> list[tuple[int, int, int]]:
        """From when to when the plans and the windows known take how many cores of a partition."""
        outages = [(out.begin, out.known_end, out.cores.get(index, 0)) for out in self._known()]
        return [*self.plans.values(), *outages]

    def _left(self, index: int, moment: int) -> int:
        """Cores that the expected ends, the plans and the windows leave at a moment."""
        taken = sum(cores for begin, end, cores in self._taken(index) if begin <= moment < end)
        return self.partitions[index].available(moment) - taken

    def _fits(self, index: int, job: int, begin: int, last: int) -> bool:
        """Whether its cores are left from `begin` to `last`, both included; they get fewer where a plan begins."""
        moments = [begin, *(other for other, _, _ in self._taken(index) if begin < other <= last)]
        return min(self._left(index, moment) for moment in moments) >= self.jobs.cores[job]

    def _idle(self, index: int) -> int:
        """Cores idle now that are in service."""
        lost = sum(out.cores.get(index, 0) for out in self._known() if out.begin <= self.now)
        return self.partitions[index].idle - lost

    def _may_start(self, index: int, job: int) -> bool:
        """Rule 28: it fits, its end included, and leaves a node idle for each head job that is to begin by then."""
        end = self.now + self.jobs.walltime[job]
        kept = 0
        for begin, _, _ in self.plans.values():
            if begin <= end:
                beside = [other for other in self.keeping if self.plans[other][0] <= begin < self.plans[other][1]]
                kept = max(kept, self.system.cores_per_node * len(beside))
        return self._idle(index) - kept >= self.jobs.cores[job] and self._fits(index, job, self.now, end)

    def _plan(self, index: int, job: int) -> bool:
        """Plan a head job at the earliest instant at which it fits; whether there is one (rule 31)."""
        ends = [end for end, _ in self.partitions[index].running] + [end for _, end, _ in self._taken(index)]
        length = self.jobs.walltime[job]
        instants = sorted({self.now, *(end for end in ends if self.now < end < FOR_EVER)})
        begin = next((instant for instant in instants if self._fits(index, job, instant, instant + length - 1)), None)
        if begin is None:
            return False
        self.plans[job] = (begin, begin + length, self.jobs.cores[job])
        self.keeping.add(job)
        return True

    def _visit_list(self, index: int) -> None:
        self._visit(index, self.lists[index].ordered(self.now))

    def _visit_pool(self) -> None:
        if self.pool >= 0:
            self._visit(self.pool, self._pool_order())

    def _visit(self, index: int, ordered: list[int]) -> None:
        """Rules 3 and 28."""
        jobs, partition = self.jobs, self.partitions[index]
        self.plans, self.keeping = {}, set()
        if not (partition.idle or self.tracked):
            return  # no job can start
        has_head_job: set[int] = set()
        for at, job in self._turns(index, ordered):
            if self._may_start(index, job):
                self._must_start_on(job, ((index, jobs.cores[job]),), ordered[at:])
                end = self.now + jobs.walltime[job]
                self.keeping -= {other for other, (begin, _, _) in self.plans.items() if end < begin}
                continue
            if job in self.due:
                rule = "capacity" if jobs.cores[job] > partition.idle else "head job"
                raise Discrepancy(rule, job, f"may not start on {partition.name} now")
            whose = self._whose(index, job, has_head_job)
            has_waited = self.now - jobs.submit[job] >= self.system.reservation_delay
            if has_waited and whose is not None and jobs.cores[job] <= partition.cores and self._plan(index, job):
                has_head_job.add(whose)

    def _whose(self, index: int, job: int, found: set[int]) -> int | None:
        """Return what would have this head job, besides the `found`; None if no more may be."""
        whose = self.jobs.queue[job] if self.system.mode == "shared" else index
        return None if whose in found else whose


class ManyHeadJobsReplay(QueueHeadJobsReplay):
    """A replay in which the first jobs of a list that wait for cores are its head jobs (rule 49)."""

    def _may_start(self, index: int, job: int) -> bool:
        last = self.now + self.jobs.walltime[job] - 1
        return self._idle(index) >= self.jobs.cores[job] and self._fits(index, job, self.now, last)

    def _whose(self, _: int, __: int, found: set[int]) -> int | None:
        depth = self.system.reservation_depth
        return len(found) if depth is None or len(found) < depth else None
