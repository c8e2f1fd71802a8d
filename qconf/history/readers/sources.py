"""Read the bytes of log files: plain or packed, in any Unicode encoding, one or many, or a folder of daily logs."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import pandas as pd

from qconf.errors import InputError, unreadable
from qconf.history.records import Drop, Records, SourceInfo, drop_table

BLOCK = 1 << 22  #: bytes that are read at a time
LONGEST_LINE = 1 << 26  #: bytes
#: Logs pack to 1/10 or 1/50; a file that unpacks to more than RATIO times its size and UNPACKED bytes is refused.
RATIO, UNPACKED = 100, 1 << 28
UNPACK = "unpack it, and name the folder"
ENCODINGS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def _zstd(stream: IO[bytes]) -> Any:  # noqa: ANN401 - of an optional package
    import zstandard  # noqa: PLC0415 - an extra

    return zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)


#: Name and opener of a packed format, by its first bytes.
PACKED: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.open),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}


@dataclass(frozen=True)
class Source:
    """A file of a history; a packed one, known by its first bytes, is unpacked while reading."""

    path: Path
    in_folder: bool = False  #: whether the user named its folder, not the file
    unpacked: int | None = None  #: limit of unpacked bytes, instead of `RATIO` and `UNPACKED`

    @cached_property
    def info(self) -> SourceInfo:
        """Its path, and the hash of its bytes on disk."""
        return SourceInfo.of(self.path)

    def error(
        self, message: str, fix: str, *, line: int | None = None, field: str | None = None, value: object = None
    ) -> InputError:
        """Return an `InputError` that names this file."""
        return InputError(message, file=self.path, line=line, field=field, value=value, fix=fix)

    def read(self, most: int = -1) -> bytes:
        """Return the content as UTF-8, or its first `most` bytes; `InputError` if it is unreadable or damaged."""
        return b"".join(self._text(BLOCK)) if most < 0 else next(self._text(most), b"")

    def blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines as UTF-8, with line ends, without holding the whole file."""
        rest = b""
        for chunk in self._text(BLOCK):
            rest += chunk
            if len(rest) > LONGEST_LINE and b"\n" not in rest:
                raise self.error(f"a line is longer than {LONGEST_LINE >> 20} MiB", "give a log, in lines of text")
            whole, end, rest = rest.rpartition(b"\n")
            if end:
                yield whole + end
        if rest:
            yield rest

    def lines(self) -> Iterator[bytes]:
        """Yield the lines as UTF-8, with line ends, without holding the whole file."""
        for block in self.blocks():
            *whole, rest = block.split(b"\n")
            for line in whole:
                yield line + b"\n"
            if rest:
                yield rest

    def _text(self, size: int) -> Iterator[bytes]:
        """Yield the content as UTF-8, without a byte-order mark; invalid UTF-8 passes unchanged."""
        chunks = self.chunks(size)
        first = next(chunks, b"")
        if first[257:262] == b"ustar":
            raise self.error("is an archive of files (tar)", UNPACK)
        mark = next((mark for mark in ENCODINGS if first.startswith(mark)), b"")
        encoding = ENCODINGS.get(mark) or _unmarked(first)
        if encoding == "utf-8":
            yield first.removeprefix(mark)
            yield from chunks
            return
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            yield decoder.decode(first).encode()
            for chunk in chunks:
                yield decoder.decode(chunk).encode()
            yield decoder.decode(b"", final=True).encode()
        except UnicodeError as error:
            raise self.error(f"is not {encoding.upper()} text ({error})", "save it as UTF-8") from error

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield the unpacked bytes in chunks of `size`. Raises `InputError` if they exceed the limit."""
        name = ""
        try:
            with self.path.open("rb") as raw:
                head = raw.read(6)
                raw.seek(0)
                name, unpack = next((PACKED[magic] for magic in PACKED if head.startswith(magic)), ("", None))
                with raw if unpack is None else unpack(raw) as stream:
                    read = 0
                    while chunk := stream.read(size):
                        read += len(chunk)
                        if unpack is not None:
                            self.check_unpacked(read)
                        yield chunk
        except ImportError as error:
            fix = "install it: pip install zstandard, or qconf-hpc[tables]"
            raise self.error("is packed with zstd, which needs the package zstandard", fix) from error
        except EOFError as error:
            raise self.error(f"the {name} stream is cut off", "copy the file again, it is incomplete") from error
        except IsADirectoryError as error:
            raise self.error("is a folder in a folder", "name it, too") from error
        except OSError as error:
            if name and not isinstance(error, PermissionError):
                raise self.error(f"the {name} stream is damaged ({error})", "copy the file again") from error
            why = f"cannot be read: {error.strerror or error}"
            raise self.error(why, "check the path and its permissions") from error
        except Exception as error:
            if not isinstance(error, zlib.error | lzma.LZMAError) and type(error).__name__ != "ZstdError":
                raise
            raise self.error(f"the {name} stream is damaged ({error})", "copy the file again") from error

    def check_unpacked(self, size: int) -> None:
        """Raise `InputError` if `size` bytes exceed the limit of unpacked bytes."""
        on_disk = self.path.stat().st_size
        most = self.unpacked or max(UNPACKED, RATIO * on_disk)
        if size > most:
            message = f"unpacks to more than {most >> 20} MiB, {size // on_disk} times its size"
            raise self.error(message, "give a log, or allow it with --unpacked, like --unpacked 8gb")


def _unmarked(first: bytes) -> str:
    """Guess the encoding of a text without a byte-order mark; its first two letters show UTF-16."""
    even, odd = first[:4:2], first[1:4:2]
    if b"\0\0" in (even, odd) and even != odd:
        return "utf-16-le" if odd == b"\0\0" else "utf-16-be"
    return "utf-8"


def records_of(
    kind: str,
    sources: Sequence[Source],
    table: pd.DataFrame,
    drops: Sequence[Drop] | pd.DataFrame,
    **more: Any,  # noqa: ANN401
) -> Records:
    """Build the `Records` of a reader; `more` are other fields."""
    read = [source.info for source in sources]
    return Records(format=kind, table=table, dropped=drop_table(drops), sources=read, **more)


def find_sources(paths: Sequence[str | Path] | str | Path, unpacked: int | None = None) -> list[Source]:
    """List the files that `paths` name; a folder stands for its files, sorted by name, without hidden ones.

    A folder in a folder is in the list, too, and cannot be read. Raises `InputError` if a path does not exist or is a
    pipe, a folder holds no file, or two files are identical.
    """
    found: list[Source] = []
    for path in [Path(paths)] if isinstance(paths, str | Path) else [Path(p) for p in paths]:
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if (p.is_file() or p.is_dir()) and p.name[0] != ".")
            if not any(map(Path.is_file, files)):
                fix = "name the log files, or the folder they are in"
                raise InputError("the folder holds no file", file=path, fix=fix)
            found += [Source(file, in_folder=True, unpacked=unpacked) for file in files]
        elif path.is_file():
            found.append(Source(path, unpacked=unpacked))
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
            if source.path.is_dir() or not source.path.stat().st_size:
                continue
            twin = seen.setdefault(source.info.sha256, source)
        except OSError as error:
            raise unreadable(source.path, error) from error
        if twin is not source:
            raise InputError(f"has the same content as {twin.path}", file=source.path, fix="give each log once")
