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
from qconf.history.records import SourceInfo
from qconf.strategies import Proposal
from qconf.strategies.base import Recorded
from qconf.text import write_whole

FOLDER = ".unfinished"
Proposals = Mapping[str, Proposal]  #: of one strategy, by the names of its variants

#: Fields of a proposal that are texts.
_TEXTS = ("not_exportable", "title", "not_yet")


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

    def get(self, key: str) -> Proposals | None:
        """Return the finished proposals of a strategy, or None."""
        path = self.folder / f"{key}.json"
        try:
            kept = json.loads(path.read_text())
            if kept["fingerprint"] != self.key:
                return None
            return {name: _read(each, path) for name, each in kept["proposals"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, QconfError):
            return None

    def put(self, key: str, proposals: Proposals) -> None:
        """Keep finished proposals, unless a configuration does not express one: such a one takes no time to make."""
        if any(each.system is not None or type(each) is not Proposal for each in proposals.values()):
            return
        kept = {"fingerprint": self.key, "proposals": {name: _written(each) for name, each in proposals.items()}}
        write_whole(self.folder / f"{key}.json", json.dumps(kept))

    def clear(self) -> None:
        """Delete all proposals: the run is complete, or starts again."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _written(proposal: Proposal) -> dict[str, Any]:
    names = (*_TEXTS, "runtimes")
    return {name: getattr(proposal, name) for name in names} | {
        "config": dump(proposal.config),
        "steps": proposal.decisions,
    }


def _read(kept: Mapping[str, Any], path: Path) -> Proposal:
    return Proposal(
        parse(kept["config"], str(path)),
        tuple(Recorded(notes=tuple(values.get("notes", ())), values=values) for values in kept["steps"]),
        runtimes=kept["runtimes"] and tuple((above, most) for above, most in kept["runtimes"]),
        **{name: kept[name] for name in _TEXTS},
    )


def fingerprint(
    sources: Sequence[SourceInfo], config: SiteConfig, settings: Mapping[str, Any], **more: object
) -> dict[str, Any]:
    """Return all that a proposal depends on, for `Checkpoint`: everything but the number of workers."""
    kept = {name: value for name, value in settings.items() if name != "workers"}
    inputs = [source.sha256 for source in sources]
    return {"version": __version__, "inputs": inputs, "config": dump(config), "settings": kept, **more}
