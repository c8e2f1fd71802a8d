"""Tiers of queues, interruptions of preempted jobs, and cores of the running jobs that may be preempted.

Where all queues have one tier, `Preempting` is None, so that numba leaves all of this out. Names of rules refer to
docs/reference/simulator.md.
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
        ("end", np.int64),  #: the next start of the job
        ("place", np.int64),  #: place of the run before it; its first node where chunks are placed on nodes
    ],
    align=True,
)
PREEMPTIONS = np.dtype(
    [
        ("interruptions", np.int64),  #: number of interruptions; those beyond the room for them are only counted
        ("back", np.int64),  #: number of jobs preempted in this pass
        ("at", np.int64),  #: instant of the last preemption
        ("most", np.int64),  #: cores of all running jobs that may be preempted
    ],
    align=True,
)
# What preemption does to the running jobs of a queue: they lose their work; keep it, and go on anywhere; keep it, and
# go on where they were (rules "same place again" and "same nodes again"); nothing, they are not preempted.
LOSES, KEEPS, RETURNS, STAYS = range(4)


class Preempting(NamedTuple):
    """Tiers, interruptions, and arrays for choosing jobs to preempt."""

    tier: NDArray[np.int64]  # (Q,): rank of each queue's tier among all tiers
    kind: NDArray[np.int64]  # (Q,): `LOSES`, `KEEPS`, `RETURNS` or `STAYS`
    cores: NDArray[np.int64]  # (tiers,): cores of the running jobs of each tier that may be preempted
    first: NDArray[np.int64]  # (n,): first start of each job, or -1
    last: NDArray[np.int64]  # (n,): its last interruption, or -1
    interruptions: NDArray[np.void]  # INTERRUPTION
    taken: NDArray[np.int32]  # heap of running jobs that may be preempted; those chosen are at the end
    back: NDArray[np.int32]  # jobs preempted in this pass
    progress: np.void  # PREEMPTIONS


@step
def above_groups(preempting, j, queue):
    """Return the bits of job j's group that its tier and a preemption set (rule "order of tiers")."""
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
def preemptible_cores(preempting):
    """Return the cores of all running jobs that may be preempted."""
    if preempting is None:
        return np.int64(0)
    return preempting.progress.most


@routine
def begin_run(preempting, j, queue, cores, now):
    """Record the first start of job j, or the end of its interruption."""
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
    """Subtract the cores of a job that ends or is interrupted from those that may be preempted."""
    if preempting is None:
        return
    count_preemptible(preempting, queue, -cores)


@step
def count_preemptible(preempting, queue, cores):
    """Add running cores of a queue to those that may be preempted."""
    if preempting.kind[queue] != STAYS:
        preempting.cores[preempting.tier[queue]] += cores
        preempting.progress.most += cores


@step
def next_return(preempting, now):
    """Return the second after now if a job was preempted now, else NEVER (rule "after a preemption")."""
    if preempting is None:
        return NEVER
    return preempting.progress.at + 1 if preempting.progress.at == now else NEVER
