"""Finished proposals of an interrupted run: one file each, valid for the same fingerprint only."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qconf import __version__
from qconf.config import SiteConfig, dump, parse
from qconf.errors import QconfError
from qconf.evaluation.period import TrainingSet
from qconf.history.records import SourceInfo
from qconf.strategies import Proposal, propose
from qconf.strategies.base import Recorded
from qconf.text import write_whole

FOLDER = ".unfinished"


def unfinished(directory: Path) -> bool:
    """Tell whether a run directory holds finished proposals of a run that is not complete."""
    return any((directory / FOLDER).glob("*.json"))


class Checkpoint:
    """Keeps finished proposals in a folder of the run directory until the run is complete.

    The `fingerprint` has everything that they depend on: inputs' sha256, configuration, settings. With `resume` the
    proposals that are there are used, if they have the same fingerprint; else they are deleted.
    """

    def __init__(self, directory: Path, fingerprint: dict[str, Any], *, resume: bool) -> None:
        text = json.dumps(fingerprint, sort_keys=True, default=str)
        self.key = hashlib.sha256(text.encode()).hexdigest()
        self.folder = directory / FOLDER
        if not resume:
            self.clear()

    def get(self, key: str) -> Proposal | None:
        """Return a finished proposal, or None."""
        path = self.folder / f"{key}.json"
        try:
            kept = json.loads(path.read_text())
            if kept["fingerprint"] != self.key:
                return None
            return Proposal(
                parse(kept["config"], str(path)),
                tuple(Recorded(notes=tuple(values.get("notes", ())), values=values) for values in kept["steps"]),
                summary=kept["summary"],
                not_exportable=kept["not_exportable"],
                runtimes=kept["runtimes"] and tuple((above, most) for above, most in kept["runtimes"]),
            )
        except (OSError, ValueError, KeyError, TypeError, QconfError):
            return None

    def put(self, key: str, proposal: Proposal) -> None:
        """Keep a finished proposal, unless its configuration does not express it: such a one takes no time to make."""
        if proposal.system is not None or type(proposal) is not Proposal:
            return
        kept = {
            "fingerprint": self.key,
            "config": dump(proposal.config),
            "steps": proposal.decisions,
            "summary": proposal.summary,
            "not_exportable": proposal.not_exportable,
            "runtimes": proposal.runtimes,
        }
        write_whole(self.folder / f"{key}.json", json.dumps(kept))

    def clear(self) -> None:
        """Delete all proposals: the run is complete, or starts again."""
        shutil.rmtree(self.folder, ignore_errors=True)


def cached_proposal(
    checkpoint: Checkpoint | None, key: str, name: str, training: TrainingSet, settings: Mapping[str, Any]
) -> Proposal:
    """Return the proposal kept under `key`; else run the strategy called `name`, and keep its proposal."""
    found = None if checkpoint is None else checkpoint.get(key)
    if found is None:
        found = propose(name, training, settings)
        if checkpoint is not None:
            checkpoint.put(key, found)
    return found


def fingerprint(
    sources: Sequence[SourceInfo], config: SiteConfig, settings: Mapping[str, Any], **more: object
) -> dict[str, Any]:
    """Return all that a proposal depends on, for `Checkpoint`: everything but the number of workers."""
    kept = {name: value for name, value in settings.items() if name != "workers"}
    inputs = [source.sha256 for source in sources]
    return {"version": __version__, "inputs": inputs, "config": dump(config), "settings": kept, **more}
