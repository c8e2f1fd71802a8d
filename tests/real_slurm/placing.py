"""Where a real Slurm places a job among others, and where rule "rows of nodes" does.

    python -m tests.real_slurm.placing --count 60 --seed 1

A private Slurm has 16 nodes of three types, some of which jobs use in part, with memory and, half of them, a higher
Weight. One more job is submitted, alone in the queue, and has to be on the nodes, with the cores, that the rule says.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Shape:
    """What a job asks for: the words of sbatch, and from what each number in them is drawn."""

    words: str
    count: Sequence[int]  #: tasks, or nodes
    each: Sequence[int] = (1,)  #: cores of each
    gpus: Sequence[int] = (0,)  #: of each
    memory: Sequence[int] = ()  #: of a core, or of a node; none for what a job has by default
    of_nodes: bool = False  #: whether each is on a node of its own
    exclusive: bool = False

    def drawn(self, rng: Random) -> tuple[str, tuple[Chunk]]:
        """Return a job of this shape, in words of sbatch and as chunks."""
        count, each, gpus, memory = (rng.choice(of) for of in (self.count, self.each, self.gpus, self.memory or (1,)))
        amounts = {"memory": memory if self.memory and self.of_nodes else each * memory}
        amounts |= {"gpus": gpus} if gpus else {}
        chunk = Chunk(count, each, amounts, exclusive=self.exclusive, scattered=self.of_nodes)
        return self.words.format(count=count, each=each, gpus=gpus, memory=memory), (chunk,)


_NODES = "-N {count} --ntasks-per-node={each}"
_ANY = range(1, 7)
SHAPES = {
    "tasks": Shape("-n {count}", range(1, 41)),
    "tasks of cores": Shape("-n {count} -c {each}", range(1, 9), range(2, 7)),
    "tasks with memory": Shape(
        "-n {count} -c {each} --mem-per-cpu={memory}", range(1, 17), (1, 1, 2, 3), memory=range(50, 501)
    ),
    "nodes": Shape(_NODES, _ANY, _ANY, of_nodes=True),
    "nodes with memory": Shape(f"{_NODES} --mem={{memory}}", range(1, 5), _ANY, memory=range(100, 2001), of_nodes=True),
    "GPUs of nodes": Shape(f"{_NODES} --gres=gpu:{{gpus}}", (1, 2, 3), range(1, 5), (1, 2, 3), of_nodes=True),
    "GPUs of tasks": Shape("-n {count} -c {each} --gpus-per-task={gpus}", range(1, 9), (1, 2), (1, 2)),
    "exclusive": Shape("-n {count} --exclusive", range(1, 17), exclusive=True),
    "exclusive with GPUs": Shape(
        f"{_NODES} --gres=gpu:{{gpus}} --exclusive", (1, 2), range(1, 5), (1, 2), of_nodes=True, exclusive=True
    ),
    "one node": Shape("-N{count} -n {each}", (1,), range(2, 9), of_nodes=True),
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
            wanted, request = SHAPES[shape].drawn(rng)
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
