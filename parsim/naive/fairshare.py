"""Fair share of the reference simulator: each pass sums the usage of all jobs that ran since the last decay.

Names of rules refer to ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from parsim.model.fairshare import Fairshare
from parsim.model.system import Queue, System

NAMES = ("fairshare_perc", "fairshare_tree_usage", "fairshare_factor", "fair_share", "fairshare_target", "active_jobs")


class Charge(NamedTuple):
    """The charge of one run of a job, up to its real end."""

    user: str
    begin: int
    end: int
    rate: Fraction


def rate_of(system: System, queue: Queue, usage_factor: float, takes: Callable[[str], int]) -> Fraction:
    """Rule "charges and decay": the charge per second of a job; `takes` gives its amount of a resource."""
    charges = dict(queue.charges or system.fairshare.charges) or {"cores": 1}
    weighted = [Fraction(str(weight)) * takes(name) for name, weight in charges.items()]
    rate = max(weighted) if system.fairshare.charged == "max" else sum(weighted)
    rate *= Fraction(str(usage_factor))
    return Fraction(round(65536 * rate), 65536)


class Node(NamedTuple):
    """A user or group in the tree of shares."""

    group: tuple[str, ...]  # its parent: the names from the root down
    shares: int
    is_user: bool
    target: float | None = None
    bound: str = "target"


Decayed = dict[tuple[str, ...], tuple[int, float]]  #: node -> number of decays, usage after them


class Values:
    """Fair-share values of users at one instant; a node is identified by the names from the root to it."""

    def __init__(
        self, fairshare: Fairshare, users: list[str], charges: list[Charge], first: int, now: int, decayed: Decayed
    ) -> None:
        """`decayed` caches the usage up to the last decay; a simulation passes it from instant to instant."""
        self.fairshare = fairshare
        self.decayed = decayed
        self.nodes: dict[tuple[str, ...], Node] = {}
        self.hang(users)
        self.path = {node[-1]: node for node, each in self.nodes.items() if each.is_user}
        charged: dict[tuple[str, ...], list[Charge]] = {node: [] for node in [(), *self.nodes]}
        for each in charges:
            path = self.path[each.user]
            for depth in range(len(path) + 1):
                charged[path[:depth]].append(each)
        self.use = {node: self.use_of(node, its, first, now) for node, its in charged.items()}
        self.active: Counter[str] = Counter()  #: running jobs, by user

    def hang(self, users: list[str]) -> None:
        """Rule "tree of shares": build `nodes`."""
        tree = {share.name: share for share in self.fairshare.shares}

        def way(name: str) -> tuple[str, ...]:
            return (*way(tree[name].group), name) if name else ()

        groups = {share.group for share in tree.values()}
        for name, share in tree.items():
            self.nodes[way(name)] = Node(way(share.group), share.shares, name not in groups, share.target, share.bound)
        unlisted = [user for user in users if user not in tree or user in groups]
        if tree and unlisted:
            self.nodes["unknown",] = Node((), self.fairshare.unknown_shares, is_user=False)
        for user in unlisted:
            group = ("unknown",) if tree else ()
            self.nodes[*group, user] = Node(group, 1, is_user=True)

    def use_of(self, node: tuple[str, ...], charged: list[Charge], first: int, now: int) -> float:
        """Rule "charges and decay": the usage of a node at `now`."""

        def charge(begin: int, end: int) -> float:
            return float(sum(each.rate * max(0, min(end, each.end) - max(begin, each.begin)) for each in charged))

        period = self.fairshare.decay_time
        decays = (now - first) // period
        begun, use = self.decayed.get(node, (0, 0.0))
        for k in range(begun, decays):
            if use * self.fairshare.decay_factor == use and all(each.end <= first + k * period for each in charged):
                break  # no further change
            use = (use + charge(first + k * period, first + (k + 1) * period)) * self.fairshare.decay_factor
            if use < 1:
                use = 0.0
        self.decayed[node] = decays, use
        return use + charge(first + decays * period, now)

    def part(self, node: tuple[str, ...]) -> float:
        total = sum(each.shares for each in self.nodes.values() if each.group == node[:-1])
        return self.nodes[node].shares / total if total else 0.0

    def share(self, node: tuple[str, ...]) -> float:
        return self.share(node[:-1]) * self.part(node) if node else 1.0

    def relative(self, node: tuple[str, ...]) -> float:
        return self.use[node] / self.use[()] if self.use[()] else 0.0

    def effective(self, node: tuple[str, ...]) -> float:
        if len(node) == 1:
            return self.relative(node)
        return self.relative(node) + (self.effective(node[:-1]) - self.relative(node)) * self.part(node)

    def distance(self, node: tuple[str, ...]) -> float:
        found = self.nodes[node]
        if found.target is None:
            return 0.0
        value = found.target - 100 * self.relative(node)
        if found.bound == "floor":
            return max(0.0, value)
        return min(0.0, value) if found.bound == "ceiling" else value

    def key(self, user: str) -> list[float]:
        """Rule "order of users": the sort key of a user. Equal groups need no exception: their ratios are equal."""
        path = self.path[user]
        above = [path[: i + 1] for i in range(len(path))]
        return [self.use[node] / self.share(node) if self.share(node) else math.inf for node in above]

    def of(self, user: str) -> dict[str, float]:
        """Rule "values of a user": its `NAMES` and their values."""
        path = self.path[user]
        share, effective = self.share(path), self.effective(path)
        factor = math.exp2(-(effective / share)) if share else 0.0
        before = sum(self.key(other) < self.key(user) for other in self.path)
        rank = (len(self.path) - before) / len(self.path)
        target = sum((self.distance(path[:depth]) for depth in range(len(path), 0, -1)), 0.0)
        in_tree = self.fairshare.fair_share == "tree"
        values = (share, effective, factor, rank if in_tree else factor, target, self.active[user])
        return dict(zip(NAMES, values, strict=True))
