"""The fidelity of a configuration to a log, over all windows, by group, and the jobs farthest off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from qconf.config import SiteConfig, format_clock
from qconf.fidelity.causes import Farthest, farthest
from qconf.fidelity.errors import Errors, Figures, Starts, by_group, by_window
from qconf.fidelity.grade import FEWEST, Grade, grade
from qconf.fidelity.windows import LENGTHS, MOST, LogWindow, Recorded, Timeline, cut, held, spans
from qconf.history import History
from qconf.history.times import zone

SHOWN = 10  #: jobs listed as farthest off


@dataclass(frozen=True)
class Span:
    """A window and its figures; times are Unix seconds."""

    begin: int
    end: int
    figures: Figures


@dataclass(frozen=True)
class Group:
    """The figures of the jobs of a queue, of a user, or started in an hour of the day."""

    kind: str
    name: str
    figures: Figures


@dataclass(frozen=True)
class Verification:
    """How near simulated starts are to recorded ones."""

    config: SiteConfig
    windows: tuple[Span, ...]
    total: Figures
    groups: tuple[Group, ...]
    farthest: tuple[Farthest, ...]
    held: int  #: jobs of the windows that something other than the scheduler held
    without_held: Figures  #: of a simulation without the held jobs
    grade: Grade | None  #: None if too few jobs start
    warnings: tuple[str, ...]
    timezone: str

    def document(self) -> dict[str, Any]:
        """Return the verification as JSON values."""
        found = asdict(self) | {"config": self.config.model_dump(mode="json")}
        del found["timezone"]
        return found

    @property
    def verification(self) -> Verification:
        """Itself, so that a calibration and a verification have the same field."""
        return self

    def comment(self) -> str:
        """Return the header comment of the configuration file."""
        return "As given, with the grade of qconf fidelity on all windows."

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table: each window, each group, all, and all without held jobs."""
        where = zone(self.timezone)
        for each in self.windows:
            begin = datetime.fromtimestamp(each.begin, where).strftime("%Y-%m-%d %H:%M:%S")
            yield _row("window", begin, each.figures, format_clock(each.end - each.begin))
        for group in self.groups:
            yield _row(group.kind, group.name, group.figures)
        yield _row("all", "", self.total)
        yield _row("all", "without held jobs", self.without_held)


def _row(of: str, name: str, found: Figures, duration: str = "") -> dict[str, Any]:
    measured: dict[str, Any] = asdict(found)
    counted, every = measured.pop("counted"), measured.pop("every")
    more = {f"all_{key}": value for key, value in every.items()}
    return {"of": of, "name": name, "duration": duration, **counted, **measured, **more}


def verify(
    history: History,
    config: SiteConfig,
    *,
    lengths: tuple[int, int] = LENGTHS,
    count: int = MOST,
    seed: int = 0,
    shown: int = SHOWN,
    within: tuple[int, int] | None = None,
) -> Verification:
    """Simulate windows of a history, which was cleaned with `config`, `within` these seconds.

    Raises `InputError` if the log has no starts.
    """
    recorded = Recorded.of(history, config)
    drawn = spans(recorded, lengths, count, seed, within)
    windows = cut(recorded, drawn)
    return verification(history, config, recorded, windows, shown=shown, empty=len(drawn) - len(windows))


def grade_of(history: History, config: SiteConfig, within: tuple[int, int]) -> Grade | None:
    """Return only the grade, from windows within these seconds of a history."""
    recorded = Recorded.of(history, config)
    windows = cut(recorded, spans(recorded, within=within))
    return grade(Figures.of(Starts.of(windows, config)), len(windows))


def verification(
    history: History,
    config: SiteConfig,
    recorded: Recorded,
    windows: Sequence[LogWindow],
    *,
    shown: int = SHOWN,
    empty: int = 0,
) -> Verification:
    """Simulate these windows of a log under `config`; `empty` windows were left out."""
    starts = Starts.of(windows, config)
    timeline = Timeline.of(recorded)
    kept_back = held(recorded, timeline, np.unique(starts.row[starts.began]))
    total = Figures.of(starts)
    figures = by_window(starts, len(windows))
    epoch = history.epoch
    return Verification(
        config=config,
        windows=tuple(
            Span(each.begin + epoch, each.end + epoch, found) for each, found in zip(windows, figures, strict=True)
        ),
        total=total,
        groups=tuple(Group(*each) for each in by_group(starts, history, recorded)),
        farthest=farthest(shown, starts, windows, config, history, recorded, timeline, kept_back),
        held=int(kept_back.sum()),
        without_held=Figures.of(Starts.of(windows, config, kept_back)),
        grade=grade(total, len(windows)),
        warnings=tuple(_warnings(recorded, windows, empty, total, starts)),
        timezone=history.timezone,
    )


def _warnings(
    recorded: Recorded, windows: Sequence[LogWindow], empty: int, total: Figures, starts: Starts
) -> Iterator[str]:
    if recorded.unknown:
        yield f"{recorded.unknown} jobs are left out: the log tells no start of them, or one before their submission"
    if deleted := int((~starts.began).sum()):
        early = int((~starts.began & (starts.simulated < starts.until)).sum())
        yield f"{deleted} jobs wait in windows until they are deleted; {early} of them are simulated to start before"
    if crowded := sum(window.crowded_out for window in windows):
        yield f"{crowded} times more cores ran at the begin of a window than the machine has: the last to start wait"
    if empty:
        yield f"{empty} windows are left out: no job waits in them"
    if total.inside < FEWEST:
        yield f"only {total.inside} jobs start inside windows: too few for a grade"


__all__ = ["Errors", "Group", "Span", "Verification", "grade_of", "verification", "verify"]
