"""The most that an order of the waiting list can gain on the public logs, and how well one month predicts the next.

``python -m tests.benchmarks.frontier [trace...]``. Every order of `auto`'s family, and its general order with and
without a reservation delay of a day, are simulated on all test months as in the walk-forward (three days of warm-up).
The ratios are of means over the months, to ``fcfs-easy``. Means of single orders scatter by a few per cent, so those of
the quadratic surface through all of them are shown too. Ageing is by the geometric mean of a log's longest waits.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, metrics, simulate
from qconf.backtest.walk_forward import WARMUP_DAYS, plan_folds
from qconf.config import load
from qconf.history import clean, read
from qconf.history.periods import FEWEST
from qconf.parallel import parallel_map
from qconf.strategies.auto.orders import FORMULAS, Order
from tests.beside import TRACES

ROOT = Path(__file__).resolve().parents[2]
LOGS = ("SDSC-SP2", "KTH-SP2", "HPC2N")
PLAIN = Order(age=1.0, length=1.3, width=0.0, ageing=0.6)
FIXED = ("fcfs-easy", "general order", "general order, reservation delay")
SHUFFLES = 100
DELAY = 86400  # reservation delay, seconds
LONGEST = 1.4  # ratio to fcfs-easy that longest waits may have


def numbers(jobs: Workload, system: System, start: int) -> list[float]:
    """Mean wait, mean bounded slowdown and longest wait of the jobs submitted from `start` on."""
    schedule = simulate(jobs, system)
    counted = jobs.submit >= start
    wait, slowdown = schedule.wait[counted], metrics.bounded_slowdown(schedule)[counted]
    return [float(wait.mean()), float(slowdown.mean()), float(wait.max())]


def one_list(jobs: Workload) -> Workload:
    """Return the jobs without their queues."""
    return Workload(jobs.submit, jobs.cores, jobs.runtime, jobs.walltime)


def table(name: str, workers: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simulate `FIXED`, then the family, on training and test months; shapes (months, fixed + orders, 3)."""
    base = load(ROOT / "configs" / f"{name.lower()}.yaml")
    (path,) = TRACES.glob(f"{name}-*.swf.gz")
    history = clean(read([path]), base)
    periods = history.periods("month")
    spans = {label: (start, end) for label, start, end in periods}
    cores = base.machine.cores
    folds, _ = plan_folds(history, periods, FEWEST, WARMUP_DAYS)
    trained = [one_list(history.between(*spans[fold.training]).workload(base)) for fold in folds]
    waits = [simulate(jobs, System.single(cores)).wait.max() for jobs in trained]
    longest = round(float(np.exp(np.log(np.maximum(waits, 3600)).mean())))
    systems = [System.single(cores, order) for order in ("fcfs", *FORMULAS.candidates(cores, longest))]
    systems.insert(2, replace(systems[1], reserve_after=DELAY))
    tasks = []
    for fold in folds:
        for start, end, counted in (
            (*spans[fold.training], 0),
            (fold.start - WARMUP_DAYS * 86400, fold.end, fold.start),
        ):
            jobs = one_list(history.between(start, end).workload(base))
            tasks += [(jobs, system, counted) for system in systems]
    found = np.array(parallel_map(workers, numbers, tasks)).reshape(len(folds), 2, len(systems), 3)
    return found[:, 0], found[:, 1]


def smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the surface through the logarithms of every month's orders, with the same mean."""
    logs = np.log(values + 1)
    surfaces = np.array([FORMULAS.smooth(month) for month in logs])
    level = np.exp(logs - surfaces).mean(axis=1, keepdims=True)
    return np.asarray(np.exp(surfaces) * level - 1)


def persistence(training: NDArray[np.float64], test: NDArray[np.float64]) -> tuple[float, float]:
    """Correlate a month's deviation from the log's mean with that of the next month, and of random months."""
    before, after = (np.array([FORMULAS.smooth(np.log(month + 1)) for month in each]) for each in (training, test))
    before, after = (each - each.mean(axis=1, keepdims=True) for each in (before, after))
    before, after = (each - each.mean(axis=0) for each in (before, after))
    rng = np.random.default_rng(0)
    pairings = [np.arange(len(after)), *(rng.permutation(len(after)) for _ in range(SHUFFLES))]
    found = [float(np.corrcoef(before.ravel(), after[rows].ravel())[0, 1]) for rows in pairings]
    return found[0], float(np.mean(found[1:]))


def main(names: tuple[str, ...], workers: int = 2) -> None:
    """Print a table per log."""
    orders = FORMULAS.members
    for name in names:
        training, test = table(name, workers)
        reference = test[:, 0].mean(axis=0)
        first = len(FIXED)
        plain, smoother = test[:, first:], smoothed(test[:, first:])
        single, surface = (values.mean(axis=0) / reference for values in (plain, smoother))
        bounded = np.where(surface[:, 2] <= LONGEST, surface[:, 0], np.inf)
        shown = {
            "walltime ** 1.3, the longest ageing": orders.index(PLAIN),
            "least wait": int(surface[:, 0].argmin()),
            f"least wait, longest <= {LONGEST:g}": int(bounded.argmin()),
        }
        print(f"{name}, {len(test)} months: wait / slowdown / longest, of the surface and of the order alone")
        for what, i in shown.items():
            ratios = "   ".join(" / ".join(f"{value:.3f}" for value in each[i]) for each in (surface, single))
            print(f"  {what:32} {ratios}   {orders[i]}")
        for what, found in zip(FIXED, test[:, :first].mean(axis=0) / reference, strict=True):
            print(f"  {what:32} {' / '.join(f'{value:.3f}' for value in found)}")
        every = [persistence(training[:, first:, k], test[:, first:, k]) for k in range(3)]
        for what, values in zip(("the next", "one at random"), zip(*every, strict=True), strict=True):
            print(
                f"  a month's deviation from the mean, correlated with {what}: {' / '.join(f'{r:.2f}' for r in values)}"
            )


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or LOGS)
