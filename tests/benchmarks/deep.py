"""Deep queues: time of every discipline in overload, on bursts of identical jobs and on jobs that all differ.

``python -m tests.benchmarks.deep [--jobs N N] [DISCIPLINE ...]`` prints a row per discipline; for each load and each
number of jobs, CPU seconds of the thread and the ratio to the seconds of the number before.

``python -m tests.benchmarks.deep --counts`` prints instead the elements of waiting lists that a visit reads, for few
jobs, and fails if it exceeds ``deep.json``, which ``--write`` rewrites.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from parsim import Pool, Queue, System, Workload, simulate
from parsim.planning.plan import plan
from tests.benchmarks.reads import counting, reads_a_visit
from tests.benchmarks.speed import best

CORES = 1024
WALLTIMES = (900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400)  #: walltimes that users request, seconds
LONGEST_BURST = 4000  #: jobs
USERS = 40
LIMITS = (None, None, 400, 200)  #: `max_run` of the queues, in order of size

COUNTS = Path(__file__).with_name("deep.json")  #: elements per visit, by discipline, load and number of jobs
FEW, FEW_CORES, FEW_LOAD = (80, 320), 64, 2.5  #: numbers of jobs, cores and load for `--counts`
MORE = 1.05  #: tolerated ratio to the stored counts


def bursts(jobs: int, cores: int = CORES, load: float = 1.2, seed: int = 0) -> Workload:
    """Return jobs in bursts of identical ones, two per second, in four queues by size.

    The jobs of a burst, 1 to `LONGEST_BURST`, fewer if they are wide, share size, walltime and user; their run times
    differ. A `load` above 1 overloads the machine.
    """
    rng = np.random.default_rng(seed)
    width = 2 ** rng.integers(0, int(np.log2(cores)) - 2, jobs)
    size = np.exp(rng.uniform(0, np.log(LONGEST_BURST), jobs)) / width**0.5
    burst = np.repeat(np.arange(jobs), np.maximum(1, size.astype(np.int64)))[:jobs]
    work = rng.choice(WALLTIMES, jobs)
    gap = rng.exponential(size=jobs) * np.bincount(burst, (width * work * 0.55)[burst], jobs) / (load * cores)
    width, walltime = width[burst], work[burst]
    runtime = np.maximum(1, walltime * rng.uniform(0.1, 1, jobs)).astype(np.int64)
    second = (np.arange(jobs) - np.searchsorted(burst, burst)) // 2
    submit = gap.cumsum().astype(np.int64)[burst] + second
    order = np.argsort(submit, kind="stable")
    queue = np.digitize(width, [4, 16, 64])
    user = rng.integers(0, USERS, jobs)[burst]
    return Workload(*(column[order] for column in (submit, width, runtime, walltime, queue, user)))


def distinct(jobs: int, cores: int = CORES, load: float = 1.2, seed: int = 0) -> Workload:
    """Return jobs that all differ: walltimes to the second, any width, of 50 users, in four queues by size.

    They are submitted one by one. A `load` above 1 overloads the machine.
    """
    rng = np.random.default_rng(seed)
    width = np.exp(rng.uniform(0, np.log(cores / 4), jobs)).astype(np.int64)
    walltime = np.exp(rng.uniform(np.log(300), np.log(86_400), jobs)).astype(np.int64)
    runtime = np.maximum(1, walltime * rng.uniform(0.1, 1, jobs)).astype(np.int64)
    mean = (width * runtime).mean() / (load * cores)
    submit = rng.exponential(mean, jobs).cumsum().astype(np.int64)
    return Workload(submit, width, runtime, walltime, np.digitize(width, [4, 16, 64]), rng.integers(0, 50, jobs))


LOADS = {"alike": bursts, "all different": distinct}


def disciplines(cores: int = CORES) -> dict[str, Callable[[Workload], object]]:
    """Return functions to simulate a workload of four queues, by name of the discipline."""
    plain = [Queue(name=name) for name in "abcd"]
    queues = [Queue(name=name, priority=1 + i, starvation=86_400) for i, name in enumerate("abcd")]
    limited = [
        replace(queue, max_run=most, max_user_cores=cores // 2) for queue, most in zip(plain, LIMITS, strict=True)
    ]
    divided = [replace(queue, partition=cores * share // 8) for queue, share in zip(plain, (1, 2, 2, 0), strict=True)]
    pool = Pool(cores - sum(queue.partition for queue in divided), threshold=1.5)
    formula = "queue_priority * (eligible_time + walltime) / walltime ** 1.3"
    starving = (
        f"1e28 * (1 + eligible_time) if eligible_time >= 86400 else {formula} * (1 + (eligible_time / 36000) ** 3)"
    )
    systems = {
        "easy": System(cores, plain),
        "fcfs": System(cores, plain, backfill=False),
        "sjf": System(cores, plain, order="sjf"),
        "priorities, starvation": System(cores, queues),
        "lxf": System(cores, plain, order="lxf"),
        "formula": System(cores, queues, order=formula),
        "formula, starvation": System(cores, queues, order=starving),
        "formula, limits": System(cores, limited, order=formula),
        "limits": System(cores, limited),
        "lxf, limits": System(cores, limited, order="lxf"),
        "hybrid": System(cores, divided, "hybrid", pool=pool),
        "hybrid move": System(cores, divided, "hybrid", pool=replace(pool, entry="move")),
        "hybrid combined": System(cores, divided, "hybrid", pool=replace(pool, placement="combined")),
        "mqb": System(cores, plain, "multiqueue"),
        "fair share": System(cores, plain, order="fairshare"),
        "nothing reserved": System(cores, plain, reserve="nothing", reserve_after=86_400),
        "node by node": System(cores, plain, reserve="nodes", cores_per_node=16),
        "planned limits": System(cores, limited, held_jobs="reserve"),
        "depth 10": System(cores, plain, reservation_depth=10),
        "head jobs": System(cores, plain, reserve="queues"),
        "head jobs, priorities": System(cores, queues, reserve="queues"),
        "head jobs, lxf": System(cores, plain, order="lxf", reserve="queues"),
        "head jobs, formula": System(cores, queues, order=formula, reserve="queues"),
        "head jobs, limits": System(cores, limited, reserve="queues"),
        "head jobs, hybrid": System(cores, divided, "hybrid", pool=replace(pool, entry="move"), reserve="queues"),
    }
    runs: dict[str, Callable[[Workload], object]] = {
        name: partial(simulate, system=system) for name, system in systems.items()
    }
    for name in ("conservative", "planned-fcfs", "planned-sjf"):
        runs[name] = partial(plan, cores=cores, policy=name)
    return runs


def count(names: list[str], write: bool = False) -> list[str]:
    """Print the elements that a visit reads; store them with `write`, else return messages where they are too many."""
    stored = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    wrong = []
    with counting():
        for name, run in disciplines(FEW_CORES).items():
            if names and name not in names:
                continue
            found = {
                load: [round(reads_a_visit(run, make(jobs, FEW_CORES, FEW_LOAD)), 1) for jobs in FEW]
                for load, make in LOADS.items()
            }
            print(
                f"{name:24}" + "".join(f"  {load}: {few:9} {many:9}" for load, (few, many) in found.items()), flush=True
            )
            if write:
                stored[name] = found
                continue
            for load, counts in found.items():
                allowed = stored.get(name, {}).get(load, (0, 0))
                for jobs, reads, most in zip(FEW, counts, allowed, strict=True):
                    if reads > most * MORE:
                        wrong.append(f"{name}, {load}, {jobs} jobs: a visit reads {reads} elements; {most} are stored")
    if write:
        rows = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in stored.items())
        COUNTS.write_text("{" + ",\n ".join(rows) + "}\n")
    return wrong


def main() -> int:
    """Print the table of seconds or of counts; return 1 if a count is too large."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.deep", description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[10_000, 40_000])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--load", choices=LOADS, nargs="+", default=[*LOADS])
    parser.add_argument("--counts", action="store_true", help="of elements read, in place of seconds")
    parser.add_argument("--write", action="store_true", help="store the counts")
    parser.add_argument("disciplines", nargs="*")
    arguments = parser.parse_args()
    if arguments.counts or arguments.write:
        wrong = count(arguments.disciplines, arguments.write)
        print("\n".join(wrong or ["no visit reads more than is stored"]))
        return int(bool(wrong))
    for name, run in disciplines().items():
        if arguments.disciplines and name not in arguments.disciplines:
            continue
        row = f"{name:24}"
        for load in arguments.load:
            run(LOADS[load](1000))
            row, before = f"{row}  {load}:", 0.0
            for jobs in arguments.jobs:
                seconds = best(partial(run, LOADS[load](jobs)), repeats=arguments.repeats)
                row += f" {jobs:7,} {seconds:8.3f} s" + (f" {seconds / before:5.1f}x" if before else "")
                before = seconds
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
