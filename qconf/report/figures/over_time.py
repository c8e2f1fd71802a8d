"""The test period as time goes by: utilization, queued work and queue length, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from parsim.model.node_types import MEMORY
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.timeline import timeline
from qconf.report.charts import Figure, before_after, below, chart, clock, moment, number
from qconf.report.wording import GIB, count, date
from qconf.text import in_terms_of


def over_time(outcomes: Sequence[tuple[str, Outcome]], epoch: int, where: str) -> Figure:
    """Draw three panels, and one for each type of nodes and resource, with a line for each named outcome.

    `epoch` is the second 0 of their times.
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
            {
                "at": clock(edge, where),
                "when": name,
                "value": round(float(value), 1),
                "says": f"{date(edge, where)}\n{name}: {count(round(value))} {unit}",
            }
            for (name, _), line in zip(outcomes, lines, strict=True)
            for edge, value in zip(edges[:-1], line, strict=True)
        ]
        key = before_after(dashed=True)
        if i:
            key = {channel: {**each, "legend": None} for channel, each in key.items()}
        domain = (0, 100) if unit.startswith("%") else None
        encoding = {"x": moment("at"), "y": number("value", domain=domain, tickCount=3), **key}
        mark = {"type": "line", "interpolate": "step-after", "point": "transparent", "strokeWidth": 1.6}
        charts.append(chart(rows, mark, encoding, height=84, title=f"{title}, {unit}"))
    hours = (edges[-1] - edges[0]) / max(len(edges) - 1, 1) / 3600  # 0 where all is submitted at once
    text = (
        f"The test period, in means over {hours:.2g} h: how much of the machine is in use, how much work waits, "
        "how many jobs wait."
    )
    return Figure("over-time", below(*charts), text)
