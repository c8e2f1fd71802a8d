"""A formula for the order of waiting jobs in plain words.

The sentences are not written for certain formulas. The formula is evaluated for typical jobs (short, long, narrow,
wide) after many waits, and the sentences compare these values: which new job goes first, after which wait one job comes
before another, the effect of a queue's priority, and the wait from which a job starves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parsim.model.fairshare import FAIRSHARE
from parsim.model.formula import expression, parse
from parsim.model.system import ORDERS
from qconf.config import SiteConfig
from qconf.text import grouped

HOUR, DAY = 3600, 86400
#: Named orders as formulas; fcfs needs no words.
NAMED = {
    "sjf": "-walltime",
    "ljf": "walltime",
    "lxf": "(eligible_time + walltime) / max(walltime, 1)",
    "wfp3": "(eligible_time / max(walltime, 1)) ** 3 * ncpus",
}
LONGEST = 90 * DAY  # longest wait at which jobs are compared
WAITS = np.concatenate([[0.0], np.geomspace(60, LONGEST, 400)])
SAME = 1e-9  # relative difference below which values are equal


@dataclass(frozen=True)
class Job:
    """A typical job."""

    walltime: int  #: seconds
    cores: int
    priority: float  #: of its queue


@dataclass(frozen=True)
class Reading:
    """A formula, and typical jobs of a machine for which it is evaluated."""

    formula: str
    walltimes: tuple[int, int]  #: walltimes of a short and of a long job, seconds
    cores: tuple[int, int]  #: cores of a narrow and of a wide job
    queues: Mapping[str, float]  #: priority of each queue by its name

    def value(self, job: Job, waits: Sequence[float] | NDArray[np.float64] = (0.0,)) -> NDArray[np.float64]:
        """Evaluate the formula after each wait, seconds; 0 where undefined, as in the simulator."""
        base = np.repeat([[job.priority], [job.walltime], [job.cores], [0], [1]], len(waits), axis=1).astype(np.float64)
        return np.nan_to_num(parse(self.formula).values(base, np.asarray(waits, dtype=np.float64)), nan=0.0)

    def overtakes(self, job: Job, other: Job, waited: float = 0.0) -> float | None:
        """Return the wait, seconds, after which `job` comes before `other`, which has `waited`; None beyond 90 days."""
        mark = self.value(other, [waited])[0]
        above = self.value(job, WAITS) > mark
        if not above.any():
            return None
        first = int(np.argmax(above))
        if first == 0:
            return 0.0
        low, high = float(WAITS[first - 1]), float(WAITS[first])
        while high - low > 1:
            middle = (low + high) / 2
            low, high = (low, middle) if self.value(job, [middle])[0] > mark else (middle, high)
        return high

    @cached_property
    def priority(self) -> float:
        """The middle of the queues' priorities, which typical jobs have by default."""
        found = sorted(self.queues.values())
        return found[(len(found) - 1) // 2]

    def job(self, long: int, wide: int, priority: float | None = None) -> Job:
        """Return a typical job: short (0) or long (1), narrow (0) or wide (1)."""
        return Job(self.walltimes[long], self.cores[wide], self.priority if priority is None else priority)

    def jobs(self, priority: float | None = None) -> list[Job]:
        """Return the four typical jobs."""
        return [self.job(long, wide, priority) for long in (0, 1) for wide in (0, 1)]

    def sentences(self) -> Iterator[str]:
        """Yield the sentences on the formula."""
        yield from self.preference()
        waits = [self.value(job, WAITS) for job in self.jobs()]
        if all(_same(float(each.min()), float(each.max())) for each in waits):
            yield "Waiting makes no difference: a job that others overtake may wait without end"
        else:
            yield from self.overtaking()
        starving = list(self.starvation())
        yield from starving
        for sentence in self.priorities():
            yield f"Before that, {sentence[0].lower()}{sentence[1:]}" if starving else sentence

    def compared(self, jobs: tuple[Job, Job], waited: float) -> int:
        """Return 1 if the first of two jobs that have waited as long goes first, -1 if the second, 0 if neither."""
        return _compared(*(float(self.value(job, [waited])[0]) for job in jobs))

    def axis(self, pairs: Sequence[tuple[Job, Job]]) -> tuple[int, list[int]]:
        """Return a wait and each pair's comparison after it: 0, or if all new jobs are equal, two hours."""
        found = [(waited, [self.compared(pair, waited) for pair in pairs]) for waited in (0, 2 * HOUR)]
        return next((each for each in found if any(each[1])), found[0])

    @cached_property
    def length(self) -> tuple[int, list[int]]:
        """The `axis` of short against long jobs: narrow ones, then wide ones."""
        return self.axis([(self.job(0, wide), self.job(1, wide)) for wide in (0, 1)])

    @cached_property
    def width(self) -> tuple[int, list[int]]:
        """The `axis` of narrow against wide jobs: short ones, then long ones."""
        return self.axis([(self.job(long, 0), self.job(long, 1)) for long in (0, 1)])

    def preference(self) -> Iterator[str]:
        """Yield which of the jobs that have waited as long go first."""
        parts = [
            (_age(waited), text)
            for (waited, signs), names, others in ((self.length, LENGTH, WIDTH), (self.width, WIDTH, LENGTH))
            for text in _first(signs, names, others)
        ]
        (age, length), (later, width) = self.length, self.width
        if not parts:
            yield "Jobs that have waited as long count the same, short or long, narrow or wide"
        elif age and later:
            yield "Jobs that have just been submitted count the same"
        if all(set(signs) in ({1}, {-1}) for signs in (length, width)):
            long, wide = int(length[0] < 0), int(width[0] < 0)  # 1 if long, or wide, jobs go first
            pair = self.job(long, 1 - wide), self.job(1 - long, wide)
            ones = f"a {LENGTH[long]} {WIDTH[1 - wide]} one", f"a {LENGTH[1 - long]} {WIDTH[wide]} one"
            if between := self.compared(pair, max(age, later)):
                first, second = ones if between > 0 else ones[::-1]
                parts.append((_age(max(age, later)), f"{first} before {second}"))
        for when, texts in grouped(parts).items():
            yield f"Of jobs {when}, {', '.join(texts)}"

    def overtaking(self) -> Iterator[str]:
        """Yield after which wait a job comes before one that goes first at equal waits."""
        short, long, wide = self.job(0, 0), self.job(1, 0), self.job(1, 1)
        waited, (sign, _) = self.length
        if sign:
            last, first = (long, short) if sign > 0 else (short, long)
            text = (
                f"A job of {_time(last.walltime)} on {_cores(last.cores)} comes before one of {_time(first.walltime)}"
            )
            text += f" {_young(waited)} {_when(self.overtakes(last, first, waited))}"
            later = _when(self.overtakes(last, first, 2 * HOUR))
            yield text if waited or later in text else f"{text}, and before one that has waited 2 h {later}"
        waited, (_, sign) = self.width
        if sign:
            last, first = (wide, long) if sign > 0 else (long, wide)
            text = f"A job of {_time(last.walltime)} on {_cores(last.cores)} comes before one on {_cores(first.cores)}"
            yield f"{text} {_young(waited)} {_when(self.overtakes(last, first, waited))}"

    def starvation(self) -> Iterator[str]:
        """Yield from which wait on the jobs of a queue go before all that do not starve."""
        typical = [job for priority in set(self.queues.values()) for job in self.jobs(priority)]
        calm = max(float(self.value(job, [0.0, self.thresholds(job)[0] - 1]).max()) for job in typical)
        found = []
        for name, priority in self.queues.items():
            for wait in self.thresholds(self.job(0, 0, priority))[:-1]:
                after = [float(self.value(job, [wait + 1])[0]) for job in self.jobs(priority)]
                before = [float(self.value(job, [wait - 1])[0]) for job in self.jobs(priority)]
                if min(after) > calm and all(_compared(*each) > 0 for each in zip(after, before, strict=True)):
                    found.append((wait, name))
        for waited, names in grouped((_time(wait), name) for wait, name in sorted(found)).items():
            whose = "a job" if len(names) == len(self.queues) else f"a job of {', '.join(names)}"
            yield f"From {waited} of waiting on, {whose} goes before all that do not starve"

    def thresholds(self, job: Job) -> list[float]:
        """Return the waits with which the formula compares a job's wait, seconds, ascending; the last is `LONGEST`."""
        found = {float(LONGEST)}
        for node in ast.walk(expression(self.formula.strip())):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            others = [side for side in sides if "eligible_time" not in _names(side)]
            if len(others) < len(sides) and all(
                _names(side) == {"eligible_time"} for side in sides if side not in others
            ):
                readings = [replace(self, formula=ast.unparse(side)) for side in others]
                found |= {float(each.value(job)[0]) for each in readings}
        return sorted(number for number in found if 1 < number <= LONGEST)

    def priorities(self) -> Iterator[str]:
        """Yield the effect of queue priorities: the least against the greatest, before any job starves."""
        low, high = min(self.queues.values()), max(self.queues.values())
        if low == high:
            return
        waits = WAITS[min(self.thresholds(self.job(0, 0, each))[0] for each in self.queues.values()) > WAITS]
        below, above = (np.array([self.value(job, waits) for job in self.jobs(each)]) for each in (low, high))
        if np.allclose(below, above, rtol=SAME, atol=0):
            yield "The priorities of queues make no difference"
            return
        if below.max() < above[:, 0].min():
            yield f"A job of priority {high:g} goes before every job of priority {low:g}, however long that has waited"
            return
        few, many = (f"priority {each:g} ({', '.join(self._of(each))})" for each in (low, high))
        positive = (below > 0) & (above > 0)
        text = f"{many} counts otherwise than {few}"
        if positive.all():
            factors: list[str] = sorted({f"{each:.2g}" for each in (above / below).ravel().tolist()}, key=float)
            counts = factors[0] if len(factors) == 1 else f"{factors[0]} to {factors[-1]}"
            text = f"{many} counts {counts} times as much as {few}"
        last, first = self.job(1, 0, low), self.job(1, 0, high)
        if self.compared((last, first), 0) > 0:
            last, first = first, last
        yield (
            f"{text[0].upper()}{text[1:]}: a job of {_time(last.walltime)} on {_cores(last.cores)} of priority "
            f"{last.priority:g} comes before a new one of {first.priority:g} {_when(self.overtakes(last, first))}"
        )

    def _of(self, priority: float) -> list[str]:
        return [name for name, each in self.queues.items() if each == priority]


LENGTH, WIDTH = ("short", "long"), ("narrow", "wide")


def in_words(
    formula: str,
    *,
    cores: tuple[int, int],
    walltimes: tuple[int, int] = (HOUR, 12 * HOUR),
    queues: Mapping[str, float] | None = None,
) -> str:
    """Describe a formula, or a named order, for typical jobs.

    Parameters
    ----------
    formula : str
    cores : (int, int)
        Cores of a narrow and of a wide job.
    walltimes : (int, int)
        Walltimes of a short and of a long job, seconds.
    queues : mapping, optional
        Priority of each queue by name. Without it there is one queue of priority 1.

    Returns
    -------
    str
        Sentences, each with its full stop; empty for fcfs, and for a formula with the same value for every job.
    """
    if formula == "fcfs":
        return ""
    reading = Reading(NAMED.get(formula, formula), walltimes, cores, dict(queues or {"": 1.0}))
    values = [reading.value(job, WAITS) for each in reading.queues.values() for job in reading.jobs(each)]
    if np.ptp(values) == 0:
        return ""
    return " ".join(f"{sentence}." for sentence in reading.sentences())


def reading_of(config: SiteConfig) -> Reading:
    """Return the order of a configuration, with typical jobs of its machine."""
    machine = config.machine
    node = machine.cores_per_node
    wide = max(machine.cores // 8 // node * node, min(2 * node, machine.cores))
    longest = max(queue.walltime[1] for queue in config.queues)
    walltimes = (HOUR, 12 * HOUR) if longest >= 12 * HOUR else (max(longest // 12, 1), longest)
    # With a named order, queue priorities always come first.
    tier = min(queue.tier for queue in config.queues)  # jobs are compared within a tier only
    alike = {queue.name: queue.priority for queue in config.queues if queue.tier == tier}
    queues = {"": 1.0} if config.order in ORDERS else alike
    return Reading(NAMED.get(config.order, config.order), walltimes, (node, wide), queues)


def order_in_words(config: SiteConfig) -> str:
    """Describe the order of a configuration for typical jobs of its machine; empty for fcfs."""
    if config.order == "fcfs":
        return ""
    if config.order == FAIRSHARE:
        return (
            "Jobs go by what their users have used over what they should have, the least first; of one user the oldest."
        )
    found = reading_of(config)
    words = in_words(config.order, cores=found.cores, walltimes=found.walltimes, queues=found.queues)
    lowest = min(queue.tier for queue in config.queues)
    higher = [queue.name for queue in config.queues if queue.tier > lowest]
    return f"Jobs of {', '.join(higher)} go before all others. {words}" if higher and words else words


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(abs(a), abs(b))


def _compared(a: float, b: float) -> int:
    """Return 1 if the first is greater, -1 if the second is, 0 if they are equal."""
    return 0 if _same(a, b) else (1 if a > b else -1)


def _first(signs: Sequence[int], names: tuple[str, str], others: tuple[str, str]) -> Iterator[str]:
    """Yield which of two kinds of jobs goes first, once or for each of the other two kinds."""

    def said(sign: int) -> str:
        first, second = names if sign > 0 else names[::-1]
        return f"{first} ones go before {second} ones"

    if signs[0] == signs[1]:
        yield from [said(signs[0])] if signs[0] else []
    else:
        yield from (f"{said(sign)} if they are {other}" for sign, other in zip(signs, others, strict=True) if sign)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _time(seconds: float) -> str:
    for unit, size in (("d", DAY), ("h", HOUR), ("min", 60)):
        if seconds >= (2 * size if unit == "d" else size):
            return f"{seconds / size:.{1 if seconds < 10 * size else 0}f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


def _cores(cores: int) -> str:
    return f"{cores} core{'s' * (cores != 1)}"


def _age(waited: float) -> str:
    return f"that have waited {_time(waited)}" if waited else "just submitted"


def _young(waited: float) -> str:
    return f"that has waited {_time(waited)}" if waited else "that is new"


def _when(wait: float | None) -> str:
    return f"never, not in {LONGEST // DAY} days" if wait is None else f"when it has waited {_time(wait)}"
