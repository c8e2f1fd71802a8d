"""`dp-nlp`: the paper's weighted program. The surrogate proposes, the simulator decides.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section IV.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parsim import System, simulate
from qconf.strategies import Options, Proposal
from qconf.tuning.bounds import lower_bounds
from qconf.tuning.descent import descend
from qconf.tuning.month import Month
from qconf.tuning.nlp import minimise
from qconf.tuning.regret import allowed, cheap, regret
from qconf.tuning.samples import feasible_samples
from qconf.tuning.sizes import Room, Sizes, poverty, proportional, room
from qconf.tuning.surrogate import DEGREES, fit
from qconf.workers import side_by_side

STARTS = 10  # best samples from which SLSQP sets out
FEWEST = 20  # samples that a surrogate is fitted to
CANDIDATES = 10  # divisions that the simulator has the last word on
NEIGHBOURS = 60  # divisions around the best of them that are simulated
FIRST_STEP = 32  # of so many parts of the machine, one moves first


def propose(month: Month, options: Options) -> Proposal:
    """Find partition sizes; queues stay as they are. Never worse than pp or the current sizes on the history."""
    key = ("dp-nlp", options.seed, options.samples, options.slack, options.utilization, options.degree)
    return month.remember(key, lambda: _propose(month, options))


def _propose(month: Month, options: Options) -> Proposal:
    space = room(month)
    bounds = lower_bounds(month, space, options.slack, options.utilization)
    log = [
        {
            "step": "bounds",
            "queues": [month.base.queues[i].name for i in space.queues],
            "low": bounds.low.tolist(),
            "wanted": bounds.wanted.tolist(),
            "slack": round(bounds.slack, 4),
            "notes": [*bounds.notes, *poverty(month, space)],
        }
    ]
    known = {}
    if month.base.mode == "partitioned":
        units = np.array([month.base.queues[i].partition for i in space.queues]) // space.unit
        if (units >= space.widest).all():
            known["current"] = units
    known["pp"] = proportional(month, space)

    # Step 2: samples, each simulated on each epoch.
    drawn = feasible_samples(max(options.samples - len(known), 1), space.total, bounds, options.seed)
    samples = np.unique(np.concatenate([drawn, *(each[np.newaxis] for each in known.values())]), axis=0)
    waits = _waits(month, space, list(samples), options.workers)
    weights = [weight for weight, _ in month.epochs]
    true = waits @ weights

    # Step 3: one surrogate per epoch.
    fractions = samples / space.total
    degrees = DEGREES if options.degree is None else (options.degree,)
    surrogates = [
        (weight, fit(fractions, waits[:, e], degrees))
        for e, (weight, _) in enumerate(month.epochs)
        if len(samples) >= FEWEST
    ]
    log += [
        {"step": "surrogate", "epoch": e + 1, "weight": round(weight, 4), "degree": s.degree, "penalty": s.penalty,
         "r2": round(s.r2, 4), "rmse": round(s.rmse, 1), "note": "a bad fit" if s.r2 < 0.5 else ""}
        for e, (weight, s) in enumerate(surrogates)
    ]  # fmt: skip

    # Step 4: minimise from the best samples.
    ranked = np.argsort(true, kind="stable")
    within = [i for i in ranked if allowed(samples[i], bounds)]
    answer = minimise(surrogates, bounds, space.total, [samples[i] for i in ranked[:STARTS]])
    if not surrogates:
        log.append({"step": "surrogate", "note": f"only {len(samples)} divisions differ: each was simulated instead"})
    log.append({"step": "slsqp", "samples": len(samples), "starts": answer.starts, "converged": answer.converged,
                "expected": round(answer.expected[0], 1) if answer.expected else None,
                "note": "no search ended well" if answer.starts and not answer.divisions else ""})  # fmt: skip

    # Step 5: the simulator decides among the best of both, pp and the current sizes; these win ties.
    proposed = [each for each in answer.divisions if allowed(each, bounds)][:CANDIDATES]
    candidates = _distinct([*known.values(), *proposed, *(samples[i] for i in within[:CANDIDATES])])
    judged = _waits(month, space, candidates, options.workers) @ weights
    best = int(np.argmin(judged))
    units, wait = candidates[best], float(judged[best])
    log.append(
        {
            "step": "decide",
            "tried": len(candidates),
            "units": units.tolist(),
            "weighted_wait": round(wait, 1),
            **{
                f"{name}_weighted_wait": round(float(judged[_index(candidates, each)]), 1)
                for name, each in known.items()
            },
            "current_weighted_wait": round(current_wait(month), 1),
        }
    )

    # The surrogates are smooth and the simulator is not: look around the best that keeps the constraints.
    inside = [i for i, each in enumerate(candidates) if allowed(each, bounds)]
    if inside:
        begin = candidates[min(inside, key=lambda i: judged[i])]
        near, least, tried = descend(
            lambda each: float((_waits(month, space, [each], options.workers) @ weights)[0]),
            begin,
            lambda each: allowed(each, bounds),
            step=max(1, space.total // FIRST_STEP),
            most=NEIGHBOURS,
        )
        better = least < wait
        log.append({"step": "neighbours", "of": begin.tolist(), "tried": tried, "units": near.tolist(),
                    "weighted_wait": round(least, 1), "kept": better,
                    "why": "less than before" if better else "no less than before"})  # fmt: skip
        if better:
            units, wait = near, least
    config = month.base.with_partitions(space.cores(units, len(month.base.queues)))
    if month.base.mode == "partitioned" and current_wait(month) < wait * (1 - 1e-9):
        config = month.base
        log.append({"step": "keep", "why": "the present partitions, narrower than their widest jobs, do better"})
    elif cheap(month, space):
        log.append(regret(month, space, bounds, units, options.workers).decision())
    return Proposal(config, log)


def current_wait(month: Month) -> float:
    """Weighted mean wait under the base configuration as it stands, seconds."""
    return month.remember("current", lambda: month.weighted_wait(month.base))


def _waits(month: Month, space: Room, divisions: list[Sizes], workers: int) -> NDArray[np.float64]:
    """Mean wait of each division on each epoch, shape (divisions, epochs), seconds."""
    systems = [month.base.with_partitions(space.cores(units, len(month.base.queues))).system() for units in divisions]
    tasks = [(epoch, system) for system in systems for _, epoch in month.epochs]
    return np.array(side_by_side(workers, _mean_wait, tasks)).reshape(len(divisions), len(month.epochs))


def _mean_wait(epoch: Month, system: System) -> float:
    return float(simulate(epoch.workload, system).wait.mean())


def _distinct(divisions: list[Sizes]) -> list[Sizes]:
    return [np.array(key, dtype=np.int64) for key in dict.fromkeys(tuple(each.tolist()) for each in divisions)]


def _index(divisions: list[Sizes], wanted: Sizes) -> int:
    return next(i for i, each in enumerate(divisions) if (each == wanted).all())
