"""Runs of the planning disciplines over one workload, over shrunken ones, and over a grid of bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from parsim import System, Workload, metrics, simulate
from parsim.planning import METRICS, ORDERS, PlannedRun, Policy, When, bounds, named, plan, self_tuning
from parsim.schedule import Schedule
from qconf.errors import InputError
from qconf.parallel import parallel_map

DECIDERS = ("simple", "advanced", *(f"{order}-preferred" for order in ORDERS))
WHEN: tuple[When, ...] = ("half", "full")

#: The table: fixed orders, conservative backfilling, dynP with the paper's bounds, every decider of
#: self-tuning dynP, and every metric it may be tuned by.
DISCIPLINES: tuple[Policy, ...] = (
    named("planned-fcfs"),
    named("planned-sjf"),
    named("planned-ljf"),
    named("conservative"),
    named("dynp-bounds"),
    *(self_tuning(decider, when) for decider in DECIDERS for when in WHEN),
    *(self_tuning(metric=metric) for metric in METRICS if metric != "sld_wa"),
)
#: What a sweep shows.
SWEPT = (
    named("planned-fcfs"),
    named("planned-sjf"),
    named("planned-ljf"),
    named("dynp-bounds"),
    self_tuning(),
)
#: Shrinking factors of a sweep: 0.75, 0.70 .. 0.25.
FACTORS = tuple(Decimal(percent) / 100 for percent in range(75, 20, -5))
#: Bounds of dynP, seconds: the grid of the paper of 2002.
GRID_LOWER = (600, 1200, 1800, 3600, 6600, 7200, 7800)
GRID_UPPER = (3600, 7200, 8400, 9000, 9600, 14400, 21600, 43200)


@dataclass(frozen=True)
class Row:
    """One discipline on one workload.

    Attributes
    ----------
    name : str
    metrics : dict of str to float
        Those of `parsim.metrics`, overall.
    decisions, kept : int
    switched_to, starts, seconds : dict of str to int
        Switches to each order, jobs started under it, seconds it was in use.
    """

    name: str
    metrics: dict[str, float]
    decisions: int = 0
    kept: int = 0
    switched_to: dict[str, int] | None = None
    starts: dict[str, int] | None = None
    seconds: dict[str, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what ``--json`` prints; what is undefined, such as fairness among no users, is null."""
        values = {key: None if math.isnan(value) else value for key, value in self.metrics.items()}
        out: dict[str, Any] = {"name": self.name, "metrics": values}
        if self.starts is not None:
            out |= {"decisions": self.decisions, "kept": self.kept, "switched_to": self.switched_to}
            out |= {"starts": self.starts, "seconds": self.seconds}
        return out


def shrunk(workload: Workload, factor: Decimal) -> Workload:
    """Return the workload with the times between its submissions multiplied by `factor`, in whole seconds.

    Raises
    ------
    InputError
        The factor is not positive, or stretches the workload beyond what can be simulated.
    """
    if not 0 < factor <= 100:
        raise InputError(
            "is no shrinking factor",
            field="shrink",
            value=str(factor),
            fix="give a number above 0, up to 100",
        )
    share = Fraction(factor)
    first = int(workload.submit.min()) if len(workload) else 0
    submit = (workload.submit - first) * share.numerator // share.denominator
    return Workload(submit, workload.cores, workload.runtime, workload.walltime, user=workload.user)


def measure(workload: Workload, cores: int, run: PlannedRun) -> Row:
    """Return the row of a run."""
    moves, starts, seconds = (
        dict(zip(ORDERS, column.tolist(), strict=True)) for column in (run.switched_to, run.starts, run.seconds)
    )
    values = _measured(workload, cores, run.schedule)
    return Row(run.policy.name, values, run.decisions, run.kept, moves, starts, seconds)


def _measured(workload: Workload, cores: int, schedule: Schedule) -> dict[str, float]:
    return metrics.summary(workload, schedule, System.single(cores)).overall


def _check(workload: Workload, cores: int) -> Workload:
    """Queues play no part in planning: one queue for all."""
    wide = int(workload.cores.max(initial=0))
    if wide > cores:
        raise InputError(
            f"a job of {wide} cores is wider", field="cores", value=cores, fix="give the size of the machine"
        )
    return Workload(workload.submit, workload.cores, workload.runtime, workload.walltime, user=workload.user)


def compare(
    workload: Workload,
    cores: int,
    policies: Iterable[Policy] = DISCIPLINES,
    *,
    workers: int = 1,
    reference: bool = True,
) -> list[Row]:
    """Run every discipline over a workload.

    Parameters
    ----------
    workload : Workload
    cores : int
        Of the machine.
    policies : iterable of Policy
    workers : int
        How many run at a time; the answer does not depend on it.
    reference : bool
        Begin with ``fcfs-easy``, which plans nothing but the reservation of its head.

    Returns
    -------
    list of Row
    """
    workload = _check(workload, cores)

    def task(policy: Policy) -> Row:
        return measure(workload, cores, plan(workload, cores, policy))

    rows = parallel_map(workers, task, [(policy,) for policy in policies])
    if reference:
        easy = simulate(workload, System.single(cores))
        rows.insert(0, Row("fcfs-easy", _measured(workload, cores, easy)))
    return rows


def sweep(
    workload: Workload,
    cores: int,
    policies: Sequence[Policy] = SWEPT,
    factors: Sequence[Decimal] = FACTORS,
    *,
    workers: int = 1,
) -> list[tuple[Decimal, list[Row]]]:
    """Run disciplines at growing load: (factor, a row per discipline) for each shrinking factor.

    References
    ----------
    Streit, JSSPP 2002, LNCS 2537: figures 3 to 5.
    """
    workload = _check(workload, cores)

    def task(factor: Decimal) -> list[Row]:
        return compare(shrunk(workload, factor), cores, policies, reference=False)

    rows = parallel_map(workers, task, [(factor,) for factor in factors])
    return list(zip(factors, rows, strict=True))


def bounds_grid(
    workload: Workload,
    cores: int,
    lower: Sequence[int] = GRID_LOWER,
    upper: Sequence[int] = GRID_UPPER,
    *,
    workers: int = 1,
) -> dict[tuple[int, int], Row]:
    """Run dynP with each pair of bounds, seconds, whose lower is at most its upper."""
    pairs = [(low, high) for low in lower for high in upper if low <= high]
    policies = [bounds(low, high) for low, high in pairs]
    rows = compare(workload, cores, policies, workers=workers, reference=False)
    return dict(zip(pairs, rows, strict=True))
