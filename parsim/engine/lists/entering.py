"""Lets submitted jobs enter the waiting lists once throttles admit them.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.engine.gates.counters import IN, OUT, REFUSED, count_entered, is_refused, may_enter
from parsim.engine.lists.waiting import add_waiting, note_held
from parsim.engine.resources.running import push_key
from parsim.engine.simulation import UNKNOWN, routine


@routine
def keep_out(s, gates, j):
    """Put job j, just submitted, among the jobs outside the lists; return False if no gate keeps any out."""
    if gates.is_out.size == 0:
        return False
    k = s.progress.outside
    gates.is_out[j] = OUT
    while k > 0 and gates.outside[k - 1] > j:
        gates.outside[k] = gates.outside[k - 1]
        k -= 1
    gates.outside[k] = j
    s.progress.outside += 1
    return True


@routine
def enter_lists(s, gates, now):
    """Let jobs outside the lists that gates admit now enter them, by submission (rule "admission to lists")."""
    progress = s.progress
    kept = np.int64(0)
    for i in range(progress.outside):
        j = np.int64(gates.outside[i])
        enters = may_enter(gates, j)
        if s.settings.track_held:
            note_held(s, j, now, not enters)
        if not enters:
            gates.outside[kept] = j
            kept += 1
            if is_refused(gates, j):
                gates.is_out[j] = REFUSED
            continue
        if gates.is_out[j] == REFUSED:
            s.submit_keys[j] += (now - (s.submit_keys[j] >> s.settings.bits)) << s.settings.bits
        gates.is_out[j] = IN
        count_entered(gates, j)
        home = s.jobs[j].home
        s.partitions[home].first_starving = UNKNOWN
        add_waiting(s, home, j, now)
        if home >= s.partitions.size - 2 or s.eligible_at.size == 0:
            continue
        if max(s.eligible_at[j], s.settings.begin) < now:  # its wake-up has come and gone
            push_key(s.wake_ups, progress.wake_ups, (now << s.settings.bits) | j)
            progress.wake_ups += 1
    progress.outside = kept
