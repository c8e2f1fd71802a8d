"""Check the schedules of planning disciplines."""

from __future__ import annotations

from parsim.model.schedule import Schedule
from parsim.model.state import State
from parsim.model.system import Queue, System
from parsim.model.workload import Workload
from parsim.planning.plan import Policy
from parsim.verify.columns import check_begun, check_times
from parsim.verify.running import Runs, check_capacity
from parsim.verify.starts import check_planned_starts
from parsim.verify.violation import Violation


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
        The one that it began with.

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
        state = state.without_queues()
        found = found or check_begun(schedule, state)
    found = found or [*check_capacity(Runs.of(workload, schedule, state), (cores,))]
    return found or [*check_planned_starts(workload, cores, policy, schedule, state)]
