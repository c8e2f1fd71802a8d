"""Head jobs as Slurm backfills: each queue of a shared machine has one, and a node stays idle for it.

With a reservation depth the first jobs of each list are its head jobs instead. The plans of all head jobs of a visit
count together, as amounts over time: of cores, or of the resources of each type of nodes. Names of rules refer to
docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.amounts import add_between, count_of, first_fit, first_place, idle_now
from parsim.engine.resources.node_types import hold_nodes, places_of
from parsim.engine.resources.typed_windows import give_back, idle_in_service, is_for
from parsim.engine.resources.windows import UNKNOWN_END, is_known
from parsim.engine.simulation import NEVER, step

ABSENT = NEVER + 1  #: in place of `begin` where no job of a queue waits


class HeadJobs(NamedTuple):
    """The plans of the head jobs of Q queues in the present visit.

    D amounts, of nodes of T types; S instants at which idle amounts may change.
    """

    begin: NDArray[np.int64]  # (Q,): begin of the plan of each queue's head job, `NEVER` without one, or `ABSENT`
    end: NDArray[np.int64]  # (Q,): its end
    keeps: NDArray[np.int64]  # (Q, D): amounts that stay idle for the head job now
    node: NDArray[np.int64]  # (T, D): amounts of a node of each type
    depth: np.int64  # most head jobs of a list, for which no node stays idle (rule "reservation depth"); else 0
    count: NDArray[np.int64]  # (1,): head jobs found
    out: NDArray[np.int64]  # (D,): amounts that windows take now from the job in question
    exempt: NDArray[np.bool_]  # (G, n): as `parsim.engine.resources.typed_windows.TypedWindows` has it
    takes: NDArray[np.int64]  # (W, D): as `TypedWindows` has it
    amounts: NDArray[np.int64]  # (A, D): of each place of jobs; without types of nodes, of each job
    times: NDArray[np.int64]  # (S,): instants, as `parsim.engine.resources.amounts` has them
    free: NDArray[np.int64]  # (S * D,): amounts idle from each instant on


@step
def queue_of(s, j):
    """Return the row of job j's plan: its queue on a shared machine, else 0."""
    return np.int64(s.jobs[j].queue) if s.settings.single_list else np.int64(0)


@step
def begin_heads(s, heads):
    """Remove the head jobs of all queues; a queue without waiting jobs cannot have one."""
    for k in range(heads.begin.size):
        heads.begin[k] = NEVER if not s.settings.single_list or s.queues[k].waiting > 0 else ABSENT


@step
def begin_visit(s, types, heads, p, now):
    """Write amounts idle over time on partition p, less those of windows known now; return the number of instants."""
    size = idle_in_service(s, heads, types, p, now)
    heads.count[0] = 0
    heads.out[:] = 0
    for k in range(heads.takes.shape[0]):
        take_out(s, heads, k, now, 1)
    return size


@step
def take_out(s, heads, k, now, sign):
    """Add `sign` times the amounts that window k takes now to those out of service."""
    if is_known(s.outages.windows[k], now) and s.outages.windows[k].begin <= now:
        for d in range(heads.out.size):
            heads.out[d] += sign * heads.takes[k, d]


@step
def lend(s, types, heads, size, j, now, sign):
    """Give job j the amounts of windows that it may use (`sign` 1), or undo that (-1; rule "windows of users")."""
    if heads.exempt.shape[0] == 0:
        return
    give_back(s, types, heads, size, j, now, sign)
    for k in range(heads.takes.shape[0]):
        if is_for(s, heads, k, j):
            take_out(s, heads, k, now, -sign)


@step
def places(types, j):
    """Return the first place of job j, and the one after its last; without types of nodes a job is its own place."""
    if types is None:
        return np.int64(j), np.int64(j) + 1
    return places_of(types, j)


@step
def take(s, types, heads, size, j, p, now):
    """Take a place of job j, if it may start there now; return whether it may, and the number of instants.

    Rules "node kept idle" and "places of head jobs".
    """
    end, starts = now + s.jobs[j].walltime, False
    row, last = places(types, j)
    lend(s, types, heads, size, j, now, 1)
    while row < last and not starts:
        starts = fits_now(s, types, heads, size, j, row, now) and leaves_kept(s, types, heads, row, p, end)
        row += not starts
    lend(s, types, heads, size, j, now, -1)
    if starts:
        size = add_between(types, heads, size, heads.amounts[row], now, end, -1)
        hold(types, j, p, row)
    return starts, size


@step
def fits_now(s, types, heads, size, j, row, now):
    """Whether job j fits at a place, a row of `amounts`, from now to its expected end."""
    length = s.jobs[j].walltime + np.int64(heads.depth == 0)  # its last second counts too
    return first_fit(types, heads, size, heads.amounts[row], length, now + 1) == 0


