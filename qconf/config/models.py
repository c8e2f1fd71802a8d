"""The parts of a configuration: machine, queue, pool; each field checked by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from parsim.system import LIMITS
from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config.durations import parse_duration

#: Ends the name of the PBS queue through which the jobs of another one enter the pool.
POOL_SUFFIX = "_p"


def as_tuple(value: object) -> object:
    """Let a list stand for a tuple, as it comes from YAML."""
    return tuple(value) if isinstance(value, list) else value


def _name(value: str) -> str:
    if not value.isprintable() or any(c.isspace() for c in value):
        raise ValueError("a name holds no blank, no line break and nothing invisible")
    return value


Name = Annotated[str, Field(min_length=1, max_length=64)]
Cores = Annotated[int, Field(ge=1, le=MAX_CORES)]
Share = Annotated[int, Field(ge=0, le=MAX_CORES)]
Duration = Annotated[int, BeforeValidator(parse_duration)]
Limit = Annotated[int, Field(ge=1, le=MAX_CORES)] | None


class Model(BaseModel):
    """Strict and frozen: ``"8"`` is no number, an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", revalidate_instances="always")


class MachineConfig(Model):
    """The machine; with `whole_nodes` every job and every partition takes whole nodes of `cores_per_node`."""

    name: Name = "machine"
    cores: Cores
    cores_per_node: Cores = 1
    whole_nodes: bool = False


class QueueConfig(Model):
    """A queue: who may enter (cores inclusive; walltime above the first, up to the second), what it may."""

    name: Name
    cores: tuple[int, int] = (1, MAX_CORES)
    walltime: tuple[int, int] = (0, MAX_DURATION)
    priority: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] = 1.0
    partition: Share = 0
    reservation: bool = False
    starvation: Duration | None = None
    max_run: Limit = None
    max_run_cores: Limit = None
    max_user_run: Limit = None
    max_user_cores: Limit = None

    _check_name = field_validator("name")(_name)

    @field_validator("cores", mode="before")
    @classmethod
    def _read_cores(cls, value: object) -> tuple[int, int]:
        low, high = _pair(value)
        low, high = (1 if low is None else low), (MAX_CORES if high is None else high)
        for bound in (low, high):
            if not isinstance(bound, int) or isinstance(bound, bool):
                raise ValueError(f"{bound!r} is not a whole number")  # noqa: TRY004
        if not 1 <= low <= high <= MAX_CORES:
            raise ValueError("no job can enter: the least must be at least 1 and not above the most")
        return low, high

    @field_validator("walltime", mode="before")
    @classmethod
    def _read_walltime(cls, value: object) -> tuple[int, int]:
        low, high = _pair(value)
        shortest = 0 if low is None else parse_duration(low)
        longest = MAX_DURATION if high is None else parse_duration(high)
        if shortest >= longest:
            raise ValueError("no job can enter: walltimes above the first and up to the second are let in")
        return shortest, longest

    @property
    def limited(self) -> bool:
        """Whether what runs of it, or of one of its users, is limited."""
        return any(getattr(self, name) is not None for name in LIMITS)

    def admits(self, cores: int, walltime: int | None) -> bool:
        """Tell whether a job of these cores and this walltime (None: by cores alone) may enter."""
        low, high = self.walltime
        return self.cores[0] <= cores <= self.cores[1] and (walltime is None or low < walltime <= high)


def lost_job(queues: Sequence[QueueConfig], others: Sequence[QueueConfig]) -> tuple[int, int] | None:
    """Return cores and walltime of a job that one of `queues` admits and none of `others`; None if there is none."""
    both = (*queues, *others)
    cores = sorted({edge for q in both for edge in (q.cores[0], q.cores[1] + 1)})
    walltimes = sorted({edge + 1 for q in both for edge in q.walltime})
    for c, w in product(cores, walltimes):
        if any(q.admits(c, w) for q in queues) and not any(q.admits(c, w) for q in others):
            return c, w
    return None


def _pair(value: object) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("expected two values, the least and the most")
    return value[0], value[1]


class PoolConfig(Model):
    """The common pool. Without `threshold`, tau is half the priority of the `reference` queue."""

    cores: Share = 0
    threshold: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    reference: Name | None = None
    placement: Literal["pool", "combined"] = "pool"
    entry: Literal["either", "move"] = "either"
    starving_first: bool = False
