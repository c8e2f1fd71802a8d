"""What commands print about a history: what was read, left out and changed, and warnings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from qconf.errors import InputError

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.history import History
    from qconf.history.records import SourceInfo

MANY_UNKNOWN = 0.1  # share of all jobs whose queue the configuration lacks, from which a warning is given


def report_history(
    history: History,
    base: SiteConfig,
    warnings: Iterable[str] = (),
    *,
    derived: bool,
    quiet: bool = False,
    err: bool = False,
    brief: bool = False,
) -> None:
    """Print what was read, left out and changed, and the warnings; with `err` all on stderr.

    `brief` leaves out what was changed, `quiet` all but the warnings, `derived` the warnings of the configuration.
    """
    if quiet:
        warn([*([] if derived else base.warnings()), *warnings])
        return
    first, last = history.span
    say(
        f"{len(history)} job{'s' * (len(history) != 1)} from {history.date(first)[:10]} to {history.date(last)[:10]} "
        f"on {base.machine.name} ({base.machine.cores} cores, {len(base.queues)} queue{'s' * (len(base.queues) != 1)})",
        err=err,
    )
    report_cleaning(history, base, derived=derived, err=err, brief=brief)
    warn(warnings)


def report_cleaning(
    history: History, base: SiteConfig, *, derived: bool, err: bool = False, brief: bool = False
) -> None:
    """Print how many jobs were left out and changed, by reason, and warnings of a configuration not `derived`."""
    of, in_ = (" of the whole log", " in the whole log") if history.outside else ("", "")
    shown = [(f"left out{of}", history.reasons), (f"changed{in_}", history.changed)]
    for what, counts in shown[: 1 if brief else 2]:
        counted = [f"{count} {reason}" for reason, count in counts.items() if count]
        if counted:
            say(f"{what}: {', '.join(counted)}", err=err)
    warn([] if derived else base.warnings())


def say(text: str, *, err: bool = False, indent: str = "  ") -> None:
    """Print a paragraph at the width of the terminal, or 80 columns; lines after the first begin with `indent`."""
    from qconf.report.layout import filled

    click.echo(filled(text, indent=indent), err=err)


def warn(warnings: Iterable[str]) -> None:
    """Print warnings on stderr."""
    for warning in warnings:
        say(f"warning: {warning}", err=True)


def warn_changed(inputs: Iterable[SourceInfo]) -> None:
    """Warn of input files that have changed since they were read."""
    from qconf.history.records import SourceInfo

    for source in inputs:
        try:
            same = SourceInfo.of(source.path) == source
        except InputError:
            same = False
        if not same:
            warn([f"{source.path}: changed since it was read; the result is of what it was"])


def history_warnings(base: SiteConfig, *histories: History) -> list[str]:
    """Return warnings of histories that were cleaned for a configuration; the first one is evaluated."""
    from qconf.evaluation.targets import absent_members
    from qconf.history import binding_limits

    kept_out = dict.fromkeys(path for history in histories for path in binding_limits(history))
    text = (
        "{}: keeps jobs out of this history, and counts as fixed: what lifts it would be simulated without them. "
        "Raise it in the configuration to have them simulated"
    )
    return [*unknown_queues(histories[0]), *map(text.format, kept_out), *absent_members(histories[0], base)]


def unknown_queues(history: History) -> list[str]:
    """Return a warning if many jobs, or all, name a queue that the configuration lacks."""
    from qconf.history.cleaning import UNKNOWN_QUEUE

    jobs, unknown = len(history) + history.outside, history.changed.get(UNKNOWN_QUEUE, 0)
    if unknown < MANY_UNKNOWN * jobs:
        return []
    if unknown < jobs:
        return [f"{unknown} of {jobs} jobs name a queue that the configuration lacks, and are routed by their size"]
    return ["no job names a queue of this configuration, so all are routed by their size: is it the right one?"]
