"""Fairshare: the shares of users and groups, what their jobs are charged, and how fast past use decays.

Rules of "fair share" in docs/reference/simulator.md.

References
----------
PBS Professional Administrator's Guide, "Using Fairshare"; Slurm, "Classic Fairshare Algorithm" and "Fair Tree"; Bode,
Halstead, Kendall, Lei and Jackson, ALS 2000, section 2 (targets, floors and ceilings).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal

#: Values of a job's user that a formula may name: `SHARE_NAME` depends on the tree alone, `USE_NAMES` on use.
SHARE_NAME = "fairshare_perc"
USE_NAMES = ("fairshare_tree_usage", "fairshare_factor", "fair_share", "fairshare_target")
ACTIVE_NAME = "active_jobs"  #: how many jobs of the user ran when the pass began

FAIRSHARE = "fairshare"  #: the order by use over share

UNKNOWN = "unknown"  #: the group of users who are not in the tree
MOST_SHARES = 10**9
LONGEST_DECAY = 2**31 - 1  #: seconds

Bound = Literal["target", "floor", "ceiling"]
Weights = tuple[tuple[str, float], ...]


def weights_of(charges: Mapping[str, float] | Weights) -> Weights:
    """Return weights of resources as an immutable tuple of (name, weight).

    Parameters
    ----------
    charges : mapping of str to float, or its items

    Returns
    -------
    tuple of (str, float)
    """
    return tuple(dict(charges).items())


def weight_problems(charges: Mapping[str, float] | Weights) -> Iterator[tuple[str, str]]:
    """Yield (path, message) for each weight in the field `charges` that is not a number from 0 to MOST_SHARES.

    Parameters
    ----------
    charges : mapping of str to float, or its items

    Yields
    ------
    tuple of (str, str)
    """
    for name, weight in dict(charges).items():
        if not (_is_number(weight) and 0 <= weight <= MOST_SHARES):
            yield f"charges.{name}", f"{weight!r} is not a number from 0 to {MOST_SHARES}"


@dataclass(frozen=True, slots=True)
class Share:
    """A user or a group of the tree.

    Attributes
    ----------
    name : str
        A user's as in ``Workload.user_names``, or a group's.
    shares : int
        Relative to the other members of the same group.
    group : str
        The parent group; empty for the root.
    target : float or None
        Percent of all use that the user or group should have.
    bound : {"target", "floor", "ceiling"}
        Which deviations count: use on either side of the target, only below it, or only above it.
    """

    name: str
    shares: int = 1
    group: str = ""
    target: float | None = None
    bound: Bound = "target"


@dataclass(frozen=True, slots=True)
class Fairshare:
    """The tree of shares.

    Attributes
    ----------
    shares : sequence of Share
        In any order; without any, all users have equal shares.
    decay_time : int
        Seconds between decays of all use.
    decay_factor : float
        Factor of use at each decay; 1 is no decay.
    fair_share : {"classic", "tree"}
        Meaning of ``fair_share`` in a formula: Slurm's classic factor, or the user's rank in a Fair Tree.
    unknown_shares : int
        Shares of the group `UNKNOWN`, which has the users who are not among `shares`, unless `shares` is empty.
    charges : mapping of str to float
        Charge of a second of a job: the amount of each resource that it takes, by name, ``cores`` among them, in the
        unit of the requests, times these weights; empty charges the cores.
    charged : {"sum", "max"}
        Charge the sum of the weighted amounts, or only the largest.
    """

    shares: Sequence[Share] = ()
    decay_time: int = 86400
    decay_factor: float = 0.5
    fair_share: Literal["classic", "tree"] = "classic"
    unknown_shares: int = 10
    charges: Mapping[str, float] | Weights = ()
    charged: Literal["sum", "max"] = "sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", tuple(self.shares))
        object.__setattr__(self, "charges", weights_of(self.charges))

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong with it) for everything that cannot be simulated."""
        if not (_is_whole(self.decay_time) and 1 <= self.decay_time <= LONGEST_DECAY):
            yield "decay_time", f"{self.decay_time!r} is not a whole number of seconds in 1..{LONGEST_DECAY}"
        if not (_is_number(self.decay_factor) and 0 <= self.decay_factor <= 1):
            yield "decay_factor", f"{self.decay_factor!r} is not a number from 0 to 1"
        if self.fair_share not in ("classic", "tree"):
            yield "fair_share", f"{self.fair_share!r} is neither classic nor tree"
        if not (_is_whole(self.unknown_shares) and 0 <= self.unknown_shares <= MOST_SHARES):
            yield "unknown_shares", f"{self.unknown_shares!r} is not a whole number in 0..{MOST_SHARES}"
        yield from weight_problems(self.charges)
        if self.charged not in ("sum", "max"):
            yield "charged", f"{self.charged!r} is neither sum nor max"
        groups = {share.name: share.group for share in self.shares}
        seen: set[str] = set()
        for i, share in enumerate(self.shares):
            at = f"shares[{i}]"
            if share.name in seen or share.name in ("", UNKNOWN):
                why = "is there twice" if share.name in seen else "is no name of a user or group"
                yield f"{at}.name", f"{share.name!r} {why}"
            seen.add(share.name)
            if not (_is_whole(share.shares) and 0 <= share.shares <= MOST_SHARES):
                yield f"{at}.shares", f"{share.shares!r} is not a whole number in 0..{MOST_SHARES}"
            if share.group and share.group not in groups:
                yield f"{at}.group", f"{share.group!r} is no group of the tree"
            elif _is_below_itself(share.name, groups):
                yield f"{at}.group", f"{share.group!r} is below {share.name!r} itself"
            if share.target is not None and not (_is_number(share.target) and 0 <= share.target <= 100):
                yield f"{at}.target", f"{share.target!r} is not a percentage from 0 to 100"
            if share.bound not in ("target", "floor", "ceiling"):
                yield f"{at}.bound", f"{share.bound!r} is none of target, floor, ceiling"


EQUAL_SHARES = Fairshare()  #: of all users


def _is_below_itself(name: str, groups: dict[str, str]) -> bool:
    above, left = groups.get(name, ""), len(groups)
    while above and above != name and left:
        above, left = groups.get(above, ""), left - 1
    return bool(above)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)
