"""Throttles of the reference simulator: names of rules refer to ``docs/reference/simulator.md``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from parsim.model.system import System
from parsim.model.workload import Workload

FIELDS = ("max_run", "max_run_cores", "max_run_core_seconds")
ENTERING = ("max_eligible", "max_queued")


class NaiveThrottles:
    """The limits on jobs beside those of their queue."""

    def __init__(self, system: System, workload: Workload) -> None:
        self.throttles = system.throttles
        self.counted = {(throttle.each, throttle.queue, throttle.qos) for throttle in self.throttles}
        self.cores = [int(cores) for cores in workload.cores]
        requests = [workload.requests[k] if k >= 0 else () for k in workload.request.tolist()]
        #: By job: (resource, amount) of each single chunk.
        self.parts = [
            [part for chunk in request for _ in range(chunk.count) for part in dict(chunk.resources).items()]
            for request in requests
        ]
        users = [workload.user_name(user) if user >= 0 else None for user in workload.user.tolist()]
        groups = [workload.group_name(group) if group >= 0 else None for group in workload.group.tolist()]
        self.qos = [workload.qos_name(qos) if qos >= 0 else None for qos in workload.qos.tolist()]
        #: By job: its owner by scope of a throttle: all jobs, its user, its group, its QOS.
        self.whose = [
            {"": "", "user": user, "group": group, "qos": qos}
            for user, group, qos in zip(users, groups, self.qos, strict=True)
        ]
        self.queue = workload.queue.tolist()
        self.exemptions = {qos.name: set(qos.exempt) for qos in system.qos}

    def exempt(self, j: int, field: str) -> bool:
        """Rule "exemptions by QOS": whether the QOS of job j is exempt from the limit `field`."""
        return bool({field, "all"} & self.exemptions.get(self.qos[j], set()))

    def count_together(self, kind: tuple[str, int | None, str], j: int, k: int) -> bool:
        each, queue, qos = kind
        if self.whose[j][each] != self.whose[k][each]:
            return False
        return queue in (None, self.queue[k]) and qos in ("", self.qos[k])

    def kinds(self, j: int) -> list[tuple[str, int | None, str]]:
        """Return the (scope, queue, QOS) combinations under which some throttle counts job j."""
        return [
            (each, queue, qos)
            for each in ("", "user", "group", "qos")
            if self.whose[j][each] is not None
            for queue in (None, self.queue[j])
            for qos in dict.fromkeys(("", self.qos[j] or ""))
            if (each, queue, qos) in self.counted
        ]

    def limit(self, field: str, kind: tuple[str, int | None, str], j: int, resource: str = "") -> int | None:
        """Rule "jobs of a throttle": the limit for job j's `kind`; a throttle with the owner's name comes first."""
        each, queue, qos = kind
        if each != "qos" and not qos and self.exempt(j, field):
            return None
        here = [t for t in self.throttles if (t.each, t.queue, t.qos) == (each, queue, qos)]
        for name in (self.whose[j][each], ""):
            for throttle in here:
                limit = dict(getattr(throttle, field)).get(resource) if resource else getattr(throttle, field)
                if throttle.name == name and limit is not None:
                    return limit
        return None

    def above(self, j: int, others: Iterable[int], left: Callable[[int], int]) -> str:
        """Rule "limits of a throttle": a limit that j and `others` exceed, or ""; `left`: seconds left of a job."""
        others = list(others)
        for kind in self.kinds(j):
            mates = [j, *(k for k in others if self.count_together(kind, j, k))]
            amounts = {
                "max_run": len(mates),
                "max_run_cores": sum(self.cores[k] for k in mates),
                "max_run_core_seconds": sum(self.cores[k] * left(k) for k in mates),
            }
            for field in FIELDS:
                limit = self.limit(field, kind, j)
                if limit is not None and amounts[field] > limit:
                    return f"{field} = {limit} of {self.called(kind, j)}"
            for resource in {name for name, _ in self.parts[j]}:
                taken = sum(amount for k in mates for name, amount in self.parts[k] if name == resource)
                limit = self.limit("max_run_resources", kind, j, resource)
                if limit is not None and taken > limit:
                    return f"max_run_resources.{resource} = {limit} of {self.called(kind, j)}"
        return ""

    def called(self, kind: tuple[str, int | None, str], j: int) -> str:
        """Return the name of the group of jobs that a `kind` counts with job j."""
        each, queue, qos = kind
        of = (f"{each} {self.whose[j][each]}" if each else "all") + (f" in qos {qos}" if qos else "")
        return of + ("" if queue is None else f" in queue {queue}")

    def kept_out(self, j: int, waiting: Iterable[int], running: Iterable[int], names: Iterable[str] = ENTERING) -> str:
        """Rule "admission to lists": the limit among `names` that keeps j out of the lists, or ""."""
        waiting = list(waiting)
        in_lists = {"max_eligible": waiting, "max_queued": [*waiting, *running]}
        for kind in self.kinds(j):
            for field in names:
                jobs = in_lists[field]
                limit = self.limit(field, kind, j)
                if limit is not None and sum(self.count_together(kind, j, k) for k in jobs) >= limit:
                    return f"{field} = {limit} of {self.called(kind, j)}"
        return ""
