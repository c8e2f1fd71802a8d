"""The data of a snapshot: jobs, cores, and closures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException


@dataclass(frozen=True)
class Job:
    """A job that runs or waits; times in Unix seconds."""

    job_id: str
    user: str
    name: str
    queue: str
    cores: int
    walltime: int  #: 0 if not given
    submit: int
    start: int | None = None  #: None for a waiting job
    held: str = ""  #: why the scheduler cannot start it: on hold, a dependency
    not_before: int | None = None  #: earliest start that the job asked for
    needs: str = ""  #: needs beside cores, in the words of `qconf.history.needs`
    qos: str = ""
    account: str = ""
    on: tuple[tuple[str, int], ...] = ()  #: a running job's nodes with its cores there, 0 if unknown


@dataclass(frozen=True)
class Closure:
    """Cores that are out of service, or reserved, for a while."""

    name: str
    begin: int
    end: int | None  #: None: unknown
    cores: int
    queue: str = ""  #: queue whose jobs may run there, empty for none
    node: str = ""  #: name of a node that is down
    nodes: tuple[str, ...] = ()  #: names of the reserved nodes, if known


@dataclass(frozen=True)
class Snapshot:
    """A machine at one instant."""

    now: int
    jobs: tuple[Job, ...]
    cores: int | None = None  #: of all nodes, in service or not; None if unknown
    closures: tuple[Closure, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)  #: each with its count
    nodes: tuple[str, ...] = ()  #: names of all nodes, in service or not
    server: str = ""  #: queues and server attributes of PBS as statements of qmgr, if printed
    timezone: str = "UTC"  #: for times without an offset, in the configuration too


def host_names(text: str) -> tuple[str, ...]:
    """Return the node names of a host list such as ``n[1-3],login``; empty if it cannot be read."""
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ()


def indices(text: str) -> list[int]:
    """Return the task numbers of an array such as ``2-6:2,9``, without a ``%4`` at the end; other parts are ignored."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        low, _, high = part.partition("-")
        high, _, step = high.partition(":")
        if low.isdigit() and (not high or high.isdigit()):
            found += range(int(low), int(high or low) + 1, int(step) if step.isdigit() and int(step) else 1)
    return found
