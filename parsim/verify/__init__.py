"""Check whether a schedule is what its discipline demands.

The verifier applies the rules, and shares no code with the simulator.
"""

from __future__ import annotations

from parsim.schedule import Schedule
from parsim.system import System
from parsim.verify.columns import check_capacity, check_limits, check_times
from parsim.verify.lists import ListReplay
from parsim.verify.multiqueue import ClassReplay
from parsim.verify.queue_head_jobs import QueueHeadJobsReplay
from parsim.verify.rules import Jobs, reserves_for_queues
from parsim.verify.top_job import TopJobReplay
from parsim.verify.violation import RULES, VerificationError, Violation
from parsim.workload import Workload

__all__ = [
    "RULES",
    "VerificationError",
    "Violation",
    "assert_schedule",
    "check_schedule",
]


def check_schedule(workload: Workload, system: System, schedule: Schedule) -> list[Violation]:
    """Check a schedule of `workload` on `system`.

    First whole columns: times, placements, capacity, limits. If they are right, each pass is derived from the
    jobs that run and wait in the schedule, and compared with the starts that the schedule has at that
    instant. The disciplines are deterministic: any other schedule than the right one is reported.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule

    Returns
    -------
    list of Violation
        Empty if all is right. A pass is checked up to its first discrepancy.

    See Also
    --------
    parsim.verify.planned.check_planned : the same for the disciplines of `parsim.plan`.
    """
    found = check_times(workload, system, schedule)
    if found:
        return found
    found = check_capacity(schedule, system.partition_cores)
    if system.mode == "multiqueue":
        return found or ClassReplay(workload, system, schedule).run()
    found += check_limits(workload, system, schedule)
    if found:
        return found
    jobs = Jobs(workload, system, schedule)
    one_each = QueueHeadJobsReplay if reserves_for_queues(workload, system) else ListReplay
    replay = TopJobReplay if system.plans_top_job else one_each
    return list(jobs.misplaced()) or replay(jobs, system).run()


def assert_schedule(workload: Workload, system: System, schedule: Schedule) -> None:
    """Raise unless `check_schedule` finds nothing.

    Parameters
    ----------
    workload : Workload
    system : System
    schedule : Schedule

    Raises
    ------
    VerificationError
        Lists the violations.
    """
    found = check_schedule(workload, system, schedule)
    if found:
        raise VerificationError(found)
