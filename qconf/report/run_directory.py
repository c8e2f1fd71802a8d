"""The directory of a run: all that a recommendation is, in files that are the same for the same inputs and seed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from parsim.metrics import Summary
from qconf import __version__
from qconf.config import SiteConfig, dump
from qconf.errors import InputError
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.export import Export, Exporter, targets
from qconf.history import History
from qconf.recommend import Recommendation, Row
from qconf.recommend.fidelity import Fidelity
from qconf.report.figures import figures
from qconf.report.html import render, settings_shown
from qconf.report.tables import comparison_frame
from qconf.text import all_or_nothing, as_json, changed, digests, keep_backup, refuse_overwrite, remove_unchanged

RECORD, TIMINGS = "run.json", "timings.json"
VERSIONS = ("matplotlib", "numba", "numpy", "pandas", "scikit-learn", "scipy")
#: Files that every run has, beside those of the export.
NAMES = ("report.html", "comparison.csv", "config.yaml", "dropped.csv", RECORD, TIMINGS)


@dataclass(frozen=True)
class Run:
    """What was written.

    Attributes
    ----------
    directory : Path
    files : tuple of str
        Relative to it, sorted.
    refused : str
        Why the configuration is not exportable; empty if it is.
    notes : tuple of str
        What the batch system will do otherwise than the simulator.
    aside : tuple of str
        Where what was edited since the last run is kept.
    """

    directory: Path
    files: tuple[str, ...]
    refused: str = ""
    notes: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()


def write_run(
    directory: str | Path,
    recommendation: Recommendation,
    history: History,
    exporter: Exporter,
    *,
    inputs: Mapping[str, str | Path] | None = None,
    timings: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    fidelity: Fidelity | None = None,
    assumed_current: bool = False,
) -> Run:
    """Write report.html, comparison.csv, config.yaml, the export, figures/, dropped.csv, run.json and timings.json.

    All but timings.json depend on nothing but the inputs, the seed and the versions of what computed them.

    Parameters
    ----------
    directory : path
        Made if missing. An earlier run in it is replaced.
    recommendation : Recommendation
    history : History
        What was learned from; its sources are recorded by themselves.
    exporter : Exporter
        Of the batch system, with its options; its files are written to a folder of its target's name.
    inputs : dict of str to path, optional
        What else was read, by what it is: ``{"configuration": path}``.
    timings : dict, optional
        Seconds, by what took them; those of the strategies are added.
    warnings : sequence of str
        For the report, beside those of the configuration.
    fidelity : Fidelity, optional
        How near the simulated present is to what happened.
    assumed_current : bool
        No configuration was given: what the machine does today is not known.

    Raises
    ------
    InputError
        The directory holds files of these names that are of no run, or one of the inputs.
    QconfError
        It cannot be written.
    """
    target = Path(directory)
    export, refused = _export(recommendation, exporter)
    drawn = figures(recommendation)
    told = [ASSUMED] if assumed_current else []
    odd = {} if assumed_current else dict.fromkeys([*recommendation.base.warnings(), *recommendation.config.warnings()])
    told = [*dict.fromkeys([*told, *warnings, *odd])]
    labels = labels_of([source.path for source in history.sources])
    dropped = history.dropped.assign(file=history.dropped["file"].map(lambda path: labels.get(path, Path(path).name)))
    files: dict[str, str] = {
        "report.html": render(
            recommendation,
            drawn,
            history=history,
            fidelity=fidelity,
            warnings=told,
            exporter=exporter,
            export=None if refused else export,
            refused=refused,
        ),
        "comparison.csv": comparison_frame(recommendation).to_csv(index=False, lineterminator="\n"),
        "config.yaml": dump(recommendation.config, _header(recommendation)),
        "dropped.csv": dropped.to_csv(index=False, lineterminator="\n"),
        **{f"figures/{name}.svg": svg for name, svg in drawn.items()},
        **{f"{exporter.target}/{name}": text for name, text in export.files.items()},
    }
    record = {
        **_record(recommendation, history, labels),
        "inputs": inputs_record(history, labels, inputs or {}),
        "warnings": told,
        "assumed_current": assumed_current,
        "fidelity": None if fidelity is None else asdict(fidelity),
        "export": {
            "target": exporter.target,
            "not_exportable": refused,
            "notes": export.notes,
            "rollback": bool(export.rollback),
        },
        "files": digests(files),
    }
    files[RECORD] = as_json(record)
    files[TIMINGS] = as_json({**(timings or {}), "strategies": {row.name: row.seconds for row in recommendation.rows}})

    aside = write_files(target, files, [*(s.path for s in history.sources), *(inputs or {}).values()])
    return Run(target, tuple(sorted(files)), refused, export.notes, aside)


def write_files(target: Path, files: Mapping[str, str], inputs: Iterable[str | Path]) -> tuple[str, ...]:
    """Write the files of a run, by their names relative to `target`, all or none; an earlier run's are replaced.

    What was edited since that run is kept beside, ``config.yaml`` as ``config.yaml~``; these names are returned.

    Raises
    ------
    InputError
        As `check_target`.
    """
    before = _previous(target)
    check_target(target, inputs, names=files)
    with all_or_nothing(target) as scratch:
        for name, text in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        edited = changed(target, {name: digest for name, digest in (before or {}).items() if digest and name in files})
        aside = [keep_backup(path) for path in edited]
    gone = {name: digest for name, digest in (before or {}).items() if name not in files and _own(name)}
    remove_unchanged(target, gone)
    return tuple(path.relative_to(target).as_posix() for path in aside)


def check_target(
    directory: str | Path,
    inputs: Iterable[str | Path] = (),
    *,
    exporter: Exporter | None = None,
    names: Iterable[str] = NAMES,
) -> None:
    """Refuse a directory in which a run would destroy something; worth asking before a long computation.

    Raises
    ------
    InputError
        A file of these names is there that is of no run, or is one of the inputs.
    """
    target = Path(directory)
    elsewhere = "choose another directory with --out"
    blocked = next((path for path in (target, *target.parents) if path.exists() and not path.is_dir()), None)
    if blocked is not None:
        raise InputError("is a file, no directory", file=blocked, fix=elsewhere)
    plan = [] if exporter is None else [f"{exporter.target}/PLAN.md"]
    paths = [target / name for name in sorted([*names, *plan])]
    refuse_overwrite(inputs, paths, elsewhere)
    there = next((path for path in paths if path.exists()), None)
    if there is not None and _previous(target) is None:
        raise InputError("is there already and not from an earlier run", file=there, fix=elsewhere)


def _record(recommendation: Recommendation, history: History, labels: Mapping[str, str]) -> dict[str, Any]:
    settings = settings_shown(recommendation.settings)
    return {
        "versions": versions(),
        "verdict": recommendation.verdict,
        "reason": recommendation.reason,
        "winner": recommendation.winner,
        "objective": recommendation.objective,
        "seed": settings.get("seed"),
        "settings": settings,
        "history": history_record(history, labels),
        "spans": {
            name: {"jobs": jobs, "first_submit": low, "last_submit": high}
            for name, (jobs, low, high) in recommendation.spans.items()
        },
        "base": site_record(recommendation.base),
        "strategies": [_strategy(row) for row in recommendation.rows],
        "curves": [asdict(curve) for curve in recommendation.curves],
    }


def versions() -> dict[str, str]:
    """Return the versions of what computed a run."""
    found = {name: version(name) for name in VERSIONS}
    return {"qconf": __version__, "python": platform.python_version(), **found}


def history_record(history: History, labels: Mapping[str, str]) -> dict[str, Any]:
    """Say what was read and what became of it, for run.json."""
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


def _strategy(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "ineligible": row.ineligible,
        "tolerated": row.tolerated,
        "fallback": row.fallback,
        "gain": row.gain,
        "bootstrap": None if row.bootstrap is None else _evidence(row.bootstrap),
        "test": summary_record(row.test),
        "in_sample": summary_record(row.in_sample),
        "config": None if row.config is None else site_record(row.config),
        "decisions": row.decisions,
    }


def _evidence(found: BootstrapResult) -> dict[str, Any]:
    record = {**asdict(found), "certain": found.certain}
    for which in ("before", "after"):  # of means over draws: no jobs are counted
        del record[which]["jobs"]
    return record


def summary_record(found: Summary | None) -> dict[str, Any] | None:
    """Write metrics as JSON holds them."""
    return None if found is None else {"overall": found.overall, "queues": found.queues}


def site_record(config: SiteConfig) -> dict[str, Any]:
    """Write a configuration as JSON holds it."""
    return config.model_dump(mode="json")


def inputs_record(
    history: History, labels: Mapping[str, str], others: Mapping[str, str | Path]
) -> list[dict[str, str]]:
    """List what was read, with its hash."""
    found = [{"what": "history", "name": labels[s.path], "sha256": s.sha256} for s in history.sources]
    for what, path in others.items():
        try:
            digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
        found.append({"what": what, "name": Path(path).name, "sha256": digest})
    return found


def labels_of(paths: Sequence[str]) -> dict[str, str]:
    """Name each path from the folder on that holds them all: the same wherever that folder lies."""
    if not paths:
        return {}
    common = os.path.commonpath([Path(path).absolute().parent for path in paths])
    return {path: Path(path).absolute().relative_to(common).as_posix() for path in paths}


def _header(recommendation: Recommendation) -> str:
    if recommendation.verdict == "KEEP":
        return "KEEP: the configuration as it stands, nothing to load.\n" + recommendation.reason
    return f"CHANGE: what {recommendation.winner} proposes.\n{recommendation.reason}"


def _export(recommendation: Recommendation, exporter: Exporter) -> tuple[Export, str]:
    """Return the export of the configuration, or of none but a page that says why; and the reason."""
    config = recommendation.config
    if reasons := exporter.check(config):
        why = "; ".join(reasons)
        page = REFUSED.format(name=exporter.name, verdict=_nothing(recommendation), why=why)
        return Export({"PLAN.md": page}), why
    found = exporter.export(config)
    files = dict(found.files)
    title, _, rest = files["PLAN.md"].partition("\n")
    files["PLAN.md"] = f"{title}\n{_nothing(recommendation)}{rest}"
    if recommendation.verdict == "KEEP":
        files |= {name: f"{KEPT_SCRIPT}{files[name]}" for name in found.loaded}
    return replace(found, files=files), ""


def _nothing(recommendation: Recommendation) -> str:
    return "" if recommendation.verdict == "CHANGE" else KEPT


ASSUMED = (
    "No configuration was given: current is assumed to be fcfs-easy, one machine and one list in the order of "
    "submission. Every gain is against that."
)
KEPT = """
> **KEEP: nothing to load.** Nothing did better than the current configuration beyond doubt. This is what the
> scripts for the configuration *as it stands* look like, for reference.
"""
KEPT_SCRIPT = "# KEEP: nothing to load. For reference, the configuration as it stands.\n"
REFUSED = """# No scripts for {name}
{verdict}
This configuration is not exportable to {name}, so no script was written, not even in part:

    {why}

The configuration is in `../config.yaml`. Change what the message names and run `qconf export` on it.
"""


def _previous(target: Path) -> dict[str, str] | None:
    """Return the files of the run that is there, with their hashes; None if there is none."""
    try:
        found = json.loads((target / RECORD).read_text(encoding="utf-8"))
        files = found["files"]
        known = {RECORD: "", TIMINGS: ""}
        return (
            known | {str(name): str(digest) for name, digest in files.items()}
            if {"verdict", "averages"} & set(found)
            else None
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _own(name: str) -> bool:
    """Whether a file is in a folder that holds nothing but a run's own files."""
    parts = Path(name).parts
    return parts[0] in ("figures", *targets()) and ".." not in parts
