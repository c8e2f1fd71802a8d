"""The disciplines of which agreement with a real server is measured, on 16 nodes, with jobs of seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from parsim.model.node_types import Request
from qconf.config import NodesConfig, SiteConfig, parse
from qconf.history.chunks import of_select

NODES = 16
_KEYS = """\
held_jobs: reserve
reserve: nodes
"""
_SHARED = f"""\
machine: {{name: tiny, cores: 16, cores_per_node: 1}}
{_KEYS}order: ORDER
queues:
  - {{name: short, cores: [1, 4], walltime: [0, 20s], priority: 40}}
  - {{name: long, cores: [1, 4], walltime: [20s, 60s], priority: 80}}
  - {{name: large, cores: [5, 16], walltime: [0, 60s], priority: 100}}
"""
_EQUAL = _SHARED.replace("priority: 80", "priority: 40").replace("priority: 100", "priority: 40")
_GENERAL = "queue_priority * ncpus ** 0.5 * (1 + eligible_time / 10) / max(walltime, 1)"
_FAMILY = (
    "(1 + (eligible_time / (30 * (max(walltime, 1) / 20) ** 0.8)) ** 2.5 * (ncpus / 4) ** 1.2) / "
    "(max(walltime, 1) * ncpus ** 0.7) * queue_priority"
)
_PARTITIONED = f"""\
machine: {{name: tiny, cores: 16, cores_per_node: 1}}
{_KEYS}mode: partitioned
order: fcfs
queues:
  - {{name: small, cores: [1, 4], walltime: [0, 60s], priority: 40, partition: 6}}
  - {{name: large, cores: [5, 10], walltime: [0, 60s], priority: 80, partition: 10}}
"""
_HYBRID = f"""\
machine: {{name: tiny, cores: 16, cores_per_node: 1}}
{_KEYS}mode: hybrid
order: fcfs
queues:
  - {{name: small, cores: [1, 3], walltime: [0, 60s], priority: 40, partition: 4}}
  - {{name: large, cores: [4, 6], walltime: [0, 60s], priority: 80, partition: 6}}
pool: {{cores: 6, entry: move, threshold: 20}}
"""
_ADVANCE = f"""\
machine: {{name: tiny, cores: 16, cores_per_node: 1}}
{_KEYS}mode: partitioned
order: fcfs
queues:
  - {{name: small, cores: [1, 4], walltime: [0, 60s], priority: 40, partition: 6}}
  - {{name: medium, cores: [5, 10], walltime: [0, 60s], priority: 80, partition: 10}}
  - {{name: large, cores: [11, 16], walltime: [0, 60s], priority: 100, reservation: true}}
"""

#: Memory and GPUs are scheduled too; jobs ask for chunks of several shapes.
_TYPES = """\
machine: {name: tiny, cores: 64, cores_per_node: 4}
nodes:
  - {name: plain, count: 8, cores: 4, memory: 8gb}
  - {name: gpu, count: 4, cores: 4, memory: 16gb, gpus: 2}
  - {name: fat, count: 4, cores: 4, memory: 64gb}
reserve: nodes
order: fcfs
queues:
  - {name: work, cores: [1, 32], walltime: [0, 60s]}
