"""Common parts of rehearsals: read an export's folder, run the blocks of its plan, compare before and after."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qconf.export.directory import blocks
from qconf.export.nodes import read_text
from tests.servers.machine import WORK, PrivateMachine

UNDONE = {True: "rolled back", False: "not rolled back", None: "no rollback, since it was made without --current"}


@dataclass
class Rehearsal:
    """The counts and problems of a rehearsal; None if a count does not apply to the batch system."""

    version: str
    statements: int | None = None  #: qmgr statements, loaded and undone
    blocks: int = 0  #: blocks of the plan that were run
    examples: int = 0  #: example jobs that landed in their queue
    jobs: int | None = None  #: jobs that ran or waited when the plan or its undo began
    moved: int | None = None  #: jobs that were in another partition after loading
    rolled_back: bool | None = None  #: None if the export has no rollback
    refused: list[str] = field(default_factory=list)  #: statements of the site's server that the private one refused
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The result in one line."""
        counts = (
            (self.statements, "statements"),
            (self.blocks, "blocks of the plan"),
            (self.examples, "examples in their queue"),
            (self.jobs, "jobs ran or waited"),
            (self.moved, "of them were moved"),
        )
        done = [f"{number} {what}" for number, what in counts if number is not None]
        return f"{self.version}: {', '.join([*done, UNDONE[self.rolled_back]])}"

    def is_undone(self, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
        """Set `rolled_back`; return the names of the outputs that differ."""
        changed = [name for name in before if before[name] != after[name]]
        self.rolled_back = not changed
        return changed


class Plan:
    """An export's folder: its files, and the blocks of its PLAN.md, in order, as `steps` and `undo`."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: read_text(path) for path in sorted(folder.iterdir()) if path.is_file()}
        steps, _, undo = self.files.get("PLAN.md", "").partition("\n## Undo\n")
        self.text, self.steps, self.undo = steps, list(blocks(steps)), list(blocks(undo))

    def put(self, server: PrivateMachine, folder: str = "") -> None:
        """Write the files into a server's working folder, or into `folder` in it, where the blocks then run."""
        server.run(f"mkdir -p {WORK}/{folder}")
        for name, text in self.files.items():
            server.write(name, text, folder=f"{WORK}/{folder}")
        if folder:
            self.steps = [(title, f"cd {folder}\n{block}") for title, block in self.steps]
            self.undo = [(title, f"cd {folder}\n{block}") for title, block in self.undo]


def run_blocks(steps: list[tuple[str, str]], server: PrivateMachine, result: Rehearsal) -> None:
    """Run blocks of a plan, each in a new shell, up to a timeout; failures are added to `result`."""
    for title, block in steps:
        try:
            why = server.run_block(block)
        except subprocess.TimeoutExpired as error:
            result.problems.append(f"{title}: not done after {error.timeout:.0f} s")
            return
        result.blocks += 1
        if why is not None:
            result.problems.append(f"{title}: {why}")


def saved(server: PrivateMachine) -> dict[str, str]:
    """Return the outputs of the server's `saved` commands, which an undo must restore."""
    return {name: server.run(command).stdout for name, command in server.saved.items()}
