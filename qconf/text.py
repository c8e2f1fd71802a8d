"""Output texts: JSON and Markdown, and files that are written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from qconf.errors import InputError, QconfError
from qconf.inert import inert

K = TypeVar("K")
V = TypeVar("V")
SCRATCH = ".qconf."  #: prefix of scratch folders; one that remains was left by a killed process


#: Names of the possible bottlenecks (`parsim.metrics.bottleneck.RESOURCES`), and of their hours.
TERMS = {
    "cores": ("cores", "core-hours"),
    "gpus": ("GPUs", "GPU-hours"),
    "memory": ("memory", "GiB-hours"),
    "nodes": ("nodes", "node-hours"),
}


def in_terms_of(resource: str, text: str) -> str:
    """Replace "the cores" and "core-hours" in a text by the bottleneck and its hours."""
    name, hours = TERMS[resource]
    text = text.replace("Core-hours", f"{hours[0].upper()}{hours[1:]}").replace("core-hours", hours)
    return text.replace("the cores", f"the {name}")


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) so that no reader ever sees a part of it; create missing folders.

    Raises
    ------
    QconfError
        The folder cannot be created or written.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    with all_or_nothing(target.parent, named=target) as scratch:
        file = scratch / target.name
        file.write_bytes(data)
        if target.exists():
            file.chmod(target.stat().st_mode & 0o777)


def replace_file(path: Path, content: str) -> None:
    """Write `content` so that no process ever reads a part of it, although a power cut may leave a part.

    It takes a third of the time of `write_whole`, for files that are checked when read and can be made again.

    Raises
    ------
    QconfError
        The file cannot be written.
    """
    scratch = path.with_name(f"{SCRATCH}{uuid4().hex}")
    try:
        try:
            scratch.write_text(content, encoding="utf-8")
            scratch.replace(path)
        finally:
            scratch.unlink(missing_ok=True)
    except OSError as error:
        raise QconfError(f"{inert(str(path))}: cannot be written: {error.strerror or error}") from error


@contextmanager
def all_or_nothing(
    directory: str | Path, *, named: Path | None = None, within: str = "", last: str = ""
) -> Iterator[Path]:
    """Yield a scratch folder; its files are moved into `directory` at the end, or not if an error is raised.

    The scratch folder is in `directory`, or in its subfolder `within`: a folder above may be on another file system, or
    not writable. The file called `last` is moved last. An error names `directory`, or the path `named`.

    Raises
    ------
    QconfError
        The folder cannot be created or written.
    """
    target = Path(directory)
    made: list[Path] = []
    try:
        place = target / within
        made += [folder for folder in (place, *place.parents) if not folder.exists()]
        place.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=SCRATCH, dir=place))
        try:
            yield scratch
            _move(scratch, target, last)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        where = inert(str(named or target))
        raise QconfError(f"{where}: cannot be written: {error.strerror or error}") from error
    finally:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # fails unless empty


def refuse_overwrite(inputs: Iterable[str | Path], targets: Iterable[str | Path], fix: str) -> None:
    """Refuse to overwrite inputs, or files that are directly in input folders.

    Raises
    ------
    InputError
        One of `targets` is one of `inputs`; `fix` says what to do.
    """
    read = {file.resolve() for path in map(Path, inputs) for file in ([*path.iterdir()] if path.is_dir() else [path])}
    for target in map(Path, targets):
        if target.resolve() in read:
            raise InputError("is an input, and would be overwritten", file=target, fix=fix)


def refuse_outside(directory: Path, targets: Iterable[Path]) -> None:
    """Refuse to write through a link that leads out of a directory: files there do not belong to it.

    Raises
    ------
    InputError
        The folder of one of `targets` is such a link.
    """
    for folder in {target.parent for target in targets}:
        if not folder.resolve().is_relative_to(directory.resolve()):
            raise InputError("is a symbolic link that leads out of the directory", file=folder, fix="remove it")


def digests(files: Mapping[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each text, by name."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(files.items())}


def changed(directory: Path, known: Mapping[str, Collection[str]]) -> list[Path]:
    """Return the files of these names that exist and whose SHA-256 is not among the known ones."""
    paths = {directory / name: hashes for name, hashes in known.items()}
    return [path for path, hashes in paths.items() if path.is_file() and _digest(path) not in hashes]


def keep_backup(path: Path) -> Path:
    """Rename a file to the first free name with one ``~`` or more appended, and return that name."""
    backup = path.with_name(f"{path.name}~")
    while backup.exists():
        backup = backup.with_name(f"{backup.name}~")
    return path.rename(backup)


def remove_unchanged(directory: Path, known: Mapping[str, Collection[str]]) -> None:
    """Delete the files of these names whose SHA-256 is among the known ones."""
    for name, hashes in known.items():
        path = directory / name
        if path.is_file() and _digest(path) in hashes:
            path.unlink()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _move(scratch: Path, target: Path, last: str) -> None:
    """Move every file below `scratch` to `target`, after all of them are synced to disk."""
    files = sorted((path for path in scratch.rglob("*") if path.is_file()), key=lambda path: (path.name == last, path))
    refuse_outside(target, (target / path.relative_to(scratch) for path in files))
    for path in files:
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    for path in files:
        final = target / path.relative_to(scratch)
        final.parent.mkdir(parents=True, exist_ok=True)
        path.replace(final)
    for folder in sorted({(target / path.relative_to(scratch)).parent for path in files}):
        _sync(folder)


def _sync(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Collect the distinct second elements of pairs by the first, in order."""
    found: dict[K, dict[V, None]] = {}
    for key, value in pairs:
        found.setdefault(key, {})[value] = None
    return {key: list(values) for key, values in found.items()}


def as_json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold, and numpy's numbers
    """Return JSON with sorted keys and escaped invisible characters; not finite becomes null, a path its last name."""
    text = json.dumps(_plain(value), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return inert(text, lines=True) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return value.name
    if isinstance(value, date):
        return value.isoformat()
    return str(value)


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """Return a table with `left` text columns, then number columns; without a final line end.

    >>> print(markdown_table(["", "wait"], [["auto", "1.5"]]))
    |  | wait |
    |---|---:|
    | auto | 1.5 |
    """
    rule = ["---"] * left + ["---:"] * (len(titles) - left)
    lines = [f"| {' | '.join(row)} |" for row in (titles, *rows)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])
