"""From a history to a recommendation: CHANGE to what one of the strategies proposes, or KEEP what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace

import numpy as np

from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import FEWEST_DAYS
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.period import Period, TrainingSet
from qconf.history import History, binding_limits
from qconf.recommend.decide import decide
from qconf.recommend.evaluator import FEWEST, WARMUP, Evaluator, spans_of, splits_of
from qconf.recommend.recommendation import Curve, Recommendation, Row
from qconf.strategies import BASELINES, Options, Store, check
from qconf.strategies.partitioning.bounds import utilization
from qconf.strategies.partitioning.sizes import PartitionSpace

#: What ``qconf tune`` judges when no strategy is named.
DEFAULT = ("current", "fcfs-easy", "lxf-easy", "shared", "pp", "dp-nlp", "exact", "auto", "auto-fitted", "auto-guarded")


def recommend(
    history: History,
    base: SiteConfig,
    *,
    earlier: Sequence[History] = (),
    strategies: Sequence[str] = DEFAULT,
    options: Options | None = None,
    guards: GuardRails | None = None,
    least_gain: float = 0.02,
    refused: Callable[[SiteConfig], str] | None = None,
    store: Store | None = None,
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
    options : Options
        With the objective that is to become less.
    guards : GuardRails
        What may not get worse; a strategy that breaks one is shown, not recommended.
    least_gain : float
        Gain below which a change is not worth its trouble.
    refused : callable, optional
        Says why the batch system cannot be told a configuration, empty if it can: what it refuses may not be
        recommended, unless the base is refused too.
    store : Store, optional
        Finished proposals of an interrupted run.
    progress : callable, optional
        Told what is being done.
    """
    options, guards = options or Options(), guards or GuardRails()
    names = tuple(dict.fromkeys(("current", *BASELINES, *strategies)))
    check(names, options, base)
    binding = tuple(dict.fromkeys(path for each in (history, *earlier) for path in binding_limits(each)))
    period, *before = (Period(each.workload(base), base, binding) for each in (history, *earlier))
    training = TrainingSet(period, tuple(before))
    splits = splits_of(training, *history.span)
    later = splits["learned"]
    settings = asdict(options) | {
        "guards": asdict(guards),
        "least_gain": least_gain,
        "warmup_seconds": WARMUP,
        "strategies": list(names),
    }
    bench = Evaluator(
        training, {name: split for name, split in splits.items() if split.enough}, options, guards, refused, store
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
        objective=options.objective,
        rows=rows,
        curves=curves(training),
        spans=spans_of(period, splits, history.epoch) | _before(earlier),
        settings=settings,
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
