"""The best division of nodes of several types: of one type after the other, beside what queues have of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.period import TrainingSet, cached
from qconf.strategies.base import Step, step
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.feasible import Feasible
from qconf.strategies.partitioning.owned import Owned, TypeSpace, by_type, configured
from qconf.strategies.partitioning.readings import PartitionOptions
from qconf.strategies.partitioning.regret import Optimum, Regret, optimum
from qconf.strategies.partitioning.sizes import PartitionSpace, Sizes

ROUNDS = 4  # over the types of nodes, where a queue uses several of them


@step
class OneType(Step):
    """The type of nodes that the next steps divide; those of the other types stay as they are."""

    title: ClassVar[str] = "one type"
    type_: str
    queues: list[str]
    nodes: list[int]
    note: str = ""


class Constraints(NamedTuple):
    """How dp-nlp bounds sizes, as `lower_bounds` has it."""

    slack: float
    share_of_best: float
    one_sided: bool
    excess: str

    def bounds(self, training: TrainingSet, space: PartitionSpace) -> Feasible:
        """Return the bounds of the sizes in a space."""
        return lower_bounds(training, space, *self[:2], one_sided=self.one_sided, excess=self.excess)


@dataclass(frozen=True, eq=False)
class Best:
    """The best division of all types that is found.

    Attributes
    ----------
    config : SiteConfig
    wait : float
        Weighted mean wait, seconds.
    proven : bool
        Whether there is no better one: each queue shares nodes of one type with others at most, and no optimum of a
        type is in doubt.
    found : tuple of (OneType, Optimum)
        What was found of each type, one after the other.
    """

    config: SiteConfig
    wait: float
    proven: bool
    found: tuple[tuple[OneType, Optimum], ...]


@cached
def best_by_type(
    training: TrainingSet, options: PartitionOptions, constraints: Constraints | None = None, workers: int = 1
) -> Best:
    """Find the best division of one type of nodes after the other, again as long as that helps, within constraints.

    Raises NotApplicableError as `by_type` does.
    """
    spaces, _ = by_type(training, options)
    base, owned = training.base, spaces[0].owned
    config = configured(training, owned)
    shared = [each for each in spaces if each.queues.size > 1 and each.total]
    users = [q for each in shared for q in each.queues.tolist()]
    several = len(users) > len(set(users))
    wait, proven = np.inf if constraints and shared else training.weighted_wait(config), not several
    found: list[tuple[OneType, Optimum]] = []
    solved: dict[str, Owned] = {}
    for _ in range(ROUNDS if several else 1):
        for each in shared:
            if solved.get(each.type_) == owned:
                continue  # nothing has changed beside it
            space = _beside(training, each, owned)
            bounds = None if constraints is None else constraints.bounds(training, space)
            best = optimum(training, space, bounds, workers)
            names = [base.queues[i].name for i in space.queues]
            found.append((OneType(type_=space.type_, queues=names, nodes=_of_type(space, owned).tolist()), best))
            proven = proven and not best.doubts
            owned = solved[space.type_] = space.divided(best.nodes)
        divided = configured(training, owned)
        now = training.weighted_wait(divided)
        if now >= wait:
            break
        config, wait = divided, now
    return Best(config, wait, proven, tuple(found))


def regret_by_type(
    training: TrainingSet, options: PartitionOptions, constraints: Constraints, config: SiteConfig, workers: int = 1
) -> Regret:
    """Compare a division with the best ones for the same training set, free and under dp-nlp's constraints."""
    wait = training.weighted_wait(config)
    free, best = (best_by_type(training, options, each, workers) for each in (None, constraints))
    if free.proven and best.proven:
        return Regret(wait, best.wait, free.wait, proven=True)
    owned = tuple(dict(queue.partition_nodes) for queue in config.queues)
    spaces = [_beside(training, each, owned) for each in by_type(training, options)[0] if each.queues.size > 1]
    kept = all(constraints.bounds(training, each).keeps(_of_type(each, owned)) for each in spaces if each.total)
    constrained = min(best.wait, wait) if kept else best.wait
    return Regret(wait, constrained, min(free.wait, constrained, wait), proven=False)


def _beside(training: TrainingSet, space: TypeSpace, owned: Owned) -> TypeSpace:
    """Return a space beside what queues have of the other types: one for each, whose table is known then."""
    others = tuple(tuple(sorted((name, count) for name, count in its.items() if name != space.type_)) for its in owned)
    return _spaces(training).setdefault((space.type_, space.rounding, others), replace(space, owned=owned))


def _of_type(space: TypeSpace, owned: Owned) -> Sizes:
    """Return the nodes of a type that its queues own."""
    return np.array([owned[i].get(space.type_, 0) for i in space.queues], dtype=np.int64)


@cached
def _spaces(training: TrainingSet) -> dict[object, TypeSpace]:
    del training
    return {}
