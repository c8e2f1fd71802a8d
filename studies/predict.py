"""How good predicted starts are: ``python -m studies.predict`` prints the table of docs/research/prediction.md.

At seeded instants of a log all waiting jobs are predicted. State and truth are those of the schedule that parsim gives
for the whole log; the model, the jobs that come and the prediction know nothing that happens later.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from parsim import State, System, Workload, simulate
from qconf.config import load
from qconf.history import History, clean, read
from qconf.prediction.replays import Calibration
from qconf.prediction.runtimes import RunTimes
from qconf.prediction.starts import DAY, DAYS, Present, interval, likely_starts, plan
from studies.output import ROOT, TRACES

LOGS = {
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", "sdsc-sp2.yaml"),
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2.yaml"),
    "HPC2N": ("HPC2N-2002-2.1-cln.swf.gz", "hpc2n.yaml"),
}
ORDERS = {"fcfs-easy": "fcfs", "formula": "(eligible_time + walltime) / walltime"}
LEVEL = 0.8
WARM = 0.1  #: share of the log before the first instant: there is nothing to train on


@dataclass(frozen=True)
class Predicted:
    """Predicted and true starts of all jobs that wait at each instant, seconds; instants ascend."""

    now: NDArray[np.int64]
    true: NDArray[np.int64]
    planned: NDArray[np.int64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def calibrated(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bounds of intervals, calibrated at each instant by the predictions already decided."""
        low, high = self.low.copy(), self.high.copy()
        for now in np.unique(self.now).tolist():
            here, before = self.now == now, (self.now < now) & (self.true <= now)
            calibration = Calibration.of(
                LEVEL, self.now[before], self.low[before], self.middle[before], self.high[before], self.true[before]
            )
            low[here], high[here] = calibration.widened(now, self.low[here], self.middle[here], self.high[here])
        return low, high

    def inside(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
        """Return the share of jobs that start in their interval, and the mean of the instants' shares, as text."""
        kept = (self.true >= np.floor(low)) & (self.true <= np.ceil(high))
        _, instant = np.unique(self.now, return_inverse=True)
        each = np.bincount(instant, kept) / np.bincount(instant)
        return f"{100 * kept.mean():.1f} ({100 * each.mean():.1f})"

    def row(self) -> list[str]:
        """Return the cells of the table."""
        by_plan, by_model = np.abs(self.planned - self.true), np.abs(self.middle - self.true)
        return [
            str(self.true.size),
            f"{by_plan.mean() / 60:.0f}",
            f"{by_model.mean() / 60:.0f}",
            f"{by_model.mean() / by_plan.mean():.2f}",
            self.inside(self.low, self.high),
            self.inside(*self.calibrated()),
            f"{100 * (by_plan <= 600).mean():.0f}",
            f"{100 * (by_model <= 600).mean():.0f}",
        ]


def instants(jobs: Workload, start: NDArray[np.int64], count: int, seed: int) -> list[int]:
    """Return random instants at which a job waits, ascending."""
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    while len(chosen) < count:
        now = int(rng.integers(first + round(WARM * (last - first)), last))
        if ((jobs.submit < now) & (start >= now)).any():
            chosen.append(now)
    return sorted(chosen)


def measure(history: History, jobs: Workload, system: System, count: int, runs: int, seed: int) -> Predicted:
    """Predict all waiting jobs at random instants, and return predicted and true starts."""
    schedule = simulate(jobs, system)
    user = history.jobs["user"].to_numpy(dtype=str)
    ends = np.argsort(schedule.end, kind="stable")
    model, trained = RunTimes(), 0
    parts: list[tuple[NDArray[Any], ...]] = []
    for number, now in enumerate(instants(jobs, schedule.start, count, seed)):
        while trained < ends.size and schedule.end[ends[trained]] <= now:
            j = ends[trained]
            model.add(user[j], "", int(jobs.cores[j]), int(jobs.walltime[j]), float(jobs.runtime[j] / jobs.walltime[j]))
            trained += 1
        there = np.flatnonzero((jobs.submit < now) & (schedule.end > now))
        present = Present(
            jobs.take(there), State.at(schedule, now).take(there), user[there].tolist(), [""] * there.size
        )
        past = jobs.take((schedule.end <= now) & (jobs.submit >= now - DAYS * DAY))
        likely = likely_starts(present, system, model, past=past, runs=runs, seed=seed + number)
        waits = present.waiting
        middle = np.median(likely[:, waits], axis=0)
        planned, true = plan(present, system)[waits], schedule.start[there[waits]]
        parts.append((np.full(true.size, now), true, planned, middle, *interval(likely[:, waits], LEVEL)))
    return Predicted(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instants", type=int, default=200)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("logs", nargs="*", default=list(LOGS))
    given = parser.parse_args(arguments)
    head = ["log", "order", "waiting jobs", "plan, min", "model, min", "ratio"]
    head += ["inside 80 %, simulated", "calibrated", "plan 10 min", "model 10 min"]
    click.echo(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for log in given.logs:
        trace, site = LOGS[log]
        base = load(ROOT / "configs" / site)
        history = clean(read([TRACES / trace]), base)
        jobs = history.workload(base)
        jobs = Workload(history.epoch + jobs.submit, jobs.cores, jobs.runtime, jobs.walltime, user=jobs.user)
        for name, order in ORDERS.items():
            system = System.single(base.machine.cores, order)
            cells = measure(history, jobs, system, given.instants, given.runs, given.seed).row()
            click.echo(f"| {log} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
