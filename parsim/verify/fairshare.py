"""What users have used of what they should have, as the replay of waiting lists keeps it.

The numbered rules are those of ``docs/reference/simulator.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from parsim.fairshare import UNKNOWN, Fairshare, Share
from parsim.node_types import Request
from parsim.system import System
from parsim.verify.rules import decimal

#: Values of a user, in the order of `Uses.values`.
NAMES = ("fairshare_perc", "fairshare_tree_usage", "fairshare_factor", "fair_share", "fairshare_target")


def rate_of(system: System, queue: int, qos: str, cores: int, request: Request) -> int | Fraction:
    """Rule 35: what a second of a job is charged."""
    rate = Fraction(cores)
    if charges := system.queues[queue].charges or system.fairshare.charges:
        weighted = []
        for name, weight in dict(charges).items():
            taken = cores if name == "cores" else sum(c.count * dict(c.resources).get(name, 0) for c in request)
            weighted.append(decimal(weight) * taken)
        rate = max(weighted) if system.fairshare.charged == "max" else sum(weighted, Fraction(0))
    for each in system.qos:
        if each.name == qos:
            rate *= decimal(each.usage_factor)
    rate = Fraction(round(rate * 2**16), 2**16)
    return rate.numerator if rate.denominator == 1 else rate


@dataclass(eq=False)
class Node:
    """A user, a group, or the root, which has no group."""

    entry: Share
    group: Node | None = None
    members: list[Node] = field(default_factory=list)
    used: float = 0.0  #: after the last decay
    since: int | Fraction = 0  #: charged after it
    running: int | Fraction = 0  #: charged each second
    jobs: int = 0  #: that run

    @property
    def part(self) -> float:
        """Its part of its group."""
        total = 0 if self.group is None else sum(member.entry.shares for member in self.group.members)
        return self.entry.shares / total if total else 0.0

    @property
    def share(self) -> float:
        """Its share of the whole tree."""
        return 1.0 if self.group is None else self.group.share * self.part

    @property
    def use(self) -> float:
        """What was charged, as far as it has not decayed."""
        return self.used + float(self.since)

    @property
    def ratio(self) -> float:
        """Use over share."""
        share = self.share
        return self.use / share if share else math.inf

    def line(self) -> list[Node]:
        """Return the node and the groups above it, without the root."""
        return [] if self.group is None else [self, *self.group.line()]


class Uses:
    """The uses of all users, from the first submission on."""

    def __init__(self, fairshare: Fairshare, users: Iterable[str], first: int) -> None:
        self.fairshare = fairshare
        self.now = first
        self.next_decay = first + fairshare.decay_time
        self.root = Node(Share(""))
        self.active: dict[str, float] = {}
        self.nodes = [self.root]
        groups = {share.group for share in fairshare.shares}
        by_name = {share.name: self._node(share) for share in fairshare.shares}
        self.users = {name: node for name, node in by_name.items() if name not in groups}
        for node in by_name.values():
            self._join(node, by_name[node.entry.group] if node.entry.group else self.root)
        unlisted = sorted(set(users) - self.users.keys())
        group = self.root
        if unlisted and by_name:
            group = self._join(self._node(Share(UNKNOWN, fairshare.unknown_shares)), self.root)
        for name in unlisted:
            self.users[name] = self._join(self._node(Share(name)), group)

    def _node(self, entry: Share) -> Node:
        self.nodes.append(Node(entry))
        return self.nodes[-1]

    def _join(self, node: Node, group: Node) -> Node:
        node.group = group
        group.members.append(node)
        return node

    def charge(self, user: str, rate: int | Fraction, now: int, jobs: int = 1) -> None:
        """From `now` on so many more jobs of a user run, which are charged so much a second (rule 35)."""
        self.advance(now)
        for node in (*self.users[user].line(), self.root):
            node.running += rate
            node.jobs += jobs

    def begin_pass(self) -> None:
        """Keep how many jobs of each user run (rule 93)."""
        self.active = {name: float(node.jobs) for name, node in self.users.items()}

    def advance(self, now: int) -> None:
        """Charge what runs until `now`, decay by decay."""
        while self.next_decay <= now:
            if self._stands():
                self.next_decay += (
                    (now - self.next_decay) // self.fairshare.decay_time + 1
                ) * self.fairshare.decay_time
                break
            self._run_to(self.next_decay)
            self.next_decay += self.fairshare.decay_time
            for node in self.nodes:
                left = node.use * self.fairshare.decay_factor
                node.used, node.since = (left if left >= 1 else 0.0), 0
        self._run_to(now)

    def _stands(self) -> bool:
        """Whether nothing runs, and no decay changes a use any more."""
        factor = self.fairshare.decay_factor
        return not any(each.running or each.since or each.used * factor != each.used for each in self.nodes)

    def _run_to(self, instant: int) -> None:
        for node in self.nodes:
            node.since += node.running * (instant - self.now)
        self.now = instant

    def path(self, user: str) -> list[float]:
        """Rule 38: what users are compared by, the least first."""
        return [node.ratio for node in reversed(self.users[user].line())]

    def path_of(self, users: Sequence[str]) -> Callable[[int, int], list[float]]:
        """Return the path of the user of each (job, now)."""

        def path(job: int, now: int) -> list[float]:
            self.advance(now)
            return self.path(users[job])

        return path

    def values(self, user: str, now: int) -> tuple[float, ...]:
        """Rule 37: `NAMES` of a user."""
        self.advance(now)
        total = self.root.use
        line = self.users[user].line()
        parts = [node.use / total if total else 0.0 for node in line]
        effective = parts[-1]
        for node, part in list(zip(line, parts, strict=True))[-2::-1]:
            effective = part + (effective - part) * node.part
        distance = 0.0
        for node, part in zip(line, parts, strict=True):
            target, bound = node.entry.target, node.entry.bound
            if target is not None:
                value = target - 100 * part
                if bound == "target" or (value > 0) == (bound == "floor"):
                    distance += value
        share = line[0].share
        factor = math.exp2(-(effective / share)) if share else 0.0
        of_all = factor
        if self.fairshare.fair_share == "tree":
            own = self.path(user)
            of_all = sum(not self.path(other) < own for other in self.users) / len(self.users)
        return share, effective, factor, of_all, distance
