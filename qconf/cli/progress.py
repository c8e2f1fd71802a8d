"""Progress of long commands on stderr, and run directories that an interrupted command can resume from."""

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

DIRECTORIES = "qconf.directories"  #: key in the context's `meta`: run directories from which a command can be resumed
INTERVAL = 60.0  # seconds between lines without a terminal, and before the first one
COLUMNS = 80  #: width of such a line
KNOWN = 0.02  # share of the work from which the remaining time is shown


class Step(Protocol):
    """A callback of long computations for their progress."""

    def __call__(self, what: str, share: float | None = None) -> None:
        """Report what begins now and, if known, the share of all work that is done, 0 to 1 and ascending."""


@dataclass
class Estimate:
    """The share of the work that is done, and the remaining time: by the slower of two paces.

    One pace is that of all finished work, the other that of its last half. After a fast beginning, as in a resumed run,
    the first alone would promise too much.
    """

    clock: Callable[[], float] = time.monotonic
    share: float | None = None
    what: str = ""
    _marks: list[tuple[float, float]] = field(default_factory=list)  # (share, time), both ascending

    def __post_init__(self) -> None:
        self._marks.append((0.0, self.clock()))

    def step(self, what: str, share: float | None = None) -> None:
        """Record a step; a share below the last one counts as the last one, above 1 as 1."""
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
        """Estimated seconds until the end; None before the share `KNOWN` is done."""
        (first, began), (done, at) = self._marks[0], self._marks[-1]
        if done < KNOWN:
            return None
        half, then = next(mark for mark in reversed(self._marks) if mark[0] <= done / 2)
        paces = (at - began) / (done - first), (at - then) / (done - half)
        left = max(paces) * (1 - done)
        # During a step the time counts down; when the step takes longer than estimated, it counts up again.
        since = self.clock() - at
        return max(left - since, since - left, left / 2)

    def __str__(self) -> str:
        """Return one line; the current step comes last, since it may be long."""
        parts = []
        if self.share is not None:
            parts.append(f"{100 * self.share:.0f} %")
        parts.append(f"{clock_text(self.elapsed)} elapsed")
        if self.remaining is not None:
            parts.append(f"about {clock_text(self.remaining)} remaining")
        return ", ".join([*parts, *filter(None, [self.what])])


def clock_text(seconds: float) -> str:
    """Return a time like ``4:05`` or ``1:04:05``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


@contextmanager
def progress(title: str, *, quiet: bool = False, interval: float = INTERVAL) -> Iterator[Step]:
    """Show progress on stderr; yield the callback that takes the steps.

    A terminal shows a bar with percent, elapsed and remaining time; other outputs (a pipe, cron) get a line every
    `interval` seconds, so short runs print nothing. `quiet` shows nothing.
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
        """Updates the bar, too, since rich renders columns several times a second."""

        def render(self, task: Task) -> Text:
            task.total, task.completed = (None, 0.0) if found.share is None else (1.0, found.share)
            return Text(f"{title}: {found}")

    columns = BarColumn(bar_width=10), State(table_column=Column(no_wrap=True, overflow="ellipsis"))
    with Progress(*columns, console=Console(file=styled(sys.stderr)), transient=True) as bar:
        bar.add_task(title, total=None)
        yield


def resumable(directory: Path, fingerprint: Mapping[str, Any], *, resume: bool) -> Checkpoint:
    """Return the checkpoint of a run directory, which is locked until the running command ends.

    Prints a note if the work of an earlier run is dropped or resumed.
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
    """Return the message for an interrupted command, with how to resume it."""
    if DIRECTORIES not in context.meta:
        return "interrupted"
    return f"interrupted: {what_is_left(context) or 'nothing is left to go on from'}"


def what_is_left(context: click.Context) -> str:
    """Return how to resume a command that did not finish; empty if it cannot be resumed."""
    from qconf.recommend.checkpoint import unfinished

    found = any(map(unfinished, context.meta.get(DIRECTORIES, ())))
    return "--resume goes on from what was finished" if found else ""
