"""When waiting jobs will start: one simulation by walltimes, and many with run times as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, State, System, Workload, simulate
from qconf.parallel import parallel_map
from qconf.prediction.runtimes import RunTimes, sample, together

Column = NDArray[np.int64]
Floats = NDArray[np.float64]

DAY = 86400
DAYS = 28  #: the last ones, from which the days ahead are drawn
WEEK = 7.0  #: after so many days a day counts half
AHEAD = 7  #: days in which jobs come


@dataclass(frozen=True)
class Present:
    """What runs and waits at an instant."""

    workload: Workload  #: run times are not looked at
    state: State
    user: Sequence[str]
    name: Sequence[str]

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Which jobs wait, shape (n,)."""
        return np.asarray(self.state.start >= self.state.begin)


def draw(rng: np.random.Generator, submit: Column, now: int, days: int) -> tuple[NDArray[np.intp], Column]:
    """Return which jobs, of those submitted at ascending instants, come again in the days ahead, and when.

    Each day ahead is one of the last weeks' days. Days begin at the hour of `now`, so that nights stay nights; working
    days stand for working days. Late ones count more: whoever is at work now goes on.
    """
    back = np.arange(1, min(DAYS, (now - int(submit[0])) // DAY if submit.size else 0) + 1)
    rows, when = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.int64)]
    if back.size:
        weights = 0.5 ** (back / WEEK)
        weekend = is_weekend(now - back * DAY)
        for day in range(days):
            alike = weights * (weekend == is_weekend(now + day * DAY))
            alike = alike if alike.any() else weights
            begin = now - int(rng.choice(back, p=alike / alike.sum())) * DAY
            chosen = np.arange(*np.searchsorted(submit, (begin, begin + DAY)))
            rows.append(chosen)
            when.append(submit[chosen] + (now + day * DAY + 1 - begin))
    return np.concatenate(rows), np.concatenate(when)


def is_weekend(second: Column | int) -> NDArray[np.bool_]:
    """Tell whether most of the day that begins then, in Unix seconds, is a Saturday or a Sunday."""
    return np.asarray(((np.asarray(second) + DAY // 2) // DAY + 3) % 7 >= 5)  # 1970 began on a Thursday


def plan(present: Present, system: System) -> Column:
    """Return the starts of all jobs if each runs as long as its walltime and none is submitted, shape (n,)."""
    w = present.workload
    return simulate(replace(w, runtime=w.walltime), system, present.state).start


def likely_starts(
    present: Present,
    system: System,
    model: RunTimes,
    *,
    past: Workload | None = None,
    runs: int = 300,
    seed: int = 0,
    workers: int = 1,
) -> Column:
    """Return the starts of all jobs in each of many simulations with likely run times, shape (runs, n).

    Jobs to come are like those of `past`, whose run times are known, and those that are there now.
    """
    w, state = present.workload, present.state
    now = state.begin
    elapsed = np.where(state.start < now, now - state.start, 0)
    rows = zip(present.user, present.name, w.cores.tolist(), w.walltime.tolist(), elapsed.tolist(), strict=True)
    jobs = list(rows)
    model.watch(job for job, waits in zip(jobs, present.waiting.tolist(), strict=True) if not waits)
    known = {job: model.quantiles(*job) for job in set(jobs)}
    shares = np.array([known[job] for job in jobs])
    came = w.take(slice(0)) if past is None else joined(past, w)
    order = np.argsort(came.submit, kind="stable")
    came = came.take(order)

    def one(run: int) -> Column:
        rng = np.random.default_rng([seed, run])
        drawn = np.ceil(sample(shares, together(rng, w.user)) * w.walltime).astype(np.int64)
        likely = replace(w, runtime=np.clip(drawn, elapsed + 1, np.maximum(w.walltime, elapsed + 1)))
        begun = state.start
        if past is not None:
            again, when = draw(rng, came.submit, now, AHEAD)
            ran = np.concatenate((past.effective_runtime, likely.runtime))[order[again]]
            likely = joined(likely, replace(came.take(again), submit=when, runtime=ran))
            begun = np.concatenate((begun, np.full(again.size, UNSTARTED)))
        whole = State(now, begun, state.placement, state.nodes, state.windows)
        return simulate(likely, system, whole).start[: len(w)]

    return np.array(parallel_map(workers, one, [(run,) for run in range(runs)]))


def joined(jobs: Workload, later: Workload) -> Workload:
    """Return the jobs of both, in this order."""
    columns = (np.concatenate((getattr(jobs, each.name), getattr(later, each.name))) for each in fields(jobs))
    return Workload(*columns)


def interval(starts: Column, level: float) -> tuple[Floats, Floats]:
    """Return between which instants each job starts with this probability, shape (n,) each."""
    below = (1 - level) / 2
    low, high = np.quantile(starts, (below, 1 - below), axis=0)
    return low, high
