"""Dependencies of jobs on the ends of others, and quotas: limited amounts, as of licences, that running jobs share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Column = NDArray[np.int64]
Rows = NDArray[np.int64] | NDArray[np.bool_] | slice

MOST = 2**53  #: of a quota
LATEST = 2**62  #: quotas change before this instant

#: The pairs of a workload in which no job waits for another.
NO_PAIRS = np.empty((0, 2), dtype=np.int64)
NO_PAIRS.flags.writeable = False


@dataclass(frozen=True, eq=False)
class Quota:
    """A limited amount that running jobs share (rule "quotas and licences").

    For instance licences of the site, members of a job array that may run at a time, jobs or cores of a queue or of a
    user at certain hours.

    Parameters
    ----------
    name : str
        Used in messages.
    most : int
        The amount, from 0 up, before the first of `changes`.
    rows : array_like of int, shape (k,)
        Jobs of the workload that take a part of it while they run, each once.
    amounts : array_like of int, shape (k,)
        The part that each takes, from 1 up.
    changes : sequence of (int, int)
        Instants in seconds, ascending, and the amount from then on.

    Raises
    ------
    ValueError
        A value out of its bounds, or a job that takes more than the last amount: it could never start.
    """

    name: str
    most: int
    rows: Column
    amounts: Column
    changes: Sequence[tuple[int, int]] = ()

    def __init__(
        self, name: str, most: int, rows: ArrayLike, amounts: ArrayLike, changes: Sequence[tuple[int, int]] = ()
    ) -> None:
        columns = [np.array(values, dtype=np.int64).reshape(-1) for values in (rows, amounts)]
        steps = tuple((int(instant), int(then)) for instant, then in changes)
        if columns[0].size != columns[1].size:
            raise ValueError(f"quota {name}: {columns[1].size} amounts for {columns[0].size} jobs")
        if np.unique(columns[0]).size != columns[0].size:
            raise ValueError(f"quota {name}: a job is named twice")
        if not all(0 <= number <= MOST for number in (int(most), *(then for _, then in steps))):
            raise ValueError(f"quota {name}: {most} or one of its changes is not from 0 to {MOST}")
        instants = [instant for instant, _ in steps]
        if instants != sorted(set(instants)) or any(abs(instant) >= LATEST for instant in instants):
            raise ValueError(f"quota {name}: the instants of its changes do not ascend, or are beyond 2**62")
        last = steps[-1][1] if steps else int(most)
        bad = np.flatnonzero((columns[1] < 1) | (columns[1] > last))
        if bad.size:
            row, count = int(columns[0][bad[0]]), int(columns[1][bad[0]])
            why = f"of {last}: it could never start" if count > last else "at least 1"
            raise ValueError(f"quota {name}: job {row} asks for {count}, {why} ({bad.size} such jobs)")
        for column in columns:
            column.flags.writeable = False
        values = {"name": name, "most": int(most), "rows": columns[0], "amounts": columns[1], "changes": steps}
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def take(self, to: Column) -> Quota:
        """Return the quota after row j of the workload became row ``to[j]``; jobs with -1 are left out."""
        rows = to[self.rows]
        return replace(self, rows=rows[rows >= 0], amounts=self.amounts[rows >= 0])

    def most_at(self, instant: int) -> int:
        """Return the amount at an instant."""
        return next((most for begin, most in reversed(self.changes) if begin <= instant), self.most)


def pairs(after: ArrayLike | None, jobs: int) -> Column:
    """Return distinct, read-only pairs of a job and one that it waits for; ValueError for a cycle or a bad row."""
    found = NO_PAIRS if after is None else np.asarray(after)
    if not found.size:
        return NO_PAIRS
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(f"after: expected whole numbers of shape (k, 2), got {found.dtype} of shape {found.shape}")
    outside = (found < 0) | (found >= jobs)
    if outside.any():
        raise ValueError(f"after: row {found[outside][0]}, of {jobs} jobs")
    found = np.stack(np.divmod(np.unique(found[:, 0].astype(np.int64) * jobs + found[:, 1]), jobs), axis=1)
    waits = _in_a_circle(found, jobs)
    if waits >= 0:
        raise ValueError(f"after: job {waits} waits for itself, or for jobs that wait for it")
    found.flags.writeable = False
    return found


def followers(after: Column, jobs: int) -> tuple[Column, NDArray[np.int32]]:
    """Return offsets `first` and jobs `following`: ``following[first[j] : first[j + 1]]`` wait for job j."""
    by_other = after[np.argsort(after[:, 1], kind="stable")]
    return np.searchsorted(by_other[:, 1], np.arange(jobs + 1)), by_other[:, 0].astype(np.int32)


def _in_a_circle(after: Column, jobs: int) -> int:
    """Return a job that could never start, -1 if there is none."""
    if (after[:, 1] < after[:, 0]).all():
        return -1
    unmet = np.bincount(after[:, 0], minlength=jobs)
    first, following = followers(after, jobs)
    ready = np.flatnonzero(unmet == 0).tolist()
    while ready:
        other = ready.pop()
        for job in following[first[other] : first[other + 1]].tolist():
            unmet[job] -= 1
            if unmet[job] == 0:
                ready.append(job)
    never = np.flatnonzero(unmet)
    return int(never[0]) if never.size else -1


def positions(jobs: int, rows: Rows) -> Column:
    """Return the position of each job in the selection `rows`, shape (jobs,); -1 for jobs that are not selected."""
    chosen = np.arange(jobs)[rows]
    to = np.full(jobs, -1, dtype=np.int64)
    to[chosen] = np.arange(chosen.size)
    return to


def selected_pairs(after: Column, to: Column) -> Column:
    """Return the pairs of selected jobs, renumbered by `to`, the result of `positions`."""
    found = to[after]
    return found[(found >= 0).all(axis=1)]


def ready_times(submit: Column, end: Column, after: Column) -> Column:
    """Return the later of each job's submission and the last end that it waits for (rule "dependencies of jobs")."""
    if not after.size:
        return submit
    found = submit.copy()
    np.maximum.at(found, after[:, 0], end[after[:, 1]])
    return found
