"""Checks that a schedule is the one that its discipline gives.

Rules that need no replay are checked first, each in one pass over the columns: times, interruptions, cores, limits,
places. Then the starts are compared with those of the reference simulator, `parsim.naive`: only a replay shows which
job had to start at an instant. No kernel takes part.
"""

from __future__ import annotations

from collections.abc import Iterator

from parsim.model.schedule import Schedule
from parsim.model.state import State
from parsim.model.system import Queue, System
from parsim.model.workload import Workload
from parsim.naive.simulator import with_windows
from parsim.planning.plan import Policy
from parsim.verify.columns import check_begun, check_times, check_waits
from parsim.verify.interruptions import check_interruptions
from parsim.verify.running import (
    Runs,
    check_capacity,
    check_homes,
    check_limits,
    check_quotas,
    check_throttles,
    check_types,
)
from parsim.verify.starts import check_planned_starts, check_starts
from parsim.verify.violation import RULES, VerificationError, Violation

__all__ = [
    "RULES",
    "VerificationError",
    "Violation",
    "assert_schedule",
    "check_planned",
    "check_schedule",
]


def check_schedule(
    workload: Workload, system: System, schedule: Schedule, state: State | None = None
) -> list[Violation]:
    """Check a schedule of `workload` on `system`.

    First whole columns: times, placements, capacity, limits. If they are right, its starts are compared with those
    that the rules give, instant by instant. The disciplines are deterministic: any other schedule than the right
    one is reported.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
    state : State, optional
        The state that the schedule began with.

    Returns
    -------
    list of Violation
        Empty if all is right. Of the starts, the first that differs: what differs later may follow from it.

    See Also
    --------
    check_planned : the same for the disciplines of `parsim.plan`.
    """
    found = check_times(workload, system, schedule) or [*check_interruptions(workload, system, schedule)]
    if found:
        return found
    system, state = with_windows(workload, system, state)
    if state is not None and (found := check_begun(schedule, state)):
        return found
    return [*_check_running(workload, system, schedule, state)] or [*check_starts(workload, system, schedule, state)]


def _check_running(workload: Workload, system: System, schedule: Schedule, state: State | None) -> Iterator[Violation]:
    """Yield violations of what runs at any instant, without jobs of queues that have reservations."""
    runs = Runs.of(workload, schedule, state)
    found = [*check_waits(workload, schedule, state), *check_capacity(runs, system.partition_cores)]
    yield from found
    checks: list[Iterator[Violation]] = []
    if system.mode != "multiqueue":
        checks += [check_limits(runs, system), check_throttles(runs, system), check_quotas(runs)]
        checks += [check_types(runs, system)] if system.node_types else []
        checks += [] if any(wrong.rule == "placement" for wrong in found) else [check_homes(runs, system)]
    for check in checks:
        yield from check


def check_planned(
    workload: Workload, cores: int, policy: Policy, schedule: Schedule, state: State | None = None
) -> list[Violation]:
    """Check a schedule of `workload` on one machine of `cores` under a planning discipline.

    First whole columns: times and capacity. If they are right, its starts are compared with those that are planned
    for each instant. No promise of conservative backfilling may be broken.

    Parameters
    ----------
    workload : Workload
    cores : int
        Of the machine.
    policy : Policy
    schedule : Schedule
    state : State, optional
        The state that the schedule began with.

    Returns
    -------
    list of Violation
        Empty if all is right. Of the starts, the first that differs.

    References
    ----------
    Streit, HiPC 2001 and JSSPP 2004; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001 (conservative backfilling).
    """
    system = System(cores, (Queue(),) * (1 + int(workload.queue.max(initial=0))))
    found = check_times(workload, system, schedule)
    if state is not None:
        state = state.without_queue_reservations()
        found = found or check_begun(schedule, state)
    found = found or [*check_capacity(Runs.of(workload, schedule, state), (cores,))]
    return found or [*check_planned_starts(workload, cores, policy, schedule, state)]


def assert_schedule(workload: Workload, system: System, schedule: Schedule, state: State | None = None) -> None:
    """Raise if `check_schedule` finds a violation.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
    state : State, optional
        The state that the schedule began with.

    Raises
    ------
    VerificationError
        Lists the violations.
    """
    found = check_schedule(workload, system, schedule, state)
    if found:
        raise VerificationError(found)
