"""Fairshare in Slurm: weight and half-life in slurm.conf, shares of associations, and both back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from parsim.fairshare import FAIRSHARE, MOST_SHARES
from qconf.config import FairshareConfig, ShareConfig, SiteConfig, format_duration
from qconf.config.multifactor import Multifactor
from qconf.errors import InputError
from qconf.export.nodes import read_text
from qconf.history.times import slurm_limit

STEP = 3600  #: seconds from decay to decay of a half-life that is read
HALF_LIFE = 7 * 86400  #: Slurm's default
CALC_PERIOD = 300  #: Slurm's default
MAX_AGE = 7 * 86400  #: Slurm's default
ROOT = "root"


def half_life(config: SiteConfig) -> int:
    """Return the whole minutes, in seconds, after which half of a use is forgotten; 0 for never."""
    tree = config.tree
    if not 0 < tree.decay_factor < 1:
        return 0
    return max(1, round(tree.decay_time * math.log(0.5) / math.log(tree.decay_factor) / 60)) * 60


def statements(config: SiteConfig) -> str:
    """Write the shares as lines of sacctmgr."""
    groups = {share.group for share in config.shares}
    lines = []
    for share in config.shares:
        if share.name in groups:
            lines.append(f"modify account where name={share.name} set fairshare={share.shares}")
        else:
            lines.append(
                f"modify user where name={share.name} account={share.group or ROOT} set fairshare={share.shares}"
            )
    return "".join(f"{line}\n" for line in lines)


def notes(config: SiteConfig) -> Iterator[str]:
    """Name what Slurm does otherwise than the simulator."""
    if not config.is_fair:
        return
    yield (
        "Fairshare: Slurm keeps the use of before and needs accounting (slurmdbd) with an association for every user; "
        "the simulator begins with none, and charges jobs by the second, Slurm every PriorityCalcPeriod."
    )
    if config.shares:
        yield "Users who are not in the tree have the shares of their associations, not `unknown_shares`."
    if config.tree.fair_share == "tree":
        yield "PriorityFlags must not have NO_FAIR_TREE: take it out of slurm.conf where it is there."


def read_shares(path: str | Path, warnings: list[str]) -> tuple[ShareConfig, ...]:
    """Read ``sacctmgr -nP show associations format=Account,ParentName,User,Fairshare``. Raises InputError."""
    found: dict[str, ShareConfig] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        fields = line.strip().split("|")
        fix = "give the output of sacctmgr -nP show associations format=Account,ParentName,User,Fairshare"
        if len(fields) < 4:
            raise InputError("is no line like 'physics|root||60'", file=path, line=number, value=line, fix=fix)
        account, parent, user, shares = fields[:4]
        name, group = (user, account) if user else (account, parent)
        if name == ROOT and not user:
            continue
        if not shares.isdigit() or int(shares) > MOST_SHARES:
            warnings.append(f"shares of {name}: {shares or 'none'} is no number; left out")
            continue
        if name in found:
            warnings.append(f"shares of {name}: in several accounts, only {found[name].group or ROOT} was taken")
            continue
        found[name] = ShareConfig(name=name, shares=int(shares), group=None if group in ("", ROOT) else group)
    return tuple(share for share in found.values() if share.group is None or share.group in found)


def with_shares(
    config: SiteConfig, settings: dict[str, str], shares: tuple[ShareConfig, ...], warnings: list[str], *, alike: bool
) -> SiteConfig:
    """Return `config` with the order of a priority of age and fairshare alone, its half-life and its shares.

    `alike`, the factors of all partitions are the same, so that their weight makes no difference.
    """
    weights = {
        key.removeprefix("priorityweight"): int(value)
        for key, value in settings.items()
        if key.startswith("priorityweight") and value.isdigit() and value != "0"
    }
    if not weights.get("fairshare") and not shares:
        return config
    if settings.get("prioritytype", "").lower() != "priority/multifactor" or not weights.get("fairshare"):
        return config.replace(shares=shares)
    flags = settings.get("priorityflags", "").upper().split(",")
    tree = "NO_FAIR_TREE" not in flags
    half = _seconds("PriorityDecayHalfLife", settings, HALF_LIFE, warnings)
    found = FairshareConfig(
        decay_time=STEP if half else 86400,
        decay_factor=0.5 ** (STEP / half) if half else 1.0,
        fair_share="tree" if tree else "classic",
        unknown_shares=1,
    )
    listed = settings.get("priorityweighttres", "")  # like CPU=1000,Mem=250
    if listed or set(weights) - {"age", "fairshare"} - ({"partition"} if alike else set()):
        return config.replace(shares=shares, fairshare=found)
    order = _order(weights, settings, warnings, tree=tree)
    waits = "eligible_time" in order
    period = _seconds("PriorityCalcPeriod", settings, CALC_PERIOD, warnings) if waits else 0
    return config.replace(shares=shares, fairshare=found, order=order, priority_calc_period=period)


def _seconds(word: str, settings: dict[str, str], default: int, warnings: list[str]) -> int:
    """Read a time of slurm.conf, seconds."""
    text = settings.get(word.lower(), "")
    try:
        return slurm_limit(text) if text else default
    except ValueError:
        warnings.append(f"{word}={text} is not understood: Slurm's default, {format_duration(default)}, was taken")
        return default


def _order(weights: dict[str, int], settings: dict[str, str], warnings: list[str], *, tree: bool) -> str:
    """Write age and fairshare as a sum in which a point is a second of waiting."""
    age = weights.get("age", 0)
    if not age:
        return FAIRSHARE if tree else "fair_share"
    longest = _seconds("PriorityMaxAge", settings, MAX_AGE, warnings)
    return Multifactor((), longest, fair_share=max(1, round(weights["fairshare"] * longest / age))).formula
