"""From a history to a recommendation: every strategy learns on the earlier part and is judged on the later one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from parsim.metrics import Summary
from qconf.config import SiteConfig


@dataclass(frozen=True)
class Interval:
    """A gain over the current configuration: 0.2 is a fifth less; `low` to `high` is its 95 % interval."""

    gain: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    """What became of one strategy.

    Attributes
    ----------
    name : str
        As on the command line.
    config : SiteConfig or None
        What it answers when it learns from the whole history; None if it does not apply.
    judged : Summary or None
        Metrics on the later part of the history, learned from the earlier one.
    whole : Summary or None
        Metrics of `config` on the whole history: learned and judged on the same jobs, so flattering.
    gain : Interval or None
        Of the objective, on the later part, against the current configuration.
    barred : str
        Why it may not be recommended; empty if it may.
    decisions : list of dict
        What it tried and why it kept what it kept, for a person to follow: {"step": ..., ...}.
    seconds : float
        Wall time that it took.
    """

    name: str
    config: SiteConfig | None
    judged: Summary | None
    whole: Summary | None
    gain: Interval | None
    barred: str = ""
    decisions: list[dict[str, Any]] = field(default_factory=list)
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
    """The answer of ``qconf tune``.

    Attributes
    ----------
    verdict : {"CHANGE", "KEEP"}
    reason : str
        One plain paragraph.
    winner : str
        Name of the best row that may be recommended; ``current`` for KEEP.
    config : SiteConfig
        What to load: the winner's, or the base as it stands.
    base : SiteConfig
    objective : str
    rows : list of Row
        ``current`` first, then the baselines, then the others.
    curves : list of Curve
    parts : dict of str to (int, int, int)
        Jobs, first and last submit (Unix seconds) of ``history``, ``learned``, ``judged``.
    settings : dict
        What was asked: seed, workers, guard rails, ...
    """

    verdict: Literal["CHANGE", "KEEP"]
    reason: str
    winner: str
    config: SiteConfig
    base: SiteConfig
    objective: str
    rows: list[Row]
    curves: list[Curve]
    parts: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]
