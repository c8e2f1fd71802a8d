"""What ``qconf tune`` recommends: the verdict, and a row for each strategy that was evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from parsim.metrics import Summary
from parsim.model.node_types import CORES
from qconf.config import FidelityConfig, SiteConfig
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.evaluation.impact import Impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.robustness import Scenario
from qconf.evaluation.targets import TargetResult
from qconf.recommend.doubts import Doubt
from qconf.recommend.fidelity import Fidelity
from qconf.recommend.last import Realised

EQUAL = 0.02  #: of the objective: what gains or loses this little is no better and no worse
BOUNDARIES = 5  #: place among `qconf.recommend.ladder.RUNGS` from which a change is one of queues


def kind_of(variant: str) -> str:
    """Return the kind in the name of a variant: ``fitted order`` is of the kind ``fitted``."""
    return variant.partition(" ")[0]


@dataclass(frozen=True)
class Row:
    """One strategy."""

    name: str  #: as on the command line
    #: What is recommended if it wins: its proposal when trained on the whole history, or (`fallback`) the one that was
    #: evaluated; None if it does not apply.
    config: SiteConfig | None
    test: Summary | None  #: metrics on the test period, trained on the jobs before it
    in_sample: Summary | None  #: of `config` on the whole history: trained and evaluated on the same jobs: optimistic
    gain: float | None  #: of the objective on the test period, against the current configuration: 0.2 is a fifth less
    bootstrap: BootstrapResult | None = None  #: over resampled test days; None without a gain, or if else ineligible
    ineligible: str = ""  #: why it may not be recommended; empty if it may
    not_exportable: str = ""  #: why no batch system can do what was simulated; empty if one can
    tolerated: str = ""  #: guard rails broken on the test period but not on average over the resamples
    #: Guard rails that the proposal of the whole history breaks on the test period and the evaluated one keeps.
    fallback: str = ""
    #: The strategy's log, what it tried and what it kept and why: {"step": ..., ...}.
    decisions: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0  #: wall time
    variant: str = ""  #: which of the strategy's proposals, as `Strategy.variants` names it
    title: str = ""  #: the variant in a few words
    rung: int = 0  #: the largest change of `config`, a place among `qconf.recommend.ladder.RUNGS`
    same_as: str = ""  #: another strategy that proposes the same, and has no row of its own
    unmet: tuple[str, ...] = ()  #: targets of the site that are not met on the test period
    needs: tuple[str, ...] = ()  #: what an administrator must install and run beside the batch system

    @property
    def label(self) -> str:
        """The name with what else the row stands for: ``static (= pp)``."""
        return f"{self.same_as} (= {self.name})" if self.same_as else self.name

    @property
    def marked(self) -> str:
        """The label in a table: * where no batch system can do what was simulated."""
        return f"{self.label}*" if self.not_exportable else self.label

    @property
    def kind(self) -> str:
        """Which kind of search found it, of a strategy that has several."""
        return kind_of(self.variant)

    @property
    def of_queues(self) -> bool:
        """Whether it changes which jobs queues admit, how many queues there are, their sizes, or a pool."""
        return self.rung >= BOUNDARIES

    @property
    def named(self) -> str:
        """The label, and which of the strategy's proposals it is."""
        return f"{self.label} ({f'{self.kind}: ' if self.kind else ''}{self.title})" if self.title else self.label

    @property
    def eligible(self) -> bool:
        """Whether it may be recommended: a gain is expected, the test period shows no loss, nothing is against it."""
        gains = self.bootstrap is not None and self.bootstrap.expected > 0
        return gains and not self.loses and not self.ineligible

    @property
    def loses(self) -> bool:
        """Whether the current configuration is better on the test period."""
        return self.gain is None or self.gain <= -EQUAL


@dataclass(frozen=True)
class Rung:
    """One line of the ladder of changes."""

    name: str  #: of `qconf.recommend.ladder.RUNGS`
    row: Row
    #: Gain over the best line of the rungs below, the eligible ones first; None where there is none.
    step: BootstrapResult | None = None


