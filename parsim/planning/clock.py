"""The clock of the planning kernels: the instants at which jobs are submitted and end, and windows begin and end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.resources.profile import change, forget
from parsim.engine.resources.running import last_instant, pop_key, push_key
from parsim.engine.resources.windows import Outages, next_instant
from parsim.engine.simulation import NEVER, step

AT = np.dtype(
    [
        ("now", np.int64),  #: the present instant
        ("before", np.int64),  #: that of the event before
        ("arriving", np.int64),  #: the job that is submitted next
        ("running", np.int64),  #: number of running jobs
        ("passed", np.int64),  #: number of `outages.instants` that have passed
    ],
    align=True,
)


class Clock(NamedTuple):
    """The jobs of a simulation, and when they start; `parsim.prepare.packing.pack_clock` makes it."""

    jobs: NDArray[np.void]  # (n,) JOB: ascending by submit after those that run when the simulation begins
    start: NDArray[np.int64]  # (n,): -1 until a job starts, and if the loop left the instants that keys hold before
    ends: NDArray[np.int64]  # heap of keys: the end of each running job, and the job
    bits: int  # number of low bits of a key that hold a job
    begin: int  # first instant at which anything is decided
    machine: int  # cores; no job is wider
    outages: Outages
    at: np.void  # AT


@step
def advance(clock, waits, soonest):
    """Go to the next event, at most `soonest`; return False without one, or if no jobs wait (`waits`), run, come."""
    at, jobs = clock.at, clock.jobs
    comes = at.arriving < jobs.size
    if not (comes or waits > 0 or at.running > 0):
        return False
    now = max(clock.begin, np.int64(jobs[at.arriving].submit)) if comes else NEVER
    if at.running > 0:
        now = min(now, clock.ends[0] >> clock.bits)
    now = min(now, soonest, next_instant(clock.outages.instants, at.passed))
    if now > last_instant(clock.bits):
        return False
    while next_instant(clock.outages.instants, at.passed) <= now:
        at.passed += 1
    at.before = at.now
    at.now = now
    return True


@step
def next_ended(clock):
    """Return a running job that ends now, which no longer runs, or -1."""
    at = clock.at
    if at.running == 0 or (clock.ends[0] >> clock.bits) != at.now:
        return np.int64(-1)
    j = clock.ends[0] & ((np.int64(1) << clock.bits) - 1)
    pop_key(clock.ends, at.running)
    at.running -= 1
    return j


@step
def next_submitted(clock):
    """Return the next job that is submitted by now, or -1."""
    at = clock.at
    if at.arriving == clock.jobs.size or clock.jobs[at.arriving].submit > at.now:
        return np.int64(-1)
    at.arriving += 1
    return at.arriving - 1


@step
def begin_job(clock, j):
    """Start job j now."""
    clock.start[j] = clock.at.now
    run(clock, j)


@step
def run(clock, j):
    """Count job j, which has started, among the running jobs."""
    push_key(clock.ends, clock.at.running, ((clock.start[j] + clock.jobs[j].runtime) << clock.bits) | j)
    clock.at.running += 1


@step
def resume(clock, idle):
    """Count the jobs that run when the simulation begins; write the cores idle beside them, and return the size."""
    idle.times[0], idle.free[0] = 0, clock.machine
    size = np.int64(1)
    for j in range(clock.at.arriving):
        run(clock, j)
        size = take(clock, idle, size, j)
    return forget(idle, size, clock.begin)


@step
def expected_end(clock, j):
    """Return the instant at which the walltime of job j, which has started, is over."""
    return clock.start[j] + clock.jobs[j].walltime


@step
def take(clock, idle, size, j):
    """Take the cores of job j, which has started, from a profile until its expected end; return the profile's size."""
    return change(idle, size, clock.start[j], expected_end(clock, j), -np.int64(clock.jobs[j].cores))


@step
def give_back(clock, idle, size, j):
    """Give the cores of job j, which ends, back to a profile until its expected end; return the profile's size."""
    now, end = clock.at.now, expected_end(clock, j)
    return change(idle, size, now, end, np.int64(clock.jobs[j].cores)) if end > now else size
