"""Records since when limits of queues and users hold jobs of the one list, by lines of jobs alike."""

from __future__ import annotations

import numpy as np

from parsim.engine.fast.listed import NOT_HELD, USED, queue_room, room_of, what_is_left
from parsim.engine.fast.values import evaluate_entry, is_known, value_at, value_of
from parsim.engine.simulation import BLOCK, LONGEST, NEVER, routine, step


@step
def hold_line(s, i, now):
    """Record that limits hold the job of entry i, and all of its line, from now on."""
    s.waiting.held[i] = now
    s.directory.noted[np.int64(i) // BLOCK] = -1
    j, end = s.waiting.job[i], s.lines.last[s.lines.of[s.waiting.job[i]]]
    hold_from(s, j, now)
    while j != end:
        j = s.lines.following[j]
        hold_from(s, j, now)


@step
def hold_from(s, j, now):
    """Record that limits hold job j from now on, if they do not already."""
    if s.since[j] == NEVER:
        s.since[j] = now


@step
def let_go(s, i, now):
    """Record that limits hold the job of entry i, and all of its line, no longer."""
    s.waiting.held[i] = NOT_HELD
    j, end = s.waiting.job[i], s.lines.last[s.lines.of[s.waiting.job[i]]]
    stop_holding(s, j, now)
    while j != end:
        j = s.lines.following[j]
        stop_holding(s, j, now)
    s.waiting.origin[i] = s.origin[s.waiting.job[i]]


@step
def stop_holding(s, j, now):
    """Add the seconds for which limits held job j, if they did, to its `origin`."""
    if s.since[j] != NEVER:
        s.origin[j] += now - s.since[j]
        s.since[j] = NEVER


@step
def hold(s, now):
    """Record which waiting jobs limits hold now, and which they do not (rule "held by limits").

    Returns
    -------
    bool
        Whether some job that limits do not hold could, as head job, make them hold another.
    """
    waiting, limits, d = s.waiting, s.limits, s.directory
    any_holds = False
    for b in range(d.state[USED]):
        if d.room[b] > 0 and not any_holds:
            more, cores = what_is_left(limits, waiting.job[b * BLOCK])
            any_holds = more < 2 or cores < 2 * s.machine
        if d.room[b] == d.noted[b]:
            continue
        d.noted[b] = d.room[b]
        for i in range(b * BLOCK, b * BLOCK + d.count[b]):
            if waiting.cores[i] > d.room[b]:
                if waiting.held[i] == NOT_HELD:
                    hold_line(s, i, now)
                    d.noted[b] = d.room[b]
            elif waiting.held[i] < NOT_HELD or is_held_behind(s, i):
                let_go(s, i, now)
    return any_holds


@step
def is_held_behind(s, i):
    """Whether limits hold jobs behind the first of entry i's line: then they hold the last one."""
    return s.since[s.lines.last[s.lines.of[s.waiting.job[i]]]] != NEVER


@routine
def hold_behind(s, j, value, reserved, now):
    """Record the jobs behind job j, of this value, that limits hold since j counts; not job `reserved`."""
    waiting, limits, d = s.waiting, s.limits, s.directory
    whole_queue = queue_room(limits.left[limits.rows[j, 0]]) < LONGEST
    for b in range(d.state[USED]):
        row = limits.rows[waiting.job[b * BLOCK], 0] if whole_queue else limits.rows[waiting.job[b * BLOCK], 1]
        if row != limits.rows[j, 0 if whole_queue else 1]:
            continue
        room = room_of(limits, waiting.job[b * BLOCK])
        for k in range(b * BLOCK, b * BLOCK + d.count[b]):
            other = waiting.job[k]
            if waiting.cores[k] <= room or waiting.held[k] != NOT_HELD or (other == j and j != reserved):
                continue
            if waiting.bound[k] >= value and not is_known(s, k):
                evaluate_entry(s, k, now)
            if other != reserved and is_behind(value_at(s, k), other, value, j):
                hold_line(s, k, now)
            else:
                hold_rest_of_line(s, k, value, j, now)


@step
def is_behind(v, k, value, j):
    """Whether job k of value v goes behind job j of `value`."""
    return v < value or (v == value and k > j)


@step
def hold_rest_of_line(s, k, value, j, now):
    """Record that limits hold the jobs of entry k's line, except its first, that go behind job j.

    They are the last of the line, since no job passes another of its line.
    """
    first = s.waiting.job[k]
    last = s.lines.last[s.lines.of[first]]
    if first == last:
        return
    s.directory.noted[np.int64(k) // BLOCK] = -1
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
