"""Charts as Vega-Lite specifications (plain dicts), and the script that draws them offline.

Colours are the variables of the page's style (`templates/page.css`), so a chart is light, dark or for paper as the page
is. Instants are wall-clock times: `clock` converts them to numbers that the charts format as UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any

from qconf.history.times import zone

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

HOUR, DAY = 3600, 86400
#: Ticks of durations, seconds.
DURATIONS = (60, 600, HOUR, 6 * HOUR, DAY, 4 * DAY, 10 * DAY, 30 * DAY, 100 * DAY)
LABEL = (
    "datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min' : "
    "datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
)
BEFORE, AFTER = "before", "after"
#: Before and after differ in darkness and in dashes, so they need no colour.
PAIR: Spec = {"domain": [BEFORE, AFTER], "range": ["var(--before)", "var(--after)"]}
DASHES: Spec = {"domain": [BEFORE, AFTER], "range": [[5, 3], [1, 0]]}

STROKES: Spec = {"symbolType": "stroke", "symbolSize": 260}
HUES = 8  #: colours of queues that a page has
OTHER = "others"  #: the queues that share the last colour

_TEXT = {"labelColor": "var(--dim)", "titleColor": "var(--dim)", "labelFontSize": 12, "titleFontSize": 12}
CONFIG: Spec = {
    "background": "transparent",
    "font": 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif',
    "padding": {"left": 2, "right": 8, "top": 4, "bottom": 4},
    "view": {"stroke": None, "discreteWidth": 200},
    "axis": {
        **_TEXT,
        "titleFontWeight": "normal",
        "gridColor": "var(--faint)",
        "domainColor": "var(--faint)",
        "tickColor": "var(--faint)",
        "labelOverlap": True,
        "labelLimit": 220,
        "tickCount": 5,
    },
    "axisX": {"grid": False},
    "axisY": {
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "start",
        "titleX": -30,
        "titleY": -12,
        "domain": False,
    },
    "legend": {
        **_TEXT,
        "labelColor": "var(--ink)",
        "titleFontWeight": "normal",
        "orient": "top",
        "direction": "horizontal",
        "labelLimit": 260,
        "symbolStrokeWidth": 2,
    },
    "header": {**_TEXT, "labelColor": "var(--ink)", "labelFontWeight": 600, "labelAnchor": "start", "title": None},
    "title": {"color": "var(--ink)", "fontSize": 13, "anchor": "start"},
    "text": {"fill": "var(--ink)", "fontSize": 12},
    "rule": {"stroke": "var(--ink)"},
    "range": {"category": [f"var(--q{i})" for i in range(8)]},
}


@dataclass(frozen=True)
class Figure:
    """One figure of a page."""

    name: str  #: names its file in figures/ and its place in the page
    spec: Spec
    caption: str

    @property
    def json(self) -> str:
        """The specification as JSON that is safe within a script element."""
        text = json.dumps(self.spec, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")

    @property
    def file(self) -> str:
        """The specification as the text of a file for any Vega-Lite tool."""
        return f"{self.json}\n"


@lru_cache(maxsize=1)
def script() -> str:
    """Return the script of a page's charts: Vega, Vega-Lite, Vega's interpreter, and our code."""
    folder = files("qconf.report")
    vega, lite, interpreter = (
        (folder / "vendor" / name).read_text(encoding="utf-8")
        for name in ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js")
    )
    for module, plain in (("import {", "const {"), ("} from 'vega-util'", "} = vega"), ("export {", "return {")):
        interpreter = interpreter.replace(module, plain)
    interpreter = interpreter.replace("expression as expressionInterpreter", "expression")
    ours = (folder / "templates" / "charts.js").read_text(encoding="utf-8")
    config = json.dumps(CONFIG, separators=(",", ":"))
    parts = [vega, lite, f"const interpreter = (() => {{{interpreter}}})();", f"const config = {config};", ours]
    lines = [line for part in parts for line in part.splitlines() if not line.startswith("//# sourceMappingURL")]
    return "\n".join(lines)


def chart(rows: Rows, mark: str | Spec, encoding: Spec, **more: object) -> Spec:
    """Return a chart of one mark; the rows' field `says` is the tooltip, also read by the keyboard."""
    spoken = {"tooltip": {"field": "says"}} if any("says" in row for row in rows) else {}
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": {**encoding, **spoken}, **more}


