"""Waiting lists in the order in which a pass goes over them.

Jobs are numbered by (submit, position), so that the least number breaks every tie.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby

Ratio = Callable[[int, int], tuple[int, int]]  #: numerator and denominator of (job, now)
Value = Callable[[int, int], float]  #: of (job, now)

STATIC = {"fcfs": 0, "sjf": 1, "ljf": -1}  #: sign of the walltime in the key


def by_ratio(jobs: Sequence[int], ratio: Ratio, now: int) -> list[int]:
    """Sort ascending `jobs` by numerator over denominator, largest first, exactly.

    Python's division of integers is rounded correctly, hence monotone: only equal quotients need exact
    arithmetic.
    """
    quotient = {}
    for job in jobs:
        above, below = ratio(job, now)
        quotient[job] = above / below
    ordered = sorted(jobs, key=quotient.__getitem__, reverse=True)
    if len(set(quotient.values())) == len(ordered):
        return ordered
    out: list[int] = []
    for _, run in groupby(ordered, key=quotient.__getitem__):
        out += sorted(run, key=lambda job: Fraction(*ratio(job, now)), reverse=True)
    return out


class WaitingList:
    """The jobs that wait at one home, in the order of its discipline."""

    def __init__(
        self,
        order: str,
        level: Sequence[int],
        walltime: Sequence[int],
        ratio: Ratio | None,
        value: Value | None,
    ) -> None:
        # `level` is the rank of each job's queue priority; `ratio` and `value` sort again at every pass.
        self.starving: list[int] = []
        self._ratio, self._value = ratio, value
        self._level = level if value is None else [0] * len(level)
        self._key = [STATIC.get(order, 0) * w for w in walltime]
        self._levels: dict[int, list[tuple[int, int]]] = {}

    def add(self, job: int) -> None:
        """Let `job` wait here; it does not starve yet."""
        insort(self._levels.setdefault(self._level[job], []), (self._key[job], job))

    def starve(self, job: int) -> None:
        """Let `job`, which waits here, starve from now on."""
        if self._value is None:
            self._drop(job)
        insort(self.starving, job)

    def remove(self, job: int) -> None:
        """Let `job` leave."""
        at = bisect_left(self.starving, job)
        starving = at < len(self.starving) and self.starving[at] == job
        if starving:
            del self.starving[at]
        if not starving or self._value is not None:
            self._drop(job)

    def _drop(self, job: int) -> None:
        level = self._levels[self._level[job]]
        del level[bisect_left(level, (self._key[job], job))]

    def ordered(self, now: int) -> list[int]:
        """Return the jobs in the order of a pass at `now`."""
        if self._value is not None:
            jobs = [job for _, job in self._levels.get(0, ())]
            value = {job: self._value(job, now) for job in jobs}
            return sorted(jobs, key=value.__getitem__, reverse=True)
        out = list(self.starving)
        for rank in sorted(self._levels):
            jobs = [job for _, job in self._levels[rank]]
            if self._ratio is not None:
                jobs = by_ratio(jobs, self._ratio, now)
            out += jobs
        return out
