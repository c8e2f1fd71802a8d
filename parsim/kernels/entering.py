"""Which of the submitted jobs enter the waiting lists, where throttles keep some out.

Numbers ("rule 43") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

import numpy as np

from parsim.kernels.running import push_key
from parsim.kernels.state import UNKNOWN, routine, step
from parsim.kernels.throttles import count_entered, may_enter
from parsim.kernels.waiting import add_waiting, note_held


@step
def keep_out(s, j):
    """Job j, which is submitted, is in no list yet."""
    s.throttles.is_out[j] = True
    s.throttles.outside[s.progress.outside] = j
    s.progress.outside += 1


@routine
def enter_lists(s, now):
    """Let the jobs enter their lists that throttles keep out no longer, in the order of their submission (rule 43)."""
    throttles, progress = s.throttles, s.progress
    kept = np.int64(0)
    for i in range(progress.outside):
        j = np.int64(throttles.outside[i])
        enters = may_enter(throttles, j)
        if s.settings.track_held:
            note_held(s, j, now, not enters)
        if not enters:
            throttles.outside[kept] = j
            kept += 1
            continue
        throttles.is_out[j] = False
        count_entered(throttles, j)
        home = s.jobs[j].home
        s.partitions[home].first_starving = UNKNOWN
        add_waiting(s, home, j, now)
        if home >= s.partitions.size - 2 or s.eligible_at.size == 0:
            continue
        if max(s.eligible_at[j], s.settings.begin) < now:  # its wake-up has come and gone
            push_key(s.wake_ups, progress.wake_ups, (now << s.settings.bits) | j)
            progress.wake_ups += 1
    progress.outside = kept
