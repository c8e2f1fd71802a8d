"""Lower bounds of partition sizes, and the slack of the proportional constraint that is feasible with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes, apportion

POINTS = 64  # sizes at which a queue's utilization is measured


@dataclass(frozen=True, eq=False)
class Bounds:
    """Constraints of dp-nlp, sizes in nodes."""

    low: Sizes
    wanted: Sizes  # lower bounds before they are made to fit the machine
    slack: float  # of the proportional constraint: ``P_i / P_j >= (1 - slack) * share_i / share_j``
    share: NDArray[np.float64]  # of each queue in the core-seconds, shape (k,)
    notes: tuple[str, ...]  # constraints that are relaxed, and how
    one_sided: bool = False  # the constraint is that of i before j alone

    def proportional(self, nodes: Sizes) -> bool:
        """Return whether a division keeps the proportional constraint, to one node of each size."""
        bound = self.share > 0
        if bound.sum() < 2:
            return True
        ratio_low = (nodes[bound] - 1.0) / self.share[bound]
        ratio_high = (nodes[bound] + 1.0) / self.share[bound]
        if self.one_sided:
            before = np.minimum.accumulate(ratio_high)[:-1]
            return bool((before >= (1 - self.slack) * ratio_low[1:]).all())
        return bool(ratio_high.min() >= (1 - self.slack) * ratio_low.max())


@dataclass(frozen=True, eq=False)
class Utilization:
    """One queue alone on partitions of several sizes: nodes, mean waits in seconds, utilizations."""

    sizes: Sizes
    waits: NDArray[np.float64]
    shares: NDArray[np.float64]


def utilization(training: TrainingSet, space: PartitionSpace, k: int) -> Utilization:
    """Simulate the k-th queue of `space` alone over a grid of sizes, from its widest job to the whole machine."""
    first, last = int(space.widest[k]), space.total
    if not space.work[k]:
        return Utilization(np.array([first]), np.zeros(1), np.zeros(1))
    sizes = np.unique(np.round(np.geomspace(first, last, POINTS)).astype(np.int64))
    own = training.workload.take(training.workload.queue == space.queues[k])
    waits, spans = space.alone(training.base, own, k, sizes)
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
) -> Bounds:
    """Derive the bounds of the paper's program.

    A queue's bound is the largest size at which it alone still uses `share_of_best` of the best utilization that it
    reaches at any size. Bounds that do not fit the machine are moved toward the widest jobs until they do, divide the
    machine in proportion to themselves, or are dropped for the widest jobs, as `excess` says. A slack that leaves no
    solution is raised to the least that leaves one. `notes` report both.

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
        notes.append(
            f"proportional constraint: slack raised from {slack:.2f} to {needed:.3f}, the least that leaves a solution"
        )
        slack = needed
    return Bounds(low, wanted, slack, share, tuple(notes), one_sided)


def least_slack(low: Sizes, share: NDArray[np.float64], total: int, *, one_sided: bool = False) -> float:
    """Return the least slack with which sizes above `low` that sum to `total` can be proportional.

    A queue needs its own bound at least, and 1 - slack of what, in proportion to its share, any other (with `one_sided`
    any later one) needs by its bound. If these sizes fit the machine, what is left is dealt out in proportion.
    """
    bound = share > 0
    if bound.sum() < 2:
        return 0.0
    own = low[bound] / share[bound]  # nodes for all of the work, as this queue's bound would have it
    greatest = np.maximum.accumulate(own[::-1])[::-1] if one_sided else own.max()
    left = (total - low[~bound].sum()) * (1 + 1e-9)  # rounding, where the bounds fill the machine

    def feasible(slack: float) -> bool:
        return bool(share[bound] @ np.maximum(own, (1 - slack) * greatest) <= left)

    lo, hi = 0.0, 1.0
    if feasible(lo):
        return lo
    for _ in range(20):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if feasible(middle) else (middle, hi)
    return hi


