"""`auto`: what an administrator would want; the best order of the waiting list that travels, or the base as it stands.

Every member of a small family of formulas is simulated on the shared machine, beside the base, the baselines and
machines with partitions and a pool. What is chosen is the least of a smoothed, regularised score that counts what the
guard rails forbid; anything more complicated must beat it in both halves of the history, and the base stays unless it
is beaten.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parsim import System, Workload, metrics, simulate
from qconf.config import PoolConfig, SiteConfig
from qconf.errors import QconfError
from qconf.strategies import Options, Proposal
from qconf.tuning.formulas import DISTANCE, GENERAL, family, remoteness, smooth
from qconf.tuning.month import Month
from qconf.tuning.sizes import NotApplicableError, proportional, room
from qconf.tuning.tables import side_by_side

GROWTH = 1.4  # of the longest wait, and of a queue's 95 % wait, over the base: beyond it they count against a candidate
QUEUE_TAILS = 0.1  # weight of one queue's 95 % wait beside the longest wait of all: few jobs stand behind it
MARGIN = 0.02  # by which what is more complicated must be better, in log score
POOLS = (0.25, 0.5, 0.75)  # shares of the machine in the common pool
#: Weights of the logarithms of mean wait and of bounded slowdown: each steadies the other.
WEIGHTS = {"mean-wait": (1.0, 1.0), "bounded-slowdown": (0.3, 2.0), "mixed": (1.0, 1.0)}
FLOOR = 60.0  # seconds (and a slowdown of 1) added before logarithms are taken
GRACE = 3600.0  # seconds that the longest waits may grow in any case


@dataclass(frozen=True, eq=False)
class _Measure:
    """What one configuration gives: aims are mean wait and bounded slowdown, tails the longest waits.

    Attributes
    ----------
    aims : ndarray(float64), shape (3, 2)
        Of all jobs, of the earlier and of the later half.
    tails : ndarray(float64), shape (1 + Q,)
        Longest wait of all, and the 95th percentile of each base queue that has jobs.
    """

    aims: NDArray[np.float64]
    tails: NDArray[np.float64]


def propose(month: Month, options: Options) -> Proposal:
    """Search orders, partitions and pools; keep the simplest that is best, or the base."""
    base = month.base
    orders = family(priorities=len({queue.priority for queue in base.queues}) > 1)
    others = {"current": base, **_pooled(month)}
    ordered = _ordered(base, GENERAL.formula()).system()
    systems = [config.system() for config in others.values()]
    systems += [replace(ordered, order=order.formula()) for order in orders]
    measured = side_by_side(options.workers, _measure, [(month.workload, system) for system in systems])
    rate = _Rate(measured[0], np.array(WEIGHTS[options.objective]))

    members = measured[len(others) :]
    smoothed = smooth(orders, np.array([rate.logarithms(each) for each in members]))
    scores = np.array([rate.score(each) for each in smoothed]) + DISTANCE * remoteness(orders)
    best = int(np.argmin(scores))
    found = members[best].aims[0] / np.maximum(measured[0].aims[0], [1.0, 1.0])
    log: list[dict[str, object]] = [
        {
            "step": "orders",
            "tried": len(orders),
            "best": orders[best].formula(),
            "score": round(float(scores[best]), 4),
            "general_score": round(float(scores[orders.index(GENERAL)]), 4),
            "wait_ratio": round(float(found[0]), 4),
            "slowdown_ratio": round(float(found[1]), 4),
        }
    ]
    chosen, level = _ordered(base, orders[best].formula()), rate.score(rate.logarithms(members[best]))
    halves = rate.halves(members[best])
    for (name, config), measure in zip(others.items(), measured, strict=False):
        whole = rate.score(rate.logarithms(measure))
        log.append({"step": "compare", "with": name, "score": round(whole, 4)})
        if name.startswith("pool"):
            if whole < level - MARGIN and (rate.halves(measure) < halves).all():
                chosen, level = config, whole
                log[-1]["note"] = "better by more than the margin, in both halves of the history"
        elif whole <= level:
            chosen, level = config, whole
            log[-1]["note"] = "simpler and no worse"
    return Proposal(chosen, log)


def _ordered(base: SiteConfig, formula: str) -> SiteConfig:
    """Return the base queues on the shared machine, ordered by a formula alone; priorities stay, it may use them."""
    queues = tuple(
        queue.model_copy(update={"starvation": None, "max_run": None, "max_run_cores": None, "partition": 0})
        for queue in base.queues
    )
    return base.replace(queues=queues, mode="shared", order=formula, backfill=True, pool=None)


def _pooled(month: Month) -> dict[str, SiteConfig]:
    """Machines with a pool that jobs move to by priority factor; what is not in it is divided in proportion."""
    try:
        space = room(month)
    except NotApplicableError:
        return {}
    out: dict[str, SiteConfig] = {}
    shares = proportional(month, space)
    for share in POOLS:
        sizes = np.zeros(len(month.base.queues), dtype=np.int64)
        sizes[space.queues] = np.floor(shares * (1 - share)).astype(np.int64) * space.unit
        queues = tuple(
            queue.model_copy(update={"partition": int(size)})
            for queue, size in zip(month.base.queues, sizes, strict=True)
        )
        pool = PoolConfig(cores=month.base.machine.cores - int(sizes.sum()), entry="move", placement="pool")
        try:
            out[f"pool {100 * share:.0f} %"] = month.base.replace(
                queues=queues, mode="hybrid", order="fcfs", pool=pool, backfill=True
            )
        except QconfError:  # the base's queues cannot be had with a pool
            continue
    return out


def _measure(workload: Workload, system: System) -> _Measure:
    """Simulate a candidate; none of them changes who may enter which queue."""
    schedule = simulate(workload, system)
    slowdown = metrics.bounded_slowdown(schedule)
    middle = max(len(schedule) // 2, 1)
    parts = (slice(None), slice(None, middle), slice(min(middle, len(schedule) - 1), None))
    queue = workload.queue
    return _Measure(
        aims=np.array([[schedule.wait[p].mean(), slowdown[p].mean()] for p in parts]),
        tails=np.array(
            [schedule.wait.max(), *(np.percentile(schedule.wait[queue == q], 95) for q in np.unique(queue))],
            dtype=np.float64,
        ),
    )


@dataclass(frozen=True, eq=False)
class _Rate:
    """Turns measures into scores against the base: 0 is as good, -0.1 about a tenth better."""

    base: _Measure
    weights: NDArray[np.float64]

    def logarithms(self, measure: _Measure) -> NDArray[np.float64]:
        """Log ratios to the base: two aims, then the tails."""
        floors = np.array([FLOOR, 1.0])
        aims = np.log((measure.aims[0] + floors) / (self.base.aims[0] + floors))
        tails = np.log((measure.tails + GRACE) / (self.base.tails + GRACE))
        return np.concatenate([aims, tails])

    def score(self, logarithms: NDArray[np.float64]) -> float:
        """Weigh the aims, and what the tails grow beyond `GROWTH`."""
        beyond = np.maximum(logarithms[2:] - np.log(GROWTH), 0.0)
        return float(self.weights @ logarithms[:2] + beyond[0] + QUEUE_TAILS * beyond[1:].sum())

    def halves(self, measure: _Measure) -> NDArray[np.float64]:
        """Weigh the aims in the earlier and in the later half, shape (2,)."""
        floors = np.array([FLOOR, 1.0])
        halves: NDArray[np.float64] = np.log((measure.aims[1:] + floors) / (self.base.aims[1:] + floors)) @ self.weights
        return halves
