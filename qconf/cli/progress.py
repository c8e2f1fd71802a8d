"""Long work at the terminal: how far it is while it goes on, and where an interrupt finds what was finished."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Protocol

import click

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

    from qconf.recommend.checkpoint import Checkpoint

DIRECTORIES = "qconf.directories"  #: in the context, of a command that can go on after an interrupt
INTERVAL = 60.0  # seconds between lines where there is no terminal; the first comes after as many
COLUMNS = 80  #: of such a line
KNOWN = 0.02  # share of the work that has to be done before an estimate is shown


class Step(Protocol):
    """What a long computation calls as it goes on."""

    def __call__(self, what: str, share: float | None = None) -> None:
        """Say what begins now and, where known, which share of all work is done, 0 to 1; it never falls."""


@dataclass
class Estimate:
    """Share of the work that is done, and the time that the rest takes: by the slower of two paces.

    One pace is that of all that was done, the other that of the last half of it. Where the beginning was fast, as that
    of a resumed run is, the first alone would promise too much.
    """

    clock: Callable[[], float] = time.monotonic
    share: float | None = None
    what: str = ""
    _marks: list[tuple[float, float]] = field(default_factory=list)  # (share, time), both ascending

    def __post_init__(self) -> None:
        self._marks.append((0.0, self.clock()))

    def step(self, what: str, share: float | None = None) -> None:
        """Take a step; a share below the last one, or above 1, is not believed."""
        self.what = what
        if share is not None:
            self.share = min(max(share, self.share or 0.0), 1.0)
            if self.share > self._marks[-1][0]:
                self._marks.append((self.share, self.clock()))

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self._marks[0][1]

    @property
    def remaining(self) -> float | None:
        """Seconds until the end; None while nothing can be said."""
        (first, began), (done, at) = self._marks[0], self._marks[-1]
        if done < KNOWN:
            return None
        half, then = next(mark for mark in reversed(self._marks) if mark[0] <= done / 2)
        paces = (at - began) / (done - first), (at - then) / (done - half)
        left = max(paces) * (1 - done)
        # While a step goes on the time runs down, and up again where the step takes longer: for as long as it did.
        since = self.clock() - at
        return max(left - since, since - left, left / 2)

    def __str__(self) -> str:
        """Write it as one line: what is done comes last, as it may be long."""
        parts = []
        if self.share is not None:
            parts.append(f"{100 * self.share:.0f} %")
        parts.append(f"{clock_text(self.elapsed)} elapsed")
        if self.remaining is not None:
            parts.append(f"about {clock_text(self.remaining)} remaining")
        return ", ".join([*parts, *filter(None, [self.what])])


def clock_text(seconds: float) -> str:
    """Write a time as ``4:05`` or ``1:04:05``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


@contextmanager
def progress(title: str, *, quiet: bool = False, interval: float = INTERVAL) -> Iterator[Step]:
    """Show on stderr how far the work is, and yield what takes its steps.

    At a terminal it is a bar with percent, elapsed and remaining time; elsewhere, in a pipe or under cron, a line every
    `interval` seconds, so that short runs stay silent. With `quiet` nothing is shown.
    """
    found = Estimate()
    if quiet:
        yield found.step
    elif sys.stderr.isatty():
        with _bar(title, found):
            yield found.step
    else:
        with _lines(title, found, interval):
            yield found.step


@contextmanager
def _lines(title: str, found: Estimate, interval: float) -> Iterator[None]:
    done = Event()

    def write() -> None:
        while not done.wait(interval):
            click.echo(shorten(f"{title}: {found}", COLUMNS, placeholder=" ..."), err=True)

    writer = Thread(target=write, name="progress", daemon=True)
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()


@contextmanager
def _bar(title: str, found: Estimate) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn
    from rich.table import Column
    from rich.text import Text

    from qconf.report.layout import styled

    class State(ProgressColumn):
        """Moves the bar, too: rich asks for the columns several times a second."""

        def render(self, task: Task) -> Text:
            task.total, task.completed = (None, 0.0) if found.share is None else (1.0, found.share)
            return Text(f"{title}: {found}")

    columns = BarColumn(bar_width=10), State(table_column=Column(no_wrap=True, overflow="ellipsis"))
    with Progress(*columns, console=Console(file=styled(sys.stderr)), transient=True) as bar:
        bar.add_task(title, total=None)
        yield


def resumable(directory: Path, fingerprint: Mapping[str, Any], *, resume: bool) -> Checkpoint:
    """Return where finished work is kept, in a run directory that is the running command's alone until it ends.

    It says what becomes of the work of a run before this one.
    """
    from qconf.cli.messages import say
    from qconf.recommend.checkpoint import Checkpoint
    from qconf.recommend.lock import exclusive

    context = click.get_current_context()
    context.with_resource(exclusive(directory))
    checkpoint = Checkpoint(directory, fingerprint, resume=resume)
    if checkpoint.note:
        say(f"note: {checkpoint.note}", err=True)
    context.meta.setdefault(DIRECTORIES, []).append(directory)
    return checkpoint


def interrupt_message(context: click.Context) -> str:
    """Say to who interrupted a command what it leaves."""
    if DIRECTORIES not in context.meta:
        return "interrupted"
    return f"interrupted: {what_is_left(context) or 'nothing is left to go on from'}"


def what_is_left(context: click.Context) -> str:
    """Say what a command that came to no end leaves to go on from; empty if nothing."""
    from qconf.recommend.checkpoint import unfinished

    found = any(map(unfinished, context.meta.get(DIRECTORIES, ())))
    return "--resume goes on from what was finished" if found else ""
