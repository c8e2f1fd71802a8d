"""Gains with their intervals, as dots and whiskers: strategies, and the ladder of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qconf.evaluation.bootstrap import BootstrapResult
from qconf.recommend import Recommendation
from qconf.report.charts import Figure, Spec, chart, layers, name, number
from qconf.report.wording import gain_text, interval_text

LEAST = -100.0  #: per cent; what is less stands at the edge
LOOKS = {"recommended": "after", "kept": "after", "others": "before", "ineligible": "bad"}


@dataclass(frozen=True)
class Whisker:
    """One line: a gain on the test period, and the median and interval of the resamples."""

    label: str
    gain: float | None  #: a share, as in the rows
    resampled: BootstrapResult | None
    kind: str  #: of `LOOKS`


def gain_figures(found: Recommendation) -> list[Figure]:
    """Draw the strategies, and the ladder."""
    best = "recommended" if found.proposes else "kept"

    def kind(chosen: bool, ineligible: bool) -> str:
        return best if chosen else ("ineligible" if ineligible else "others")

    rows = [
        Whisker(row.marked, row.gain, row.bootstrap, kind(row.name == found.winner, bool(row.ineligible)))
        for row in found.rows
        if row.gain is not None and row.name != "current"
    ]
    out = []
    if rows:
        text = (
            "Gain of each strategy over the current configuration. Dot and line: the median of the resamples and "
            "their 90 % interval; cross: the test period itself. Left of zero jobs wait longer."
        )
        out.append(Figure("strategies", whiskers(rows), text))
    ladder = [
        Whisker(
            f"{rung.name}: {title}",
            rung.row.gain,
            rung.row.bootstrap,
            kind(rung.row.name == found.winner and rung.row.config == found.config, bool(rung.row.ineligible)),
        )
        for rung, title in zip(found.ladder, found.rung_titles, strict=True)
    ]
    if ladder:
        out.append(Figure("ladder", whiskers(ladder), "The same for each change of the ladder, from small to large."))
    return out


def whiskers(found: Sequence[Whisker]) -> Spec:
    """Draw a line for each row."""
    rows, edge = [], LEAST
    for each in found:
        says = f"{each.label}: {gain_text(each.gain)} % on the test period"
        row: dict[str, float | str | None] = {"label": each.label, "kind": each.kind}
        row["test"] = None if each.gain is None else max(100 * each.gain, edge)
        if each.resampled is not None:
            says += f"\nresampled {interval_text(each.resampled)} %"
            row |= {end: max(100 * getattr(each.resampled, end), edge) for end in ("low", "expected", "high")}
        rows.append({**row, "says": says})
    kinds = [kind for kind in LOOKS if any(row["kind"] == kind for row in rows)]
    colours = {"domain": kinds, "range": [f"var(--{LOOKS[kind]})" for kind in kinds]}
    place = {
        "y": name("label", sort=[each.label for each in found], domain=False, ticks=False, labelLimit=330),
        "color": {"field": "kind", "type": "nominal", "title": None, "scale": colours},
    }
    resampled = [row for row in rows if "low" in row]
    title = "gain, %"
    dot = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    zero = {"data": {"values": [{}]}, "mark": {"type": "rule"}, "encoding": {"x": {"datum": 0}}}
    parts = [
        chart(
            resampled,
            {"type": "rule", "strokeWidth": 2.4},
            {"x": number("low", title), "x2": {"field": "high"}, **place},
        ),
        chart(resampled, dot, {"x": number("expected", title, grid=True), **place}),
        chart(
            [row for row in rows if row["test"] is not None],
            {"type": "point", "shape": "cross", "size": 50, "angle": 45},
            {"x": number("test", title, grid=True), **place},
        ),
    ]
    return layers(zero, *(part for part in parts if part["data"]["values"]), height={"step": 24})
