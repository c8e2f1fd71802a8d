"""Jobs alike behind the first of their line, where limits hold jobs and the eligible time of those they hold stops.

All jobs of a line have the same limits. So these hold all of them or none, but for those behind a job that starts in a
pass while the first of the line stands before it. Of each job it is known for how much longer than the one before it
limits held it; numbers ("rule 5") refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.alike import NO_JOB
from parsim.kernels.state import NEVER, step


class Mates(NamedTuple):
    """The jobs of each line, one line after the other; all empty where no eligible time stops."""

    place: NDArray[np.int32]  # (n,): of each job
    job: NDArray[np.int32]  # (n,): at each place
    longer: NDArray[np.int64]  # (n,): seconds for which limits held it, less those of the one before it in its line
    sums: NDArray[np.int64]  # (n + 1,): of `longer`, as a binary indexed tree
    tail: NDArray[np.int64]  # (lines,): seconds for which limits held the last job of each line
    held: NDArray[np.int64]  # (lines,): instant from which its limits hold all of a line, or `NEVER`
    edge: NDArray[np.int32]  # (lines,): place from which on the last pass held jobs of a line, or `NO_JOB`
    passed: NDArray[np.int64]  # (1,): instant of that pass
    next_place: NDArray[np.int64]  # (lines + 1,): zeros, with which `order_mates` counts


def mates_of(n: int, lines: int) -> Mates:
    """Return what is known of n jobs, in so many lines, before any of them waits."""
    return Mates(
        place=np.empty(n, np.int32),
        job=np.empty(n, np.int32),
        longer=np.zeros(n, np.int64),
        sums=np.zeros(n + 1, np.int64),
        tail=np.zeros(lines, np.int64),
        held=np.full(lines, NEVER),
        edge=np.full(lines, NO_JOB),
        passed=np.zeros(1, np.int64),
        next_place=np.zeros(lines + 1, np.int64),
    )


NO_MATES = mates_of(0, 0)


@step
def order_mates(of, mates):
    """Lay out the jobs by line."""
    next_place = mates.next_place
    for j in range(mates.place.size):
        next_place[of[j] + 1] += 1
    for line in range(next_place.size - 1):
        next_place[line + 1] += next_place[line]
    for j in range(mates.place.size):
        mates.place[j] = next_place[of[j]]
        mates.job[next_place[of[j]]] = j
        next_place[of[j]] += 1


@step
def hold_longer(mates, place, seconds):
    """From a place on limits held the jobs of a line for so many seconds more."""
    mates.longer[place] += seconds
    k = place + 1
    while k < mates.sums.size:
        mates.sums[k] += seconds
        k += k & -k


@step
def held_before(mates, place):
    """Return the sum of `longer` up to a place."""
    total = np.int64(0)
    k = place + 1
    while k > 0:
        total += mates.sums[k]
        k -= k & -k
    return total


@step
def follow(mates, line, j, now):
    """Job j comes last in its line, where others wait; limits have held it for no time."""
    close_edge(mates, line, now)
    at_once = now - mates.held[line] if mates.held[line] != NEVER else 0  # counts for all others only
    hold_longer(mates, mates.place[j], -at_once - mates.tail[line])
    mates.tail[line] = -at_once


@step
def close_edge(mates, line, now):
    """Count the seconds for which the last pass held the jobs behind an edge, up to now."""
    if mates.edge[line] != NO_JOB:
        seconds = now - mates.passed[0]
        hold_longer(mates, mates.edge[line], seconds)
        mates.tail[line] += seconds
        mates.edge[line] = NO_JOB
