"""The test period as time goes by: utilization, queued work and queue length, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parsim.model.node_types import MEMORY
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.timeline import timeline
from qconf.report.figures.base import Figure
from qconf.report.svg import Drawing, Scale, date_ticks, ticks
from qconf.report.wording import GIB
from qconf.text import in_terms_of

LOOKS = ("before", "after")
TALL, GAP = 96, 40


def over_time(outcomes: Sequence[tuple[str, Outcome]], epoch: int, where: str) -> Figure:
    """Draw three panels, and one for each type of nodes and resource, with a line for each named outcome.

    `epoch` is the second 0 of their times.
    """
    found = [timeline(outcome) for _, outcome in outcomes]
    resource = outcomes[0][1].period.resource
    terms, hour = partial(in_terms_of, resource), 3600 * (GIB if resource == MEMORY else 1)
    edges = found[0].edges + epoch
    series = [
        ("utilization", terms("% of the cores"), [100 * each.used for each in found], 100.0),
        ("queued work", terms("core-hours of the jobs that wait"), [each.queued / hour for each in found], 0.0),
        ("queue length", "jobs that wait", [each.waiting for each in found], 0.0),
    ]
    series += [
        (f"{resource} of nodes {name}", "% in use", [100 * each.by_type[name, resource] for each in found], 100.0)
        for name, resource in found[0].by_type
    ]
    drawing = Drawing(0)
    top = drawing.legend([(f"line {look}", name) for look, (name, _) in zip(LOOKS, outcomes, strict=False)])
    x = Scale(float(edges[0]), float(edges[-1]), 62, drawing.width - 10)
    for i, (title, unit, lines, least) in enumerate(series):
        high = max(least, *(float(line.max(initial=0)) for line in lines)) or 1.0
        y = Scale(0, high, top + 24 + (i + 1) * TALL + i * GAP, top + 24 + i * (TALL + GAP))
        panel = drawing.panel(
            x, y, title=title, y_title=unit, y_ticks=ticks(0, high, 4), grid="y", unit=unit.partition(" of")[0],
            x_ticks=[(at, text) for at, text in date_ticks(x.low, x.high, where)],
        )  # fmt: skip
        for look, (name, _), line in zip(LOOKS, outcomes, lines, strict=False):
            panel.steps(edges, line, look, name)
        drawing.height = y.start + 26
    hours = (found[0].edges[1] - found[0].edges[0]) / 3600
    text = (
        f"The test period, in means over {hours:g} h: how much of the machine is in use, how much work waits, how many "
        "jobs wait."
    )
    return Figure("over-time", drawing.svg(text, x="time", zone=where), text)
