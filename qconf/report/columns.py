"""The one registry of metric columns: every table picks its columns here, by the metric's key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from parsim.metrics import METRICS
from qconf.report import wording


@dataclass(frozen=True)
class Column:
    """One metric as a column of a table."""

    key: str  #: in `parsim.metrics.METRICS`, in comparison.csv, backtest.csv and run.json
    title: str  #: for a terminal, short, without the unit
    name: str  #: in full, for a page
    unit: str  #: of `UNITS`, as it is shown; metrics themselves are seconds and shares in 0..1

    @property
    def meaning(self) -> str:
        """One line on the metric, for a reader."""
        return METRICS[self.key].description

    @property
    def heading(self) -> str:
        """Title and unit, as a terminal shows them."""
        return self.title if self.unit in ("", "jobs") else f"{self.title} {self.unit}"

    @property
    def caption(self) -> str:
        """Name and unit, as pages and figures show them."""
        return self.name if self.unit in ("", "jobs") else f"{self.name}, {self.unit}"

    def scaled(self, value: float) -> float:
        """Return a metric's value in the unit of the column."""
        return UNITS[self.unit][0](value)

    def write(self, value: float, digits: int | None = None) -> str:
        """Write a metric's value as a table shows it, with its decimals or so many; ``-`` if there is none."""
        return wording.number(self.scaled(value), UNITS[self.unit][1] if digits is None else digits)


#: Unit to what makes it of a metric's value, and to the decimals that are shown.
UNITS: dict[str, tuple[Callable[[float], float], int]] = {
    "h": (lambda seconds: seconds / 3600, 2),
    "%": (lambda share: 100 * share, 1),
    "jobs": (float, 0),
    "": (float, 2),
}

#: Metric key to column, in the order of comparison.csv and backtest.csv.
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


#: What strategies are compared by, at the terminal.
COMPARISON = columns("mean_wait", "p95_wait", "max_wait", "mean_bounded_slowdown", "utilization_window")
#: Where jobs are preempted, what that cost.
PREEMPTION = ("preempted", "suspended", "work_lost")
OTHERWISE = 0.01  #: share by which the slowdown of published figures differs where it is worth a column


def beside(found: Iterable[Mapping[str, float]]) -> tuple[Column, ...]:
    """Return what a page has beside that, of such metrics: how fairly users are served, and another slowdown.

    It differs for jobs that run less than ten seconds alone; where there are few both columns have the same numbers.
    """
    found = list(found)
    differs = any(abs(each["bsld"] - each["mean_bounded_slowdown"]) > OTHERWISE * each["bsld"] for each in found)
    preempts = any(each.get("preempted", 0) > 0 for each in found)
    return columns(*["bsld"] * differs, "spread_users", *PREEMPTION * preempts)
