"""The registry of metric columns, from which every table takes its columns by metric key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from parsim.metrics import METRICS
from qconf.report import wording


@dataclass(frozen=True)
class Column:
    """One metric as a column of a table."""

    key: str  #: key in `parsim.metrics.METRICS`, comparison.csv, backtest.csv and run.json
    title: str  #: short title for a terminal, without the unit
    name: str  #: full name for a page
    unit: str  #: unit of the column, a key of `UNITS`; metrics are in seconds and fractions

    @property
    def meaning(self) -> str:
        """One line on the metric's meaning."""
        return METRICS[self.key].description

    @property
    def heading(self) -> str:
        """Title and unit, for a terminal."""
        return self.title if self.unit in ("", "jobs") else f"{self.title} {self.unit}"

    @property
    def caption(self) -> str:
        """Name and unit, for pages and figures."""
        return self.name if self.unit in ("", "jobs") else f"{self.name}, {self.unit}"

    def scaled(self, value: float) -> float:
        """Convert a metric's value to the unit of the column."""
        return UNITS[self.unit][0](value)

    def write(self, value: float, digits: int | None = None) -> str:
        """Format a metric's value with the column's decimals, or `digits`; ``-`` if there is none."""
        return wording.number(self.scaled(value), UNITS[self.unit][1] if digits is None else digits)


#: Conversion from a metric's value, and decimals, by unit.
UNITS: dict[str, tuple[Callable[[float], float], int]] = {
    "h": (lambda seconds: seconds / 3600, 2),
    "%": (lambda share: 100 * share, 1),
    "jobs": (float, 0),
    "": (float, 2),
}

#: Columns by metric key, in the order of comparison.csv and backtest.csv.
COLUMNS: Mapping[str, Column] = {
    key: Column(key, title, name, unit)
    for key, title, name, unit in (
        ("jobs", "jobs", "jobs", "jobs"),
        ("art", "ART", "mean response time", "h"),
        ("sld", "SLD", "mean slowdown", ""),
        ("art_wa", "ARTwA", "response time by area", "h"),
        ("art_ww", "ARTwW", "response time by width", "h"),
        ("sld_wa", "SLDwA", "slowdown by area", ""),
        ("sld_ww", "SLDwW", "slowdown by width", ""),
        ("mean_wait", "wait", "mean wait", "h"),
        ("median_wait", "median", "median wait", "h"),
        ("p90_wait", "p90", "p90 wait", "h"),
        ("p95_wait", "p95", "p95 wait", "h"),
        ("p99_wait", "p99", "p99 wait", "h"),
        ("max_wait", "max", "max wait", "h"),
        ("mean_bounded_slowdown", "slowdown", "bounded slowdown", ""),
        ("bsld", "BSLD", "bounded slowdown of most papers", ""),
        ("makespan", "makespan", "makespan", "h"),
        ("utilization", "full", "utilization to the last end", "%"),
        ("utilization_window", "util", "utilization", "%"),
        ("throughput", "jobs/s", "throughput, jobs a second", ""),
        ("loss_of_capacity", "lost", "loss of capacity", "%"),
        ("jain_users", "fairness", "fairness among users", ""),
        ("spread_users", "spread", "spread among users", ""),
        ("share_distance", "off shares", "use beyond shares", "%"),
        ("preempted", "preempted", "jobs preempted", "jobs"),
        ("suspended", "suspended", "core time suspended, over that of jobs", "%"),
        ("work_lost", "lost work", "work lost to preemption", "%"),
    )
}


def columns(*keys: str) -> tuple[Column, ...]:
    """Return the columns of these metrics."""
    return tuple(COLUMNS[key] for key in keys)


#: Columns by which the terminal compares strategies.
COMPARISON = columns("mean_wait", "p95_wait", "max_wait", "mean_bounded_slowdown", "utilization_window")
#: Metrics of the cost of preemption.
PREEMPTION = ("preempted", "suspended", "work_lost")
OTHERWISE = 0.01  #: least relative difference of `bsld` from our slowdown that is worth a column


def further_columns(found: Iterable[Mapping[str, float]]) -> tuple[Column, ...]:
    """Return a page's further columns: fairness, preemption, and the other bounded slowdown if it differs.

    `bsld` differs only for jobs that run less than ten seconds; with few such jobs both columns have the same numbers.
    """
    found = list(found)
    differs = any(abs(each["bsld"] - each["mean_bounded_slowdown"]) > OTHERWISE * each["bsld"] for each in found)
    preempts = any(each.get("preempted", 0) > 0 for each in found)
    return columns(*["bsld"] * differs, "spread_users", *PREEMPTION * preempts)
