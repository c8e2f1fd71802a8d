"""The paper's numbers and sentences beside ours, a column for each seed and load.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, abstract and section IV.B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

import pandas as pd

from qconf.report.columns import COLUMNS
from qconf.text import markdown_table
from studies.paper.pieces import PieceResult

JANUARY = "2016-01"
MORE_IS_BETTER = {"utilization_window"}


@dataclass(frozen=True)
class Claim:
    """What the paper reports of a strategy against another, per cent; plus is more.

    Attributes
    ----------
    strategy, reference, metric : str
    average, best : float or None
        As published; None where the paper has no number.
    without : tuple of str
        Periods left out.
    text : str
        Published in other words than a number.
    """

    strategy: str
    reference: str
    metric: str
    average: float | None = None
    best: float | None = None
    without: tuple[str, ...] = ()
    text: str = ""


#: What section IV.B prints.
CLAIMS = (
    Claim("dp-nlp", "pp", "mean_wait", -12, -26),
    Claim("dp-nlp", "static", "mean_wait", -16, -44, without=("2016-01",)),
    Claim("dqr", "dp-nlp", "mean_wait", -12, -59),
    Claim("dqr", "static", "mean_wait", -24),
    Claim("hybrid", "static", "mean_wait", -46, -74),
    Claim("hybrid", "shared", "mean_wait", -55, -83),
    Claim("dp-nlp", "mqb", "mean_wait", -50),
    Claim("hybrid", "static", "mean_bounded_slowdown", -39),
    Claim("hybrid", "shared", "mean_bounded_slowdown", -35),
    Claim("hybrid", "static", "utilization_window", 12),
    Claim("hybrid", "dqr", "utilization_window", text="+3 to +4"),
    Claim("hybrid", "mqb", "utilization_window", text="up to +8"),
)


def changes_of(claim: Claim, found: PieceResult) -> pd.Series:
    """Per cent by which the strategy's metric differs from the reference's, per period."""
    values = found.by_period(claim.metric)
    if not {claim.strategy, claim.reference} <= set(values):
        return pd.Series(dtype=float)
    reference = values[claim.reference]
    change = 100 * (values[claim.strategy] / reference.where(reference != 0) - 1)
    return change.drop(list(claim.without), errors="ignore").dropna()


def numbers(found: Mapping[str, PieceResult]) -> str:
    """Write a row for each published number: the mean change, and the best period's, in per cent."""
    titles = ["", "of", "paper: mean", "best month", *(f"{name}: mean (best)" for name in found)]
    rows = []
    for claim in CLAIMS:
        without = f", without {', '.join(claim.without)}" if claim.without else ""
        row = [f"{claim.strategy} against {claim.reference}{without}", COLUMNS[claim.metric].name]
        row += [claim.text or _signed(claim.average), _signed(claim.best)]
        rows.append(row + [_mean_and_best(claim, result) for result in found.values()])
    return markdown_table(titles, rows, left=2) + "\n"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.0f}"


def _mean_and_best(claim: Claim, found: PieceResult) -> str:
    changes = changes_of(claim, found)
    if changes.empty:
        return ""
    best = changes.max() if claim.metric in MORE_IS_BETTER else changes.min()
    return f"{mean(changes.tolist()):+.0f} ({best:+.0f})"


@dataclass(frozen=True)
class Sentence:
    """What the paper says in words, and how it is counted here."""

    where: str
    says: str
    counts: Callable[[PieceResult], str]


def _better(name: str, other: str, metric: str = "mean_wait") -> Callable[[PieceResult], str]:
    """Count the periods in which one strategy is better than another."""

    def count(found: PieceResult) -> str:
        changes = changes_of(Claim(name, other, metric), found)
        good = changes > 0 if metric in MORE_IS_BETTER else changes < 0
        return f"{int(good.sum())} of {len(changes)}"

    return count


def _best(name: str, others: tuple[str, ...], metric: str = "mean_wait") -> Callable[[PieceResult], str]:
    """Count the periods in which a strategy is the best of several."""

    def count(found: PieceResult) -> str:
        values = found.by_period(metric)[[name, *others]]
        ends = values.max(axis=1) if metric in MORE_IS_BETTER else values.min(axis=1)
        return f"{int((values[name] == ends).sum())} of {len(values)}"

    return count


