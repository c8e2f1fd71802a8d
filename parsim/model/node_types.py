"""Nodes of several types, and the chunks of nodes that jobs ask for, as totals of each type.

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
MEMORY = "memory"  #: the one of which a batch system knows that it is memory
GPUS = "gpus"  #: the one of which it knows that they are GPUs

MOST = 2**40  #: of a resource of one node, or of one chunk: sums over all nodes are below 2**62
MOST_NODES = 2**20
MOST_WEIGHT = 2**32 - 1  #: of a node in Slurm
MOST_OF_JOB = 2**54  #: more that a job asks for counts as that, above all limits

Amounts = tuple[tuple[str, int], ...]


def by_name(values: Mapping[str, int] | Amounts) -> Amounts:
    """Return what there is of each thing, by name, without those of which there is none."""
    return tuple(sorted((name, amount) for name, amount in dict(values).items() if amount))


class _OfANode:
    """What a node has, or a chunk takes of one."""

    __slots__ = ()
    cores: int
    resources: Mapping[str, int] | Amounts
    features: frozenset[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", by_name(self.resources))
        object.__setattr__(self, "features", frozenset(self.features))

    def amount(self, resource: str) -> int:
        """Return how much there is of a resource, by its name."""
        return self.cores if resource == CORES else dict(self.resources).get(resource, 0)


@dataclass(frozen=True, slots=True)
class NodeType(_OfANode):
    """Nodes that are alike.

    Attributes
    ----------
    name : str
    nodes : int
        How many there are.
    cores : int
        Of each node.
    resources : mapping of str to int
        What else each node has: GPUs, memory in a unit of the caller's choice, a site's own resources.
    features : frozenset of str
        What a chunk may ask a node to be.
    exclusive : bool
        Whether a job has its nodes alone (rule "exclusive nodes").
    weight : int
        Those of less weight are taken first where jobs are placed as Slurm does (rule "weight of nodes").
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
    """Parts of a node that are alike, each wholly on one node.

    Attributes
    ----------
    count : int
        How many of them.
    cores : int
        Of each; may be 0.
    resources : mapping of str to int
        What else each takes.
    features : frozenset of str
        What its node must have; one like ``a|b`` is either.
    exclusive : bool
        Whether the job has its nodes alone; so it has all of them if it is so of one of its chunks (rule "exclusive
        nodes").
    scattered : bool
        Whether each goes to a node on which no chunk of the job is before it (rule "scattered chunks").
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


Request = tuple[Chunk, ...]  #: all that a job takes


def is_exclusive(request: Request | None) -> bool:
    """Whether a job asks for nodes of its own (rule "exclusive nodes")."""
    return any(chunk.exclusive for chunk in request or ())


def is_cores_alone(request: Request | None) -> bool:
    """Whether a job asks for cores alone, wherever they are."""
    return request is None or [replace(each, count=1, exclusive=False) for each in request] == [Chunk(1, 1)]


def exclusively(request: Request | None, cores: int) -> Request:
    """Return what a job asks for that has its nodes alone; `cores`, of one that asks for cores alone."""
    return tuple(replace(chunk, exclusive=True) for chunk in request or (Chunk(cores, 1),))


def amounts(requests: Sequence[Request], resource: str) -> NDArray[np.int64]:
    """Return how much all chunks of each request take of a resource together.

    Parameters
    ----------
    requests : sequence of sequence of Chunk
    resource : str

    Returns
    -------
    ndarray(int64), shape (requests + 1,)
        The last, 0, is that of a job that asks for cores alone; at most 2**54.
    """
    of = [sum(chunk.count * chunk.amount(resource) for chunk in request) for request in requests]
    return np.array([*(min(amount, MOST_OF_JOB) for amount in of), 0], dtype=np.int64)


class Demands(NamedTuple):
    """What each of n jobs may take of nodes of several types, one of its places, and took.

    Where chunks are placed its places are what jobs that want the same took.

    Attributes
    ----------
    of : ndarray(int32), shape (n,)
        Which of the distinct demands.
    taken : ndarray(int64), shape (n,)
        The place that each job had.
    first : ndarray(int64), shape (demands + 1,)
        Where the places of each demand begin.
    amounts : ndarray(int64), shape (places, types, resources)
        What each place takes.
    resources : tuple of str
        Their names, cores first.
    there : ndarray(int64), shape (types, resources)
        What all nodes of each type have.
    partition : ndarray(int64), shape (places,), or None
        The partition that each place is on, None on a shared machine.
    owned : ndarray(int64), shape (partitions, types, resources), or None
        What the nodes of each partition have, None on a shared machine.
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
