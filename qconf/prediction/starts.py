"""Starts of waiting jobs: one simulation by walltimes, and many with likely run times and coming jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, Quota, Schedule, State, System, Workload, simulate
from qconf.parallel import parallel_map
from qconf.prediction.runtimes import RunTimes, correlated_uniforms, sample

Column = NDArray[np.int64]
Floats = NDArray[np.float64]

DAY = 86400
DAYS = 28  #: last days, from which the coming days are drawn
WEEK = 7.0  #: half-life of a day's weight, days
AHEAD = 7  #: coming days with submissions


@dataclass(frozen=True)
class Present:
    """The jobs that run or wait at an instant."""

    workload: Workload  #: run times are ignored
    state: State
    user: Sequence[str]
    name: Sequence[str]
    hourly: Callable[[Workload], Sequence[Quota]] | None = None  #: returns the quotas for hours of some jobs

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Mask of the waiting jobs, shape (n,)."""
        return np.asarray(self.state.start >= self.state.begin)


def days_ahead(rng: np.random.Generator, submit: Column, now: int, days: int) -> tuple[NDArray[np.intp], Column]:
    """Draw coming days from the last weeks; return the rows of the jobs that come again, and their new submits.

    `submit` ascends. A day begins at the clock time of `now`, so nights stay nights; weekends are drawn for weekends.
    Later days weigh more, since current users go on.
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
    """Return whether the day that begins at this Unix second is mostly Saturday or Sunday."""
    return np.asarray(((np.asarray(second) + DAY // 2) // DAY + 3) % 7 >= 5)  # 1970-01-01 was a Thursday


def plan(present: Present, system: System) -> Column:
    """Return the starts of all jobs if each runs for its walltime and no job is submitted, shape (n,)."""
    w = present.workload
    return simulate(by_hours(replace(w, runtime=w.walltime), present), system, present.state).start


def by_hours(jobs: Workload, present: Present) -> Workload:
    """Return jobs with the quotas for hours added."""
    found = present.hourly(jobs) if present.hourly else ()
    return replace(jobs, quotas=[*jobs.quotas, *found]) if found else jobs


@dataclass(frozen=True)
class Draw:
    """The random part of one simulation."""

    runtime: Column  #: run time of each present job
    again: NDArray[np.intp]  #: rows of the coming jobs in past and present, joined
    when: Column  #: submit of each coming job
    ran: Column  #: run time of each coming job


class Sampler:
    """Draws run times of the present jobs, and coming jobs, for many simulations."""

    def __init__(self, present: Present, model: RunTimes, past: Workload | None = None, seed: int = 0) -> None:
        """Coming jobs repeat those of `past`, whose run times are known, and the present ones."""
        w, state = present.workload, present.state
        self.present, self.past, self.seed = present, past, seed
        self.elapsed = np.where(state.start < state.begin, state.begin - state.start, 0)
        columns = (w.cores.tolist(), w.walltime.tolist(), self.elapsed.tolist())
        jobs = list(zip(present.user, present.name, *columns, strict=True))
        model.watch(job for job, waits in zip(jobs, present.waiting.tolist(), strict=True) if not waits)
        known = {job: model.quantiles(*job) for job in set(jobs)}
        self.shares = np.array([known[job] for job in jobs])
        self.order = np.argsort(w.submit if past is None else np.concatenate((past.submit, w.submit)), kind="stable")

    def draw(self, run: int, days: int = AHEAD) -> Draw:
        """Return the draw of simulation number `run`; the same number gives the same draw."""
        rng, w, now = np.random.default_rng([self.seed, run]), self.present.workload, self.present.state.begin
        drawn = np.ceil(sample(self.shares, correlated_uniforms(rng, w.user)) * w.walltime).astype(np.int64)
        runtime = np.clip(drawn, self.elapsed + 1, np.maximum(w.walltime, self.elapsed + 1))
        if self.past is None:
            none = np.empty(0, dtype=np.int64)
            return Draw(runtime, none, none, none)
        submit, ran = (
            np.concatenate(both)[self.order]
            for both in ((self.past.submit, w.submit), (self.past.effective_runtime, runtime))
        )
        again, when = days_ahead(rng, submit, now, days)
        return Draw(runtime, self.order[again], when, ran[again])


def coming(present: Present, past: Workload | None, drawn: Draw) -> Workload:
    """Return the drawn coming jobs, in the queues that they have in `past` and `present`.

    They have no needs but cores.
    """
    there = present.workload.without_needs()
    if past is None:
        return there.take(drawn.again)
    return replace(joined(past.without_needs(), there).take(drawn.again), submit=drawn.when, runtime=drawn.ran)


def simulate_from(present: Present, later: Workload, drawn: Draw, system: System) -> Schedule:
    """Simulate from the present with the drawn run times; the coming jobs are the last of the schedule."""
    state = present.state
    begun = np.concatenate((state.start, np.full(len(later), UNSTARTED)))
    jobs = joined(replace(present.workload, runtime=drawn.runtime), later)
    return simulate(
        by_hours(jobs, present), system, State(state.begin, begun, state.placement, state.nodes, state.windows)
    )


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
    """Return the starts of all present jobs in each of `runs` simulations with likely run times, shape (runs, n)."""
    sampler, n = Sampler(present, model, past, seed), len(present.workload)

    def one(run: int) -> Column:
        drawn = sampler.draw(run)
        return simulate_from(present, coming(present, past, drawn), drawn, system).start[:n]

    return np.array(parallel_map(workers, one, [(run,) for run in range(runs)]))


def joined(jobs: Workload, later: Workload) -> Workload:
    """Return the jobs of both, in this order, with the same user names; those of `later` need cores only."""
    names = ("submit", "cores", "runtime", "walltime", "queue", "user", "group", "qos")
    both: dict[str, Any] = {name: np.concatenate((getattr(jobs, name), getattr(later, name))) for name in names}
    return Workload(
        **both,
        user_names=jobs.user_names,
        group_names=jobs.group_names,
        after=jobs.after,
        quotas=jobs.quotas,
        qos_names=jobs.qos_names,
    )


def interval(starts: Column, level: float) -> tuple[Floats, Floats]:
    """Return (low, high), between which each job starts with probability `level`, shape (n,) each."""
    below = (1 - level) / 2
    low, high = np.quantile(starts, (below, 1 - below), axis=0)
    return low, high
