"""What every rehearsal does: read an export's folder, run the blocks of its plan, and compare before with after."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qconf.export.nodes import read_text
from qconf.export.plan import blocks
from tests.servers.machine import WORK, PrivateMachine

UNDONE = {True: "rolled back", False: "not rolled back", None: "no rollback, since it was made without --current"}


@dataclass
class Rehearsal:
    """What was done, and what went otherwise than the plan says; None for what a batch system does not count."""

    version: str
    statements: int | None = None  #: of qmgr, loaded and taken back
    blocks: int = 0  #: blocks of the plan, each run in a shell of its own
    examples: int = 0  #: jobs that landed in the queue that the configuration has for them
    jobs: int | None = None  #: that ran or waited when the plan or its undo began
    moved: int | None = None  #: of those, in another partition when it was loaded
    rolled_back: bool | None = None  #: None where the export has no rollback
    refused: list[str] = field(default_factory=list)  #: statements of the present server that this one does not take
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One line for a person."""
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
        """Note whether the undo brought back what there was; return the names of what differs."""
        changed = [name for name in before if before[name] != after[name]]
        self.rolled_back = not changed
        return changed


class Plan:
    """An export's folder: its files, and the blocks of its PLAN.md in their order."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: read_text(path) for path in sorted(folder.iterdir()) if path.is_file()}
        steps, _, undo = self.files.get("PLAN.md", "").partition("\n## Undo\n")
        self.text, self.steps, self.undo = steps, list(blocks(steps)), list(blocks(undo))

    def put(self, server: PrivateMachine, folder: str = "") -> None:
        """Write the files into the working folder of a server; or into a new one there, where blocks are run then."""
        server.run(f"mkdir -p {WORK}/{folder}")
        for name, text in self.files.items():
            server.write(name, text, folder=f"{WORK}/{folder}")
        if folder:
            self.steps = [(title, f"cd {folder}\n{block}") for title, block in self.steps]
            self.undo = [(title, f"cd {folder}\n{block}") for title, block in self.undo]


def run_blocks(steps: list[tuple[str, str]], server: PrivateMachine, result: Rehearsal) -> None:
    """Run blocks of a plan, each in a shell of its own; what fails is noted in `result`."""
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
    """Return what an undo has to bring back."""
    return {name: server.run(command).stdout for name, command in server.saved.items()}
