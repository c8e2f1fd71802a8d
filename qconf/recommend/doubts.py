"""Doubts: where the simulation of the current configuration does not fit the log, with likely cause and a command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from qconf.config import FidelityConfig, SiteConfig
from qconf.fidelity.grade import DOUBT
from qconf.history import History
from qconf.history.cleaning import TOO_LARGE
from qconf.history.records import most_at_once
from qconf.recommend.fidelity import Fidelity

DROPPED = 0.1  # fraction of jobs that the configuration cannot run, from which it is not the site's
BEYOND = 1.1  # cores that ran at once / the machine's; rounding of the log's times explains a little more than 1
FAR = 2.0  # factor between recorded and simulated mean wait that points to a cause
MINUTE = 60.0  # seconds, added to both mean waits

CALIBRATE = "qconf fidelity LOG --config SITE.yaml --calibrate"
INSPECT = "qconf inspect LOG --config SITE.yaml"


@dataclass(frozen=True)
class Doubt:
    """One point on which simulation and log do not fit."""

    what: str  #: a sentence with figures, without a full stop
    cause: str  #: the likeliest cause, a noun phrase
    command: str  #: the command that settles it


def doubts(
    history: History,
    base: SiteConfig,
    near: Fidelity | None,
    carries: FidelityConfig | None,
    implausible: Iterable[str],
) -> Iterator[Doubt]:
    """Yield the doubts; the grade that the configuration `carries` counts only if this log gives none."""
    yield from _size(history, base)
    yield from _dropped(history, base)
    if near is not None and near.grade is not None:
        if near.doubtful:
            waits = f"mean wait {near.real_mean / 3600:.2f} h recorded, {near.mean / 3600:.2f} h simulated"
            what = f"simulated waits are far from those of the log (fidelity grade {near.grade.letter}; {waits})"
            yield Doubt(what, _other_waits(near), CALIBRATE)
    elif carries is not None and carries.grade in DOUBT:
        what = f"simulated waits are far from those of an earlier log (the configuration carries grade {carries.grade})"
        yield Doubt(what, "limits or settings of the scheduler that the configuration lacks", CALIBRATE)
    cause = f"a machine larger than its {base.machine.cores} cores, or jobs in the log that never waited for them"
    yield from (Doubt(text, cause, INSPECT) for text in implausible)


def _size(history: History, base: SiteConfig) -> Iterator[Doubt]:
    cores, most = base.machine.cores, most_at_once(history.jobs)
    if most > BEYOND * cores:
        what = f"{most} cores ran at once in the log, the configuration's machine has {cores}"
        yield Doubt(what, "the size of the machine", INSPECT)


def _dropped(history: History, base: SiteConfig) -> Iterator[Doubt]:
    lost = {reason: count for reason, count in history.reasons.items() if count and reason.startswith(TOO_LARGE)}
    dropped = sum(lost.values())
    jobs = dropped + len(history) + history.outside
    if not dropped or dropped < DROPPED * jobs:
        return
    listed = ", ".join(f"{count} {reason}" for reason, count in lost.items())
    most = max(lost, key=lost.__getitem__)
    causes = {
        "wider than the machine": f"the size of the machine, {base.machine.cores} cores in the configuration",
        "fits no queue": "queues that admit less than those of the site",
    }
    cause = causes.get(most, "limits that are stricter than those in force")
    yield Doubt(f"{dropped} of {jobs} jobs were dropped: the configuration cannot run them ({listed})", cause, INSPECT)


def _other_waits(near: Fidelity) -> str:
    recorded, simulated = near.real_mean + MINUTE, near.mean + MINUTE
    if recorded > FAR * simulated:
        return "limits, reservations or outages that held jobs and that the configuration lacks"
    if simulated > FAR * recorded:
        return "a larger machine than the configuration's, or limits that were not in force"
    return "another order of waiting jobs, or another setting of the scheduler"
