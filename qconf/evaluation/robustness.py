"""Robustness: whether a gain holds when the next month differs from the last, in load or run times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from parsim import Workload
from qconf.evaluation.holdout import Holdout, Simulated
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.score import gain


@dataclass(frozen=True)
class Scenario:
    """A proposal against the base on a changed test period; waits in seconds."""

    name: str  #: the change: ``10 % more load``
    before: float  #: mean wait under the base, weighted where queues or groups have weights
    after: float  #: under the proposal
    gain: float  #: in the objective: 0.2 is a fifth less
    longest_before: float  #: longest wait
    longest_after: float


def denser(workload: Workload, percent: int, begin: int | None = None) -> Workload:
    """Divide the times between submissions, from `begin` on, by ``1 + percent / 100``: so much more load."""
    submit = workload.submit
    first = begin if begin is not None else int(submit[0]) if len(workload) else 0
    return replace(workload, submit=np.where(submit > first, first + (submit - first) * 100 // (100 + percent), submit))


def longer(workload: Workload, percent: int) -> Workload:
    """Lengthen run times by `percent`, up to the walltime, where a job is killed."""
    runtime = -(-workload.runtime * (100 + percent) // 100)
    return replace(workload, runtime=np.minimum(runtime, workload.walltime))


#: Changes of the jobs, in test period and warm-up.
SCENARIOS: dict[str, Callable[..., Workload]] = {
    "10 % more load": lambda workload, begin=None: denser(workload, 10, begin),
    "20 % more load": lambda workload, begin=None: denser(workload, 20, begin),
    "20 % longer run times": lambda workload, _=None: longer(workload, 20),
}


def robustness(holdout: Holdout, base: Simulated, proposal: Simulated, objective: str) -> tuple[Scenario, ...]:
    """Simulate base and proposal on the test period under each change of `SCENARIOS`; counted jobs stay the same."""
    found = []
    begin = None if holdout.period.state is None else holdout.period.state.begin
    for name, change in SCENARIOS.items():
        period = replace(holdout.period, workload=change(holdout.period.workload, begin))
        then, now = (Outcome(period, each.simulate(period), holdout.counted) for each in (base, proposal))
        before, after = then.means(), now.means()
        found.append(
            Scenario(
                name=name,
                before=float(before[0]),
                after=float(after[0]),
                gain=float(gain(after, before, objective)),
                longest_before=float(then.wait.max()),
                longest_after=float(now.wait.max()),
            )
        )
    return tuple(found)
