"""Time of the first table of docs/research/dynp.md, kernels compiled: ``python -m tests.benchmarks.planning``."""

from __future__ import annotations

import gzip
import time

import numpy as np

from parsim import Workload
from parsim.planning.plan import named, plan, self_tuning
from tests.beside import REFERENCE

TRACES = {"KTH-SP2": 100, "SDSC-SP2": 128}
POLICIES = (
    named("planned-fcfs"),
    named("planned-sjf"),
    named("planned-ljf"),
    self_tuning(),
    self_tuning(when="half"),
    self_tuning("sjf-preferred"),
    self_tuning("simple"),
)


def read(name: str) -> Workload:
    with gzip.open(REFERENCE / f"{name}_easy.csv.gz", "rt") as lines:
        header = next(lines).strip().split(",")
        rows = np.array([[int(x) for x in line.split(",")] for line in lines])
    column = dict(zip(header, rows.T, strict=True))
    return Workload(column["submit"], column["cores"], column["runtime"], column["walltime"])


def main() -> None:
    if not REFERENCE.exists():
        print("needs the cleaned jobs at ../shared/reference")
        return
    workloads = {name: read(name) for name in TRACES}
    for policy in POLICIES:
        plan(workloads["KTH-SP2"].take(slice(20)), 100, policy)
    wall = cpu = 0.0
    for name, workload in workloads.items():
        for policy in POLICIES:
            best = (np.inf, np.inf)
            for _ in range(3):
                began = time.perf_counter(), time.thread_time()
                plan(workload, TRACES[name], policy)
                best = min(best, (time.perf_counter() - began[0], time.thread_time() - began[1]))
            wall, cpu = wall + best[0], cpu + best[1]
            print(f"{name:9} {policy.name:32} {best[0]:.2f} s, {len(workload) / best[0]:10.0f} jobs/s")
    print(f"all columns: {wall:.2f} s wall, {cpu:.2f} s of the processor, least of 3 runs each")


if __name__ == "__main__":
    main()
