"""The frame of an order: the site's policy, kept inside the formula or dropped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parsim.model.system import ORDERS
from qconf.config import POLICY, SiteConfig
from qconf.config.durations import format_duration
from qconf.config.multifactor import TIER, Multifactor
from qconf.config.points import points_of, term
from qconf.evaluation.period import Period
from qconf.strategies.nodes import given_whole, gives_nodes_alone

NEVER = "1e15"  # seconds of waiting that no job reaches
#: Added to the factor of fairshare, so that a long wait outweighs any use by the user.
LEAST = 0.01
#: Factor of the QOS with the greatest priority over the one with the least.
MOST_QOS = 10
DAY = 86400
STARVING = "1e28 * (1 + eligible_time)"  # above all others even in single precision; the oldest starving job goes first


def policy_of(period: Period) -> tuple[str, ...]:
    """Return the parts of the policy that the base has and a search could drop, since they are not all fixed."""
    base = period.base
    free = not base.is_fixed("order")
    sharing = ["nodes", *(f"queues.{name}.exclusive" for name in base.names)]
    found = {
        "priorities": _distinct(base) and not _pinned(base),
        "fairshare": base.is_fair and free,
        "qos": base.reads_qos and free,
        "shortpools": bool(base.shortpools) and not base.is_fixed("shortpools"),
        "sharing": any(gives_nodes_alone(base)) and not any(map(period.is_fixed, sharing)),
    }

    def of_queues(part: str) -> bool:
        return any(
            getattr(queue, field) is not None and not period.is_fixed(f"queues.{queue.name}.{field}")
            for queue in base.queues
            for field in POLICY[part]
        )

    return tuple(part for part in POLICY if (found[part] if part in found else of_queues(part)))


def _distinct(base: SiteConfig) -> bool:
    """Whether queues have different priorities that the order uses."""
    return base.uses_priority and len({queue.priority for queue in base.queues}) > 1


def _pinned(base: SiteConfig) -> bool:
    """Whether a priority is fixed, so that every order has to use priorities."""
    return any(base.is_fixed(f"queues.{name}.priority") for name in base.names)


@dataclass(frozen=True)
class Frame:
    """Makes a configuration from an order: the base's queues, with the parts of the policy that are not dropped.

    A formula replaces the queues' priorities and starvation periods, so it includes them, as far as PBS can express
    them: in a formula PBS knows a queue only by its priority.
    """

    dropped: frozenset[str] = frozenset()  #: dropped parts of the policy
    factors: tuple[float, ...] | None = None  #: factor for each queue's jobs, in addition to its priority
    delay: int = 0  #: reservation delay, seconds
    reserving: bool = False  #: whether to reserve for the first job although the base reserves nothing
    shared: bool = True  #: whether the machine is shared, whatever the base's mode
    #: Whether orders are sums, as in Slurm: queues of higher priority go first, no starvation periods.
    sums: bool = False

    def config(self, period: Period, order: str) -> SiteConfig:
        """Return the base queues ordered by a formula; everything fixed stays unchanged."""
        base, queues = period.base, []
        raised = None if self.factors is None or _of_priority(base, self.factors) else self.factors
        for i, queue in enumerate(base.queues):
            changes: dict[str, float | None] = {
                field: None for part in self.dropped - {"priorities"} for field in POLICY[part]
            }
            if self.shared:
                changes["partition"] = 0
            if raised is not None:
                changes["priority"] = round(raised[i] * (queue.priority if self._prioritised(base) else 1.0), 6)
            free = {name: each for name, each in changes.items() if not period.is_fixed(f"queues.{queue.name}.{name}")}
            queues.append(queue.model_copy(update=free))
        changed: dict[str, object] = {"queues": tuple(queues), "order": self.formula(base, order), "backfill": True}
        if "shortpools" in self.dropped and not base.is_fixed("shortpools"):
            changed["shortpools"] = ()
        if self.shared:
            changed |= {"mode": "shared", "reserve_after": base.unless_fixed(self.delay), "pool": None}
        found = base.replace(**changed)
        found = found.reserving() if self.reserving else found
        return given_whole(found, exclusive=False) if "sharing" in self.dropped else found

    def formula(self, base: SiteConfig, order: str) -> str:
        """Return the formula with the kept parts of the policy; a named order, and the base's, stay as they are."""
        if order in ORDERS or order == base.order:
            return order
        if self.sums:
            if (found := Multifactor.of(order)) is not None:
                shares, qos = self._points(base, found), self._qos_points(base)
                own = Multifactor.of(base.order)
                tres = found.tres if own is None else own.tres  # as in the site's order
                return replace(found, tiers=self._prioritised(base), fair_share=shares, qos=qos, tres=tres).formula
            before = f"{TIER} * queue_priority + " if self._prioritised(base) else ""
            text = before + order + (f" + {DAY // 60} * fair_share" if self._shares(base) else "")
            return text + (f" + {points} * qos_priority" if (points := self._qos_points(base)) else "")
        if (sums := points_of(order)) is not None:
            return self._sum(base, order, sums)
        text = order
        factor = None if self.factors is None else _of_priority(base, self.factors)
        if factor is not None:
            text = f"({factor}) * {text}"
        if self._shares(base):
            text = f"({LEAST} + {_share_name(base)}) * {text}"
        if self._reads_qos(base):
            text = "".join(f"{each} * " for each in _of_qos(base)) + text
        if self._prioritised(base) or (self.factors is not None and factor is None):
            text = f"queue_priority * {text}"
        if "starvation" not in self.dropped and (limit := _starvation(base)):
            text = f"{STARVING} if eligible_time >= {limit} else ({text})"
        return text

    def _sum(self, base: SiteConfig, order: str, points: Mapping[str, float]) -> str:
        """Return a sum with points for the kept policy: the greatest priority or share is worth a day of waiting."""
        day, most = points["eligible_time"] * DAY, 0.0
        priorities = [queue.priority for queue in base.queues]
        terms: list[tuple[str, float]] = [("queue_priority", np.ptp(priorities))] if self._prioritised(base) else []
        if self._shares(base):
            terms.append((_share_name(base), 1.0))
        if self._reads_qos(base) and "qos_priority" in base.order:
            terms.append(("qos_priority", max(each.priority for each in base.qos)))
        for name, greatest in terms:
            if greatest > 0:
                each = day / greatest
                order, most = order + term(round(each) if each >= 1 else each, name), most + 2 * day
        if "starvation" not in self.dropped and (limit := _starvation(base)):
            requested = [each.walltime[1] for each in base.queues], [base.machine.cores]
            lost = sum(
                -points.get(name, 0.0) * max(each) for name, each in zip(("walltime", "ncpus"), requested, strict=True)
            )
            longest = max(queue.starvation or 0 for queue in base.queues) * points["eligible_time"]
            bonus = 10 ** (math.floor(math.log10(most + lost + longest)) + 1)
            order += f" + ({bonus} if eligible_time >= {limit} else 0)"
        return order

    def bounds_waits(self, base: SiteConfig) -> bool:
        """Return whether the formula bounds the waits of all jobs, because every queue has a starvation period."""
        starving = all(queue.starvation is not None for queue in base.queues)
        return starving and not self.sums and "starvation" not in self.dropped

    def differences(self, base: SiteConfig) -> list[str]:
        """Return a sentence for each starvation period that the formula cannot keep."""
        if "starvation" in self.dropped:
            return []
        if self.sums:
            starving = [queue.name for queue in base.queues if queue.starvation is not None]
            return [f"the starvation periods of {', '.join(starving)} have no form in a sum"] if starving else []
        shortest = _by_priority(base)
        return [
            f"queue {queue.name} starves after {format_duration(period)} in a formula, not "
            f"{'never' if (own := queue.starvation) is None else format_duration(own)}: "
            "another queue has its priority"
            for queue in base.queues
            if (period := shortest[queue.priority]) is not None and period != queue.starvation
        ]

    def _shares(self, base: SiteConfig) -> bool:
        """Whether the formula has a factor for fair shares, as the base's order does."""
        return base.is_fair and "fairshare" not in self.dropped

    def _reads_qos(self, base: SiteConfig) -> bool:
        """Whether the formula has factors for QOS, as the base's order does."""
        return base.reads_qos and "qos" not in self.dropped

    def _points(self, base: SiteConfig, order: Multifactor) -> int:
        """Return the points of a user without any use: the base's own, else as many as walltimes give."""
        if not self._shares(base):
            return 0
        own = Multifactor.of(base.order)
        return own.fair_share if own is not None and own.fair_share else max(order.most, DAY)

    def _qos_points(self, base: SiteConfig) -> int:
        """Return the points for a unit of QOS priority: the base's own, else a day for the greatest priority."""
        greatest = max((qos.priority for qos in base.qos), default=0.0)
        if not (self._reads_qos(base) and "qos_priority" in base.order and greatest > 0):
            return 0
        own = Multifactor.of(base.order)
        return own.qos if own is not None and own.qos else max(1, round(DAY / greatest))

    def _prioritised(self, base: SiteConfig) -> bool:
        """Whether the queues' own priorities are factors of the formula."""
        return _pinned(base) or (_distinct(base) and "priorities" not in self.dropped)


