"""Jobs that have been preempted: their tiers, their interruptions, and which running jobs may be preempted.

Where all queues have one tier the place of `Preempting` is None, for which numba leaves all of this out. Names of rules
refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.simulation import NEVER, PREEMPTED, TIER, routine, step

INTERRUPTION = np.dtype(
    [
        ("job", np.int64),
        ("begin", np.int64),
        ("end", np.int64),
        ("place", np.int64),  #: of the run that it ended; its first node where chunks are placed
    ],
    align=True,
)
PREEMPTIONS = np.dtype(
    [
        ("interruptions", np.int64),  #: so far; those beyond the room for them are counted only
        ("back", np.int64),  #: jobs preempted in this pass
        ("at", np.int64),  #: instant of the last preemption
        ("most", np.int64),  #: cores of the running jobs that may be preempted
    ],
    align=True,
)
# What becomes of the running jobs of a queue: they lose what they have done; keep it, and go on anywhere, or where they
# were (rules "same place again" and "same nodes again"); are not preempted.
LOSES, KEEPS, RETURNS, STAYS = range(4)


class Preempting(NamedTuple):
    """Tiers, interruptions and scratch."""

    tier: NDArray[np.int64]  # (Q,): of each queue, the rank among all tiers
    kind: NDArray[np.int64]  # (Q,): `LOSES`, `KEEPS`, `RETURNS` or `STAYS`
    cores: NDArray[np.int64]  # (tiers,): of the running jobs that may be preempted
    first: NDArray[np.int64]  # (n,): first start of each job, or -1
    last: NDArray[np.int64]  # (n,): its last interruption, or -1
    interruptions: NDArray[np.void]  # INTERRUPTION
    taken: NDArray[np.int32]  # running jobs that may be preempted, a heap, and behind it those taken
    back: NDArray[np.int32]  # jobs preempted in this pass
    progress: np.void  # PREEMPTIONS


@step
def above_groups(preempting, j, queue):
    """Return what job j's tier, and whether it has been preempted, add to its group (rule "order of tiers")."""
    if preempting is None:
        return np.int32(0)
    tier = np.int32(preempting.tier[queue] << TIER)
    return tier | PREEMPTED if preempting.last[j] >= 0 else tier


@step
def was_preempted(preempting, j):
    """Whether job j has been preempted."""
    if preempting is None:
        return False
    return preempting.last[j] >= 0


@step
def has_tiers(preempting):
    """Whether jobs may preempt others."""
    return preempting is not None


@step
def cores_below(preempting):
    """Cores of the running jobs that may be preempted."""
    if preempting is None:
        return np.int64(0)
    return preempting.progress.most


@routine
def begin_run(preempting, j, queue, cores, now):
    """Job j starts, or goes on."""
    if preempting is None:
        return
    count_preemptible(preempting, queue, cores)
    k = preempting.last[j]
    if k < 0:
        preempting.first[j] = now
    elif k < preempting.interruptions.size:
        preempting.interruptions[k].end = now


@step
def end_run(preempting, queue, cores):
    """Let a job end, or be interrupted."""
    if preempting is None:
        return
    count_preemptible(preempting, queue, -cores)


@step
def count_preemptible(preempting, queue, cores):
    """So many more cores run of the jobs of a queue."""
    if preempting.kind[queue] != STAYS:
        preempting.cores[preempting.tier[queue]] += cores
        preempting.progress.most += cores


@step
def next_return(preempting, now):
    """Return the second after a preemption if it is to come, or NEVER (rule "after a preemption")."""
    if preempting is None:
        return NEVER
    return preempting.progress.at + 1 if preempting.progress.at == now else NEVER
