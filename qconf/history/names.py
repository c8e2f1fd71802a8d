"""Queue names as a batch system accepts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from qconf.text import grouped

LONGEST_NAME = 15  #: characters that PBS takes
LEGAL = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{LONGEST_NAME - 1}}}")


def legal_names(names: Sequence[str]) -> dict[str, str]:
    """Map each name of a history to a legal and unique one, itself where legal; the empty one stays out.

    It does not matter in which order they come, so that the logs of two periods agree: a name that is too long, or that
    becomes the same as another's, ends with a hash.

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
    """Report that a queue is known by another name than that in the log."""
    return f"queue name made legal: {name!r} is {legal}"


def alike(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names that differ in case only, by a report of them: a batch system takes them for different queues.

    >>> alike(["Small", "large", "small"])
    {'queue names that differ in case only, taken as different: Small, small': ['Small', 'small']}
    """
    groups = grouped((name.casefold(), name) for name in sorted(names)).values()
    text = "queue names that differ in case only, taken as different: "
    return {text + ", ".join(group): group for group in groups if len(group) > 1}


def hashed(name: str, turn: int = 0) -> str:
    """Return what a name becomes that is too long, or not alone in what is made of it."""
    tail = blake2b(f"{name}{turn or ''}".encode(), digest_size=2).hexdigest()
    return f"{_stem(name)[: LONGEST_NAME - 5]}-{tail}"


def _stem(name: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "queue"
    return stem if stem[0].isalpha() else f"q{stem}"
