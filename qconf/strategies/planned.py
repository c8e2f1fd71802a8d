"""Planning disciplines as strategies: they plan their whole waiting list, which no configuration can express.

A site can compare them by name on its own log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parsim import Reason, Schedule
from parsim.planning.plan import NAMED, named, plan
from parsim.verify import Violation, check_planned
from qconf.errors import InputError
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.strategies.base import Options, Proposal, Strategy
from qconf.strategies.plain import undistinguished

NOT_EXPORTABLE = "no batch system plans its whole waiting list like this"


@dataclass(frozen=True)
class PlannedProposal(Proposal):
    """One machine without queues and limits under a planning discipline."""

    discipline: str = "planned-fcfs"

    def simulate(self, period: Period) -> Schedule:
        """Plan all jobs of a period, from the period's state or else an empty machine."""
        return plan(
            period.workload, period.base.machine.cores, self.discipline, period.begun(self.config.system())
        ).schedule

    def verify(self, period: Period, schedule: Schedule) -> list[Violation]:
        """Check a schedule of `simulate` against the rules of the discipline."""
        return check_planned(
            period.workload,
            period.base.machine.cores,
            named(self.discipline),
            schedule,
            period.begun(self.config.system()),
        )

    def explain(self, period: Period, schedule: Schedule, job: int, names: Sequence[str]) -> tuple[Reason, ...]:
        """Raise InputError: each pass plans all jobs again, so no single job is the reason why another waits."""
        del period, schedule, job, names
        raise InputError(
            "the start of a job under a planning discipline cannot be explained",
            field="strategy",
            value=self.discipline,
            fix="explain it under another strategy",
        )


class Planned(Strategy):
    """One planning discipline; nothing is trained."""

    position = 50
    default = False
    tune_default = False

    def __init__(self, name: str) -> None:
        self.name = name

    def propose(self, training: TrainingSet, options: Options) -> Proposal:
        """Propose the discipline."""
        del options
        if training.workload.has_needs:
            raise NotApplicableError("jobs wait for others, licences or places in an array, which it does not plan")
        base = undistinguished(training.base, "fcfs")
        return PlannedProposal(base, not_exportable=NOT_EXPORTABLE, discipline=self.name)


STRATEGIES = tuple(Planned(name) for name in NAMED)
