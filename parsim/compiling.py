"""Compiles kernels before they are needed: ``python -m parsim.compiling [NAME ...]``, names of `GROUPS`.

numba compiles a kernel at its first call and keeps it on disk, one at a time in a process.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import NamedTuple

import numpy as np

from parsim import Pool, Queue, System, Workload, metrics, plan, simulate
from parsim.engine.compile.compiled import Compiled
from parsim.engine.events import events
from parsim.engine.fast.easy import easy
from parsim.engine.fast.time_dependent import time_dependent
from parsim.metrics.tabulate import waits_by_size
from parsim.model.system import Reserve
from parsim.planning.conservative import conservative
from parsim.planning.replan import replan

WORKLOAD = Workload(*np.array([[0, 1, 2], [4, 4, 1], [50, 50, 9], [60, 60, 10], [0, 0, 0]]))
_FORMULA = "eligible_time / walltime"


class Group(NamedTuple):
    """Kernels that are compiled together: the seconds that takes, the slowest kernel, and a function that calls all."""

    seconds: int
    longest: Compiled
    call: Callable[[], object]
    parts: tuple[bool, ...] = ()  #: which of the last arguments of `longest` are not None


def _general() -> None:
    simulate(WORKLOAD, System(5, [Queue(partition=4)], "hybrid", pool=Pool(1, 0)))


def _lists() -> None:
    system = System(5)
    metrics.summary(WORKLOAD, simulate(WORKLOAD, system), system)
    waits_by_size(WORKLOAD, [5])
    simulate(WORKLOAD, System(5, [Queue()], mode="multiqueue"))


def _formulas() -> None:
    simulate(WORKLOAD, System(5, [Queue()], order=_FORMULA))
    simulate(WORKLOAD, System(5, [Queue()], order="walltime"))


def _reserving(what: Reserve) -> Callable[[], object]:
    return lambda: simulate(WORKLOAD, System(5, [Queue()], reserve=what))


GROUPS: dict[str, Group] = {
    "top jobs": Group(35, events, _reserving("nodes"), (True, False, False)),
    "general": Group(13, events, _general, (False, False, False)),
    "head jobs of queues": Group(13, events, _reserving("queues"), (False, True, False)),
    "formulas": Group(10, time_dependent, _formulas),
    "lists": Group(5, easy, _lists),
    "planning": Group(4, replan, lambda: plan(WORKLOAD, 5, "dynp")),
    "conservative": Group(2, conservative, lambda: plan(WORKLOAD, 5, "conservative")),
}


def needed(system: System | None = None) -> list[str]:
    """Return the groups that simulate a system and those derived from it; None is a system with default settings."""
    plans = system is not None and system.plans_top_job
    heads = system is not None and (system.reserves_for_queues or system.reserves_for_many) and not system.fits_best
    of = {"top jobs": plans, "head jobs of queues": heads}
    return [*(name for name, wanted in of.items() if wanted), "general", "formulas", "lists"]


def missing(names: Iterable[str] = GROUPS) -> list[str]:
    """Return the groups that are not on disk for this user and processor, or older than their source."""
    return [name for name in names if not is_compiled(GROUPS[name].longest, GROUPS[name].parts)]


def seconds(names: Iterable[str] = GROUPS) -> dict[str, int]:
    """Return the seconds that each group takes to compile, the argument of `Compiling`."""
    return {name: GROUPS[name].seconds for name in names}


def is_compiled(kernel: Compiled, parts: tuple[bool, ...] = ()) -> bool:
    """Return whether a kernel is on disk for this user and processor, as new as its source.

    `parts` chooses the version of the kernel: which of its last arguments are not None.
    """
    dispatcher = kernel.dispatcher
    return bool(dispatcher._cache.holds(dispatcher.targetctx, parts))


class Compiling:
    """Processes that compile names in parallel. Each compiles several, and code that these share only once.

    Parameters
    ----------
    names : mapping of str to int
        Names as `load` takes them, and about how many seconds each takes: the next goes to the least busy process.
    most : int
        Most processes.
    """

    def __init__(self, names: Mapping[str, int], most: int) -> None:
        batches: list[list[str]] = [[] for _ in range(min(most, len(names)))]
        for name in names:
            min(batches, key=lambda batch: sum(names[each] for each in batch)).append(name)
        path = os.pathsep.join(filter(None, sys.path))
        # In a session of its own: Ctrl-C at the terminal is for the caller, which ends what it began.
        about = {"env": os.environ | {"PYTHONPATH": path}, "start_new_session": True}
        command = [sys.executable, "-P", "-m", __name__]  # modules are the caller's, not the current folder's
        self._running = [(batch, subprocess.Popen([*command, *batch], **about)) for batch in batches]  # type: ignore[call-overload] # noqa: S603
        self.failed: list[str] = []  #: names of processes that failed

    def wait(self) -> None:
        """Wait until all are compiled. A kernel that fails here is compiled at its first call, which reports why."""
        while self._running:
            batch, process = self._running[-1]  # until it has ended: who is interrupted here has to stop it
            self.failed += batch if process.wait() else []
            self._running.pop()

    def stop(self) -> None:
        """End the processes that still run."""
        for _, process in self._running:
            process.terminate()
        self.wait()


def load(names: Iterable[str] = GROUPS) -> None:
    """Load kernels from disk, or compile them.

    A name is one of `GROUPS`, or ``module`` or ``module:what``: then the module's `load` is called.
    """
    for name in names:
        module, _, what = name.partition(":")
        if name in GROUPS:
            GROUPS[name].call()
        else:
            import_module(module).load(*filter(None, [what]))


def collect_seldom() -> None:
    """Collect garbage seldom: objects of the compiler stay alive, and scanning them takes an eighth of its time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


if __name__ == "__main__":
    collect_seldom()
    load(sys.argv[1:] or GROUPS)
