"""Fair share in Slurm: the half-life of usage; write and read shares of associations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from parsim.model.fairshare import MOST_SHARES
from qconf.config import ShareConfig, SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import InputError
from qconf.export.nodes import read_text

ROOT = "root"
PARENT = "parent"  #: a value of shares: the user competes with the account
_GIVE = "give the output of sacctmgr -nP show associations format=Account,ParentName,User,Fairshare"
_SHORT = ("account", "parent", "user", "share")
_ALL = ("cluster", "account", "user", "partition", "share", *[""] * 10)  #: and more columns, depending on the version
_LIMIT = re.compile("(?:grp|max)[a-z]+")
#: Lines of ``sacctmgr dump``, and their words.
_DUMPED = re.compile(r"(Cluster|Parent|Account|User) - '([^']*)'(.*)")
_WORD = re.compile(r":(\w+)=('[^']*'|[^:]*)")
_NAMES = {"parname": "parent", "parentname": "parent", "fairshare": "share", "rawshares": "share"}


def half_life(config: SiteConfig) -> int:
    """Return the half-life of usage in seconds, rounded to whole minutes; 0 for no decay."""
    tree = config.tree
    if not 0 < tree.decay_factor < 1:
        return 0
    return max(1, round(tree.decay_time * math.log(0.5) / math.log(tree.decay_factor) / 60)) * 60


def statements(config: SiteConfig) -> list[str]:
    """Return the shares as lines of sacctmgr, if the order reads them."""
    order, groups = Multifactor.of(config.order), {share.group for share in config.shares}
    return [
        f"modify account where name={share.name} set fairshare={share.shares}"
        if share.name in groups
        else f"modify user where name={share.name} account={share.group or ROOT} set fairshare={share.shares}"
        for share in (config.shares if order is not None and order.fair_share else ())
    ]


def read_shares(path: str | Path, warnings: list[str], cluster: str = "") -> tuple[ShareConfig, ...]:
    """Read shares from --parsable2 output of sacctmgr or sshare, or a dump; of several clusters, those of `cluster`.

    Without a header, the columns are Account, ParentName, User and Fairshare, or the default ones of sacctmgr. Raises
    InputError.
    """
    rows = _of_cluster(list(_associations(path, warnings)), cluster, warnings)
    accounts = {row.account: row for row in reversed(rows) if not row.user}
    if accounts.keys() - {ROOT} and not any(row.parent for row in rows):
        warnings.append("shares: no account has a ParentName: each is taken as below the root")
    found: dict[str, ShareConfig] = {}
    equal = 0
    for row in sorted(rows, key=lambda row: bool(row.user and row.partition)):
        name, text = row.user or row.account, row.share.lower()
        group: str | None = row.account if row.user else row.parent
        if name == ROOT and not row.user:
            continue
        if text == PARENT and not row.user:
            continue  # its children belong to the account above
        above = accounts.get(group or "")
        for _ in accounts:
            if above is None or above.share.lower() != PARENT:
                break
            group, above = above.parent, accounts.get(above.parent)
        equal += text == PARENT
        shares = "1" if text == PARENT else text
        if not shares.isdigit() or int(shares) > MOST_SHARES:
            warnings.append(f"shares of {name}: {row.share or 'none'} is no number; left out")
            continue
        if name in found:
            several = "for several partitions" if row.partition else "in several accounts"
            warnings.append(f"shares of {name}: {several}, only those in {found[name].group or ROOT} were taken")
            continue
        found[name] = ShareConfig(name=name, shares=int(shares), group=None if group in ("", ROOT) else group)
    if equal:
        warnings.append(
            f"shares of {equal} users are {PARENT}: Slurm ranks them by the use of their account, here each has one "
            "share of it"
        )
    return tuple(share for share in found.values() if share.group is None or share.group in found)


class _Association(NamedTuple):
    """A line of sacctmgr or sshare; `user` is "" for an account."""

    account: str
    parent: str
    user: str
    share: str
    partition: str = ""
    cluster: str = ""


def _associations(path: str | Path, warnings: list[str]) -> Iterator[_Association]:
    names: Sequence[str] = ()
    limits: dict[str, None] = {}
    above: list[tuple[int, str]] = []  # (indentation, account) of the parents, in a tree
    text = read_text(path)
    if re.search("^Cluster - '", text, re.MULTILINE):
        yield from _dumped(text, limits)
        text = ""
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.rstrip("\r\n").split("|")
        if not line.strip():
            continue
        words = [_NAMES.get(word := re.sub(r"[ _]|%.*", "", cell).lower(), word) for cell in cells]
        if "account" in words:
            if "share" not in words:
                raise InputError("no column Share or Fairshare", file=path, line=number, value=line, fix=_GIVE)
            names = words
            continue
        names = names or (_SHORT if len(cells) in (4, 5) else _ALL if len(cells) >= len(_ALL) else ())
        if not names or len(cells) < len(names):
            raise InputError("is no line like 'physics|root||60'", file=path, line=number, value=line, fix=_GIVE)
        row = dict(zip(names, cells, strict=False))
        owner = row.get("user", "").strip() or row["account"].strip()
        limits |= dict.fromkeys(f"{name} of {owner}" for name, cell in row.items() if _LIMIT.match(name) and cell)
        account = row["account"]
        depth, account = len(account) - len(account.lstrip()), account.strip()
        if not row.get("user", "").strip():
            above = [each for each in above if each[0] < depth]
            row.setdefault("parent", above[-1][1] if above else "")
            above.append((depth, account))
        yield _Association(
            account=account, **{name: row.get(name, "").strip() for name in _Association._fields if name != "account"}
        )
    if limits:
        more = f" and {len(limits) - 3} more" * (len(limits) > 3)
        warnings.append(f"limits of associations are not simulated: {', '.join([*limits][:3])}{more}")


def _dumped(text: str, limits: dict[str, None]) -> Iterator[_Association]:
    """Yield the associations of ``sacctmgr dump``, and add the limits of each to `limits`."""
    cluster, parent = "", ROOT
    for kind, name, words in _DUMPED.findall(text):
        cells = {word.lower(): value.strip("'") for word, value in _WORD.findall(words)}
        limits |= dict.fromkeys(f"{word} of {name}" for word in cells if _LIMIT.match(word))
        if kind == "Cluster":
            cluster = name
        elif kind == "Parent":
            parent = name
        else:
            account, above, user = (name, parent, "") if kind == "Account" else (parent, "", name)
            share, of = cells.get("fairshare", "1"), cells.get("partition", "")
            yield _Association(account, above, user, share, partition=of, cluster=cluster)


def _of_cluster(rows: list[_Association], cluster: str, warnings: list[str]) -> list[_Association]:
    """Return the associations of the named cluster, else of the first one."""
    clusters = list(dict.fromkeys(row.cluster for row in rows))
    if len(clusters) < 2:
        return rows
    taken = next((each for each in clusters if each.lower() == cluster.lower()), clusters[0])
    warnings.append(f"shares are those of the cluster {taken}; {len(clusters) - 1} others are in the file")
    return [row for row in rows if row.cluster == taken]
