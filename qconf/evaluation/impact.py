"""Who wins and who loses by a change: waits of queues, types of nodes, sizes, users and QOS, before and after.

A gain is a mean over all jobs: a large one can hide longer waits of a queue, of wide jobs or of the heaviest users.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from parsim import metrics
from parsim.model.node_types import CORES, GPUS
from parsim.prepare.charges import rates
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.text import in_terms_of

Kind = Literal["queue", "nodes", "size", "user", "qos"]

#: A metric is worse if it grows by more than this fraction and by more than this amount (seconds; a slowdown has no
#: unit). A longest wait is of a single job, so it may grow as much as guard rails allow.
GROWTH: Mapping[str, tuple[float, float]] = {
    "mean_wait": (0.1, 300.0),
    "median_wait": (0.1, 300.0),
    "p95_wait": (0.1, 300.0),
    "max_wait": (0.5, 3600.0),
    "mean_bounded_slowdown": (0.1, 1.0),
}
_WAITS = tuple(key for key in GROWTH if key.endswith("_wait"))
CLASSES_ABOVE_A_NODE = 4
#: Fractions of all users' hours that bound the classes of users.
HEAVY, OCCASIONAL = 0.1, 0.01


def grown(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, ...]:
    """Return the metrics that grow by more than `GROWTH` allows, in its order."""
    return tuple(
        key for key, (share, least) in GROWTH.items() if after[key] - before[key] > max(share * before[key], least)
    )


@dataclass(frozen=True)
class Group:
    """A group of counted jobs of a period, before and after a change; times are seconds."""

    kind: Kind
    name: str  #: name of a queue, else words such as ``jobs of 25 to 192 cores``
    jobs: int
    core_seconds: float
    share: float  #: fraction of the bottleneck-hours (`Period.resource`) of all counted jobs, 0..1
    before: Mapping[str, float]  #: the metrics of `GROWTH` by name
    after: Mapping[str, float]
    charged: float | None = None  #: core-seconds charged to a QOS, factors included (rule "charges and decay")

    @property
    def difference(self) -> dict[str, float]:
        """After minus before, by metric: above 0 is worse."""
        return {key: self.after[key] - self.before[key] for key in GROWTH}

    @property
    def grown(self) -> tuple[str, ...]:
        """The metrics that grow by more than `GROWTH` allows, in its order."""
        return grown(self.before, self.after)

    @property
    def worse(self) -> bool:
        """Whether any metric grows by more than `GROWTH` allows."""
        return bool(self.grown)

    @property
    def worst(self) -> str:
        """The wait metric among `grown` that grows by the most seconds; empty if none grows."""
        return max((key for key in self.grown if key in _WAITS), key=self.difference.__getitem__, default="")

    @property
    def harm(self) -> float:
        """Job-seconds: the growth of the `worst` wait times the number of jobs."""
        return self.jobs * self.difference[self.worst] if self.worst else 0.0


@dataclass(frozen=True)
class Impact:
    """The groups of one period under two configurations; groups without jobs are left out."""

    #: Queues and types of nodes in the base's order, then sizes from narrow to wide, users from heavy on, and QOS.
    groups: tuple[Group, ...]
    resource: str = CORES  #: the bottleneck

    def of(self, kind: Kind) -> tuple[Group, ...]:
        """Return the groups of one kind."""
        return tuple(group for group in self.groups if group.kind == kind)

    def record(self) -> list[dict[str, Any]]:
        """Return the groups as JSON values, each with the metrics that grow."""
        return [{**asdict(group), "grown": list(group.grown)} for group in self.groups]

    @property
    def losers(self) -> tuple[Group, ...]:
        """The groups that are worse, by descending harm."""
        return tuple(sorted((group for group in self.groups if group.worse), key=lambda group: -group.harm))


def impact(before: Outcome, after: Outcome) -> Impact:
    """Compare two outcomes of the same period, group by group; jobs are in the queues of the base before and after.

    If all jobs are of one type of nodes, size class or user class, that kind is left out: its only group would repeat
    the total. Raises ValueError for different jobs.
    """
    jobs = before.jobs
    if not all(np.array_equal(getattr(jobs, name), getattr(after.jobs, name)) for name in ("submit", "cores", "queue")):
        raise ValueError("the outcomes are of different jobs")
    period = before.period
    core_seconds = (jobs.cores * jobs.effective_runtime).astype(np.float64)
    work = core_seconds if period.resource == CORES else period.use.work(period.workload)[before.rows]
    rate, parts = rates(jobs, period.base.system())
    charged = rate * jobs.effective_runtime / parts
    found = []
    kinds: tuple[tuple[Kind, Iterator[tuple[str, NDArray[np.bool_]]], int], ...] = (
        ("queue", ((queue.name, jobs.queue == i) for i, queue in enumerate(before.period.base.queues)), 1),
        ("nodes", _nodes(before), 2),
        ("size", _sizes(period, jobs.cores if period.resource != GPUS else period.use.amount[before.rows]), 2),
        ("user", _users(jobs.user, work, period.resource), 2),
        ("qos", ((f"QOS {name}", jobs.qos == i) for i, name in enumerate(jobs.qos_names)), 1),
    )
    for kind, members, fewest in kinds:
        groups = [
            Group(
                kind=kind,
                name=name,
                jobs=int(rows.sum()),
                core_seconds=float(core_seconds[rows].sum()),
                share=float(work[rows].sum() / max(work.sum(), 1.0)),
                before=metrics_of(before, rows),
                after=metrics_of(after, rows),
                charged=float(charged[rows].sum()) if kind == "qos" else None,
            )
            for name, rows in members
            if rows.any()
        ]
        found += groups if len(groups) >= fewest else []
    return Impact(tuple(found), period.resource)


def metrics_of(outcome: Outcome, rows: NDArray[np.bool_]) -> dict[str, float]:
    """Return the metrics of `GROWTH` over the masked counted jobs; NaN without jobs."""
    wait = outcome.wait[rows]
    if not wait.size:
        return dict.fromkeys(GROWTH, np.nan)
    return {
        "mean_wait": float(wait.mean()),
        "median_wait": float(np.median(wait)),
        "p95_wait": metrics.p95(wait),
        "max_wait": float(wait.max()),
        "mean_bounded_slowdown": float(outcome.slowdown[rows].mean()),
    }


def _nodes(before: Outcome) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the jobs that are meant for each type of nodes, unless they are exactly those of a queue."""
    for t, each in enumerate(before.period.base.nodes):
        rows = before.meant == t
        if not any(np.array_equal(rows, before.jobs.queue == q) for q in range(len(before.period.base.queues))):
            yield f"jobs for nodes {each.name}", rows


