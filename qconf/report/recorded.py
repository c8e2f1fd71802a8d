"""Records of earlier runs of ``qconf tune``: the configuration of a strategy, and the recommendation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qconf import __version__
from qconf.config import ConfigError, SiteConfig
from qconf.errors import InputError
from qconf.history.records import SourceInfo
from qconf.recommend.last import Gain, Promise
from qconf.report.exported import QUEUES
from qconf.report.run_directory import RECORD

#: Required fields of each strategy in run.json.
_KEYS = ("name", "config", "ineligible", "not_exportable")
#: Name for the recommendation without scripts, if the winner needs some.
WITHOUT_SCRIPTS = "without-scripts"
_AGAIN = "run `qconf tune` again, with --out elsewhere to keep this run; nothing in it was changed"


@dataclass(frozen=True)
class RecordedRow:
    """A row of an earlier run that has a configuration."""

    name: str  #: the given name without brackets: ``static`` of the row ``static (= pp)``
    config: SiteConfig
    ineligible: str  #: why it may not be recommended; empty if it may


def recorded(directory: str | Path, strategy: str) -> RecordedRow:
    """Read a strategy's row from a run, named as in its table or by either name of ``static (= pp)``.

    `WITHOUT_SCRIPTS` names the recommendation without anything beside the batch system, `QUEUES` the best queue
    configuration.

    Raises InputError if it is no run of ``qconf tune`` or an older one that recorded less; if the strategy is not in
    it, has no configuration, or no batch system can run it.
    """
    path = Path(directory) / RECORD
    record = read_record(path)
    rows = record.get("strategies")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise older(record, path, "no strategies")
    lacking = [key for key in _KEYS if not all(key in row for row in rows)]
    if lacking:
        raise older(record, path, f"no {', '.join(lacking)} of its strategies")
    named = {f"{row['same_as']} (= {row['name']})" if row.get("same_as") else row["name"]: row for row in rows}
    others = {WITHOUT_SCRIPTS: "without_scripts", QUEUES: "queues"}
    named |= {name: record[key] for name, key in others.items() if record.get(key) is not None}
    found = (row for label, row in named.items() if strategy in (label, row["name"], row.get("same_as")))
    row = named.get(strategy) or next(found, None)
    if row is None:
        fix = f"choose among {', '.join(named)}"
        raise InputError("no such strategy in this run", file=path, field="--strategy", value=strategy, fix=fix)
    for why in (row["not_exportable"], row["ineligible"] if row["config"] is None else ""):
        if why:
            raise InputError(f"has nothing to export: {why}", file=path, field="--strategy", value=strategy)
    config = _config(row["config"], row["name"], record, path)
    return RecordedRow(strategy.partition(" (")[0], config, row["ineligible"])


def promised(directory: str | Path) -> Promise:
    """Read the recommendation of a run, and the gain that it promised.

    Raises InputError if it is no run of ``qconf tune``, or an older one that recorded less.
    """
    path = Path(directory) / RECORD
    record = read_record(path)
    try:
        row, gain = winning(record)
        span = tuple(record["spans"]["history"][name] for name in ("jobs", "first_submit", "last_submit"))
        before = record["base"]
        found = {name: record[name] for name in ("verdict", "winner", "objective")}
        title = row.get("title", "")
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        lacking = f"no {error.args[0]}" if isinstance(error, KeyError) else "another form of what was recommended"
        raise older(record, path, lacking) from error
    return Promise(
        str(directory),
        SourceInfo.of(path).sha256,
        title=title,
        span=span,
        before=_config(before, "current", record, path),
        after=_config(row["config"], row["name"], record, path),
        gain=gain,
        **found,
    )


def _config(fields: Any, name: str, record: dict[str, Any], path: Path) -> SiteConfig:  # noqa: ANN401 - of JSON
    try:
        return SiteConfig.build(
            **{key: tuple(each) if isinstance(each, list) else each for key, each in fields.items()}
        )
    except (ConfigError, AttributeError, TypeError) as error:
        why = "; ".join(str(error).splitlines())
        raise older(record, path, f"a configuration of {name} that this version does not read: {why}") from error


def winning(record: dict[str, Any]) -> tuple[dict[str, Any], Gain | None]:
    """Return the recommended row of a record, and its promised gain; KeyError and others for another format."""
    row = next(row for row in record["strategies"] if row["name"] == record["winner"])
    if record["winner"] == "current":
        return row, None
    return row, Gain(row["gain"], *(row["bootstrap"][name] for name in ("expected", "low", "high")))


def read_record(path: Path) -> dict[str, Any]:
    """Read run.json of a run of ``qconf tune``; InputError for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        fix = "name the directory that qconf tune wrote, reports/<log> unless --out named another"
        raise InputError(f"holds no run: there is no {RECORD}", file=path.parent, fix=fix) from error
    except (OSError, ValueError) as error:
        raise InputError(f"is no record of a run: {error}", file=path) from error
    if not isinstance(found, dict) or "versions" not in found:
        raise InputError("is no record of a run", file=path)
    if "verdict" not in found:
        raise InputError("is of qconf compare or backtest, which recommend nothing", file=path, fix="run `qconf tune`")
    return found


def older(record: dict[str, Any], path: Path, lacking: str) -> InputError:
    """Return the error for a record of another version that lacks something."""
    versions = record["versions"]
    version = versions.get("qconf", "an unknown version") if isinstance(versions, dict) else "an unknown version"
    return InputError(
        f"was written by qconf {version}, this is {__version__}: it holds {lacking}", file=path, fix=_AGAIN
    )
