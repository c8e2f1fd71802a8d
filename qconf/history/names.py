"""Make queue names legal for a batch system."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from qconf.text import grouped

LONGEST_NAME = 15  #: characters that PBS allows
LEGAL = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


def legal_names(names: Sequence[str]) -> dict[str, str]:
    """Map each name of a history to a legal and unique one, a legal name to itself; "" is left out.

    A name that is too long, or would collide with another, ends with a hash. The result does not depend on the order of
    `names`, so that the logs of two periods agree.

    >>> legal_names(["normal", "3", "[fque:1]", "fque-1"])
    {'normal': 'normal', '3': 'q3', '[fque:1]': 'fque-1-8568', 'fque-1': 'fque-1'}
    """
    distinct = [name for name in dict.fromkeys(names) if name]
    taken = {name for name in distinct if LEGAL.fullmatch(name)}
    stems = {name: _stem(name) for name in distinct if name not in taken}
    unclear = taken | {stem for stem, times in Counter(stems.values()).items() if times > 1 or len(stem) > LONGEST_NAME}
    result: dict[str, str] = {}
    for name in distinct:
        candidate, turn = stems.get(name, name), 0
        while name in stems and (candidate in taken or candidate in unclear):
            candidate, turn = hashed(name, turn), turn + 1
        result[name] = candidate
        taken.add(candidate)
    return result


def renamed(name: str, legal: str) -> str:
    """Return the message that a queue was renamed from its name in the log."""
    return f"queue name made legal: {name!r} is {legal}"


def alike(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the groups of names that differ only in case, by their message; batch systems distinguish them.

    >>> alike(["Small", "large", "small"])
    {'queue names that differ in case only, taken as different: Small, small': ['Small', 'small']}
    """
    groups = grouped((name.casefold(), name) for name in sorted(names)).values()
    text = "queue names that differ in case only, taken as different: "
    return {text + ", ".join(group): group for group in groups if len(group) > 1}


def hashed(name: str, turn: int = 0) -> str:
    """Return a legal name that ends with a hash of `name`; another `turn` gives another hash."""
    tail = blake2b(f"{name}{turn or ''}".encode(), digest_size=2).hexdigest()
    return f"{_stem(name)[: LONGEST_NAME - 5]}-{tail}"


def _stem(name: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "queue"
    return stem if stem[0].isalpha() else f"q{stem}"
