"""Figures of waits by queue, before and after: at a glance, as distributions, and over the test period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from parsim.model.node_types import MEMORY
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.timeline import timeline
from qconf.report.charts import (
    DURATIONS,
    Figure,
    before_after,
    below,
    chart,
    clock,
    duration,
    layers,
    moment,
    name,
    number,
    panels,
)
from qconf.report.wording import GIB, count, date, hours
from qconf.text import in_terms_of

SHORTEST = 60.0  # seconds; shorter waits are drawn here, at the left edge
MOST = 11  # most queues with a panel
STEPS = 60  # points of a line
EVERY = "all jobs"

Pairs = list[tuple[str, list[NDArray[np.int64]]]]


def _pairs(outcomes: Sequence[tuple[str, Outcome]]) -> tuple[Pairs, int]:
    """Return the waits of all jobs and of the largest queues, and the number of queues left out."""
    first = outcomes[0][1]
    names = first.period.base.names
    sizes = [len(waits) for waits in first.queue_waits]
    shown = sorted(sorted((q for q in range(len(names)) if sizes[q]), key=lambda q: -sizes[q])[:MOST])
    found = [(EVERY, [each.wait for _, each in outcomes])]
    found += [(names[q], [each.queue_waits[q] for _, each in outcomes]) for q in shown]
    return found, sum(size > 0 for size in sizes) - len(shown)


def _left_out(queues: int) -> str:
    return f" {queues} queues with fewer jobs are left out." if queues else ""


def glance_figure(outcomes: Sequence[tuple[str, Outcome]]) -> Figure:
    """Draw for all jobs and each queue the mean wait, and a line from the 25th to the 95th percentile."""
    pairs, left_out = _pairs(outcomes)
    high = max(36000.0, *(float(np.quantile(waits, 0.95)) for _, both in pairs for waits in both if len(waits)))
    rows = []
    for queue, both in pairs:
        for (when, _), waits in zip(outcomes, both, strict=True):
            low, middle, most = (float(np.quantile(waits, share)) for share in (0.25, 0.5, 0.95))
            mean = float(waits.mean())
            texts = f"mean {hours(mean)} h, half within {hours(middle)} h, 19 of 20 within {hours(most)} h"
            longest = f"longest {hours(float(waits.max()))} h, {count(len(waits))} jobs"
            rows.append(
                {"queue": queue, "when": when, "low": max(low, SHORTEST), "high": max(most, SHORTEST)}
                | {"mean": max(mean, SHORTEST), "text": f"{hours(mean)} h"}
                | {"says": f"{queue}, {when}\n{texts}\n{longest}"}
            )
    y = name("queue", sort=[queue for queue, _ in pairs], domain=False, ticks=False, labelFontWeight=600)
    row = {"y": y, "yOffset": {"field": "when", "type": "nominal", "sort": [when for when, _ in outcomes]}}
    x, key = duration("mean", "wait", SHORTEST, high * 1.6, grid=True), before_after()
    ends = {"x": duration("low", "wait", SHORTEST, high * 1.6), "x2": {"field": "high"}}
    dashes, label = before_after(dashed=True), {"type": "text", "align": "left", "dx": 8, "fontSize": 12}
    figure = layers(
        chart(rows, {"type": "rule", "strokeWidth": 3, "opacity": 0.75}, {**row, **ends, **dashes}),
        chart(rows, {"type": "point", "filled": True, "size": 90, "opacity": 1}, {**row, "x": x, **key}),
        chart(rows, label, {**row, "x": duration("high", "wait", SHORTEST, high * 1.6), "text": {"field": "text"}}),
        height={"step": 17},
    )
    text = (
        f"Waits {'before and after the change' if len(outcomes) > 1 else 'as they are'}, simulated for the same jobs. "
        "Point and number: the mean. Line: from the wait that a quarter of the jobs stays below to that which 19 of 20 "
        f"do.{_left_out(left_out)}"
    )
    return Figure("glance", figure, text)


def waits_figure(outcomes: Sequence[tuple[str, Outcome]]) -> Figure:
    """Draw the fraction of jobs that have started after each wait, for all jobs and each queue."""
    pairs, left_out = _pairs(outcomes)
    rows = [
        {"panel": queue, "when": when, "wait": wait, "share": share}
        | {"says": f"{queue}, {when}\n{share:.0f} % start within {hours(wait)} h"}
        for queue, both in pairs
        for (when, _), waits in zip(outcomes, both, strict=True)
        for wait, share in ecdf(waits)
    ]
    high = max(*(float(waits.max(initial=0)) for _, both in pairs for waits in both), 10 * SHORTEST)
    values = [each for each in DURATIONS if each <= high][::2]
    inner = {
        "mark": {"type": "line", "interpolate": "step-after", "point": "transparent", "strokeWidth": 1.6},
        "encoding": {
            "x": duration("wait", None, SHORTEST, high) | {"axis": duration("", "", 1, 1)["axis"] | {"values": values}},
            "y": number("share", domain=(0, 100), values=[0, 50, 100], labelExpr="datum.value + ' %'"),
            **before_after(dashed=True),
            "tooltip": {"field": "says"},
        },
        "height": 110,
    }
    text = (
        "Share of the jobs that have started after each wait, in the test period. The higher line waits less; what "
        f"starts within a minute is at the left edge.{_left_out(left_out)}"
    )
    return Figure("waits", panels(rows, [queue for queue, _ in pairs], inner), text)


def ecdf(waits: NDArray[np.int64]) -> Iterator[tuple[int, float]]:
    """Yield points of the empirical distribution: a wait, and the per cent of jobs that wait no longer."""
    values = np.sort(np.maximum(waits, int(SHORTEST)))
    if not values.size:
        return
    places = np.unique(np.linspace(0, values.size - 1, STEPS).astype(int))
    if values[0] > SHORTEST:
        yield int(SHORTEST), 0.0
    for place in places.tolist():
        yield int(values[place]), round(100 * float(np.searchsorted(values, values[place], "right")) / values.size, 1)


def over_time(outcomes: Sequence[tuple[str, Outcome]], epoch: int, where: str) -> Figure:
    """Draw use, queued work and queue length over time, and use by type of nodes, a line for each named outcome.

    `epoch` is the Unix time of their second 0.
    """
    found = [timeline(outcome) for _, outcome in outcomes]
    resource = outcomes[0][1].period.resource
    terms, hour = partial(in_terms_of, resource), 3600 * (GIB if resource == MEMORY else 1)
    edges = (found[0].edges + epoch).tolist()
    series = [
        ("utilization", terms("% of the cores"), [100 * each.used for each in found]),
        ("queued work", terms("core-hours of the jobs that wait"), [each.queued / hour for each in found]),
        ("queue length", "jobs that wait", [each.waiting for each in found]),
    ]
    series += [
        (f"{resource} of nodes {name}", "% in use", [100 * each.by_type[name, resource] for each in found])
        for name, resource in found[0].by_type
    ]
    charts = []
    for i, (title, unit, lines) in enumerate(series):
        rows = [
            {"at": clock(edge, where), "when": when, "value": round(float(value), 1)}
            | {"says": f"{date(edge, where)}\n{when}: {count(round(value))} {unit}"}
            for (when, _), line in zip(outcomes, lines, strict=True)
            for edge, value in zip(edges[:-1], line, strict=True)
        ]
        key = before_after(dashed=True)
        if i:
            key = {channel: {**each, "legend": None} for channel, each in key.items()}
        domain = (0, 100) if unit.startswith("%") else None
        encoding = {"x": moment("at"), "y": number("value", domain=domain, tickCount=3), **key}
        mark = {"type": "line", "interpolate": "step-after", "point": "transparent", "strokeWidth": 1.6}
        charts.append(chart(rows, mark, encoding, height=84, title=f"{title}, {unit}"))
    each_is = (edges[-1] - edges[0]) / max(len(edges) - 1, 1) / 3600  # 0 where all is submitted at once
    text = (
        f"The test period, in means over {each_is:.2g} h: how much of the machine is in use, how much work waits, "
        "how many jobs wait."
    )
    return Figure("over-time", below(*charts), text)
