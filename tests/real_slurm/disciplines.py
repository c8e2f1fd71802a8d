"""The disciplines of which agreement with a real Slurm is measured, on 64 nodes, with jobs of seconds."""

from __future__ import annotations

from dataclasses import dataclass

from parsim.model.node_types import Chunk
from qconf.config import NodesConfig, SiteConfig, parse
from qconf.hosts import expand

NODES = 64
_MACHINE = "machine: {name: tiny, cores: 64, cores_per_node: 1}\nreserve: queues\norder: ORDER\n"


def _machine(queues: str) -> str:
    return _MACHINE + queues


_SHARED = _MACHINE + "queues:\n  - {name: work, cores: [1, 64], walltime: [0, 4h]}\n"
_PRIORITIES = _machine("""\
queues:
  - {name: short, cores: [1, 64], walltime: [0, 1h], priority: 20}
  - {name: long, cores: [1, 64], walltime: [1h, 4h], priority: 10}
""")
_SUM = "min(eligible_time, 2592000) + (300 if walltime <= 3600 else 150 if walltime <= 7200 else 0)"
_PARTITIONED = _machine("""\
mode: partitioned
queues:
  - {name: narrow, cores: [1, 16], walltime: [0, 4h], partition: 24}
  - {name: wide, cores: [17, 40], walltime: [0, 4h], partition: 40}
""")
_HYBRID = _machine("""\
mode: hybrid
queues:
  - {name: narrow, cores: [1, 12], walltime: [0, 4h], priority: 60, partition: 16}
  - {name: wide, cores: [13, 24], walltime: [0, 4h], priority: 15, partition: 24}
pool: {cores: 24, threshold: 1, placement: pool, entry: move}
""")
_LIMITED = _machine("""\
queues:
  - {name: narrow, cores: [1, 16], walltime: [0, 4h], max_run: 4, max_user_run: 2}
  - {name: wide, cores: [17, 40], walltime: [0, 4h], max_run_cores: 48, max_user_cores: 40}
""")
#: Nodes of one core: what counts of a type together counts of its nodes too. Jobs ask for GPUs, or for none.
_TYPES = """\
machine: {name: tiny, cores: 64, cores_per_node: 1}
nodes:
  - {name: plain, count: 40, cores: 1, features: [free], hosts: "n[01-40]"}
  - {name: gpu, count: 24, cores: 1, gpus: 1, hosts: "n[41-64]"}
reserve: queues
queues:
  - {name: work, cores: [1, 24], walltime: [0, 4h]}
"""
#: Nodes of four cores that jobs have alone.
_EXCLUSIVE = """\
machine: {name: tiny, cores: 256, cores_per_node: 4}
nodes:
  - {name: plain, count: 40, cores: 4, features: [free], hosts: "n[01-40]"}
  - {name: gpu, count: 24, cores: 4, gpus: 4, hosts: "n[41-64]"}
reserve: queues
queues:
  - {name: work, cores: [1, 96], walltime: [0, 4h], exclusive: true}
"""
#: Nodes of three types that jobs share, each placed on particular ones.
_PLACED = """\
machine: {name: tiny, cores: 352, cores_per_node: 1}
nodes:
  - {name: small, count: 24, cores: 4, features: [free], hosts: "n[01-24]"}
  - {name: large, count: 24, cores: 8, features: [free], hosts: "n[25-48]"}
  - {name: gpu, count: 16, cores: 4, gpus: 4, hosts: "n[49-64]"}
reserve: queue_nodes
queues:
  - {name: work, cores: [1, 96], walltime: [0, 4h]}
"""
#: The same, those with more cores or with GPUs weighing more; tasks with a GPU each, too.
_WEIGHED = _PLACED.replace("8, f", "8, weight: 5, f").replace("gpus: 4,", "gpus: 4, weight: 9,")
#: What its jobs ask for, in words of sbatch: nodes, and of each some cores and GPUs; or cores alone.
SHAPES = ("", "", "--constraint=free", "1", "2", "3", "4", "1 --gres=gpu:1", "2 --gres=gpu:2", "1 --gres=gpu:3")
_WIDE = _SHARED.replace("cores: 64, cores_per_node: 1", "cores: 256, cores_per_node: 4").replace("[1, 64]", "[1, 256]")
DISCIPLINES = {
    "fcfs": _SHARED,
    "priorities": _PRIORITIES,
    "multifactor": _SHARED.replace("ORDER", _SUM),
    "partitioned": _PARTITIONED,
    "hybrid": _HYBRID,
    "limits": _LIMITED,
    "user_jobs": _SHARED + "throttles: [{each: user, max_eligible: 2}]\n",
    "whole_nodes": _WIDE.replace("_node: 4", "_node: 4, whole_nodes: true"),
    "shared_nodes": _WIDE,
    "types": _TYPES,
    "exclusive": _EXCLUSIVE,
    "placed": _PLACED,
    "weighed": _WEIGHED,
}
#: Mean seconds between submissions, where not 4.5.
BETWEEN = {
    "partitioned": 3.6,
    "multifactor": 6.5,
    "hybrid": 5.4,
    "limits": 4.0,
    "types": 3.0,
    "exclusive": 3.0,
    "placed": 0.7,
    "weighed": 0.7,
}
#: Steps of a cycle, in one of which jobs end, in the next are submitted; 2 unless given.
PHASES = {"hybrid": 3, "multifactor": 3}
#: First walltime and the minutes from each to the next, 1 unless given. So a job may enter the pool in the third step.
MINUTES = {"hybrid": (4, 12)}


