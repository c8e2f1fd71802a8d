"""From what jobs need beside cores to the arrays of the kernels."""

from __future__ import annotations

import numpy as np

from parsim.kernels import needs as kernel
from parsim.kernels.state import one
from parsim.needs import followers
from parsim.workload import Workload


def lay_out(workload: Workload, base: int, begin: int) -> kernel.Needs:
    """Lay out what jobs need that ascend by submit.

    Parameters
    ----------
    workload : Workload
    base : int
        Instant from which the kernels count.
    begin : int
        First instant at which anything is decided, counted from `base`.

    Returns
    -------
    Needs
    """
    n, quotas = len(workload), workload.quotas
    followed_from, following = followers(workload.after, n)
    jobs = np.concatenate([quota.rows for quota in quotas]) if quotas else np.empty(0, dtype=np.int64)
    numbers = np.repeat(np.arange(len(quotas), dtype=np.int32), [quota.rows.size for quota in quotas])
    amounts = np.concatenate([quota.amounts for quota in quotas]) if quotas else np.empty(0, dtype=np.int64)
    by_job = np.argsort(jobs, kind="stable")
    table = np.zeros(len(quotas), dtype=kernel.QUOTA)
    changes: list[tuple[int, int, int]] = []
    for k, quota in enumerate(quotas):
        steps = [(instant - base, k, then) for instant, then in quota.changes]
        table["most"][k] = next((then for instant, _, then in reversed(steps) if instant <= begin), quota.most)
        changes += [step for step in steps if step[0] > begin]
    return kernel.Needs(
        unmet=np.bincount(workload.after[:, 0], minlength=n).astype(np.int32),
        parked=np.zeros(n, dtype=np.bool_),
        followed_from=followed_from,
        following=following,
        wanted_from=np.searchsorted(jobs[by_job], np.arange(n + 1)),
        wanted=numbers[by_job],
        amounts=amounts[by_job],
        quotas=table,
        changes=np.array(sorted(changes), dtype=kernel.CHANGE),
        late=np.empty(n if workload.after.size else 0, dtype=np.int64),
        progress=one(kernel.NEEDED, changes=0, late=0),
    )


def again(needs: kernel.Needs) -> kernel.Needs:
    """Return a copy that a simulation may change."""
    return needs._replace(
        unmet=needs.unmet.copy(),
        parked=needs.parked.copy(),
        quotas=needs.quotas.copy(),
        late=np.empty_like(needs.late),
        progress=one(kernel.NEEDED, changes=0, late=0),
    )
