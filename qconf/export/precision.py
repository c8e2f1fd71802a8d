"""Check that a formula still orders jobs in single precision, in which PBS's scheduler stores its values.

Jobs with different values in double precision should have different ones in single precision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parsim.model.formula import JOB_NAMES, parse
from parsim.model.workload import MAX_DURATION
from qconf.config import SiteConfig

if TYPE_CHECKING:
    from qconf.history import History

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 0.01  #: tolerated fraction of pairs of jobs in the wrong order
COUNT = 600  #: number of compared jobs
SIZES = 4  #: number of frequent sizes and walltimes in a queue
MINUTE, DAY = 60, 86400
LONGEST = 30 * DAY  #: longest walltime in queues without a maximum


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs to check a formula with: cores, walltime and wait (seconds); shape (n,) each."""

    cores: Integers
    walltime: Integers
    wait: Integers

    @classmethod
    def of(cls, config: SiteConfig) -> Jobs:
        """Return random jobs that cover the ranges of a configuration's queues."""
        rng = np.random.default_rng(0)
        each = max(COUNT // len(config.queues), 60)
        columns = []
        for queue in config.queues:
            above, upto = queue.walltime
            upto = min(upto, max(LONGEST, above + 1)) if upto == MAX_DURATION else upto
            ranges = ((queue.cores[0], max(queue.cores[0], config.widest(queue))), (max(MINUTE, above + 1), upto))
            # As on real sites, half of the jobs share a few sizes and walltimes.
            drawn = [_spread(rng, min(low, high), high, each) for low, high in ranges]
            drawn = [np.where(rng.random(each) < 0.5, rng.choice(column[:SIZES], each), column) for column in drawn]
            columns.append([*drawn, np.where(rng.random(each) < 0.1, 0, _spread(rng, MINUTE, 14 * DAY, each))])
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _spread(rng: np.random.Generator, low: int, high: int, count: int) -> NDArray[np.int64]:
    """Draw log-uniform integers in [low, high], with both bounds."""
    found = np.exp(rng.uniform(math.log(low), math.log(high) if high > low else math.log(low), count)).round()
    found[:2] = low, high
    return found.astype(np.int64)


def met(history: History) -> Jobs:
    """Return at most `COUNT` jobs, evenly spaced in a history, each at a random moment of its recorded wait."""
    jobs = history.jobs
    wait = (jobs["start"] - jobs["submit"]).where(jobs["start"] >= jobs["submit"], -1).to_numpy()  # -1: unknown
    chosen = np.unique(np.linspace(0, len(wait) - 1, COUNT).astype(np.int64)) if len(wait) else slice(0)
    longest = max(DAY, int(wait.max(initial=0)))
    waits = wait[chosen]
    # A job competes with the others at any moment of its wait.
    drawn = np.random.default_rng(0).random(waits.size)
    moments = np.where(waits > 0, waits * drawn, longest**drawn).astype(np.int64)
    return Jobs(jobs["cores"].to_numpy()[chosen], np.maximum(jobs["walltime"].to_numpy()[chosen], 1), moments)


def _read(config: SiteConfig, priorities: dict[str, int], jobs: Jobs) -> tuple[Floats, Floats, Floats]:
    """Return the values that formulas read: `JOB_NAMES`, shape (10, n), waits, and random fair-share values.

    A job is in the first queue that admits it; jobs that no queue admits are left out.
    """
    queue = np.full(jobs.cores.size, -1)
    for number, each in reversed(list(enumerate(config.queues))):
        queue[each.admits(jobs.cores, jobs.walltime, config.grid)] = number
    kept = queue >= 0
    values = np.array([priorities[name] for name in config.names], dtype=np.float64)
    rng = np.random.default_rng(1)
    count = int(kept.sum())
    classes = [(float(qos.priority), float(qos.target or 0)) for qos in config.qos] or [(0.0, 0.0)]
    of_qos = np.array(classes)[rng.integers(0, len(classes), count)].T
    shares = rng.random(count)
    given = {
        "queue_priority": values[queue[kept]],
        "walltime": jobs.walltime[kept],
        "estimate": jobs.walltime[kept],
        "ncpus": jobs.cores[kept],
        "fairshare_perc": shares,
        "qos_priority": of_qos[0],
        "qos_target": of_qos[1],
    }
    base = np.stack([np.asarray(given.get(name, np.zeros(count)), dtype=np.float64) for name in JOB_NAMES])
    return base, jobs.wait[kept].astype(np.float64), shares


@lru_cache(maxsize=256)
def lost(text: str, config: SiteConfig, priorities: tuple[tuple[str, int], ...], jobs: Jobs | None = None) -> float:
    """Return the fraction of pairs of jobs whose order by the formula `text` is lost in single precision.

    `priorities` are (queue, whole priority); `jobs` defaults to `Jobs.of`.
    """
    base, wait, shares = _read(config, dict(priorities), jobs or Jobs.of(config))
    with np.errstate(all="ignore"):
        wanted = np.nan_to_num(parse(text).values(base, wait, shares), nan=0.0)  # undefined values are 0
        found = wanted.astype(np.float32)
    # Rounding differences of equal values in double precision are no order.
    least = 1e-12 * np.maximum(np.abs(wanted[:, None]), np.abs(wanted[None, :]))
    differ = wanted[:, None] - wanted[None, :] > least
    same = found[:, None] == found[None, :]
    # Equal values are ordered by submission.
    right = (found[:, None] > found[None, :]) | (same & (wait[:, None] > wait[None, :]))
    return int((differ & ~right).sum()) / max(1, int(differ.sum()))
