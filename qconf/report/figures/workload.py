"""What was submitted: core-hours by queue over time, and where jobs lie in the plane of walltime and cores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.metrics.bottleneck import Use
from parsim.model.node_types import MEMORY
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import QueueConfig, SiteConfig
from qconf.history.times import zone
from qconf.report.figures.base import HUES, Figure, hue_legend, hues
from qconf.report.svg import DAY, LETTER, Drawing, Scale, date_ticks, decades, midnights, ticks
from qconf.report.wording import GIB, count
from qconf.text import in_terms_of

TALL, GAP = 92, 42
MOST_DAYS = 130  # bars of single days; of a longer log ten days and months are drawn alone
TICKS = {60: "1 min", 600: "10 min", 3600: "1 h", 14400: "4 h", 43200: "12 h", 86400: "1 d", 259200: "3 d",
         864000: "10 d", 2592000: "30 d"}  # fmt: skip
CELLS = (44, 28)  # of the queue map, across and up


def core_hours(jobs: Workload, use: Use, names: Sequence[str], epoch: int, where: str) -> Figure:
    """Draw the hours of the bottleneck submitted a day by queue: of each day, of ten days, of the whole or its months.

    As Figures 4 to 6 of Kondameedi and Vadhiyar, CCGrid 2017.
    """
    submit = jobs.submit + epoch
    work = use.amount * jobs.effective_runtime / 3600 / (GIB if use.resource == MEMORY else 1)
    unit = in_terms_of(use.resource, "core-hours")
    looks = hues(names, np.bincount(jobs.queue, work, len(names)).tolist())
    groups = np.array([int(looks[name][1:]) for name in names])[jobs.queue]
    first, last = int(submit[0]), int(submit[-1]) + 1
    begin = _midnight(first, where)
    days = midnights(begin, last, where)
    end = days[-1] + DAY
    rows = [("each day", [*days, end])] if len(days) <= MOST_DAYS else []
    rows.append(("each ten days", [*days[::10], end]))
    edges = [begin, *(day for day in days[1:] if datetime.fromtimestamp(day, zone(where)).day == 1), end]
    rows.append(("each month" if len(edges) > 2 else "the whole period", edges))
    drawing = Drawing(0)
    top = drawing.legend(hue_legend(looks))
    x = Scale(begin, end, 62, drawing.width - 10)
    for i, (title, cuts) in enumerate(rows):
        span = np.diff(np.clip(cuts, None, max(last, cuts[0] + 1))) / DAY  # the last is not over when the log ends
        sums = np.zeros((HUES, len(cuts) - 1))
        np.add.at(sums, (groups, np.searchsorted(cuts, submit, side="right") - 1), work)
        rates = sums / np.maximum(span if title != "each day" else 1.0, 1 / 24)
        high = float(rates.sum(axis=0).max()) or 1.0
        y = Scale(0, high, top + 24 + (i + 1) * TALL + i * GAP, top + 24 + i * (TALL + GAP))
        panel = drawing.panel(
            x, y, title=title, y_title=f"{unit} a day", y_ticks=ticks(0, high, 4), grid="y",
            x_ticks=date_ticks(begin, end, where),
        )  # fmt: skip
        for k, (left, right) in enumerate(pairwise(cuts)):
            below = 0.0
            gap = 0.06 * min(right - left, DAY)
            for hue in range(HUES):
                if rates[hue, k] > 0:
                    who = next((name for look, name in hue_legend(looks) if look == f"fill q{hue}"), "")
                    bar = (left + gap, right - gap), (below, below + rates[hue, k])
                    panel.bar(*bar, f"fill q{hue}", f"{who}: {count(round(rates[hue, k]))} {unit} a day")
                    below += rates[hue, k]
        drawing.height = y.start + 26
    text = (
        "Core-hours that were submitted a day, by queue: single days differ much, ten days less, a month shows the "
        "pattern that a configuration can follow."
    )
    text = in_terms_of(use.resource, text)
    return Figure("core-hours", drawing.svg(text), text)


def _midnight(second: int, where: str) -> int:
    """Return when the day of a second begins."""
    return midnights(second - 2 * DAY, second, where)[-1]


def queue_map(jobs: Workload, base: SiteConfig, config: SiteConfig) -> Figure:
    """Draw jobs as density over walltime and cores, and the ranges that queues admit, before and after."""
    machine = base.machine
    longest = int(max(jobs.walltime.max(), *(q.walltime[1] for q in base.queues if q.walltime[1] < MAX_DURATION), 3600))
    shortest = max(60, min(3600, int(jobs.walltime.min())))
    drawing = Drawing(0)
    changed = {q.name: (q.cores, q.walltime) for q in config.queues} != {
        q.name: (q.cores, q.walltime) for q in base.queues
    }
    entries = [("fill density", "jobs: darker where there are more"), ("line before", "queues now")]
    top = drawing.legend(entries + ([("line after", "queues after the change")] if changed else [])) + 22
    x = Scale(shortest, longest * 1.06, 62, drawing.width - 12, log=True)
    y = Scale(max(1, int(jobs.cores.min())) * 0.94, machine.cores * 1.06, top + 300, top, log=True)
    panel = drawing.panel(
        x, y, y_title="cores", x_title="requested walltime", grid="",
        x_ticks=[(s, text) for s, text in TICKS.items() if x.low <= s <= x.high], y_ticks=decades(y.low, y.high),
    )  # fmt: skip
    across, up = (np.geomspace(axis.low, axis.high, n + 1) for axis, n in zip((x, y), CELLS, strict=True))
    cells = np.zeros(CELLS)
    np.add.at(cells, (_cell(jobs.walltime, across), _cell(jobs.cores, up)), 1)
    most = cells.max() or 1.0
    for i, k in zip(*np.nonzero(cells), strict=True):
        n = int(cells[i, k])
        level = 1 + min(4, int(5 * math.log1p(n) / math.log1p(most)))
        title = f"{count(n)} job{'s' * (n != 1)}"
        panel.bar((across[i], across[i + 1]), (up[k], up[k + 1]), f"fill density d{level}", title)
    for look, queues in (("before", base.queues), ("after", config.queues if changed else ())):
        for (cores, walltime), named in _together(queues).items():
            left, right = max(walltime[0], x.low), min(walltime[1], x.high)
            low, high = max(cores[0] * 0.97, y.low), min(cores[1] * 1.03, y.high)
            if left < right and low < high:
                panel.bar((left, right), (low, high), f"range {look}")
                room = max(3, int((x.at(right) - x.at(left) - 8) / LETTER))
                text = ", ".join(named)
                text = text if len(text) <= room else f"{text[: room - 1]}\N{HORIZONTAL ELLIPSIS}"
                panel.text(left, high, text, f"label {look}", dx=4, dy=13 if look == "before" else 27)
    drawing.height = y.start + 40
    text = "Where the jobs lie, and which walltimes and cores each queue admits."
    return Figure("queue-map", drawing.svg(text), text)


def _cell(values: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stretch between two edges in which each value lies, at the ends what is beyond."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)


def _together(queues: Sequence[QueueConfig]) -> dict[tuple[tuple[int, int], tuple[int, int]], list[str]]:
    """Name the queues of each range."""
    found: dict[tuple[tuple[int, int], tuple[int, int]], list[str]] = {}
    for queue in queues:
        low, high = queue.cores
        found.setdefault(((low, min(high, MAX_CORES)), queue.walltime), []).append(queue.name)
    return found
