"""Where `auto`'s general order comes from, and how good one is that was chosen without the log that judges it.

``python -m tests.benchmarks.general [orders]``. Orders of `auto`'s shape with parameters from a wide range (256 unless
told) are simulated, each fixed over all judged periods of every log, as the walk-forward judges: the public logs, the
generated months and a log of Lublin's model. Ratios are of means over the periods, to ``fcfs-easy``. For each log are
shown the ten orders that are best on the other logs together, the ten best on all, and the general order, each the mean
with those next to it since single orders scatter by chance; and which parameters the ten have.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from parsim import System, Workload
from qconf.backtest.walk import WARMUP_DAYS, plan_stages
from qconf.config import SiteConfig, load
from qconf.history import History, clean, derive_config, read
from qconf.history.history import DAY, FEWEST
from qconf.strategies.auto import STEEP, TOLERATED
from qconf.synth import generate, write_history
from qconf.tuning.formulas import GENERAL, Order
from qconf.tuning.rating import weights
from qconf.workers import side_by_side
from tests.benchmarks.frontier import LOGS, ROOT, numbers
from tests.beside import TRACES

LEAST = (0.2, 0.1, 7.0, 0.4, 0.2)  # of each parameter
MOST = (1.6, 1.3, 40.0, 1.2, 2.0)
BEST = 10
NEAR = 0.04  # part of the range by which neighbours of the general order lie from it
Judged = list[tuple[Workload, int]]


def judged(history: History, base: SiteConfig, period: str) -> Judged:
    """Jobs of every judged period with its warm-up, and the period's begin."""
    stages, _ = plan_stages(history, history.periods(period), FEWEST, WARMUP_DAYS)
    found = []
    for stage in stages:
        jobs = history.between(stage.start - WARMUP_DAYS * DAY, stage.end).workload(base)
        found.append((Workload(jobs.submit, jobs.cores, jobs.runtime, jobs.walltime), stage.start))
    return found


def logs() -> Iterator[tuple[str, int, Judged]]:
    """Name, cores and judged periods of every log; the public ones begin their periods in two places."""
    for name in LOGS:
        base = load(ROOT / "configs" / f"{name.lower()}.yaml")
        (path,) = TRACES.glob(f"{name}-*.swf.gz")
        history = clean(read([path]), base)
        later = history.between(history.span[0] + 15 * DAY, None)
        periods = judged(history, base, "month") + judged(later, base, "30d")
        yield name, base.machine.cores, periods
    base = load(ROOT / "configs" / "cray-xc40.yaml")
    with tempfile.TemporaryDirectory() as folder:
        history = clean(read([write_history(generate(), Path(folder) / "generated.csv.gz")]), base)
    yield "generated", base.machine.cores, judged(history, base, "month")
    records = read([TRACES / "lublin_256.swf"])
    base = derive_config(records, 256)
    history = clean(records, base)
    yield "Lublin", 256, judged(history, base, "15d")


def drawn(count: int, least: tuple[float, ...], most: tuple[float, ...]) -> list[Order]:
    """Orders that fill the range evenly, patience by its logarithm."""
    low, high = (np.array(each) for each in (least, most))
    low[2], high[2] = np.log(low[2]), np.log(high[2])
    points = qmc.scale(qmc.Sobol(len(low), seed=0).random(count), low, high)
    points[:, 2] = np.exp(points[:, 2])
    return [Order(*point.round(3).tolist()) for point in points]


def ratios(cores: int, periods: Judged, orders: list[Order]) -> NDArray[np.float64]:
    """Mean wait, bounded slowdown and longest wait of every order to fcfs-easy's, shape (orders, 3)."""
    systems = [System.single(cores, order) for order in ("fcfs", *(order.formula(cores) for order in orders))]
    tasks = [(jobs, system, start) for system in systems for jobs, start in periods]
    means = np.array(side_by_side(2, numbers, tasks)).reshape(len(systems), len(periods), 3).mean(axis=1)
    found: NDArray[np.float64] = means[1:] / means[0]
    return found


def main(count: int) -> None:
    """Print a row for each log."""
    spread = NEAR * (np.array(MOST) - LEAST)
    middle = np.array(astuple(GENERAL))
    near = drawn(16, tuple(middle - spread), tuple(middle + spread))
    orders = drawn(count, LEAST, MOST)
    names, found, around = [], [], []
    for name, cores, periods in logs():
        values = ratios(cores, periods, [*near, *orders])
        names.append(name)
        around.append(values[: len(near)].mean(axis=0))
        found.append(values[len(near) :])
    table = np.array(found)
    scores = np.log(table) @ weights("mean-wait") + STEEP * np.maximum(np.log(table[..., 2] / TOLERATED), 0)
    print(f"{'':10} {'best on the others':>22} {'best on all':>22} {'about the general one':>22}")
    everywhere = np.argsort(scores.mean(axis=0))[:BEST]
    for i, name in enumerate(names):
        others = np.argsort(np.delete(scores, i, axis=0).mean(axis=0))[:BEST]
        rows = (table[i, others].mean(axis=0), table[i, everywhere].mean(axis=0), around[i])
        print(f"{name:10} " + " ".join(f"{' / '.join(f'{value:.3f}' for value in row):>22}" for row in rows))
        print(f"{'':10} the ten best on the others: {_middle(orders, others)}")
    print(f"the ten best on all: {_middle(orders, everywhere)}")


def _middle(orders: list[Order], which: NDArray[np.int64]) -> str:
    values = np.median([astuple(orders[i]) for i in which], axis=0)
    names = (each.name for each in fields(Order))
    return ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
