"""Gains with intervals, as dots and whiskers: of strategies, and of the ladder of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qconf.evaluation.bootstrap import BootstrapResult
from qconf.recommend import Recommendation, Row
from qconf.report.charts import Figure, Spec, chart, colour, layers, name, number, rule
from qconf.report.wording import gain_text, interval_text

LEAST = -100.0  #: per cent; lower gains are drawn here
#: A line: label, gain on the test period, resamples, and a key of `LOOKS`.
Whisker = tuple[str, float | None, BootstrapResult | None, str]
LOOKS = {"recommended": "after", "kept": "after", "others": "before", "ineligible": "bad"}


def gain_figures(found: Recommendation) -> Iterator[Figure]:
    """Yield the figures of the strategies and of the ladder."""
    best = "recommended" if found.proposes else "kept"

    def whisker(label: str, row: Row, chosen: bool) -> Whisker:
        return label, row.gain, row.bootstrap, best if chosen else "ineligible" if row.ineligible else "others"

    rows = [
        whisker(row.marked, row, row.name == found.winner)
        for row in found.rows
        if row.gain is not None and row.name != "current"
    ]
    if rows:
        text = (
            "Gain of each strategy over the current configuration. Dot and line: the median of the resamples and "
            "their 90 % interval; cross: the test period itself. Left of zero jobs wait longer."
        )
        yield Figure("strategies", whiskers(rows), text)
    ladder = [
        whisker(f"{rung.name}: {title}", row, row.name == found.winner and row.config == found.config)
        for rung, title in zip(found.ladder, found.rung_titles, strict=True)
        for row in [rung.row]
    ]
    if ladder:
        yield Figure("ladder", whiskers(ladder), "The same for each change of the ladder, from small to large.")


def whiskers(found: Sequence[Whisker]) -> Spec:
    """Draw a line with dot and interval for each row."""
    rows = []
    for label, gain, resampled, kind in found:
        says = f"{label}: {gain_text(gain)} % on the test period"
        row: dict[str, float | str | None] = {"label": label, "kind": kind}
        row["test"] = None if gain is None else max(100 * gain, LEAST)
        if resampled is not None:
            says += f"\nresampled {interval_text(resampled)} %"
            row |= {end: max(100 * getattr(resampled, end), LEAST) for end in ("low", "expected", "high")}
        rows.append({**row, "says": says})
    place = {
        "y": name("label", sort=[label for label, *_ in found], domain=False, ticks=False, labelLimit=330),
        "color": colour(
            "kind", {kind: look for kind, look in LOOKS.items() if any(row["kind"] == kind for row in rows)}
        ),
    }
    intervals, tests = [row for row in rows if "low" in row], [row for row in rows if row["test"] is not None]
    line, title = {"type": "rule", "strokeWidth": 2.4}, "gain, %"
    dot = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    cross = {"type": "point", "shape": "cross", "size": 50, "angle": 45}
    parts = [
        chart(intervals, line, {"x": number("low", title), "x2": {"field": "high"}, **place}),
        chart(intervals, dot, {"x": number("expected", title, grid=True), **place}),
        chart(tests, cross, {"x": number("test", title, grid=True), **place}),
    ]
    return layers(rule("x", 0), *(part for part in parts if part["data"]["values"]), height={"step": 24})
