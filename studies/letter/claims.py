"""The paper's numbers and sentences next to ours, a column for each group of pieces.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, abstract and section IV.B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """A published change of a metric from the reference to the strategy, per cent; positive means larger."""

    strategy: str
    reference: str
    metric: str
    average: float | None = None  #: mean over the months; None here and in `best`: no published number
    best: float | None = None
    without: tuple[str, ...] = ()  #: periods left out
    text: str = ""  #: the published change if it is not a number


#: The claims of section IV.B.
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
    """Return the change in per cent from the reference's metric to the strategy's, per period."""
    values = found.by_period(claim.metric)
    if not {claim.strategy, claim.reference} <= set(values):
        return pd.Series(dtype=float)
    reference = values[claim.reference]
    change = 100 * (values[claim.strategy] / reference.where(reference != 0) - 1)
    return change.drop(list(claim.without), errors="ignore").dropna()


def groups(found: Mapping[str, PieceResult]) -> dict[str, list[PieceResult]]:
    """Return the pieces of each table column (seeds, loads, the other reading of a merge) by its title."""
    kinds: dict[str, list[str]] = {}
    for name in found:
        kinds.setdefault("adjacent" if "adjacent" in name else name.partition(" ")[0], []).append(name)
    titles = {
        kind: names[0] if len(names) == 1 else f"{kind}s {names[0].split()[-1]} to {names[-1].split()[-1]}"
        for kind, names in kinds.items()
    }
    return {titles[kind]: [found[name] for name in names] for kind, names in kinds.items()}


def numbers(found: Mapping[str, PieceResult]) -> str:
    """Return the table of published numbers: mean changes over the periods and the best period's, per cent."""
    columns = groups(found)
    titles = ["", "of", "paper: mean", "best month", *(f"{name}: mean (best)" for name in columns)]
    rows = []
    for claim in CLAIMS:
        without = f", without {', '.join(claim.without)}" if claim.without else ""
        row = [f"{claim.strategy} against {claim.reference}{without}", COLUMNS[claim.metric].name]
        row += [claim.text or _signed(claim.average), _signed(claim.best)]
        rows.append(row + [_mean_and_best(claim, results) for results in columns.values()])
    return markdown_table(titles, rows, left=2) + "\n"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.0f}"


def _mean_and_best(claim: Claim, found: Sequence[PieceResult]) -> str:
    changes = [each for each in (changes_of(claim, result) for result in found) if not each.empty]
    if not changes:
        return ""
    means = sorted(round(mean(each.tolist())) for each in changes)
    best = (
        max(each.max() for each in changes) if claim.metric in MORE_IS_BETTER else min(each.min() for each in changes)
    )
    spread = f"{means[0]:+d}" if means[0] == means[-1] else f"{means[0]:+d} to {means[-1]:+d}"
    return f"{spread} ({round(best):+d})"


#: Counts the periods in which a sentence holds, and all periods.
Count = Callable[[PieceResult], tuple[int, int]]


class Sentence:
    """A sentence of the paper, with a count for each strategy that it names."""

    def __init__(self, where: str, says: str, *counts: Count) -> None:
        self.where, self.says, self.counts = where, says, counts


def _better(name: str, other: str, metric: str = "mean_wait") -> Count:
    """Count the periods in which one strategy is better than another."""

    def count(found: PieceResult) -> tuple[int, int]:
        changes = changes_of(Claim(name, other, metric), found)
        good = changes > 0 if metric in MORE_IS_BETTER else changes < 0
        return int(good.sum()), len(changes)

    return count


def _dqr_is_best(metric: str) -> Count:
    """Count the periods in which dqr is the best of the partitioned strategies."""

    def count(found: PieceResult) -> tuple[int, int]:
        values = found.by_period(metric)[["pp", "dp-nlp", "static", "dqr"]]
        ends = values.max(axis=1) if metric in MORE_IS_BETTER else values.min(axis=1)
        return int((values["dqr"] == ends).sum()), len(values)

    return count


def _january(name: str) -> Count:
    def count(found: PieceResult) -> tuple[int, int]:
        changes: pd.Series = changes_of(Claim(name, "static", "mean_wait"), found)
        return int(JANUARY in changes and changes[JANUARY] > 0), int(JANUARY in changes)

    return count


def _kept(step: str) -> Count:
    """Count the splits or merges that dqr kept, of those it tried."""

    def count(found: PieceResult) -> tuple[int, int]:
        kept = [bool(each["kept"]) for each in found.steps(step, "dqr")]
        return sum(kept), len(kept)

    return count


DYNAMIC = ("pp", "dp-nlp", "dqr")


SENTENCES = (
    Sentence(
        "IV.B.1",
        f"{', '.join(DYNAMIC)} wait less than static in almost all months",
        *(_better(name, "static") for name in DYNAMIC),
    ),
    Sentence("IV.B.1", f"but in January 2016 {', '.join(DYNAMIC)} wait more than static", *map(_january, DYNAMIC)),
    Sentence("IV.B.1", "dp-nlp waits less than pp in all months", _better("dp-nlp", "pp")),
    Sentence("IV.B.1", "dqr waits least of the partitioned in almost all months", _dqr_is_best("mean_wait")),
    Sentence(
        "IV.B.1",
        f"{', '.join(DYNAMIC)} have a higher utilization than static",
        *(_better(name, "static", "utilization_window") for name in DYNAMIC),
    ),
    Sentence(
        "IV.B.1",
        "dqr has the highest utilization of them in most months",
        _dqr_is_best("utilization_window"),
    ),
    Sentence("II.B", "queues are split: splits kept", _kept("split")),
    Sentence("II.B", "queues are merged: merges kept", _kept("merge")),
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
    Sentence("IV.B.3", "dp-nlp waits less than mqb", _better("dp-nlp", "mqb")),
)


def sentences(found: Mapping[str, PieceResult]) -> str:
    """Return the table of sentences: in how many of all periods each holds."""
    columns = groups(found)
    rows = [[each.where, each.says, *(_total(each.counts, of) for of in columns.values())] for each in SENTENCES]
    return markdown_table(["where", "the paper says", *columns], rows, left=2) + "\n"


def _total(counts: Sequence[Count], found: Sequence[PieceResult]) -> str:
    totals = [[sum(numbers) for numbers in zip(*map(count, found), strict=True)] for count in counts]
    return f"{', '.join(str(holds) for holds, _ in totals)} of {totals[0][1]}"
