"""The lock of a run directory: one run at a time."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qconf.errors import InputError, QconfError
from qconf.inert import inert
from qconf.recommend.checkpoint import FINGERPRINT, FOLDER, unfinished
from qconf.text import SCRATCH

LOCK = "lock"
_held: set[int] = set()  # descriptors of locks


def _let_go() -> None:
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_let_go)  # a worker would hold a lock for a moment after its caller is killed


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Lock a run directory against other runs, and create it; remove it again if the run leaves nothing.

    The lock ends with its process, in whatever way that ends. A file system without locks gets none. Raises QconfError
    if another process has the lock, or the directory cannot be written.
    """
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    folder = directory / FOLDER
    if folder.is_symlink():
        raise InputError("is a symbolic link, where a run keeps its own files", file=folder, fix="remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _locked(folder / LOCK, directory)
    except OSError as error:
        raise QconfError(f"{inert(str(directory))}: cannot be written: {error.strerror or error}") from error
    _held.add(handle)
    for left in (*directory.glob(f"{SCRATCH}*"), *folder.glob(f"{SCRATCH}*")):
        if left.is_dir():  # left by a killed run
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):
            if os.path.samestat(os.fstat(handle), (folder / LOCK).stat()):  # else cleared, and maybe another's
                if not unfinished(directory):
                    (folder / FINGERPRINT).unlink(missing_ok=True)
                (folder / LOCK).unlink()
                for each in (folder, *made):
                    each.rmdir()  # fails unless empty
        _held.discard(handle)
        os.close(handle)


def _locked(path: Path, directory: Path) -> int:
    """Lock the file at `path` and return its descriptor; the file's text names the process."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise InputError(
                f"{holder} is writing a run here",
                file=directory,
                fix="wait for it, end it, or choose another directory with --out",
            ) from None
        except OSError:
            return handle  # no locks here
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                os.ftruncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}\n".encode())
                return handle
        os.close(handle)  # its holder deleted it in the meantime