@dataclass(frozen=True)
class Site:
    """A discipline on its machine."""

    discipline: str
    config: SiteConfig

    @classmethod
    def of(cls, discipline: str) -> Site:
        """Return the site that measures a discipline."""
        return cls(discipline, parse(DISCIPLINES[discipline].replace("ORDER", "fcfs")))

    @property
    def nodes(self) -> dict[str, int]:
        """Cores of the nodes, by name."""
        size = {name: each.cores for name, each in self.types.items()}
        names = [f"n{number:02}" for number in range(1, NODES + 1)]
        return {name: size.get(name, self.config.machine.cores_per_node) for name in names}

    @property
    def types(self) -> dict[str, NodesConfig]:
        """The type of each node, by name; none where all are alike."""
        return {name: each for each in self.config.nodes for name in expand(each.hosts or "")}

    @property
    def wants(self) -> tuple[str, ...]:
        """What jobs may want beside cores, in words of sbatch: all GPUs of a node; or nodes, of each so much."""
        if self.config.reserve == "queue_nodes":
            return SHAPES if self.discipline == "placed" else (*SHAPES, "--gpus-per-task=1")
        return (f"--gres=gpu:{max(each.gpus for each in self.config.nodes)}", "--constraint=free")

    def words(self, wanted: str, cores: int) -> tuple[str, int]:
        """Return the words of sbatch for a job of about so many cores, and its cores."""
        each, _, more = wanted.partition(" ")
        if each.startswith("--gpus-per-task"):
            return wanted, min(cores, 24)
        if not each.isdecimal():
            return wanted, cores
        nodes = min(max(1, cores // int(each)), 6 if more else 12)
        return f"--nodes={nodes} --ntasks-per-node={each} {more}".rstrip(), nodes * int(each)

    def request(self, words: str, cores: int) -> tuple[Chunk, ...] | None:
        """Return the chunks that these words of sbatch ask for; None for cores alone."""
        value = {key: of for key, _, of in (word.lstrip("-").partition("=") for word in words.split())}
        if not value:
            return None
        features = frozenset({value["constraint"]} if "constraint" in value else ())
        if "gpus-per-task" in value:
            return (Chunk(cores, 1, {"gpus": int(value["gpus-per-task"])}),)
        gpus = int(value.get("gres", "gpu:0").removeprefix("gpu:"))
        if "nodes" not in value:
            return (Chunk(cores, 1, {"gpus": min(gpus, 1)}, features),)
        return (Chunk(int(value["nodes"]), int(value["ntasks-per-node"]), {"gpus": gpus}, features, scattered=True),)

    def queue(self, cores: int, walltime: int) -> int:
        """Return the number of the queue to which a job is routed."""
        queues = enumerate(self.config.queues)
        return next(
            i for i, q in queues if q.cores[0] <= cores <= q.cores[1] and q.walltime[0] < walltime <= q.walltime[1]
        )
