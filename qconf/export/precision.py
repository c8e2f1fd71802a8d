"""Formulas in single precision, in which PBS's scheduler keeps their values, over a range of jobs.

Jobs that a formula keeps apart in double precision are to stay apart.
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

MOST = 0.01  #: of the pairs of jobs, those that may change places
COUNT = 600  #: jobs that are compared
SIZES = 4  #: different ones, and different walltimes, of the jobs of a queue
MINUTE, DAY = 60, 86400
LONGEST = 30 * DAY  #: a walltime, where queues have no longest


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs that a formula may meet, by what it reads of them; shape (n,) each."""

    cores: Integers
    walltime: Integers
    wait: Integers

    @classmethod
    def of(cls, config: SiteConfig) -> Jobs:
        """Return jobs all over the ranges of a configuration's queues."""
        rng = np.random.default_rng(0)
        each = max(COUNT // len(config.queues), 60)
        columns = []
        for queue in config.queues:
            above, upto = queue.walltime
            upto = min(upto, max(LONGEST, above + 1)) if upto == MAX_DURATION else upto
            ranges = ((queue.cores[0], max(queue.cores[0], config.widest(queue))), (max(MINUTE, above + 1), upto))
            # As on a site, many have the same size or walltime, and others any.
            drawn = [_spread(rng, min(low, high), high, each) for low, high in ranges]
            drawn = [np.where(rng.random(each) < 0.5, rng.choice(column[:SIZES], each), column) for column in drawn]
            columns.append([*drawn, np.where(rng.random(each) < 0.1, 0, _spread(rng, MINUTE, 14 * DAY, each))])
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _spread(rng: np.random.Generator, low: int, high: int, count: int) -> NDArray[np.int64]:
    """Draw numbers of all magnitudes between two; those are among them."""
    found = np.exp(rng.uniform(math.log(low), math.log(high) if high > low else math.log(low), count)).round()
    found[:2] = low, high
    return found.astype(np.int64)


def met(history: History) -> Jobs:
    """Return some of the jobs of a history, evenly over it, with the waits that it recorded."""
    jobs = history.jobs
    wait = (jobs["start"] - jobs["submit"]).where(jobs["start"] >= jobs["submit"], -1).to_numpy()  # -1, it is not known
    chosen = np.unique(np.linspace(0, len(wait) - 1, COUNT).astype(np.int64)) if len(wait) else slice(0)
    longest = max(DAY, int(wait.max(initial=0)))
    waits = wait[chosen]
    # Each meets the others at any moment of its wait.
    drawn = np.random.default_rng(0).random(waits.size)
    moments = np.where(waits > 0, waits * drawn, longest**drawn).astype(np.int64)
    return Jobs(jobs["cores"].to_numpy()[chosen], np.maximum(jobs["walltime"].to_numpy()[chosen], 1), moments)


def _read(config: SiteConfig, priorities: dict[str, int], jobs: Jobs) -> tuple[Floats, Floats, Floats]:
    """Return what formulas read: `JOB_NAMES` of each job, shape (10, n), its wait, and of its user's shares.

    Jobs are in the first queues that admit them; those that none does are left out.
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
    base = np.zeros((len(JOB_NAMES), count))
    for name, column in given.items():
        base[JOB_NAMES.index(name)] = column
    return base, jobs.wait[kept].astype(np.float64), shares


@lru_cache(maxsize=256)
def lost(text: str, config: SiteConfig, priorities: tuple[tuple[str, int], ...], jobs: Jobs | None = None) -> float:
    """Return the share of pairs of jobs that a formula does not keep in their order in single precision.

    `priorities` are whole ones by queue; the jobs are by default all that the queues admit.
    """
    base, wait, shares = _read(config, dict(priorities), jobs or Jobs.of(config))
    with np.errstate(all="ignore"):
        wanted = np.nan_to_num(parse(text).values(base, wait, shares), nan=0.0)  # 0 where it is undefined
        found = wanted.astype(np.float32)
    # What the arithmetic of double precision leaves of equal values is no order.
    least = 1e-12 * np.maximum(np.abs(wanted[:, None]), np.abs(wanted[None, :]))
    differ = wanted[:, None] - wanted[None, :] > least
    same = found[:, None] == found[None, :]
    # What is equal goes by submission.
    right = (found[:, None] > found[None, :]) | (same & (wait[:, None] > wait[None, :]))
    return int((differ & ~right).sum()) / max(1, int(differ.sum()))
