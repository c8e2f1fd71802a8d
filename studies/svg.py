"""Figures as SVG text: axes, lines, bars and points, in classes whose colours the page gives.

Text is text: it is read aloud, found and copied, and a figure has a few thousand bytes. A panel says how it scales
(`data-x`, `data-y`), so that the page's script, and a test, find the values behind its marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from markupsafe import Markup
from markupsafe import escape as _escape
from numpy.typing import NDArray

from qconf.history.times import zone
from qconf.inert import inert

HOUR, DAY = 3600, 86400
WIDTH = 700  #: of a figure, in its own units: about CSS pixels on a wide screen
LETTER = 6.3  #: mean width of a letter
LINE = 15  #: height of a line of text
#: Ticks of waits on a log axis, seconds, and more of them for a short one.
WAITS = {60: "1 min", 600: "10 min", 3600: "1 h", 36000: "10 h", 360000: "100 h", 3600000: "1000 h"}
FINE = {60 * n: f"{n} min" for n in (1, 2, 5, 10, 20, 30)} | {
    3600 * n: f"{n} h" for n in (1, 2, 3, 5, 10, 20, 30, 50, 100)
}

Values = Sequence[float] | NDArray[np.float64] | NDArray[np.int64]
Ticks = Sequence[tuple[float, str]]


def escape(text: str) -> Markup:
    """Write a text as mark-up, and what is invisible in it as it is on the page."""
    return _escape(inert(text))


@dataclass(frozen=True)
class Scale:
    """From values between low and high to places between start and end; what is beyond stands at the edge."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, values: Values | float) -> NDArray[np.float64]:
        """Return the places of values; NaN has none."""
        low, high = (math.log(each) if self.log else each for each in (self.low, self.high))
        bounded = np.asarray(values, dtype=np.float64).clip(min(self.low, self.high), max(self.low, self.high))
        share = ((np.log(bounded) if self.log else bounded) - low) / ((high - low) or 1.0)
        return np.asarray(self.start + share * (self.end - self.start))

    def at(self, value: float) -> float:
        """Return the place of one value."""
        return float(self(value))

    def __str__(self) -> str:
        """Write it for `data-x` and `data-y`."""
        return f"{'log' if self.log else 'linear'} {self.low:.12g} {self.high:.12g} {self.start:g} {self.end:g}"


