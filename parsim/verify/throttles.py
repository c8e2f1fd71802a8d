"""Throttles, for the verifier: rules 44, 45, 51 and 73 of ``docs/reference/simulator.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from parsim.system import System
from parsim.throttles import THROTTLES
from parsim.verify.qos import Classes
from parsim.verify.replay import Columns
from parsim.workload import Workload

Key = tuple[str, str, int | None, str]  #: what each throttle is for, whose, in which queue, and of which QOS
_RESOURCE = "max_run_resources."  #: before the name of a resource, its limit


def _takes(workload: Workload, row: int) -> dict[str, int]:
    """Return what the chunks of a job take beside cores, of what it takes any."""
    found: dict[str, int] = {}
    for chunk in workload.requests[workload.request[row]] if workload.request[row] >= 0 else ():
        for name, amount in dict(chunk.resources).items():
            found[name] = found.get(name, 0) + chunk.count * amount
    return found


class Limited:
    """The throttles of each job, and the jobs that run under each.

    Attributes
    ----------
    running : set of int
    """

    def __init__(self, system: System, workload: Workload, jobs: Columns) -> None:
        self.jobs = jobs
        self.running: set[int] = set()
        self.of: list[list[tuple[Key, dict[str, int]]]] = []
        self.exempt: list[set[str]] = []  #: of each job, limits that are none for it but those of its QOS
        self.takes = [_takes(workload, row) for row in jobs.row]  #: beside cores, by resource
        classes = Classes(system)
        for row, queue, qos in zip(jobs.row, jobs.queue, jobs.qos_name, strict=True):
            whose = {"": ""}
            if workload.user[row] >= 0:
                whose["user"] = workload.user_name(int(workload.user[row]))
            if workload.group[row] >= 0:
                whose["group"] = workload.group_name(int(workload.group[row]))
            if qos:
                whose["qos"] = qos
            found: dict[Key, dict[str, int]] = {}
            named: dict[Key, dict[str, int]] = {}
            for throttle in system.throttles:
                if throttle.each not in whose or throttle.queue not in (None, queue) or throttle.qos not in ("", qos):
                    continue
                key: Key = (throttle.each, whose[throttle.each], throttle.queue, throttle.qos)
                limits = {name: getattr(throttle, name) for name in THROTTLES if getattr(throttle, name) is not None}
                limits |= {_RESOURCE + name: most for name, most in dict(throttle.max_run_resources).items()}
                if throttle.name == "":
                    found.setdefault(key, {}).update(limits)
                elif throttle.name == whose[throttle.each]:
                    named[key] = limits
            for key, limits in named.items():
                found[key] = found.get(key, {}) | limits
            self.of.append(list(found.items()))
            self.exempt.append({name for name in (*THROTTLES, _RESOURCE[:-1]) if classes.is_exempt(qos, name)})
        self.keys = [{key for key, _ in limits} for limits in self.of]

    def above(self, job: int, others: Iterable[int], moment: int, ends: Mapping[int, int]) -> str:
        """Rule 45: the first limit that `job` is above beside the `others`, by their `ends`; empty if none."""
        cores = self.jobs.cores
        for key, limits in self.of[job]:
            mates = {job, *(other for other in others if key in self.keys[other])}
            used = {
                "max_run": len(mates),
                "max_run_cores": sum(cores[mate] for mate in mates),
                "max_run_core_seconds": sum(cores[mate] * (ends[mate] - moment) for mate in mates),
            }
            for resource in self.takes[job]:
                used[_RESOURCE + resource] = sum(self.takes[mate].get(resource, 0) for mate in mates)
            for name, limit in limits.items():
                if name in used and used[name] > limit and self._concerns(key, name, job):
                    return f"{name} = {limit} of {self._described(key)}"
        return ""

    def kept_out(self, job: int, waiting: Iterable[int]) -> str:
        """Rule 47: what keeps `job` out of the lists in which these wait; empty if nothing does."""
        waiting = list(waiting)
        for key, limits in self.of[job]:
            here = sum(key in self.keys[other] for other in waiting)
            there = sum(key in self.keys[other] for other in self.running)
            for name, used in (("max_eligible", here), ("max_queued", here + there)):
                if used >= limits.get(name, used + 1) and self._concerns(key, name, job):
                    return f"{name} = {limits[name]} of {self._described(key)}"
        return ""

    def _concerns(self, key: Key, limit: str, job: int) -> bool:
        each, _, _, qos = key
        return each == "qos" or qos != "" or limit.partition(".")[0] not in self.exempt[job]

    @staticmethod
    def _described(key: Key) -> str:
        each, name, queue, qos = key
        of = (f"{each} {name}" if each else "all") + (f" in qos {qos}" if qos else "")
        return of + ("" if queue is None else f" in queue {queue}")