def outermost(total: int, bounds: Bounds) -> NDArray[np.float64]:
    """Return feasible divisions, in fractions of nodes, in which a queue has its most or its least.

    The proportional constraint holds to half a node, so that it holds to one node when sizes are rounded. Above given
    sizes there are smallest proportional ones, below given sizes greatest ones. A queue has its most where the smallest
    sizes with it fill the machine, and its least where the greatest sizes with it just do. Where these do not sum to
    the machine, a mixture of both does, which is proportional, too. The shape is (2k, k); (0, k) where no division is
    feasible.
    """
    low, own = bounds.low.astype(np.float64), np.eye(bounds.low.size, dtype=np.bool_)
    start = _smallest(low, bounds)
    if start.sum() > total:
        return np.empty((0, low.size))

    def between(sizes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        sizes = sizes[:, None]
        return _smallest(np.where(own, sizes, low), bounds), _greatest(np.where(own, sizes, float(total)), bounds)

    def halved(most: bool) -> NDArray[np.float64]:
        lo, hi = start, np.full(low.size, float(total))
        for _ in range(50):
            middle = (lo + hi) / 2
            smallest, greatest = between(middle)
            higher = smallest.sum(axis=1) <= total if most else greatest.sum(axis=1) < total
            lo, hi = np.where(higher, middle, lo), np.where(higher, hi, middle)
        return lo if most else hi

    found = []
    for sizes in (halved(most=True), halved(most=False)):
        smallest, greatest = between(sizes)
        room = np.maximum((greatest - smallest).sum(axis=1), 1e-9)
        part = np.clip((total - smallest.sum(axis=1)) / room, 0, 1)
        found.append(smallest + part[:, None] * (greatest - smallest))
    return np.concatenate(found)


def _smallest(floor: NDArray[np.float64], bounds: Bounds) -> NDArray[np.float64]:
    """Return the smallest sizes above `floor` that are proportional to half a node, last axis k."""
    bound, sizes = bounds.share > 0, floor.copy()
    if bound.any():
        share = bounds.share[bound]
        needed = (floor[..., bound] - 0.5) / share  # nodes for all of the work, as this queue's size would have it
        latest = np.maximum.accumulate(needed[..., ::-1], axis=-1)[..., ::-1]
        needed = latest if bounds.one_sided else latest[..., :1]
        sizes[..., bound] = np.maximum(floor[..., bound], (1 - bounds.slack) * share * needed - 0.5)
    return sizes


def _greatest(ceiling: NDArray[np.float64], bounds: Bounds) -> NDArray[np.float64]:
    """Return the greatest sizes below `ceiling` that are proportional to half a node, last axis k."""
    bound, sizes = bounds.share > 0, ceiling.copy()
    if bound.any() and bounds.slack < 1:
        share = bounds.share[bound]
        earliest = np.minimum.accumulate((ceiling[..., bound] + 0.5) / share, axis=-1)
        allowed = earliest if bounds.one_sided else earliest[..., -1:]
        sizes[..., bound] = np.minimum(ceiling[..., bound], share * allowed / (1 - bounds.slack) + 0.5)
    return sizes


def proportional_matrix(
    share: NDArray[np.float64], slack: float, tolerance: float = 0.0, *, one_sided: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return A and b of ``A @ fractions <= b``: the proportional constraint of every ordered pair with a share.

    With `one_sided` only of those in which i comes before j, as the paper writes it (equation 6): that of j before i as
    well would leave the exact proportions alone.

    `tolerance` is the fraction of the machine by which each size may miss it, since sizes are whole nodes.
    """
    bound = np.flatnonzero(share > 0)
    rows, limits = [], []
    for i in bound:
        for j in bound:
            if i < j or (i > j and not one_sided):
                ratio = (1 - slack) * share[i] / share[j]
                row = np.zeros(share.size)
                row[i], row[j] = -1.0, ratio
                rows.append(row / max(1.0, ratio))
                limits.append(tolerance * (1 + ratio) / max(1.0, ratio))
    return np.array(rows).reshape(-1, share.size), np.array(limits)
