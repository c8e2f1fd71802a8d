"""When waiting jobs will start: one simulation by walltimes, and many with run times as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim import State, System, Workload, simulate
from qconf.parallel import parallel_map
from qconf.prediction.runtimes import RunTimes, quantiles, sample

Column = NDArray[np.int64]
Floats = NDArray[np.float64]


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


@dataclass(frozen=True)
class Arrivals:
    """Jobs that were submitted in the past, to be submitted again in the days ahead."""

    workload: Workload  #: ascending by submit
    ran: Column  #: seconds that each ran

    def draw(self, rng: np.random.Generator, now: int, ahead: int) -> tuple[Workload, Column]:
        """Return those of a random stretch of the past, as if submitted from `now` on, and how long they ran."""
        submit = self.workload.submit
        none = np.empty(0, dtype=np.int64)
        if not submit.size or submit[-1] - submit[0] < ahead:
            return self.workload.take(none), none
        # Whole weeks and days apart, so that nights stay nights where the past is long enough.
        day = 86400
        latest = int(now - ahead - 1)
        choices = np.arange(latest - (latest - now) % day - 28 * day, latest + 1, day)
        choices = choices[choices >= submit[0]]
        begin = int(rng.choice(choices)) if choices.size else int(submit[0])
        first, last = np.searchsorted(submit, (begin, begin + ahead))
        rows = np.arange(first, last)
        jobs = self.workload.take(rows)
        return replace(jobs, submit=jobs.submit + (now - begin) + 1), self.ran[rows]


def plan(present: Present, system: System) -> Column:
    """Return the starts of all jobs if each runs as long as its walltime and none is submitted, shape (n,)."""
    w = present.workload
    return simulate(replace(w, runtime=w.walltime), system, present.state).start


def likely_starts(
    present: Present,
    system: System,
    model: RunTimes,
    *,
    runs: int = 300,
    seed: int = 0,
    arrivals: Arrivals | None = None,
    ahead: int = 2 * 86400,
    workers: int = 1,
) -> Column:
    """Return the starts of all jobs in each of many simulations with likely run times, shape (runs, n)."""
    w, state = present.workload, present.state
    now = state.begin
    elapsed = np.where(state.start < now, now - state.start, 0)
    rows = zip(present.user, present.name, w.cores.tolist(), w.walltime.tolist(), elapsed.tolist(), strict=True)
    jobs = list(rows)
    model.watch(job for job, waits in zip(jobs, present.waiting.tolist(), strict=True) if not waits)
    shares = np.array([quantiles(model.like(*job)) for job in jobs])

    def one(run: int) -> Column:
        rng = np.random.default_rng([seed, run])
        drawn = sample(shares, rng.random(len(w)))
        runtime = np.clip(np.ceil(drawn * w.walltime), np.maximum(1, elapsed + 1), None).astype(np.int64)
        runtime = np.minimum(runtime, np.maximum(w.walltime, elapsed + 1))
        likely = replace(w, runtime=runtime)
        begun = state.start
        if arrivals is not None:
            later, ran = arrivals.draw(rng, now, ahead)
            likely = joined(likely, later, ran)
            begun = np.concatenate((begun, np.full(len(later), now)))
        whole = State(now, begun, state.placement, state.nodes, state.windows)
        return simulate(likely, system, whole).start[: len(w)]

    return np.array(parallel_map(workers, one, [(run,) for run in range(runs)]))


def joined(jobs: Workload, later: Workload, ran: Column) -> Workload:
    """Return both, the later ones last, with the run times that they had."""

    def both(name: str) -> Column:
        return np.concatenate((getattr(jobs, name), getattr(later, name)))

    runtime = np.concatenate((jobs.runtime, np.maximum(1, ran)))
    return Workload(
        both("submit"), both("cores"), runtime, both("walltime"), both("queue"), both("user"), jobs.user_names
    )


def interval(starts: Column, level: float) -> tuple[Floats, Floats]:
    """Return between which instants each job starts with this probability, shape (n,) each."""
    below = (1 - level) / 2
    low, high = np.quantile(starts, (below, 1 - below), axis=0)
    return low, high
