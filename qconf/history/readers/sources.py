"""Files on the disk: plain or gzip, one or many, a folder of daily logs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from qconf.errors import InputError
from qconf.history.records import Drop, Records, SourceInfo, drop_table

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """A file of a history, read through gzip where its first bytes say so."""

    path: Path

    @cached_property
    def sha256(self) -> str:
        """Hash of the file as it lies on the disk."""
        return SourceInfo.of(self.path).sha256

    def error(
        self, message: str, fix: str, *, line: int | None = None, field: str | None = None, value: object = None
    ) -> InputError:
        """Return the error of this file, to be raised."""
        return InputError(message, file=self.path, line=line, field=field, value=value, fix=fix)

    def read(self, most: int = -1) -> bytes:
        """Return its content, or the first `most` bytes; `InputError` if it cannot be opened or is damaged."""
        return b"".join(self._chunks(most)) if most < 0 else next(self._chunks(most), b"")

    def lines(self) -> Iterator[bytes]:
        """Yield its lines with their line ends, never holding the whole file."""
        rest = b""
        for chunk in self._chunks(1 << 22):
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line + b"\n"
        if rest:
            yield rest

    def _chunks(self, size: int) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as raw:
                packed = raw.read(2) == GZIP
                raw.seek(0)
                with gzip.GzipFile(fileobj=raw) if packed else raw as stream:
                    while chunk := stream.read(size):
                        yield chunk
        except EOFError as error:
            raise self.error("the gzip stream is cut off", "copy the file again, it is incomplete") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise self.error(f"the gzip stream is damaged ({error})", "copy the file again") from error
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise self.error(why, "check the path and its permissions") from error


def records_of(
    kind: str,
    sources: Sequence[Source],
    table: pd.DataFrame,
    drops: Sequence[Drop],
    **more: Any,  # noqa: ANN401
) -> Records:
    """Put together what a reader has read; `more` are other fields of `Records`."""
    read = [SourceInfo(str(source.path), source.sha256) for source in sources]
    return Records(format=kind, table=table, dropped=drop_table(drops), sources=read, **more)


def find_sources(paths: Sequence[str | Path] | str | Path) -> list[Source]:
    """List the files that `paths` name; a folder stands for the files in it, by name, hidden ones excepted.

    Raises `InputError` where a path does not exist or is a pipe, a folder holds no file, or two files have the same
    content.
    """
    found: list[Source] = []
    for path in [Path(paths)] if isinstance(paths, str | Path) else [Path(p) for p in paths]:
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
            if not files:
                fix = "name the log files, or the folder they are in"
                raise InputError("the folder holds no file", file=path, fix=fix)
            found += map(Source, files)
        elif path.is_file():
            found.append(Source(path))
        elif path.exists():
            raise InputError("is no file, and a log is read more than once", file=path, fix="save it to a file first")
        else:
            raise InputError("there is no such file", file=path, fix="check the path")
    if not found:
        raise InputError("no file was given", fix="name at least one history")
    if len(found) > 1:
        _refuse_twins(found)
    return found


def _refuse_twins(found: Sequence[Source]) -> None:
    seen: dict[str, Source] = {}
    for source in found:
        try:
            if not source.path.stat().st_size:
                continue
            twin = seen.setdefault(source.sha256, source)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=source.path) from error
        if twin is not source:
            raise InputError(f"has the same content as {twin.path}", file=source.path, fix="give each log once")
