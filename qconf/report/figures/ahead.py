"""Figures of a prediction: the plan as a Gantt chart, the starts with their intervals, the cores in use."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from qconf.inert import inert
from qconf.prediction.results import Prediction, Start
from qconf.report.figures.base import Figure, hue_legend, hues
from qconf.report.figures.gantt import Piece, give_back, take
from qconf.report.svg import WIDTH, Drawing, Scale, date_ticks, ticks

MOST = 1500  #: jobs in the Gantt chart
ROWS = 40  #: jobs whose starts are drawn
TALL, LEFT, ROW = 260, 52, 17


def ahead_figures(found: Prediction, where: str) -> dict[str, Figure]:
    """Return the figures of a prediction, by name."""
    drawn = {"gantt": plan_chart(found, where), "use": use(found, where)}
    if found.runs and any(each.intervals for each in found.starts):
        drawn["starts"] = starts(found.starts, found.ahead.now, where)
    return drawn


def horizon(found: Prediction) -> int:
    """Return until when is drawn: the plan's end, but for the few farthest off, which would hide the others."""
    ends = [each.planned + each.job.walltime for each in found.starts if each.planned is not None]
    ends += [job.start + job.walltime for job in found.ahead.jobs if job.start is not None]
    return max(int(np.quantile(ends, 0.9)) if ends else 0, found.ahead.now + 3600)


def plan_chart(found: Prediction, where: str) -> Figure:
    """Draw what runs and is planned, each job on cores that lie together where there are such."""
    now, last, cores = found.ahead.now, horizon(found), found.ahead.system.cores
    w = found.ahead.present.workload
    rows = [row for row in np.argsort(found.planned, kind="stable").tolist() if found.planned[row] < last][:MOST]
    names = [queue.name for queue in found.ahead.system.queues]
    looks = hues(names, np.bincount(w.queue, w.cores * w.walltime, len(names)).tolist())
    drawing = Drawing(0)
    top = drawing.legend(hue_legend({name: looks[name] for name in {names[q] for q in w.queue[rows].tolist()}})) + 16
    drawing.height = top + TALL + 24
    x, y = Scale(now, last, LEFT, WIDTH - 10), Scale(0, cores, top + TALL, top)
    panel = drawing.panel(
        x, y, x_ticks=date_ticks(now, last, where), y_ticks=ticks(0, cores, 5), y_title="cores", unit="cores"
    )
    for row, taken in _on_cores(found, rows):
        job, begin = found.ahead.jobs[row], max(now, int(found.planned[row]))
        end = min(last, int(found.planned[row]) + job.walltime)
        title = f"{job.job_id} {job.user}: {job.cores} cores, {'runs' if job.start is not None else 'planned'}"
        for low, size in taken:
            panel.bar((begin, end), (low, low + size), f"fill part {looks[names[w.queue[row]]]}", inert(title))
    more = "" if len(rows) == len(w) else f" Left out: {len(w) - len(rows)} that begin later."
    text = (
        f"What runs and what is planned if every job takes its whole walltime, in the colours of the queues.{more} "
        "A plan knows how many cores a job has, and not which: they are drawn where they fit."
    )
    return Figure("gantt", drawing.svg(text), text)


def _on_cores(found: Prediction, rows: Sequence[int]) -> Iterator[tuple[int, list[Piece]]]:
    """Yield each job, by start, with the cores that it is drawn on."""
    free = [(0, found.ahead.system.cores)]
    ending: list[tuple[int, int]] = []
    held: dict[int, list[Piece]] = {}
    for row in rows:
        job, start = found.ahead.jobs[row], int(found.planned[row])
        while ending and ending[0][0] <= start:
            for piece in held.pop(heapq.heappop(ending)[1]):
                give_back(free, piece)
        held[row] = list(take(free, job.cores))
        heapq.heappush(ending, (start + job.walltime, row))
        yield row, held[row]


def use(found: Prediction, where: str) -> Figure:
    """Draw the cores in use by the plan."""
    now, last, cores = found.ahead.now, horizon(found), found.ahead.system.cores
    edges, used = cores_in_use(found, now, last)
    drawing = Drawing(150)
    x, y = Scale(now, last, LEFT, WIDTH - 10), Scale(0, cores, 118, 24)
    panel = drawing.panel(
        x, y, x_ticks=date_ticks(now, last, where), y_ticks=ticks(0, cores, 5), y_title="cores in use", unit="cores"
    )
    panel.rule(y=cores)
    panel.steps(edges, used, "after", "plan")
    text = (
        "Cores in use by the plan. What lies between it and the dashed line, all cores, idles, is reserved or out of "
        "service."
    )
    return Figure("use", drawing.svg(text), text)


def cores_in_use(found: Prediction, begin: int, end: int) -> tuple[list[int], list[int]]:
    """Return instants from `begin` to `end`, and the cores in use between each two of them, by the plan."""
    w = found.ahead.present.workload
    first, last = found.planned, found.planned + w.walltime
    edges = np.unique(np.clip(np.concatenate((first, last, [begin, end])), begin, end))
    change = np.zeros(edges.size)
    inside = (last > begin) & (first < end)
    np.add.at(change, np.searchsorted(edges, np.maximum(first[inside], begin)), w.cores[inside])
    np.add.at(change, np.searchsorted(edges, np.minimum(last[inside], end)), -w.cores[inside])
    return edges.tolist(), np.cumsum(change)[:-1].astype(int).tolist()


def starts(found: Sequence[Start], now: int, where: str) -> Figure:
    """Draw the starts that are expected, with both intervals, and those of the plan."""
    shown = [each for each in found if each.intervals][:ROWS]
    far = [next(iter(each.intervals.values()))[1] for each in shown]
    points = [point for each in shown for point in (each.planned, each.expected) if point is not None]
    last = max(int(np.quantile(far, 0.9)), now + 3600, *points)  # the widest intervals would hide all else
    drawing = Drawing(0)
    legend = [
        ("dot after", "expected"),
        ("fill d3", "80 %"),
        ("fill d1", "95 %"),
        ("cross before", "plan by walltimes"),
    ]
    top = drawing.legend(legend) + 6
    drawing.height = top + ROW * len(shown) + 24
    x, y = Scale(now, last, 118, WIDTH - 10), Scale(len(shown), 0, top + ROW * len(shown), top)
    panel = drawing.panel(x, y, x_ticks=date_ticks(now, last, where), grid="x")
    for row, each in enumerate(shown):
        job = each.job
        drawing.text(112, y.at(row + 0.5) + 4, inert(f"{job.job_id} {job.user}")[:18], "tick end")
        title = f"{job.job_id} {job.user}, {job.cores} cores: {each.why}"
        for look, thick, (low, high) in zip(("d3", "d1"), (0.25, 0.12), each.intervals.values(), strict=True):
            panel.bar((low, max(high, low + 1)), (row + 0.5 - thick, row + 0.5 + thick), f"fill {look}", inert(title))
        if each.planned is not None and each.expected is not None:
            panel.cross(each.planned, row + 0.5, "cross before", inert(title))
            panel.dot(each.expected, row + 0.5, "dot after", inert(title), 3.5)
    text = "When the jobs that wait will start. The plan takes each job for as long as its walltime."
    if any(high > last for each in shown for _, high in each.intervals.values()):
        text += " Intervals that go on are cut at the right; the table has their ends."
    if len(found) > len(shown):
        text += f" The first {len(shown)} by the plan."
    return Figure("starts", drawing.svg(text), text)
