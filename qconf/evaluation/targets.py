"""The site's targets: 95 % waits of queues and of user groups, and whether a schedule meets them.

Targets are measured by the queues of the base configuration, as guard rails are, whatever queues a proposal has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.metrics import p95
from qconf.config import SiteConfig
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.score import FLOORS
from qconf.history import History
from qconf.inert import shorten

NAMED = 5  # users or groups that a warning names


@dataclass(frozen=True)
class TargetResult:
    """A target of the site, and how a schedule does against it."""

    what: str  #: ``queue small`` or ``group physics``
    wanted: int  #: 95 % wait, seconds
    p95_wait: float  #: seconds; NaN without jobs
    jobs: int  #: counted jobs

    @property
    def met(self) -> bool:
        """Whether the 95 % wait is within the target; True without jobs."""
        return not self.p95_wait > self.wanted


def target_results(outcome: Outcome) -> tuple[TargetResult, ...]:
    """Measure every target that has a 95 % wait, in the order of the configuration."""
    found = []
    for i, target in enumerate(outcome.period.base.targets):
        if target.p95_wait is not None:
            waits = outcome.group_wait(i) if target.queue is None else outcome.queue_wait(target.queue)
            found.append(TargetResult(target.what, target.p95_wait, p95(waits), waits.size))
    return tuple(found)


def wanted_waits(base: SiteConfig) -> NDArray[np.float64]:
    """Return the target 95 % wait of each queue, seconds, infinite if it has none, shape (Q,)."""
    wanted = {target.queue: target.p95_wait for target in base.targets if target.p95_wait is not None}
    return np.array([wanted.get(name, np.inf) for name in base.names])


def missed(outcome: Outcome) -> float:
    """Return the sum of log(95 % wait / target) over missed targets, for a log score; 0 if all are met.

    Twice a target costs as much as twice the mean wait; a wait below the target gains nothing.
    """
    floor, unmet = float(FLOORS[0]), [each for each in target_results(outcome) if not each.met]
    return float(sum(np.log((each.p95_wait + floor) / (each.wanted + floor)) for each in unmet))


def absent_members(history: History, base: SiteConfig) -> list[str]:
    """Warn of users and groups of targets, and of QOS, that have no job in a history."""
    users, groups, found = set(history.jobs["user"]), set(history.jobs["group"]) - {""}, []
    for i, target in enumerate(base.targets):
        absent = [user for user in dict.fromkeys(target.users) if user not in users]
        if absent:
            count = f"{len(absent)} of the {len(set(target.users))} users of {target.what}"
            found.append(f"targets[{i}].users: {count} have no job in this history: {_listed(absent)}")
        elif target.group is not None and not target.users and target.group not in groups:
            known = f"its groups are {_listed(sorted(groups))}" if groups else "it names no groups, so list the users"
            found.append(f"targets[{i}].group: no job in this history is of {target.what}; {known}")
    present = {*history.qos(base).tolist()} if base.qos else set()
    for i, qos in enumerate(base.qos):
        if i not in present:
            which = "none names it, and none is of its users, accounts, groups or queues"
            found.append(f"qos[{i}]: no job in this history is of {qos.name}: {which}")
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(map(shorten, names[:NAMED])) + (", ..." if len(names) > NAMED else "")
