"""Conservative backfilling: a job is promised a start when it is submitted, and no promise is ever broken.

References
----------
Mu'alem and Feitelson, IEEE TPDS 12(6), 2001, section 2.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np
from numba import njit

from parsim.kernels.layout import NEVER
from parsim.kernels.profile import Ints, change, fit, forget


@njit(cache=True, nogil=True)
def conservative(submit: Ints, cores: Ints, walltime: Ints, length: Ints, machine: int) -> tuple[Ints, Ints]:
    """Simulate conservative backfilling.

    A job that ends before its expected end gives the rest of its time back. Then each waiting job in turn, by
    submit, gives up its place and takes the earliest there is now, which is no later. A promise may then fall
    on an instant at which nothing else happens, so promises are events.

    Parameters
    ----------
    submit, cores, walltime, length : ndarray(int64), shape (n,)
        Ascending by submit; `length` is what each job really occupies its cores, at most its walltime.
    machine : int

    Returns
    -------
    start, promised : ndarray(int64), shape (n,)
        `promised` is the start that each job was told when it was submitted.
    """
    n = submit.size
    start = np.full(n, -1, np.int64)
    promised = np.empty(n, np.int64)
    planned = np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    running = np.empty(min(n, machine), np.int64)  # latest end first
    waits = 0
    runs = 0
    arriving = 0
    # Each running or waiting job has at most two ends of its own, and a change cuts twice before it joins.
    times = np.empty(2 * n + 4, np.int64)
    free = np.empty(2 * n + 4, np.int64)
    times[0] = 0
    free[0] = machine
    size = 1
    if n:
        times[0] = submit[0]
    while arriving < n or waits > 0 or runs > 0:
        now = NEVER if arriving == n else submit[arriving]
        if runs > 0:
            last = running[runs - 1]
            now = min(now, start[last] + length[last])
        for k in range(waits):
            now = min(now, planned[waiting[k]])
        size = forget(times, free, size, now)

        early = False
        while runs > 0 and start[running[runs - 1]] + length[running[runs - 1]] == now:
            runs -= 1
            job = running[runs]
            expected = start[job] + walltime[job]
            if expected > now:
                early = True
                size = change(times, free, size, now, expected, cores[job])
        if early:
            for k in range(waits):
                job = waiting[k]
                if planned[job] > now:
                    size = change(times, free, size, planned[job], planned[job] + walltime[job], cores[job])
                    i, _ = fit(times, free, size, 0, cores[job], walltime[job], NEVER)
                    planned[job] = times[i]
                    size = change(times, free, size, planned[job], planned[job] + walltime[job], -cores[job])

        while arriving < n and submit[arriving] == now:
            job = arriving
            i, _ = fit(times, free, size, 0, cores[job], walltime[job], NEVER)
            planned[job] = times[i]
            promised[job] = times[i]
            size = change(times, free, size, planned[job], planned[job] + walltime[job], -cores[job])
            waiting[waits] = job
            waits += 1
            arriving += 1

        kept = 0
        for k in range(waits):
            job = waiting[k]
            if planned[job] > now:
                waiting[kept] = job
                kept += 1
                continue
            start[job] = now
            place = runs
            while place > 0 and start[running[place - 1]] + length[running[place - 1]] < now + length[job]:
                running[place] = running[place - 1]
                place -= 1
            running[place] = job
            runs += 1
        waits = kept
    return start, promised
