"""The contract of a strategy: a training set in, a configuration out, with options and a log."""

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
    """Define an option of a strategy, from which the command line derives its flag.

    Its type is that of `default`; None stands for an optional whole number or text. `shown` is the default as the help
    shows it, unless it is the value itself.
    """
    metadata = {"help": text, "choices": tuple(choices), "least": least, "most": most, "shown": shown}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of every strategy; those of one are a subclass.

    `auto` and the search of hybrid's pool minimise the objective, and gains are given in it; the paper's strategies
    minimise mean wait only.
    """

    seed: int = option(0, "Seed of all random choices.", least=0, most=2**32 - 1)
    workers: int = option(1, "At a time; no effect on the result.", least=1)
    objective: str = option("mean-wait", "Objective to minimise.", choices=tuple(OBJECTIVES))
    tails: float = option(TAILS, "What waits longer than any known so far cost beside it.", least=0)

    @classmethod
    def of(cls, settings: Options | Mapping[str, Any]) -> Self:
        """Pick the options of this class out of `settings`; what is not among them has its default."""
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
    """Make a class one of the steps of a log: a frozen dataclass; its title is its name in words."""
    cls.title = cls.__dict__.get("title", re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower())  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(cls)


@step
class Step:
    """One step of a strategy's log. A subclass has fields; None is no value."""

    title: ClassVar[str]
    notes: tuple[str, ...] = ()  # what the training set, or an option, is too poor for

    def record(self) -> dict[str, Any]:
        """Return title and values as JSON holds them: {"step": title, ...}."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"step": self.title} | {
            name.rstrip("_"): list(value) if isinstance(value, tuple) else value
            for name, value in found.items()
            if value is not None and (name != "notes" or value)
        }


@step
class Recorded(Step):
    """A step as an earlier run recorded it."""

    values: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Return what was recorded."""
        return dict(self.values)


@step
class LoweredLimits(Step):
    """The most cores of queues, as the partitions allow."""

    queues: list[str]
    before: list[int]
    after: list[int]


@step
class RefusedJobs(Step):
    """Jobs that are too wide for lowered limits, where a proposal is evaluated."""

    refused: int
    jobs: int


@dataclass(frozen=True)
class Proposal:
    """A configuration, and how the strategy came to it."""

    config: SiteConfig
    steps: tuple[Step, ...] = ()
    not_exportable: str = ""  # why no batch system can do this: the proposal is shown and never recommended
    system: System | None = None  # what is simulated where a configuration cannot express it
    title: str = ""  # what it is in a few words, where a strategy has several proposals
    not_yet: str = ""  # why it is shown and not recommended, though a batch system can do it
    runtimes: Runtimes | None = None  # actual run times that each queue takes, where a study splits on them
    lowered: tuple[str, ...] = ()  # queues that admit narrower jobs than now, since their partitions hold no wider ones

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """The steps as JSON holds them."""
        return [step.record() for step in self.steps]

    def simulate(self, period: Period) -> Schedule:
        """Simulate all jobs of a period as proposed, from its state or else an empty machine."""
        system = self._system(period)
        return simulate(self.routed(period), system, period.begun(system))

    def routed(self, period: Period) -> Workload:
        """Return the jobs of a period with the queues that the proposal routes them to."""
        return period.routed(self.config, self.runtimes, self.lowered)

    def refused(self, period: Period, counted: NDArray[np.bool_]) -> list[dict[str, Any]]:
        """Say how many of the counted jobs of a period no queue admits any more; they span partitions all the same."""
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
        """Return the proposal with limits lowered where queues admit jobs that, unlike now, would never start."""
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
        """Return what is simulated, with the shortpools in the time of a period."""
        return period.dedicated(self.system or self.config.system(), self.config)

    def verify(self, period: Period, schedule: Schedule) -> list[Violation]:
        """Check what `simulate` returned by the rules alone."""
        workload, system = self.routed(period), self._system(period)
        return check_schedule(workload, system, schedule, period.begun(system))

    def explain(self, period: Period, schedule: Schedule, job: int, names: Sequence[str]) -> tuple[Reason, ...]:
        """Explain why `job` started when it did in what `simulate` returned; `names` are the jobs' identifiers.

        Raises ValueError for a schedule of another period or proposal, InputError for a planning discipline.
        """
        workload, system = self.routed(period), self._system(period)
        return explain(workload, system, schedule, job, names=names, state=period.begun(system))


#: A function that is `qconf.evaluation.period.cached`, a period, and the further arguments.
Question = tuple[Callable[..., Any], Period, tuple[Any, ...]]


class Strategy(ABC):
    """A named way from a training set to a configuration.

    A module of `qconf.strategies` registers its strategies in a tuple ``STRATEGIES``.
    """

    name: str
    position: int  # in tables: 0 to 9 current and baselines, from 10 on the paper's, from 30 on those of this project
    baseline: bool = False  # tunes nothing, and is always among those compared
    default: ClassVar[bool] = True  # compared by `compare` and `backtest` unless strategies are named
    tune_default: bool = True  # compared by `tune` unless strategies are named
    any_nodes: ClassVar[bool] = False  # whether it goes with nodes of several types
    cost: ClassVar[float] = 1.0  # seconds that it takes, relative to the others': progress, and what workers do first
    Options: ClassVar[type[Options]] = Options

    @property
    def has_variants(self) -> bool:
        """Whether an evaluation chooses among several proposals."""
        return type(self).variants is not Strategy.variants

    def is_baseline_of(self, base: SiteConfig) -> bool:
        """Whether it is always compared at a site."""
        del base
        return self.baseline

    @abstractmethod
    def propose(self, training: TrainingSet, options: Any) -> Proposal:  # noqa: ANN401 - an instance of its `Options`
        """Propose a configuration; raise NotApplicableError if there is none for this training set."""

    def wanted_ahead(self, training: TrainingSet, options: Any) -> list[Question]:  # noqa: ANN401 - as above
        """Return what it computes of single periods, of earlier ones too: training sets that share periods share it."""
        del training, options
        return []

    def variants(self, training: TrainingSet, options: Any) -> Mapping[str, Proposal]:  # noqa: ANN401 - as above
        """Return all proposals among which an evaluation chooses, by name; of most strategies the one."""
        return {"": self.propose(training, options)}

    def appraised(self, training: TrainingSet, options: Any, proposal: Proposal) -> Proposal:  # noqa: ANN401 - as above
        """Return one of its proposals with what the log says of it, and no choice needs, once it is to be shown."""
        del training, options
        return proposal
