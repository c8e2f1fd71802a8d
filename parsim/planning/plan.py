"""Planning-based scheduling: FCFS, SJF, LJF, conservative backfilling, and the dynP family that switches.

At every submission and completion the whole waiting list is planned: in the order of the policy in use,
each job gets the earliest start at which its cores are free for its walltime beside the running jobs'
expected ends and the jobs planned before it. Jobs planned for now start.

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, section 5 (bounds);
"Enhancements to the Decision Process of the Self-Tuning dynP Scheduler", JSSPP 2004, section 3
(deciders, metrics, half and full self-tuning).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from parsim.engine.simulation import one
from parsim.model.schedule import Schedule
from parsim.model.state import State
from parsim.model.system import Queue, System
from parsim.model.workload import MAX_CORES, Column, Workload
from parsim.planning.conservative import conservative
from parsim.planning.planner import BOUNDS, FCFS, FIXED, SETTINGS, TUNING
from parsim.planning.replan import replan
from parsim.prepare.columns import Prepared, check_started, prepare, prepare_from, refuse_needs
from parsim.prepare.packing import pack_clock

Order = Literal["fcfs", "sjf", "ljf"]
Kind = Literal["fixed", "conservative", "bounds", "self-tuning"]
Decider = Literal["simple", "advanced", "preferred"]
When = Literal["half", "full"]
Metric = Literal["art", "art_wa", "art_ww", "sld", "sld_wa", "sld_ww", "makespan"]
WhatIf = Literal["each", "standing"]

ORDERS: tuple[Order, ...] = get_args(Order)
DECIDERS: tuple[Decider, ...] = get_args(Decider)
METRICS: tuple[Metric, ...] = get_args(Metric)

#: Sums of fractions are equal if they differ by less than this share; sums of integers if they are equal.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Policy:
    """A planning discipline. `named`, `bounds` and `self_tuning` make the usual ones.

    Attributes
    ----------
    kind : {"fixed", "conservative", "bounds", "self-tuning"}
        One order for ever; FCFS with promises that are kept; an order by the waiting jobs' mean walltime;
        the order whose plan scores best.
    order : {"fcfs", "sjf", "ljf"}
        The order in use, at first or for ever.
    lower, upper : int
        ``bounds``: seconds. A mean walltime up to `lower` calls for SJF, up to `upper` for FCFS, above for
        LJF.
    least : int
        ``bounds`` and ``self-tuning``: no decision, and so no switch, while fewer jobs than this wait.
    decider : {"simple", "advanced", "preferred"}
        ``self-tuning``: among the least scores FCFS before SJF before LJF; the order in use before them;
        `preferred` before that.
    preferred : {"fcfs", "sjf", "ljf"}
        Of the decider ``preferred``.
    when : {"half", "full"}
        Decide at submissions, or at ends, too.
    metric : {"art", "art_wa", "art_ww", "sld", "sld_wa", "sld_ww", "makespan"}
        ``self-tuning``: what scores a plan, over the waiting jobs with their walltimes as runtimes.
    what_if : {"each", "standing"}
        ``self-tuning``: score the plan of each order. ``standing`` scores, in the place of FCFS, the plan of the
        list as it is sorted for the order in use, and follows the plan made last, LJF's, from a switch to the next
        event. It is our reading of the published counts of the simple decider (docs/research/dynp.md), not a
        discipline to use.

    Raises
    ------
    ValueError
        Names the attribute and what it may be.
    """

    kind: Kind = "fixed"
    order: Order = "fcfs"
    lower: int = 7200
    upper: int = 9000
    least: int = 1
    decider: Decider = "advanced"
    preferred: Order = "sjf"
    when: When = "full"
    metric: Metric = "sld_wa"
    what_if: WhatIf = "each"

    def __post_init__(self) -> None:
        choices = {"kind": Kind, "order": Order, "decider": Decider, "preferred": Order, "when": When, "metric": Metric}
        for name, kind in (choices | {"what_if": WhatIf}).items():
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"{name}: {getattr(self, name)!r} is none of {', '.join(get_args(kind))}")
        if not 0 <= self.lower <= self.upper:
            raise ValueError(f"lower, upper: {self.lower}, {self.upper} are not two ascending bounds from 0 up")
        if self.least < 1:
            raise ValueError(f"least: {self.least} waiting jobs, at least 1")
        if self.kind == "conservative" and self.order != "fcfs":
            raise ValueError(f"order: {self.order!r}, but conservative backfilling is fcfs")

    @property
    def name(self) -> str:
        """The name of the policy in tables."""
        if self.kind == "fixed":
            return f"planned-{self.order}"
        if self.kind == "conservative":
            return "conservative"
        if self.kind == "bounds":
            return f"dynp-bounds {self.lower}/{self.upper}"
        decider = f"{self.preferred}-preferred" if self.decider == "preferred" else self.decider
        what_if = "" if self.what_if == "each" else " standing"
        return f"dynp {decider}/{self.when} {self.metric}{what_if}"


def bounds(lower: int = 7200, upper: int = 9000, *, least: int = 5) -> Policy:
    """Make dynP with bounds, seconds; the defaults are the paper's."""
    return Policy("bounds", lower=lower, upper=upper, least=least)


