"""The time axis of an outcome, for figures: use of the machine, queued work and waiting jobs over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.metrics.bottleneck import by_run
from qconf.config import KEPT
from qconf.evaluation.outcome import Outcome

Floats = NDArray[np.float64]
Weight = NDArray[np.int64] | Floats
#: Possible lengths of a bin, seconds.
BINS = (900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
MOST = 400  # bins


@dataclass(frozen=True, eq=False)
class Timeline:
    """Means over bins of time, over all jobs of a schedule, warm-up included."""

    edges: NDArray[np.int64]  #: seconds, shape (bins + 1,)
    used: Floats  #: fraction of the bottleneck in use, shape (bins,)
    queued: Floats  #: work of the waiting jobs, bottleneck-seconds: core-seconds if cores are the bottleneck
    waiting: Floats  #: number of waiting jobs
    #: Fraction in use of each resource but memory, by (type of nodes, resource); empty if all nodes are alike.
    by_type: dict[tuple[str, str], Floats]


def timeline(outcome: Outcome) -> Timeline:
    """Average an outcome over bins from the first to the last counted submission; at most `MOST` bins."""
    submit = outcome.jobs.submit
    first, last = int(submit[0]), int(submit[-1])
    length = next((each for each in BINS if last - first <= MOST * each), -(-(last - first) // MOST))
    edges = np.append(np.arange(first, last, max(length, 1), dtype=np.int64), last)
    found, jobs = outcome.schedule, outcome.period.workload
    taken, there = by_run(found, outcome.period.base.system(), outcome.period.resource)
    work = outcome.period.use.amount * jobs.effective_runtime
    span = np.maximum(np.diff(edges), 1).astype(np.float64)

    def mean(begin: NDArray[np.int64], end: NDArray[np.int64], weight: Weight | None = None) -> Floats:
        """Return the mean in each bin of the sum of the weights of the jobs that are between begin and end."""
        return np.asarray(np.diff(_sum(begin, edges, weight) - _sum(end, edges, weight)) / span)

    _, begin, end = found.runs
    return Timeline(
        edges=edges,
        used=mean(begin, end, taken) / there,
        queued=mean(found.submit, found.start, work),
        waiting=mean(found.submit, found.start),
        by_type={what: mean(begin, end, amounts) / there for what, amounts, there in _taken(outcome)},
    )


def _taken(outcome: Outcome) -> Iterator[tuple[tuple[str, str], NDArray[np.int64], int]]:
    """Yield (type of nodes, resource), the amount that each run of a job takes, and the total; memory is left out."""
    demands = outcome.schedule.demands
    if demands is None:
        return
    for t, each in enumerate(outcome.period.base.nodes):
        for r, name in enumerate(demands.resources):
            if name not in ("memory", KEPT) and demands.there[t, r]:
                yield (each.name, name), demands.amounts[outcome.schedule.taken_by_run, t, r], int(demands.there[t, r])


def _sum(since: NDArray[np.int64], times: NDArray[np.int64], weight: Weight | None) -> Floats:
    """Return, at each of `times`, the weighted sum of seconds elapsed since each earlier instant of `since`."""
    order = np.argsort(since, kind="stable")
    weights = (np.ones(since.size) if weight is None else weight.astype(np.float64))[order]
    instants = since[order] - times[0]  # small numbers, so that products of them stay exact
    total = np.concatenate([[0.0], np.cumsum(weights)])
    moment = np.concatenate([[0.0], np.cumsum(weights * instants)])
    before = np.searchsorted(instants, times - times[0], side="right")
    return np.asarray(total[before] * (times - times[0]) - moment[before])
