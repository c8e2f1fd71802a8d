"""Models beside what they stand for: surrogate and simulator, simulation and log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from qconf.fidelity.grade import GRADES, LEAST
from qconf.fidelity.verify import Verification
from qconf.recommend.fidelity import Fidelity
from qconf.report.figures.base import Figure
from qconf.report.svg import Drawing, Panel, Scale, date_ticks, wait_ticks
from qconf.report.wording import date, hours

SIDE, TALL = 240, 180


def _square(drawing: Drawing, left: float, top: float, low: float, high: float, title: str, axes: str) -> Panel:
    """Draw axes of the same scale, and the line on which both are equal."""
    x = Scale(low, high, left, left + SIDE, log=True)
    y = Scale(low, high, top + SIDE, top, log=True)
    across, up = axes.split("|")
    marks = wait_ticks(low, high)
    panel = drawing.panel(x, y, title=title, y_title=up, x_title=across, x_ticks=marks, y_ticks=marks, grid="xy")
    panel.line([low, high], [low, high], "rule")
    return panel


def surrogate_figure(steps: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw what the surrogate of each epoch expects, cross-validated, against the simulated waits of the samples."""
    fitted = [step for step in steps if step.get("step") == "surrogate" and step.get("simulated")]
    if not fitted:
        return None
    epochs = len({step["epoch"] for step in fitted})
    fitted = fitted[:epochs]  # of several types of nodes the first
    values = [max(float(v), 60.0) for step in fitted for v in (*step["simulated"], *step["expected"])]
    low, high = min(values) / 1.1, max(*values, 2 * min(values)) * 1.1
    drawing = Drawing(SIDE + 76)
    gap = 62.0
    side = min(SIDE, (drawing.width - 62 * len(fitted) - 12) / len(fitted))
    for i, step in enumerate(fitted):
        left = 56 + i * (side + gap)
        x, y = Scale(low, high, left, left + side, log=True), Scale(low, high, 30 + side, 30, log=True)
        fit = f"expected, R\N{SUPERSCRIPT TWO} {step['r2']:.2f}"
        panel = drawing.panel(
            x, y, title=f"epoch {step['epoch']}", y_title=fit, x_title="simulated",
            x_ticks=wait_ticks(low, high), y_ticks=wait_ticks(low, high), grid="xy",
        )  # fmt: skip
        panel.line([low, high], [low, high], "rule")
        for real, guess in zip(step["simulated"], step["expected"], strict=True):
            title = f"simulated {hours(real)} h, expected {hours(guess)} h"
            panel.dot(max(real, 60), max(guess, 60), "dot q0 faint", title, 3)
        drawing.height = y.start + 42
    text = (
        "Mean waits that the surrogate expects of partition sizes that it was not fitted to, against those that the "
        "simulator gives. Far from the line it is a poor guide; the simulator decides."
    )
    return Figure("surrogate", drawing.svg(text), text)


def recorded_figure(near: Fidelity, looks: Mapping[str, str]) -> Figure | None:
    """Draw the mean wait of each queue and day as simulated against that which the log recorded."""
    if not near.days:
        return None
    values = [max(each, 60.0) for day in near.days for each in (day.real_mean, day.mean)]
    low, high = min(values) / 1.2, max(*values, 2 * min(values)) * 1.2
    drawing = Drawing(0)
    named = dict.fromkeys(day.queue for day in near.days)
    top = drawing.legend([(f"dot {looks.get(name, 'q7')} faint", name) for name in named]) + 22
    panel = _square(drawing, 62, top, low, high, "", "recorded mean wait|simulated mean wait")
    for day in near.days:
        both = f"recorded {hours(day.real_mean)} h, simulated {hours(day.mean)} h"
        title = f"{day.queue}, {day.date}: {day.jobs} jobs, {both}"
        radius = 2.5 + min(3.5, day.jobs**0.5 / 5)
        panel.dot(max(day.real_mean, 60), max(day.mean, 60), f"dot {looks.get(day.queue, 'q7')} faint", title, radius)
    drawing.height = panel.y.start + 42
    text = (
        "Waits under the current configuration, a dot for each queue and day: as simulated against as recorded. Below "
        "the line jobs waited longer than the simulation has it."
    )
    return Figure("recorded", drawing.svg(text), text)


def agreement_figure(found: Verification) -> Figure | None:
    """Draw how much of the waiting in each window is the same in the log and the simulation, and the grades."""
    shown = [each for each in found.windows if not math.isnan(each.figures.agreement)]
    if not shown:
        return None
    drawing, bottom = Drawing(TALL + 54), 28.0 + TALL
    x, y = Scale(shown[0].begin, shown[-1].end, 40, drawing.width - 30), Scale(0, 100, bottom, bottom - TALL)
    limits = (1.0, *LEAST, 0.0)
    panel = drawing.panel(
        x, y, y_title="% of the waiting is the same", x_ticks=date_ticks(x.low, x.high, found.timezone),
        y_ticks=[(100 * each, f"{100 * each:g}") for each in limits],
    )  # fmt: skip
    for letter, (above, least) in zip(GRADES, pairwise(limits), strict=True):
        panel.text(x.high, 50 * (least + above), letter, "tick", dx=8)
    for each in shown:
        value, jobs = 100 * each.figures.agreement, each.figures.inside
        about = f"{date(each.begin, found.timezone)}, {hours(each.end - each.begin)} h, {jobs} jobs start"
        panel.dot((each.begin + each.end) / 2, value, "dot after faint", f"{about}: {value:.1f} %", 2 + jobs**0.25)
    if found.grade is not None:
        panel.rule(y=100 * found.grade.agreement)
    text = (
        "A dot for each window, larger where more jobs start; dashed: all windows together. The letters are the grades "
        "between the lines."
    )
    return Figure("agreement", drawing.svg(text), text)
