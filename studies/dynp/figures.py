"""Figures of sweeps and grids, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from parsim.planning.plan import ORDERS
from studies.drawing import COLOURS, MARKERS, draw
from studies.dynp.sweeps import Grid, Sweep

SIZE = (6.4, 4)  #: inches


def _line(axes: Any, i: int, points: Sequence[tuple[float, float]], label: str) -> None:  # noqa: ANN401 - matplotlib has no types here
    """Draw the `i`-th line of a figure."""
    look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
    axes.plot(*zip(*points, strict=True), **look, ms=4, label=label)


def response_figure(swept: Sweep) -> str:
    """Draw mean response time against utilization, a line per discipline, as SVG text."""

    def paint(axes: Any) -> None:  # noqa: ANN401
        for i, discipline in enumerate(swept[0][1]):
            metrics = [results[i].metrics for _, results in swept]
            _line(axes, i, [(100 * m["utilization"], m["art"] / 3600) for m in metrics], discipline.name)
        axes.set(xlabel="utilization, %", ylabel="mean response time, hours")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.grid()
        axes.legend()

    return draw(paint, SIZE)


def use_figure(swept: Sweep, name: str) -> str:
    """Draw the share of time that each order is in use under a discipline against utilization, as SVG."""

    def paint(axes: Any) -> None:  # noqa: ANN401
        of_name = [next(result for result in results if result.name == name) for _, results in swept]
        for i, order in enumerate(ORDERS):
            points = []
            for result in of_name:
                seconds = result.seconds or dict.fromkeys(ORDERS, 0)
                share = 100 * seconds[order] / max(sum(seconds.values()), 1)
                points.append((100 * result.metrics["utilization"], share))
            _line(axes, i, points, order.upper())
        axes.set(xlabel="utilization, %", ylabel="share of time in use, %", ylim=(-2, 102), title=name)
        axes.grid()
        axes.legend()

    return draw(paint, SIZE)


def grid_figure(grid: Grid) -> str:
    """Draw mean response time over the upper bound, a line per lower bound, as SVG text."""

    def paint(axes: Any) -> None:  # noqa: ANN401
        uppers = sorted({high for _, high in grid})
        for i, lower in enumerate(sorted({low for low, _ in grid})):
            points = [
                (uppers.index(high), grid[low, high].metrics["art"] / 3600)
                for low, high in sorted(grid)
                if low == lower
            ]
            _line(axes, i, points, f"lower {lower} s")
        axes.set(xlabel="upper bound, seconds", ylabel="mean response time, hours")
        axes.set_xticks(range(len(uppers)), [str(upper) for upper in uppers])
        axes.grid()
        axes.legend()

    return draw(paint, SIZE)
