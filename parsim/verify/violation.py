"""The violations that `parsim.verify` reports, and the rules that they break."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

#: What each rule forbids; `Violation.rule` is one of these.
RULES = {
    "job": "the schedule's submit, cores or partitions are not those of the workload and the system",
    "submit": "a start before the submission",
    "end": "an end that is not start + min(runtime, walltime)",
    "placement": "cores on a partition where the job may not run, or not on the first partition where it could start",
    "pool": "an entry to the pool before its eligibility instant",
    "capacity": "more cores in use than a partition has",
    "limit": "more running jobs or cores than a limit allows, counting the head jobs that wait for cores",
    "event": "a start at an instant at which no pass takes place",
    "head job": "a start that delays the head job of a list",
    "reservation": "a start that delays the reservation, or that the reserved list does not allow",
    "order": "a start out of turn: of a job behind one that had to start, or where the visit had ended",
    "shares": "a job over several partitions with another share of each than the rules give",
    "preemption": "a job preempted that had to go on, or that goes on and had to be preempted",
    "waiting": "a job left waiting that had to start",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a schedule breaks, with the job and the time.

    Attributes
    ----------
    rule : str
        A key of `RULES`.
    job : int
        Row of the workload, -1 without a single job.
    time : int
        Seconds.
    message : str
    """

    rule: str
    job: int
    time: int
    message: str

    def at(self, rows: NDArray[np.int64]) -> Violation:
        """Return the violation with job ``rows[job]``, its row in the workload from which `rows` were taken."""
        return replace(self, job=int(rows[self.job])) if self.job >= 0 else self

    def __str__(self) -> str:
        return f"[{self.rule}] job {self.job} at {self.time}: {self.message}"


class Difference(Exception):  # noqa: N818 - carries a finding out of a replay, is no error
    """The first difference between a schedule and the one that the rules give."""

    def __init__(self, rule: str, job: int, time: int, message: str) -> None:
        super().__init__(message)
        self.violation = Violation(rule, job, time, message)


class VerificationError(AssertionError):
    """A schedule breaks the rules of its discipline.

    Parameters
    ----------
    violations : sequence of Violation
    shown : int
        Most violations that the message lists.

    Attributes
    ----------
    violations : tuple of Violation
    """

    def __init__(self, violations: Sequence[Violation], shown: int = 10) -> None:
        self.violations = tuple(violations)
        lines = [str(violation) for violation in self.violations[:shown]]
        if len(self.violations) > shown:
            lines.append(f"... and {len(self.violations) - shown} more")
        super().__init__("\n".join(lines))