@dataclass
class Panel:
    """Axes with what is drawn in them."""

    x: Scale
    y: Scale
    unit: str = ""  #: of the values on the y axis, for the page's script
    marks: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return what is drawn, as a group that says how it scales."""
        unit = f' data-unit="{escape(self.unit)}"' if self.unit else ""
        return "\n".join([f'<g class="panel" data-x="{self.x}" data-y="{self.y}"{unit}>', *self.marks, "</g>"])

    def line(self, xs: Values, ys: Values, look: str, name: str = "") -> None:
        """Draw a line through points; it is broken where a value is not finite."""
        ys = np.asarray(ys, dtype=np.float64)
        points, pen, out = zip(self.x(xs).tolist(), self.y(ys).tolist(), ys.tolist(), strict=True), "M", ""
        for px, py, value in points:
            if math.isfinite(value) and math.isfinite(px):
                out += f"{pen}{_n(px)},{_n(py)}"
                pen = "L"
            else:
                pen = "M"
        self._path(out, f"line {look}", name)

    def steps(self, edges: Values, values: Values, look: str, name: str = "") -> None:
        """Draw a value for each stretch between two edges, as stairs."""
        xs, ys = self.x(edges).tolist(), [_n(y) for y in self.y(values).tolist()]
        out = f"M{_n(xs[0])},{ys[0]}"
        for x, y, following in zip(xs[1:], ys, [*ys[1:], ""], strict=True):
            if following != y:
                out += f"H{_n(x)}" + (f"V{following}" if following else "")
        self._path(out, f"line {look}", name)

    def _path(self, d: str, look: str, name: str) -> None:
        if d:
            named = f' data-name="{escape(name)}"' if name else ""
            self.marks.append(f'<path class="{look}"{named} d="{d}"/>')

    def bar(self, x: tuple[float, float], y: tuple[float, float], look: str, title: str = "") -> None:
        """Draw a rectangle between two values on each axis."""
        (left, right), (below, above) = (sorted(scale(each).tolist()) for scale, each in ((self.x, x), (self.y, y)))
        size = f'width="{_n(right - left)}" height="{_n(above - below)}"'
        self.marks.append(_titled("rect", f'class="{look}" x="{_n(left)}" y="{_n(below)}" {size}', title))

    def dot(self, x: float, y: float, look: str, title: str = "", radius: float = 4.5) -> None:
        """Draw a point."""
        place = f'cx="{_n(self.x.at(x))}" cy="{_n(self.y.at(y))}" r="{radius:g}"'
        self.marks.append(_titled("circle", f'class="{look}" {place}', title))

    def cross(self, x: float, y: float, look: str, title: str = "") -> None:
        """Draw a cross."""
        left, top = self.x.at(x), self.y.at(y)
        self.marks.append(_titled("path", f'class="{look}" d="{cross_at(left, top)}"', title))

    def rule(self, *, x: float | None = None, y: float | None = None, look: str = "rule") -> None:
        """Draw a line across the panel at a value."""
        if x is not None:
            place = f"M{_n(self.x.at(x))},{_n(self.y.start)}V{_n(self.y.end)}"
        else:
            place = f"M{_n(self.x.start)},{_n(self.y.at(y or 0.0))}H{_n(self.x.end)}"
        self.marks.append(f'<path class="{look}" d="{place}"/>')

    def text(self, x: float, y: float, text: str, look: str = "", dx: float = 0, dy: float = 4) -> None:
        """Write at a place in values, so many units beside it."""
        self.marks.append(text_at(self.x.at(x) + dx, self.y.at(y) + dy, text, look))


@dataclass
class Drawing:
    """One figure."""

    height: float
    width: float = WIDTH
    parts: list[str | Panel] = field(default_factory=list)

    def text(self, x: float, y: float, text: str, look: str = "") -> None:
        """Write at a place."""
        self.parts.append(text_at(x, y, text, look))

    def panel(
        self,
        x: Scale,
        y: Scale,
        *,
        x_ticks: Ticks = (),
        y_ticks: Ticks = (),
        x_title: str = "",
        y_title: str = "",
        title: str = "",
        grid: str = "y",
        unit: str = "",
    ) -> Panel:
        """Draw axes; `y.start` is the lower edge. A y title stands above them, beside the title."""
        bottom, top = y.start, y.end
        for value, label in y_ticks:
            place = y.at(value)
            if "y" in grid:
                self.parts.append(f'<path class="grid" d="M{_n(x.start)},{_n(place)}H{_n(x.end)}"/>')
            self.text(x.start - 6, place + 4, label, "tick end")
        for value, label in x_ticks:
            place = x.at(value)
            if "x" in grid:
                self.parts.append(f'<path class="grid" d="M{_n(place)},{_n(top)}V{_n(bottom)}"/>')
            else:
                self.parts.append(f'<path class="grid" d="M{_n(place)},{_n(bottom)}v4"/>')
            self.text(place, bottom + 16, label, "tick middle")
        self.parts.append(f'<path class="axis" d="M{_n(x.start)},{_n(bottom)}H{_n(x.end)}"/>')
        if title or y_title:
            head = f'<tspan class="head">{escape(title)}</tspan> ' if title else ""
            axis = f'<tspan class="tick">{escape(y_title)}</tspan>' if y_title else ""
            self.parts.append(f'<text x="{_n(x.start)}" y="{_n(top - 7)}">{head}{axis}</text>')
        if x_title:
            self.text(x.end, bottom + 16 + (LINE if x_ticks else 0), x_title, "tick end")
        panel = Panel(x, y, unit)
        self.parts.append(panel)
        return panel

    def legend(self, entries: Iterable[tuple[str, str]], x: float = 8, y: float = 14) -> float:
        """Write a legend of (look, text) in lines from the top; returns the y below it."""
        left = x
        for look, text in entries:
            width = 24 + LETTER * len(text) + 24
            if left + width > self.width and left > x:
                left, y = x, y + LINE + 2
            if look.startswith("line"):
                self.parts.append(f'<path class="{look}" d="M{_n(left)},{_n(y - 4)}h16"/>')
            elif look.startswith("cross"):
                self.parts.append(f'<path class="{look}" d="{cross_at(left + 8, y - 4)}"/>')
            elif look.startswith("dot"):
                self.parts.append(f'<circle class="{look}" cx="{_n(left + 8)}" cy="{_n(y - 4)}" r="4.5"/>')
            else:
                self.parts.append(f'<rect class="{look}" x="{_n(left)}" y="{_n(y - 10)}" width="16" height="11"/>')
            self.text(left + 22, y, text)
            left += width
        return y + 12

    def svg(self, label: str, **data: object) -> str:
        """Return the figure; `label` says what it shows, `data` is for the page's script."""
        given = "".join(f' data-{name}="{escape(str(value))}"' for name, value in data.items())
        size = f'viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        body = "\n".join(map(str, self.parts))
        return f'<svg class="figure" {size}{given} role="img" aria-label="{escape(label)}">\n{body}\n</svg>'


