"""Files are written whole or not at all: a temporary file beside the target, fsync, rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qconf.errors import QconfError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) so that no reader ever sees a part of it; make missing folders.

    Raises
    ------
    QconfError
        The folder cannot be made or written.
    """
    target = Path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(_permissions(target))
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync(target.parent)
    except OSError as error:
        raise QconfError(f"{target}: cannot be written: {error.strerror or error}") from error


@contextmanager
def all_or_nothing(directory: str | Path) -> Iterator[Path]:
    """Give a scratch folder; its files move into `directory` at the end, or not if an error is raised.

    Raises
    ------
    QconfError
        The folder cannot be made or written.
    """
    target = Path(directory)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise QconfError(f"{target}: cannot be written: {error.strerror or error}") from error
    try:
        yield scratch
        _move(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _move(scratch: Path, target: Path) -> None:
    """Move every file below `scratch` to its place below `target`, when all of them are safe on the disk."""
    files = sorted(path for path in scratch.rglob("*") if path.is_file())
    try:
        for path in files:
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        for path in files:
            place = target / path.relative_to(scratch)
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
        for folder in sorted({(target / path.relative_to(scratch)).parent for path in files}):
            _sync(folder)
    except OSError as error:
        raise QconfError(f"{target}: cannot be written: {error.strerror or error}") from error


def _permissions(target: Path) -> int:
    """Keep those of the file that is replaced, else what the umask leaves."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
