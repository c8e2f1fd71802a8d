"""Finds the home list of each job, and the instant from which it may enter the pool, before the event loop."""

from __future__ import annotations

import numpy as np

from parsim.engine.compile.compiled import on_disk


@on_disk
def find_homes(jobs, partition_cores, single_list, entries):
    """Set the home of each job, and add the number of jobs of each home to `entries`, shape (P + 1,) ("home list")."""
    pool = partition_cores.size - 1
    for job in jobs:
        home = 0
        if not single_list:
            home = job.queue
            if job.cores > partition_cores[home]:
                home = pool if job.cores <= partition_cores[pool] else pool + 1
        job.home = home
        entries[home] += 1


@on_disk
def find_eligible(jobs, bounds, fractions, pool, widest, latest, eligible_at):
    """Set the instants `eligible_at` from which jobs may enter the pool; return how many may (rule "pool eligibility").

    `bounds`: each queue's maximum walltime. `fractions`, shape (Q, 2): numerator and denominator of threshold over
    priority, 0 for no delay. `widest`: most cores of such a job. `latest`: longest delay, seconds.
    """
    count = 0
    for j in range(jobs.size):
        job = jobs[j]
        if job.home < pool and job.cores <= widest:
            numerator, denominator = fractions[job.queue, 0], fractions[job.queue, 1]
            count += 1
            eligible_at[j] = job.submit
            if numerator > 0:
                seconds = min(np.int64(job.walltime), bounds[job.queue])
                eligible_at[j] += min(seconds * numerator // denominator + 1, latest)
    return count
