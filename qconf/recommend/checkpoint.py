"""What an interrupted run had finished: one file per strategy, good only for the same question."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qconf import __version__
from qconf.config import SiteConfig, dump, parse
from qconf.errors import QconfError
from qconf.history.records import SourceInfo
from qconf.strategies import Options, Proposal
from qconf.text import write_whole

FOLDER = ".unfinished"


def kept(directory: Path) -> bool:
    """Tell whether a run directory holds finished proposals of a run that is not complete."""
    return any((directory / FOLDER).glob("*.json"))


class Checkpoint:
    """Keeps finished proposals in a folder of the run directory until the run is complete.

    Parameters
    ----------
    directory : Path
        The run directory.
    question : dict
        Everything that the answers depend on: inputs' sha256, configuration, settings.
    resume : bool
        Use what is there, if it answers the same question; else begin anew.
    """

    def __init__(self, directory: Path, question: dict[str, Any], *, resume: bool) -> None:
        text = json.dumps(question, sort_keys=True, default=str)
        self.key = hashlib.sha256(text.encode()).hexdigest()
        self.folder = directory / FOLDER
        if not resume:
            self.clear()

    def get(self, key: str) -> Proposal | None:
        """Return a finished proposal, or None."""
        path = self.folder / f"{key}.json"
        try:
            kept = json.loads(path.read_text())
            if kept["question"] != self.key:
                return None
            runtimes = kept["runtimes"] and tuple((above, most) for above, most in kept["runtimes"])
            return Proposal(
                parse(kept["config"], str(path)), kept["decisions"], kept["not_exportable"], runtimes=runtimes
            )
        except (OSError, ValueError, KeyError, TypeError, QconfError):
            return None

    def put(self, key: str, proposal: Proposal) -> None:
        """Keep a finished proposal; not one that its configuration does not say, which takes no time to make again."""
        if proposal.system is not None or type(proposal) is not Proposal:
            return
        kept = {
            "question": self.key,
            "config": dump(proposal.config),
            "decisions": proposal.decisions,
            "not_exportable": proposal.not_exportable,
            "runtimes": proposal.runtimes,
        }
        write_whole(self.folder / f"{key}.json", json.dumps(kept))

    def clear(self) -> None:
        """Forget everything: the run is complete, or begins anew."""
        shutil.rmtree(self.folder, ignore_errors=True)


def question(sources: Sequence[SourceInfo], config: SiteConfig, options: Options, **more: object) -> dict[str, Any]:
    """Say what a run is about, for `Checkpoint`: all on which an answer depends, so not the number of workers."""
    settings = {name: value for name, value in asdict(options).items() if name != "workers"}
    inputs = [source.sha256 for source in sources]
    return {"version": __version__, "inputs": inputs, "config": dump(config), "settings": settings, **more}
