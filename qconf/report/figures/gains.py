"""Gains with their intervals, as dots and whiskers: strategies, and the ladder of changes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from qconf.evaluation.bootstrap import BootstrapResult
from qconf.recommend import Recommendation
from qconf.report.figures.base import Figure
from qconf.report.svg import LETTER, LINE, Drawing, Scale, ticks
from qconf.report.wording import gain_text, interval_text

LEAST = -100.0  #: per cent; what is less stands at the edge, as an arrow
ROW = 24
BOLD = 1.12 * LETTER  #: mean width of a letter of what is recommended


@dataclass(frozen=True)
class Whisker:
    """One line: a gain on the test period, and the median and interval of the resamples."""

    label: str
    gain: float | None  #: a share, as in the rows
    resampled: BootstrapResult | None
    look: str


def gain_figures(found: Recommendation) -> list[Figure]:
    """Draw the strategies, and the ladder."""
    best = "recommended" if found.proposes else "kept"
    rows = [
        Whisker(row.marked, row.gain, row.bootstrap, _look(row.name == found.winner, bool(row.ineligible)))
        for row in found.rows
        if row.gain is not None and row.name != "current"
    ]
    out = []
    if rows:
        text = (
            "Gain of each strategy over the current configuration. Dot and line: the median of the resamples and "
            "their 90 % interval; cross: the test period itself. Left of zero jobs wait longer."
        )
        out.append(Figure("strategies", whiskers(rows, best).svg(text), text))
    ladder = [
        Whisker(
            f"{rung.name}: {title}",
            rung.row.gain,
            rung.row.bootstrap,
            _look(rung.row.name == found.winner and rung.row.config == found.config, bool(rung.row.ineligible)),
        )
        for rung, title in zip(found.ladder, found.rung_titles, strict=True)
    ]
    if ladder:
        text = "The same for each change of the ladder, from small to large."
        out.append(Figure("ladder", whiskers(ladder, best).svg(text), text))
    return out


def _look(chosen: bool, ineligible: bool) -> str:
    return "after" if chosen else ("ineligible" if ineligible else "plain")


def whiskers(rows: Sequence[Whisker], best: str) -> Drawing:
    """Draw a line for each row."""
    values = [100 * each for row in rows for each in _values(row) if math.isfinite(each)]
    low, high = max(min(values, default=0), LEAST), max(*values, 0.0) if values else 0.0
    pad = max((high - low) * 0.05, 1.0)
    looks = [row.look for row in rows]
    drawing = Drawing(0)
    left = min(22 + BOLD * max(len(row.label) for row in rows), 0.45 * drawing.width)
    room = int((left - 12) / BOLD)
    labels = [textwrap.wrap(row.label, room, max_lines=2, placeholder="\N{HORIZONTAL ELLIPSIS}") for row in rows]
    tall = ROW + (LINE - 3) * (max(map(len, labels), default=1) - 1)
    entries = [("dot after", best), ("dot plain", "others"), ("dot ineligible hollow", "ineligible")]
    top = drawing.legend([each for each in entries if each[0].split()[1] in looks] + [("cross plain", "test period")])
    x = Scale(min(low, 0) - pad, high + pad, left, drawing.width - 16)
    y = Scale(0, len(rows), top + 4, top + 4 + tall * len(rows))
    panel = drawing.panel(x, Scale(len(rows), 0, y.end, y.start), x_ticks=ticks(x.low, x.high), grid="x",
                          x_title="gain, %")  # fmt: skip
    panel.rule(x=0.0)
    for i, row in enumerate(rows):
        middle = i + 0.5
        for k, text in enumerate(labels[i]):
            at = y.at(middle) + 4 + LINE * (k - (len(labels[i]) - 1) / 2)
            drawing.text(left - 8, at, text, f"end {'head' if row.look == 'after' else 'ink'}")
        hollow = " hollow" if row.look == "ineligible" else ""
        title = f"{row.label}: {gain_text(row.gain)} % on the test period"
        if (found := row.resampled) is not None:
            title += f", resampled {interval_text(found)} %"
            panel.line([100 * found.low, 100 * found.high], [middle, middle], f"whisker {row.look}", row.label)
            panel.dot(100 * found.expected, middle, f"dot {row.look}{hollow}", title)
        if row.gain is not None:
            panel.cross(100 * row.gain, middle, f"cross {row.look}", title)
        if any(100 * each < x.low for each in _values(row)):
            panel.text(x.low, middle, "\N{LEFTWARDS ARROW}", "tick", dx=-2 if row.resampled is None else 2, dy=-4)
    drawing.height = y.end + 36
    return drawing


def _values(row: Whisker) -> list[float]:
    found = [] if row.resampled is None else [row.resampled.low, row.resampled.expected, row.resampled.high]
    return found + ([] if row.gain is None else [row.gain])
