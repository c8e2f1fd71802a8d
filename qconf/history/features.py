"""Read the --constraint of Slurm jobs: ``a100|v100``, ``(a100|h100)&nvme``, ``[rack1*2&rack2*1]``.

The result is a set of features that a node must all have; the feature ``a100|v100`` is satisfied by either (rule
"chunks on nodes").

References
----------
Slurm, sbatch, "--constraint".
"""

from __future__ import annotations

import re
from typing import NamedTuple

Clauses = frozenset[frozenset[str]]  #: a node has at least one feature of each clause

_WORD = re.compile(r"\s*([&,|()\[\]*]|[\w.:@/+-]+)")
MOST = 16  #: clauses


class Features(NamedTuple):
    """Features that the nodes of a job must have."""

    all: frozenset[str]  #: of every node
    some: tuple[tuple[int, frozenset[str]], ...] = ()  #: of a number of nodes each


class _Term(NamedTuple):
    clauses: Clauses
    counted: tuple[tuple[int, Clauses], ...] = ()


def read(text: str) -> Features:
    """Read a constraint. Raises ValueError if it is malformed, or no condition on single nodes."""
    words, at = [], 0
    while at < len(text.rstrip()):
        match = _WORD.match(text, at)
        if match is None:
            raise ValueError(f"features {text[:60]!r}")
        words.append(match[1])
        at = match.end()
    words.reverse()
    term = _any(words) if words else _Term(frozenset())
    if words:
        raise ValueError(f"features {text[:60]!r}")
    return Features(_written(term.clauses), tuple((count, _written(clauses)) for count, clauses in term.counted))


def _written(clauses: Clauses) -> frozenset[str]:
    least = [each for each in clauses if not any(other < each for other in clauses)]
    if len(least) > MOST:
        raise ValueError(f"features in more than {MOST} alternatives")
    return frozenset("|".join(sorted(each)) for each in least)


def _any(words: list[str]) -> _Term:
    """Read an expression of operators, from left to right."""
    term = _one(words)
    while words and words[-1] in ("&", ",", "|"):
        operator, other = words.pop(), _one(words)
        if operator != "|":
            term = _Term(term.clauses | other.clauses, (*term.counted, *other.counted))
        elif term.counted or other.counted:
            raise ValueError("numbers of nodes among alternatives of features")
        else:
            term = _Term(frozenset(one | two for one in term.clauses for two in other.clauses))
        if len(term.clauses) > MOST**2:
            raise ValueError(f"features in more than {MOST} alternatives")
    return term


def _one(words: list[str]) -> _Term:
    """Read a feature or a bracketed expression, with its number of nodes."""
    word = words.pop() if words else ""
    if word in ("(", "["):
        term = _any(words)
        if not words or words.pop() != {"(": ")", "[": "]"}[word]:
            raise ValueError("a bracket of features that is not closed")
    elif not word or word in "&,|)]*":
        raise ValueError("an operator of features without one")
    else:
        term = _Term(frozenset([frozenset([word])]))
    if words and words[-1] == "*":
        words.pop()
        count = words.pop() if words else ""
        if not re.fullmatch("[0-9]{1,6}", count) or term.counted or not int(count):
            raise ValueError("no number of nodes after the * of a feature")
        return _Term(frozenset(), ((int(count), term.clauses),))
    return term
