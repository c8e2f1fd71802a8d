"""The named strategies: the jobs of one period and the base configuration in, a configuration out.

Each of `NAMES`, with ``_`` for ``-``, is a module of this package with a `propose` function.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from parsim import Reason, Schedule, System, explain, simulate
from parsim.planning import NAMED
from parsim.verify import Violation, check_schedule
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.period import WEIGHTS, Period, Runtimes, TrainingSet
from qconf.evaluation.score import OBJECTIVES

#: In the order in which tables show them; each is a module of this package.
NAMES = (
    "current",
    "fcfs-easy",
    "lxf-easy",
    "shared",
    "pp",
    "static",
    "dp-nlp",
    "dqr",
    "hybrid",
    "mqb",
    "exact",
    "auto",
    "auto-fitted",
    "auto-guarded",
)
MODULES = {
    **{name: f"partitioning.{name.replace('-', '_')}" for name in ("pp", "static", "dp-nlp", "dqr", "hybrid", "exact")},
    **{name: f"auto.{name.replace('-', '_')}" for name in ("auto-fitted", "auto-guarded")},
    "auto": "auto.search",
}
BASELINES = ("fcfs-easy", "lxf-easy", "shared")
#: What the options may be that are chosen from a list, and from where to where the numbers may go.
CHOICES: dict[str, tuple[object, ...]] = {
    "objective": tuple(OBJECTIVES),
    "degree": (None, 1, 2, 3),
    "split_on": ("walltime", "runtime"),
    "order": ("size", "random"),
    "carve": ("live", "partitions"),
    "pool_entry": ("move", "either"),
    "pool_placement": (None, "pool", "combined"),
}
RANGES = {
    "workers": (1, math.inf),
    "samples": (1, math.inf),
    "slack": (0, 1),
    "tau_util": (0, 1),
    "chunk": (1, math.inf),
    "degradation": (0, math.inf),
}
#: Planning disciplines, that no configuration can say: shown where they are named, never recommended.
PLANNED = tuple(NAMED)


@dataclass(frozen=True)
class Options:
    """What a strategy may be told.

    Attributes
    ----------
    seed : int
    workers : int
        Threads; the answer does not depend on it.
    objective : {"mean-wait", "bounded-slowdown", "mixed"}
        What is to become less: `auto` looks at it and gains are told in it; the paper's strategies know mean wait only.
    samples : int
        Partition sets that dp-nlp simulates.
    slack : float
        PartitionSpace of the proportional constraint, 0 gives pp.
    tau_util : float
        Share of a queue's best utilization down to which its lower bound goes.
    degree : int or None
        Of dp-nlp's surrogates, 1 to 3; None chooses by cross-validation.
    weights : tuple of float
        Of the epochs that the history is cut into, the oldest first.
    split_on : {"walltime", "runtime"}
        What dqr splits by: the walltime that the user asked for, or (for study only) what the job really ran.
    order : {"size", "random"}
        In which dqr visits the queues.
    chunk : int or None
        Cores that hybrid moves to the pool at once; None is 5, or a node where nodes are whole.
    degradation : float
        Part by which a queue's mean wait, and the whole, may rise while the pool is carved (degPercent).
    carve : {"live", "partitions"}
        Whether hybrid judges a step with the pool in use, or by the shrunken partitions alone.
    pool_entry : {"move", "either"}
        Whether a job that may enter hybrid's pool leaves its partition's list, or (the paper's, for study only) starts
        wherever it can first.
    pool_placement : {"pool", "combined"} or None
        Where jobs in hybrid's pool start; None is what the configuration says.
    reference : str or None
        Queue half of whose priority is tau; None is what the configuration says, else that with most core-seconds.
    """

    seed: int = 0
    workers: int = 1
    objective: str = "mean-wait"
    samples: int = 100
    slack: float = 0.3
    tau_util: float = 0.9
    degree: int | None = None
    weights: tuple[float, ...] = WEIGHTS
    split_on: str = "walltime"
    order: str = "size"
    chunk: int | None = None
    degradation: float = 0.3
    carve: str = "live"
    pool_entry: str = "move"
    pool_placement: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class Proposal:
    """A configuration, and how the strategy came to it.

    Attributes
    ----------
    config : SiteConfig
    decisions : list of dict
        {"step": ..., ...}, in order.
    not_exportable : str
        Why no batch system can be told to do this; empty if it can. Such a proposal is shown, never recommended.
    system : System or None
        What is to be simulated where a configuration cannot say it.
    runtimes : tuple of (int, int), optional
        Real runtimes that each queue takes, where a study splits on them.
    """

    config: SiteConfig
    decisions: list[dict[str, Any]] = field(default_factory=list)
    not_exportable: str = ""
    system: System | None = None
    runtimes: Runtimes | None = None

    def simulate(self, period: Period) -> Schedule:
        """Simulate all jobs of a period as proposed, from an empty machine."""
        return simulate(period.routed(self.config, self.runtimes), self.system or self.config.system())

    def verify(self, period: Period, schedule: Schedule) -> list[Violation]:
        """Judge what `simulate` returned by the rules alone."""
        return check_schedule(period.routed(self.config, self.runtimes), self.system or self.config.system(), schedule)

    def explain(self, period: Period, schedule: Schedule, job: int, names: Sequence[str]) -> tuple[Reason, ...]:
        """Tell why `job` started when it did in what `simulate` returned; `names` are what jobs are called.

        Raises
        ------
        ValueError
            The schedule of another period, or of another proposal.
        InputError
            This proposal is a planning discipline, which has no such story.
        """
        workload, system = period.routed(self.config, self.runtimes), self.system or self.config.system()
        return explain(workload, system, schedule, job, names=names)


class Store(Protocol):
    """Keeps finished proposals, so that an interrupted run can go on."""

    def get(self, key: str) -> Proposal | None:
        """Return what was kept under `key`."""

    def put(self, key: str, proposal: Proposal) -> None:
        """Keep a finished proposal."""


def asked(store: Store | None, key: str, name: str, training: TrainingSet, options: Options) -> Proposal:
    """Return what an interrupted run kept under `key`; else run the strategy as `propose` does, and keep it."""
    found = None if store is None else store.get(key)
    if found is None:
        found = propose(name, training, options)
        if store is not None:
            store.put(key, found)
    return found


def propose(name: str, training: TrainingSet, options: Options | None = None) -> Proposal:
    """Run the strategy, or the planning discipline, called `name`.

    Raises
    ------
    InputError
        There is no such strategy, or an option makes no sense.
    NotApplicableError
        It has nothing to say about this history.
    """
    options = options or Options()
    check((name,), options, training.base)
    if name in PLANNED:
        discipline: Proposal = importlib.import_module(f"{__name__}.planned").discipline(name, training)
        return discipline
    module = importlib.import_module(f"{__name__}.{MODULES.get(name, name.replace('-', '_'))}")
    answer: Proposal = module.propose(replace(training, weights=tuple(options.weights)), options)
    return answer


def check(names: Sequence[str], options: Options, base: SiteConfig) -> None:
    """Raise InputError if there is no such strategy, or an option makes no sense at this site: before any work."""
    check_names(names)
    for field_, known in CHOICES.items():
        _one_of(field_, getattr(options, field_), known)
    if options.reference is not None:
        _one_of("reference", options.reference, base.names)
    for field_, (least, most) in RANGES.items():
        value = getattr(options, field_)
        if value is not None and not least <= value <= most:
            fix = f"give a number from {least:g} to {most:g}" if math.isfinite(most) else f"give {least:g} or more"
            raise InputError("makes no sense", field=field_, value=value, fix=fix)
    if not options.weights or not all(math.isfinite(weight) and weight > 0 for weight in options.weights):
        fix = "give a positive number for each epoch, the oldest first"
        raise InputError("no weights of epochs", field="weights", value=list(options.weights), fix=fix)


def check_names(names: Sequence[str]) -> None:
    """Raise InputError if there is no such strategy."""
    for name in names:
        _one_of("strategy", name, (*NAMES, *PLANNED))


def _one_of(field_: str, value: object, known: Sequence[object]) -> None:
    if value not in known:
        fix = f"choose among {', '.join(str(each) for each in known if each is not None)}"
        raise InputError(f"no such {field_}", field=field_, value=value, fix=fix)
