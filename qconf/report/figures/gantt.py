"""A Gantt chart: jobs as rectangles of time and cores, before and after, with their data as tooltips.

A schedule has the number of a job's cores in a partition, not which. Here a job gets the lowest adjacent idle cores, or
several pieces if there are none: no true node list, but a true picture of use and idle cores.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.timeline import timeline
from qconf.history import History
from qconf.inert import inert
from qconf.recommend import Evaluated
from qconf.report.charts import Figure, Rows, Spec, clock, hues, moment, number, panels, queue_colours, shown_as
from qconf.report.wording import count, hours

MOST = 400  # most jobs; of more, those around the longest queue are drawn

Piece = tuple[int, int]  #: first core and number of cores


def gantt(shown: Sequence[tuple[str, Evaluated]], history: History | None, epoch: int, where: str) -> Figure:
    """Draw the jobs of that part of the test period in which the queue is longest."""
    outcomes = [(name, each.outcome) for name, each in shown]
    present = outcomes[0][1]
    begin, end = window([outcome for _, outcome in outcomes])
    rows = np.flatnonzero(np.any([_during(each.schedule, begin, end) for _, each in outcomes], axis=0))
    jobs, names = present.period.workload, present.period.base.names
    looks = hues(names, np.asarray(present.period.core_seconds).tolist())
    called = [shown_as(looks)[name] for name in names]
    ids, users = names_of(jobs.submit, history)
    said = [
        {
            "job": job,
            "queue": called[int(jobs.queue[job])],
            "says": "\n".join(
                [
                    inert(f"job {ids[job]}{', user ' * bool(users[job])}{users[job]}, queue {names[jobs.queue[job]]}"),
                    f"{jobs.cores[job]} cores",
                    f"ran {hours(jobs.effective_runtime[job])} of {hours(jobs.walltime[job])} h",
                    *(f"waited {hours(outcome.schedule.wait[job])} h {name}" for name, outcome in outcomes),
                ]
            ),
        }
        for job in rows.tolist()
    ]
    marks = []
    for when, each in shown:
        schedule = each.outcome.schedule
        for job, taken in pieces(each, rows):
            left, right = max(int(schedule.start[job]), begin), min(int(schedule.end[job]), end)
            place = {"panel": when, "job": job, "a": clock(left + epoch, where), "b": clock(right + epoch, where)}
            if left < right:
                marks += [{**place, "low": low, "high": low + n} for low, n in taken]
    text = (
        "Jobs on the cores, a rectangle each, in the colours of their queues; what is empty is idle. "
        f"{count(len(rows))} jobs, about when the queue is longest. Drag to move; "
        "+ and -, or the wheel with Ctrl, zoom; 0 shows all."
    )
    return Figure("gantt", jobs_on_cores(marks, said, [name for name, _ in shown], queue_colours(looks)), text)


def jobs_on_cores(marks: Rows, said: Rows, names: Sequence[str], colours: Spec) -> Spec:
    """Draw rectangles of time and cores, a panel for each name; `said` has each job's tooltip and queue."""
    zoom = {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.ctrlKey]"}
    inner = {
        "mark": {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0.5, "aria": False, "clip": True},
        "encoding": {
            "x": moment("a"), "x2": {"field": "b"}, "y": number("low", None, tickCount=4), "y2": {"field": "high"},
            "color": colours, "tooltip": {"field": "says"},
        },
        "height": 200,
        "params": [{"name": "seen", "bind": "scales", "select": zoom}],
    }  # fmt: skip
    jobs = {"data": {"name": "jobs"}, "key": "job", "fields": ["queue", "says"]}
    looked_up = [{"lookup": "job", "from": jobs}]
    return panels(marks, names, inner, columns=1, datasets={"jobs": list(said)}, transform=looked_up)


