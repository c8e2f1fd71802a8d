"""Windows in which cores are out of service, and their changes to a profile of idle cores.

Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.profile import change
from parsim.engine.simulation import NEVER, routine, step

UNKNOWN_END = np.int64(2**60)  #: after all known ends; sums with durations are int64

#: A window, in instants: `known_end` is its end or, where the scheduler does not know that, `UNKNOWN_END`.
WINDOW = np.dtype(
    [
        ("begin", np.int64),
        ("end", np.int64),
        ("known_from", np.int64),
        ("known_end", np.int64),
        ("members", np.int64),  #: row of `Begun.exempt` of the jobs that may use it, -1 for none
    ],
    align=True,
)


class Outages(NamedTuple):
    """All windows of a simulation."""

    windows: NDArray[np.void]  # (W,) WINDOW, ascending by begin
    #: (W, V): cores that each window takes of each node; where nodes are not told apart, a partition is one node. Where
    #: totals of several types count, (W, P * D): amounts that each window takes of each partition.
    taken: NDArray[np.int64]
    instants: NDArray[np.int64]  # instants at which windows become known or end, ascending


@step
def is_known(window, now):
    """Whether a window is known now, and has not ended (rule "windows as plans")."""
    return window.known_from <= now < window.end


@step
def next_instant(instants, passed):
    """Return the first of `instants` after those `passed`, or NEVER."""
    return instants[passed] if passed < instants.size else NEVER


@routine
def apply_windows(profile, size, windows, taken, before, now):
    """Change a profile by the windows that became known or ended after `before`, up to `now` ("windows as plans").

    Returns
    -------
    size : int
        Of the profile.
    changed : bool
        Whether any window did.
    """
    changed = False
    for k in range(windows.size):
        window = windows[k]
        if before < window.known_from <= now < window.end:
            size = change(profile, size, max(now, window.begin), window.known_end, -taken[k, 0])
            changed = True
        elif window.known_from <= before < window.end <= now and window.known_end > now:
            size = change(profile, size, now, window.known_end, taken[k, 0])
            changed = True
    return size, changed
