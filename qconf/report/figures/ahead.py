"""Figures of a prediction: the plan as a Gantt chart, starts with intervals, and cores in use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qconf.inert import inert
from qconf.prediction.results import Prediction, Start
from qconf.report.charts import (
    Figure,
    chart,
    clock,
    colour,
    hues,
    layers,
    moment,
    name,
    number,
    queue_colours,
    rule,
    shown_as,
)
from qconf.report.figures.gantt import jobs_on_cores, on_cores
from qconf.report.wording import count, date

MOST = 1500  #: most jobs in the Gantt chart
ROWS = 40  #: most jobs in the chart of starts


def ahead_figures(found: Prediction, where: str) -> dict[str, Figure]:
    """Return the figures of a prediction, by name."""
    drawn = {"gantt": plan_chart(found, where), "use": use(found, where)}
    if found.runs and any(each.intervals for each in found.starts):
        drawn["starts"] = starts(found.starts, found.ahead.now, where)
    return drawn


def horizon(found: Prediction) -> int:
    """Return the right end of the figures: the plan's end, without the few jobs that end much later."""
    ends = [each.planned + each.job.walltime for each in found.starts if each.planned is not None]
    ends += [job.start + job.walltime for job in found.ahead.jobs if job.start is not None]
    return max(int(np.quantile(ends, 0.9)) if ends else 0, found.ahead.now + 3600)


def plan_chart(found: Prediction, where: str) -> Figure:
    """Draw running and planned jobs, each on adjacent cores if possible."""
    now, last = found.ahead.now, horizon(found)
    w = found.ahead.present.workload
    rows = [row for row in np.argsort(found.planned, kind="stable").tolist() if found.planned[row] < last][:MOST]
    names = [queue.name for queue in found.ahead.system.queues]
    looks = hues(names, np.bincount(w.queue, w.cores * w.walltime, len(names)).tolist())
    marks, said = [], []
    ends = (found.planned + w.walltime).tolist()
    planned = ((row, int(found.planned[row]), ends[row], {"": found.ahead.jobs[row].cores}) for row in rows)
    for row, taken in on_cores(planned, {"": found.ahead.system.cores}):
        job, begin, end = found.ahead.jobs[row], max(now, int(found.planned[row])), min(last, ends[row])
        says = inert(f"{job.job_id} {job.user}: {job.cores} cores, {'runs' if job.start is not None else 'planned'}")
        said.append({"job": row, "queue": shown_as(looks)[names[w.queue[row]]], "says": says})
        place = {"panel": "cores", "job": row, "a": clock(begin, where), "b": clock(end, where)}
        marks += [{**place, "low": low, "high": low + n} for low, n in taken]
    more = "" if len(rows) == len(w) else f" Left out: {len(w) - len(rows)} that begin later."
    text = (
        f"What runs and what is planned if every job takes its whole walltime, in the colours of the queues.{more} "
        "A plan knows how many cores a job has, and not which: they are drawn where they fit."
    )
    return Figure("gantt", jobs_on_cores(marks, said, ["cores"], queue_colours(looks)), text)


def use(found: Prediction, where: str) -> Figure:
    """Draw the cores in use by the plan."""
    now, last, cores = found.ahead.now, horizon(found), found.ahead.system.cores
    edges, used = cores_in_use(found, now, last)
    rows = [
        {"at": clock(at, where), "used": n, "says": f"{date(at, where)}\n{count(n)} of {count(cores)} cores"}
        for at, n in zip(edges, [*used, used[-1]], strict=True)
    ]
    mark = {"type": "line", "interpolate": "step-after", "point": "transparent", "stroke": "var(--after)"}
    line = chart(rows, mark, {"x": moment("at"), "y": number("used", tickCount=4)})
    text = (
        "Cores in use by the plan. What lies between it and the dashed line, all cores, idles, is reserved or out of "
        "service."
    )
    every = rule("y", cores, strokeDash=[4, 3])
    return Figure("use", layers(line, every, height=110, title="cores in use"), text)


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
    """Draw expected starts with both intervals, and planned starts."""
    shown = [each for each in found if each.intervals][:ROWS]
    far = [next(iter(each.intervals.values()))[1] for each in shown]
    points = [point for each in shown for point in (each.planned, each.expected) if point is not None]
    last = max(int(np.quantile(far, 0.9)), now + 3600, *points)  # the widest intervals would hide all else
    spans, dots, names = [], [], []
    for each in shown:
        job = inert(f"{each.job.job_id} {each.job.user}")
        says = inert(f"{each.job.job_id} {each.job.user}, {each.job.cores} cores\n{each.why}", lines=True)
        names.append(job)
        for level, (low, high) in zip(("80 %", "95 %"), each.intervals.values(), strict=True):
            place = {"job": job, "a": clock(low, where), "b": clock(min(max(high, low + 1), last), where)}
            about = f"{says}\n{level}: {date(low, where)} to {date(high, where)}"
            spans.append({**place, "level": level, "says": about})
        for kind, at in (("expected", each.expected), ("plan by walltimes", each.planned)):
            if at is not None:
                about = f"{says}\n{kind}: {date(at, where)}"
                dots.append({"job": job, "at": clock(at, where), "kind": kind, "says": about})
    y = name("job", sort=names, domain=False, ticks=False, labelLimit=130)
    thick = {"field": "level", "type": "nominal", "title": None, "scale": {"domain": ["80 %", "95 %"], "range": [9, 3]}}
    line = {"type": "rule", "stroke": "var(--before)", "opacity": 0.7}
    looks = {"expected": "after", "plan by walltimes": "bad"}
    shape = {"field": "kind", "type": "nominal", "title": None}
    intervals = chart(spans, line, {"x": moment("a", orient="top"), "x2": {"field": "b"}, "y": y, "strokeWidth": thick})
    marks = chart(
        dots, {"type": "point", "filled": True, "size": 60, "opacity": 1},
        {"x": moment("at", orient="top"), "y": y, "color": colour("kind", looks), "shape": shape},
    )  # fmt: skip
    text = "When the jobs that wait will start. The plan takes each job for as long as its walltime."
    if any(high > last for each in shown for _, high in each.intervals.values()):
        text += " Intervals that go on are cut at the right; the table has their ends."
    if len(found) > len(shown):
        text += f" The first {len(shown)} by the plan."
    return Figure("starts", layers(intervals, marks, height={"step": 19}), text)
