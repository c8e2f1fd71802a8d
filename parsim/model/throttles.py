"""Throttles: limits of the running or waiting jobs of users, groups, queues, or all.

Rules of "throttles", and rule "exemptions by QOS" in docs/reference/simulator.md.

References
----------
Maui Scheduler Administrator's Guide, section 6.2, "Throttling Policies".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from parsim.model.node_types import CORES, Amounts
from parsim.model.workload import Column, Workload

Whose = Literal["user", "group", "qos"]  #: that jobs are of by a column of the workload
Each = Literal["", Whose]

#: Fields of `Throttle` that limit running jobs, and those that keep jobs out of the waiting lists.
RUNNING = ("max_run", "max_run_cores", "max_run_core_seconds")
ENTERING = ("max_eligible", "max_queued")
THROTTLES = (*RUNNING, *ENTERING)
RESOURCES = "max_run_resources"  #: the field that limits other resources of running jobs, by their names

MOST_WORK = 2**53  #: core-seconds


@dataclass(frozen=True, slots=True)
class Throttle:
    """Limits of jobs that count together, in all queues or in one.

    Attributes
    ----------
    each : {"", "user", "group", "qos"}
        Which jobs count together: all, those of each user, of each group, or of each quality of service.
    name : str
        The only user, group or QOS that is limited, named as in ``Workload.user_names``, ``group_names`` or
        ``qos_names``; empty for each of them.
    queue : int or None
        Position in ``System.queues`` of the only queue whose jobs count; None for all.
    max_run, max_run_cores, max_run_core_seconds : int or None
        Most running jobs, cores of them, and cores times the seconds to their expected ends.
    max_eligible, max_queued : int or None
        Most jobs that wait in a list, and most that wait or run; further jobs are kept out of the lists.
    qos : str
        The only QOS whose jobs count; empty for all.
    max_run_resources : mapping of str to int
        Most that the chunks of the running jobs take in total, by the names of resources.
    """

    each: Each = ""
    name: str = ""
    queue: int | None = None
    max_run: int | None = None
    max_run_cores: int | None = None
    max_run_core_seconds: int | None = None
    max_eligible: int | None = None
    max_queued: int | None = None
    qos: str = ""
    max_run_resources: Mapping[str, int] | Amounts = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, RESOURCES, tuple(sorted(dict(self.max_run_resources).items())))

    @property
    def limits(self) -> dict[str, int]:
        """The limits that are set, by field; that of a resource as ``max_run_resources.gpus``."""
        found = {name: getattr(self, name) for name in THROTTLES}
        found |= {f"{RESOURCES}.{name}": limit for name, limit in dict(self.max_run_resources).items()}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def is_of_qos(self) -> bool:
        """Whether the throttle limits the jobs of a QOS; no job is exempt from such a throttle."""
        return self.each == "qos" or bool(self.qos)


def whose(workload: Workload, each: Each) -> tuple[Column, Callable[[int], str]]:
    """Return the number of each job's user, group or QOS, -1 for none, and a function from numbers to names."""
    if not each:
        return np.zeros(len(workload), dtype=np.int64), lambda _: ""
    return getattr(workload, each), getattr(workload, f"{each}_name")


def of_resources(throttles: Iterable[Throttle], there: Collection[str]) -> list[Throttle]:
    """Drop limits of resources that are not in `there`; return the throttles that still have a limit."""
    found = (
        replace(
            each, max_run_resources={name: most for name, most in dict(each.max_run_resources).items() if name in there}
        )
        for each in throttles
    )
    return [each for each in found if each.limits]


def problems(
    throttles: Sequence[Throttle], queues: int, resources: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (path below the list, what is wrong with it) for everything that cannot be simulated.

    `resources` are those that some node has; None if the nodes are unknown.
    """
    first: dict[tuple[object, ...], int] = {}
    for i, throttle in enumerate(throttles):
        if throttle.each not in get_args(Each):
            yield f"[{i}].each", f"{throttle.each!r} is none of {', '.join(get_args(Whose))}"
        if throttle.name and not throttle.each:
            yield f"[{i}].name", f"{throttle.name!r} is to be a user, a group or a QOS: say which with each"
        if throttle.qos and throttle.each == "qos":
            yield f"[{i}].qos", f"{throttle.qos!r} goes with another each than qos"
        if throttle.queue is not None and throttle.queue not in range(queues):
            yield f"[{i}].queue", f"{throttle.queue!r} is none of the {queues} queues"
        if not throttle.limits:
            yield f"[{i}]", f"limits nothing: give it one of {', '.join((*THROTTLES, RESOURCES))}"
        for name in dict(throttle.max_run_resources):
            if name == CORES:
                yield f"[{i}].{RESOURCES}.{name}", "cores have a limit of their own, max_run_cores"
            elif resources is not None and name not in resources:
                there = ", ".join(sorted(resources)) or "cores alone"
                yield f"[{i}].{RESOURCES}.{name}", f"no node has any; nodes have {there}"
        for name, limit in throttle.limits.items():
            if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MOST_WORK:
                yield f"[{i}].{name}", f"{limit!r} is no whole number from 1 to 2**53"
        other = first.setdefault((throttle.each, throttle.name, throttle.queue, throttle.qos), i)
        if other != i:
            yield f"[{i}]", f"is for the same jobs as [{other}]: put both into one"
