"""Throttles of the reference simulator: rules 44 and 45 of ``docs/reference/simulator.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from parsim.system import System
from parsim.workload import Workload

FIELDS = ("max_run", "max_run_cores", "max_run_core_seconds")


class NaiveThrottles:
    """What each job is limited by beside its queue."""

    def __init__(self, system: System, workload: Workload) -> None:
        self.throttles = system.throttles
        self.cores = [int(cores) for cores in workload.cores]
        users = [workload.user_name(user) if user >= 0 else None for user in workload.user.tolist()]
        groups = [workload.group_name(group) if group >= 0 else None for group in workload.group.tolist()]
        #: Whose a job is, by what a throttle is for: of all, of its user, of its group.
        self.whose = [{"": "", "user": user, "group": group} for user, group in zip(users, groups, strict=True)]
        self.queue = workload.queue.tolist()

    def count_together(self, each: str, queue: int | None, j: int, k: int) -> bool:
        return self.whose[j][each] == self.whose[k][each] and (queue is None or self.queue[k] == queue)

    def limit(self, field: str, each: str, queue: int | None, j: int) -> int | None:
        """Rule 44: the limit for those that job j counts among; of a name before that of each."""
        here = [t for t in self.throttles if t.each == each and t.queue == queue and getattr(t, field) is not None]
        for name in (self.whose[j][each], ""):
            for throttle in here:
                if throttle.name == name:
                    return getattr(throttle, field)
        return None

    def above(self, j: int, others: Iterable[int], left: Callable[[int], int]) -> bool:
        """Rule 45: whether j beside these others is above a limit; `left` gives the seconds that a job has left."""
        others = list(others)
        for each in ("", "user", "group"):
            if self.whose[j][each] is None:
                continue
            for queue in (None, self.queue[j]):
                mates = [j, *(k for k in others if self.count_together(each, queue, j, k))]
                amounts = {
                    "max_run": len(mates),
                    "max_run_cores": sum(self.cores[k] for k in mates),
                    "max_run_core_seconds": sum(self.cores[k] * left(k) for k in mates),
                }
                for field in FIELDS:
                    limit = self.limit(field, each, queue, j)
                    if limit is not None and amounts[field] > limit:
                        return True
        return False

    def kept_out(self, j: int, waiting: Iterable[int], running: Iterable[int]) -> bool:
        """Rule 47: whether j is kept out, where these wait in lists and these run."""
        waiting = list(waiting)
        in_lists = {"max_eligible": waiting, "max_queued": [*waiting, *running]}
        for each in ("", "user", "group"):
            if self.whose[j][each] is None:
                continue
            for queue in (None, self.queue[j]):
                for field, jobs in in_lists.items():
                    limit = self.limit(field, each, queue, j)
                    if limit is not None and sum(self.count_together(each, queue, j, k) for k in jobs) >= limit:
                        return True
        return False
