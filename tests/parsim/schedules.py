"""Small workloads and schedules, simulated and written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from parsim import simulate
from parsim.model.schedule import Schedule
from parsim.model.state import State
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.naive import NaiveSchedule
from parsim.verify import RULES, check_schedule
from tests import fuzz


def simulated(workload: Workload, system: System, state: State | None = None) -> Schedule:
    """Simulate, to a schedule that the verifier finds right."""
    found = simulate(workload, system, state)
    assert check_schedule(workload, system, found, state) == []
    return found


def starts(workload: Workload, system: System, state: State | None = None) -> list[int]:
    """Return the starts of `simulated`."""
    return simulated(workload, system, state).start.tolist()


def jobs(*rows: tuple[int, ...]) -> Workload:
    """Return a workload of (submit, cores, walltime[, runtime[, queue[, user]]])."""
    full = [(*row, *(row[2], 0, -1)[len(row) - 3 :]) for row in rows]
    submit, cores, walltime, runtime, queue, user = zip(*full, strict=True)
    return Workload(submit, cores, runtime, walltime, queue, user)


def schedule(
    workload: Workload, system: System, start: Sequence[int], placements: list[dict[str, int]] | None = None
) -> Schedule:
    """Return a schedule; a placement gives the cores by partition, by default all on the first."""
    names = system.partition_names
    whole = [{names[0]: 0}] * len(workload)
    return fuzz.schedule(workload, names, NaiveSchedule(list(start), placements or whole))


def violations(
    workload: Workload, system: System, start: Sequence[int], placements: list[dict[str, int]] | None = None
) -> list[tuple[str, int, int]]:
    """Return (rule, job, time) of each violation."""
    found = check_schedule(workload, system, schedule(workload, system, start, placements))
    assert all(violation.rule in RULES for violation in found)
    return [(violation.rule, violation.job, violation.time) for violation in found]
