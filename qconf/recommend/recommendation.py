"""What ``qconf tune`` recommends: the verdict, and a row for each strategy that was evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import BootstrapResult


@dataclass(frozen=True)
class Row:
    """One strategy."""

    name: str  #: as on the command line
    #: What is recommended if it wins: its proposal when trained on the whole history, or (`fallback`) the one that was
    #: evaluated; None if it does not apply.
    config: SiteConfig | None
    test: Summary | None  #: metrics on the test period, trained on the jobs before it
    in_sample: Summary | None  #: of `config` on the whole history: trained and evaluated on the same jobs: optimistic
    gain: float | None  #: of the objective on the test period, against the current configuration: 0.2 is a fifth less
    bootstrap: BootstrapResult | None = None  #: over resampled test days; None without a gain, or if else ineligible
    ineligible: str = ""  #: why it may not be recommended; empty if it may
    tolerated: str = ""  #: guard rails broken on the test period but not on average over the resamples
    #: Guard rails that the proposal of the whole history breaks on the test period and the evaluated one keeps.
    fallback: str = ""
    #: The strategy's log, what it tried and what it kept and why: {"step": ..., ...}.
    decisions: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""  #: what the result means, one sentence; empty where the configuration is clear without
    seconds: float = 0.0  #: wall time


@dataclass(frozen=True)
class Curve:
    """Mean wait of one queue alone on a partition, against the partition's size (the paper's Figures 1 and 2)."""

    queue: str
    sizes: list[int]
    waits: list[float]
    utilizations: list[float]


@dataclass(frozen=True)
class Recommendation:
    """The result of ``qconf tune``."""

    verdict: Literal["CHANGE", "KEEP"]
    reason: str  #: one plain paragraph
    winner: str  #: name of the best eligible row; ``current`` for KEEP
    config: SiteConfig  #: what to load: the winner's, or the unchanged base
    base: SiteConfig
    objective: str
    rows: list[Row]  #: ``current`` first, then the baselines, then the others
    curves: list[Curve]
    #: Jobs, first and last submit (Unix seconds) of ``history``, ``training`` and ``test``, of the ``earlier`` and
    #: ``earliest`` training and test periods where there are any, and of the ``earlier periods``.
    spans: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]  #: settings of the run: seed, guard rails, ...
