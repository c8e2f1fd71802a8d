"""`dp-nlp`: the paper's weighted program. The surrogate proposes, the simulator decides.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section IV.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsim import System, simulate
from qconf.evaluation.period import Period, TrainingSet, cached
from qconf.parallel import parallel_map
from qconf.strategies import Options, Proposal
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.descent import descend
from qconf.strategies.partitioning.nlp import minimise
from qconf.strategies.partitioning.regret import allowed, cheap, regret
from qconf.strategies.partitioning.samples import feasible_samples
from qconf.strategies.partitioning.sizes import Sizes, data_warnings, partition_space, proportional
from qconf.strategies.partitioning.surrogate import DEGREES, Surrogate, fit

STARTS = 10  # best samples from which SLSQP sets out
FEWEST = 20  # samples that a surrogate is fitted to
CANDIDATES = 10  # divisions that the simulator has the last word on
NEIGHBOURS = 60  # divisions around the best of them that are simulated
FIRST_STEP = 32  # of so many parts of the machine, one moves first


def propose(training: TrainingSet, options: Options) -> Proposal:
    """Find partition sizes; queues stay as they are. Never worse than pp or the current sizes on the history."""
    names = ("seed", "samples", "slack", "tau_util", "degree")
    return _solved(training, Options(workers=options.workers, **{name: getattr(options, name) for name in names}))


@cached
def _solved(training: TrainingSet, options: Options) -> Proposal:
    return _Program(training, options).run()


class _Program:
    """The weighted program of one history; `log` tells what each step gave."""

    def __init__(self, training: TrainingSet, options: Options) -> None:
        self.training, self.options = training, options
        self.space = partition_space(training)
        self.bounds = lower_bounds(training, self.space, options.slack, options.tau_util)
        self.weights = np.array([weight for weight, _ in training.epochs])
        self.known: dict[str, Sizes] = {}  # divisions that the answer may not be worse than
        present = np.array([training.base.queues[i].partition for i in self.space.queues]) // self.space.unit
        if training.base.mode == "partitioned" and (present >= self.space.widest).all():
            self.known["current"] = present
        self.known["pp"] = proportional(training, self.space)
        self.log: list[dict[str, Any]] = [
            {
                "step": "bounds",
                "queues": [training.base.queues[i].name for i in self.space.queues],
                "low": self.bounds.low.tolist(),
                "wanted": self.bounds.wanted.tolist(),
                "slack": round(self.bounds.slack, 4),
                "notes": [*self.bounds.notes, *data_warnings(training, self.space)],
            }
        ]

    def run(self) -> Proposal:
        """Go through the steps."""
        samples = self.samples()
        waits = self.waits(samples)
        ranked = [samples[i] for i in np.argsort(waits @ self.weights, kind="stable")]
        found = self.minimised(self.surrogates(samples, waits), ranked, len(samples))
        proposed = [each for each in found if self.may(each)][:CANDIDATES]
        within = [each for each in ranked if self.may(each)][:CANDIDATES]
        return self.kept(*self.improved(*self.decided(_distinct([*self.known.values(), *proposed, *within]))))

    def samples(self) -> list[Sizes]:
        """Draw divisions; what is known is among them."""
        most = max(self.options.samples - len(self.known), 1)
        drawn = feasible_samples(most, self.space.total, self.bounds, self.options.seed)
        return list(np.unique(np.vstack([drawn, *self.known.values()]), axis=0))

    def surrogates(self, samples: list[Sizes], waits: NDArray[np.float64]) -> list[tuple[float, Surrogate]]:
        """Fit one to the waits of each epoch, shape (samples, epochs); none where there are too few samples."""
        if len(samples) < FEWEST:
            self.log.append(
                {"step": "surrogate", "note": f"only {len(samples)} divisions differ: each was simulated instead"}
            )
            return []
        fractions = np.array(samples) / self.space.total
        degrees = DEGREES if self.options.degree is None else (self.options.degree,)
        fitted = [(weight, fit(fractions, each, degrees)) for weight, each in zip(self.weights, waits.T, strict=True)]
        self.log += [
            {"step": "surrogate", "epoch": e + 1, "weight": round(weight, 4), "degree": s.degree, "penalty": s.penalty,
             "r2": round(s.r2, 4), "rmse": round(s.rmse, 1), "note": "a bad fit" if s.r2 < 0.5 else ""}
            for e, (weight, s) in enumerate(fitted)
        ]  # fmt: skip
        return fitted

    def minimised(
        self, surrogates: list[tuple[float, Surrogate]], ranked: list[Sizes], samples: int
    ) -> Sequence[Sizes]:
        """Search the surrogates from the best samples."""
        answer = minimise(surrogates, self.bounds, self.space.total, ranked[:STARTS])
        self.log.append({"step": "slsqp", "samples": samples, "starts": answer.starts, "converged": answer.converged,
                         "expected": round(answer.expected[0], 1) if answer.expected else None,
                         "note": "no search ended well" if answer.starts and not answer.divisions else ""})  # fmt: skip
        return answer.divisions

    def decided(self, candidates: list[Sizes]) -> tuple[list[Sizes], NDArray[np.float64]]:
        """Let the simulator judge candidates, weighted waits shape (candidates,); the first win ties."""
        judged = self.waits(candidates) @ self.weights
        best = int(np.argmin(judged))
        self.log.append(
            {
                "step": "decide",
                "tried": len(candidates),
                "units": candidates[best].tolist(),
                "weighted_wait": round(float(judged[best]), 1),
                **{
                    f"{name}_weighted_wait": round(float(judged[_index(candidates, each)]), 1)
                    for name, each in self.known.items()
                },
                "current_weighted_wait": round(current_wait(self.training), 1),
            }
        )
        return candidates, judged

    def improved(self, candidates: list[Sizes], judged: NDArray[np.float64]) -> tuple[Sizes, float]:
        """Look around the best that keeps the constraints: surrogates are smooth and the simulator is not."""
        best = int(np.argmin(judged))
        units, wait = candidates[best], float(judged[best])
        inside = [i for i, each in enumerate(candidates) if self.may(each)]
        if not inside:
            return units, wait
        begin = candidates[min(inside, key=lambda i: judged[i])]
        near, least, tried = descend(
            lambda each: float((self.waits([each]) @ self.weights)[0]),
            begin,
            self.may,
            step=max(1, self.space.total // FIRST_STEP),
            most=NEIGHBOURS,
        )
        better = least < wait
        self.log.append({"step": "neighbours", "of": begin.tolist(), "tried": tried, "units": near.tolist(),
                         "weighted_wait": round(least, 1), "kept": better,
                         "why": "less than before" if better else "no less than before"})  # fmt: skip
        return (near, least) if better else (units, wait)

    def kept(self, units: Sizes, wait: float) -> Proposal:
        """Answer with a division, or the present one where it is narrower than may be proposed, and better."""
        base = self.training.base
        if base.mode == "partitioned" and current_wait(self.training) < wait * (1 - 1e-9):
            self.log.append(
                {"step": "keep", "why": "the present partitions, narrower than their widest jobs, do better"}
            )
            return Proposal(base, self.log)
        if cheap(self.training, self.space):
            found = regret(self.training, self.space, self.bounds, units, self.options.workers)
            self.log.append(found.decision())
        else:
            why = f"a table of {self.space.total} sizes for {len(self.training)} jobs takes too long; exact makes it"
            self.log.append({"step": "regret", "not_exportable": why})
        return Proposal(base.with_partitions(self.space.cores(units, len(base.queues))), self.log)

    def may(self, units: Sizes) -> bool:
        """Tell whether a division keeps the constraints."""
        return allowed(units, self.bounds)

    def waits(self, divisions: list[Sizes]) -> NDArray[np.float64]:
        """Mean wait of each division on each epoch, shape (divisions, epochs), seconds."""
        base, epochs = self.training.base, [epoch for _, epoch in self.training.epochs]
        systems = [base.with_partitions(self.space.cores(units, len(base.queues))).system() for units in divisions]
        tasks = [(epoch, system) for system in systems for epoch in epochs]
        return np.array(parallel_map(self.options.workers, _mean_wait, tasks)).reshape(len(divisions), len(epochs))


@cached
def current_wait(training: TrainingSet) -> float:
    """Weighted mean wait under the base configuration as it stands, seconds."""
    return training.weighted_wait(training.base)


def _mean_wait(epoch: Period, system: System) -> float:
    return float(simulate(epoch.workload, system).wait.mean())


def _distinct(divisions: list[Sizes]) -> list[Sizes]:
    return [np.array(key, dtype=np.int64) for key in dict.fromkeys(tuple(each.tolist()) for each in divisions)]


def _index(divisions: list[Sizes], wanted: Sizes) -> int:
    return next(i for i, each in enumerate(divisions) if (each == wanted).all())
