"""What ``qconf tune`` recommends: the verdict, and a row for each strategy that was evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from parsim.metrics import Summary
from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import BootstrapResult


@dataclass(frozen=True)
class Row:
    """One strategy.

    Attributes
    ----------
    name : str
        As on the command line.
    config : SiteConfig or None
        What is recommended if it wins: its proposal when trained on the whole history, or (`fallback`) the one that
        was evaluated; None if it does not apply.
    test : Summary or None
        Metrics on the test period, trained on the jobs before it.
    in_sample : Summary or None
        Metrics of `config` on the whole history: trained and evaluated on the same jobs, so optimistic.
    gain : float or None
        Of the objective, on the test period, against the current configuration: 0.2 is a fifth less.
    bootstrap : BootstrapResult or None
        Gain over resampled test days; None where there is no gain, or the row is ineligible for another reason.
    ineligible : str
        Why it may not be recommended; empty if it may.
    tolerated : str
        Guard rails broken on the test period but not on average over the resamples. Empty if none is.
    fallback : str
        Guard rails that the proposal of the whole history breaks on the test period and the evaluated one keeps: then
        `config` is the evaluated one. Empty if none is.
    decisions : list of dict
        The strategy's log, what it tried and what it kept and why: {"step": ..., ...}.
    summary : str
        What the result means, one sentence; empty where the configuration is clear without.
    seconds : float
        Wall time.
    """

    name: str
    config: SiteConfig | None
    test: Summary | None
    in_sample: Summary | None
    gain: float | None
    bootstrap: BootstrapResult | None = None
    ineligible: str = ""
    tolerated: str = ""
    fallback: str = ""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    summary: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Curve:
    """Mean wait of one queue alone on a partition, against the partition's size (the paper's Figures 1 and 2)."""

    queue: str
    sizes: list[int]
    waits: list[float]
    utilizations: list[float]


@dataclass(frozen=True)
class Recommendation:
    """The result of ``qconf tune``.

    Attributes
    ----------
    verdict : {"CHANGE", "KEEP"}
    reason : str
        One plain paragraph.
    winner : str
        Name of the best eligible row; ``current`` for KEEP.
    config : SiteConfig
        What to load: the winner's, or the unchanged base.
    base : SiteConfig
    objective : str
    rows : list of Row
        ``current`` first, then the baselines, then the others.
    curves : list of Curve
    spans : dict of str to (int, int, int)
        Jobs, first and last submit (Unix seconds) of ``history``, ``training`` and ``test``, of the ``earlier`` and
        ``earliest`` training and test periods where there are any, and of the ``earlier periods``.
    settings : dict
        Settings of the run: seed, guard rails, ...
    """

    verdict: Literal["CHANGE", "KEEP"]
    reason: str
    winner: str
    config: SiteConfig
    base: SiteConfig
    objective: str
    rows: list[Row]
    curves: list[Curve]
    spans: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]
