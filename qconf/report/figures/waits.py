"""The distribution of waits of each queue, before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.outcome import Outcome
from qconf.report.figures.base import Figure
from qconf.report.figures.over_time import LOOKS
from qconf.report.svg import Drawing, Panel, Scale, wait_ticks

SHORTEST = 60.0  # seconds: what waits less stands at the left edge
COLUMNS, TALL, GAP = 3, 120, 62
MOST = 11  # queues that have a panel


def waits_figure(outcomes: Sequence[tuple[str, Outcome]]) -> Figure:
    """Draw the share of jobs that have started after each wait, for all jobs and each queue."""
    first = outcomes[0][1]
    names = first.period.base.names
    sizes = [len(waits) for waits in first.queue_waits]
    shown = sorted(sorted((q for q in range(len(names)) if sizes[q]), key=lambda q: -sizes[q])[:MOST])
    panels = [("all jobs", [each.wait for _, each in outcomes])]
    panels += [(names[q], [each.queue_waits[q] for _, each in outcomes]) for q in shown]
    longest = max(float(waits.max(initial=0)) for _, both in panels for waits in both)
    high = max(longest, 10 * SHORTEST)
    drawing = Drawing(0)
    top = drawing.legend([(f"line {look}", name) for look, (name, _) in zip(LOOKS, outcomes, strict=False)]) + 22
    wide = (drawing.width - 36) / COLUMNS
    for i, (name, both) in enumerate(panels):
        left, row = 36 + wide * (i % COLUMNS), i // COLUMNS
        x = Scale(SHORTEST, high, left, left + wide - 24, log=True)
        y = Scale(0, 100, top + TALL + row * (TALL + GAP), top + row * (TALL + GAP))
        panel = drawing.panel(
            x, y, title=name, y_title=f"{len(both[0])} job{'s' * (len(both[0]) != 1)}", grid="xy", unit="% of the jobs",
            x_ticks=wait_ticks(SHORTEST, high), y_ticks=[(0, "0"), (50, "50"), (100, "100")] if i % COLUMNS == 0 else
            [(0, ""), (50, ""), (100, "")],
        )  # fmt: skip
        for look, (label, _), waits in zip(LOOKS, outcomes, both, strict=False):
            ecdf(panel, waits, look, label)
        drawing.height = y.start + 26
    left_out = sum(size > 0 for size in sizes) - len(shown)
    text = (
        "Share of the jobs, in per cent, that have started after each wait, in the test period. The higher line waits "
        "less; what starts within a minute is at the left edge."
        + (f" {left_out} queues with fewer jobs are left out." if left_out else "")
    )
    return Figure("waits", drawing.svg(text, x="wait"), text)


def ecdf(panel: Panel, waits: NDArray[np.int64], look: str, name: str) -> None:
    """Draw the empirical distribution function as stairs, a step for each place that can be told apart."""
    values = np.sort(np.maximum(waits, panel.x.low).astype(np.float64))
    share = 100 * np.arange(1, values.size + 1) / values.size
    last = np.append(np.diff(np.round(panel.x(values), 1)) > 0, True)
    values, share = values[last], share[last]
    if values[0] > panel.x.low:
        values, share = np.append(panel.x.low, values), np.append(0.0, share)
    panel.steps(np.append(values, panel.x.high), share, look, name)
