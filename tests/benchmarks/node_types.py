"""Speed with several types of nodes, against the same jobs on identical nodes, in alternating runs.

    python -m tests.benchmarks.node_types --jobs 200000
    python -m tests.benchmarks.node_types --jobs 200000 --nodes 1000 --load 1.4
    python -m tests.benchmarks.node_types --mixed

There are five types of nodes with three resources each; every job requests chunks with one or two resources. Both
levels are measured: by totals and node by node. Jobs are cut at 256 cores, so the actual load is below `--load`.

With `--mixed`: the error of totals against nodes, on the generated site of ``data/mixed`` under several loads.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from parsim import Queue, System, Workload, simulate
from parsim.model.node_types import Chunk, NodeType
from qconf.config import load as load_config
from qconf.history import clean, read
from qconf.synth.monthly import generate
from qconf.synth.stable import stable_workload

SITE = Path(__file__).parents[2] / "configs" / "mixed.yaml"


def types(nodes: int) -> list[NodeType]:
    """Return five types with `nodes` nodes in total."""
    return [
        NodeType(
            f"type{k}", nodes // 5, 32, {"memory": 128 << k, "gpus": 4 * (k % 2), "boards": k}, frozenset({f"f{k}"})
        )
        for k in range(5)
    ]


def jobs_for(nodes: int, count: int, load: float) -> Workload:
    """Return `count` jobs of parallel streams, one per hundred nodes."""
    streams = [stable_workload(100 * count // nodes, 3200, load, seed) for seed in range(nodes // 100)]
    columns = [
        np.concatenate([getattr(each, name) for each in streams]) for name in ("submit", "cores", "runtime", "walltime")
    ]
    return Workload(*(column[np.argsort(columns[0], kind="stable")] for column in columns))


def with_chunks(jobs: Workload, seed: int) -> Workload:
    """Return the jobs with requests of single-core chunks with memory, some also with GPUs or boards."""
    rng = np.random.default_rng(seed)
    cores = np.minimum(jobs.cores, 256)
    kinds = [{"memory": 2}, {"memory": 3}, {"memory": 4}, {"gpus": 1, "memory": 4}, {"boards": 1, "memory": 2}]
    kind = rng.choice(len(kinds), len(jobs), p=(0.4, 0.3, 0.2, 0.05, 0.05))
    cores = np.where(kind > 2, np.minimum(cores, 8), cores)
    distinct, number = np.unique(np.stack((cores, kind), axis=1), axis=0, return_inverse=True)
    requests = [(Chunk(int(c), 1, kinds[k]),) for c, k in distinct.tolist()]
    return Workload(jobs.submit, cores, jobs.runtime, jobs.walltime, request=number.reshape(-1), requests=requests)


def alternating(runs: Mapping[str, Callable[[], object]], repeat: int) -> dict[str, float]:
    """Run each function in turn, `repeat` rounds after one that compiles; return its least seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 + repeat):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(found[1:]) for name, found in seconds.items()}


def measure(count: int, nodes: int, load: float, repeat: int) -> None:
    """Print a row for each kind of machine."""
    jobs = with_chunks(jobs_for(nodes, count, load), 0)
    cores = 32 * nodes
    span = jobs.submit.max() - jobs.submit.min()
    share = (jobs.cores * jobs.effective_runtime).sum() / cores / span
    print(f"{len(jobs)} jobs, {nodes} nodes, load {share:.2f}\n")
    formula = "(eligible_time + walltime) / walltime ** 1.3"
    totals = System(cores, [Queue(max_run=10**6)], node_types=types(nodes))
    systems = {
        "alike": System(cores, [Queue(max_run=10**6)]),
        "of five types": totals,
        "of five types, formula": replace(totals, queues=[Queue()], order=formula),
        "of five types, each by itself": replace(totals, reserve="nodes"),
        "each by itself, formula": replace(totals, queues=[Queue()], order=formula, reserve="nodes"),
        "of five types, head jobs of queues": replace(totals, reserve="queues"),
        "each by itself, as Slurm chooses": replace(totals, reserve="queue_nodes"),
    }
    runs = {name: partial(simulate, jobs, system) for name, system in systems.items()}
    four = replace(systems["each by itself, as Slurm chooses"], queues=[Queue() for _ in range(4)])
    runs["the same, four queues"] = partial(simulate, replace(jobs, queue=np.arange(len(jobs)) % 4), four)
    seconds = alternating(runs, repeat)
    print("| nodes | seconds | jobs/s | times | mean wait, h |\n|---|---|---|---|---|")
    for name, best in seconds.items():
        wait = runs[name]().wait.mean() / 3600
        print(f"| {name} | {best:.3f} | {len(jobs) / best:,.0f} | {best / seconds['alike']:.2f} | {wait:.2f} |")


def compare(months: int, seed: int) -> None:
    """Print a row for each load of the mixed site: waits by totals, and by nodes."""
    totals = load_config(SITE)
    by_nodes = totals.replace(reserve="nodes")
    print("| load | jobs | same start | mean wait by totals, h | by nodes, h | cpu | gpu | bigmem |")
    print("|---|---|---|---|---|---|---|---|")
    for load in (0.5, 0.6, 0.7, 0.8, 0.9):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "mixed.csv"
            generate("mixed", months, seed, load).to_csv(path, index=False)
            jobs = clean(read(path), by_nodes).workload(by_nodes)
        one, other = (simulate(jobs, config.system()) for config in (totals, by_nodes))
        by_queue = [
            f"{one.wait[jobs.queue == q].mean() / 3600:.2f} to {other.wait[jobs.queue == q].mean() / 3600:.2f}"
            for q in range(3)
        ]
        same = (one.start == other.start).mean()
        waits = " | ".join((f"{one.wait.mean() / 3600:.2f}", f"{other.wait.mean() / 3600:.2f}", *by_queue))
        print(f"| {load} | {len(jobs)} | {100 * same:.1f} % | {waits} |", flush=True)


def main() -> None:
    """Measure the speed, or with --mixed compare totals and nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--nodes", type=int, default=100, help="a multiple of 100")
    parser.add_argument("--load", type=float, default=0.7)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--mixed", action="store_true", help="compare totals and nodes instead")
    parser.add_argument("--months", type=int, default=6, help="of the mixed site")
    parser.add_argument("--seed", type=int, default=0, help="of the mixed site")
    chosen = parser.parse_args()
    if chosen.mixed:
        compare(chosen.months, chosen.seed)
    else:
        measure(chosen.jobs, chosen.nodes, chosen.load, chosen.repeat)


if __name__ == "__main__":
    main()
