"""Ctrl-C and SIGTERM as exceptions of the command, wherever in Python or a library they arrive."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

_last = -math.inf  # instant of the last Ctrl-C


class Terminated(KeyboardInterrupt):
    """SIGTERM: handled like Ctrl-C, with another exit code."""


def take_interrupts() -> None:
    """Raise Ctrl-C and SIGTERM in the main thread, unless somebody else handles them."""
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = repeat_lost
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _show_no_interrupt


def _terminate(number: int, _: FrameType | None) -> None:
    global _last  # noqa: PLW0603 - a signal handler has no other place
    _last = time.monotonic()
    signal.signal(number, signal.SIG_IGN)  # a second signal does not interrupt the end
    raise Terminated


def _interrupt(*_: object) -> None:
    """Raise KeyboardInterrupt, but not for a signal that follows within a second: it would interrupt the end."""
    global _last  # noqa: PLW0603 - as above
    if time.monotonic() - _last >= 1:
        _last = time.monotonic()
        raise KeyboardInterrupt


def repeat_lost(lost: Any) -> None:  # noqa: ANN401 - the type of its argument has no name
    """Repeat an interrupt that Python dropped because it came in a callback, as happens while kernels are loaded."""
    global _last
    if issubclass(lost.exc_type, KeyboardInterrupt):
        number, _last = signal.SIGINT, -math.inf
        if issubclass(lost.exc_type, Terminated):
            number = signal.SIGTERM
            signal.signal(number, _terminate)  # it is ignored by now
        again = threading.Timer(0.05, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
    elif _last == -math.inf:  # else it is what the interrupt left half made
        sys.__unraisablehook__(lost)


def _show_no_interrupt(kind: type[BaseException], *rest: Any) -> None:  # noqa: ANN401 - as the hook of Python
    """Show an exception, but no interrupt: compiled code of libraries shows one before it drops it."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, *rest)
