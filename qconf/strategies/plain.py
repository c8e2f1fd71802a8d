"""Strategies that tune nothing: `current`, the base; `fcfs-easy` and `lxf-easy`, one EASY list; `shared`, one machine.

`shared` is the paper's static system without partitions (section IV.B).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from qconf.config import UNDIVIDED, SiteConfig
from qconf.evaluation.period import TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy


def undistinguished(base: SiteConfig, order: str) -> SiteConfig:
    """Return the base queues on a shared machine with equal priorities, under EASY and this order.

    The queues keep their names, the ranges of jobs that they admit, and their limits per user. Shortpools stay only if
    they are fixed.
    """
    alike: dict[str, object] = {"priority": 1.0, "starvation": None, "max_run": None, "max_run_cores": None}
    alike |= {**UNDIVIDED, "tier": 0, "preempted": "off"}
    shortpools = base.shortpools if base.is_fixed("shortpools") else ()
    plain = {"mode": "shared", "order": order, "backfill": True, "reserve_after": 0, "pool": None}
    return base.reserving().with_each(lambda _: alike, shortpools=shortpools, **plain)


def unpartitioned(base: SiteConfig) -> SiteConfig:
    """Return the site as a shared machine, without its partitions and pool; all else stays."""
    delay = base.unless_fixed(base.reservation_delay)  # has an effect only on a shared machine
    return base.with_each(lambda _: UNDIVIDED, mode="shared", reserve_after=delay, pool=None)


class Baseline(Strategy):
    """A configuration derived from the base alone."""

    any_nodes = True

    def __init__(
        self, name: str, position: int, made_of: Callable[[SiteConfig], SiteConfig], *, baseline: bool = True
    ) -> None:
        self.name, self.position, self.made_of, self.baseline = name, position, made_of, baseline

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Propose that configuration."""
        del options
        return Proposal(self.made_of(training.base))


STRATEGIES = (
    Baseline("current", 0, lambda base: base, baseline=False),  # always the first that is compared
    Baseline("fcfs-easy", 1, partial(undistinguished, order="fcfs")),
    Baseline("lxf-easy", 2, partial(undistinguished, order="lxf")),
    Baseline("shared", 3, unpartitioned),
)
