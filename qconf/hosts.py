"""Host lists in Slurm's form: ``nid[00001-01468],login``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from qconf.errors import InputError

_MOST = 1_000_000
_RANGE = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_RANGES = re.compile(rf"[\w.-]*(?:\[{_RANGE}(?:,{_RANGE})*\][\w.-]*)+")


def parts(text: str) -> list[str]:
    """Split a host list at the commas outside brackets."""
    return re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text)


def expand(text: str) -> Iterator[str]:
    """Yield the hosts of a list such as ``a[1-3,7],rack[0-1]n[0-7]``; numbers keep their zeros. Raises InputError."""
    for part in parts(text):
        yield from _ranges(part) if {"[", "]"} & {*part} else (part,)


@lru_cache(maxsize=1024)
def hosts_in(text: str) -> int:
    """Return the number of hosts in a list; 0 if it cannot be expanded."""
    read = parts(text)
    try:
        names = [name for part in read for name in expand(part)]
    except InputError:
        return 0
    return len(names) if ",".join(read) == text and not any("[" in name or "]" in name for name in names) else 0


def _ranges(part: str) -> NodeSet:
    pairs = re.findall(r"([0-9]+)-([0-9]+)", part)
    if _RANGES.fullmatch(part) and all(int(last) - int(first) < _MOST for first, last in pairs):
        try:
            found = NodeSet(re.sub("([0-9]+)-([0-9]+)(?=[^\\[]*\\])", _of_one_width, part), resolver=RESOLVER_NOGROUP)
        except NodeSetException:
            found = ()
        if 0 < len(found) <= _MOST:
            return found
    raise InputError("is no range of nodes", field="--nodes", value=part, fix="write it like nid[001-146]")


def _of_one_width(match: re.Match[str]) -> str:
    """Rewrite a range such as 001-2000 as ranges of numbers of equal width, with the zeros of the first number."""
    first, last = match[1], match[2].zfill(len(match[1]))
    found = []
    while len(first) < len(last):
        found.append(f"{first}-{'9' * len(first)}")
        first = "1" + "0" * len(first)
    return ",".join([*found, f"{first}-{last}"])


def fold(names: Sequence[str]) -> str:
    """Return node names as a host list.

    >>> fold(["nid001", "nid002", "nid004", "login"])
    'login,nid[001-002,004]'
    """
    return str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))
