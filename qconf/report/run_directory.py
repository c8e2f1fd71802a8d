"""The directory of a run: page, tables, figures and record, the same bytes for the same inputs and seed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from parsim.metrics import Summary
from parsim.model.node_types import CORES
from qconf.backtest import Backtest, FoldResult
from qconf.config import dump
from qconf.errors import InputError
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.export import Exporter
from qconf.history import History
from qconf.history.records import SourceInfo
from qconf.inert import csv_text
from qconf.recommend import Recommendation, Row
from qconf.recommend.checkpoint import FOLDER, versions
from qconf.report import backtest
from qconf.report.backtest import is_comparison, render_backtest
from qconf.report.exported import QUEUES, Exported
from qconf.report.figures import backtest_figures, figures
from qconf.report.frames import backtest_frame, comparison_frame
from qconf.report.html import settings_shown
from qconf.report.tune_page import render
from qconf.report.verdict import advise
from qconf.text import (
    all_or_nothing,
    as_json,
    changed,
    digests,
    keep_backup,
    refuse_outside,
    refuse_overwrite,
    remove_unchanged,
    write_whole,
)

RECORD, TIMINGS = "run.json", "timings.json"
#: The files of a run while they are written, old and new: if the run is killed, all of them are its own.
JOURNAL = f"{FOLDER}/files"
_COMMON = ("report.html", "dropped.csv", RECORD, TIMINGS)
_TABLES = {"tune": ("comparison.csv", "config.yaml"), "compare": ("comparison.csv",), "backtest": ("backtest.csv",)}


@dataclass(frozen=True)
class Run:
    """The written files of a run."""

    directory: Path
    files: tuple[str, ...]  #: relative to the directory, sorted
    backups: tuple[str, ...] = ()  #: copies of files that were edited since the last run


def write_run(
    directory: str | Path,
    result: Recommendation | Backtest,
    history: History,
    *,
    exported: Exported | None = None,
    inputs: Mapping[str, SourceInfo] | None = None,
    timings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    assumed_current: bool = False,
) -> Run:
    """Write report.html, the table, figures/, dropped.csv, run.json and timings.json.

    A recommendation also has config.yaml and its export. All files but timings.json depend only on the inputs, the seed
    and the versions. An earlier run in the directory is replaced. `inputs` are files read besides the history, by
    purpose; `timings` are in seconds; `assumed_current` says that no configuration was given, and leaves out warnings
    about it.

    Raises InputError as `check_target` does, and QconfError if the directory cannot be written.
    """
    configs = [result.base, *([result.config] if isinstance(result, Recommendation) else [])]
    odd = [] if assumed_current else [warning for config in configs for warning in config.warnings()]
    warnings = list(dict.fromkeys([*warnings, *odd]))
    labels = labels_of([source.path for source in history.sources])
    read = [("history", labels[source.path], source.sha256) for source in history.sources]
    read += [(what, Path(source.path).name, source.sha256) for what, source in (inputs or {}).items()]
    listed = [dict(zip(("what", "name", "sha256"), each, strict=True)) for each in read]
    about = {"versions": versions(), "inputs": listed}
    if isinstance(result, Recommendation):
        files, record = _tune(result, history, warnings, exported, about)
        times = [(row.name, row.seconds) for row in result.rows]
    else:
        files, record = _backtest(result, history, warnings, about)
        times = [(each.strategy, each.seconds) for each in result.results]
    dropped = history.dropped.assign(file=history.dropped["file"].map(lambda path: labels.get(path, Path(path).name)))
    files["dropped.csv"] = csv_text(dropped)
    record |= about | {
        "objective": result.objective,
        "seed": result.settings.get("seed"),
        "settings": settings_shown(result.settings),
        "history": _history(history, labels),
        "base": result.base,
        "assumed_current": assumed_current,
        "warnings": warnings,
        "files": digests(files),
    }
    files[RECORD] = as_json(_plain(record))
    seconds = {name: sum(each for other, each in times if other == name) for name, _ in times}
    files[TIMINGS] = as_json({**(timings or {}), "strategies": seconds})
    backups = _write(Path(directory), files, [s.path for s in (*history.sources, *(inputs or {}).values())])
    return Run(Path(directory), tuple(sorted(files)), backups)


def names_of(command: str, exporter: Exporter | None = None) -> tuple[str, ...]:
    """Return the names of the files that each run of a command has; with an exporter, the plans too."""
    plan = () if exporter is None else (f"{exporter.target}/PLAN.md", f"{QUEUES}/PLAN.md", f"{QUEUES}/config.yaml")
    return (*_COMMON, *_TABLES[command], *plan)


def check_target(directory: str | Path, inputs: Iterable[str | Path], names: Iterable[str]) -> None:
    """Raise InputError if a file of these names belongs to no run or is an input; also called before long work."""
    target = Path(directory)
    elsewhere = "choose another directory with --out"
    above = (path for path in (target, *target.parents) if path.exists() or path.is_symlink())
    if (blocked := next((path for path in above if not path.is_dir()), None)) is not None:
        what = "is a file, no directory" if blocked.exists() else "is a symbolic link to nothing"
        raise InputError(what, file=blocked, fix=elsewhere)
    paths = [target / name for name in sorted(names)]
    refuse_outside(target, [*paths, target / "figures" / RECORD])
    refuse_overwrite(inputs, paths, elsewhere)
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not _previous(target):
        raise InputError("is there already and not from an earlier run", file=there, fix=elsewhere)


def labels_of(paths: Sequence[str]) -> dict[str, str]:
    """Return each path relative to the folder that contains all of them, so that labels do not depend on its place."""
    if not paths:
        return {}
    common = os.path.commonpath([Path(path).absolute().parent for path in paths])
    return {path: Path(path).absolute().relative_to(common).as_posix() for path in paths}


def _tune(
    result: Recommendation,
    history: History,
    warnings: Sequence[str],
    exported: Exported | None,
    about: Mapping[str, Any],
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files of a recommendation, and its part of the record."""
    drawn = figures(result, history)
    page = render(result, drawn, history=history, warnings=warnings, exported=exported, **about)
    found = advise(result, exported)
    loads = f"what {result.winner} proposes" if result.proposes else "the configuration as it stands, nothing to load"
    files = {
        "report.html": page,
        "comparison.csv": csv_text(comparison_frame(result)),
        "config.yaml": dump(result.config, "\n".join([f"{result.verdict}: {loads}.", found.headline, *found.facts])),
        **{f"figures/{name}.vl.json": figure.file for name, figure in drawn.items()},
    }
    if exported is not None:
        files |= {f"{exported.exporter.target}/{name}": text for name, text in exported.export.files.items()}
    queues, best = None, result.queues
    if best is not None:
        queues = _record(best.row) | {"over_recommendation": best.step, "recommended": result.recommends_queues}
    if best is not None and best.row.config is not None and exported is not None and exported.queues is not None:
        about_it = "\n".join(found.queues)
        files |= {f"{QUEUES}/{name}": text for name, text in exported.queues.export.files.items()}
        files |= {f"{QUEUES}/config.yaml": dump(best.row.config, about_it)}
    of_rung = ("name", "variant", "title", "ineligible", "gain", "bootstrap")
    record = {
        **{name: getattr(result, name) for name in ("verdict", "winner", "doubts", "robustness", "curves", "graded")},
        "reason": " ".join(filter(None, [f"{result.lead}.", result.reason])),
        "advice": found,
        "spans": {
            name: dict(zip(("jobs", "first_submit", "last_submit"), span, strict=True))
            for name, span in result.spans.items()
        },
        "strategies": [_record(row) for row in result.rows],
        "ladder": [
            {"rung": each.name, **{name: getattr(each.row, name) for name in of_rung}, "step": each.step}
            for each in result.ladder
        ],
        "without_scripts": None if result.without_scripts is None else _record(result.without_scripts),
        "queues": queues,
        "impact": None if result.impact is None else result.impact.record(),
        "targets": {
            when: [asdict(each) | {"met": each.met} for each in results]
            for when, results in (("before", result.targets), ("after", result.targets_met))
        },
        "fidelity": result.near,
        "export": None if exported is None else exported.record(),
        "last": None if result.last is None else result.last.record(),
    }
    return files, record