def self_tuning(decider: str = "advanced", when: When = "full", metric: Metric = "sld_wa") -> Policy:
    """Make self-tuning dynP; `decider` is ``simple``, ``advanced`` or ``<order>-preferred``."""
    order: Any = decider.removesuffix("-preferred")
    if order != decider:
        return Policy("self-tuning", decider="preferred", preferred=order, when=when, metric=metric)
    return Policy("self-tuning", decider=order, when=when, metric=metric)


#: The planning disciplines that have a name of one word, in addition to the disciplines of `parsim.simulate`.
NAMED = {
    "planned-fcfs": Policy("fixed", "fcfs"),
    "planned-sjf": Policy("fixed", "sjf"),
    "planned-ljf": Policy("fixed", "ljf"),
    "conservative": Policy("conservative"),
    "dynp": self_tuning(),
    "dynp-bounds": bounds(),
}


def named(name: str) -> Policy:
    """Return the planning discipline called `name`.

    Raises
    ------
    ValueError
        Lists the names there are.
    """
    if name not in NAMED:
        raise ValueError(f"{name!r} is no planning discipline: {', '.join(NAMED)}")
    return NAMED[name]


@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A schedule, and the decisions of its planner. Counts per policy are in the sequence of `ORDERS`.

    Attributes
    ----------
    policy : Policy
    schedule : Schedule
        On one partition, ``machine``.
    cases : ndarray(int64), shape (3, 8, 3)
        Decisions by policy in use before, set of the policies with the least score, policy chosen. Bit p of
        a set stands for policy p; 0 for decisions without scores, those of dynP with bounds.
    starts : ndarray(int64), shape (3,)
        Jobs started under each policy.
    seconds : ndarray(int64), shape (3,)
        Seconds that each policy was in use, from the first submission to the last end.
    promised : ndarray(int64), shape (n,), or None
        Conservative: the start that each job was promised when it was submitted.
    """

    policy: Policy
    schedule: Schedule
    cases: NDArray[np.int64]
    starts: NDArray[np.int64]
    seconds: NDArray[np.int64]
    promised: Column | None = None

    @property
    def decisions(self) -> int:
        """How often a policy was chosen, another one or the same."""
        return int(self.cases.sum())

    @property
    def kept(self) -> int:
        """Decisions for the policy in use."""
        return int(np.einsum("pcp->", self.cases))

    @property
    def switches(self) -> int:
        """Decisions for another policy."""
        return self.decisions - self.kept

    @property
    def switched_to(self) -> NDArray[np.int64]:
        """Switches to each policy, shape (3,)."""
        chosen: NDArray[np.int64] = self.cases.sum(axis=(0, 1)) - np.einsum("pcp->p", self.cases)
        return chosen


def plan(workload: Workload, cores: int, policy: Policy | str, state: State | None = None) -> PlannedRun:
    """Simulate a planning scheduler.

    Parameters
    ----------
    workload : Workload
        In any order; ties of submit go by position. Queues and users play no part.
    cores : int
        Of the machine.
    policy : Policy or str
        A discipline, or the name of one in `NAMED`.
    state : State, optional
        Running jobs and cores out of service; reservations count as other windows.

    Returns
    -------
    PlannedRun
        Its columns are aligned with the workload.

    Raises
    ------
    ValueError
        A job wider than the machine, dependencies or quotas of jobs, an unknown name, cores out of range, a wrong
        state, more or longer jobs than `parsim.simulate` takes.

    References
    ----------
    Streit, HiPC 2001 and JSSPP 2004; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (conservative backfilling).
    """
    if isinstance(policy, str):
        policy = named(policy)
    if not 1 <= cores <= MAX_CORES:
        raise ValueError(f"cores: {cores} is outside 1..{MAX_CORES}")
    wide = np.flatnonzero(workload.cores > cores)
    if wide.size:
        job = wide[0]
        raise ValueError(
            f"cores[{job}]: {workload.cores[job]} is wider than the machine's {cores} ({wide.size} such jobs)"
        )
    refuse_needs(workload, "a planning discipline")
    if state is None:
        start, promised, cases, starts, seconds = _run(prepare(workload), cores, policy)
    else:
        system = System(cores, (Queue(),) * (1 + int(workload.queue.max(initial=0))))
        problems = [f"{path}: {message}" for path, message in state.problems(workload, system)]
        if problems:
            raise ValueError("state: " + "; ".join(problems))
        ended = (state.start < state.begin) & (state.start + workload.effective_runtime <= state.begin)
        rows = np.flatnonzero(~ended)
        prepared = prepare_from(workload.take(rows), system, state.take(rows))
        begun, kept, cases, starts, seconds = _run(prepared, cores, policy)
        start, promised = state.start.copy(), None
        start[rows] = begun
        if kept is not None:
            promised = state.start.copy()
            promised[rows] = kept
    schedule = Schedule(
        submit=workload.submit,
        start=start,
        end=start + workload.effective_runtime,
        cores=workload.cores,
        partition=np.zeros(len(workload), dtype=np.int32),
        shares={},
        partition_names=("machine",),
    )
    return PlannedRun(policy, schedule, cases, starts, seconds, promised)


def _run(prepared: Prepared, cores: int, policy: Policy) -> tuple[Column, Column | None, Column, Column, Column]:
    """Return starts, promises or None, and the counts `cases`, `starts` and `seconds` of a `PlannedRun`."""
    jobs = prepared.workload
    cases, starts, seconds = np.zeros((3, 8, 3), np.int64), np.zeros(3, np.int64), np.zeros(3, np.int64)
    if not len(jobs):
        return jobs.submit, jobs.submit, cases, starts, seconds
    clock = pack_clock(prepared, cores)
    start, promised = clock.start, None
    if policy.kind == "conservative":
        promised = conservative(clock, prepared.alike())
        promised = prepared.restore(promised + prepared.base)
        starts[FCFS] = len(jobs) - prepared.first
        seconds[FCFS] = (start + prepared.runtime).max(initial=0) - prepared.begin
    else:
        of = prepared.own_numbers if policy.kind == "self-tuning" else prepared.alike()
        cases, starts, seconds = replan(clock, of, _ranks(jobs), _weight(jobs, policy.metric), _settings(policy))
    check_started(prepared, start)
    return prepared.restore(start + prepared.base), promised, cases, starts, seconds


def _ranks(jobs: Workload) -> NDArray[np.int64]:
    """Return the place of each job in the order of FCFS, SJF and LJF, ties by submit; shape (3, n)."""
    ranks = np.empty((3, len(jobs)), dtype=np.int64)
    for row, key in zip(ranks, (jobs.submit, jobs.walltime, -jobs.walltime), strict=True):
        row[np.argsort(key, kind="stable")] = np.arange(len(jobs))
    return ranks


def _weight(jobs: Workload, metric: Metric) -> NDArray[np.float64]:
    """Return what a second of delay of each job adds to the score of a plan, shape (n,).

    Submit and walltime of the waiting jobs are the same in all plans, and so are the divisors of the means.
    Without them, each metric but the makespan ranks plans by the weighted sum of the delays. The weight is the
    same for ARTwW and SLDwA, whose weight c * w cancels the w of the slowdown (equation 2 of JSSPP 2004): they
    choose the same plans.
    """
    cores, walltime = jobs.cores.astype(np.float64), jobs.walltime.astype(np.float64)
    weight: NDArray[np.float64] = {
        "art": np.ones_like(cores),
        "art_wa": cores * walltime,
        "art_ww": cores,
        "sld": 1 / walltime,
        "sld_wa": cores,
        "sld_ww": cores / walltime,
        "makespan": np.zeros_like(cores),
    }[metric]
    return weight


def _settings(policy: Policy) -> np.void:
    return one(
        SETTINGS,
        kind={"fixed": FIXED, "bounds": BOUNDS}.get(policy.kind, TUNING),
        policy=ORDERS.index(policy.order),
        lower=policy.lower,
        upper=policy.upper,
        least=policy.least,
        decider=DECIDERS.index(policy.decider),
        preferred=ORDERS.index(policy.preferred),
        tie=ROUNDING if policy.metric in {"sld", "sld_ww"} else 0.0,
        full=policy.when == "full",
        makespan=policy.metric == "makespan",
        standing=policy.what_if == "standing",
    )
