"""Types of nodes, the chunks of nodes that jobs request, and the amounts of each type that jobs take.

Rules of "types of nodes", and rules "exclusive nodes" and "scattered chunks" in docs/reference/simulator.md.

References
----------
OpenPBS Administrator's Guide, "Resources" (chunks); Slurm, "Trackable RESources".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CORES = "cores"  #: the resource that every node has
MEMORY = "memory"  #: the resource that batch systems treat as memory
GPUS = "gpus"  #: the resource that they treat as GPUs

MOST = 2**40  #: of a resource of one node, or of one chunk: sums over all nodes are below 2**62
MOST_NODES = 2**20
MOST_WEIGHT = 2**32 - 1  #: of a node in Slurm
MOST_OF_JOB = 2**54  #: larger totals of a job count as this, which is above all limits

Amounts = tuple[tuple[str, int], ...]


def by_name(values: Mapping[str, int] | Amounts) -> Amounts:
    """Return (name, amount) sorted by name, without amounts of 0."""
    return tuple(sorted((name, amount) for name, amount in dict(values).items() if amount))


class _OfANode:
    """The amounts that a node has, or that a chunk takes of one."""

    __slots__ = ()
    cores: int
    resources: Mapping[str, int] | Amounts
    features: frozenset[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", by_name(self.resources))
        object.__setattr__(self, "features", frozenset(self.features))

    def amount(self, resource: str) -> int:
        """Return the amount of a resource, by its name; 0 if it is missing."""
        return self.cores if resource == CORES else dict(self.resources).get(resource, 0)


@dataclass(frozen=True, slots=True)
class NodeType(_OfANode):
    """Nodes that are alike.

    Attributes
    ----------
    name : str
    nodes : int
        Number of nodes.
    cores : int
        Of each node.
    resources : mapping of str to int
        Other amounts of each node: GPUs, memory in a unit of the caller's choice, a site's own resources.
    features : frozenset of str
        Names that a chunk may require.
    exclusive : bool
        Whether no two jobs share a node of this type (rule "exclusive nodes").
    weight : int
        Nodes of less weight are taken first where jobs are placed as Slurm does (rule "weight of nodes").
    """

    name: str
    nodes: int
    cores: int
    resources: Mapping[str, int] | Amounts = ()
    features: frozenset[str] = frozenset()
    exclusive: bool = False
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Chunk(_OfANode):
    """`count` equal copies of a part of a node, each wholly on one node.

    Attributes
    ----------
    count : int
        Number of copies.
    cores : int
        Of each copy; may be 0.
    resources : mapping of str to int
        Other amounts that each copy takes.
    features : frozenset of str
        Features that the node must have; ``a|b`` is met by either.
    exclusive : bool
        Whether the job shares its nodes with no other job; one such chunk counts for all of a job (rule "exclusive
        nodes").
    scattered : bool
        Whether each copy needs a node without an earlier copy of the job's chunks (rule "scattered chunks").
    """

    count: int
    cores: int
    resources: Mapping[str, int] | Amounts = ()
    features: frozenset[str] = frozenset()
    exclusive: bool = False
    scattered: bool = False

    def __post_init__(self) -> None:
        _OfANode.__post_init__(self)
        takes = (self.cores, *dict(self.resources).values())
        if self.count < 1 or min(takes) < 0 or not any(takes) or max(self.count, *takes) > MOST:
            raise ValueError(f"{self} is no part of a node: a count from 1 up of something, up to 2**40 each")


def has_features(node: NodeType, chunk: Chunk) -> bool:
    """Return whether nodes of a type have the features that a chunk asks for (rule "chunks on nodes")."""
    return chunk.features <= node.features or all(
        not node.features.isdisjoint(each.split("|")) for each in chunk.features
    )


Request = tuple[Chunk, ...]  #: all chunks of a job


def is_exclusive(request: Request | None) -> bool:
    """Whether a chunk of the request is exclusive (rule "exclusive nodes")."""
    return any(chunk.exclusive for chunk in request or ())


def is_cores_alone(request: Request | None) -> bool:
    """Whether a job requests only cores, each on any node; exclusive or not."""
    return request is None or [replace(each, count=1, exclusive=False) for each in request] == [Chunk(1, 1)]


def exclusively(request: Request | None, cores: int) -> Request:
    """Return the request with exclusive chunks; for None, `cores` exclusive chunks of one core."""
    return tuple(replace(chunk, exclusive=True) for chunk in request or (Chunk(cores, 1),))


def amounts(requests: Sequence[Request], resource: str) -> NDArray[np.int64]:
    """Return the total of a resource over all chunks of each request.

    Parameters
    ----------
    requests : sequence of sequence of Chunk
    resource : str

    Returns
    -------
    ndarray(int64), shape (requests + 1,)
        At most 2**54 each; the last, 0, is of jobs that request only cores.
    """
    of = [sum(chunk.count * chunk.amount(resource) for chunk in request) for request in requests]
    return np.array([*(min(amount, MOST_OF_JOB) for amount in of), 0], dtype=np.int64)


class Demands(NamedTuple):
    """The places that each of n jobs may take on nodes of several types, and the place that it took.

    Where chunks are placed on nodes, the places of a demand are those that jobs with this demand took.

    Attributes
    ----------
    of : ndarray(int32), shape (n,)
        Number of each job's demand.
    taken : ndarray(int64), shape (n,)
        Number of the place that each job took.
    first : ndarray(int64), shape (demands + 1,)
        Places ``first[d]`` up to ``first[d + 1]`` are those of demand d.
    amounts : ndarray(int64), shape (places, types, resources)
        Amounts that each place takes.
    resources : tuple of str
        Names, cores first.
    there : ndarray(int64), shape (types, resources)
        Totals of all nodes of each type.
    partition : ndarray(int64), shape (places,), or None
        The partition of each place, None on a shared machine.
    owned : ndarray(int64), shape (partitions, types, resources), or None
        Totals of the nodes of each partition, None on a shared machine.
    """

    of: NDArray[np.int32]
    taken: NDArray[np.int64]
    first: NDArray[np.int64]
    amounts: NDArray[np.int64]
    resources: tuple[str, ...]
    there: NDArray[np.int64]
    partition: NDArray[np.int64] | None = None
    owned: NDArray[np.int64] | None = None


def problems(types: Sequence[NodeType], cores: int) -> Iterator[tuple[str, str]]:
    """Yield (path below the list, what is wrong with it) for everything that cannot be simulated."""
    for i, each in enumerate(types):
        if each.name in [other.name for other in types[:i]]:
            yield f"[{i}].name", f"{each.name!r} is also that of another type"
        for name, amount, most in (
            ("nodes", each.nodes, MOST_NODES),
            (CORES, each.cores, MOST),
            *((f"resources.{name}", amount, MOST) for name, amount in dict(each.resources).items()),
        ):
            if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount <= most:
                yield f"[{i}].{name}", f"{amount!r} is no whole number from 1 to {most}"
        if not isinstance(each.weight, int) or isinstance(each.weight, bool) or not 0 <= each.weight <= MOST_WEIGHT:
            yield f"[{i}].weight", f"{each.weight!r} is no whole number from 0 to {MOST_WEIGHT}"
        if CORES in dict(each.resources):
            yield f"[{i}].resources", "cores have a place of their own"
    if types and all(isinstance(each.nodes, int) and isinstance(each.cores, int) for each in types):
        total = sum(each.nodes * each.cores for each in types)
        if total != cores:
            yield "", f"nodes of {total} cores, on a machine of {cores}"