def window(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Return begin and end of the drawn part of the test period, in which at most `MOST` jobs run."""
    submit = outcomes[0].jobs.submit
    first, last = int(submit[0]), int(submit[-1])

    def jobs(begin: int, end: int) -> int:
        return int(np.any([_during(each.schedule, begin, end) for each in outcomes], axis=0).sum())

    if jobs(first, last) <= MOST:
        return first, last
    peak = _peak(outcomes[0], first, last)
    low, high = 1, last - first
    while high - low > 60:
        half = (low + high) // 2
        low, high = (half, high) if jobs(max(first, peak - half), min(last, peak + half)) <= MOST else (low, half)
    return max(first, peak - low), min(last, peak + low)


def _peak(outcome: Outcome, begin: int, end: int) -> int:
    """Return when the queue is longest in an outcome."""
    found = timeline(outcome)
    inside = (found.edges[:-1] >= begin) & (found.edges[:-1] <= end)
    return int(found.edges[:-1][np.argmax(np.where(inside, found.waiting, -1.0))])


def _during(schedule: Schedule, begin: int, end: int) -> NDArray[np.bool_]:
    return np.asarray((schedule.start < end) & (schedule.end > begin))


def partitions(found: Evaluated) -> list[tuple[str, int]]:
    """Return the partitions of the machine with their cores, from below; empty ones are left out."""
    system = found.config.system()
    return [(name, size) for name, size in zip(system.partition_names, system.partition_cores, strict=True) if size]


def pieces(found: Evaluated, rows: NDArray[np.int64]) -> Iterator[tuple[int, list[Piece]]]:
    """Yield each job, by start, with the cores on which it is drawn."""
    schedule = found.outcome.schedule
    order = rows[np.argsort(schedule.start[rows], kind="stable")].tolist()
    jobs = ((job, int(schedule.start[job]), int(schedule.end[job]), schedule.placement(job)) for job in order)
    return on_cores(jobs, dict(partitions(found)))


def on_cores(
    jobs: Iterable[tuple[int, int, int, Mapping[str, int]]], sizes: Mapping[str, int]
) -> Iterator[tuple[int, list[Piece]]]:
    """Yield (job, pieces of cores) for jobs given by start, each as (job, start, end, cores by partition)."""
    free, base = {}, 0
    for name, size in sizes.items():
        free[name] = [(base, base + size)]
        base += size
    ending: list[tuple[int, int]] = []
    taken: dict[int, list[tuple[str, Piece]]] = {}
    for job, start, end, placed in jobs:
        while ending and ending[0][0] <= start:
            for part, piece in taken.pop(heapq.heappop(ending)[1]):
                give_back(free[part], piece)
        taken[job] = [(part, piece) for part, cores in placed.items() for piece in take(free[part], cores)]
        heapq.heappush(ending, (end, job))
        yield job, [piece for _, piece in taken[job]]


def take(free: list[tuple[int, int]], cores: int) -> Iterator[Piece]:
    """Take cores from the free intervals: from the lowest that has enough, else from the largest first."""
    whole = next((each for each in free if each[1] - each[0] >= cores), None)
    order = [whole] if whole is not None else sorted(free, key=lambda each: each[0] - each[1])
    for low, high in order:
        if cores <= 0:
            return
        got = min(cores, high - low)
        free.remove((low, high))
        if low + got < high:
            insort(free, (low + got, high))
        cores -= got
        yield low, got


def give_back(free: list[tuple[int, int]], piece: Piece) -> None:
    """Return cores to the free intervals."""
    low, high = piece[0], piece[0] + piece[1]
    for each in [each for each in free if each[1] == low or each[0] == high]:
        free.remove(each)
        low, high = min(low, each[0]), max(high, each[1])
    insort(free, (low, high))


def names_of(submit: NDArray[np.int64], history: History | None) -> tuple[list[str], list[str]]:
    """Return ids and users of jobs that are a stretch of a history; numbers if they are not."""
    if history is not None:
        first = int(np.searchsorted(history.jobs["submit"].to_numpy(), submit[0]))
        rows = history.jobs.iloc[first : first + submit.size]
        if np.array_equal(rows["submit"].to_numpy(), submit):
            return rows["job_id"].astype(str).tolist(), rows["user"].astype(str).tolist()
    return [str(i + 1) for i in range(submit.size)], [""] * submit.size
