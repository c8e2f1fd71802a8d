"""Where a real Slurm places a job among others, and where rule "rows of nodes" does.

    python -m tests.real_slurm.placing --count 60 --seed 1

A private Slurm has 16 nodes of three types, some of which jobs use in part, with memory and, half of them, a higher
Weight. One more job is submitted, alone in the queue, and has to be on the nodes, with the cores, that the rule says.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable
from random import Random

from parsim.model.node_types import Chunk, NodeType, Request
from parsim.model.system import Queue, System
from parsim.naive.node_types import Node, best_nodes, idle
from qconf.export.nodes import expand
from tests.servers.slurm_server import PrivateSlurm

TYPES = (
    NodeType("a", 5, 8, {"memory": 1000}),
    NodeType("heavy", 3, 8, {"memory": 3000}, weight=5),
    NodeType("b", 2, 4, {"memory": 1000}),
    NodeType("light", 2, 4, {"memory": 500}, weight=0),
    NodeType("c", 2, 8, {"gpus": 4, "memory": 1000}, weight=5),
    NodeType("d", 2, 8, {"gpus": 2, "memory": 1000}, weight=5),
)
OF_NODE = [each for each in TYPES for _ in range(each.nodes)]
NAMES = [f"n{number + 1:02}" for number in range(len(OF_NODE))]
SIZE = {name: each.cores for name, each in zip(NAMES, OF_NODE, strict=True)}
_PARTITION = """\
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=1
"""
_SBATCH = "sbatch --parsable --output=/dev/null --time=60 --wrap 'sleep 600'"

Wanted = tuple[str, tuple[Chunk]]  #: in words of sbatch, and as chunks


def _tasks(rng: Random) -> Wanted:
    cores = rng.randint(1, 40)
    return f"-n {cores}", (Chunk(cores, 1, {"memory": 1}),)


def _tasks_with_memory(rng: Random) -> Wanted:
    count, each, memory = rng.randint(1, 16), rng.choice((1, 1, 2, 3)), rng.randint(50, 500)
    return f"-n {count} -c {each} --mem-per-cpu={memory}", (Chunk(count, each, {"memory": each * memory}),)


def _tasks_of_several_cores(rng: Random) -> Wanted:
    count, each = rng.randint(1, 8), rng.randint(2, 6)
    return f"-n {count} -c {each}", (Chunk(count, each, {"memory": each}),)


def _nodes(rng: Random) -> Wanted:
    count, each = rng.randint(1, 6), rng.randint(1, 6)
    return f"-N {count} --ntasks-per-node={each}", (Chunk(count, each, {"memory": each}, scattered=True),)


def _nodes_with_memory(rng: Random) -> Wanted:
    count, each, memory = rng.randint(1, 4), rng.randint(1, 6), rng.randint(100, 2000)
    words = f"-N {count} --ntasks-per-node={each} --mem={memory}"
    return words, (Chunk(count, each, {"memory": memory}, scattered=True),)


def _gpus(rng: Random) -> Wanted:
    count, each, gpus = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 3)
    chunk = Chunk(count, each, {"gpus": gpus, "memory": each}, scattered=True)
    return f"-N {count} --ntasks-per-node={each} --gres=gpu:{gpus}", (chunk,)


def _gpus_of_tasks(rng: Random) -> Wanted:
    count, each, gpus = rng.randint(1, 8), rng.randint(1, 2), rng.randint(1, 2)
    words = f"-n {count} -c {each} --gpus-per-task={gpus}"
    return words, (Chunk(count, each, {"gpus": gpus, "memory": each}),)


def _exclusive(rng: Random) -> Wanted:
    cores = rng.randint(1, 16)
    return f"-n {cores} --exclusive", (Chunk(cores, 1, {"memory": 1}, exclusive=True),)


def _exclusive_gpus(rng: Random) -> Wanted:
    count, each, gpus = rng.randint(1, 2), rng.randint(1, 4), rng.randint(1, 2)
    chunk = Chunk(count, each, {"gpus": gpus, "memory": each}, exclusive=True, scattered=True)
    return f"-N {count} --ntasks-per-node={each} --gres=gpu:{gpus} --exclusive", (chunk,)


def _one_node(rng: Random) -> Wanted:
    cores = rng.randint(2, 8)
    return f"-N1 -n {cores}", (Chunk(1, cores, {"memory": cores}, scattered=True),)


SHAPES: dict[str, Callable[[Random], Wanted]] = {
    "tasks": _tasks,
    "tasks of cores": _tasks_of_several_cores,
    "tasks with memory": _tasks_with_memory,
    "nodes": _nodes,
    "nodes with memory": _nodes_with_memory,
    "GPUs of nodes": _gpus,
    "GPUs of tasks": _gpus_of_tasks,
    "exclusive": _exclusive,
    "exclusive with GPUs": _exclusive_gpus,
    "one node": _one_node,
}


def others(rng: Random, left: list[Node]) -> list[str]:
    """Return commands that submit jobs which use some of the nodes, and take that from what is left."""
    commands = []
    for node, name in zip(left, NAMES, strict=True):
        if rng.random() < 0.75:
            cores, gpus = rng.randint(1, SIZE[name]), rng.randint(0, node.get("gpus", 0)) if rng.random() < 0.7 else 0
            memory = rng.choice((cores, rng.randint(1, node["memory"])))
            gres = f" --gres=gpu:{gpus}" if gpus else ""
            commands.append(f"{_SBATCH} -N1 -n {cores} --mem={memory} -w {name}{gres}")
            node.update({"cores": node["cores"] - cores, "memory": node["memory"] - memory, "no job": 0})
            node.update({"gpus": node["gpus"] - gpus} if gpus else {})
    return commands


def by_rule(system: System, request: Request, left: list[Node]) -> dict[str, int]:
    """Return the cores on each node; none where the job has to wait."""
    on = best_nodes(system, 0, request, 0, left)
    each, whole = request[0].cores, request[0].exclusive
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
    """Print each case that differs, and how many do not, by what jobs ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shape", action="append", choices=SHAPES, help="all, unless one is named")
    options = parser.parse_args()
    rng, same, all_of = Random(options.seed), Counter[str](), Counter[str]()
    system = System(sum(SIZE.values()), [Queue()], node_types=TYPES, reserve="queue_nodes")
    gpus = {name: each.amount("gpus") for name, each in zip(NAMES, OF_NODE, strict=True) if each.amount("gpus")}
    words = {
        name: f"RealMemory={each.amount('memory')} Weight={each.weight}"
        for name, each in zip(NAMES, OF_NODE, strict=True)
    }
    with PrivateSlurm(SIZE, _PARTITION, accounting=False, gpus=gpus, words=words) as server:
        for _ in range(options.count):
            left = idle(system)
            server.run("\n".join(others(rng, left)), user="alice")
            server.wait("! squeue --noheader --states=PENDING | grep .", "jobs do not start", seconds=60)
            shape = rng.choice(options.shape or [*SHAPES])
            wanted, request = SHAPES[shape](rng)
            real, simulated = really(server, wanted), by_rule(system, request, left)
            all_of[shape] += 1
            same[shape] += real == simulated
            if real != simulated:
                print(f"{wanted}: on {real}, by the rule on {simulated}, where is left", flush=True)
                print(*(f"  {name} {node}" for name, node in zip(NAMES, left, strict=True)), sep="\n", flush=True)
            server.run("scancel --user=alice")
            server.wait("! squeue --noheader | grep .", "jobs do not end", seconds=60)
    for shape, count in sorted(all_of.items()):
        print(f"{shape}: {same[shape]} of {count}")
    print(f"{same.total()} of {options.count} are placed as by the rule")


if __name__ == "__main__":
    main()
