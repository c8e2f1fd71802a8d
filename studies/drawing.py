"""Figures as SVG text in one style, drawn by Vega-Lite like the report's: equal numbers give equal bytes.

Colours are Okabe and Ito's, distinct for colour-blind readers; in print, markers, dashes and light fills distinguish.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import vl_convert
from markupsafe import escape

from qconf.report.charts import CONFIG, STROKES, Rows, Spec, chart, layers, name, number

INK, DIM, FAINT, PAPER = "#1b1f24", "#555555", "#c9ced6", "#fdfdfc"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c8c8c")
MARKERS = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "triangle-right",
    "cross",
    "triangle-left",
    "arrow",
)
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 1], [8, 2, 2, 2, 2, 2], [1, 3], [12, 3, 2, 3])
VARIABLES = {"ink": INK, "dim": DIM, "faint": FAINT, **{f"q{i}": each for i, each in enumerate(COLOURS)}}
#: A font that the renderer includes, so figures do not depend on the machine's fonts.
OURS = {"font": "Liberation Sans, Arial, sans-serif", "background": PAPER, "aria": False, "axisY": {"domain": False}}

Look = tuple[str, str, Sequence[int]]  #: colour, marker and dashes of a line


def draw(spec: Spec, label: str) -> str:
    """Return a Vega-Lite specification as SVG text; `label` is its description for screen readers."""
    text = json.dumps({**spec, "config": {**CONFIG, **OURS}}, allow_nan=False, default=float)
    drawn = vl_convert.vegalite_to_svg(
        re.sub(r"var\(--(\w+)\)", lambda found: VARIABLES[found[1]], text), vl_version="6.4", allowed_base_urls=[]
    )
    text = re.sub(r"<[^>]+>", lambda tag: _short(tag[0]), drawn)
    while (fewer := re.sub(r"<g[^>]*></g>", "", text)) != text:
        text = fewer
    root = f"<svg role='img' aria-label='{escape(label)}' font-family='{OURS['font']}' font-size='12px' "
    out, kept = [], []
    for part in re.findall(r"<[^>]+>|[^<]+", re.sub(r'<text[^>]* opacity="0">[^<]*</text>', "", text)):
        if part.startswith("<g"):
            kept.append(part != "<g>")
        if (part != "</g>" or kept.pop()) and part != "<g>":
            out.append(part)
    return "".join(out).replace("<svg ", root, 1).replace("><", ">\n<") + "\n"


def _short(tag: str) -> str:
    """Return a tag with coordinates rounded to tenths; empty for invisible or redundant tags."""
    if re.match(r'<path [^>]*class="(?:back|fore)ground"', tag):
        return ""
    tag = re.sub(r' (?:aria-[\w-]+|role|class|pointer-events|font-family|xmlns:xlink)="[^"]*"', "", tag)
    tag = re.sub(
        r' (?:(?:opacity|stroke-width)="1"|font-(?:size="12px"|weight="normal")|transform="translate\(0,0\)")', "", tag
    )
    return re.sub(r"\d+\.\d{2,}", lambda at: f"{float(at[0]):.1f}".removesuffix(".0"), tag)


def looks(names: Sequence[str], *, markers: bool) -> dict[str, Look]:
    """Return a look for each line of a figure: a colour, and a marker or dashes."""
    return {
        each: (
            COLOURS[i % len(COLOURS)],
            MARKERS[i % len(MARKERS)] if markers else "stroke",
            DASHES[0 if markers else i % len(DASHES)],
        )
        for i, each in enumerate(names)
    }


def lines(x: Spec, y: Spec, found: Mapping[str, Look], width: int, *, beside: int = 1) -> Spec:
    """Return the specification of one line per value of the field `line`; the legend spans `beside` charts."""

    def encoded(at: int) -> Spec:
        scale = {"domain": list(found), "range": [look[at] for look in found.values()]}
        return {
            "field": "line",
            "type": "nominal",
            "title": None,
            "scale": scale,
            "legend": legend(found, width * beside),
        }

    marked = any(marker != "stroke" for _, marker, _ in found.values())
    return {
        "mark": {"type": "line", "strokeWidth": 1.6, "point": {"size": 44, "opacity": 1} if marked else False},
        "encoding": {"x": x, "y": y, "color": encoded(0), "shape": encoded(1), "strokeDash": encoded(2)}
        if marked
        else {"x": x, "y": y, "color": encoded(0), "strokeDash": encoded(2)},
        "width": width,
    }


def line_chart(rows: Rows, x: Spec, y: Spec, width: int, height: int, *, markers: bool, **more: object) -> str:
    """Draw one line per value of the rows' field `line`, as SVG text."""
    names = list(dict.fromkeys(row["line"] for row in rows))
    spec = lines(x, y, looks(names, markers=markers), width)
    return draw(spec | {"data": {"values": rows}, "height": height} | more, f"{y['title']} over {x['title']}")


def legend(names: Sequence[str] | Mapping[str, object], width: float) -> Spec:
    """Return a legend with as many columns as the longest name allows, `width` in pixels."""
    return {
        "columns": max(1, int(width / (6.5 * max(map(len, names), default=0) + 36))),
        "symbolSize": 150,
        "columnPadding": 24,
    }


def grouped_bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    label: str,
    line: Sequence[float] | None = None,
    line_label: str = "current",
) -> str:
    """Draw a bar per series in each group (a period, a queue), and a line of reference values across the bars.

    Each series has one value per group, else ValueError is raised; NaN leaves a gap. `label` includes the unit.
    """
    values = {**series, **({} if line is None else {line_label: line})}
    wrong = [each for each, row in values.items() if len(row) != len(groups)]
    if wrong:
        raise ValueError(f"{wrong[0]}: {len(values[wrong[0]])} values for {len(groups)} groups")

    def rows(names: Sequence[str]) -> list[dict[str, Any]]:
        found = [(at, each, float(value)) for each in names for at, value in zip(groups, values[each], strict=True)]
        return [{"group": at, "series": each, "value": value} for at, each, value in found if math.isfinite(value)]

    names, width = list(series), max(620, min(1040, 14 * len(groups) * max(1, len(series)) + 100))
    kind: Spec = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "legend": {**legend(names, width), "symbolType": "square"},
    }
    hues = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    fills = [hue + ("66" if i % 2 else "ff") for i, hue in enumerate(hues)]
    crowded = sum(map(len, groups)) > 70
    x = name("group", sort=groups, labelAngle=-45 if crowded else 0, labelOverlap=False, ticks=False)
    y = number("value", label)
    bars = chart(rows(names), {"type": "bar", "strokeWidth": 0.8}, {
        "x": x | {"scale": {"domain": list(groups), "paddingInner": 0.16, "paddingOuter": 0.08}},
        "xOffset": {"field": "series", "sort": names, "scale": {"paddingInner": 0.1}},
        "y": y,
        "fill": kind | {"scale": {"domain": names, "range": fills}},
        "stroke": kind | {"scale": {"domain": names, "range": hues}},
    })  # fmt: skip
    across = {"x": x | {"bandPosition": 0}, "x2": {"field": "group", "bandPosition": 1}, "y": y}
    mark = {"type": "rule", "strokeWidth": 2}
    key = {"datum": line_label, "type": "nominal", "title": None, "scale": {"range": [INK]}, "legend": STROKES}
    reference = [] if line is None else [chart(rows([line_label]), mark, across | {"color": key})]
    return draw(layers(bars, *reference, width=width, height=270), label)
