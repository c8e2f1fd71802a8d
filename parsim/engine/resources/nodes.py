"""The nodes of every partition, and the cores of each that running jobs take.

Where nodes are not told apart each partition is one node. Names of rules refer to docs/reference/simulator.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.engine.simulation import step

NO_SHARE = np.int32(-1)
STRETCH = 64  #: nodes looked at together, since on a full machine few have anything idle

#: Cores that a job takes of each of `nodes` nodes from `node` on; `next` is its next share, or the next unused one.
SHARE = np.dtype([("node", np.int32), ("nodes", np.int32), ("cores", np.int32), ("next", np.int32)], align=True)


class Nodes(NamedTuple):
    """The nodes, partition by partition; V of them."""

    first_node: NDArray[np.int64]  # (P + 1,): of each partition
    idle: NDArray[np.int32]  # (V,): idle cores of each node
    first: NDArray[np.int32]  # (n,): the first share of each running job, or `NO_SHARE`
    shares: NDArray[np.void]  # SHARE
    unused: NDArray[np.int64]  # (1,): the first share not in use


@step
def add(to, cores, sign):
    """Add `cores` of each node to those of `to`, or subtract them."""
    for node in range(to.size):
        to[node] += sign * cores[node]


@step
def total(cores):
    """Return the sum of the cores of some nodes."""
    found = np.int64(0)
    for node in range(cores.size):
        found += cores[node]
    return found


@step
def take_first(most, need, taken):
    """Set the cores `taken` of each node, first nodes first, up to `most`; return how many of `need` are missing."""
    for begin in range(0, most.size, STRETCH):
        here = most[begin : begin + STRETCH]
        there = taken[begin : begin + STRETCH]
        if need >= total(here):
            for node in range(here.size):
                there[node] = here[node]
                need -= here[node]
        else:
            for node in range(here.size):
                there[node] = min(np.int64(here[node]), need)
                need -= there[node]
    return need


@step
def occupy(nodes, j, offset, taken):
    """Give job j the cores `taken` of each node from node `offset` on, until it ends."""
    last = NO_SHARE
    for begin in range(0, taken.size, STRETCH):
        if total(taken[begin : begin + STRETCH]) == 0:
            last = NO_SHARE
            continue
        for node in range(begin, min(begin + STRETCH, taken.size)):
            cores = taken[node]
            if cores == 0:
                last = NO_SHARE
                continue
            nodes.idle[offset + node] -= cores
            if last != NO_SHARE and nodes.shares[last].cores == cores:
                nodes.shares[last].nodes += 1
                continue
            last = np.int32(nodes.unused[0])
            share = nodes.shares[last]
            nodes.unused[0] = share.next
            share.node = offset + node
            share.nodes = 1
            share.cores = cores
            share.next = nodes.first[j]
            nodes.first[j] = last


@step
def occupy_node(nodes, j, node, cores):
    """Give job j cores of one node, until it ends."""
    nodes.idle[node] -= cores
    number = np.int32(nodes.unused[0])
    share = nodes.shares[number]
    nodes.unused[0] = share.next
    share.node = node
    share.nodes = 1
    share.cores = cores
    share.next = nodes.first[j]
    nodes.first[j] = number


@step
def add_shares(nodes, j, idle):
    """Add the cores of each node that job j has to `idle`."""
    number = nodes.first[j]
    while number != NO_SHARE:
        share = nodes.shares[number]
        row = idle[share.node : share.node + share.nodes]
        for node in range(row.size):
            row[node] += share.cores
        number = share.next


@step
def vacate(nodes, j):
    """Free the cores of job j, which has ended."""
    add_shares(nodes, j, nodes.idle)
    number = nodes.first[j]
    nodes.first[j] = NO_SHARE
    while number != NO_SHARE:
        following = nodes.shares[number].next
        nodes.shares[number].next = np.int32(nodes.unused[0])
        nodes.unused[0] = number
        number = following
