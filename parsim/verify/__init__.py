"""Check whether a schedule is what its discipline demands.

The verifier applies the rules, and shares no code with the simulator.
"""

from __future__ import annotations

from parsim.schedule import Schedule
from parsim.state import State
from parsim.system import System
from parsim.verify.beginning import FOR_EVER, Beginning, misplaced, parts, schedule_of, with_windows
from parsim.verify.columns import check_begun, check_capacity, check_kept_off, check_limits, check_times
from parsim.verify.lists import ListReplay
from parsim.verify.multiqueue import ClassReplay
from parsim.verify.needs import check_came, check_quotas, plans_limits, waiting_at
from parsim.verify.node_types import PlacedReplay, TypedReplay, check_node_types
from parsim.verify.placed_head_jobs import PlacedHeadJobsReplay
from parsim.verify.preemption import (
    PlacedTierReplay,
    TierReplay,
    TypedTierReplay,
    by_run,
    check_interruptions,
)
from parsim.verify.queue_head_jobs import ManyHeadJobsReplay, QueueHeadJobsReplay
from parsim.verify.rules import Jobs, reserves_for_queues
from parsim.verify.top_job import TopJobReplay
from parsim.verify.typed_head_jobs import TypedHeadJobsReplay
from parsim.verify.typed_windows import TypedWindowsReplay
from parsim.verify.violation import RULES, VerificationError, Violation
from parsim.workload import Workload

__all__ = [
    "RULES",
    "VerificationError",
    "Violation",
    "assert_schedule",
    "check_schedule",
]


def check_schedule(
    workload: Workload, system: System, schedule: Schedule, state: State | None = None
) -> list[Violation]:
    """Check a schedule of `workload` on `system`.

    First whole columns: times, placements, capacity, limits. If they are right, each pass is derived from the
    jobs that run and wait in the schedule, and compared with the starts that the schedule has at that
    instant. The disciplines are deterministic: any other schedule than the right one is reported.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
    state : State, optional
        The one that it began with.

    Returns
    -------
    list of Violation
        Empty if all is right. A pass is checked up to its first discrepancy.

    See Also
    --------
    parsim.verify.planned.check_planned : the same for the disciplines of `parsim.plan`.
    """
    found = check_times(workload, system, schedule) or [*check_interruptions(workload, system, schedule)]
    if found:
        return found
    system, state = with_windows(workload, system, state)
    if state is None:
        return list(check_came(workload, schedule, FOR_EVER)) or _check(workload, system, schedule, None)
    found = check_begun(schedule, state)
    if found:
        return found
    present = waiting_at(workload, state)
    for part in parts(present, system, schedule, state):
        found += misplaced(part, system, schedule)
        late = check_came(present.take(part.rows), schedule_of(part.rows, schedule), part.beginning.until)
        found += [violation.at(part.rows) for violation in late]
        if found:
            break
        here = list(check_kept_off(part.workload, part.schedule)) or _check(
            part.workload, part.system, part.schedule, part.beginning
        )
        found += [violation.at(part.rows) for violation in here]
    return found


def _check(workload: Workload, system: System, schedule: Schedule, beginning: Beginning | None) -> list[Violation]:
    until = FOR_EVER if beginning is None else beginning.until
    running = set() if beginning is None else beginning.running
    row, runs, times = by_run(workload, schedule)
    over = [wrong.at(row) for wrong in check_capacity(times, system.partition_cores)]
    begun = (
        set() if system.is_whole or not system.node_types else running
    )  # by rule 79 they may have more than is there
    found = [wrong for wrong in over if wrong.time < until and wrong.job not in begun]
    if system.mode == "multiqueue":
        return found or ClassReplay(workload, system, schedule, beginning).run()
    over = [wrong.at(row) for wrong in (*check_limits(runs, system, times), *check_quotas(runs, times))]
    if system.node_types:
        over += [wrong.at(row) for wrong in check_node_types(runs, system, times)]
    found += [wrong for wrong in over if wrong.time < until and wrong.job not in running]
    if found:
        return found
    jobs = Jobs(workload, system, schedule)
    found = [wrong for wrong in jobs.misplaced() if wrong.job not in running]
    return found or replay_of(workload, system, beginning)(jobs, system, beginning).run()


def replay_of(workload: Workload, system: System, beginning: Beginning | None) -> type[ListReplay]:
    """Return what replays the waiting lists of a system; with windows all that is planned counts together."""
    if system.node_types and system.reserves_for_queues:
        return PlacedHeadJobsReplay if system.places_chunks else TypedHeadJobsReplay
    if reserves_for_queues(workload, system):
        return ManyHeadJobsReplay if system.reserves_for_many else QueueHeadJobsReplay
    windows = beginning is not None and any(window.end > beginning.state.begin for window in beginning.outages)
    if system.places_chunks:
        return PlacedTierReplay if system.has_tiers else PlacedReplay
    if system.node_types and system.has_tiers:
        return TypedTierReplay
    if system.node_types:
        return TypedWindowsReplay if windows else TypedReplay
    if system.has_tiers:
        return TierReplay
    plans = system.plans_top_job or plans_limits(workload.quotas, system)
    return TopJobReplay if plans or windows else ListReplay


def assert_schedule(workload: Workload, system: System, schedule: Schedule, state: State | None = None) -> None:
    """Raise unless `check_schedule` finds nothing.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule
    state : State, optional
        The one that it began with.

    Raises
    ------
    VerificationError
        Lists the violations.
    """
    found = check_schedule(workload, system, schedule, state)
    if found:
        raise VerificationError(found)
