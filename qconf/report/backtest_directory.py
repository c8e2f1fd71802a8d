"""The directory of a walk-forward: tables, figures and a page, the same bytes for the same inputs and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from qconf.backtest import Backtest, FoldResult
from qconf.history import History
from qconf.report.backtest import backtest_frame, render_walk, walk_figures
from qconf.report.html import settings_shown
from qconf.report.run_directory import (
    RECORD,
    TIMINGS,
    check_target,
    history_record,
    inputs_record,
    labels_of,
    site_record,
    summary_record,
    versions,
    write_files,
)
from qconf.text import as_json, digests

TABLES = ("backtest.csv", "comparison.csv")


def write_walk(
    directory: str | Path,
    found: Backtest,
    history: History,
    *,
    inputs: Mapping[str, str | Path] | None = None,
    timings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    assumed_current: bool = False,
    one: bool = False,
) -> tuple[str, ...]:
    """Write report.html, backtest.csv or comparison.csv, figures/, dropped.csv, run.json, timings.json.

    All but timings.json depend on nothing but the inputs, the seed and the versions of what computed them.

    Parameters
    ----------
    directory : path
        Made if missing. An earlier run in it is replaced.
    found : Backtest
    history : History
        All that was read.
    inputs : dict of str to path, optional
        What else was read, by what it is.
    timings : dict, optional
        Seconds, by what took them; those of the strategies are added.
    warnings : sequence of str
    assumed_current : bool
        No configuration was given.
    one : bool
        One period alone was to be judged: comparison.csv, which does not name it.

    Returns
    -------
    tuple of str
        The files' names, relative to the directory, sorted.

    Raises
    ------
    InputError
        The directory holds files of these names that are of no run, or one of the inputs.
    """
    table = backtest_frame(found)
    if one:
        table = table.drop(columns="period")
    drawn = walk_figures(found)
    told = [*dict.fromkeys([*warnings, *([] if assumed_current else found.base.warnings())])]
    labels = labels_of([source.path for source in history.sources])
    dropped = history.dropped.assign(file=history.dropped["file"].map(lambda path: labels.get(path, Path(path).name)))
    files = {
        "report.html": render_walk(found, history, drawn, told, one=one),
        table_name(one=one): table.to_csv(index=False, lineterminator="\n"),
        "dropped.csv": dropped.to_csv(index=False, lineterminator="\n"),
        **{f"figures/{name}.svg": svg for name, svg in drawn.items()},
    }
    record = {
        "versions": versions(),
        "objective": found.objective,
        "seed": found.settings["seed"],
        "settings": settings_shown(found.settings),
        "history": history_record(history, labels),
        "base": site_record(found.base),
        "assumed_current": assumed_current,
        "periods": [asdict(fold) for fold in found.folds],
        "skipped": [{"period": label, "why": why} for label, why in found.skipped],
        "averages": [asdict(average) for average in found.averages],
        "results": [_verdict(verdict) for verdict in found.results],
        "notes": found.notes,
        "inputs": inputs_record(history, labels, inputs or {}),
        "warnings": told,
        "files": digests(files),
    }
    files[RECORD] = as_json(record)
    seconds: dict[str, float] = {}
    for verdict in found.results:
        seconds[verdict.strategy] = seconds.get(verdict.strategy, 0.0) + verdict.seconds
    files[TIMINGS] = as_json({**(timings or {}), "strategies": seconds})
    write_files(Path(directory), files, [*(s.path for s in history.sources), *(inputs or {}).values()])
    return tuple(sorted(files))


def table_name(*, one: bool) -> str:
    """Name the table of a walk over many periods, or over one."""
    return TABLES[one]


def check_walk_target(directory: Path, inputs: Sequence[str | Path], *, one: bool) -> None:
    """Refuse a directory in which a run would destroy something, before the long computation."""
    check_target(directory, inputs, names=("report.html", table_name(one=one), "dropped.csv", RECORD, TIMINGS))


def _verdict(verdict: FoldResult) -> dict[str, Any]:
    return {
        "period": verdict.period,
        "strategy": verdict.strategy,
        "fallback": verdict.fallback,
        "not_exportable": verdict.not_exportable,
        "changes_fixed": verdict.fixed,
        "test": summary_record(verdict.summary),
        "config": site_record(verdict.config),
        "decisions": verdict.decisions,
    }
