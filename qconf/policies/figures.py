"""Figures of sweeps and grids, the same bytes for the same numbers."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from parsim.planning import ORDERS
from qconf.policies.study import Row

STYLE: Any = {
    "svg.hashsalt": "qconf",
    "svg.fonttype": "path",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
}
MARKS = "os^vDPX*"

Sweep = Sequence[tuple[Decimal, Sequence[Row]]]


def _drawn(draw: Callable[[Any], None], width: float = 6.4) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 4), layout="constrained")
        FigureCanvasSVG(figure)  # type: ignore[no-untyped-call, unused-ignore]
        draw(figure.add_subplot())
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def response_figure(swept: Sweep) -> str:
    """Draw mean response time against utilization, a line per discipline, as SVG text."""

    def draw(axes: Any) -> None:  # noqa: ANN401 - matplotlib has no types here
        for i, row in enumerate(swept[0][1]):
            points = [(100 * rows[i].metrics["utilization"], rows[i].metrics["art"] / 3600) for _, rows in swept]
            axes.plot(*zip(*points, strict=True), marker=MARKS[i % len(MARKS)], ms=4, label=row.name)
        axes.set(xlabel="utilization, %", ylabel="mean response time, hours")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.legend()

    return _drawn(draw)


def use_figure(swept: Sweep, name: str) -> str:
    """Draw the share of time that each order is in use under a discipline against utilization, as SVG."""

    def draw(axes: Any) -> None:  # noqa: ANN401
        runs = [next(row for row in rows if row.name == name) for _, rows in swept]
        for order, mark in zip(ORDERS, MARKS, strict=False):
            points = []
            for row in runs:
                seconds = row.seconds or dict.fromkeys(ORDERS, 0)
                share = 100 * seconds[order] / max(sum(seconds.values()), 1)
                points.append((100 * row.metrics["utilization"], share))
            axes.plot(*zip(*points, strict=True), marker=mark, ms=4, label=order.upper())
        axes.set(xlabel="utilization, %", ylabel="share of time in use, %", ylim=(-2, 102), title=name)
        axes.legend()

    return _drawn(draw)


def grid_figure(grid: Mapping[tuple[int, int], Row]) -> str:
    """Draw mean response time over the upper bound, a line per lower bound, as SVG text."""

    def draw(axes: Any) -> None:  # noqa: ANN401
        uppers = sorted({high for _, high in grid})
        for i, lower in enumerate(sorted({low for low, _ in grid})):
            points = [
                (uppers.index(high), grid[low, high].metrics["art"] / 3600)
                for low, high in sorted(grid)
                if low == lower
            ]
            axes.plot(*zip(*points, strict=True), marker=MARKS[i % len(MARKS)], ms=4, label=f"lower {lower} s")
        axes.set(xlabel="upper bound, seconds", ylabel="mean response time, hours")
        axes.set_xticks(range(len(uppers)), [str(upper) for upper in uppers])
        axes.legend()

    return _drawn(draw)
