"""Guard rails: limits on what a recommendation may make worse."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from parsim.metrics import Summary
from parsim.metrics.nodes import ALL_NODES

MONTH = 30  # days
FEW = 20  # jobs of a queue; with fewer, the 95th percentile is about the longest wait, and the text gives their number


@dataclass(frozen=True)
class GuardValues:
    """The metrics that the guard rails compare."""

    p95: dict[str, float]  #: 95th percentile of the waits in each queue of the base, seconds; NaN without jobs
    longest: float  #: longest wait, seconds
    utilization: float  #: fraction of the machine in use from first to last submit
    jobs: dict[str, int] = field(default_factory=dict)  #: jobs of each queue; empty for means over resamples
    distance: float = math.nan  #: fraction of all use beyond users' fair shares; NaN if the order reads none
    lost: float = 0.0  #: fraction of the work that preemption lost
    #: As `p95`, by the type of nodes that jobs are meant for; empty if all nodes are of one type.
    nodes: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, summary: Summary) -> GuardValues:
        """Take the values from a summary."""
        p95 = {name: values["p95_wait"] for name, values in summary.queues.items()}
        jobs = {name: int(values["jobs"]) for name, values in summary.queues.items()}
        distance = summary.overall.get("share_distance", math.nan)  # older records lack it
        lost = summary.overall.get("work_lost", 0.0)
        nodes = {name: each.meant["p95_wait"] for name, each in summary.nodes.items() if name != ALL_NODES}
        return cls(p95, summary["max_wait"], summary["utilization_window"], jobs, distance, lost, nodes)


@dataclass(frozen=True)
class Seen:
    """The longest waits of the current configuration in all known months: a change may be as bad as these."""

    p95: dict[str, float] = field(default_factory=dict)  #: the largest 95 % wait of each queue of the base, seconds
    longest: float = 0.0  #: seconds


NOTHING = Seen()


@dataclass(frozen=True)
class GuardRails:
    """How much each metric may be worse than under the current configuration."""

    factor: float = 1.5  #: most by which a queue's 95 % wait, and the longest wait, may be multiplied
    grace: int = 3600  #: seconds by which these may grow in any case: from one minute to three does no harm
    #: Most by which utilization may fall in 30 days or more. A shorter period may lose the same work: the work that is
    #: postponed past the end (long jobs after short ones) does not depend on the period's length.
    utilization: float = 0.005
    distance: float = 0.05  #: most by which the fraction of use beyond users' shares may grow
    lost: float = 0.01  #: most by which the fraction of work lost to preemption may grow

    def broken(self, before: GuardValues, after: GuardValues, days: float, seen: Seen = NOTHING) -> dict[str, str]:
        """Return the broken guard rails of a test period of `days`, each with a sentence for the report."""
        waits = {
            f"95 % wait of queue {name}": (then, after.p95[name], seen.p95.get(name, 0.0), _few(before.jobs.get(name)))
            for name, then in before.p95.items()
        }
        known = [both[:2] for both in waits.values()]
        for name, then in before.nodes.items():
            both = (then, after.nodes[name])
            if both not in known:  # of a queue that all these jobs are in, and no others
                waits[f"95 % wait of jobs for nodes {name}"] = *both, 0.0, ""
        waits["longest wait"] = before.longest, after.longest, seen.longest, ""
        found = {
            what: f"{what}{few} grows from {then / 3600:.1f} to {now / 3600:.1f} h"
            for what, (then, now, most, few) in waits.items()
            if now > max(self.factor * then, then + self.grace, most)
        }
        if before.utilization - after.utilization > self.utilization * max(MONTH / days, 1.0):
            found["utilization"] = (
                f"utilization falls from {100 * before.utilization:.1f} to {100 * after.utilization:.1f} %"
            )
        if after.distance - before.distance > self.distance:
            found["shares"] = (
                f"use beyond users' shares grows from {100 * before.distance:.1f} to {100 * after.distance:.1f} %"
            )
        if after.lost - before.lost > self.lost:
            found["work lost"] = (
                f"work lost to preemption grows from {100 * before.lost:.1f} to {100 * after.lost:.1f} % of all work"
            )
        return found


def _few(jobs: int | None) -> str:
    """Return the number of jobs, in brackets, where it is below `FEW`."""
    if jobs is None or jobs >= FEW:
        return ""
    return f" ({jobs} job{'s' * (jobs != 1)})"