def rule(channel: str, at: float, **look: object) -> Spec:
    """Return a line across a chart at a value of a channel."""
    return {"data": {"values": [{}]}, "mark": {"type": "rule", **look}, "encoding": {channel: {"datum": at}}}


def layers(*charts: Spec, **more: object) -> Spec:
    """Return charts drawn over each other."""
    return {"layer": list(charts), **more}


def below(*charts: Spec, **more: object) -> Spec:
    """Return charts drawn below each other."""
    return {"vconcat": list(charts), "spacing": 14, **more}


def panels(rows: Rows, names: Sequence[str], inner: Spec, *, columns: int = 3, **more: object) -> Spec:
    """Return a chart for each value of the rows' field `panel`, in up to `columns` columns."""
    facet = {"field": "panel", "type": "nominal", "sort": list(names), "header": {"title": None}}
    beside = min(columns, len(names) or 1)
    return {"data": {"values": list(rows)}, "facet": facet, "columns": beside, "spec": inner, **more}


def number(
    field: str, title: str | None = None, *, log: bool = False, domain: Iterable[float] | None = None, **axis: object
) -> Spec:
    """Encode a number; the axis starts at zero unless `domain` is given."""
    scale: Spec = {"type": "log"} if log else {}
    scale |= {} if domain is None else {"domain": list(domain), "clamp": True, "nice": False}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, "axis": axis}


def duration(field: str, title: str | None, low: float, high: float, **axis: object) -> Spec:
    """Encode seconds on a log axis of minutes, hours and days; values beyond the ends are drawn there."""
    values = [each for each in DURATIONS if low <= each <= high]
    return number(field, title, log=True, domain=(low, high), values=values, labelExpr=LABEL, **axis)


def moment(field: str, **axis: object) -> Spec:
    """Encode an instant from `clock`."""
    pattern = "utchours(datum.value) || utcminutes(datum.value) ? '%H:%M' : '%b %-d'"
    about = {"labelExpr": f"utcFormat(datum.value, {pattern})", "tickCount": 7} | axis
    return {"field": field, "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": about}


def name(field: str, title: str | None = None, *, sort: Sequence[str], **axis: object) -> Spec:
    """Encode a name, in the given order."""
    return {"field": field, "type": "nominal", "title": title, "sort": list(sort), "axis": axis}


def colour(field: str, colours: Mapping[str, str]) -> Spec:
    """Encode names by colour, with a variable of the style, such as ``q0``, for each."""
    scale = {"domain": list(colours), "range": [f"var(--{each})" for each in colours.values()]}
    return {"field": field, "type": "nominal", "title": None, "scale": scale}


def before_after(*, dashed: bool = False) -> Spec:
    """Encode the field `when`: before is light and dashed, after dark and solid."""
    when = {"field": "when", "type": "nominal", "title": None}
    scales = {"color": PAIR, "strokeDash": DASHES} if dashed else {"color": PAIR}
    return {channel: {**when, "scale": scale, "legend": STROKES} for channel, scale in scales.items()}


def clock(second: float, where: str) -> int:
    """Return the wall-clock time in a zone of a Unix second, as milliseconds that read the same in UTC."""
    local = datetime.fromtimestamp(second, zone(where))
    return int(local.replace(tzinfo=UTC).timestamp() * 1000)


def hues(names: Sequence[str], weights: Iterable[float]) -> dict[str, str]:
    """Return a colour for each queue; with more queues than colours, those with the least weight share the last."""
    heavy = sorted(range(len(names)), key=[-weight for weight in weights].__getitem__)
    own = set(heavy if len(names) <= HUES else heavy[: HUES - 1])
    looks = iter(range(HUES))
    return {name: f"q{next(looks) if i in own else HUES - 1}" for i, name in enumerate(names)}


def shown_as(looks: Mapping[str, str]) -> dict[str, str]:
    """Return each queue's name in the legend: queues that share a colour are `OTHER`."""
    own = list(looks.values())
    return {name: name if own.count(look) == 1 else OTHER for name, look in looks.items()}


def queue_colours(looks: Mapping[str, str]) -> Spec:
    """Encode the field `queue`, with names of `shown_as`, by the colours."""
    return colour("queue", {called: looks[name] for name, called in shown_as(looks).items()})
