"""What jobs need beside cores, as the replays see it: when they came, and what they have of quotas.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from parsim.needs import Quota
from parsim.schedule import Schedule
from parsim.state import State
from parsim.system import System
from parsim.verify.violation import Violation
from parsim.workload import Workload


def came(workload: Workload, end: Iterable[int]) -> list[int]:
    """Rule 40: when each job was submitted and all that it waits for had ended."""
    ends = list(end)
    found: list[int] = workload.submit.tolist()
    for job, other in workload.after.tolist():
        found[job] = max(found[job], ends[other])
    return found


def waiting_at(workload: Workload, state: State) -> Workload:
    """Rule 40: the jobs as they are at the begin of a state, waiting for those only that have not ended."""
    if not workload.after.size:
        return workload
    started, length = state.start.tolist(), workload.effective_runtime.tolist()
    submit, after = workload.submit.tolist(), []
    for job, other in workload.after.tolist():
        if started[job] < state.begin:
            continue
        if started[other] < state.begin and started[other] + length[other] <= state.begin:
            submit[job] = max(submit[job], started[other] + length[other])
        else:
            after.append((job, other))
    return replace(workload, submit=np.array(submit), after=np.array(after, dtype=np.int64))


def check_came(workload: Workload, schedule: Schedule, until: int) -> Iterator[Violation]:
    """Check that no job starts before those that it waits for have ended, and that its submit says so."""
    if not workload.after.size:
        return
    start, submit = schedule.start.tolist(), schedule.submit.tolist()
    for job, instant in enumerate(came(workload, schedule.end.tolist())):
        if start[job] < min(until, instant):
            yield Violation("submit", job, start[job], f"starts before {instant}, when all that it waits for had ended")
        elif start[job] < until and submit[job] != instant:
            yield Violation("job", job, start[job], f"came at {instant}, not at {submit[job]}")


def there_is(quota: Quota, now: int) -> int:
    """Rule 42: how much of a quota there is at an instant."""
    most = quota.most
    for instant, then in quota.changes:
        if instant <= now:
            most = then
    return most


def plans_limits(quotas: Sequence[Quota], system: System) -> bool:
    """Whether a job that its limits or a quota hold may be a head job."""
    return system.plans_limits or (bool(quotas) and system.held_jobs == "reserve")


def check_quotas(workload: Workload, schedule: Schedule) -> Iterator[Violation]:
    """Yield the first start that takes more of a quota than there is, for each."""
    for quota in workload.quotas:
        events = []
        for row, amount in zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True):
            events += [(int(schedule.end[row]), 0, row, -amount), (int(schedule.start[row]), 1, row, amount)]
        used = 0
        for instant, starts, row, amount in sorted(events):
            used += amount
            if starts and used > there_is(quota, instant):
                yield Violation("limit", row, instant, f"brings {quota.name} to {used}, of {there_is(quota, instant)}")
                break
