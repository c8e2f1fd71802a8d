"""Nodes of several types, and the chunks of nodes that jobs ask for, as totals of each type.

Rules 58 to 61 of docs/reference/simulator.md.

References
----------
OpenPBS Administrator's Guide, "Resources" (chunks); Slurm, "Trackable RESources".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CORES = "cores"  #: the resource that every node has

MOST = 2**40  #: of a resource of one node, or of one chunk: sums over all nodes are below 2**62
MOST_NODES = 2**20

Amounts = tuple[tuple[str, int], ...]


def _amounts(values: Mapping[str, int] | Amounts) -> Amounts:
    """Return what there is of each resource, by name, without those of which there is none."""
    return tuple(sorted((name, amount) for name, amount in dict(values).items() if amount))


@dataclass(frozen=True, slots=True)
class NodeType:
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
    """

    name: str
    nodes: int
    cores: int
    resources: Mapping[str, int] | Amounts = ()
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", _amounts(self.resources))
        object.__setattr__(self, "features", frozenset(self.features))

    def amount(self, resource: str) -> int:
        """Return how much each node has of a resource."""
        return self.cores if resource == CORES else dict(self.resources).get(resource, 0)


@dataclass(frozen=True, slots=True)
class Chunk:
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
        What its node must have.
    """

    count: int
    cores: int
    resources: Mapping[str, int] | Amounts = ()
    features: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", _amounts(self.resources))
        object.__setattr__(self, "features", frozenset(self.features))
        amounts = (self.cores, *dict(self.resources).values())
        if self.count < 1 or min(amounts) < 0 or not any(amounts) or max(self.count, *amounts) > MOST:
            raise ValueError(f"{self} is no part of a node: a count from 1 up of something, up to 2**40 each")

    def amount(self, resource: str) -> int:
        """Return how much each takes of a resource."""
        return self.cores if resource == CORES else dict(self.resources).get(resource, 0)


Request = tuple[Chunk, ...]  #: all that a job takes


def problems(types: Sequence[NodeType], cores: int) -> Iterator[tuple[str, str]]:
    """Yield (path below the list, what is wrong with it) for everything that cannot be simulated."""
    for i, each in enumerate(types):
        if each.name in [other.name for other in types[:i]]:
            yield f"[{i}].name", f"{each.name!r} is also that of another type"
        for name, amount, most in (
            ("nodes", each.nodes, MOST_NODES),
            (CORES, each.cores, MOST),
            *((f"resources.{name}", amount, MOST) for name, amount in each.resources),
        ):
            if not isinstance(amount, int) or isinstance(amount, bool) or not 1 <= amount <= most:
                yield f"[{i}].{name}", f"{amount!r} is no whole number from 1 to {most}"
        if any(name == CORES for name, _ in each.resources):
            yield f"[{i}].resources", "cores have a place of their own"
    if types and all(isinstance(each.nodes, int) and isinstance(each.cores, int) for each in types):
        total = sum(each.nodes * each.cores for each in types)
        if total != cores:
            yield "", f"nodes of {total} cores, on a machine of {cores}"


def resources_of(types: Sequence[NodeType]) -> tuple[str, ...]:
    """Name what nodes of these types have, cores first."""
    return (CORES, *sorted({name for each in types for name, _ in each.resources}))


def alternatives(
    types: Sequence[NodeType], may_use: Sequence[bool], request: Request | None, cores: int
) -> NDArray[np.int64]:
    """Return what a job may take of the nodes, in the order in which it is tried (rule 58).

    Parameters
    ----------
    types : sequence of NodeType
    may_use : sequence of bool
        Whether the job's queue may use nodes of each type.
    request : Request or None
        None where the job asks for cores alone.
    cores : int
        Of the job.

    Returns
    -------
    ndarray(int64), shape (alternatives, types, resources)
        Resources as `resources_of` has them; no alternative where the job could never start.
    """
    names = resources_of(types)
    there = np.array([[each.nodes * each.amount(name) for name in names] for each in types], dtype=np.int64)
    usable = [t for t, may in enumerate(may_use) if may]
    found = [taken for t in usable if (taken := _on_one(types, there, names, t, request, cores)) is not None]
    if not found:
        spread = _spread(types, there, names, usable, request, cores)
        found = [] if spread is None else [spread]
    return np.array(found, dtype=np.int64).reshape(-1, *there.shape)


def _on_one(
    types: Sequence[NodeType],
    there: NDArray[np.int64],
    names: Sequence[str],
    t: int,
    request: Request | None,
    cores: int,
) -> NDArray[np.int64] | None:
    """Return what a job takes where all of it is on nodes of one type, None if it does not fit there."""
    taken = np.zeros_like(there)
    if request is None:
        taken[t, 0] = cores
    for chunk in request or ():
        if not _fits(types[t], chunk):
            return None
        taken[t] += [chunk.count * chunk.amount(name) for name in names]
    return taken if (taken[t] <= there[t]).all() else None


def _spread(
    types: Sequence[NodeType],
    there: NDArray[np.int64],
    names: Sequence[str],
    usable: Sequence[int],
    request: Request | None,
    cores: int,
) -> NDArray[np.int64] | None:
    """Return what a job takes of nodes of several types, None if it does not fit there."""
    taken = np.zeros_like(there)
    if request is None:
        for t in usable:
            taken[t, 0] = min(there[t, 0], cores - taken[:, 0].sum())
        return taken if taken[:, 0].sum() == cores else None
    for chunk in request:
        of_chunk = np.array([chunk.count * chunk.amount(name) for name in names], dtype=np.int64)
        on = [t for t in usable if _fits(types[t], chunk) and (taken[t] + of_chunk <= there[t]).all()]
        if not on:
            return None
        taken[on[0]] += of_chunk
    return taken


def _fits(of: NodeType, chunk: Chunk) -> bool:
    """Whether nodes of this type are what a chunk asks for, and as many of it as it asks for fit on idle ones."""
    wanted = [(CORES, chunk.cores), *dict(chunk.resources).items()]
    on_node = min(of.amount(name) // amount for name, amount in wanted if amount)
    return chunk.features <= of.features and chunk.count <= of.nodes * on_node
