"""Write the directory of an export, with a record of its files for later exports, and parse its PLAN.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from qconf.errors import InputError
from qconf.text import all_or_nothing, as_json, digests, refuse_overwrite, remove_unchanged

RECORD = "export.json"
RUN = "run.json"


def write_export(directory: str | Path, files: Mapping[str, str], *, inputs: Iterable[str | Path] = ()) -> None:
    """Write the files of an export, text by name, all or none; files of an earlier export are replaced or deleted.

    Raises InputError if a file to replace is not from an export, or is one of `inputs`; edited files are not deleted.
    """
    target = Path(directory)
    elsewhere = "choose another directory with -o"
    refuse_overwrite(inputs, (target / name for name in (*files, RECORD)), elsewhere)
    before = _previous(target)
    for name in (*files, RECORD):
        if (target / name).exists() and name not in before:
            why = f"is there already, and no {RECORD} says that an export wrote it"
            raise InputError(why, file=target / name, fix=f"move it away, or {elsewhere}")
    with all_or_nothing(target) as scratch:
        for name, text in (*files.items(), (RECORD, as_json({"files": digests(files)}))):
            (scratch / name).write_text(text, encoding="utf-8", newline="")
    remove_unchanged(target, {name: {digest} for name, digest in before.items() if name not in files})


def _previous(target: Path) -> dict[str, str]:
    """Return names and hashes of the files of an earlier export, or of the run of `qconf tune` that it belongs to."""
    found: dict[str, str] = {}
    for record, folder in ((target.parent / RUN, f"{target.name}/"), (target / RECORD, "")):
        try:
            known = json.loads(record.read_text(encoding="utf-8"))["files"].items()
            names = {str(name).removeprefix(folder): str(digest) for name, digest in known if name.startswith(folder)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        found |= {name: digest for name, digest in names.items() if Path(name).name == name}
        found[RECORD] = ""
    return found


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield heading and text of each block of commands in a plan; "Undo" before the first heading."""
    title = ""
    for heading, block in re.findall(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        title = heading or title
        if block:
            yield title or "Undo", block
