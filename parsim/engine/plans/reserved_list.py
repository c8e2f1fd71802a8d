"""The list of jobs that start on shares of several partitions at once, by advance reservation.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.lists.waiting import STARTED, drop_started, note_held
from parsim.engine.plans.reservations import find_usable, start_or_reserve
from parsim.engine.plans.top_jobs import start_or_promise
from parsim.engine.simulation import step
from parsim.engine.starts import is_held


@step
def visit_reserved(s, plans, now):
    """Start reserved jobs; the first that must wait reserves its shares (rules of "advance reservation")."""
    partitions, settings, waiting = s.partitions, s.settings, s.waiting
    count = partitions.size - 1
    for p in range(count):  # the head job of this list counts in limits of jobs of its queue in others
        partitions[p].plan_stands &= not settings.limits
    last = partitions[count].first + partitions[count].waiting
    gone = last
    i = partitions[count].first
    while i < last:
        j = np.int64(waiting.job[i])
        i += 1
        held = settings.limits and is_held(s, j)
        if settings.track_held:
            note_held(s, j, now, held)
        if held and not settings.plans_limits:
            continue
        if find_usable(s, j, now) < s.jobs[j].cores or not start_reserved(s, s.running, plans, j, now):
            break
        waiting.job[i - 1] = STARTED
        gone = min(gone, i - 1)
    if settings.track_held:
        for k in range(i, last):
            note_held(s, waiting.job[k], now, False)
    if gone < last:
        drop_started(s, count, gone)


@step
def start_reserved(s, running, plans, j, now):
    """Start job j, or reserve its shares; return whether it starts."""
    if running is not None:
        return start_or_reserve(s, j, now)
    if plans is not None:
        return start_or_promise(s, plans, j, now)
    return False
