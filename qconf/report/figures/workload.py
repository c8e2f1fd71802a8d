"""Figures of the submitted work: core-hours by queue over time, and jobs by walltime and cores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.metrics.bottleneck import Use
from parsim.model.node_types import MEMORY
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import QueueConfig, SiteConfig, format_duration
from qconf.history.times import zone
from qconf.report.charts import (
    DAY,
    Figure,
    Spec,
    below,
    chart,
    clock,
    duration,
    hues,
    layers,
    moment,
    number,
    queue_colours,
    shown_as,
)
from qconf.report.wording import GIB, count, date
from qconf.text import in_terms_of

MOST_DAYS = 130  # most bars of single days; a longer log has only ten-day and monthly bars
CELLS = (44, 28)  # cells of the queue map, across and up


def core_hours(jobs: Workload, use: Use, names: Sequence[str], epoch: int, where: str) -> Figure:
    """Draw the bottleneck-hours submitted per day by queue: means of each day, ten days, and month or the whole.

    As Figures 4 to 6 of Kondameedi and Vadhiyar, CCGrid 2017.
    """
    submit = jobs.submit + epoch
    work = use.amount * jobs.effective_runtime / 3600 / (GIB if use.resource == MEMORY else 1)
    unit = in_terms_of(use.resource, "core-hours")
    looks = hues(names, np.bincount(jobs.queue, work, len(names)).tolist())
    called = [shown_as(looks)[name] for name in names]
    groups = list(dict.fromkeys(called))
    group = np.array([groups.index(each) for each in called])[jobs.queue]
    first, last = int(submit[0]), int(submit[-1]) + 1
    days = midnights(first, last, where)
    end = days[-1] + DAY
    spans = [("each day", [*days, end])] if len(days) <= MOST_DAYS else []
    spans.append(("each ten days", [*days[::10], end]))
    edges = [days[0], *(day for day in days[1:] if datetime.fromtimestamp(day, zone(where)).day == 1), end]
    spans.append(("each month" if len(edges) > 2 else "the whole period", edges))
    charts = []
    for i, (title, cuts) in enumerate(spans):
        span = np.diff(np.clip(cuts, None, max(last, cuts[0] + 1))) / DAY  # the last span ends with the log
        sums = np.zeros((len(groups), len(cuts) - 1))
        np.add.at(sums, (group, np.searchsorted(cuts, submit, side="right") - 1), work)
        rates = sums / np.maximum(span if title != "each day" else 1.0, 1 / 24)
        rows: list[dict[str, Any]] = []
        for k, (left, right) in enumerate(pairwise(cuts)):
            gap, low = 0.06 * min(right - left, DAY), 0.0
            for queue, rate in zip(groups, rates[:, k].tolist(), strict=True):
                if rate > 0:
                    says = f"{date(left, where)[:10]}, {queue}: {count(round(rate))} {unit} a day"
                    ends = {"low": round(low, 2), "high": round(low + rate, 2)}
                    place = {"a": clock(left + gap, where), "b": clock(right - gap, where), **ends}
                    rows.append({**place, "queue": queue, "says": says})
                    low += rate
        colours = queue_colours(looks) | ({} if i == 0 else {"legend": None})
        far = {"x2": {"field": "b"}, "y2": {"field": "high"}}
        encoding = {"x": moment("a"), "y": number("low", tickCount=3), **far, "color": colours}
        charts.append(chart(rows, "rect", encoding, height=84, title=f"{unit} a day, {title}"))
    text = (
        "Core-hours that were submitted a day, by queue: single days differ much, ten days less, a month shows the "
        "pattern that a configuration can follow."
    )
    return Figure("core-hours", below(*charts), in_terms_of(use.resource, text))


def midnights(first: int, last: int, where: str) -> list[int]:
    """Return the Unix seconds of all midnights in a zone, from the day of the first second to that of the last."""
    day = datetime.fromtimestamp(first, zone(where)).replace(hour=0, minute=0, second=0, microsecond=0)
    found: list[int] = []
    while (second := int(day.timestamp())) <= last:
        found.append(second)
        day = (day + timedelta(days=1, hours=3)).replace(hour=0)
    return found


def queue_map(jobs: Workload, base: SiteConfig, config: SiteConfig) -> Figure:
    """Draw the density of jobs over walltime and cores, with the ranges of queues: before and, if changed, after."""
    longest = int(max(jobs.walltime.max(), *(q.walltime[1] for q in base.queues if q.walltime[1] < MAX_DURATION), 3600))
    shortest = max(60, min(3600, int(jobs.walltime.min())))
    x = (float(shortest), longest * 1.06)
    y = (max(1, int(jobs.cores.min())) * 0.94, base.machine.cores * 1.06)
    across, up = (np.geomspace(*axis, n + 1) for axis, n in zip((x, y), CELLS, strict=True))
    cells = np.zeros(CELLS)
    np.add.at(cells, (_cell(jobs.walltime, across), _cell(jobs.cores, up)), 1)
    most = math.log1p(cells.max() or 1.0)
    density = [
        {"x": round(across[i]), "x2": round(across[i + 1]), "y": round(up[k], 2), "y2": round(up[k + 1], 2)}
        | {"much": round(0.15 + 0.75 * math.log1p(cells[i, k]) / most, 2)}
        | {"says": f"{count(cells[i, k])} job{'s' * int(cells[i, k] != 1)}"}
        for i, k in zip(*(each.tolist() for each in np.nonzero(cells)), strict=True)
    ]
    sides = (("queues now", base, config), ("queues after the change", config, base))
    changed = _ranges(base) != _ranges(config)
    maps = [_side(title, list(_queues(one, other, x, y)), x, y) for title, one, other in sides[: 1 + changed]]
    text = "Where the jobs lie, darker where there are more, and which walltimes and cores each queue admits" + (
        "; thick: what changes." if changed else "."
    )
    return Figure("queue-map", {"datasets": {"jobs": density}, "concat": maps, "columns": len(maps)}, text)


def _side(title: str, queues: list[dict[str, Any]], x: tuple[float, float], y: tuple[float, float]) -> Spec:
    powers = [10**n for n in range(7) if y[0] <= 10**n <= y[1]]
    place = {"x": duration("x", "requested walltime", *x), "x2": {"field": "x2"}}
    place |= {"y": number("y", log=True, domain=y, values=powers), "y2": {"field": "y2"}}
    much = {"fillOpacity": {"field": "much", "type": "quantitative", "scale": None}}
    jobs = chart([], {"type": "rect", "fill": "var(--accent)"}, {**place, **much, "tooltip": {"field": "says"}})
    jobs["data"] = {"name": "jobs"}
    thick = {"condition": {"test": "datum.changed", "value": 3}, "value": 1.3}
    dark = {"condition": {"test": "datum.changed", "value": "var(--after)"}, "value": "var(--dim)"}
    frame = {"type": "rect", "fill": "transparent"}
    frames = chart(queues, frame, {**place, "strokeWidth": thick, "stroke": dark})
    label = {"type": "text", "align": "left", "baseline": "top", "dx": 5, "dy": 5, "fontSize": 12}
    names = chart(queues, label, {"x": place["x"], "y": {**place["y"], "field": "y2"}, "text": {"field": "label"}})
    return layers(jobs, frames, names, height=260, title=f"{title}, cores by walltime")


def _queues(
    config: SiteConfig, other: SiteConfig, x: tuple[float, float], y: tuple[float, float]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each range that queues admit, clipped to the axes."""
    named: dict[tuple[tuple[int, int], tuple[int, int]], list[QueueConfig]] = {}
    for queue in config.queues:
        named.setdefault((queue.cores, queue.walltime), []).append(queue)
    before = _ranges(other)
    for (cores, walltime), queues in named.items():
        left, right = max(walltime[0], x[0]), min(walltime[1], x[1])
        low, high = max(cores[0] * 0.97, y[0]), min(min(cores[1], MAX_CORES) * 1.03, y[1])
        if left < right and low < high:
            names = ", ".join(queue.name for queue in queues)
            width = "any" if cores[1] == MAX_CORES else f"{cores[0]} to {cores[1]}"
            long = "any walltime" if walltime[1] == MAX_DURATION else f"up to {format_duration(walltime[1])}"
            yield {
                "x": left, "x2": right, "y": low, "y2": high, "label": names,
                "changed": any(before.get(queue.name) != (queue.cores, queue.walltime) for queue in queues),
                "says": f"{names}: {width} cores, {long}",
            }  # fmt: skip


def _ranges(config: SiteConfig) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
    return {queue.name: (queue.cores, queue.walltime) for queue in config.queues}


def _cell(values: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the index of the interval of each value; values beyond the ends are in the first or last."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
