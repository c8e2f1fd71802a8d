"""Checks of models: surrogate against simulator, simulation against log."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from qconf.fidelity.grade import GRADES, LEAST
from qconf.fidelity.verify import Verification
from qconf.recommend.fidelity import Fidelity
from qconf.report.charts import Figure, Spec, chart, clock, colour, duration, layers, moment, number, panels, rule
from qconf.report.wording import date, hours


def _equal(rows: Sequence[Mapping[str, Any]], across: str, up: str, color: Spec | None = None) -> Spec:
    """Return a scatter plot on equal axes with the line of equality."""
    values = [float(row[axis]) for row in rows for axis in "xy"]
    low, high = min(values) / 1.2, max(*values, 2 * min(values)) * 1.2
    x, y = (duration(axis, title, low, high, grid=True) for axis, title in (("x", across), ("y", None)))
    ends = [{"x": low, "y": low}, {"x": high, "y": high}]
    dots = {"type": "point", "filled": True, "opacity": 0.6, "size": 34, "color": "var(--accent)"}
    encoding = {"x": x, "y": y, "tooltip": {"field": "says"}, **({} if color is None else {"color": color})}
    if color is not None:
        encoding["size"] = {"field": "jobs", "type": "quantitative", "scale": {"range": [20, 160]}, "legend": None}
    line = {"type": "line", "strokeDash": [4, 3], "stroke": "var(--ink)", "strokeWidth": 1}
    return layers({"mark": dots, "encoding": encoding}, chart(ends, line, {"x": x, "y": y}), height=230, title=up)


def surrogate_figure(steps: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw the cross-validated predictions of each epoch's surrogate against the simulated waits."""
    fitted = [step for step in steps if step.get("step") == "surrogate" and step.get("simulated")]
    if not fitted:
        return None
    fitted = fitted[: len({step["epoch"] for step in fitted})]  # only the first fit of each epoch
    rows = [
        {"panel": f"epoch {step['epoch']}, R\N{SUPERSCRIPT TWO} {step['r2']:.2f}"}
        | {"x": max(real, 60), "y": max(guess, 60)}
        | {"says": f"simulated {hours(real)} h\nexpected {hours(guess)} h"}
        for step in fitted
        for real, guess in zip(step["simulated"], step["expected"], strict=True)
    ]
    inner = _equal(rows, "simulated", "expected")
    del inner["title"]
    text = (
        "Mean waits that the surrogate expects (up) of partition sizes that it was not fitted to, against those that "
        "the simulator gives. Far from the line it is a poor guide; the simulator decides."
    )
    return Figure("surrogate", panels(rows, list(dict.fromkeys(row["panel"] for row in rows)), inner, columns=2), text)


def recorded_figure(near: Fidelity, looks: Mapping[str, str]) -> Figure | None:
    """Draw the simulated mean wait of each queue and day against the recorded one."""
    if not near.days:
        return None
    rows = []
    for day in near.days:
        both = f"recorded {hours(day.real_mean)} h, simulated {hours(day.mean)} h"
        place = {"x": max(day.real_mean, 60), "y": max(day.mean, 60), "jobs": day.jobs, "queue": day.queue}
        rows.append({**place, "says": f"{day.queue}, {day.date}: {day.jobs} jobs\n{both}"})
    named = {queue: looks.get(queue, "q7") for queue in dict.fromkeys(day.queue for day in near.days)}
    spec = _equal(rows, "recorded mean wait", "simulated mean wait", colour("queue", named))
    text = (
        "Waits under the current configuration, a dot for each queue and day: as simulated against as recorded. Below "
        "the line jobs waited longer than the simulation has it."
    )
    return Figure("recorded", {"data": {"values": rows}, **spec}, text)


def agreement_figure(found: Verification) -> Figure | None:
    """Draw the agreement of waits in each window, with the limits of the grades."""
    shown = [each for each in found.windows if not math.isnan(each.figures.agreement)]
    if not shown:
        return None
    rows = []
    for each in shown:
        value, jobs = 100 * each.figures.agreement, each.figures.inside
        about = f"{date(each.begin, found.timezone)}, {hours(each.end - each.begin)} h, {jobs} jobs start"
        at = clock((each.begin + each.end) / 2, found.timezone)
        rows.append({"at": at, "value": value, "jobs": jobs, "says": f"{about}: {value:.1f} %"})
    limits = [100 * each for each in (1.0, *LEAST, 0.0)]
    letters = ", ".join(f"'{100 * least:g}': '{letter}'" for letter, least in zip(GRADES, (*LEAST, 0.0), strict=True))
    label = f"datum.value + ' ' + ({{{letters}}}[datum.value] || '')"
    y = number("value", domain=(0, 100), values=limits, labelExpr=label)
    dot = {"type": "point", "filled": True, "opacity": 0.6, "color": "var(--after)"}
    size = {"field": "jobs", "type": "quantitative", "scale": {"range": [25, 160]}, "legend": None}
    parts = [chart(rows, dot, {"x": moment("at"), "y": y, "size": size})]
    if found.grade is not None:
        parts.append(rule("y", 100 * found.grade.agreement, strokeDash=[4, 3]))
    text = (
        "A dot for each window, larger where more jobs start; dashed: all windows together. The letters are the grades "
        "from that line on upwards."
    )
    return Figure("agreement", layers(*parts, height=200, title="% of the waiting is the same"), text)
