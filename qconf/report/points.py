"""The points of an order, for a site to post for its users, and the points of typical jobs as they wait."""

from __future__ import annotations

from collections.abc import Iterator

from parsim.model.fairshare import FAIRSHARE
from qconf.config import SiteConfig
from qconf.config.points import HOUR, STARVING, points_of
from qconf.report.formulas import DAY, Job, Reading, reading_of
from qconf.report.nodes import NodeTable
from qconf.text import grouped

WAITS = (0, 6, 24, 72)  #: hours
FIRST = 1e20  #: a formula gives more to jobs that go before all others alone
#: Units in which a job gets points, and the size of each in units of the formula.
_UNITS = {
    "eligible_time": ("hour that it has waited", HOUR),
    "walltime": ("hour of walltime that it asks for", HOUR),
    "ncpus": ("core", 1),
    "ngpus": ("GPU", 1),
    "mem": ("GiB of memory", 1024**2),
    "queue_priority": ("unit of its queue's priority", 1),
    "qos_priority": ("unit of the priority of its QOS", 1),
    "job_priority": ("unit of its own priority", 1),
    "estimate": ("hour that it is expected to run", HOUR),
}


def in_points(config: SiteConfig) -> str:
    """Return a sentence on how a job gets points; empty if the order is not a sum of points."""
    points = points_of(config.order)
    if points is None or len(points) == 1:
        return ""
    has: list[str] = []
    loses: list[str] = []
    for name, each in points.items():
        if name == STARVING:
            continue
        unit, size = _UNITS.get(name, (f"unit of {name}", 1))
        count = abs(each) * size
        many = 1 if count >= 1 else round(1 / count)
        text = f"{count * many:.6g} for each {unit if many == 1 else f'{many} {_plural(unit)}'}"
        (has if each > 0 else loses).append(text)
    text = f"A waiting job has {_points(has)}" + (f", and loses {_and(loses)}" if loses else "")
    reading = reading_of(config)
    if STARVING in points:
        text += f", and has {points[STARVING]:g} more {_and(list(_starving(reading)))}"
    more = next(reading.overtaking(), "")
    return f"{text}. The job with most points goes first." + (f" {more}." if more else "")


def typical_table(config: SiteConfig) -> NodeTable | None:
    """Return a table of typical jobs (short, long, narrow, wide) with the values of the order.

    None if the order depends on more than the job.
    """
    if config.order in ("fcfs", FAIRSHARE):
        return None
    reading = reading_of(config)
    longest = max(queue.walltime[1] for queue in config.queues)
    jobs = dict.fromkeys([*reading.jobs(), Job(longest, reading.cores[0], reading.priority)])
    values = [reading.value(job, [HOUR * each for each in WAITS]) for job in jobs]
    if points_of(config.order) is None and (least := min((each[0] for each in values if each[0] > 0), default=0.0)):
        values = [each / least for each in values]  # users do not know the formula's units
    return NodeTable(
        "Points of typical jobs as they wait",
        ("job", *(f"after {each} h" if each else "new" for each in WAITS)),
        1,
        [
            [
                f"{job.walltime / HOUR:g} h on {job.cores} core{'s' * (job.cores != 1)}",
                *("first" if each > FIRST else f"{each:.1f}".removesuffix(".0") for each in own),
            ]
            for job, own in zip(jobs, values, strict=True)
        ],
    )


def _starving(reading: Reading) -> Iterator[str]:
    jobs = {name: reading.job(0, 0, priority) for name, priority in reading.queues.items()}
    waits = ((wait, name) for name, job in jobs.items() for wait in reading.thresholds(job)[:-1])
    for wait, names in sorted(grouped(waits).items()):
        whose = "" if len(names) == len(reading.queues) else f" ({', '.join(names)})"
        yield f"after {wait / DAY:g} d{whose}"


def _points(texts: list[str]) -> str:
    """Return a list in words; the first text begins with a number of points."""
    number, rest = texts[0].split(" ", 1)
    return _and([f"{number} point{'s' * (number != '1')} {rest}", *texts[1:]])


def _plural(unit: str) -> str:
    first, *rest = unit.split(" ", 1)
    return " ".join([first + "s" * (first != "GiB"), *rest])


def _and(texts: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
