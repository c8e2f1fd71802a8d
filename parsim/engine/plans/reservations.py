"""Advance reservations: the list of jobs that start on shares of several partitions at once.

Names of rules refer to docs/reference/simulator.md.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section IV.A.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.resources.running import available
from parsim.engine.simulation import NEVER, UNKNOWN, comes_before, step
from parsim.engine.starts import make_head_job, start_spanning


@step
def start_or_reserve(s, j, now):
    """Start job j on its shares, or reserve these; return whether it starts (rule "shares of a reservation")."""
    c, shares = s.jobs[j].cores, s.shares[s.progress.spanning]
    instant = earliest(s, c, now)
    divide(s.idle, c, find_idle(s, instant), shares, s.usable)
    if instant > now:
        reserve(s, j, instant, shares)
        make_head_job(s, j, s.partitions.size - 1)
        return False
    start_spanning(s, j, now)
    return True


@step
def find_usable(s, j, now):
    """Set the partitions that job j may use, and return the sum of their cores (rule "usable partitions")."""
    cores = np.int64(0)
    for p in range(s.usable.size):
        first = first_starving(s, p, now)
        s.usable[p] = s.partitions[p].cores > 0 and (first == NEVER or not comes_before(s, first, j))
        if s.usable[p]:
            cores += s.partitions[p].cores
    return cores


@step
def first_starving(s, p, now):
    """Return the first submitted starving job whose home is partition p, or NEVER (rule "usable partitions")."""
    partition = s.partitions[p]
    if partition.first_starving == UNKNOWN:
        partition.first_starving = NEVER
        for i in range(partition.first, partition.first + partition.waiting):
            j = s.waiting.job[i]
            job = s.jobs[j]
            period = s.queues[job.queue].starvation
            if job.home == p and period < NEVER and job.submit + period <= now:
                if partition.first_starving == NEVER or comes_before(s, j, partition.first_starving):
                    partition.first_starving = j
                if not s.settings.alike:
                    break
    return partition.first_starving


@step
def earliest(s, need, now):
    """Return the first instant at which the usable partitions have `need` cores idle in total, by expected ends."""
    running, partitions = s.running, s.partitions
    cursor = s.idle
    total = np.int64(0)
    for p in range(cursor.size):
        cursor[p] = partitions[p].first_running
        if s.usable[p]:
            total += partitions[p].free
    t = now
    while total < need:
        best = -1
        for p in range(cursor.size):
            if s.usable[p] and cursor[p] < partitions[p].first_running + partitions[p].running:
                if best < 0 or running.keys[cursor[p]] < running.keys[cursor[best]]:
                    best = p
        t = running.keys[cursor[best]] >> s.settings.bits
        total += running.cores[cursor[best]]
        cursor[best] += 1
    return t


@step
def find_idle(s, instant):
    """Set the idle cores of each usable partition at this instant; return their sum (rule "beside a reservation")."""
    total = np.int64(0)
    for p in range(s.idle.size):
        partition = s.partitions[p]
        s.idle[p] = 0
        if s.usable[p]:
            s.idle[p] = available(
                s.running, partition.first_running, partition.running, partition.free, instant, s.settings.bits
            )
        total += s.idle[p]
    return total


@step
def divide(idle, need, total, shares, usable):
    """Divide `need` cores in proportion to `idle`, the rest to the most idle (rule "shares of a reservation")."""
    left = need
    for p in range(idle.size):
        shares[p] = need * idle[p] // total
        left -= shares[p]
    while left > 0:
        best = -1
        for p in range(idle.size):
            if usable[p] and (best < 0 or idle[p] > idle[best]):
                best = p
        shares[best] += 1
        left -= 1
        usable[best] = False


@step
def reserve(s, j, instant, shares):
    """Reserve shares of partitions for job j from an instant on (rule "beside a reservation")."""
    for p in range(shares.size):
        if shares[p] > 0:
            partition = s.partitions[p]
            partition.reserved_from = instant
            partition.reserved_until = instant + s.jobs[j].walltime
            partition.share = shares[p]
            partition.slack_alone = s.idle[p] - shares[p]
            partition.slack = partition.slack_alone
