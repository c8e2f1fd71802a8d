"""Planning schedulers compared, for ``qconf policies``: every discipline on the same jobs, at any load."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from parsim import System, Workload, metrics, simulate
from parsim.model.schedule import Schedule
from parsim.planning.plan import METRICS, ORDERS, Policy, When, named, plan, self_tuning
from qconf.errors import InputError
from qconf.parallel import parallel_map

DECIDERS = ("simple", "advanced", *(f"{order}-preferred" for order in ORDERS))
WHEN: tuple[When, ...] = ("half", "full")

#: Fixed orders, conservative backfilling, dynP with the paper's bounds, every decider of self-tuning dynP, and every
#: metric by which it may be tuned.
DISCIPLINES: tuple[Policy, ...] = (
    named("planned-fcfs"),
    named("planned-sjf"),
    named("planned-ljf"),
    named("conservative"),
    named("dynp-bounds"),
    *(self_tuning(decider, when) for decider in DECIDERS for when in WHEN),
    *(self_tuning(metric=metric) for metric in METRICS if metric != "sld_wa"),
)


@dataclass(frozen=True)
class DisciplineResult:
    """One discipline on one workload; counts by order are None for a discipline that does not plan."""

    name: str
    metrics: dict[str, float]  #: overall metrics of `parsim.metrics`
    decisions: int = 0  #: number of decisions of dynP
    kept: int = 0  #: decisions that keep the current order
    switched_to: dict[str, int] | None = None  #: switches to each order
    starts: dict[str, int] | None = None  #: jobs started under each order
    seconds: dict[str, int] | None = None  #: time that each order is in use

    def as_json(self) -> dict[str, Any]:
        """Return the value of ``--json``; an undefined metric, such as fairness without users, is null."""
        values = {key: None if math.isnan(value) else value for key, value in self.metrics.items()}
        shown = {"name": self.name, "metrics": values}
        return shown if self.starts is None else asdict(self) | shown


def shrink(workload: Workload, factor: Decimal) -> Workload:
    """Multiply the times between submissions by `factor`, in whole seconds; a factor below 1 raises the load.

    Raises `InputError` unless 0 < factor <= 100.
    """
    if not 0 < factor <= 100:
        raise InputError(
            "is no shrinking factor", field="shrink", value=str(factor), fix="give a number above 0, up to 100"
        )
    share = Fraction(factor)
    first = int(workload.submit.min()) if len(workload) else 0
    submit = (workload.submit - first) * share.numerator // share.denominator
    return Workload(submit, workload.cores, workload.runtime, workload.walltime, user=workload.user)


def compare(
    workload: Workload,
    cores: int,
    policies: Iterable[Policy] = DISCIPLINES,
    *,
    workers: int = 1,
    reference: bool = True,
) -> list[DisciplineResult]:
    """Run every discipline on a workload, on a machine of `cores` without queues and limits.

    `workers`, the parallel simulations, do not change the result. With `reference` it begins with ``fcfs-easy``, which
    plans only the reservation of the head job. Raises `InputError` if a job is wider than the machine.
    """
    widest = int(workload.cores.max(initial=0))
    if widest > cores:
        raise InputError(
            f"a job of {widest} cores is wider", field="cores", value=cores, fix="give the size of the machine"
        )
    jobs = Workload(workload.submit, workload.cores, workload.runtime, workload.walltime, user=workload.user)

    def measured(schedule: Schedule) -> dict[str, float]:
        return metrics.summary(jobs, schedule, System.single(cores)).overall

    def run(policy: Policy) -> DisciplineResult:
        planned = plan(jobs, cores, policy)
        by_order = (
            dict(zip(ORDERS, counts.tolist(), strict=True))
            for counts in (planned.switched_to, planned.starts, planned.seconds)
        )
        return DisciplineResult(policy.name, measured(planned.schedule), planned.decisions, planned.kept, *by_order)

    results = parallel_map(workers, run, [(policy,) for policy in policies])
    if reference:
        results.insert(0, DisciplineResult("fcfs-easy", measured(simulate(jobs, System.single(cores)))))
    return results
