"""Snapshots: what a machine is doing now, from what its batch system prints or from files of our own."""

from __future__ import annotations

import json
from datetime import tzinfo
from pathlib import Path
from typing import Any

import yaml

from qconf.errors import InputError
from qconf.snapshot.model import Closure, Job, Snapshot
from qconf.snapshot.pbs import read_pbs
from qconf.snapshot.plain import read_plain
from qconf.snapshot.slurm import read_slurm

__all__ = ["Closure", "Job", "Snapshot", "read_snapshot"]

ASK = "qstat -t -f -F json and pbsnodes -a -v -F json, or squeue --json and sinfo --json, each into a file of its own"


def read_snapshot(folder: Path, where: tzinfo) -> Snapshot:
    """Read a folder; which system it is from is known by what is in its files.

    Raises `InputError` where it cannot be read or holds no jobs.
    """
    try:
        texts = {path: path.read_text("utf-8", "replace") for path in sorted(folder.iterdir()) if path.is_file()}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=folder, fix="give a folder") from error
    if (folder / "jobs.csv") in texts:
        state = yaml.safe_load(texts.get(folder / "state.yaml", "")) or {}
        return read_plain(texts[folder / "jobs.csv"], state, where, str(folder / "jobs.csv"))
    documents = [_document(path, text) for path, text in texts.items() if text.lstrip().startswith("{")]
    rest = "\n".join(text for text in texts.values() if not text.lstrip().startswith("{"))
    if any("Jobs" in doc for doc in documents):
        return read_pbs(documents, rest, where)
    if any("jobs" in doc for doc in documents):
        taken = texts.get(folder / "taken_at", "").strip()
        return read_slurm(documents, rest, where, int(taken) if taken.isdigit() else None)
    raise InputError("holds no jobs of PBS or Slurm, and no jobs.csv", file=folder, fix=f"put there {ASK}")


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError("ends in the middle, or is no JSON", file=path, line=line, fix="take it again") from error
    if not isinstance(found, dict):
        raise InputError("is no JSON of a batch system", file=path)
    return found
