"""Lays out the tree of shares for the kernels: its nodes, and the node of each job's user (rule "tree of shares")."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine import fairshare as kernel
from parsim.model.fairshare import ACTIVE_NAME, FAIRSHARE, UNKNOWN, Fairshare, Share
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.prepare.charges import rates

_ROWS = {
    "fairshare_tree_usage": kernel.TREE_USAGE,
    "fairshare_factor": kernel.FACTOR,
    "fairshare_target": kernel.TARGET,
    ACTIVE_NAME: kernel.ACTIVE,
}
_BOUNDS = {"target": (-np.inf, np.inf), "floor": (0.0, np.inf), "ceiling": (-np.inf, 0.0)}


class Tree(NamedTuple):
    """The nodes of a tree of shares, each group before its members; the first is the root.

    Attributes
    ----------
    shares : tuple of Share
    parent : ndarray(int64), shape (k,)
    part, share : ndarray(float64), shape (k,)
        Fraction of the shares of its group, and of the whole tree.
    users : dict of str to int
        The node of each user.
    """

    shares: tuple[Share, ...]
    parent: NDArray[np.int64]
    part: NDArray[np.float64]
    share: NDArray[np.float64]
    users: dict[str, int]

    def path(self, node: int) -> list[int]:
        """Return the nodes from below the root down to a node."""
        return [*self.path(int(self.parent[node])), node] if node else []


@lru_cache(maxsize=256)
def tree_of(fairshare: Fairshare, present: tuple[str, ...]) -> Tree:
    """Return the tree with the users in `present`, who have jobs; jobs without a user have the empty name."""
    groups = {share.group for share in fairshare.shares}
    listed = {share.name for share in fairshare.shares} - groups
    others = [user for user in present if user not in listed]
    rows = list(fairshare.shares)
    if rows and others:
        rows.append(Share(UNKNOWN, fairshare.unknown_shares))
    below: dict[str, list[tuple[Share, bool]]] = {}
    for share in rows:
        below.setdefault(share.group, []).append((share, share.name in groups or share.name == UNKNOWN))
    for user in others:
        below.setdefault(UNKNOWN if rows else "", []).append((Share(user), False))

    shares, parent, part, of_all = [Share("")], [-1], [1.0], [1.0]
    users: dict[str, int] = {}
    unfolded = [(0, "")]
    for above, group in unfolded:
        total = sum(share.shares for share, _ in below.get(group, ()))
        for share, is_group in below.get(group, ()):
            if is_group:
                unfolded.append((len(shares), share.name))
            else:
                users[share.name] = len(shares)
            parent.append(above)
            part.append(share.shares / total if total else 0.0)
            of_all.append(of_all[above] * part[-1])
            shares.append(share)
    return Tree(tuple(shares), np.array(parent), np.array(part), np.array(of_all), users)


def lay_out(
    system: System, workload: Workload, present: tuple[str, ...], user: NDArray[np.int64], *, first: int, begin: int
) -> tuple[kernel.Fair, NDArray[np.float64]]:
    """Return the tree for a kernel, and the share of each job's user, from 0 to 1; shape (n,).

    Parameters
    ----------
    system : System
    workload : Workload
    present : tuple of str
        Names of the users who have jobs.
    user : ndarray(int64), shape (n,)
        Index of each job's user in `present`.
    first : int
        Column of the formula that has the first value of users.
    begin : int
        Instant from which jobs are charged.
    """
    fairshare, formula = system.fairshare, system.formula
    tree = tree_of(fairshare, present)
    of_user = np.array([tree.users[name] for name in present], dtype=np.int32)
    paths = [tree.path(node) for node in tree.users.values()]
    depth = max(map(len, paths))
    rank = kernel.RANK if fairshare.fair_share == "tree" else kernel.FACTOR
    if formula is None:
        reads = [kernel.RANK if depth > 1 else kernel.TURN] if system.order == FAIRSHARE else []
    else:
        reads = [_ROWS.get(name, rank) for name in formula.uses]
    k = len(tree.shares)
    nodes = np.zeros(k, dtype=kernel.NODE)
    nodes["parent"], nodes["share"], nodes["part"] = tree.parent, tree.share, tree.part
    nodes["at"], nodes["decay"], nodes["passed"] = begin, begin + fairshare.decay_time, -1
    nodes["target"] = [np.nan if share.target is None else share.target for share in tree.shares]
    nodes["low"], nodes["high"] = np.array([_BOUNDS[share.bound] for share in tree.shares]).T
    row = np.full(k, -1, dtype=np.int32)
    row[[*tree.users.values()]] = np.arange(len(paths))
    rate, parts = rates(workload, system)
    fair = kernel.Fair(
        user=of_user[user] if reads else NO_FAIR.user,
        rate=rate,
        nodes=nodes,
        paths=np.array([path + [-1] * (depth - len(path)) for path in paths], dtype=np.int32),
        row=row,
        values=np.empty((kernel.ACTIVE + 1, k)),
        at=np.full(k, -1, dtype=np.int64),
        ratio=np.empty(k),
        ratios_at=np.full(1, -1, dtype=np.int64),
        way=np.empty(depth, dtype=np.int64),
        reads=np.array(reads, dtype=np.int64),
        first=np.int64(first),
        begin=np.int64(begin),
        period=np.int64(fairshare.decay_time),
        factor=np.float64(fairshare.decay_factor),
        least=np.float64(parts),
        ranked=np.bool_(kernel.RANK in reads),
    )
    return fair, tree.share[of_user][user]


_NOTHING = np.empty(0)
#: The tree where no order reads values of users.
NO_FAIR = kernel.Fair(
    user=np.empty(0, dtype=np.int32),
    rate=np.empty(0, dtype=np.int64),
    nodes=np.empty(0, dtype=kernel.NODE),
    paths=np.empty((0, 0), dtype=np.int32),
    row=np.empty(0, dtype=np.int32),
    values=np.empty((0, 0)),
    at=np.empty(0, dtype=np.int64),
    ratio=_NOTHING,
    ratios_at=np.empty(0, dtype=np.int64),
    way=np.empty(0, dtype=np.int64),
    reads=np.empty(0, dtype=np.int64),
    first=np.int64(0),
    begin=np.int64(0),
    period=np.int64(1),
    factor=np.float64(1),
    least=np.float64(1),
    ranked=np.bool_(False),
)
