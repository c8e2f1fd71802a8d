"""Use of users and groups under a schedule, compared with their shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parsim.model.schedule import Schedule
from parsim.model.system import System
from parsim.model.workload import Column, Workload
from parsim.prepare.charges import rates
from parsim.prepare.fairshare import Tree, tree_of

MOST_INSTANTS = 2000  #: instants at which use is compared with shares; if there are more decays, several become one
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShareUse:
    """The share of a user or a group, and its use.

    Attributes
    ----------
    name : str
        Empty for the jobs without a user.
    is_user : bool
    share, use : float
        Means over time of its fraction of all shares and of all use; only shares of users who wait or have use count.
    distance : float
        Mean over time of the absolute difference of the two fractions.
    """

    name: str
    is_user: bool
    share: float
    use: float
    distance: float


def share_uses(
    workload: Workload, schedule: Schedule, system: System, counted: NDArray[np.bool_] | None = None
) -> list[ShareUse]:
    """Compare the use of every user and group with its share, at every decay while jobs are submitted.

    Parameters
    ----------
    workload : Workload
    schedule : Schedule
        Of that workload.
    system : System
        Whose shares count.
    counted : ndarray(bool), shape (n,), optional
        Jobs whose first and last submission bound the time of the comparison; all jobs are charged.

    Returns
    -------
    list of ShareUse
        Groups before their members; empty if no job has run before a decay.
    """
    if not len(workload):
        return []
    present, which = np.unique(workload.user, return_inverse=True)
    tree = tree_of(system.fairshare, tuple(map(workload.user_name, present.tolist())))
    nodes = np.array([tree.users[workload.user_name(user)] for user in present.tolist()])
    use, active = _over_time(workload, schedule, system, counted, nodes[which], len(tree.shares))
    if not use.size:
        return []
    shares = active * tree.share
    shares = _of_groups(shares / np.maximum(shares.sum(axis=1), 1e-300)[:, np.newaxis], tree)
    relative = _of_groups(use / use.sum(axis=1)[:, np.newaxis], tree)
    users = {*tree.users.values()}
    return [
        ShareUse(
            share.name,
            node in users,
            float(shares[:, node].mean()),
            float(relative[:, node].mean()),
            float(np.abs(relative[:, node] - shares[:, node]).mean()),
        )
        for node, share in enumerate(tree.shares)
        if node
    ]


def distance(found: list[ShareUse]) -> float:
    """Return the fraction of all use that users have beyond their shares, a mean over time.

    Parameters
    ----------
    found : list of ShareUse
        As `share_uses` returns them.

    Returns
    -------
    float
        From 0 to 1; NaN without users.
    """
    values = [each.distance for each in found if each.is_user]
    return sum(values) / 2 if values else np.nan


def _over_time(
    workload: Workload,
    schedule: Schedule,
    system: System,
    counted: NDArray[np.bool_] | None,
    node: Column,
    nodes: int,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the use of each user at each decay with any use, by tree node, and whether the user waits or has use.

    Both have shape (instants, nodes).
    """
    first, submit = int(workload.submit.min()), workload.submit[slice(None) if counted is None else counted]
    if not submit.size:
        return np.empty((0, nodes)), np.empty((0, nodes), dtype=np.bool_)
    period = system.fairshare.decay_time
    decays = max(1, (int(submit.max()) - first) // period)
    merged = -(-decays // MOST_INSTANTS)
    period, factor = period * merged, float(system.fairshare.decay_factor) ** merged
    steps = -(-decays // merged)
    charged = np.zeros((steps + 1, nodes))
    rate = np.zeros((steps + 1, nodes))
    rates_of, parts = rates(workload, system)
    by_job = rates_of / parts
    job, begin, end = schedule.runs
    for instant, sign in ((begin, 1.0), (end, -1.0)):
        step = np.minimum((instant - first) // period, steps)
        charge = sign * by_job[job]
        np.add.at(charged, (step, node[job]), charge * ((step + 1) * period - (instant - first)))
        np.add.at(rate, (step, node[job]), charge)
    running = np.cumsum(rate, axis=0)[:-1]
    charged[1:] += running * period
    use = np.zeros((steps, nodes))
    left = np.zeros(nodes)
    for k in range(steps):
        left = (left + charged[k]) * factor
        left[left < 1] = 0.0
        use[k] = left if factor else charged[k]
    total = use.sum(axis=1)
    seen = (total > 0) & (first + period * np.arange(1, steps + 1) >= submit.min())
    waiting = np.zeros((steps + 1, nodes))
    stops = schedule.interruptions
    for who, instant, sign in (
        (slice(None), workload.submit, 1),
        (slice(None), schedule.start, -1),
        (stops.job, stops.begin, 1),
        (stops.job, stops.end, -1),
    ):
        np.add.at(waiting, (np.minimum(-(-(instant - first) // period), steps), node[who]), sign)
    waits = np.cumsum(waiting, axis=0)[1:] > 0
    return use[seen], (use[seen] > 0) | waits[seen]


def _of_groups(relative: Floats, tree: Tree) -> Floats:
    """Return the values with those of users added to the groups above them."""
    found = relative.copy()
    for node in range(len(tree.shares) - 1, 0, -1):
        found[:, tree.parent[node]] += found[:, node]
    return found