"""
#: What jobs on nodes of several types ask for, of a number of chunks.
SHAPES = (
    "{}:ncpus=1:mem=1gb",
    "{}:ncpus=2:mem=3gb",
    "{}:ncpus=1:mem=6gb",
    "{}:ncpus=1:ngpus=1:mem=4gb",
    "1:ncpus=4:mem=40gb",
    "1:ncpus=2:ngpus=2:mem=8gb+{}:ncpus=1:mem=2gb",
)

#: How they ask for them to be placed where some are given whole, and are counted by each node.
PLACES = ("free", "scatter", "excl", "free", "free", "scatter:excl")


def _limited(text: str) -> str:
    text = text.replace("priority: 40}", "priority: 40, max_run: 4, max_user_run: 2}")
    text = text.replace("priority: 80}", "priority: 80, max_run_cores: 8}")
    return text.replace("priority: 100}", "priority: 100, max_user_cores: 16}")


def _starving(text: str) -> str:
    return text.replace("priority: 40}", "priority: 40, starvation: 30s}").replace(
        "priority: 80}", "priority: 80, starvation: 45s}"
    )


def _wide(text: str) -> str:
    text = text.replace("cores: 16, cores_per_node: 1", "cores: 64, cores_per_node: 4")
    return text.replace("[1, 4]", "[1, 16]").replace("[5, 16]", "[17, 64]")


DISCIPLINES = {
    "fcfs": _EQUAL.replace("ORDER", "fcfs"),
    "lxf": _EQUAL.replace("ORDER", "lxf"),
    "general": _SHARED.replace("ORDER", f'"{_GENERAL}"'),
    "family": _SHARED.replace("ORDER", f'"{_FAMILY}"'),
    "reserve_after": _EQUAL.replace("ORDER", "lxf") + "reserve_after: 10s\n",
    "limits": _limited(_SHARED.replace("ORDER", "fcfs")),
    "starvation": _starving(_SHARED.replace("ORDER", "fcfs")),
    "wfp3": _starving(_SHARED.replace("ORDER", "wfp3")),
    "partitioned": _PARTITIONED,
    "partitioned_limits": _PARTITIONED.replace("priority: 40", "priority: 40, max_run: 3, max_user_run: 2").replace(
        "priority: 80", "priority: 80, max_user_run: 1"
    ),
    "hybrid": _HYBRID,
    "combined": _HYBRID.replace("entry: move", "entry: move, placement: combined"),
    "shared_nodes": _wide(_EQUAL.replace("ORDER", "fcfs")),
    "whole_nodes": _wide(_EQUAL.replace("ORDER", "fcfs")).replace("_node: 4", "_node: 4, whole_nodes: true"),
    "advance": _ADVANCE,
    "types": _TYPES,
    "exclusive": _TYPES.replace("memory: 64gb}", "memory: 64gb, exclusive: true}"),
}


@dataclass(frozen=True)
class Site:
    """A discipline on its machine."""

    discipline: str
    config: SiteConfig

    @classmethod
    def of(cls, discipline: str, *, keys: bool = True, scale: int = 1) -> Site:
        """Return the site that measures a discipline, with or without the keys of the top job.

        Walltimes and starvation periods are `scale` times as long.
        """
        text = re.sub(r"\b(\d+)s\b", lambda found: f"{scale * int(found[1])}s", DISCIPLINES[discipline])
        return cls(discipline, parse(text if keys else text.replace(_KEYS, "")))

    @property
    def cores_per_node(self) -> int:
        """Cores of each node."""
        return self.config.machine.cores_per_node

    @property
    def nodes(self) -> dict[str, int]:
        """Cores of the nodes, by name."""
        return {f"n{number:02}": self.cores_per_node for number in range(1, NODES + 1)}

    @property
    def attributes(self) -> dict[str, dict[str, str]]:
        """More of each node, where they are of several types: each is a host of its own, with its memory."""
        if not self.config.nodes:
            return {}
        found = {"pbshost": {"resources_available.mem": "0"}}
        for name, each in self.types.items():
            found[name] = {"resources_available.host": name, "resources_available.mem": f"{each.memory}mb"}
            found[name] |= {"sharing": "default_excl"} if each.exclusive else {}
        return found

    @property
    def types(self) -> dict[str, NodesConfig]:
        """The type of each node, by name; none where all are alike."""
        return dict(zip(self.nodes, [each for each in self.config.nodes for _ in range(each.count)], strict=False))

    def select(self, cores: int, shape: int = -1) -> str:
        """Return the chunks in which a job asks for its cores: of one core where nodes are shared.

        On nodes of several types `cores` are chunks of a shape.
        """
        if shape >= 0:
            return SHAPES[shape].format(cores)
        if not self.config.machine.whole_nodes:
            return f"{cores}:ncpus=1"
        whole, rest = divmod(cores, self.cores_per_node)
        chunks = ([f"{whole}:ncpus={self.cores_per_node}"] if whole else []) + ([f"1:ncpus={rest}"] if rest else [])
        return "+".join(chunks)

    def place(self, shape: int = -1) -> str:
        """Return how a job asks for its chunks to be placed."""
        return PLACES[shape] if shape >= 0 and any(each.exclusive for each in self.config.nodes) else "free"

    def request(self, cores: int, shape: int) -> Request:
        """Return those chunks as the simulator has them."""
        return of_select(self.select(cores, shape), self.place(shape)) if shape >= 0 else ()

    def taken(self, cores: int) -> int:
        """Return the cores that a job takes of the machine."""
        grid = self.config.grid
        return -(-cores // grid) * grid