def text_at(x: float, y: float, text: str, look: str = "") -> str:
    """Return a text element."""
    look = f' class="{look}"' if look else ""
    return f'<text{look} x="{_n(x)}" y="{_n(y)}">{escape(text)}</text>'


def cross_at(x: float, y: float) -> str:
    """Return the path of a cross."""
    return f"M{_n(x - 4)},{_n(y - 4)}l8,8m0,-8l-8,8"


def nice(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most so many round values within ``[low, high]``, evenly spaced; one at least."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    power = 10.0 ** math.floor(math.log10(span / most))
    steps = [power * each for each in (1, 2, 5, 10, 20, 50, 100)]
    at = next(k for k, step in enumerate(steps) if span / step <= most - 0.999)  # never the first
    for step in (steps[at], steps[at - 1]):  # of a step beyond the span there may be no value inside
        first = math.ceil(low / step - 1e-9)
        found = [step * i for i in range(first, first + most + 1) if step * i <= high + 1e-9 * span]
        if found:
            break
    return found


def plain(value: float) -> str:
    """Write a tick: thousands apart, no decimals that say nothing."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return text.replace(",", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def ticks(low: float, high: float, most: int = 6) -> list[tuple[float, str]]:
    """Return ticks of a linear axis."""
    return [(value, plain(value)) for value in nice(low, high, most)]


def wait_ticks(low: float, high: float) -> Ticks:
    """Return ticks of a log axis of durations, seconds."""
    few, many = ([(at, text) for at, text in each.items() if low <= at <= high * 1.0001] for each in (WAITS, FINE))
    return few if len(few) > 2 else many[:: -(-len(many) // 5) or 1]


def decades(low: float, high: float, most: int = 8) -> list[tuple[float, str]]:
    """Return ticks of a log axis of numbers: 1, 2, 5, 10, ..., or powers of ten alone where that is too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    found: list[float] = []
    for factors in ((1, 2, 5), (1, 3), (1,)):
        every = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        found = [each for each in every if low * 0.999 <= each <= high * 1.001]
        if len(found) <= most:
            break
    return [(value, plain(value)) for value in found[:: -(-len(found) // most) or 1]]


def midnights(low: float, high: float, where: str) -> list[int]:
    """Return the Unix seconds in ``[low, high]`` at which days begin in a zone."""
    day = datetime.fromtimestamp(low, zone(where)).replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[int] = []
    while (second := int(day.timestamp())) <= high:
        found += [second] if second >= low else []
        day = (day + timedelta(days=1, hours=3)).replace(hour=0)
    return found


def date_ticks(low: float, high: float, where: str, most: int = 9) -> Ticks:
    """Return ticks of a time axis, Unix seconds: days, or hours where there are few, with the day where one begins."""
    days = midnights(low, high, where)
    if len(days) >= 3:
        days = days[:: -(-len(days) // most)]
        return [(second, _day(second, where)) for second in days]
    step = next(each for each in (1, 2, 3, 6, 12, 24) if (high - low) / HOUR / each <= most) * HOUR
    start = (days or [int(low)])[0]
    hours = range(start - int((start - low) // step) * step, int(high) + 1, step)
    clock = {second: f"{datetime.fromtimestamp(second, zone(where)):%H:%M}" for second in hours}
    return [(second, _day(second, where) if second in days else text) for second, text in clock.items()]


def _day(second: int, where: str) -> str:
    date = datetime.fromtimestamp(second, zone(where))
    return f"{date:%b} {date.day}"


def _titled(tag: str, attributes: str, title: str) -> str:
    return f"<{tag} {attributes}><title>{escape(title)}</title></{tag}>" if title else f"<{tag} {attributes}/>"


def _n(value: float) -> str:
    """Write a coordinate, a tenth of a unit apart."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
