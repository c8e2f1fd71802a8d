"""The interface of a strategy: options, steps of its log, and proposals."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from parsim import Reason, Schedule, System, Workload, explain, simulate
from parsim.verify import Violation, check_schedule
from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.evaluation.feasibility import lowered
from qconf.evaluation.period import Period, Runtimes, TrainingSet
from qconf.evaluation.score import OBJECTIVES, TAILS

T = TypeVar("T")


def option(
    default: T,
    text: str,
    *,
    choices: Sequence[object] = (),
    least: float | None = None,
    most: float = math.inf,
    shown: str = "",
) -> T:
    """Define an option of a strategy, from which the command line makes a flag.

    The type is that of `default`; with None, an optional whole number or text. `shown` replaces the default in the
    help.
    """
    metadata = {"help": text, "choices": tuple(choices), "least": least, "most": most, "shown": shown}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of every strategy; a strategy's own options are in a subclass.

    `auto` and the search of hybrid's pool minimise the objective, and gains are of the objective; the paper's
    strategies minimise mean wait.
    """

    seed: int = option(0, "Seed of all random choices.", least=0, most=2**32 - 1)
    workers: int = option(1, "At a time; no effect on the result.", least=1)
    objective: str = option("mean-wait", "Objective to minimise.", choices=tuple(OBJECTIVES))
    tails: float = option(TAILS, "What waits longer than any known so far cost beside it.", least=0)

    @classmethod
    def of(cls, settings: Options | Mapping[str, Any]) -> Self:
        """Take the options of this class out of `settings`; missing ones have their defaults."""
        found = settings if isinstance(settings, Mapping) else vars(settings)
        return cls(**{each.name: found[each.name] for each in fields(cls) if each.name in found})

    def check(self, base: SiteConfig) -> None:
        """Raise InputError if an option makes no sense at this site."""
        del base
        for each in fields(self):
            value, known = getattr(self, each.name), each.metadata["choices"]
            if known and value not in known:
                fix = f"choose among {', '.join(str(choice) for choice in known if choice is not None)}"
                raise InputError(f"no such {each.name.replace('_', ' ')}", field=each.name, value=value, fix=fix)
            least, most = each.metadata["least"], each.metadata["most"]
            if value is not None and least is not None and not least <= value <= most:
                fix = f"give a number from {least:g} to {most:g}" if math.isfinite(most) else f"give {least:g} or more"
                raise InputError("makes no sense", field=each.name, value=value, fix=fix)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def step(cls: type[T]) -> type[T]:
    """Make a class a step of a log: a frozen dataclass with a title, by default the class's name in words."""
    cls.title = cls.__dict__.get("title", re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower())  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(cls)


@step
class Step:
    """One step of a strategy's log; the fields of a subclass are its values, None is left out."""

    title: ClassVar[str]
    notes: tuple[str, ...] = ()  # warnings

    def record(self) -> dict[str, Any]:
        """Return title and values as JSON values: {"step": title, ...}."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"step": self.title} | {
            name.rstrip("_"): list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value is not None and (name != "notes" or value)
        }


@step
class Recorded(Step):
    """A step read from the checkpoint of an earlier run."""

    values: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Return the recorded values."""
        return dict(self.values)


@step
class LoweredLimits(Step):
    """Queues whose most cores were lowered to what their partitions hold."""

    queues: list[str]
    before: list[int]
    after: list[int]


@step
class RefusedJobs(Step):
    """The number of jobs wider than lowered limits in an evaluation."""

    refused: int
    jobs: int


