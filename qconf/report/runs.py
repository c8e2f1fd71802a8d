"""Past recommendations month by month: what each promised, and what gain followed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from rich.table import Table

from qconf.errors import InputError
from qconf.history.records import SourceInfo
from qconf.inert import csv_text
from qconf.report.layout import new_table
from qconf.report.recorded import older, read_record, winning
from qconf.report.run_directory import RECORD
from qconf.report.wording import ABSENT, date, gain_text, interval_text

_NOTHING: dict[str, Any] = dict.fromkeys(("gain", "expected", "low", "high"))  #: promised


@dataclass(frozen=True)
class PastRun:
    """A run, and a later run's evaluation of its recommendation; None for values that are unknown."""

    run: str  #: the directory; empty where it is known from a later run alone
    sha256: str  #: of its run.json
    first_submit: str  #: of its history, local time as ISO 8601; of Unix seconds in UTC where no more is known
    last_submit: str
    jobs: int
    verdict: str
    winner: str
    title: str
    gain: float | None  #: on the test period
    expected: float | None
    low: float | None
    high: float | None
    realised: float | None = None
    inside: bool | None = None
    loaded: bool | None = None
    before: float | None = None  #: mean wait of the jobs since under the configuration in force before, seconds
    after: float | None = None  #: the same under the one recommended
    realised_in: str = ""  #: the directory of the later run

    @property
    def period(self) -> str:
        """The calendar month if all jobs are in one, else first and last day."""
        first, last = self.first_submit[:10], self.last_submit[:10]
        return first[:7] if first[:7] == last[:7] else f"{first} to {last}"


def past_runs(directories: Sequence[Path], left_out: Callable[[str], None] | None = None) -> list[PastRun]:
    """Read runs of ``qconf tune``, or folders of runs; join each with a later run's evaluation; sort them by period.

    Raises InputError if a directory holds no run, or an older one that recorded less; in a folder of several such a run
    is left out instead, and `left_out` gets the reason.
    """
    paths = list(dict.fromkeys(path for directory in directories for path in _records(directory)))
    if not paths:
        raise InputError("holds no run of qconf tune", file=directories[0], fix="name directories that it wrote")
    records, found = {}, {}
    for path in paths:
        try:
            record = read_record(path)
            past, _ = _past_run(path, record), _span(path, record)
        except InputError as error:
            if left_out is None or path.parent in directories:
                raise
            left_out(str(error))
            continue
        records[path], found[past.sha256] = record, past
    for path, record in sorted(records.items(), key=lambda each: _span(*each)):
        if record.get("last"):
            try:
                joined = _joined(found, record["last"], str(path.parent))
            except (KeyError, TypeError, AttributeError) as error:
                raise older(record, path, "another form of what became of the run before it") from error
            found[joined.sha256] = joined
    return sorted(found.values(), key=lambda past: (past.first_submit, past.last_submit, past.run))


def _records(directory: Path) -> list[Path]:
    """Return the run.json of a run, or of each run of ``qconf tune`` in a folder."""
    if (directory / RECORD).exists() or not directory.is_dir():
        return [directory / RECORD]
    inside = sorted(path for path in directory.glob(f"*/{RECORD}"))
    return [path for path in inside if '"verdict"' in path.read_text(encoding="utf-8", errors="replace")]


def _span(path: Path, record: dict[str, Any]) -> tuple[int, str]:
    try:
        return int(record["spans"]["history"]["first_submit"]), str(path)
    except (KeyError, TypeError, ValueError) as error:
        raise older(record, path, "no span of its history") from error


def _past_run(path: Path, record: dict[str, Any]) -> PastRun:
    try:
        row, promised = winning(record)
        return PastRun(
            run=str(path.parent),
            sha256=SourceInfo.of(path).sha256,
            verdict=record["verdict"],
            winner=row["name"],
            title=row.get("title", ""),
            **{name: record["history"][name] for name in ("first_submit", "last_submit", "jobs")},
            **(_NOTHING if promised is None else vars(promised)),
        )
    except (KeyError, TypeError, StopIteration) as error:
        raise older(record, path, "another form of what was recommended") from error


def _joined(found: Mapping[str, PastRun], last: dict[str, Any], run: str) -> PastRun:
    """Return a run with the evaluation in a later one, `run`."""
    known = asdict(found.get(last["sha256"]) or _only_in(last))
    waits = {name: last["mean_wait"][name] for name in ("before", "after")}
    values = {name: last[name] for name in ("realised", "inside", "loaded")}
    return PastRun(**{**known, **waits, **values, "realised_in": run})


def _only_in(last: dict[str, Any]) -> PastRun:
    """Return a run that is known only from a later one."""
    span: dict[str, Any] = {
        name: date(last["span"][name], "UTC").replace(" ", "T") for name in ("first_submit", "last_submit")
    }
    named = {name: last[name] for name in ("sha256", "verdict", "winner", "title")}
    promised = last["promised"] or _NOTHING
    return PastRun(run="", jobs=last["span"]["jobs"], **span, **named, **promised)


def summary(found: Sequence[PastRun]) -> str:
    """Return a sentence on the evaluated promises: how many, how many held, the mean gains; empty without any."""
    known = [past for past in found if past.realised is not None and past.expected is not None]
    if not known:
        return ""
    expected, realised = (gain_text(fmean(getattr(each, name) for each in known)) for name in ("expected", "realised"))
    inside = sum(bool(past.inside) for past in known)
    return (
        f"Promises with jobs since: {len(known)}, of which {inside} inside the interval; the mean gain promised is "
        f"{expected} %, the realised one {realised} %."
    )


def table(found: Sequence[PastRun]) -> Table:
    """Return a table with a row for each run."""
    out = new_table(("period", "change", "run"), ("promised %", "realised %", "inside", "loaded"))
    for past in found:
        change = past.verdict if past.winner == "current" else past.title or past.winner
        texts = (past.period, change, past.run or ABSENT)
        interval = ABSENT if past.expected is None else interval_text(past, short=True)  # type: ignore[arg-type]
        known = ({True: "yes", False: "no", None: ABSENT}[each] for each in (past.inside, past.loaded))
        out.add_row(*texts, interval, gain_text(past.realised), *known)
    return out


def as_csv(found: Sequence[PastRun]) -> str:
    """Return the runs as CSV: gains are fractions, waits seconds, unknown values empty."""
    return csv_text(pd.DataFrame([asdict(past) for past in found]))
