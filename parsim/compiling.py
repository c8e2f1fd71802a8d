"""Kernels are compiled before they are needed: ``python -m parsim.compiling [NAME ...]``, names of `GROUPS`.

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
    """Kernels that are compiled together: about how long that takes, the one that takes longest, and a call of each."""

    seconds: int
    longest: Compiled
    call: Callable[[], object]
    parts: tuple[bool, ...] = ()  #: which of its last arguments are there, and not None


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
    "general": Group(17, events, _general, (False, False, False)),
    "head jobs of queues": Group(13, events, _reserving("queues"), (False, True, False)),
    "formulas": Group(10, time_dependent, _formulas),
    "lists": Group(5, easy, _lists),
    "planning": Group(4, replan, lambda: plan(WORKLOAD, 5, "dynp")),
    "conservative": Group(2, conservative, lambda: plan(WORKLOAD, 5, "conservative")),
}


def needed(system: System | None = None) -> list[str]:
    """Return the names of the groups with which a system, and what a search may make of it, is simulated."""
    plans = system is not None and system.plans_top_job
    return [*(["top jobs"] if plans else []), "general", "formulas", "lists"]


def missing(names: Iterable[str] = GROUPS) -> list[str]:
    """Return those of the groups that are not on disk, as new as their source, for this user and processor."""
    return [name for name in names if not is_compiled(GROUPS[name].longest, GROUPS[name].parts)]


def seconds(names: Iterable[str] = GROUPS) -> dict[str, int]:
    """Return what it takes to compile groups, as `Compiling` takes them."""
    return {name: GROUPS[name].seconds for name in names}


def is_compiled(kernel: Compiled, parts: tuple[bool, ...] = ()) -> bool:
    """Return whether a kernel is on disk, as new as its source, for this user and processor.

    With `parts` it is one whose last arguments are there, or None.
    """
    dispatcher = kernel.dispatcher
    return bool(dispatcher._cache.holds(dispatcher.targetctx, parts))


class Compiling:
    """Processes that compile, each several names one after another: so what they share is compiled once in each.

    Parameters
    ----------
    names : mapping
        What `load` takes, and about how many seconds it takes: the next one goes to the process with the least to do.
    most : int
        Processes.
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
        """Return when all are compiled; what fails here is compiled, and says why, where it is called."""
        while self._running:
            batch, process = self._running.pop()
            self.failed += batch if process.wait() else []

    def stop(self) -> None:
        """End what still runs."""
        for _, process in self._running:
            process.terminate()
        self.wait()


def load(names: Iterable[str] = GROUPS) -> None:
    """Call groups, and modules that have a `load` of their own, ``module`` or ``module:what``.

    What is on disk is loaded, the rest compiled.
    """
    for name in names:
        module, _, what = name.partition(":")
        if name in GROUPS:
            GROUPS[name].call()
        else:
            import_module(module).load(*filter(None, [what]))


def collect_seldom() -> None:
    """Collect garbage seldom: what a compiler makes stays, and to look through it takes an eighth of its time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


if __name__ == "__main__":
    collect_seldom()
    load(sys.argv[1:] or GROUPS)
