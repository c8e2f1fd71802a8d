"""A Gantt chart: every job as a rectangle of time and cores, before and after, with the numbers behind each.

A schedule says how many cores of a partition a job has and not which. Here a job gets the lowest idle ones that lie
together, or several pieces where none does: no node list, but a true picture of what is in use, and of what idles.
"""

from __future__ import annotations

import heapq
import json
from bisect import insort
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.timeline import timeline
from qconf.history import History
from qconf.inert import inert
from qconf.recommend import Evaluated
from qconf.report.figures.base import Figure, hue_legend, queue_hues
from qconf.report.svg import DAY, Drawing, Scale, date_ticks, plain, text_at

MOST = 4000  # jobs; of more those about the longest queue are drawn
SHOWN = 2 * DAY  # seconds that are seen at first
WIDE, TALL, LEFT = 1000, 230, 70

Piece = tuple[int, int]  #: first core and number of cores


def gantt(shown: Sequence[tuple[str, Evaluated]], history: History | None, epoch: int, where: str) -> Figure:
    """Draw the jobs of the test period, or of the part of it in which the queue is longest."""
    outcomes = [(name, each.outcome) for name, each in shown]
    present = outcomes[0][1]
    begin, end = window([outcome for _, outcome in outcomes])
    peak = _peak(present, begin, end)
    left = int(np.clip(peak - SHOWN // 2, begin, max(begin, end - SHOWN)))
    right = min(left + SHOWN, end)
    rows = np.flatnonzero(np.any([_during(each.schedule, begin, end) for _, each in outcomes], axis=0))
    looks = queue_hues(present)
    names = present.period.base.names
    drawing = Drawing(0, WIDE)
    top = drawing.legend(hue_legend(looks)) + 24
    axis = Scale(left + epoch, right + epoch, LEFT, WIDE - 10)
    for name, each in shown:
        cores = present.period.base.machine.cores
        y = Scale(0, cores, top + TALL, top)
        drawing.text(LEFT, top - 7, name, "head")
        offset = 0
        for part, size in partitions(each):
            middle = y.at(offset + size / 2)
            if y.at(offset) - y.at(offset + size) > 9:
                drawing.text(LEFT - 6, middle + 4, part[:11], "tick end")
            offset += size
        drawing.parts.append(_plot(each, rows, begin, (left, right), top, looks))
        for at in np.cumsum([size for _, size in partitions(each)])[:-1].tolist():
            drawing.parts.append(f'<path class="cut" d="M{LEFT},{y.at(at):.1f}H{WIDE - 10}"/>')
        top += TALL + 34
    marks = "".join(
        text_at(axis.at(at), top - 18, text, "tick middle") for at, text in date_ticks(axis.low, axis.high, where)
    )
    drawing.parts.append(f'<g class="times" data-y="{top - 18:g}">{marks}</g>')
    drawing.height = top
    text = (
        "Jobs on the cores, a rectangle each, in the colours of their queues; what is empty is idle. "
        f"{plain(len(rows))} jobs; at first the two days about the longest queue are shown."
    )
    seen = {"from": left - begin, "to": right - begin, "end": end - begin, "begin": begin + epoch, "zone": where}
    svg = drawing.svg(text, **seen)
    data = {
        "queues": names,
        "names": [name for name, _ in outcomes],
        "jobs": list(_jobs(outcomes, rows, begin, history)),
    }
    return Figure("gantt", svg, text, json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


def window(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Return the stretch of the test period that is drawn, so that at most `MOST` jobs run in it."""
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
    """Return when the queue is longest in the present."""
    found = timeline(outcome)
    inside = (found.edges[:-1] >= begin) & (found.edges[:-1] <= end)
    return int(found.edges[:-1][np.argmax(np.where(inside, found.waiting, -1.0))])


def _during(schedule: Schedule, begin: int, end: int) -> NDArray[np.bool_]:
    return np.asarray((schedule.start < end) & (schedule.end > begin))


def partitions(found: Evaluated) -> list[tuple[str, int]]:
    """Return the parts of the machine with their cores, from below; those without cores are left out."""
    system = found.config.system()
    return [(name, size) for name, size in zip(system.partition_names, system.partition_cores, strict=True) if size]


def pieces(found: Evaluated, rows: NDArray[np.int64]) -> Iterator[tuple[int, list[Piece]]]:
    """Yield each job with the cores that it is drawn on, by start."""
    schedule, free, base = found.outcome.schedule, {}, 0
    for name, size in partitions(found):
        free[name] = [(base, base + size)]
        base += size
    ending: list[tuple[int, int]] = []
    taken: dict[int, list[tuple[str, Piece]]] = {}
    for job in rows[np.argsort(schedule.start[rows], kind="stable")].tolist():
        while ending and ending[0][0] <= schedule.start[job]:
            for part, piece in taken.pop(heapq.heappop(ending)[1]):
                give_back(free[part], piece)
        placed = schedule.placement(job).items()
        taken[job] = [(part, piece) for part, cores in placed for piece in take(free[part], cores)]
        heapq.heappush(ending, (int(schedule.end[job]), job))
        yield job, [piece for _, piece in taken[job]]


def take(free: list[tuple[int, int]], cores: int) -> Iterator[Piece]:
    """Take cores out of the intervals that are free: of the lowest that has all, else of the largest first."""
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
    """Give cores back to the intervals that are free."""
    low, high = piece[0], piece[0] + piece[1]
    for each in [each for each in free if each[1] == low or each[0] == high]:
        free.remove(each)
        low, high = min(low, each[0]), max(high, each[1])
    insort(free, (low, high))


def _plot(
    each: Evaluated, rows: NDArray[np.int64], begin: int, shown: tuple[int, int], top: float, looks: dict[str, str]
) -> str:
    """Return the jobs in seconds and cores, in a view of its own that shows a stretch of them."""
    outcome = each.outcome
    cores, names = outcome.period.base.machine.cores, outcome.period.base.names
    found, index = outcome.schedule, {int(row): i for i, row in enumerate(rows)}
    marks = []
    for job, taken in pieces(each, rows):
        start, long = int(found.start[job]) - begin, int(found.end[job] - found.start[job])
        d = "".join(f"M{start},{cores - low - n}h{long}v{n}h-{long}z" for low, n in taken)
        look = looks[names[outcome.period.workload.queue[job]]]
        marks.append(f'<path class="{look}" data-j="{index[job]}" d="{d}"/>')
    size = f'x="{LEFT}" y="{top:g}" width="{WIDE - 10 - LEFT}" height="{TALL}"'
    view = f'viewBox="{shown[0] - begin} 0 {max(shown[1] - shown[0], 1)} {cores}" preserveAspectRatio="none"'
    frame = f'<rect class="idle" {size}/>'
    return f'{frame}\n<svg class="plot" {size} {view} data-cores="{cores}">' + "\n".join([*marks, "</svg>"])


def _jobs(
    outcomes: Sequence[tuple[str, Outcome]], rows: NDArray[np.int64], begin: int, history: History | None
) -> Iterator[list[Any]]:
    """Yield id, user, queue, cores, submit, run time, walltime, and the wait in each outcome."""
    jobs = outcomes[0][1].period.workload
    ids, users = names_of(jobs.submit, history)
    for row in rows.tolist():
        yield [
            inert(ids[row]),
            inert(users[row]),
            int(jobs.queue[row]),
            int(jobs.cores[row]),
            int(jobs.submit[row]) - begin,
            int(jobs.effective_runtime[row]),
            int(jobs.walltime[row]),
            *(int(outcome.schedule.wait[row]) for _, outcome in outcomes),
        ]


def names_of(submit: NDArray[np.int64], history: History | None) -> tuple[list[str], list[str]]:
    """Return the ids and users of jobs that are a stretch of a history; their places where there is none."""
    if history is not None:
        first = int(np.searchsorted(history.jobs["submit"].to_numpy(), submit[0]))
        rows = history.jobs.iloc[first : first + submit.size]
        if np.array_equal(rows["submit"].to_numpy(), submit):
            return rows["job_id"].astype(str).tolist(), rows["user"].astype(str).tolist()
    return [str(i + 1) for i in range(submit.size)], [""] * submit.size
