"""From a history to a recommendation: CHANGE to what one of the strategies proposes, or KEEP what is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import FEWEST_DAYS
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History, binding_limits
from qconf.recommend.checkpoint import Checkpoint
from qconf.recommend.decide import decide
from qconf.recommend.evaluator import FEWEST, WARMUP, Evaluator, spans_of, splits_of
from qconf.recommend.recommendation import Curve, Recommendation, Row
from qconf.strategies import baselines, check, registry
from qconf.strategies import settings as all_settings
from qconf.strategies.partitioning.bounds import utilization
from qconf.strategies.partitioning.sizes import PartitionSpace


def default_strategies() -> tuple[str, ...]:
    """Return the strategies that ``qconf tune`` compares when none is named."""
    return tuple(name for name, strategy in registry().items() if strategy.tune_default)


def recommend(
    history: History,
    base: SiteConfig,
    *,
    earlier: Sequence[History] = (),
    strategies: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    guards: GuardRails | None = None,
    least_gain: float = 0.02,
    refused: Callable[[SiteConfig], str] | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[str], None] | None = None,
) -> Recommendation:
    """Let every strategy learn on the first two thirds of the history, judge it on the rest, answer with the best.

    Where it does better, it also learns on the first third and is judged on the second, in a history of `bench.LONG`
    on the first sixth and the next too, and all judged days are drawn anew: it must do better beyond chance.

    Parameters
    ----------
    history : History
        Cleaned with `base`.
    base : SiteConfig
        The current configuration. Its limits that keep jobs out of the history are taken as fixed.
    earlier : sequence of History
        Months before it, the oldest first, cleaned with `base`: what `auto` finds that they have in common.
    strategies : sequence of str
        ``current`` and the baselines are always among those judged.
    settings : dict, optional
        Options of the strategies by name, the objective among them.
    guards : GuardRails
        What may not get worse; a strategy that breaks one is shown, not recommended.
    least_gain : float
        Gain below which a change is not worth its trouble.
    refused : callable, optional
        Says why the batch system cannot be told a configuration, empty if it can: what it refuses may not be
        recommended, unless the base is refused too.
    checkpoint : Checkpoint, optional
        Finished proposals of an interrupted run.
    progress : callable, optional
        Told what is being done.
    """
    guards, chosen = guards or GuardRails(), all_settings(settings)
    wanted = default_strategies() if strategies is None else strategies
    names = tuple(dict.fromkeys(("current", *baselines(), *wanted)))
    check(names, chosen, base)
    binding = tuple(dict.fromkeys(path for each in (history, *earlier) for path in binding_limits(each)))
    period, *before = (Period(each.workload(base), base, binding) for each in (history, *earlier))
    training = TrainingSet(period, tuple(before))
    splits = splits_of(training, *history.span)
    later = splits["learned"]
    recorded = chosen | {
        "guards": asdict(guards),
        "least_gain": least_gain,
        "warmup_seconds": WARMUP,
        "strategies": list(names),
    }
    bench = Evaluator(
        training, {name: split for name, split in splits.items() if split.enough}, chosen, guards, refused, checkpoint
    )
    rows = []
    for name in names:
        if progress is not None:
            progress(name)
        rows.append(bench.row(name))
    answer = Recommendation(
        verdict="KEEP",
        reason="",
        winner="current",
        config=base,
        base=base,
        objective=chosen["objective"],
        rows=rows,
        curves=curves(training),
        spans=spans_of(period, splits, history.epoch) | _before(earlier),
        settings=recorded,
    )
    if not later.enough:
        reason = (
            f"The history is too short to learn from one part and judge on another: {len(later.learned)} and "
            f"{len(later.test.judged)} jobs, judged on {later.test.days} whole days. At least {FEWEST} are needed in "
            f"each, and {FEWEST_DAYS} days. Keep what you have."
        )
        return replace(answer, reason=reason)
    return decide(answer, least_gain)


def _before(earlier: Sequence[History]) -> dict[str, tuple[int, int, int]]:
    """Count the jobs of the months before, as `spans_of` does."""
    if not earlier:
        return {}
    oldest, latest = earlier[0], earlier[-1]
    return {"earlier periods": (sum(map(len, earlier)), oldest.epoch + oldest.span[0], latest.epoch + latest.span[1])}


def curves(training: TrainingSet) -> list[Curve]:
    """Simulate every queue that owns a partition alone, over sizes from its widest job to the machine."""
    base, period = training.base, training.period
    unit = base.grid
    queues = np.array([i for i, q in enumerate(base.queues) if not q.reservation and period.widest[i]], dtype=np.int64)
    space = PartitionSpace(queues, base.machine.cores // unit, -(-period.widest[queues] // unit), unit)
    out = []
    for k, i in enumerate(queues):
        curve = utilization(training, space, k)
        out.append(
            Curve(
                queue=base.queues[i].name,
                sizes=(curve.sizes * unit).tolist(),
                waits=curve.waits.tolist(),
                utilizations=curve.shares.tolist(),
            )
        )
    return out


__all__ = ["Curve", "GuardRails", "Recommendation", "Row", "curves", "recommend"]
