"""Figures of sweeps and grids as SVG; equal numbers give equal bytes."""

from __future__ import annotations

from functools import partial

from parsim.planning.plan import ORDERS
from qconf.report.charts import name, number
from studies.drawing import line_chart
from studies.dynp.sweeps import Grid, Sweep

UTILIZATION = number("x", "utilization, %", grid=True) | {"scale": {"zero": False}}


def response_figure(swept: Sweep) -> str:
    """Draw mean response time over utilization, a line per discipline, as SVG text."""
    rows = [
        {"x": 100 * each.metrics["utilization"], "y": each.metrics["art"] / 3600, "line": each.name}
        for _, results in swept
        for each in results
    ]
    return _drawn(rows, UTILIZATION, number("y", "mean response time, hours", log=True))


def use_figure(swept: Sweep, name: str) -> str:
    """Draw the share of time of each order under a discipline over utilization, as SVG text."""
    rows = []
    for _, results in swept:
        found = next(result for result in results if result.name == name)
        seconds = found.seconds or dict.fromkeys(ORDERS, 0)
        at, whole = 100 * found.metrics["utilization"], max(sum(seconds.values()), 1)
        rows += [{"x": at, "y": 100 * seconds[order] / whole, "line": order.upper()} for order in ORDERS]
    return _drawn(rows, UTILIZATION, number("y", "share of time in use, %", domain=(0, 100)), title=name)


def grid_figure(grid: Grid) -> str:
    """Draw mean response time over the upper bound, a line per lower bound, as SVG text."""
    rows = [
        {"x": str(high), "y": grid[low, high].metrics["art"] / 3600, "line": f"lower {low} s"}
        for low, high in sorted(grid)
    ]
    uppers = [str(high) for high in sorted({high for _, high in grid})]
    x = name("x", "upper bound, seconds", sort=uppers, labelAngle=0)
    return _drawn(rows, x, number("y", "mean response time, hours") | {"scale": {"zero": False}})


_drawn = partial(line_chart, width=540, height=320, markers=True)
