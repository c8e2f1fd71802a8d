"""Entries of the one list that limits of queues and users hold, by pieces of equal jobs."""

from __future__ import annotations

import numpy as np

from parsim.engine.fast.values import END, NOT_HELD, PASSED, settle, value_of
from parsim.engine.simulation import LONGEST, NEVER, apart, step


@step
def hold_line(s, i, now):
    """From now on limits hold the job of entry i, and all behind it that are alike."""
    s.waiting.held[i] = now
    if s.limits.stop_time:
        j, end = s.waiting.job[i], s.lines.last[s.lines.of[s.waiting.job[i]]]
        hold_from(s, j, now)
        while j != end:
            j = s.lines.following[j]
            hold_from(s, j, now)


@step
def hold_from(s, j, now):
    """From now on limits hold job j, if they do not already."""
    if s.since[j] == NEVER:
        s.since[j] = now


@step
def let_go(s, i, now):
    """Limits hold the job of entry i, and all behind it that are alike, no longer."""
    s.waiting.held[i] = NOT_HELD
    if s.limits.stop_time:
        j, end = s.waiting.job[i], s.lines.last[s.lines.of[s.waiting.job[i]]]
        count_held(s, j, now)
        while j != end:
            j = s.lines.following[j]
            count_held(s, j, now)
        s.waiting.origin[i] = s.origin[s.waiting.job[i]]


@step
def count_held(s, j, now):
    """Limits hold job j no longer, if they did."""
    if s.since[j] != NEVER:
        s.origin[j] += now - s.since[j]
        s.since[j] = NEVER


@step
def hold(s, last, now):
    """Hold the jobs that their limits leave no room now, and let go the others (rules 4 and 5).

    Returns
    -------
    least, any_holds : int, bool
        Least cores of a job not held; whether any of these may hold another if it is the head job.
    """
    waiting, limits = s.waiting, s.limits
    least = LONGEST
    any_holds = False
    for i in range(last):
        c = np.int64(waiting.cores[i])
        more, cores = what_is_left(limits, waiting.job[i])
        if more < 1 or cores < c:
            if waiting.held[i] == NOT_HELD:
                hold_line(s, i, now)
            continue
        if waiting.held[i] < NOT_HELD or (limits.stop_time and is_held_behind(s, i)):
            let_go(s, i, now)
        least = min(least, c)
        any_holds |= (more < 2) | (cores < 2 * c)
    return least, any_holds


@step
def is_held_behind(s, i):
    """Whether limits hold some behind the job of entry i that are alike: then they hold the last of these."""
    return s.since[s.lines.last[s.lines.of[s.waiting.job[i]]]] != NEVER


@step
def what_is_left(limits, j):
    """How many more jobs and cores the limits of job j allow."""
    own, users = limits.left[limits.rows[j, 0]], limits.left[limits.rows[j, 1]]
    return min(own.jobs, users.jobs), min(own.cores, users.cores)


@step
def change_left(s, j, sign):
    """Give back to the limits of job j what it counts, or take it."""
    for row in s.limits.rows[j]:
        left = s.limits.left[row]
        left.jobs += sign
        left.cores += sign * s.jobs[j].cores


@apart
def hold_behind(s, last, j, value, reserved, now):
    """From here on limits hold the jobs behind job j, of this value, that they leave no room."""
    waiting, limits, epoch = s.waiting, s.limits, s.epoch
    bounded = epoch.clock[END] >= 0
    for k in range(last):
        if bounded and waiting.value[k] >= value and not waiting.known[k]:
            settle(s, k, now)
        v = waiting.value[k]
        if v == PASSED and waiting.job[k] != reserved:
            continue
        more, cores = what_is_left(limits, waiting.job[k])
        if more < 1 or cores < waiting.cores[k]:
            if v > PASSED and is_behind(v, waiting.job[k], value, j):
                hold_line(s, k, now)
                waiting.value[k] = PASSED
            elif limits.stop_time:
                hold_mates(s, k, value, j, now)


@step
def is_behind(v, k, value, j):
    """Whether job k of value v goes behind job j of `value`."""
    return v < value or (v == value and k > j)


@step
def hold_mates(s, k, value, j, now):
    """From now on limits hold those that are alike with the job of entry k, which itself goes on, and go behind job j.

    They are the last of their line, since none of these passes another.
    """
    first = s.waiting.job[k]
    last = s.lines.last[s.lines.of[first]]
    if first == last:
        return
    low, high = np.int64(s.alike.place[first] + 1), np.int64(s.alike.place[last] + 1)
    edge, beyond = high, high - 1  # the first place behind job j lies between `low` and `edge`
    while low < edge:
        m = s.alike.members[beyond]
        behind = first == j or s.since[m] != NEVER
        if behind or is_behind(value_of(s, m, now - s.origin[m], now), m, value, j):
            edge = beyond
        else:
            low = beyond + 1
        beyond = (low + edge) // 2
    for place in range(edge, high):
        hold_from(s, s.alike.members[place], now)