def _sizes(period: Period, amount: NDArray[Any]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield size classes: one core, up to a node, and some above, each a constant factor wider than the last.

    If GPUs are the bottleneck: the jobs without GPUs, then classes by GPUs.
    """
    machine, unit, one = period.base.machine, "core", period.base.grid
    node, most = machine.cores_per_node, machine.cores
    if period.resource == GPUS:
        yield "jobs without GPUs", amount == 0
        unit, one = "GPU", 1
        node, most = max(each.gpus for each in period.base.nodes), int(period.use.there)
    factor = 2
    while node * factor**CLASSES_ABOVE_A_NODE < most:
        factor *= 2
    edges = {one, node, most, *(node * factor**k for k in range(1, CLASSES_ABOVE_A_NODE))}
    low = 0
    for high in sorted(edge for edge in edges if edge <= most):
        first = low + one
        name = f"jobs of {first} to {high} {unit}s" if first < high else f"jobs of {high} {unit}{'s' * (high > 1)}"
        yield name, (amount > low) & (amount <= high)
        low = high


def _users(
    user: NDArray[np.int64], work: NDArray[np.float64], resource: str
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield classes of users by their fraction of the bottleneck-hours; jobs without a user are in no class."""
    known = np.flatnonzero(user >= 0)
    _, index = np.unique(user[known], return_inverse=True)
    used = np.bincount(index, weights=work[known])
    share = used / max(used.sum(), 1.0)
    for text, chosen in (
        (f"over {100 * HEAVY:g} %", share > HEAVY),
        (f"{100 * OCCASIONAL:g} to {100 * HEAVY:g} %", (share > OCCASIONAL) & (share <= HEAVY)),
        (f"up to {100 * OCCASIONAL:g} %", share <= OCCASIONAL),
    ):
        rows = np.zeros(user.size, dtype=np.bool_)
        rows[known] = chosen[index]
        count = int(chosen.sum())
        of = in_terms_of(resource, "of the core-hours")
        yield f"{count} user{'s' * (count != 1)} with {text} {of}{' each' * (count != 1)}", rows
