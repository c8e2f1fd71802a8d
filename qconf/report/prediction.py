"""A prediction as tables for the terminal, and as the page of ``qconf predict --html``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from qconf.config import format_duration
from qconf.history.times import zone
from qconf.inert import inert
from qconf.prediction.loading import Gained, Loading
from qconf.prediction.results import Prediction, Start
from qconf.recommend.last import Promise
from qconf.report.figures.ahead import ahead_figures, cores_in_use, horizon
from qconf.report.html import page
from qconf.report.layout import InertTable

WIDTH = 24  #: columns of the timeline
WIDE = 100, 180  #: columns of a terminal from which on there is one: without intervals and with them
ONE_LINE = 154  #: columns from which on a job with intervals has one line, else two
MOST, ON_PAGE = 200, 1000  #: jobs that are shown
LEVELS = " ▁▂▃▄▅▆▇█"

Clock = Callable[[int | None], str]  #: writes an instant

SECTIONS = (
    ("warnings", "Warnings"),
    ("starts", "When the jobs that wait will start"),
    ("plan", "The plan"),
    ("jobs", "Jobs that wait"),
    ("left_out", "Not predicted"),
    ("then", "After the recommendation is loaded"),
)


@dataclass(frozen=True)
class Loaded:
    """A recommendation, and a simulation of the days after loading it."""

    promise: Promise
    found: Loading

    def document(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        promised = self.promise.gain
        return {
            **{name: getattr(self.promise, name) for name in ("run", "title", "objective")},
            "promised": None if promised is None else vars(promised),
            **self.found.document(),
        }

    def sentences(self) -> Iterator[str]:
        """Yield sentences on the promised gain and the gain from the current state."""
        promised, found = self.promise.gain, self.found
        if promised is not None:
            expected = Gained(promised.expected, promised.low, promised.high)
            yield f"promised: {_gain(expected)} in {self.promise.objective}"
        yield f"from this state, of the jobs of the {len(found.days)} days and those that wait: {_gain(found.gain)}"
        yield f"of the jobs of these days alone: {_gain(found.later)}"
        yield f"of the same jobs without the backlog, on an empty machine: {_gain(found.empty)}"
        if found.left_out:
            jobs = "1 job" if found.left_out == 1 else f"{found.left_out} jobs"
            yield f"left out: {jobs} of the snapshot that one of the two cannot start"


def _gain(gained: Gained) -> str:
    return f"{100 * gained.mean:+.1f} % ({100 * gained.low:.1f} to {100 * gained.high:.1f})"


def clocks(found: Prediction, timezone: str, today: str = "%H:%M:%S") -> Clock:
    """Return a function that formats instants: today's as `today`, others with their date."""
    where = zone(timezone)
    day = datetime.fromtimestamp(found.ahead.now, where).date()

    def clock(second: int | None) -> str:
        if second is None:
            return "unknown"
        moment = datetime.fromtimestamp(second, where)
        return f"{moment:{today if moment.date() == day else '%d %b %H:%M'}}"

    return clock


def tables(found: Prediction, timezone: str, width: int, loaded: Loaded | None = None) -> Iterator[Table | Text]:
    """Yield the tables and lines: the jobs, those not predicted, the idle cores, the days after loading."""
    clock, now, last = clocks(found, timezone), found.ahead.now, horizon(found)
    yield Text(f"{clock(now)}: {found.running} jobs run, {len(found.starts)} wait")
    yield Text(f"cores in use by the plan until {clock(last)}: {sparkline(found, now, last, min(width - 50, 60))}")
    if found.runs and width < ONE_LINE:
        yield from _two_lines(found.starts[:MOST], clock)
    else:
        yield _one_line(found, clock, last if width >= WIDE[found.runs > 0] else None)
    if len(found.starts) > MOST:
        yield Text(f"{len(found.starts) - MOST} more wait; --json has them all")
    for job, why in found.ahead.left_out:
        yield Text(inert(f"not predicted: {job.job_id}, {why}"))
    yield Text(idle(found))
    if found.runs:
        yield Text(rests(found))
    if loaded is not None:
        yield from _then(loaded, clock)


