"""Snapshots: the jobs and cores of a machine now, from a batch system's output or from files of our own."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from qconf.errors import InputError
from qconf.history.times import zone
from qconf.snapshot.listing import documents as listed
from qconf.snapshot.listing import statements
from qconf.snapshot.model import Closure, Job, Snapshot
from qconf.snapshot.pbs import read_pbs
from qconf.snapshot.plain import read_plain
from qconf.snapshot.slurm import read_slurm

__all__ = ["Closure", "Job", "Snapshot", "read_snapshot"]

ASK = "qstat -t -f and pbsnodes -a -v (-F json or not), or squeue --json and sinfo --json, each into a file of its own"


def read_snapshot(folder: Path, timezone: str = "UTC") -> Snapshot:
    """Read a snapshot from the files of a folder; their content shows which batch system printed them.

    Raises `InputError` if the folder cannot be read or holds no jobs.
    """
    where = zone(timezone)
    try:
        texts = {path: path.read_text("utf-8", "replace") for path in sorted(folder.iterdir()) if path.is_file()}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=folder, fix="give a folder") from error
    if (folder / "jobs.csv") in texts or (folder / "jobs.yaml") in texts:
        return replace(read_plain(texts, folder, where), timezone=timezone)
    cut: Counter[str] = Counter()
    documents = [_document(path, text, cut) for path, text in texts.items() if text.lstrip().startswith("{")]
    rest = [text for text in texts.values() if not text.lstrip().startswith("{")]
    stamp = texts.get(folder / "taken_at", "").strip()
    taken = int(stamp) if stamp.isdigit() else None
    if not any("jobs" in doc for doc in documents):
        documents += [document for text in rest for document in listed(text)]
    if any("Jobs" in doc for doc in documents):
        found = replace(read_pbs(documents, "\n".join(rest), where, taken), server=statements(documents))
    elif any("jobs" in doc for doc in documents):
        found = read_slurm(documents, "\n".join(rest), where, taken)
    else:
        raise InputError("holds no jobs of PBS or Slurm, and no jobs.csv", file=folder, fix=f"put there {ASK}")
    return replace(found, warnings=cut + found.warnings, timezone=timezone)


def _document(path: Path, text: str, warnings: Counter[str]) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        found = salvaged(text)
        if found is None:
            line = getattr(error, "lineno", None)
            raise InputError("ends in the middle, or is no JSON", file=path, line=line, fix="take it again") from error
        warnings[f"{path.name} ends in the middle: what comes before is read, what is missing is not predicted"] += 1
    if not isinstance(found, dict):
        raise InputError("is no JSON of a batch system", file=path)
    return found


def salvaged(text: str) -> Any:  # noqa: ANN401 - of a JSON document
    """Parse a JSON document that was cut off, up to its last whole job or node; None if there is none.

    A whole job or node is a value in a list or object of the outermost object.
    """
    open_, quoted, skip, whole = "", False, False, None
    for place, letter in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip, quoted = letter == "\\", letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            open_ += "}" if letter == "{" else "]"
        elif letter in "}]":
            if not open_ or open_[-1] != letter:
                break
            open_ = open_[:-1]
            if len(open_) == 2:
                whole = text[: place + 1] + open_[::-1]
    try:
        return None if whole is None else json.loads(whole)
    except ValueError:
        return None