def _backtest(
    found: Backtest, history: History, warnings: Sequence[str], about: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files of a backtest, and its part of the record."""
    drawn = backtest_figures(found, history)
    table, name = backtest_frame(found), "backtest.csv"
    if is_comparison(found):
        table, name = table.drop(columns="period"), "comparison.csv"
    files = {
        "report.html": render_backtest(found, history, drawn, warnings, **about),
        name: csv_text(table),
        **{f"figures/{name}.vl.json": figure.file for name, figure in drawn.items()},
    }
    record = {
        "periods": found.folds,
        "skipped": [{"period": label, "reason": why} for label, why in found.skipped],
        "advice": backtest.advise(found),
        "averages": found.averages,
        "results": [
            _record(each, "summary", "fixed", "daily") | {"test": each.summary, "fixed_violations": each.fixed}
            for each in found.results
        ],
        "notes": found.notes,
    }
    return files, record


def _record(found: Row | FoldResult, *without: str) -> dict[str, Any]:
    """Return the fields of a strategy's result, except its seconds and those in `without`."""
    return {name: value for name, value in vars(found).items() if name not in ("seconds", *without)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any field
    """Convert a value to JSON values."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Summary):
        nodes = {"nodes": value.nodes} if value.nodes else {}
        bottleneck = {} if value.resource == CORES else {"bottleneck": value.resource}
        return _plain({"overall": value.overall, "queues": value.queues, **nodes, **bottleneck})
    if isinstance(value, BootstrapResult):
        record = {**asdict(value), "certain": value.certain}
        del record["numbers"]
        for which in ("before", "after"):  # these are means over resamples, without job counts
            del record[which]["jobs"]
        return record
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _history(history: History, labels: Mapping[str, str]) -> dict[str, Any]:
    first, last = history.span if len(history) else (0, 0)
    return {
        "read": history.read,
        "jobs": len(history),
        "outside_period": history.outside,
        "dropped": dict(history.reasons),
        "changed": dict(history.changed),
        "epoch": history.epoch,
        "timezone": history.timezone,
        "first_submit": history.date(first),
        "last_submit": history.date(last),
        "files": [labels[source.path] for source in history.sources],
    }


def _write(target: Path, files: Mapping[str, str], inputs: Iterable[str | Path]) -> tuple[str, ...]:
    """Write all files, named relative to `target`, or none; the files of an earlier run are replaced.

    A file that was edited since that run is kept as a backup: ``config.yaml`` as ``config.yaml~``. Leftovers of that
    run in figures/ and the export's folder are deleted. Returns the names of the backups. A journal lets a later run
    recognise these files even if this run is killed in the middle.
    """
    check_target(target, inputs, files)
    before = _previous(target)
    compared = {name: text for name, text in files.items() if name not in (RECORD, TIMINGS)}
    own = {name: {*before.get(name, ()), digest} for name, digest in digests(compared).items()}
    with all_or_nothing(target, within=FOLDER, last=RECORD) as scratch:
        for name, text in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        write_whole(target / JOURNAL, as_json({**before, **own}))
        backups = [keep_backup(path) for path in changed(target, {n: own[n] for n in before if n in own})]
    remove_unchanged(target, {name: each for name, each in before.items() if name not in files and _in_folder(name)})
    (target / JOURNAL).unlink()
    for folder in (FOLDER, *{Path(name).parts[0] for name in before if _in_folder(name)}):
        with suppress(OSError):
            (target / folder).rmdir()  # fails unless empty
    return tuple(path.relative_to(target).as_posix() for path in backups)


def _previous(target: Path) -> dict[str, set[str]]:
    """Return the files of the run in a directory, finished or not, with the hashes that each may have."""
    found: dict[str, set[str]] = {}
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        record = json.loads((target / RECORD).read_text(encoding="utf-8"))
        if {"verdict", "averages"} & set(record):
            found |= {str(name): {str(digest)} for name, digest in record["files"].items()}
    with suppress(OSError, ValueError, TypeError, AttributeError):
        journal = json.loads((target / JOURNAL).read_text(encoding="utf-8"))
        found |= {str(name): {*found.get(name, ()), *hashes} for name, hashes in journal.items()}
    return found


def _in_folder(name: str) -> bool:
    """Whether a recorded file is in a folder of the run directory; such folders hold only the run's files."""
    parts = Path(name).parts
    return len(parts) == 2 and not Path(name).is_absolute() and ".." not in parts
