"""Lays out dependencies of jobs, and changes of quotas, for the kernels."""

from __future__ import annotations

import numpy as np

from parsim.engine.gates import needs as kernel
from parsim.engine.simulation import one
from parsim.model.needs import followers
from parsim.model.workload import Workload


def lay_out(workload: Workload, base: int, begin: int) -> kernel.Needs:
    """Return the dependencies of jobs, and the changes of quotas, which are the first gates.

    Parameters
    ----------
    workload : Workload
        As `Prepared.workload` has it.
    base : int
        Instant from which the kernels count.
    begin : int
        First instant at which anything is decided, counted from `base`; only later changes count.

    Returns
    -------
    Needs
    """
    n, quotas = len(workload), workload.quotas
    followed_from, following = followers(workload.after, n)
    steps = [(instant - base, k, most) for k, quota in enumerate(quotas) for instant, most in quota.changes]
    return kernel.Needs(
        unmet=np.bincount(workload.after[:, 0], minlength=n).astype(np.int32),
        parked=np.zeros(n, dtype=np.bool_),
        followed_from=followed_from,
        following=following,
        changes=np.array(sorted(step for step in steps if step[0] > begin), dtype=kernel.CHANGE),
        late=np.empty(n if workload.after.size else 0, dtype=np.int64),
        progress=one(kernel.NEEDED, changes=0, late=0),
    )


def fresh(needs: kernel.Needs) -> kernel.Needs:
    """Return a copy that a simulation may change."""
    return needs._replace(
        unmet=needs.unmet.copy(),
        parked=needs.parked.copy(),
        late=np.empty_like(needs.late),
        progress=one(kernel.NEEDED, changes=0, late=0),
    )
