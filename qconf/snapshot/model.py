"""What a batch system says of its present: jobs, cores, and what is out of service."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class Closure:
    """Cores that are out of service, or reserved, for a while."""

    name: str
    begin: int
    end: int | None  #: None: unknown
    cores: int
    queue: str = ""  #: whose jobs run there, if any do


@dataclass(frozen=True)
class Snapshot:
    """The present of a machine."""

    now: int
    jobs: tuple[Job, ...]
    cores: int | None = None  #: of all nodes, in service or not
    closures: tuple[Closure, ...] = ()
    warnings: Counter[str] = field(default_factory=Counter)  #: what was odd, and how often

    @property
    def running(self) -> list[Job]:
        """The jobs that run."""
        return [job for job in self.jobs if job.start is not None]
