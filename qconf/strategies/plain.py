"""What tunes nothing: `current`, the base; `fcfs-easy` and `lxf-easy`, one list under EASY; `shared`, no partitions.

`shared` is the paper's static system without partitions (section IV.B).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qconf.config import UNDIVIDED, SiteConfig
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


def undistinguished(base: SiteConfig, order: str) -> SiteConfig:
    """Return the base queues on a shared machine, without anything that prefers one to another.

    The queues keep their names, the ranges of jobs that they admit, and their limits per user. Cores are kept for short
    jobs only where that is fixed.
    """
    alike: dict[str, object] = {"priority": 1.0, "starvation": None, "max_run": None, "max_run_cores": None}
    alike |= {**UNDIVIDED, "tier": 0, "preempted": "off"}
    shortpools = base.shortpools if base.is_fixed("shortpools") else ()
    plain = {"mode": "shared", "order": order, "backfill": True, "reserve_after": 0, "pool": None}
    return base.reserving().with_each(lambda _: alike, shortpools=shortpools, **plain)


def whole(base: SiteConfig) -> SiteConfig:
    """Return a site without its partitions, everything else kept."""
    delay = base.unless_fixed(base.reservation_delay)  # without effect in partitions, in effect here
    return base.with_each(lambda _: UNDIVIDED, mode="shared", reserve_after=delay, pool=None)


class Baseline(Strategy):
    """A configuration made of the base alone."""

    any_nodes = True

    def __init__(
        self, name: str, position: int, made_of: Callable[[SiteConfig], SiteConfig], *, baseline: bool = True
    ) -> None:
        self.name, self.position, self.made_of, self.baseline = name, position, made_of, baseline

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Make it."""
        del options
        return Proposal(self.made_of(training.base))


STRATEGIES = (
    Baseline("current", 0, lambda base: base, baseline=False),  # always the first that is compared
    Baseline("fcfs-easy", 1, partial(undistinguished, order="fcfs")),
    Baseline("lxf-easy", 2, partial(undistinguished, order="lxf")),
    Baseline("shared", 3, whole),
)