def _one_line(found: Prediction, clock: Clock, last: int | None) -> Table:
    """Return a table with a row for each job, and a bar up to `last` if given."""
    table = InertTable(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("job", "user", "queue", "cores", "walltime", "plan"):
        table.add_column(name, justify="right" if name in ("cores", "walltime", "plan") else "left", no_wrap=True)
    for name in ("expected", "80 %", "95 %") if found.runs else ():
        table.add_column(name, no_wrap=True)
    table.add_column("why it waits", overflow="fold")
    if last is not None:
        table.add_column("", no_wrap=True)
    for each in found.starts[:MOST]:
        job = each.job
        expected = [clock(each.expected), *_spans(each, clock)] if found.runs else []
        drawn = [] if last is None else [bar(each.planned, job.walltime, found.ahead.now, last)]
        about = (job.job_id, job.user, job.queue, job.cores, format_duration(job.walltime))
        table.add_row(*about, clock(each.planned), *expected, each.why, *drawn)
    return table


def _two_lines(starts: Sequence[Start], clock: Clock) -> Iterator[Text]:
    """Yield two lines for each job: instants, then the rest."""
    form = "{:<12} {:>5} {:>12} {:>12}  {}".format
    yield Text(form("job", "cores", "plan", "expected", "80 %"), style="bold")
    for each in starts:
        job, (most, nearly_all) = each.job, _spans(each, clock)
        yield Text(inert(form(job.job_id, job.cores, clock(each.planned), clock(each.expected), most)))
        about = [job.user, job.queue, format_duration(job.walltime), nearly_all and f"95 %: {nearly_all}", each.why]
        yield Text(inert(f"  {'; '.join(filter(None, about))}"), style="dim")


def _spans(start: Start, clock: Clock) -> list[str]:
    return [f"{clock(low)} to {clock(high)}" for low, high in start.intervals.values()] or ["", ""]


def idle(found: Prediction) -> str:
    """Return which new jobs would start now, in words."""
    if not found.gaps:
        return "no core is idle for a new job now"
    lasts = ["as long as it likes" if gap.seconds is None else format_duration(gap.seconds) for gap in found.gaps]
    fits = [f"up to {gap.cores} cores for {long}" for gap, long in zip(found.gaps, lasts, strict=True)]
    if found.ahead.system.node_types:
        return f"idle now, on nodes of whatever type: {', '.join(fits)}; --what-if says when a job starts on its nodes"
    return f"a new job would start now with {', '.join(fits)}"


def rests(found: Prediction) -> str:
    """Return the basis of the intervals in words."""
    if found.checked:
        return f"intervals: {found.runs} simulations, widened by {found.checked} earlier predictions that came true"
    return f"intervals: {found.runs} simulations as they are; too few earlier predictions came true to widen them"


def _then(loaded: Loaded, clock: Clock) -> Iterator[Table | Text]:
    yield Text("")
    yield Text(inert(f"then, with {loaded.promise.title or loaded.promise.winner} of {loaded.promise.run} loaded"))
    for sentence in loaded.sentences():
        yield Text(f"  {sentence}")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("day from", "submitted", "mean wait, as it is", "then", "waiting at its end, as it is", "then"):
        table.add_column(name, justify="right")
    for day in loaded.found.days:
        waits = [format_duration(round(each)) for each in day.wait]
        table.add_row(clock(day.begin), f"{day.submitted:.0f}", *waits, *(f"{each:.0f}" for each in day.waiting))
    yield table


def sparkline(found: Prediction, begin: int, end: int, width: int) -> str:
    """Return a bar of characters for the fraction of cores in use, from `begin` to `end`."""
    edges, used = cores_in_use(found, begin, end)
    means, place = [], 0
    for i in range(width):
        low, high = (begin + (end - begin) * at / width for at in (i, i + 1))
        area = 0.0
        while place < len(used):
            area += used[place] * max(0.0, min(high, edges[place + 1]) - max(low, edges[place]))
            if edges[place + 1] >= high:
                break
            place += 1
        means.append(area / max(1.0, high - low) / found.ahead.system.cores)
    return "".join(LEVELS[min(8, max(0, round(8 * mean)))] for mean in means)


def bar(start: int | None, walltime: int, now: int, last: int) -> str:
    """Return a bar of characters for when a job runs, between `now` and `last`."""
    if start is None or last <= now:
        return ""
    first = round((start - now) / (last - now) * WIDTH)
    if first >= WIDTH:
        return " " * WIDTH + ">"
    return " " * first + "█" * min(WIDTH - first, max(1, round(walltime / (last - now) * WIDTH)))


def render_prediction(found: Prediction, timezone: str, loaded: Loaded | None = None) -> str:
    """Return the page of a prediction."""
    now = datetime.fromtimestamp(found.ahead.now, zone(timezone))
    context: dict[str, Any] = {
        "found": found,
        "loaded": loaded,
        "clock": clocks(found, timezone, "%H:%M"),
        "duration": format_duration,
        "now": f"{now:%A, %d %B %Y, %H:%M:%S} ({timezone})",
        "running": found.running,
        "shown": found.starts[:ON_PAGE],
        "more": max(0, len(found.starts) - ON_PAGE),
        "idle": idle(found),
        "rests": rests(found) if found.runs else "",
        "warnings": found.ahead.warnings,
    }
    return page("predict", "When jobs will start", [("", SECTIONS)], ahead_figures(found, timezone), context)
