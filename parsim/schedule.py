"""When and where each job ran."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from parsim.workload import Column, Workload

if TYPE_CHECKING:
    from parsim.explain import Reason
    from parsim.system import System

SPREAD = -1  #: value of `Schedule.part` for a job that runs on several parts at once


@dataclass(frozen=True, eq=False)
class Schedule:
    """What the simulator decided; columns are aligned with the workload, in its row order.

    Attributes
    ----------
    submit, start, end : ndarray(int64), shape (n,)
        Seconds, in the workload's time scale.
    cores : ndarray(int64), shape (n,)
    part : ndarray(int32), shape (n,)
        Index into ``System.part_names``, `SPREAD` for a job on several parts.
    shares : dict of int to ndarray(int64), shape (parts,)
        Cores on each part, for the jobs that are spread.
    part_names : tuple of str
    """

    submit: Column
    start: Column
    end: Column
    cores: Column
    part: NDArray[np.int32]
    shares: dict[int, Column]
    part_names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of jobs."""
        return self.start.size

    @cached_property
    def wait(self) -> Column:
        """Seconds between submit and start, shape (n,)."""
        return self.start - self.submit

    def placement(self, job: int) -> dict[str, int]:
        """Cores of `job` on each part that it used."""
        if self.part[job] != SPREAD:
            return {self.part_names[self.part[job]]: int(self.cores[job])}
        return {name: int(n) for name, n in zip(self.part_names, self.shares[job], strict=True) if n}

    def explain(self, workload: Workload, system: System, job: int) -> tuple[Reason, ...]:
        """Tell why `job` started when it did: see `parsim.explain`."""
        from parsim.explain import explain  # noqa: PLC0415 - it is built on schedules

        return explain(workload, system, self, job)
