"""Fairshare in Slurm: its half-life, and shares of associations in both directions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from parsim.fairshare import MOST_SHARES
from qconf.config import ShareConfig, SiteConfig
from qconf.errors import InputError
from qconf.export.nodes import read_text

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
