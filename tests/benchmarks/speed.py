"""Speed of the simulator: jobs per second of every discipline, against the reference simulator and one in C++.

``python -m tests.benchmarks.speed`` (or ``make bench``). All is measured in one run on one core; machines are shared
and noisy, so compare ratios, not seconds. Traces and the C++ reference are used if they are beside the project, else
generated jobs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from parsim import Pool, Queue, System, Workload, naive, simulate
from parsim.engine.fast.easy import easy
from parsim.engine.simulation import NEVER
from parsim.planning.plan import NAMED, plan
from parsim.prepare.columns import prepare
from parsim.prepare.order import rank
from qconf.synth.stable import stable_workload
from tests.beside import REFERENCE
from tests.fuzz import trace

REPEATS = 9
ROUNDS = 5
MACHINES = {"KTH-SP2": 100, "SDSC-SP2": 128}


def best(run: Callable[[], object], clock: Callable[[], float] = time.thread_time, repeats: int = REPEATS) -> float:
    """Return the least seconds of `repeats` runs, after one that compiles.

    The thread's clock stops while other threads use the processor.
    """
    run()
    taken = []
    for _ in range(repeats):
        began = clock()
        run()
        taken.append(clock() - began)
    return min(taken)


def beside_reference(workload: Workload, cores: int, kernel: Callable[[], object]) -> float | None:
    """Return the speed of our kernel relative to the C++ reference, median of alternating rounds; None without it."""
    source = REFERENCE / "ref_easy.cpp"
    if not source.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        program, jobs = Path(folder, "ref_easy"), Path(folder, "jobs.csv")
        build = ["g++", "-O3", "-march=native", "-std=c++17", "-o", str(program), str(source)]
        if subprocess.run(build, check=False, capture_output=True).returncode:
            return None
        w = workload
        rows = zip(range(len(w)), w.submit, w.cores, w.effective_runtime, w.walltime, strict=True)
        jobs.write_text("job_id,submit,procs,runtime,estimate\n" + "".join(",".join(map(str, r)) + "\n" for r in rows))
        command = [str(program), "--csv", str(jobs), "--procs", str(cores), "--batch", "--reps", "15"]
        ratios = []
        for _ in range(ROUNDS):
            ours = best(kernel, time.perf_counter)  # the clock of the reference
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            ratios.append(float(printed.split("sim_ms_min=")[1].split()[0]) / 1000 / ours)
    return float(np.median(ratios))


def disciplines(cores: int) -> dict[str, System]:
    queues = [Queue(name=name, priority=1 + i, starvation=86400) for i, name in enumerate("abcd")]
    alike = [Queue(name=queue.name) for queue in queues]
    sizes = [cores // 10, cores // 5, cores // 5, 0]
    hybrid = [replace(queue, partition=size) for queue, size in zip(queues, sizes, strict=True)]
    return {
        "EASY": System(cores, alike),
        "FCFS": System(cores, alike, backfill=False),
        "shared, priorities": System(cores, [replace(queue, starvation=None) for queue in queues]),
        "shared, priorities, starvation": System(cores, queues),
        "shared, running limits": System(cores, [replace(queue, max_run=20) for queue in queues]),
        "shared, lxf": System(cores, alike, order="lxf"),
        "shared, fair share": System(cores, alike, order="fairshare"),
        "shared, formula": System(cores, queues, order="(eligible_time + walltime) / walltime ** 1.3"),
        "shared, formula, running limits": System(
            cores,
            [replace(queue, max_run=20) for queue in queues],
            order="(eligible_time + walltime) / walltime ** 1.3",
        ),
        "hybrid, pool, reservations": System(
            cores, hybrid, mode="hybrid", pool=Pool(cores - sum(sizes), threshold=1.5, entry="move")
        ),
        "head jobs of queues": System(cores, queues, reserve="queues"),
        "head jobs of queues, running limits": System(
            cores, [replace(queue, max_run=20) for queue in queues], reserve="queues"
        ),
        "head jobs of queues, formula": System(
            cores, queues, order="(eligible_time + walltime) / walltime ** 1.3", reserve="queues"
        ),
    }


def main() -> None:
    """Print the table."""
    print(f"{'jobs':10} {'discipline':32} {'jobs/s':>12}  beside")
    for name, cores in MACHINES.items():
        if (REFERENCE / f"{name}_easy.csv.gz").exists():
            workload = trace(name)
        else:
            name, workload = "generated", stable_workload(30_000, cores, 0.8, 0)  # noqa: PLW2901
        n = len(workload)
        prepared, start = prepare(workload), np.empty(n, dtype=np.int64)
        jobs, bits = prepared.jobs, prepared.bits
        ranks = rank(jobs, np.zeros(n, dtype=np.int64), [Queue()], "fcfs", bits)
        kernel = partial(easy, jobs, 0, np.int64(0), cores, True, bits, *ranks, NEVER, 0, start)
        ratio = beside_reference(workload, cores, kernel)
        beside = f"{ratio:.2f} of ref_easy.cpp" if ratio else "no ref_easy.cpp or no g++ here"
        print(f"{name:10} {'EASY, the kernel alone':32} {n / best(kernel):12,.0f}  {beside}")
        few = workload.take(slice(0, 1000))
        for label, system in disciplines(cores).items():
            seconds = best(partial(simulate, workload, system))
            began = time.perf_counter()
            naive.simulate(few, system)
            slow = (time.perf_counter() - began) / len(few)
            print(f"{name:10} {label:32} {n / seconds:12,.0f}  {slow * n / seconds:,.0f} times naive.py")
            sys.stdout.flush()
        for label in NAMED:
            print(
                f"{name:10} {label:32} {n / best(partial(plan, workload, cores, label), repeats=3):12,.0f}", flush=True
            )


if __name__ == "__main__":
    main()
