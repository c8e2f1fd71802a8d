"""Why a job waits now, in a few words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from qconf.prediction.present import Ahead


def reasons(found: Ahead, planned: NDArray[np.int64]) -> Iterator[str]:
    """Say for each job why it does not start at once; nothing of those that run."""
    w, state, system, now = found.present.workload, found.present.state, found.system, found.now
    running = state.start < now
    counts, cores = (np.bincount(w.queue[running], of, len(system.queues)) for of in (None, w.cores[running]))
    of_user: dict[tuple[int, int], list[int]] = {}
    for queue, user, size in zip(w.queue[running], w.user[running], w.cores[running], strict=True):
        of_user.setdefault((int(queue), int(user)), []).append(int(size))
    begins = ~running & (planned <= now)
    after, used = dict(w.after.tolist()), [int(q.amounts[running[q.rows]].sum()) for q in w.quotas]
    lacking = {
        row: f"limit: {quota.most} {quota.name}"
        for quota, taken in zip(w.quotas, used, strict=True)
        for row, amount in zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True)
        if taken + amount > quota.most
    }
    idle = max(0, found.idle(now) - int(w.cores[begins].sum()))
    for row, (size, walltime, q, user) in enumerate(
        zip(w.cores.tolist(), w.walltime.tolist(), w.queue.tolist(), w.user.tolist(), strict=True)
    ):
        queue, own = system.queues[q], of_user.get((q, user), []) if user >= 0 else []
        if running[row]:
            yield ""
        elif planned[row] <= now:
            yield "starts now"
        elif w.submit[row] > now:
            yield "asked to start later"
        elif row in after:
            yield f"waits for job {found.jobs[after[row]].job_id} to end"
        elif row in lacking:
            yield lacking[row]
        elif planned[row] >= found.unknown_from:
            yield "needs nodes that are down, their return is unknown"
        elif queue.max_run is not None and counts[q] >= queue.max_run:
            yield f"limit: {queue.max_run} running jobs of {queue.name}"
        elif queue.max_run_cores is not None and cores[q] + size > queue.max_run_cores:
            yield f"limit: {queue.max_run_cores} running cores of {queue.name}"
        elif queue.max_user_run is not None and len(own) >= queue.max_user_run:
            yield f"limit: {queue.max_user_run} running jobs of a user in {queue.name}"
        elif queue.max_user_cores is not None and user >= 0 and sum(own) + size > queue.max_user_cores:
            yield f"limit: {queue.max_user_cores} running cores of a user in {queue.name}"
        elif size > idle:
            yield f"needs {size} core{'s' * (size > 1)}, {idle} idle"
        elif any(now < each.begin < now + walltime for each in state.windows):
            yield "would run into a downtime or a reservation"
        elif system.mode not in ("shared", "multiqueue"):
            yield f"needs {size} core{'s' * (size > 1)} of those that {queue.name} may use"
        else:
            yield "would delay a job before it"