def _january(name: str) -> Callable[[PieceResult], str]:
    def change(found: PieceResult) -> str:
        changes: pd.Series = changes_of(Claim(name, "static", "mean_wait"), found)
        if JANUARY not in changes:
            return ""
        worse = int((changes > changes[JANUARY]).sum())
        return f"{changes[JANUARY]:+.0f} %, {worse} months worse"

    return change


def _most(name: str, other: str, metric: str) -> Callable[[PieceResult], str]:
    def most(found: PieceResult) -> str:
        changes = changes_of(Claim(name, other, metric), found)
        return f"mean {changes.mean():+.1f} %, most {changes.max():+.1f} %"

    return most


def _kept(found: PieceResult) -> str:
    """Count the splits and merges that dqr kept, of those it tried."""
    counts = []
    for name in ("split", "merge"):
        steps = [bool(step["kept"]) for step in found.steps(name, "dqr")]
        counts.append(f"{sum(steps)} of {len(steps)} {name}s")
    return ", ".join(counts)


DYNAMIC = ("pp", "dp-nlp", "dqr")
SENTENCES = (
    *(
        Sentence("IV.B.1", f"{name} waits less than static in almost all months", _better(name, "static"))
        for name in DYNAMIC
    ),
    *(Sentence("IV.B.1", f"but in January 2016 above all: {name} against static", _january(name)) for name in DYNAMIC),
    Sentence("IV.B.1", "dp-nlp waits less than pp in all months", _better("dp-nlp", "pp")),
    Sentence(
        "IV.B.1", "dqr waits least of the partitioned in almost all months", _best("dqr", ("pp", "dp-nlp", "static"))
    ),
    *(
        Sentence(
            "IV.B.1", f"{name} has a higher utilization than static", _better(name, "static", "utilization_window")
        )
        for name in DYNAMIC
    ),
    Sentence(
        "IV.B.1",
        "dqr has the highest utilization of them in most months",
        _best("dqr", ("pp", "dp-nlp", "static"), "utilization_window"),
    ),
    Sentence("II.B", "queues are split and merged from month to month", _kept),
    Sentence("IV.B.2", "hybrid waits less than static in all months", _better("hybrid", "static")),
    Sentence("IV.B.2", "hybrid waits less than shared in all months", _better("hybrid", "shared")),
    Sentence("IV.B.2", "hybrid waits less than dqr", _better("hybrid", "dqr")),
    Sentence(
        "IV.B.2",
        "the shared machine's utilization is above hybrid's in some months",
        _better("shared", "hybrid", "utilization_window"),
    ),
    Sentence(
        "IV.B.2",
        "hybrid has less slowdown than static in almost all months",
        _better("hybrid", "static", "mean_bounded_slowdown"),
    ),
    Sentence(
        "IV.B.2",
        "hybrid has less slowdown than shared in almost all months",
        _better("hybrid", "shared", "mean_bounded_slowdown"),
    ),
    Sentence(
        "abstract: up to 12 %; IV.B.2: 12 % on average",
        "hybrid's utilization over static's",
        _most("hybrid", "static", "utilization_window"),
    ),
    Sentence(
        "IV.B.2: 3 to 4 % in most months",
        "hybrid's utilization over dqr's",
        _most("hybrid", "dqr", "utilization_window"),
    ),
    Sentence("IV.B.3: up to 8 %", "hybrid's utilization over mqb's", _most("hybrid", "mqb", "utilization_window")),
    Sentence("IV.B.3", "dp-nlp waits less than mqb", _better("dp-nlp", "mqb")),
)


def sentences(found: Mapping[str, PieceResult]) -> str:
    """Write a row for each sentence: in how many periods it holds, or by how much."""
    rows = [[each.where, each.says, *(each.counts(result) for result in found.values())] for each in SENTENCES]
    return markdown_table(["where", "the paper says", *found], rows, left=2) + "\n"
