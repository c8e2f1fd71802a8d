"""Long work at the terminal: a bar while it goes on, and where an interrupt finds what was finished."""

from __future__ import annotations

from pathlib import Path

import click

DIRECTORY = "qconf.directory"  #: in the context, of a command that can go on after an interrupt


def resumable(directory: Path) -> Path:
    """Note the run directory of the command that runs, and return it."""
    click.get_current_context().meta[DIRECTORY] = directory
    return directory


def not_resumable() -> None:
    """Note that all of the running command is written: an interrupt leaves nothing to go on from."""
    click.get_current_context().meta.pop(DIRECTORY, None)


def interrupt_message(context: click.Context) -> str:
    """Say to who interrupted a command what it leaves."""
    directory = context.meta.get(DIRECTORY)
    if directory is None:
        return "interrupted"
    from qconf.recommend.checkpoint import unfinished

    left = "--resume goes on from what was finished" if unfinished(directory) else "nothing was written"
    return f"interrupted: {left}"


class Progress:
    """A bar on a terminal, nothing when piped."""

    def __init__(self, title: str) -> None:
        import sys

        from rich.console import Console
        from rich.progress import Progress as Bar

        self.title = title
        self.bar = Bar(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())

    def __enter__(self) -> Progress:
        """Show the bar."""
        self.bar.start()
        self.task = self.bar.add_task(self.title, total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        """Take the bar away."""
        self.bar.stop()

    def step(self, what: str, share: float | None = None) -> None:
        """Say what is being done and, where that is known, how much of all is done."""
        total = None if share is None else 1.0
        self.bar.update(self.task, description=f"{self.title}: {what}", total=total, completed=share)
