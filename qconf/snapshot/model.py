"""What a batch system says of its present: jobs, cores, and what is out of service."""

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
    walltime: int  #: 0 where none is given
    submit: int
    start: int | None = None  #: of a job that runs
    held: str = ""  #: why it cannot start by itself: on hold, a dependency
    not_before: int | None = None  #: it asked to wait until then
    needs: str = ""  #: what it needs beside cores, as `qconf.history.needs` reads it
    qos: str = ""
    account: str = ""
    on: tuple[tuple[str, int], ...] = ()  #: nodes of a job that runs, and its cores there, 0 where they are not known


@dataclass(frozen=True)
class Closure:
    """Cores that are out of service, or reserved, for a while."""

    name: str
    begin: int
    end: int | None  #: None: unknown
    cores: int
    queue: str = ""  #: whose jobs run there, if any do
    node: str = ""  #: that is closed
    nodes: tuple[str, ...] = ()  #: names of those that are reserved, where they are known


@dataclass(frozen=True)
class Snapshot:
    """The present of a machine."""

    now: int
    jobs: tuple[Job, ...]
    cores: int | None = None  #: of all nodes, in service or not
    closures: tuple[Closure, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)  #: what was odd, and how often
    nodes: tuple[str, ...] = ()  #: names of all nodes, in service or not
    server: str = ""  #: of PBS, its queues and its own attributes as statements of qmgr, where they were printed
    timezone: str = "UTC"  #: of times without an offset, in the configuration too

    @property
    def running(self) -> list[Job]:
        """The jobs that run."""
        return [job for job in self.jobs if job.start is not None]


def host_names(text: str) -> tuple[str, ...]:
    """Return the names of nodes in a host list, like ``n[1-3],login``; none where it cannot be read."""
    try:
        return tuple(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return ()


def indices(text: str) -> list[int]:
    """Read the tasks of an array, like ``2-6:2,9``, with or without ``%4`` behind them; what is none is left out."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        low, _, high = part.partition("-")
        high, _, step = high.partition(":")
        if low.isdigit() and (not high or high.isdigit()):
            found += range(int(low), int(high or low) + 1, int(step) if step.isdigit() and int(step) else 1)
    return found
