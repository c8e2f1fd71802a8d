"""Many seeds per discipline, by command: ``python -m tests.fuzz --count 5000`` asks the slow simulator and the judge.

``--traces`` judges whole traces instead, where they lie beside the project, under a sensible system of each discipline;
``python -m tests.fuzz --traces multiqueue "hybrid combined"`` only those whose names begin so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd

from parsim import Pool, Queue, System, Workload, simulate
from parsim.planning import NAMED, plan
from parsim.verify import Violation, check_schedule
from parsim.verify.planned import check_planned
from tests import generate, naive
from tests.beside import REFERENCE
from tests.naive_planning import naive_plan

TRACES = {"KTH-SP2": 100, "SDSC-SP2": 128, "HPC2N": 240}  #: of HPC2N, its first 60 000 jobs
DISCIPLINES = (*generate.disciplines(), "multiqueue", "planned")


def differs(discipline: str, seed: int) -> bool:
    """Whether a random case has another schedule than the slow simulator gives, or one that the judge objects to."""
    if discipline == "planned":
        workload, cores, policy = generate.planned(Random(seed))
        planned = plan(workload, cores, policy).schedule
        return planned.start.tolist() != naive_plan(workload, cores, policy).start or bool(
            check_planned(workload, cores, policy, planned)
        )
    if discipline == "multiqueue":
        workload, cores, limits = generate.multiqueue(Random(seed))
        system = System(cores, mode="multiqueue", class_limits=limits)
        slow = naive.simulate_multiqueue(workload, cores, limits)
    else:
        workload, system = generate.disciplines()[discipline](Random(seed))
        slow = naive.simulate(workload, system)
    fast = simulate(workload, system)
    placement = [fast.placement(job) for job in range(len(fast))]
    return (
        fast.start.tolist() != slow.start or placement != slow.placement or bool(check_schedule(workload, system, fast))
    )


def systems(cores: int) -> Iterator[tuple[str, System]]:
    """Yield a sensible system of each discipline, for queues that `trace` routes to."""
    queues = [Queue(name=name, priority=1 + i, starvation=86400) for i, name in enumerate("abcd")]
    alike = [Queue(name=queue.name) for queue in queues]
    limited = [replace(queue, max_run=cores // 4, max_user_cores=cores) for queue in queues]
    sizes = [cores // 10, cores // 5, cores // 5, 0]
    parts = [replace(queue, partition=size) for queue, size in zip(queues, sizes, strict=True)]
    whole = [replace(queue, partition=size) for queue, size in zip(queues, [0, 0, cores, 0], strict=True)]
    pool = Pool(cores - sum(sizes), threshold=1.5)
    yield "easy", System(cores, alike)
    yield "fcfs", System(cores, alike, backfill=False)
    for order in ("fcfs", "sjf", "ljf", "lxf", "wfp3"):
        yield f"shared {order}", System(cores, queues, order=order)
    yield "shared limits", System(cores, limited)
    yield (
        "shared formula",
        System(cores, limited, order="queue_priority * (eligible_time + walltime) / walltime ** 1.3"),
    )
    rest = replace(parts[2], partition=cores - sizes[0] - sizes[1])
    yield "reservations", System(cores, [parts[0], parts[1], rest, parts[3]], "partitioned")
    yield "reserved and whole", System(cores, whole, "partitioned")
    for placement in ("pool", "combined"):
        for entry in ("either", "move"):
            chosen = replace(pool, placement=placement, entry=entry)
            yield f"hybrid {placement} {entry}", System(cores, parts, "hybrid", pool=chosen)
    yield "multiqueue", System(cores, alike, "multiqueue")


def trace(name: str) -> Workload:
    """Return a trace whose jobs are routed to four queues by their cores."""
    table = pd.read_csv(REFERENCE / f"{name}_easy.csv.gz")
    users = np.random.default_rng(0).integers(0, 300, len(table))
    queue = np.digitize(table["cores"], [2, 9, 33])
    return Workload(table["submit"], table["cores"], table["runtime"], table["walltime"], queue, users)


def judgements(name: str) -> Iterator[tuple[str, Callable[[], list[Violation]]]]:
    """Yield what simulates a trace and judges the schedule, for each discipline."""
    workload, cores = trace(name), TRACES[name]
    for label, system in systems(cores):
        yield label, lambda system=system: check_schedule(workload, system, simulate(workload, system))
    for label, policy in NAMED.items():
        yield (
            label,
            lambda policy=policy: check_planned(workload, cores, policy, plan(workload, cores, policy).schedule),
        )


def main() -> int:
    """Print a line per discipline; return how many went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="seeds per discipline")
    parser.add_argument("--traces", action="store_true")
    parser.add_argument("disciplines", nargs="*", metavar="DISCIPLINE")
    chosen = parser.parse_args()
    bad = 0
    if chosen.traces:
        for name in (name for name in TRACES if (REFERENCE / f"{name}_easy.csv.gz").exists()):
            for label, judge in judgements(name):
                if label.startswith(tuple(chosen.disciplines or ("",))):
                    began = time.perf_counter()
                    found = judge()
                    seconds = time.perf_counter() - began
                    print(f"{name} {label}: {len(found)} violations, {seconds:.0f} s", *found[:1], flush=True)
                    bad += bool(found)
        return bad
    for discipline in chosen.disciplines or DISCIPLINES:
        began = time.perf_counter()
        wrong = [seed for seed in range(chosen.count) if differs(discipline, seed)]
        seconds = time.perf_counter() - began
        print(f"{discipline}: {len(wrong)} of {chosen.count} differ, {seconds:.0f} s", *wrong[:5], flush=True)
        bad += bool(wrong)
    return bad


if __name__ == "__main__":
    sys.exit(main())
