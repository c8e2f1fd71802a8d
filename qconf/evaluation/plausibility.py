"""An implausible present: a queue that, simulated as it is configured, never drains or waits longer than the log.

No site runs so for long. The configuration is then not what was in force, or the log holds more than its jobs. A gain
over such a present is no gain over what the users saw.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.outcome import Outcome

DAY = 86400
QUARTERS = 4
#: Share of the log, and seconds, for which a queue goes on to start jobs after the last submission: more is long.
LONG_AFTER = (0.25, DAY)
#: The same for a queue of which ever more jobs wait from quarter to quarter of the log.
LONG_AFTER_GROWING = (0.1, DAY)


def implausible(outcome: Outcome) -> list[str]:
    """Return a sentence for each base queue whose waits no site would bear, with the figures; empty if there is none.

    The log goes from the first to the last submission of the counted jobs. A queue is implausible where

    * a job waits longer than the log;
    * ever more jobs wait, on average in each quarter of the log than in that before, and the last of them starts more
      than a tenth of the log, and a day, after the last submission: the queue never drains;
    * the last of them starts more than a quarter of the log, and a day, after it.
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
    """Return how many jobs wait on average between two successive edges, shape (edges - 1,)."""
    within = np.clip(start[:, None], edges[:-1], edges[1:]) - np.clip(submit[:, None], edges[:-1], edges[1:])
    counts: NDArray[np.float64] = within.sum(axis=0) / np.diff(edges)
    return counts


def _long(after: int, log: int, limits: tuple[float, int]) -> bool:
    share, seconds = limits
    return after > max(share * log, seconds)


def _days(seconds: int) -> str:
    return f"{seconds / DAY:.1f} days"
