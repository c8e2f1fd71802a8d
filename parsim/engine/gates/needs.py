"""Dependencies of jobs on the ends of others, and changes of quotas.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.preempt.preempting import was_preempted
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.simulation import LONGEST, NEVER, step

#: A change of a quota, which has the amount `most` from the instant on.
CHANGE = np.dtype([("instant", np.int64), ("gate", np.int64), ("most", np.int64)], align=True)
#: Progress of a simulation in `Needs`.
NEEDED = np.dtype(
    [
        ("changes", np.int64),  #: number of changes that have taken place
        ("late", np.int64),  #: number of keys in `late`
    ],
    align=True,
)


class Needs(NamedTuple):
    """Dependencies of jobs, and changes of quotas; `followed_from` is where each job's entries in `following` begin."""

    unmet: NDArray[np.int32]  # (n,): number of jobs that each job still waits for
    parked: NDArray[np.bool_]  # (n,): whether a job was submitted while it waited for others
    followed_from: NDArray[np.int64]  # (n + 1,)
    following: NDArray[np.int32]  # the jobs that wait for each job
    changes: NDArray[np.void]  # CHANGE, ascending
    late: NDArray[np.int64]  # heap of keys: when jobs that waited for others starve
    progress: np.void  # NEEDED


@step
def next_change(needs):
    """Return the instant of the next change of a quota, or NEVER."""
    k = needs.progress.changes
    return needs.changes[k].instant if k < needs.changes.size else NEVER


@step
def change_quotas(needs, gates, now):
    """Apply the changes of quotas up to this instant (rule "changes of quotas")."""
    while next_change(needs) <= min(now, NEVER - 1):
        change = needs.changes[needs.progress.changes]
        gates.each[change.gate].max_run_amount = change.most
        needs.progress.changes += 1


@step
def waits_for_others(needs, j):
    """Whether job j, just submitted, waits for others to end, and is parked (rule "dependencies of jobs")."""
    waits = needs.unmet[j] > 0
    if waits:
        needs.parked[j] = True
    return waits


@step
def was_parked(needs, j):
    """Whether job j waited for others when it was submitted."""
    return needs.parked[j]


@step
def resubmit(s, needs, j, now):
    """Set the submission of job j to now, when the last job that it waited for has ended."""
    job = s.jobs[j]
    if s.eligible_at.size > 0 and s.eligible_at[j] < NEVER:
        s.eligible_at[j] += now - job.submit
    job.submit = min(now, LONGEST)  # the most that the table can hold
    starving = now + s.queues[job.queue].starvation
    if s.settings.starvation and starving <= last_instant(s.settings.bits):
        push_key(needs.late, needs.progress.late, (starving << s.settings.bits) | j)
        needs.progress.late += 1
        s.progress.next_starving = min(s.progress.next_starving, starving)


@step
def pop_late(s, needs, now):
    """Remove from the heap a job that waited for others and starves by now; return it, or -1."""
    if soonest_late(s, needs) > now:
        return np.int64(-1)
    j = needs.late[0] & ((np.int64(1) << s.settings.bits) - 1)
    pop_key(needs.late, needs.progress.late)
    needs.progress.late -= 1
    return j


@step
def soonest_late(s, needs):
    """Return the instant at which the next job starves that waited for others and has not started, or NEVER."""
    low = (np.int64(1) << s.settings.bits) - 1
    while needs.progress.late > 0 and (
        s.start[needs.late[0] & low] >= 0 or was_preempted(s.preempting, needs.late[0] & low)
    ):
        pop_key(needs.late, needs.progress.late)
        needs.progress.late -= 1
    return needs.late[0] >> s.settings.bits if needs.progress.late > 0 else NEVER
