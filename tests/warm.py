"""Compile the kernels into the cache on disk: ``python -m tests.warm``, or with names of `FAMILIES` these alone.

Each family is compiled by one process, all of them at once, so that no two processes compile the same kernel.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from parsim import Queue, System, Workload, metrics, plan, simulate

WORKLOAD = Workload([0, 1, 2], [4, 4, 1], [50, 50, 9], [60, 60, 10], queue=[0, 0, 0])


def event_loop() -> None:
    """The loop of queues with limits, partitions and pools: as long to compile as all others together."""
    simulate(WORKLOAD, System(5, [Queue(max_run=2)], order="wfp3"))


def small_kernels() -> None:
    """Each other kernel, the ones that take longest first."""
    for policy in ("dynp", "conservative"):
        plan(WORKLOAD, 5, policy)
    simulate(WORKLOAD, System(5, [Queue()], order="eligible_time / walltime"))
    simulate(WORKLOAD, System(5, [Queue()], mode="multiqueue"))
    simulate(WORKLOAD, System(5, [Queue(partition=5)], mode="partitioned", reserve="nodes"))
    one_list = System(5, [Queue()])
    metrics.summary(WORKLOAD, simulate(WORKLOAD, one_list), one_list)


FAMILIES: dict[str, Callable[[], None]] = {"event_loop": event_loop, "small_kernels": small_kernels}


def warm() -> None:
    """Compile all families, each in a process of its own.

    Raises
    ------
    RuntimeError
        A process failed.
    """
    running = [subprocess.Popen([sys.executable, "-m", __name__, name]) for name in FAMILIES]
    codes = [process.wait() for process in running]
    if any(codes):
        raise RuntimeError("the kernels do not compile")


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        FAMILIES[name]()
