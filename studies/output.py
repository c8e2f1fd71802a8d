"""Shared parts of the studies: where and how they write pages and figures, and store finished results."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import pandas as pd

from qconf.errors import QconfError
from qconf.history import Records, read
from qconf.synth import write_history
from qconf.text import as_json, write_whole

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "research"  #: folder of the studies' pages and of figures/
REPORTS = ROOT / "reports"
TRACES = ROOT.parent / "shared" / "traces"  #: the public logs
Decorated = TypeVar("Decorated", bound=Callable[..., Any])
WIDTH = 100  #: most characters of a line of a page
LITTLE = 0.1  #: relative change of a ratio from which a setting gets a row


def run(command: click.Command) -> None:
    """Run the command of a study; an error in an input is one message and exit code 1."""
    try:
        command()
    except QconfError as error:
        click.echo(f"{command.name}: {error}", err=True)
        sys.exit(1)


def folder(name: str, default: Path | None, text: str, shown: str = "") -> Callable[[Decorated], Decorated]:
    """Return the option of a folder; `shown` is the default as the help shows it."""
    about = f"{text}  [default: {shown}]" if shown else text
    return click.option(name, type=click.Path(path_type=Path), default=default, help=about)


def workers(text: str = "No effect on the results.") -> Callable[[Decorated], Decorated]:
    """Return the option ``--workers``."""
    return click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help=text)


traces = folder("--traces", TRACES, "Folder of the public logs.", "../shared/traces")


def records_of(jobs: pd.DataFrame) -> Records:
    """Return the records of a generated table of jobs, read as from a log."""
    with tempfile.TemporaryDirectory() as here:
        return read([write_history(jobs, Path(here, "history.csv.gz"))])


def write_figures(folder: Path, figures: Mapping[str, str]) -> list[str]:
    """Write the text of each figure under its file name; return the paths."""
    for name, text in figures.items():
        write_whole(folder / name, text)
    return [str(folder / name) for name in figures]


def paragraph(text: str, indent: str = "") -> str:
    """Break a text into lines of at most `WIDTH` characters, those after the first after `indent`."""
    filled = textwrap.fill(
        " ".join(text.split()), WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return filled + "\n"


def moves(ratios: Sequence[float], of: Sequence[float]) -> bool:
    """Return whether a ratio differs by `LITTLE` or more from the same ratio of another row."""
    return any(abs(one / other - 1) >= LITTLE for one, other in zip(ratios, of, strict=True))


def unmoved(what: str, names: Sequence[str]) -> str:
    """Return a paragraph that names the settings with little effect; empty if there are none."""
    return paragraph(f"{what} that move none of these by {100 * LITTLE:.0f} %: {'; '.join(names)}.") if names else ""


def fingerprint(value: object) -> str:
    """Return a hash of all that a result depends on."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def hash_of(*folders: Path) -> str:
    """Return a hash of all modules in these folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def save(path: Path, key: str, result: Mapping[str, Any]) -> None:
    """Store a finished part of a study with its fingerprint."""
    write_whole(path, as_json({"key": key, **result}))


def load(path: Path, key: str) -> dict[str, Any] | None:
    """Return what `save` stored with this fingerprint; None if the file is missing, damaged or of another one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return found if found["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
