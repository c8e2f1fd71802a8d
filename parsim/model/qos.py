"""Quality of service: the priority of a class of jobs, its target, its charge, and the limits that it is exempt from.

Rules of "quality of service" in docs/reference/simulator.md.

References
----------
Maui Scheduler Administrator's Guide, sections 5.1.2, "Job Priority Factors", and 7.3, "Quality of Service".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real

from parsim.model.throttles import RESOURCES, THROTTLES

#: Limits that a QOS may be exempt from: those of throttles, and those of queues.
EXEMPTIONS = (*THROTTLES, RESOURCES, "max_user_run", "max_user_cores")
ALL_LIMITS = "all"
MOST_FACTOR = 10**6


@dataclass(frozen=True, slots=True)
class QOS:
    """A quality of service.

    Attributes
    ----------
    name : str
        As in ``Workload.qos_names``.
    priority : float
        What formulas read as ``qos_priority``.
    target : float or None
        Largest expansion factor that its jobs should reach, at least 1: ``qos_target`` in formulas, where
        ``qos_target_factor`` rises as a job nears it.
    exempt : sequence of str
        Limits of queues and throttles that do not hold its jobs, by the names of their fields; ``all`` for all.
    usage_factor : float
        Factor of the charges of its jobs.
    """

    name: str
    priority: float = 0
    target: float | None = None
    exempt: Sequence[str] = ()
    usage_factor: float = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "exempt", tuple(self.exempt))

    def is_exempt(self, limit: str) -> bool:
        """Whether jobs of this QOS are exempt from limits with this name.

        Parameters
        ----------
        limit : str
            One of `EXEMPTIONS`.

        Returns
        -------
        bool
        """
        return limit in self.exempt or ALL_LIMITS in self.exempt


def _is_finite(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def problems(classes: Sequence[QOS]) -> Iterator[tuple[str, str]]:
    """Yield (path below the list, what is wrong with it) for everything that cannot be simulated."""
    names = [qos.name for qos in classes]
    for i, qos in enumerate(classes):
        if not isinstance(qos.name, str) or not qos.name:
            yield f"[{i}].name", f"{qos.name!r} is no name"
        elif qos.name in names[:i]:
            yield f"[{i}].name", f"{qos.name!r} is also that of another QOS"
        if not _is_finite(qos.priority):
            yield f"[{i}].priority", f"{qos.priority!r} is not a finite number"
        if qos.target is not None and not (_is_finite(qos.target) and qos.target >= 1):
            yield f"[{i}].target", f"{qos.target!r} is no expansion factor, a number from 1 up"
        if not (_is_finite(qos.usage_factor) and 0 <= qos.usage_factor <= MOST_FACTOR):
            yield f"[{i}].usage_factor", f"{qos.usage_factor!r} is not a number from 0 to {MOST_FACTOR}"
        for name in qos.exempt:
            if name not in (ALL_LIMITS, *EXEMPTIONS):
                yield f"[{i}].exempt", f"{name!r} is none of {', '.join((ALL_LIMITS, *EXEMPTIONS))}"
