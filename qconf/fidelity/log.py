"""Idle cores of the machine over a log, and jobs that waited although they fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from qconf.fidelity.windows import Column, Mask, Recorded

HELD = 3600  #: seconds; a job that waits so long after it first fits was held by something else


@dataclass(frozen=True, eq=False)
class Timeline:
    """Idle cores over time, by the recorded starts and ends."""

    instants: Column  #: ascending, shape (m,)
    idle: Column  #: idle cores from each instant to the next

    @classmethod
    def of(cls, recorded: Recorded) -> Timeline:
        """Count the cores of the running jobs at each start and end."""
        w = recorded.period.workload
        ran = recorded.began
        start, cores = recorded.start[ran], w.cores[ran]
        end = start + w.effective_runtime[ran]
        instants, where = np.unique(np.concatenate((start, end)), return_inverse=True)
        change = np.bincount(where, np.concatenate((cores, -cores)), instants.size)
        return cls(instants, recorded.period.base.machine.cores - np.cumsum(change).astype(np.int64))

    @cached_property
    def _least(self) -> list[NDArray[np.int32]]:
        """Least idle cores over 1, 2, 4, ... intervals from each interval on."""
        levels = [np.clip(self.idle, -(2**31), 2**31 - 1).astype(np.int32)]
        while (half := 1 << (len(levels) - 1)) * 2 <= self.idle.size:
            levels.append(np.minimum(levels[-1][:-half], levels[-1][half:]))
        return levels

    def least_between(self, begin: Column, end: Column) -> Column:
        """Return the least idle cores from each begin to its end, elementwise; all within the log."""
        first = np.maximum(np.searchsorted(self.instants, begin, side="right") - 1, 0)
        last = np.maximum(np.searchsorted(self.instants, end, side="left"), first + 1)
        level = np.frexp(last - first)[1] - 1
        found = np.empty(first.size, dtype=np.int64)
        for each in np.unique(level).tolist():
            rows = np.flatnonzero(level == each)
            table = self._least[each]
            found[rows] = np.minimum(table[first[rows]], table[last[rows] - (1 << each)])
        return found

    def first_fit(self, cores: int, walltime: int, submit: int, start: int) -> int:
        """Return the first instant from which idle cores sufficed for a job's whole walltime; -1 if there is none.

        Only instants at least `HELD` seconds before the job's start count. After its start its own cores are not idle.
        """
        low, high = np.searchsorted(self.instants, (submit, start - HELD), side="right")
        at = np.concatenate(([submit], self.instants[low:high]))
        fits = self.least_between(at, np.minimum(at + walltime, start)) >= cores
        return int(at[np.argmax(fits)]) if fits.any() else -1


def held(recorded: Recorded, timeline: Timeline, rows: Column) -> Mask:
    """Return the mask of the jobs among `rows` that something other than the scheduler held.

    Such a job could have started on idle cores `HELD` seconds or more before its start. Between that instant and its
    start, a job submitted later started that is at least as wide and as long: if backfilling let that one pass the head
    job, it would have let this one. For a job deleted while it waited, the deletion counts as its start.
    """
    w, start, left = recorded.period.workload, recorded.start, recorded.left
    found = np.zeros(len(w), dtype=np.bool_)
    by_start = np.argsort(start, kind="stable")
    starts = start[by_start]
    for row in rows.tolist():
        submit, begun, cores = int(w.submit[row]), int(left[row]), int(w.cores[row])
        if begun - submit < HELD:
            continue
        fits = timeline.first_fit(cores, int(w.walltime[row]), submit, begun)
        if fits < 0:
            continue
        low, high = np.searchsorted(starts, (fits, begun))
        others = by_start[low:high]
        as_hard = (w.cores[others] >= cores) & (w.walltime[others] >= w.walltime[row])
        found[row] = bool((as_hard & (w.submit[others] > submit)).any())
    return found