@dataclass(frozen=True)
class Curve:
    """Mean wait and utilization of one queue alone, against the partition's size (the paper's Figures 1 and 2)."""

    queue: str
    sizes: list[int]
    waits: list[float]
    utilizations: list[float]


@dataclass(frozen=True, eq=False)
class Evaluated:
    """What was simulated on the test period: of a change the configuration trained for it, not the one to load."""

    config: SiteConfig
    outcome: Outcome


@dataclass(frozen=True)
class Recommendation:
    """The result of ``qconf tune``."""

    #: CHECK: whatever would be recommended, the simulation does not fit (`doubts`).
    verdict: Literal["CHANGE", "KEEP", "CHECK"]
    lead: str  #: one sentence: the gain to be expected of the winner, or why nothing is recommended
    reason: str  #: what else there is to say of it: one plain paragraph
    winner: str  #: name of the best eligible row; ``current`` where there is none
    config: SiteConfig  #: what to load: the winner's, or the unchanged base
    base: SiteConfig
    objective: str
    rows: list[Row]  #: ``current`` first, then the baselines, then the others; of each strategy the best variant
    curves: list[Curve]
    #: Jobs, first and last submit (Unix seconds) of ``history``, ``training`` and ``test``, of the ``earlier`` and
    #: ``earliest`` training and test periods where there are any, and of the ``earlier periods``.
    spans: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]  #: settings of the run: seed, guard rails, ...
    ladder: tuple[Rung, ...] = ()  #: the best of each rung, and each part of the policy dropped by itself
    #: Where what is recommended needs scripts beside the batch system, the same answer without any; None: no change.
    without_scripts: Row | None = None
    #: The best queue configuration, with its gain over what is recommended, if that is another one; None where none
    #: gains.
    queues: Rung | None = None

    impact: Impact | None = None  #: who wins and who loses by the change on the test period; None without one
    doubts: tuple[Doubt, ...] = ()  #: why the simulation of the present is not to be trusted, the gravest first
    near: Fidelity | None = None  #: how near it is to the log, where that tells starts
    robustness: tuple[Scenario, ...] = ()  #: of the change
    targets: tuple[TargetResult, ...] = ()  #: what the present makes of the site's targets on the test period
    targets_met: tuple[TargetResult, ...] = ()  #: what the change makes of them
    graded: FidelityConfig | None = None  #: the grade that the configuration of the present carries
    last: Realised | None = None  #: what became of the recommendation before this one; None where none is given
    #: The test period under the present and under the change; the second is None without a change, both where nothing
    #: was evaluated. Not recorded: figures are drawn of them.
    present: Evaluated | None = field(default=None, repr=False, compare=False)
    changed: Evaluated | None = field(default=None, repr=False, compare=False)

    @property
    def proposes(self) -> bool:
        """Whether there is a change to load, be it that something has to be checked first."""
        return self.winner != "current"

    @property
    def rung_titles(self) -> list[str]:
        """What each line of the ladder is, in a few words: of two with the same ones, by which kind of search, too."""
        titles = [line.row.title or line.row.label for line in self.ladder]
        kinds = [line.row.kind for line in self.ladder]
        return [
            f"{title} ({kind})" if kind and titles.count(title) > 1 else title
            for title, kind in zip(titles, kinds, strict=True)
        ]

    @property
    def resource(self) -> str:
        """The bottleneck of the jobs: what utilization is of, and the shares of users."""
        return next((row.test.resource for row in self.rows if row.test is not None), CORES)

    @property
    def candidates(self) -> list[Row]:
        """The rows among which one was chosen."""
        return among(self.rows, self.settings.get("answer", "any"))

    @property
    def recommends_queues(self) -> bool:
        """Whether the best queue configuration is what is recommended."""
        return self.proposes and self.queues is not None and self.queues.row.config == self.config

    @property
    def row(self) -> Row:
        """The row of the winner."""
        return next(row for row in self.rows if row.name == self.winner)


def among(rows: Sequence[Row], scope: str) -> list[Row]:
    """Return the rows that may be recommended, ``any`` or those that change ``queues``, and ``current``."""
    return [row for row in rows if scope == "any" or row.of_queues or row.name == "current"]
