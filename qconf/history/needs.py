"""Demands of jobs beside cores: dependencies, licences, limits of job arrays, chunks of nodes.

The column `needs` holds them as words separated by blanks: ``after:46`` or ``after:27[]`` (all members of an array),
``licence:matlab:2``, ``array:27:4`` (at most four of the jobs with this word run at a time), and the chunks with their
placement of `qconf.history.chunks`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import numpy as np
import pandas as pd

from parsim.model.needs import Quota
from qconf.config.routing import Column, Texts
from qconf.history.chunks import CHUNK, PLACES, read
from qconf.text import grouped

AFTER = re.compile(r"after:(\S+)")
LICENCE = re.compile(r"licence:([^\s:]+):(\d{1,9})(?=\s|$)")
ARRAY = re.compile(r"array:(\S+):(\d{1,9})(?=\s|$)")
_PLACE = "|".join(PLACES)
WORD = re.compile(
    rf"after:\S+|licence:[^\s:]+:\d{{1,9}}|array:\S+:\d{{1,9}}|{CHUNK.pattern}|place:(?:{_PLACE})(?:,(?:{_PLACE}))*"
)
#: Dependency kinds of PBS that the end of a job meets; those on a start or a count are not in the logs.
ENDED = ("afterok", "afternotok", "afterany")
#: The same of Slurm; `singleton` names no job id.
ENDED_SLURM = (*ENDED, "aftercorr", "afterburstbuffer")

_NOTHING = np.empty((0, 2), dtype=np.int64)


def wrong(text: str) -> str:
    """Return the first invalid word of a text of `needs`, "" if all are valid; a placement needs a chunk."""
    found = text.split()
    has_chunks = any(map(is_chunk, found))
    right = (
        WORD.fullmatch(word) and _is_read(word) and (has_chunks or not word.startswith("place:")) for word in found
    )
    return next((word for word, is_right in zip(found, right, strict=True) if not is_right), "")


@lru_cache(maxsize=4096)
def _is_read(word: str) -> bool:
    """Whether a word can be read: false for a chunk with impossible amounts."""
    try:
        read(word)
    except ValueError:
        return False
    return True


def is_chunk(word: str) -> bool:
    """Whether a word of `needs` is a chunk."""
    return word.startswith("chunk:")


def waits_for(depend: str, kinds: Iterable[str] = ENDED) -> list[str]:
    """Return the jobs that must end first, by a list like ``afterok:46.server@server:47.server,after:48``."""
    found = []
    for part in re.split(r"[,?]", depend):
        kind, *jobs = part.split(":")
        if kind in kinds:
            found += [re.sub(r"@.*|\(.*", "", job).replace("_*", "") for job in jobs]
    return [job for job in found if job]


def words(
    after: Iterable[str] = (),
    licences: Mapping[str, int] | None = None,
    array: str = "",
    most: int = 0,
    chunks: str = "",
) -> str:
    """Write a text of `needs`; `most` members of the job array `array` run at a time."""
    found = [f"after:{job}" for job in after]
    found += [f"licence:{name}:{count}" for name, count in (licences or {}).items() if count > 0]
    return " ".join([*found, *([f"array:{array}:{most}"] if array and most > 0 else []), *filter(None, [chunks])])


def followed(text: str) -> list[str]:
    """Return the ids of the jobs that a text of `needs` depends on."""
    found: list[str] = AFTER.findall(text)
    return found


def wanted(text: str) -> Iterator[tuple[str, int]]:
    """Yield the licences in a text of `needs`, as (name, count)."""
    for name, count in LICENCE.findall(text):
        yield name, int(count)


def needed(jobs: pd.DataFrame, licences: Mapping[str, int]) -> tuple[Column, list[Quota]]:
    """Return the pairs of `parsim.Workload.after`, shape (P, 2), and the quotas of the site's licences and of arrays.

    A dependency on a later job, or on one that is not among `jobs`, is ignored.
    """
    texts = jobs["needs"].to_numpy() if "needs" in jobs else np.empty(0, dtype=object)
    rows = [row for row, text in enumerate(texts) if text and not text.startswith("chunk:")]  # chunks come last
    if not rows:
        return _NOTHING, []
    return _pairs(jobs["job_id"].tolist(), texts, rows), [*_licences(texts, rows, licences), *_arrays(texts, rows)]


def _pairs(ids: list[str], texts: Texts, rows: list[int]) -> Column:
    wanted = {other for row in rows for other in AFTER.findall(texts[row])}
    jobs = enumerate(ids) if wanted else ()
    found = grouped((name, row) for row, job in jobs for name in {job, _array(job)} & wanted)
    pairs = [
        (row, other)
        for row in rows
        for name in AFTER.findall(texts[row])
        for other in found.get(name, ())
        if other < row
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _array(job: str) -> str:
    """Return the id of a job's array, ``27[].server``, or ``27`` in Slurm; the job's own id if it is in none."""
    return re.sub(r"\[\d+\]", "[]", job) if "[" in job else re.sub(r"_\d+$", "", job)


def _licences(texts: Texts, rows: list[int], licences: Mapping[str, int]) -> Iterator[Quota]:
    found: dict[str, dict[int, int]] = {}
    for row in rows if licences else ():
        for name, count in wanted(texts[row]):
            if name in licences:
                of = found.setdefault(name, {})
                of[row] = of.get(row, 0) + count
    for name, of in found.items():
        yield Quota(f"licences {name}", licences[name], list(of), list(of.values()))


def _arrays(texts: Texts, rows: list[int]) -> Iterator[Quota]:
    members: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for row in rows:
        for name, count in ARRAY.findall(texts[row]):
            members.setdefault(name, []).append(row)
            most[name] = min(most.get(name, int(count)), int(count))
    for name, of in members.items():
        if 0 < most[name] < len(of):
            yield Quota(f"array {name}", most[name], of, np.ones(len(of), dtype=np.int64))
