"""Where a real Slurm places a job among others, and where rule 85 does.

    python -m tests.real_slurm.placing --count 60 --seed 1

A private Slurm has 16 nodes of three types, some of which jobs use in part. One more job is submitted, alone in the
queue, and has to be on the nodes, with the cores, that the rule says.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable
from random import Random

from parsim.node_types import Chunk, NodeType, Request
from parsim.system import Queue, System
from qconf.export.nodes import expand
from qconf.export.slurm.private_server import PrivateSlurm
from tests.naive_node_types import Node, best_nodes, idle

TYPES = (NodeType("a", 8, 8), NodeType("b", 4, 4), NodeType("c", 4, 8, {"gpus": 4}))
SIZE = {f"n{number:02}": 4 if 9 <= number <= 12 else 8 for number in range(1, 17)}
NAMES = list(SIZE)
_PARTITION = """\
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
"""
_SBATCH = "sbatch --parsable --output=/dev/null --time=60 --wrap 'sleep 600'"

Wanted = tuple[str, Request | None, int]  #: in words of sbatch, as chunks, and the cores


def _tasks(rng: Random) -> Wanted:
    cores = rng.randint(1, 40)
    return f"-n {cores}", None, cores


def _tasks_of_several_cores(rng: Random) -> Wanted:
    count, each = rng.randint(1, 8), rng.randint(2, 6)
    return f"-n {count} -c {each}", (Chunk(count, each),), count * each


def _nodes(rng: Random) -> Wanted:
    count, each = rng.randint(1, 6), rng.randint(1, 6)
    return f"-N {count} --ntasks-per-node={each}", (Chunk(count, each, scattered=True),), count * each


def _gpus(rng: Random) -> Wanted:
    count, each, gpus = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 3)
    chunk = Chunk(count, each, {"gpus": gpus}, scattered=True)
    return f"-N {count} --ntasks-per-node={each} --gres=gpu:{gpus}", (chunk,), count * each


def _exclusive(rng: Random) -> Wanted:
    cores = rng.randint(1, 16)
    return f"-n {cores} --exclusive", (Chunk(cores, 1, exclusive=True),), cores


def _one_node(rng: Random) -> Wanted:
    cores = rng.randint(2, 8)
    return f"-N1 -n {cores}", (Chunk(1, cores),), cores


SHAPES: tuple[Callable[[Random], Wanted], ...] = (
    *(_tasks, _tasks, _tasks_of_several_cores, _nodes, _gpus, _exclusive, _one_node),
)


def others(rng: Random, left: list[Node]) -> list[str]:
    """Return commands that submit jobs which use some of the nodes, and take that from what is left."""
    commands = []
    for node, name in zip(left, NAMES, strict=True):
        if rng.random() < 0.75:
            cores, gpus = rng.randint(1, SIZE[name]), rng.randint(0, 3) if "gpus" in node and rng.random() < 0.7 else 0
            gres = f" --gres=gpu:{gpus}" if gpus else ""
            commands.append(f"{_SBATCH} -N1 -n {cores} -w {name}{gres}")
            node.update({"cores": node["cores"] - cores, "no job": 0})
            node.update({"gpus": node["gpus"] - gpus} if gpus else {})
    return commands


def by_rule(system: System, wanted: Wanted, left: list[Node]) -> dict[str, int]:
    """Return the cores on each node; none where the job has to wait."""
    _, request, cores = wanted
    on = best_nodes(system, 0, request, cores, left)
    each, whole = (1, False) if request is None else (request[0].cores, request[0].exclusive)
    count = Counter(NAMES[number] for number in on if number is not None)
    return {} if None in on else {name: SIZE[name] if whole else each * copies for name, copies in count.items()}


def really(server: PrivateSlurm, words: str) -> dict[str, int]:
    """Submit a job, and return the cores that it has on each node; none if it waits for six seconds."""
    job = server.run(f"{_SBATCH} {words}", user="alice").stdout.strip()
    running = f"scontrol --details show job {job} | grep -E '^ +Nodes='"
    text = server.run(f"for try in $(seq 30); do {running} && break; sleep .2; done").stdout
    found: dict[str, int] = {}
    for nodes, cpus in re.findall(r"Nodes=(\S+) CPU_IDs=(\S+)", text):
        spans = [span.split("-") for span in cpus.split(",")]
        found |= dict.fromkeys(expand(nodes), sum(int(span[-1]) - int(span[0]) + 1 for span in spans))
    return found


def main() -> None:
    """Print each case that differs, and how many do not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, same = Random(options.seed), 0
    system = System(sum(SIZE.values()), [Queue()], node_types=TYPES, reserve="queue_nodes")
    gpus = dict.fromkeys(NAMES[12:], 4)
    with PrivateSlurm(SIZE, _PARTITION, accounting=False, gpus=gpus) as server:
        for _ in range(options.count):
            left = idle(system)
            server.run("\n".join(others(rng, left)), user="alice")
            server.wait("! squeue --noheader --states=PENDING | grep .", "jobs do not start", seconds=60)
            wanted = rng.choice(SHAPES)(rng)
            real, simulated = really(server, wanted[0]), by_rule(system, wanted, left)
            same += real == simulated
            if real != simulated:
                there = {name: node["cores"] for name, node in zip(NAMES, left, strict=True)}
                print(f"{wanted[0]}: on {real}, by the rule on {simulated}, where is idle {there}", flush=True)
            server.run("scancel --user=alice")
            server.wait("! squeue --noheader | grep .", "jobs do not end", seconds=60)
    print(f"{same} of {options.count} are placed as by the rule")


if __name__ == "__main__":
    main()
