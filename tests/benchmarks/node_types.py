"""Speed where nodes are of several types, in alternating runs beside the same jobs on nodes that are all alike.

    python -m tests.benchmarks.node_types --jobs 200000

Five types of nodes with three resources each; every job takes chunks of one or two of them.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from parsim import Queue, System, Workload, simulate
from parsim.node_types import Chunk, NodeType
from qconf.synth.stable import stable_workload
from tests.benchmarks import alternating

TYPES = [
    NodeType(f"type{k}", 20, 32, {"memory": 128 << k, "gpus": 4 * (k % 2), "boards": k}, frozenset({f"f{k}"}))
    for k in range(5)
]
CORES = sum(each.nodes * each.cores for each in TYPES)


def with_chunks(jobs: Workload, seed: int) -> Workload:
    """Let each job ask for chunks of a core, with some memory, and now and then for GPUs or a type."""
    rng = np.random.default_rng(seed)
    cores = np.minimum(jobs.cores, 256)
    kinds = [{"memory": 2}, {"memory": 3}, {"memory": 4}, {"gpus": 1, "memory": 4}, {"boards": 1, "memory": 2}]
    kind = rng.choice(len(kinds), len(jobs), p=(0.4, 0.3, 0.2, 0.05, 0.05))
    cores = np.where(kind > 2, np.minimum(cores, 8), cores)
    distinct, number = np.unique(np.stack((cores, kind), axis=1), axis=0, return_inverse=True)
    requests = [(Chunk(int(c), 1, kinds[k]),) for c, k in distinct.tolist()]
    return Workload(jobs.submit, cores, jobs.runtime, jobs.walltime, request=number.reshape(-1), requests=requests)


def main() -> None:
    """Print a row for each kind of machine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--repeat", type=int, default=5)
    chosen = parser.parse_args()
    jobs = with_chunks(stable_workload(chosen.jobs, CORES, chosen.load, 0), 0)
    formula = "(eligible_time + walltime) / walltime ** 1.3"
    systems = {
        "alike": System(CORES, [Queue(max_run=10**6)]),
        "of five types": System(CORES, [Queue(max_run=10**6)], node_types=TYPES),
        "of five types, formula": System(CORES, order=formula, node_types=TYPES),
    }
    seconds = alternating({name: partial(simulate, jobs, system) for name, system in systems.items()}, chosen.repeat)
    print("| nodes | seconds | jobs/s | times | mean wait, h |\n|---|---|---|---|---|")
    for name, best in seconds.items():
        wait = simulate(jobs, systems[name]).wait.mean() / 3600
        print(f"| {name} | {best:.3f} | {len(jobs) / best:,.0f} | {best / seconds['alike']:.2f} | {wait:.2f} |")


if __name__ == "__main__":
    main()
