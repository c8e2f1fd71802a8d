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
Path = Callable[[int, int], list[float]]  #: of (job, now), the least first

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
    """The jobs that wait at one home, in the order of its discipline.

    `level` is the rank of each job's queue priority; `ratio`, `value` and `path` sort again at every pass.
    """

    def __init__(
        self,
        order: str,
        level: Sequence[int],
        walltime: Sequence[int],
        ratio: Ratio | None,
        value: Value | None,
        path: Path | None = None,
    ) -> None:
        self.starving: list[int] = []
        self._rest: list[tuple[int, int, int]] = []  # (level, key, job), ascending
        self._level, self._walltime, self._sign = level, walltime, STATIC.get(order, 0)
        self._ratio, self._value, self._path = ratio, value, path

    def _entry(self, job: int) -> tuple[int, int, int]:
        return 0 if self._value is not None else self._level[job], self._sign * self._walltime[job], job

    def add(self, job: int) -> None:
        """Let `job` wait here; it does not starve yet."""
        insort(self._rest, self._entry(job))

    def starve(self, job: int) -> None:
        """Let `job`, which waits here, starve from now on; a formula sorts it as before."""
        if self._value is None:
            del self._rest[bisect_left(self._rest, self._entry(job))]
        insort(self.starving, job)

    def remove(self, job: int) -> None:
        """Let `job` leave."""
        at = bisect_left(self.starving, job)
        starving = self.starving[at : at + 1] == [job]
        if starving:
            del self.starving[at]
        if not starving or self._value is not None:
            del self._rest[bisect_left(self._rest, self._entry(job))]

    def ordered(self, now: int) -> list[int]:
        """Return the jobs in the order of a pass at `now`."""
        jobs = [job for _, _, job in self._rest]
        if self._value is not None:
            value = {job: self._value(job, now) for job in jobs}
            return sorted(jobs, key=value.__getitem__, reverse=True)
        if self._path is not None:
            path = {job: self._path(job, now) for job in jobs}
            return self.starving + sorted(jobs, key=lambda job: (self._level[job], path[job]))
        if self._ratio is None:
            return self.starving + jobs
        by_level = groupby(jobs, key=self._level.__getitem__)
        return self.starving + [job for _, level in by_level for job in by_ratio(list(level), self._ratio, now)]