@step
def beside_head_jobs(types, heads, size, now):
    """Return two pairs (seconds, cores): a job that runs longer than the seconds may take at most the cores.

    The first instant has fewer than half of the cores idle that are idle now, the second has the fewest.
    """
    time, extra, slack_time, slack = NEVER, np.int64(0), NEVER, heads.free[0]
    if types is not None or heads.exempt.shape[0] > 0:
        return time, extra, slack_time, slack
    for k in range(size):
        if heads.free[k] < slack:
            slack_time, slack = heads.times[k] - now, heads.free[k]
            if time == NEVER and 2 * slack < heads.free[0]:
                time, extra = slack_time, slack
    return time, extra, slack_time, slack


@step
def keep_fitting(s, types, heads, size, m, now):
    """Keep those of the first m candidates that have a place which is idle for their walltime; return how many.

    The others cannot start later in the visit, since each start leaves less idle, with or without kept nodes.
    """
    kept = np.int64(0)
    for k in range(m):
        j, fits = np.int64(s.waiting.job[s.candidates[k]]), False
        first, last = places(types, j)
        lend(s, types, heads, size, j, now, 1)
        for row in range(first, last):
            fits = fits or fits_now(s, types, heads, size, j, row, now)
        lend(s, types, heads, size, j, now, -1)
        if fits:
            s.candidates[kept] = s.candidates[k]
            kept += 1
    return kept


@step
def hold(types, j, p, row):
    """Take a place of job j, where nodes are of several types."""
    if types is None:
        return
    hold_nodes(types, j, p, row)


@step
def place_of(types, j):
    """Return the place of running job j."""
    if types is None:
        return np.int64(j)
    return types.taken[j]


@step
def kinds_of_nodes(types, heads):
    """Return the number of types of nodes."""
    if types is None:
        return 1
    return heads.node.shape[0]


@step
def takes_of(types, heads, row, t):
    """Whether a place takes any amount of nodes of type t."""
    takes = False
    for d in range(count_of(types)):
        takes |= heads.node[t, d] > 0 and heads.amounts[row, d] > 0
    return takes


@step
def leaves_kept(s, types, heads, row, p, end):
    """Whether a job at a place until `end` leaves the amounts kept idle for head jobs, of the types that it takes."""
    for i in range(heads.begin.size):
        if heads.begin[i] > end:
            continue
        for t in range(kinds_of_nodes(types, heads)):
            if not takes_of(types, heads, row, t):
                continue
            for d in range(count_of(types)):
                if heads.node[t, d] == 0:
                    continue
                kept = heads.amounts[row, d]
                for k in range(heads.begin.size):
                    if heads.begin[k] <= heads.begin[i] < heads.end[k]:
                        kept += heads.keeps[k, d]
                if 0 < kept > idle_now(s, types, p, d) - heads.out[d]:
                    return False
    return True


@step
def is_wanted(s, heads, i):
    """Whether the job of entry i may become one more head job of the list."""
    if heads.depth > 0:
        return heads.count[0] < heads.depth
    return heads.begin[s.waiting.queue[i] if s.settings.single_list else 0] == NEVER


@step
def plan(s, types, heads, size, j, p, now):
    """Plan job j at the first instant at which it has a place; return whether it has one, and the number of instants.

    Rules "head jobs of queues" and "places of head jobs".
    """
    first, last = places(types, j)
    walltime = np.int64(s.jobs[j].walltime)
    lend(s, types, heads, size, j, now, 1)
    instant, row = first_place(types, heads, size, heads.amounts, first, last, walltime, UNKNOWN_END)
    lend(s, types, heads, size, j, now, -1)
    if row < 0:
        return False, size
    begin = heads.times[instant]
    heads.count[0] += 1
    if heads.depth == 0:
        k = queue_of(s, j)
        heads.begin[k], heads.end[k] = begin, begin + walltime
        for d in range(count_of(types)):
            heads.keeps[k, d] = 0
            for t in range(kinds_of_nodes(types, heads)):
                if takes_of(types, heads, row, t):
                    heads.keeps[k, d] += heads.node[t, d]
    return True, add_between(types, heads, size, heads.amounts[row], begin, begin + walltime, -1)


@step
def has_all_heads(heads):
    """Whether the list has all the head jobs that it can have."""
    return heads.count[0] == heads.depth if heads.depth > 0 else all_found(heads)


@step
def all_found(heads):
    """Whether every queue with waiting jobs has a head job."""
    found = True
    for k in range(heads.begin.size):
        found &= heads.begin[k] != NEVER
    return found


@step
def release_kept(s, types, heads, j, now):
    """Free nodes kept for head jobs after job j's end, of types that job j takes; return whether any were."""
    any_did, end = False, now + s.jobs[j].walltime
    row = place_of(types, j)
    for k in range(heads.begin.size):
        if end < heads.begin[k] < NEVER:
            for t in range(kinds_of_nodes(types, heads)):
                if takes_of(types, heads, row, t):
                    for d in range(count_of(types)):
                        if heads.node[t, d] > 0:
                            any_did |= heads.keeps[k, d] > 0
                            heads.keeps[k, d] = 0
    return any_did