@dataclass(frozen=True)
class Proposal:
    """A configuration, and the steps by which a strategy came to it."""

    config: SiteConfig
    steps: tuple[Step, ...] = ()
    not_exportable: str = ""  # why no batch system can run this: the proposal is shown and never recommended
    system: System | None = None  # the simulated system if no configuration can express it
    title: str = ""  # the proposal in a few words, if the strategy has several
    not_yet: str = ""  # why it is not recommended, though a batch system can run it
    runtimes: Runtimes | None = None  # actual run times that each queue admits, if a study splits by them
    lowered: tuple[str, ...] = ()  # queues whose most cores were lowered to what their partitions hold

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The steps as JSON values."""
        return [step.record() for step in self.steps]

    def simulate(self, period: Period) -> Schedule:
        """Simulate all jobs of a period as proposed, from the period's state or else an empty machine."""
        system = self._system(period)
        return simulate(self.routed(period), system, period.begun(system))

    def routed(self, period: Period) -> Workload:
        """Return the jobs of a period with the queues that the proposal routes them to."""
        return period.routed(self.config, self.runtimes, self.lowered)

    def refused(self, period: Period, counted: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Return a step with the number of counted jobs wider than lowered limits; they span partitions."""
        if not self.lowered:
            return []
        jobs, grid = self.routed(period), self.config.grid
        most = np.array([-(-queue.cores[1] // grid) * grid for queue in self.config.queues])
        number, of = int(((jobs.cores > most[jobs.queue]) & counted).sum()), int(counted.sum())
        text = (
            f"{number} of {of} jobs of the test period are wider than the lowered limits: they would be refused, and "
        )
        text += "are simulated on nodes of several partitions"
        return [RefusedJobs(refused=number, jobs=of, notes=(text,)).record()] if number else []

    def startable(self, period: Period) -> Proposal:
        """Return the proposal with lower limits if queues admit jobs that could never start, unlike under the base."""
        config = lowered(period, self.config)
        if config == self.config:
            return self
        pairs = [(old, new) for old, new in zip(self.config.queues, config.queues, strict=True) if old != new]
        step = LoweredLimits(
            queues=[new.name for _, new in pairs],
            before=[old.cores[1] for old, _ in pairs],
            after=[new.cores[1] for _, new in pairs],
            notes=tuple(f"{n.name} admits jobs up to {n.cores[1]} cores: wider ones could not start" for _, n in pairs),
        )
        return replace(self, config=config, steps=(*self.steps, step), lowered=tuple(step.queues))

    def _system(self, period: Period) -> System:
        """Return the simulated system, with the shortpools as windows during a period."""
        return period.dedicated(self.system or self.config.system(), self.config)

    def verify(self, period: Period, schedule: Schedule) -> list[Violation]:
        """Check a schedule of `simulate` against the rules, without the engine."""
        workload, system = self.routed(period), self._system(period)
        return check_schedule(workload, system, schedule, period.begun(system))

    def explain(self, period: Period, schedule: Schedule, job: int, names: Sequence[str]) -> tuple[Reason, ...]:
        """Explain why `job` started when it did in a schedule of `simulate`; `names` are the jobs' identifiers.

        Raises ValueError for a schedule of another period or proposal, InputError for a planning discipline.
        """
        workload, system = self.routed(period), self._system(period)
        return explain(workload, system, schedule, job, names=names, state=period.begun(system))


#: A computation on one period: a `cached` function, the period, and the further arguments.
Question = tuple[Callable[..., Any], Period, tuple[Any, ...]]


class Strategy(ABC):
    """A named way from a training set to a configuration.

    A module of `qconf.strategies` registers its strategies in a tuple ``STRATEGIES``.
    """

    name: str
    position: int  # in tables: 0 to 9 current and baselines, from 10 on the paper's, from 30 on this project's
    baseline: bool = False  # tunes nothing, and is always compared
    default: ClassVar[bool] = True  # compared by `compare` and `backtest` unless strategies are named
    tune_default: bool = True  # compared by `tune` unless strategies are named
    any_nodes: ClassVar[bool] = False  # whether it can handle nodes of several types
    cost: ClassVar[float] = 1.0  # relative duration, for progress and for the order of workers' tasks
    Options: ClassVar[type[Options]] = Options

    @property
    def has_variants(self) -> bool:
        """Whether an evaluation chooses among several proposals."""
        return type(self).variants is not Strategy.variants

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether the strategy is always compared at a site."""
        del base
        return self.baseline

    @abstractmethod
    def propose(self, training: TrainingSet, options: Any) -> Proposal:  # noqa: ANN401 - an instance of its `Options`
        """Propose a configuration; raise NotApplicableError if there is none for this training set."""

    def wanted_ahead(self, training: TrainingSet, options: Any) -> list[Question]:  # noqa: ANN401 - as above
        """Return the computations on single periods that can be shared by training sets with the same periods."""
        del training, options
        return []

    def variants(self, training: TrainingSet, options: Any) -> Mapping[str, Proposal]:  # noqa: ANN401 - as above
        """Return all proposals by name, for an evaluation to choose from; most strategies have one."""
        return {"": self.propose(training, options)}

    def appraised(self, training: TrainingSet, options: Any, proposal: Proposal) -> Proposal:  # noqa: ANN401 - as above
        """Return a proposal with results added to its log that no choice needs; called before it is shown."""
        del training, options
        return proposal
