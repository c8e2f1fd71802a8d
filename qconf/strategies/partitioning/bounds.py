"""Lower bounds of partition sizes, and the least slack of the proportional constraint that they allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.metrics.tabulate import waits_by_size
from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes, apportion

POINTS = 64  # most sizes at which a queue's utilization is measured


@dataclass(frozen=True, eq=False)
class Utilization:
    """One queue alone on partitions of several sizes (nodes): mean waits in seconds, and utilizations (`shares`)."""

    sizes: Sizes
    waits: NDArray[np.float64]
    shares: NDArray[np.float64]


def grid(least: int, most: int, count: int) -> Sizes:
    """Return at most `count` whole sizes from `least` to `most`, in geometric progression."""
    return np.unique(np.round(np.geomspace(least, most, count)).astype(np.int64))


def utilization(training: TrainingSet, space: PartitionSpace, k: int) -> Utilization:
    """Simulate the k-th queue of `space` alone over a grid of sizes, from its widest job to the whole machine."""
    if not space.work[k]:
        return Utilization(space.widest[[k]], np.zeros(1), np.zeros(1))
    sizes = grid(space.widest[k], space.total, POINTS)
    own = training.workload.take(training.workload.queue == space.queues[k])
    waits, spans = waits_by_size(own, sizes * space.node, backfill=training.base.backfill)
    return Utilization(sizes, waits / len(own), space.work[k] / (sizes * space.node * np.maximum(spans, 1)))


@cached
def lower_bounds(
    training: TrainingSet,
    space: PartitionSpace,
    slack: float,
    share_of_best: float,
    *,
    one_sided: bool = False,
    excess: str = "toward-widest",
) -> Feasible:
    """Derive the bounds of the paper's program.

    A queue's bound is the largest size at which the queue, alone, reaches `share_of_best` of its best utilization at
    any size. If the bounds exceed the machine, `excess` says whether they move toward the widest jobs until they fit,
    divide the machine in proportion to themselves, or become the widest jobs. A slack without a solution is raised to
    the least with one. `notes` report both.

    References
    ----------
    Kondameedi and Vadhiyar, CCGrid 2017, section II.A, equations 3 to 6 and Figure 2; Table III.
    """
    notes = []
    wanted = space.widest.copy()
    for k in range(space.queues.size):
        curve = utilization(training, space, k)
        if curve.shares.max() > 0:
            wanted[k] = max(wanted[k], curve.sizes[curve.shares >= share_of_best * curve.shares.max()].max())
    low = wanted
    if wanted.sum() > space.total:
        free_nodes = space.total - int(space.widest.sum())
        part = free_nodes / float((wanted - space.widest).sum())
        low, what = {
            "toward-widest": (
                space.widest + np.floor(part * (wanted - space.widest)).astype(np.int64),
                f"moved {100 * (1 - part):.0f} % of the way to the widest jobs",
            ),
            "proportional": (
                apportion(wanted.astype(np.float64), space.total, space.widest),
                "they divide it in proportion",
            ),
            "dropped": (space.widest, "dropped, all but the widest jobs"),
        }[excess]
        notes.append(f"the lower bounds need {int(wanted.sum())} of {space.total} nodes: {what}")
    share = space.work
    share = share / share.sum() if share.sum() > 0 else share
    needed = least_slack(low, share, space.total, one_sided=one_sided)
    if needed > slack:
        own = np.divide(low, share, out=np.zeros(low.size), where=share > 0)  # nodes for all of the work
        most = int(np.argmax(own))
        name = training.base.queues[space.queues[most]].name
        notes.append(
            f"the lower bound of {name} ({int(low[most])} nodes for {100 * share[most]:.0f} % of the work) and the "
            f"proportional constraint clash: slack raised from {slack:.2f} to {needed:.3f}, the least that leaves a "
            "solution"
        )
        slack = needed
    return Feasible(space.total, low, slack, share, one_sided, wanted, tuple(notes))


def least_slack(low: Sizes, share: NDArray[np.float64], total: int, *, one_sided: bool = False) -> float:
    """Return the least slack with which sizes from `low` up that sum to `total` satisfy the proportional constraint.

    A queue needs at least its own bound, and (1 - slack) times any other queue's bound in proportion to their shares;
    with `one_sided`, any later queue's. If these sizes fit the machine, the rest can be divided in proportion.
    """
    bound = share > 0
    if bound.sum() < 2:
        return 0.0
    own = low[bound] / share[bound]  # nodes for all of the work at this queue's bound per share
    greatest = np.maximum.accumulate(own[::-1])[::-1] if one_sided else own.max()
    left = (total - low[~bound].sum()) * (1 + 1e-9)  # tolerance for bounds that fill the machine

    def feasible(slack: float) -> bool:
        return bool(share[bound] @ np.maximum(own, (1 - slack) * greatest) <= left)

    lo, hi = 0.0, 1.0
    if feasible(lo):
        return lo
    for _ in range(20):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if feasible(middle) else (middle, hi)
    return hi
