"""The result of ``qconf tune``: the verdict, and a row for each evaluated strategy."""

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

EQUAL = 0.02  #: gains that differ by this or less count as equal
BOUNDARIES = 5  #: least index in `qconf.recommend.ladder.RUNGS` of a change of queues


def kind_of(variant: str) -> str:
    """Return the kind of search in a variant's name: ``fitted`` of ``fitted order``."""
    return variant.partition(" ")[0]


@dataclass(frozen=True)
class Row:
    """One strategy, or one of its variants, evaluated."""

    name: str  #: as on the command line
    #: The configuration to load if the row wins: the proposal trained on the whole history, or the evaluated one
    #: (`fallback`); None if the strategy has no proposal.
    config: SiteConfig | None
    test: Summary | None  #: metrics on the test period, trained on the jobs before it
    in_sample: Summary | None  #: metrics of `config` on the whole history, its training data: optimistic
    gain: float | None  #: of the objective on the test period, against the current configuration: 0.2 is a fifth less
    bootstrap: BootstrapResult | None = None  #: over resampled test days; None without a gain, or if ineligible anyway
    ineligible: str = ""  #: why it may not be recommended; empty if it may
    not_exportable: str = ""  #: why no batch system can run the configuration; empty if one can
    tolerated: str = ""  #: guard rails broken on the test period but not on average over the resamples
    #: Guard rails that the proposal of the whole history breaks on the test period, and the evaluated one keeps.
    fallback: str = ""
    #: The strategy's log of steps: tried, kept and why: {"step": ..., ...}.
    decisions: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0  #: wall time
    variant: str = ""  #: name of the proposal in `Strategy.variants`
    title: str = ""  #: the variant in a few words
    rung: int = 0  #: the largest change of `config`, an index in `qconf.recommend.ladder.RUNGS`
    same_as: str = ""  #: another strategy with the same proposal and no row of its own
    unmet: tuple[str, ...] = ()  #: targets of the site that are not met on the test period
    needs: tuple[str, ...] = ()  #: what an administrator must install and run beside the batch system

    @property
    def label(self) -> str:
        """The strategy's name, with the strategy that has the same proposal: ``static (= pp)``."""
        return f"{self.same_as} (= {self.name})" if self.same_as else self.name

    @property
    def marked(self) -> str:
        """The label for a table, with * if no batch system can run the configuration."""
        return f"{self.label}*" if self.not_exportable else self.label

    @property
    def kind(self) -> str:
        """The kind of search behind the row, if the strategy has several."""
        return kind_of(self.variant)

    @property
    def of_queues(self) -> bool:
        """Whether the row changes the queues' admission, number or sizes, or a pool."""
        return self.rung >= BOUNDARIES

    @property
    def named(self) -> str:
        """The label with the title of the proposal."""
        return f"{self.label} ({f'{self.kind}: ' if self.kind else ''}{self.title})" if self.title else self.label

    @property
    def eligible(self) -> bool:
        """Whether the row may be recommended: an expected gain, no loss on the test period, no objection."""
        gains = self.bootstrap is not None and self.bootstrap.expected > 0
        return gains and not self.loses and not self.ineligible

    @property
    def loses(self) -> bool:
        """Whether the current configuration is better on the test period."""
        return self.gain is None or self.gain <= -EQUAL


@dataclass(frozen=True)
class Rung:
    """One line of the ladder of changes."""

    name: str  #: one of `qconf.recommend.ladder.RUNGS`
    row: Row
    #: Gain over the best line of the rungs below, the eligible ones first; None if there is none.
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
    """A simulation of the test period; for a change, of the configuration trained before it, not the one to load."""

    config: SiteConfig
    outcome: Outcome


@dataclass(frozen=True)
class Recommendation:
    """The result of ``qconf tune``."""

    #: CHECK if the simulation does not fit the log (`doubts`), whatever is recommended.
    verdict: Literal["CHANGE", "KEEP", "CHECK"]
    lead: str  #: one sentence: the expected gain of the winner, or why there is none
    reason: str  #: further explanation, one plain paragraph
    winner: str  #: name of the best eligible row; ``current`` if there is none
    config: SiteConfig  #: the configuration to load: the winner's, or the unchanged base
    base: SiteConfig
    objective: str
    rows: list[Row]  #: ``current``, the baselines, then the others; the best variant of each
    curves: list[Curve]
    #: Jobs, first and last submit (Unix seconds) of ``history``, ``training`` and ``test``, of the ``earlier`` and
    #: ``earliest`` training and test periods where there are any, and of the ``earlier periods``.
    spans: dict[str, tuple[int, int, int]]
    settings: dict[str, Any]  #: settings of the run: seed, guard rails, ...
    ladder: tuple[Rung, ...] = ()  #: the best row of each rung, and variants that drop one part of the policy
    #: If the recommendation needs scripts beside the batch system: the best row without any; None: no change.
    without_scripts: Row | None = None
    #: The best queue configuration, with its gain over the recommendation if that is another one; None if none gains.
    queues: Rung | None = None

    impact: Impact | None = None  #: groups of jobs before and after the change, test period; None without a change
    doubts: tuple[Doubt, ...] = ()  #: why the simulation of the base may be wrong, the gravest first
    near: Fidelity | None = None  #: fidelity of the simulation to the log, if that has starts
    robustness: tuple[Scenario, ...] = ()  #: of the change
    targets: tuple[TargetResult, ...] = ()  #: the site's targets under the base on the test period
    targets_met: tuple[TargetResult, ...] = ()  #: the site's targets under the change
    graded: FidelityConfig | None = None  #: the grade that the base carries
    last: Realised | None = None  #: the promise of an earlier run, evaluated; None if no run is given
    #: The test period under the base and under the change; the second is None without a change, both if nothing was
    #: evaluated. Not recorded: only figures use them.
    present: Evaluated | None = field(default=None, repr=False, compare=False)
    changed: Evaluated | None = field(default=None, repr=False, compare=False)

    @property
    def proposes(self) -> bool:
        """Whether there is a change to load, possibly after a check."""
        return self.winner != "current"

    @property
    def rung_titles(self) -> list[str]:
        """Titles of the ladder's lines; equal titles get their kind of search."""
        titles = [line.row.title or line.row.label for line in self.ladder]
        kinds = [line.row.kind for line in self.ladder]
        return [
            f"{title} ({kind})" if kind and titles.count(title) > 1 else title
            for title, kind in zip(titles, kinds, strict=True)
        ]

    @property
    def resource(self) -> str:
        """The bottleneck of the jobs: utilization and users' fractions are of this resource."""
        return next((row.test.resource for row in self.rows if row.test is not None), CORES)

    @property
    def candidates(self) -> list[Row]:
        """The rows from which the winner was chosen."""
        return in_scope(self.rows, self.settings.get("answer", "any"))

    @property
    def recommends_queues(self) -> bool:
        """Whether the recommendation is the best queue configuration."""
        return self.proposes and self.queues is not None and self.queues.row.config == self.config

    @property
    def row(self) -> Row:
        """The row of the winner."""
        return next(row for row in self.rows if row.name == self.winner)


def in_scope(rows: Sequence[Row], scope: str) -> list[Row]:
    """Return the candidate rows of a scope: all for ``any``, else those that change queues, and ``current``."""
    return [row for row in rows if scope == "any" or row.of_queues or row.name == "current"]
