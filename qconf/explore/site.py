"""The site explored: its jobs, the configuration in force, and the recommendation of a run of ``qconf tune``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.export import Exporter
from qconf.history import History
from qconf.history.records import SourceInfo
from qconf.history.sample import SAMPLES
from qconf.report.recorded import older, promised, read_record
from qconf.report.run_directory import RECORD


@dataclass(frozen=True, eq=False)
class Site:
    """The jobs and configurations of an exploration; files are written into `directory`."""

    base: SiteConfig
    text: str  #: `base` as YAML
    history: History
    earlier: tuple[History, ...]  #: the months before, if the history is a month
    settings: Mapping[str, Any]  #: settings of the strategies
    directory: Path
    exporter: Exporter
    #: Reads the log again for another configuration: the history and the months before.
    read: Callable[[SiteConfig], tuple[History, tuple[History, ...]]]
    recommended: SiteConfig | None = None
    title: str = ""  #: title of the recommendation


@dataclass(frozen=True)
class PastRun:
    """Inputs and recommendation of a run of ``qconf tune``."""

    base: SiteConfig
    recommended: SiteConfig | None
    title: str
    logs: tuple[Path, ...]
    span: tuple[int, int]  #: first and last submission, Unix seconds
    has_earlier: bool
    settings: Mapping[str, Any]
    timezone: str


def past_run(directory: Path, given: Sequence[Path]) -> PastRun:
    """Read a run, and find its logs: among the given paths, beside the run, here, or in the sample.

    Raises InputError if it is no run, an older one that recorded less, or a log is missing.
    """
    path = directory / RECORD
    record, found = read_record(path), promised(directory)
    try:
        names = [(each["name"], each["sha256"]) for each in record["inputs"] if each["what"] == "history"]
        spans, settings, timezone = record["spans"], record["settings"], record["history"]["timezone"]
    except (KeyError, TypeError) as error:
        raise older(record, path, "no list of what it read") from error
    return PastRun(
        base=found.before,
        recommended=None if found.winner == "current" else found.after,
        title=found.title or found.winner,
        logs=tuple(_log(name, digest, directory, given) for name, digest in names),
        span=found.span[1:],
        has_earlier="earlier periods" in spans,
        settings=settings,
        timezone=timezone,
    )


def _log(name: str, digest: str, directory: Path, given: Sequence[Path]) -> Path:
    here = directory.resolve()
    folders = [Path(), here, *here.parents[:3], SAMPLES[0].parent]
    there = [path for path in (*given, *(folder / name for folder in folders)) if path.is_file()]
    for path in there:
        if path.name == Path(name).name and SourceInfo.of(path).sha256 == digest:
            return path
    changed = " as the run read it" if any(path.name == Path(name).name for path in there) else ""
    fix = f"name it: qconf explore {directory} PATH"
    raise InputError(f"is not there any more{changed}", file=name, fix=fix)
