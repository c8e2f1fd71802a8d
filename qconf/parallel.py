"""Parallel calls, whose results depend neither on the number of workers nor on where they run.

Threads make calls of kernels, which release the GIL. Processes make calls that are mostly Python, such as a strategy or
a chunk of resamples: copies of the caller on Linux, else joblib's. A back end of ``joblib.parallel_config``, such as
Dask, replaces both.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Generic, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky.backend import resource_tracker as loky_tracker
from joblib.parallel import LokyBackend, ThreadingBackend, get_active_backend

from qconf import __version__
from qconf.errors import QconfError
from qconf.forked import ATTEMPTS, forked_map

T = TypeVar("T")

KEPT = 4  # most `Shared` values that a worker keeps
_received: OrderedDict[str, Any] = OrderedDict()


class Clock:
    """Measures the seconds during which workers have calls, nested calls once; at other times one thread works.

    With one worker, `meanwhile` counts as work of the workers.
    """

    def __init__(self) -> None:
        self.seconds, self._began, self._depth = 0.0, 0.0, 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.seconds += time.perf_counter() - self._began


working = Clock()  # of calls that prefer processes


class Shared(Generic[T]):
    """A value that many calls read; it is sent to each worker once, not with each call.

    Workers on this machine read it from a file, which is deleted with this object. Dask passes it on among its workers,
    since it is large; other back ends get it with each call.
    """

    def __init__(self, value: T) -> None:
        self.value = value
        self.version = __version__
        self._path = ""

    def write(self) -> None:
        """Write the value to a file, for workers of this machine."""
        if not self._path:
            memory = Path("/dev/shm")  # noqa: S108 - of this machine, and faster than a disk
            folder = memory if os.access(memory, os.W_OK) else None
            with tempfile.NamedTemporaryFile(dir=folder, prefix="qconf-", delete=False) as file:
                pickle.dump(self.value, file, protocol=pickle.HIGHEST_PROTOCOL)
            self._path = file.name
            weakref.finalize(self, Path(file.name).unlink, missing_ok=True)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file's name if there is a file, else the value."""
        return (_read, (self._path,)) if self._path else (_unpacked, (self.value, self.version))

    def __sizeof__(self) -> int:
        """Return a large size: Dask sends large arguments ahead, once."""
        return 1 << 20


def _read(path: str) -> Shared[Any]:
    if path not in _received:
        while len(_received) >= KEPT:
            _received.popitem(last=False)
        _received[path] = Shared(pickle.loads(Path(path).read_bytes()))  # noqa: S301 - our own
    return _received[path]  # type: ignore[no-any-return]


def _unpacked(value: T, version: str) -> Shared[T]:
    if version != __version__:
        raise QconfError(f"a worker has qconf {__version__}, and not {version}: install the same everywhere")
    return Shared(value)


def parallel_map(
    workers: int,
    function: Callable[..., T],
    arguments: Sequence[tuple[object, ...]],
    *,
    processes: bool = False,
    done: Callable[[int, T], None] = lambda *_: None,
    meanwhile: Callable[[], object] | None = None,
) -> list[T]:
    """Call `function` with each tuple, and return the results in the order of `arguments`.

    Parameters
    ----------
    workers : int
        Parallel calls; with 1 the caller itself makes them.
    function : callable
    arguments : sequence of tuple
        The longest calls first. A `Shared` is sent to each worker once.
    processes : bool
        Prefer processes, for functions that are mostly Python, to threads, for kernels.
    done : callable
        Called with index and result of each call as it ends, in any order.
    meanwhile : callable
        Called once while copies of the caller work, or after the calls if the caller makes them; not called on another
        back end.

    Raises
    ------
    QconfError
        Workers were lost again and again.
    """
    with working if processes else nullcontext():
        prefer = "processes" if processes else "threads"
        return _mapped(min(workers, len(arguments)), function, arguments, done, meanwhile, prefer)


def _mapped(
    workers: int,
    function: Callable[..., T],
    arguments: Sequence[tuple[object, ...]],
    done: Callable[[int, T], None],
    meanwhile: Callable[[], object] | None,
    prefer: str,
) -> list[T]:
    found: dict[int, T] = {}

    def take(i: int, result: T) -> None:
        found[i] = result
        done(i, result)

    if workers <= 1:
        for i, each in enumerate(arguments):
            take(i, function(*each))
        if meanwhile is not None:
            meanwhile()
    elif type(get_active_backend(prefer)[0]) is ThreadingBackend:
        # joblib's threads poll for results every 10 ms, which is longer than many simulations.
        with ThreadPoolExecutor(workers) as pool:
            for i, result in enumerate(pool.map(function, *zip(*arguments, strict=True))):
                take(i, result)
    elif forks(prefer):
        forked_map(workers, lambda i: function(*arguments[i]), range(len(arguments)), take, meanwhile)
    else:
        for _ in range(ATTEMPTS):
            if not _on_workers(workers, prefer, function, arguments, found, take):
                break
        else:
            raise QconfError(
                f"workers were lost {ATTEMPTS} times in a row: where memory runs out, fewer of them help (--workers)"
            )
    return [found[i] for i in range(len(arguments))]


def forks(prefer: str = "processes") -> bool:
    """Return whether processes are copies of this one: yes on Linux, unless a back end was chosen."""
    backend, again = get_active_backend(prefer)[0], get_active_backend(prefer)[0]
    return sys.platform == "linux" and isinstance(backend, LokyBackend) and backend is not again


def _on_workers(
    workers: int,
    prefer: str,
    function: Callable[..., T],
    arguments: Sequence[tuple[object, ...]],
    found: dict[int, T],
    take: Callable[[int, T], None],
) -> bool:
    """Make the remaining calls on a back end of joblib; return whether a worker was lost."""
    backend = get_active_backend(prefer)[0]
    if isinstance(backend, LokyBackend):
        for each in {id(value): value for given in arguments for value in given if isinstance(value, Shared)}.values():
            each.write()
    options: dict[str, Any] = {"return_as": "generator_unordered"} if backend.supports_return_generator else {}
    if isinstance(backend, LokyBackend):
        _start(workers)
    # max_nbytes=None: joblib would map large arrays read-only, for which kernels would be compiled again.
    calls = [delayed(_numbered)(i, function, *each) for i, each in enumerate(arguments) if i not in found]
    try:
        for i, result in Parallel(workers, prefer=prefer, max_nbytes=None, **options)(calls):
            take(i, result)
    except BrokenExecutor:
        return True
    except Exception as error:
        if type(error).__name__ == "KilledWorker":  # Dask has tried several times itself
            raise QconfError(f"a worker of the cluster was lost again and again: {error}") from error
        raise
    return False


def _numbered(i: int, function: Callable[..., T], *arguments: object) -> tuple[int, T]:
    return i, function(*arguments)


def _start(workers: int) -> None:
    """Start processes that ignore an interrupt at the terminal, which only the caller handles."""
    for tracker in (resource_tracker, loky_tracker):  # starting them later would lift the block
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by the processes
    try:
        Parallel(workers, prefer="processes", max_nbytes=None)([delayed(int)()] * workers)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
