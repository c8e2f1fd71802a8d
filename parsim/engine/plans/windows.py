"""Windows, such as maintenance, as plans of a pass: those that begin before a job could end.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.plans.rows import ROWS, has_plan, is_exempt, list_on
from parsim.engine.resources.nodes import add, add_shares, total
from parsim.engine.resources.windows import UNKNOWN_END
from parsim.engine.simulation import NEVER, routine, step


@step
def give_back(plans, j, moment, first, left, sign):
    """Add to `left`, of nodes from `first` on, the cores of windows for job j at a moment, or subtract them."""
    windows = plans.outages.windows
    for k in range(plans.near[0], plans.near[1]):
        window = plans.promises[plans.promises.size - windows.size + k]
        if window.job >= 0 and window.begin <= moment < window.end and is_exempt(plans, k, j):
            add(left, plans.taken[ROWS + k, first : first + left.size], sign)


@step
def shrink_window(s, plans, k, now):
    """Subtract from window k the cores of its jobs that ran before this pass (rule "windows of users")."""
    window = plans.outages.windows[k]
    if window.members < 0:
        return
    running, bits = plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    row, all_of_it = plans.taken[ROWS + k], plans.outages.taken[k]
    for node in range(row.size):
        row[node] = 0
    moment = max(now, window.begin)
    for i in range(s.progress.running - 1, -1, -1):
        if (running.keys[i] >> bits) <= moment:
            break
        j = running.keys[i] & low
        if plans.exempt[window.members, j] and s.start[j] < now:
            add_shares(plans.nodes, j, row)
    for node in range(row.size):
        row[node] = max(np.int32(all_of_it[node]) - row[node], np.int32(0))
    for q in range(s.usable.size):
        plans.takes[ROWS + k, q] = total(row[plans.nodes.first_node[q] : plans.nodes.first_node[q + 1]])


@step
def forget_windows(plans, now):
    """Remove the plans of windows when a pass begins: `plan_windows` plans those that a job can reach."""
    near, windows = plans.near, plans.outages.windows
    while near[0] < windows.size and windows[near[0]].end <= now:
        near[0] += 1
    near[1] = near[0]
    plans.loose[0] = False


@step
def plan_windows(s, plans, until, now):
    """Count the windows known now that begin before `until` as plans of this pass (rule "windows as plans")."""
    near, windows = plans.near, plans.outages.windows
    while near[1] < windows.size and windows[near[1]].begin < until:
        plan_window(s, plans, near[1], now)
        near[1] += 1


@routine
def plan_window(s, plans, k, now):
    """Count window k as a plan, if it is known now; all windows before it have been counted."""
    running, bits = plans.running, s.settings.bits
    low = (np.int64(1) << bits) - 1
    promises, lists, windows = plans.promises, s.partitions.size, plans.outages.windows
    window, own = windows[k], promises[lists + k]
    own.job = s.jobs.size + k if window.known_from <= now < window.end else -1
    own.begin = window.begin
    own.end = window.known_end if window.known_end < UNKNOWN_END else NEVER
    if own.job < 0:
        return
    plans.loose[0] = True
    shrink_window(s, plans, k, now)
    begin, taken, extra = own.begin, plans.taken[ROWS + k], plans.extra[ROWS + k]
    if begin <= now:
        return
    for node in range(extra.size):
        extra[node] = plans.nodes.idle[node] - taken[node]
    i = np.int64(0)
    while i < s.progress.running and (running.keys[i] >> bits) <= begin:
        add_shares(plans.nodes, running.keys[i] & low, extra)
        i += 1
    for before in range(plans.near[0], k):
        if promises[lists + before].job >= 0 and begin < promises[lists + before].end:
            add(extra, plans.taken[ROWS + before], -1)
            if promises[lists + before].begin == begin:
                add(plans.extra[ROWS + before], taken, -1)
    for q in range(s.usable.size):
        first, last = plans.nodes.first_node[q], plans.nodes.first_node[q + 1]
        for row in range(ROWS):
            if has_plan(plans, q, row):
                other = promises[list_on(plans, q, row)]
                if other.begin <= begin < other.end:
                    add(extra[first:last], plans.taken[row, first:last], -1)


@step
def next_end_of_window(s, plans, instant, following, now):
    """Return the first instant after `instant`, up to `following`, at which a window known now ends."""
    near, windows, lists = plans.near, plans.outages.windows, s.partitions.size
    k = near[0]
    while k < windows.size and (k < near[1] or windows[k].begin < following):
        plan_windows(s, plans, windows[k].begin + 1, now)
        own = plans.promises[lists + k]
        if own.job >= 0 and own.end > instant:
            following = min(following, own.end)
        k += 1
    return following
