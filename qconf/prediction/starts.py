"""When waiting jobs will start: one simulation by walltimes, and many with run times as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, Quota, Schedule, State, System, Workload, simulate
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
    hourly: Callable[[Workload], Sequence[Quota]] | None = None  #: limits that hold for some hours, of jobs

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Which jobs wait, shape (n,)."""
        return np.asarray(self.state.start >= self.state.begin)


def days_ahead(rng: np.random.Generator, submit: Column, now: int, days: int) -> tuple[NDArray[np.intp], Column]:
    """Return which jobs, of those submitted at ascending instants, come again in the days ahead, and when.

    Each day ahead is one of the last weeks' days. Days begin at the hour of `now`, so that nights stay nights; working
    days stand for working days. Late ones count more: users who work now go on.
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
    return simulate(by_hours(replace(w, runtime=w.walltime), present), system, present.state).start


def by_hours(jobs: Workload, present: Present) -> Workload:
    """Return jobs with the limits that hold for some hours."""
    found = present.hourly(jobs) if present.hourly else ()
    return replace(jobs, quotas=[*jobs.quotas, *found]) if found else jobs


@dataclass(frozen=True)
class Draw:
    """What is random in one simulation."""

    runtime: Column  #: of each job that is there
    again: NDArray[np.intp]  #: rows, in past and present, of the jobs that come
    when: Column  #: when each of them is submitted
    ran: Column  #: how long each of them runs


class Sampler:
    """Run times of the jobs that are there, and the jobs to come, for one simulation after another."""

    def __init__(self, present: Present, model: RunTimes, past: Workload | None = None, seed: int = 0) -> None:
        """Come may what came before: `past`, whose run times are known, and the jobs that are there."""
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
        """Return what is random in a simulation; the same number, the same draw."""
        rng, w, now = np.random.default_rng([self.seed, run]), self.present.workload, self.present.state.begin
        drawn = np.ceil(sample(self.shares, together(rng, w.user)) * w.walltime).astype(np.int64)
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
    """Return the jobs to come as they were drawn, in the queues that they have in `past` and `present`.

    They need nothing but cores.
    """
    there = present.workload.without_needs()
    if past is None:
        return there.take(drawn.again)
    return replace(joined(past.without_needs(), there).take(drawn.again), submit=drawn.when, runtime=drawn.ran)


def simulate_from(present: Present, later: Workload, drawn: Draw, system: System) -> Schedule:
    """Simulate from a present on, with the run times that were drawn; the jobs to come are the last of the schedule."""
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
    """Return the starts of all jobs in each of many simulations with likely run times, shape (runs, n)."""
    sampler, n = Sampler(present, model, past, seed), len(present.workload)

    def one(run: int) -> Column:
        drawn = sampler.draw(run)
        return simulate_from(present, coming(present, past, drawn), drawn, system).start[:n]

    return np.array(parallel_map(workers, one, [(run,) for run in range(runs)]))


def joined(jobs: Workload, later: Workload) -> Workload:
    """Return the jobs of both, in this order; their users have the same names. Those of `later` need cores only."""
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
    """Return between which instants each job starts with this probability, shape (n,) each."""
    below = (1 - level) / 2
    low, high = np.quantile(starts, (below, 1 - below), axis=0)
    return low, high
