"""A prediction as tables of the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from rich.table import Table
from rich.text import Text

from qconf.config import format_duration
from qconf.history.times import zone
from qconf.prediction.results import Prediction

WIDTH = 24  #: columns of the timeline
WIDE = 100  #: columns of a terminal from which on there is one
MOST = 200  #: jobs that are shown


def tables(found: Prediction, timezone: str, width: int) -> Iterator[Table | Text]:
    """Yield what a person wants to see: the jobs, what is not predicted, the idle cores."""
    where, wide = zone(timezone), width >= WIDE + found.runs.bit_length() * 6

    def clock(second: int | None) -> str:
        if second is None:
            return "unknown"
        moment = datetime.fromtimestamp(second, where)
        today = datetime.fromtimestamp(found.ahead.now, where).date()
        return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment:%d %b %H:%M}"

    running = int((~found.ahead.present.waiting).sum())
    yield Text(f"{clock(found.ahead.now)}: {running} jobs run, {len(found.starts)} wait")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("job", "user", "queue", "cores", "walltime", "plan"):
        justify: Literal["left", "right"] = "right" if name in ("cores", "walltime", "plan") else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    if found.runs:
        for name in ("expected", "80 %", "95 %"):
            table.add_column(name)
    table.add_column("why it waits", overflow="fold")
    if wide:
        table.add_column("", no_wrap=True)
    shown = found.starts[:MOST]
    ends = sorted(each.planned + each.job.walltime for each in shown if each.planned is not None)
    last = ends[9 * (len(ends) - 1) // 10] if ends else found.ahead.now  # the few farthest off would hide the others
    for each in shown:
        job = each.job
        cells = [job.job_id, job.user, job.queue, str(job.cores), format_duration(job.walltime), clock(each.planned)]
        if found.runs:
            spans = [f"{clock(low)} to {clock(high)}" for low, high in each.intervals.values()] or ["", ""]
            cells += [clock(each.expected), *spans]
        drawn = [bar(each.planned, job.walltime, found.ahead.now, last)] if wide else []
        table.add_row(*map(Text, [*cells, each.why, *drawn]))
    yield table
    if len(found.starts) > MOST:
        yield Text(f"{len(found.starts) - MOST} more wait; --json has them all")
    for job, why in found.ahead.left_out:
        yield Text(f"not predicted: {job.job_id}, {why}")
    if found.gaps:
        fits = [f"up to {gap.cores} cores for {_span(gap.seconds)}" for gap in found.gaps]
        yield Text(f"a new job would start now with {', '.join(fits)}")
    else:
        yield Text("no core is idle for a new job now")


def _span(seconds: int | None) -> str:
    return "as long as it likes" if seconds is None else format_duration(seconds)


def bar(start: int | None, walltime: int, now: int, last: int) -> str:
    """Draw when a job runs, from now to the last end."""
    if start is None or last <= now:
        return ""
    first = round((start - now) / (last - now) * WIDTH)
    if first >= WIDTH:
        return " " * WIDTH + ">"
    return " " * first + "█" * min(WIDTH - first, max(1, round(walltime / (last - now) * WIDTH)))
