"""Workers that are copies of the caller: they have all that it has loaded and computed, and send only results.

joblib has no such workers that may be lost: its ``multiprocessing`` waits for ever for the result of a worker that was
killed, and loky does not copy the caller. loky's own processes need a third more computing for the tune of a month.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import multiprocessing.pool
import os
import pickle
import signal
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from joblib import parallel_config

from qconf.errors import QconfError

T = TypeVar("T")
Call = Callable[[int], T]

ATTEMPTS = 3  # most attempts at a call whose worker is lost
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_PR_SET_PDEATHSIG = 1  # of Linux's prctl(2)


class _Worker(NamedTuple):
    process: multiprocessing.process.BaseProcess
    calls: Connection  #: sends numbers of calls, receives results


def forked_map(
    workers: int,
    call: Call[T],
    wanted: Sequence[int],
    take: Callable[[int, T], None],
    meanwhile: Callable[[], object] | None = None,
) -> None:
    """Let copies of this process make the call for each number, in order; pass results to `take` as they arrive.

    `meanwhile` is called before the first result is taken. It uses the processor of the last worker, which starts after
    it and so has all that it has loaded.

    Raises what a call raises, or QconfError if the workers of a call were lost again and again.
    """
    left, lost = list(reversed(wanted)), dict.fromkeys(wanted, 0)
    busy: dict[Connection, int] = {}
    running: dict[Connection, _Worker] = {}
    received: deque[tuple[Connection, int, bytes | None]] = deque()

    def give(calls: Connection) -> None:
        if left:
            busy[calls] = left.pop()
            with suppress(OSError):  # the worker was just lost, which `receive` notices
                calls.send(busy[calls])

    def receive(ready: Iterable[Any]) -> None:
        for calls in ready:
            try:
                sent = calls.recv_bytes()
            except (EOFError, OSError):
                sent = None
            received.append((calls, busy.pop(calls), sent))
            if sent is not None:
                give(calls)

    def receive_until(stop: Connection) -> None:
        while stop not in (ready := wait([stop, *busy])):
            receive(ready)

    workers = min(workers, len(left))
    stop, end = multiprocessing.Pipe(duplex=False)
    receiver = threading.Thread(target=receive_until, args=(stop,))
    try:
        if meanwhile is not None:
            for _ in range(max(1, workers - 1)):
                give(_started(call, running))
            with _blocked():  # else an interrupt could come when the thread runs and is not known to
                receiver.start()
            meanwhile()
            end.send(None)
            receiver.join()
        for _ in range(min(workers - len(running), len(left))):
            give(_started(call, running))
        while busy or received:
            if not received:
                receive(wait(list(busy)))
            calls, i, sent = received.popleft()
            if sent is None:
                lost[i] += 1
                if lost[i] == ATTEMPTS:
                    raise QconfError(
                        f"the worker of a call was lost {ATTEMPTS} times in a row: where memory runs out, fewer of "
                        "them help (--workers)"
                    )
                left.append(i)
                _ended(running.pop(calls))
                give(_started(call, running))
            else:
                succeeded, result = pickle.loads(sent)  # noqa: S301 - our own
                if not succeeded:
                    raise result
                take(i, result)
    finally:
        with _blocked():
            if receiver.is_alive():  # it reads the connections that are closed next
                end.send(None)
                receiver.join()
            for each in (stop, end):
                each.close()
            for worker in running.values():
                if worker.calls in busy:
                    worker.process.kill()
                worker.calls.close()
            for worker in running.values():
                worker.process.join()


class Beside:
    """A copy of this process that does one piece of work and sends results meanwhile; it can be stopped at any time.

    An event loop waits on `fileno` for results.
    """

    def __init__(self, work: Callable[[Callable[[object], None]], object]) -> None:
        context = multiprocessing.get_context("fork")
        self._results, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_send, args=(theirs, work, os.getpid()))  # not a daemon: has workers
        with _blocked():
            self.process.start()
        theirs.close()

    def fileno(self) -> int:
        """Return the descriptor of the results."""
        return self._results.fileno()

    def receive(self) -> Any:  # noqa: ANN401 - whatever the work sends
        """Return the next result, or raise the work's exception; EOFError at the end."""
        succeeded, result = pickle.loads(self._results.recv_bytes())  # noqa: S301 - our own
        if not succeeded:
            raise result
        return result

    def stop(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.join()
        self._results.close()


def _started(call: Call[Any], running: dict[Connection, _Worker]) -> Connection:
    """Start a worker; return the connection for its calls."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    others = [*running, ours]  # the copy must close its copies of these, else their readers see no end
    process = context.Process(target=_serve, args=(theirs, others, call, os.getpid()), daemon=True)
    with _blocked():
        process.start()
    theirs.close()
    running[ours] = _Worker(process, ours)
    return ours


def _ended(worker: _Worker) -> None:
    worker.calls.close()
    worker.process.join()


@contextmanager
def _blocked() -> Iterator[None]:
    """Keep interrupts until the end: a process that starts has its own handlers by then."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOPPING)  # may raise what came before
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(calls: Connection, others: Sequence[Connection], call: Call[Any], caller: int) -> None:
    """Make calls until the caller closes its end or dies."""
    _die_with(caller)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller gets the terminal's interrupt too, and decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    for other in others:
        other.close()
    gc.freeze()  # a collection writes to objects, which copies their pages
    with parallel_config(backend="threading"):  # a copy makes no copies
        while True:
            try:
                i = calls.recv()
            except EOFError:
                return
            try:
                outcome = True, call(i)
            except Exception as error:  # noqa: BLE001 - raised in the caller
                outcome = False, _sent(error)
            try:
                calls.send(outcome)
            except OSError:
                return


def _send(results: Connection, work: Callable[[Callable[[object], None]], object], caller: int) -> None:
    """Do the work of `Beside`. The copies of the caller's sockets are closed, else their readers would see no end."""
    _die_with(caller)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPPING)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.dup2(nothing, descriptor)
    gc.freeze()
    with suppress(OSError):  # the caller has closed the connection
        try:
            work(lambda result: results.send((True, result)))
        except Exception as error:  # noqa: BLE001 - raised in the caller
            results.send((False, _sent(error)))


def _die_with(caller: int) -> None:
    """Die when the caller is killed: a call may take minutes, and its results could end up in another run."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != caller:  # killed before the call above
        os._exit(1)


def _sent(error: Exception) -> Any:  # noqa: ANN401 - of multiprocessing, which its types leave out
    """Return an exception that can be sent with its traceback."""
    return multiprocessing.pool.ExceptionWithTraceback(error, error.__traceback__)  # type: ignore[attr-defined]
