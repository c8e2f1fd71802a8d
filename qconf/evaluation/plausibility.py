"""Warnings of an implausible base: a queue that, simulated as configured, never drains or waits longer than the log.

No site runs like that for long. Then the configuration was not the one in force, or the log holds jobs of other
machines. A gain over such a simulation is no gain over the waits that users saw.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.outcome import Outcome

DAY = 86400
QUARTERS = 4
#: A queue drains too long if it starts jobs for more than this fraction of the log, and these seconds, after its end.
LONG_AFTER = (0.25, DAY)
#: The same for a queue with more waiting jobs in each quarter of the log than in the one before.
LONG_AFTER_GROWING = (0.1, DAY)


def implausible(outcome: Outcome) -> list[str]:
    """Return a sentence, with figures, for each base queue with implausible waits; empty if there is none.

    The log lasts from the first to the last submission of the counted jobs. A queue is implausible if

    * a job waits longer than the log lasts;
    * more jobs wait, on average, in each quarter of the log than in the one before, and its last job starts more than a
      tenth of the log, and a day, after the last submission: the queue never drains;
    * its last job starts more than a quarter of the log, and a day, after the last submission.
    """
    submit = outcome.jobs.submit
    if not submit.size:
        return []
    low, high = int(submit.min()), int(submit.max())
    if low == high:
        return []
    found = []
    log = high - low
    for i, queue in enumerate(outcome.period.base.queues):
        rows, name = outcome.jobs.queue == i, queue.name
        if not rows.any():
            continue
        start = submit[rows] + outcome.wait[rows]
        waiting = int((start > high).sum())
        after = int(start.max()) - high
        longest = int(outcome.wait[rows].max())
        backlog = _waiting(submit[rows], start, np.linspace(low, high, QUARTERS + 1))
        growing = all(before < now for before, now in pairwise(backlog.tolist()))
        last = (
            f"{waiting} of its {len(start)} jobs still wait{'s' * (waiting == 1)} at the last submission, the last for "
            f"{_days(after)} more"
        )
        if longest > log:
            found.append(f"queue {name} waits longer than the log: up to {_days(longest)}, in a log of {_days(log)}")
        elif growing and _long(after, log, LONG_AFTER_GROWING):
            counts = ", ".join(f"{count:.0f}" if count >= 10 else f"{count:.1f}" for count in backlog)
            found.append(f"queue {name} never drains: in the quarters of the log {counts} jobs wait on average; {last}")
        elif _long(after, log, LONG_AFTER):
            found.append(f"queue {name} does not drain: {last}, in a log of {_days(log)}")
    return found


def _waiting(submit: NDArray[np.int64], start: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean number of waiting jobs between two successive edges, shape (edges - 1,)."""
    within = np.clip(start[:, None], edges[:-1], edges[1:]) - np.clip(submit[:, None], edges[:-1], edges[1:])
    counts: NDArray[np.float64] = within.sum(axis=0) / np.diff(edges)
    return counts


def _long(after: int, log: int, limits: tuple[float, int]) -> bool:
    share, seconds = limits
    return after > max(share * log, seconds)


def _days(seconds: int) -> str:
    return f"{seconds / DAY:.1f} days"
