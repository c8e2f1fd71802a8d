"""Kernels are compiled before they are needed: ``python -m parsim.compiling [NAME ...]``, names of `GROUPS`.

numba compiles a kernel at its first call and keeps it on disk. It compiles one at a time in a process; processes that
compile at the same time take as long as the slowest group.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
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
    """Kernels that one process compiles: the one that takes longest, and a call of each."""

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


#: Those that take longest first.
GROUPS: dict[str, Group] = {
    "general": Group(events, _general, (False, False, False)),
    "top jobs": Group(events, _reserving("nodes"), (True, False, False)),
    "head jobs of queues": Group(events, _reserving("queues"), (False, True, False)),
    "formulas": Group(time_dependent, _formulas),
    "lists": Group(easy, _lists),
    "planning": Group(replan, lambda: plan(WORKLOAD, 5, "dynp")),
    "conservative": Group(conservative, lambda: plan(WORKLOAD, 5, "conservative")),
}


def needed(system: System | None = None) -> list[str]:
    """Return the names of the groups with which a system, and what a search may make of it, is simulated."""
    plans = system is not None and system.plans_top_job
    return ["general", *(["top jobs"] if plans else []), "formulas", "lists"]


def missing(names: Iterable[str] = GROUPS) -> list[str]:
    """Return those of the groups that are not on disk, as new as their source, for this user and processor."""
    return [name for name in names if not is_compiled(GROUPS[name].longest, GROUPS[name].parts)]


def is_compiled(kernel: Compiled, parts: tuple[bool, ...] = ()) -> bool:
    """Return whether a kernel is on disk, as new as its source, for this user and processor.

    With `parts` it is one whose last arguments are there, or None.
    """
    dispatcher = kernel.dispatcher
    return bool(dispatcher._cache.holds(dispatcher.targetctx, parts))


class Compiling:
    """Groups that compile, each in a process of its own, so many at a time; `modules` has those that others compile."""

    def __init__(self, names: Iterable[str], most: int, modules: Mapping[str, str] = MappingProxyType({})) -> None:
        self._waiting, self._most, self._modules = list(names), most, modules
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.failed: list[str] = []
        self._start()

    def _start(self) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        while self._waiting and len(self._running) < self._most:
            name = self._waiting.pop(0)
            module = self._modules.get(name, __name__)
            command = [sys.executable, "-P", "-m", module, name]  # modules are the caller's, not the current folder's
            # In a session of its own: Ctrl-C at the terminal is for the caller, which ends what it began.
            about = {"env": os.environ | {"PYTHONPATH": path}, "start_new_session": True}
            self._running[name] = subprocess.Popen(command, **about)  # type: ignore[call-overload] # noqa: S603

    def wait(self) -> None:
        """Return when all are compiled; what fails here is compiled, and says why, where it is called."""
        while self._running:
            ended = [name for name, process in self._running.items() if process.poll() is not None]
            for name in ended:
                if self._running.pop(name).returncode != 0:
                    self.failed.append(name)
            self._start()
            if not ended:
                time.sleep(0.02)

    def stop(self) -> None:
        """End what still runs."""
        self._waiting.clear()
        for process in self._running.values():
            process.terminate()
        self.wait()


def load(names: Iterable[str] = GROUPS) -> None:
    """Call these groups: what is on disk is loaded, the rest compiled."""
    for name in names:
        GROUPS[name].call()


def collect_seldom() -> None:
    """Collect garbage seldom: what a compiler makes stays, and to look through it takes an eighth of its time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


if __name__ == "__main__":
    collect_seldom()
    load(sys.argv[1:] or GROUPS)
