"""Long work at the terminal: a bar while it goes on, and where an interrupt finds what was finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show a bar on a terminal, nothing when piped; yield what takes a step and, where known, the share of all done."""
    import sys

    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(title, total=None)

        def step(what: str, share: float | None = None) -> None:
            total = None if share is None else 1.0
            bar.update(task, description=f"{title}: {what}", total=total, completed=share)

        yield step