def _share_name(base: SiteConfig) -> str:
    """Return the name of the fair share factor in the base's order, else PBS's."""
    return "fair_share" if re.search(r"\bfair_share\b", base.order) else "fairshare_factor"


def _of_qos(base: SiteConfig) -> list[str]:
    """Return the QOS factors that the base's order has: priorities scaled to 1 ... `MOST_QOS`, and targets."""
    found = []
    if "qos_priority" in base.order:
        priorities = [0.0, *(qos.priority for qos in base.qos)]
        low, high = min(priorities), max(priorities)
        if low < high:
            scale = (MOST_QOS - 1) / (high - low)
            found.append(f"({1 - low * scale:.6g} + {scale:.6g} * qos_priority)")
    if "qos_target" in base.order:
        found.append("(1 + qos_target_factor)")
    return found


def _by_priority(base: SiteConfig) -> dict[float, int | None]:
    """Return the shortest starvation period among the queues of each priority."""
    found: dict[float, int | None] = {}
    for queue in base.queues:
        known = [each for each in (found.get(queue.priority), queue.starvation) if each is not None]
        found[queue.priority] = min(known, default=None)
    return found


def _starvation(base: SiteConfig) -> str:
    """Return the waiting time from which a job starves, as an expression of queue priority; empty for never."""
    periods = _by_priority(base)
    if not any(periods.values()):
        return ""
    text = _choice({key: NEVER if each is None else str(each) for key, each in periods.items()})
    return f"({text})" if " " in text else text


def _of_priority(base: SiteConfig, factors: Sequence[float]) -> str | None:
    """Return a factor for each queue as an expression of queue priority; None if equal priorities differ in it."""
    found: dict[float, str] = {}
    for queue, factor in zip(base.queues, factors, strict=True):
        if found.setdefault(queue.priority, f"{factor:g}") != f"{factor:g}":
            return None
    return _choice(found) if len(set(found.values())) > 1 else None


def _choice(values: dict[float, str]) -> str:
    """Return values by priority as a conditional expression; the most common one comes last."""
    texts = list(values.values())
    usual = max(texts, key=texts.count)
    return (
        "".join(f"{each} if queue_priority == {key:g} else " for key, each in values.items() if each != usual) + usual
    )
