"""Speed in typical uses: a month of a hybrid machine, millions of jobs, parallel threads, many small simulations.

``python -m tests.benchmarks.scaling month | jobs [N ...] | threads | calls``. Seconds are CPU time of the thread,
except for ``threads``, which uses the wall clock.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from parsim import Pool, Queue, System, Workload, simulate
from parsim.engine.events import events
from parsim.engine.fast.easy import easy
from parsim.engine.simulation import NEVER
from parsim.prepare.columns import prepare
from parsim.prepare.order import rank
from parsim.prepare.packing import pack
from qconf.config import load
from qconf.history import clean, read
from qconf.synth.stable import stable_workload
from tests.benchmarks.speed import best

ROOT = Path(__file__).parents[2]
PARTITIONS = (1440, 8400, 6240, 10560, 0)  # of the Cray's queues; the pool gets the rest of 35 232 cores
CORES = 2816  #: of the machine of `stable` jobs
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def cray_month() -> tuple[Workload, dict[str, System]]:
    """Return the sample month, and systems by name: shared, and hybrid with a quarter or half of the cores as pool."""
    config = load(ROOT / "configs" / "cray-xc40.yaml")
    history = clean(read([ROOT / "data" / "cray-xc40-2016-02.csv.gz"]), config)
    shared = config.system()
    free = [replace(queue, max_run=None) for queue in shared.queues]

    def hybrid(shrink: float = 1, **pool: str) -> System:
        sizes = [int(cores * shrink) // 24 * 24 for cores in PARTITIONS]
        queues = [replace(queue, partition=cores) for queue, cores in zip(free, sizes, strict=True)]
        return System(shared.cores, queues, mode="hybrid", pool=Pool(shared.cores - sum(sizes), 40, **pool))  # type: ignore[arg-type]

    return history.workload(config), {
        "EASY": System(shared.cores, [Queue(name=queue.name) for queue in shared.queues]),
        "shared, as configured": shared,
        "hybrid, entry either": hybrid(),
        "hybrid, entry move": hybrid(entry="move"),
        "hybrid, entry move, half the cores in the pool": hybrid(2 / 3, entry="move"),
        "hybrid, placement combined": hybrid(placement="combined"),
        "hybrid, placement combined, entry move": hybrid(placement="combined", entry="move"),
    }


def month() -> None:
    """Print jobs per second for the Cray's month."""
    workload, systems = cray_month()
    for label, system in systems.items():
        seconds = best(partial(simulate, workload, system), repeats=60)
        print(f"{label:48} {len(workload) / seconds:12,.0f} jobs/s")


def scaled(cores: int) -> dict[str, System]:
    """Return systems by name: one list; priorities and limits; a formula; partitions and a pool, at a load below 1."""
    queues = [Queue(name=str(i), priority=1 + i, starvation=86400, max_run=cores >> i) for i in range(4)]
    sizes = [cores * share // 100 for share in (3, 8, 25, 0)]
    free = [replace(queue, max_run=None) for queue in queues]
    hybrid = [replace(queue, partition=size) for queue, size in zip(free, sizes, strict=True)]
    return {
        "EASY": System(cores, [Queue(name=str(i)) for i in range(4)]),
        "shared, priorities, limits": System(cores, queues),
        "formula": System(cores, free, order="queue_priority * (eligible_time + walltime) / walltime ** 1.3"),
        "hybrid": System(cores, hybrid, mode="hybrid", pool=Pool(cores - sum(sizes), 1, entry="move")),
    }


def stable(jobs: int, cores: int = CORES) -> Workload:
    """Return jobs of up to 128 cores at load 0.6 in four queues by size; ten million span a decade."""
    sized_for = 512
    workload = stable_workload(jobs, sized_for, 0.6, mean_log=6.3)
    submit = workload.submit[0] + (workload.submit - workload.submit[0]) * sized_for // cores
    return replace(workload, submit=submit, queue=np.digitize(workload.cores, [4, 16, 64]))


def one(jobs: int, label: str) -> None:
    """Simulate once with compiled kernels; print seconds, peak memory, and memory before."""
    system = scaled(CORES)[label]
    simulate(stable(1000), system)
    workload = stable(jobs)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak, since generating jobs takes more
    loaded = _peak()
    began = time.thread_time()
    schedule = simulate(workload, system)
    seconds = time.thread_time() - began
    peak = _peak()
    row = f"{jobs:12,} {label:28} {seconds:9.3f} s {jobs / seconds:12,.0f} jobs/s"
    print(
        f"{row}  mean wait {schedule.wait.mean():6.0f} s  peak {peak / 2**20:5.2f} GiB, {loaded / 2**20:5.2f} before",
        flush=True,
    )


def _peak() -> int:
    """Return the peak memory of this process, KiB."""
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def jobs(sizes: list[int]) -> None:
    """Print a row per size and system, each measured in a separate process."""
    for size in sizes or SIZES:
        for label in scaled(CORES):
            subprocess.run([sys.executable, "-m", "tests.benchmarks.scaling", "one", str(size), label], check=True)


def threads() -> None:
    """Print the time of eight simulations on two threads relative to one thread."""
    workload = stable(200_000)
    for label, system in scaled(CORES).items():
        work = partial(simulate, workload, system)
        work()
        ratios = []
        for _ in range(5):
            began = time.perf_counter()
            for _ in range(8):
                work()
            serial = time.perf_counter() - began
            began = time.perf_counter()
            with ThreadPoolExecutor(2) as pool:
                for done in [pool.submit(work) for _ in range(8)]:
                    done.result()
            ratios.append((time.perf_counter() - began) / serial)
        rounds = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"{label:28} two threads take {min(ratios):.2f} of the time of one (rounds: {rounds})", flush=True)


def calls() -> None:
    """Print the time of a simulation of 1500 jobs, and of its kernel alone, in alternating runs."""
    workload, systems = cray_month()
    workload = workload.take(slice(0, 1500))
    prepared = prepare(workload)
    for label, system in systems.items():
        taken = []
        for _ in range(200):
            began = time.thread_time()
            simulate(workload, system)
            between = time.thread_time()
            if label == "EASY":
                ranks = rank(prepared.jobs, workload.queue, system.queues, system.order, prepared.bits)
                start = np.empty(len(workload), dtype=np.int64)
                ready = time.thread_time()
                easy(prepared.jobs, 0, np.int64(0), system.cores, True, prepared.bits, *ranks, NEVER, 0, start)
            else:
                state = pack(prepared, system)
                ready = time.thread_time()
                events(state, None, None, None, None)
            taken.append((between - began, time.thread_time() - ready))
        whole, kernel = 1e6 * np.array(taken).min(axis=0)
        print(f"{label:48} {whole:7.0f} us, of which the kernel {kernel:7.0f} us, the rest {whole - kernel:6.0f} us")


def main() -> None:
    """Run the named benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scaling", description=__doc__)
    parser.add_argument("what", choices=["month", "jobs", "threads", "calls", "one"])
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    if arguments.what == "one":
        one(int(arguments.rest[0]), arguments.rest[1])
    elif arguments.what == "jobs":
        jobs([int(size) for size in arguments.rest])
    else:
        {"month": month, "threads": threads, "calls": calls}[arguments.what]()


if __name__ == "__main__":
    main()
