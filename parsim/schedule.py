"""When and where each job ran."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parsim.workload import Column

SPANNING = -1  #: value of `Schedule.partition` for a job that runs on several partitions at once


@dataclass(frozen=True, eq=False)
class Schedule:
    """When and where each job of a workload ran; columns in the workload's row order.

    A partition is a set of cores that jobs run on: a queue's own, the common pool, or the whole machine.

    Attributes
    ----------
    submit, start, end : ndarray(int64), shape (n,)
        Seconds, in the workload's time scale.
    cores : ndarray(int64), shape (n,)
    partition : ndarray(int32), shape (n,)
        Index into `partition_names`, `SPANNING` for a job on several partitions.
    shares : dict of int to ndarray(int64), shape (partitions,)
        Cores on each partition, for the jobs that span several, by row.
    partition_names : tuple of str
    place : ndarray(int64), shape (n,), or None
        Which of `parsim.places.places` each job ran on; None where all nodes are alike.
    """

    submit: Column
    start: Column
    end: Column
    cores: Column
    partition: NDArray[np.int32]
    shares: dict[int, Column]
    partition_names: tuple[str, ...]
    place: Column | None = None

    def __len__(self) -> int:
        """Return the number of jobs."""
        return self.start.size

    @cached_property
    def wait(self) -> Column:
        """Seconds between submit and start, shape (n,)."""
        return self.start - self.submit

    def placement(self, job: int) -> dict[str, int]:
        """Name the partitions that a job ran on.

        Parameters
        ----------
        job : int
            Row of the schedule.

        Returns
        -------
        dict of str to int
            Cores on each partition by its name, without those of 0.
        """
        if self.partition[job] != SPANNING:
            return {self.partition_names[self.partition[job]]: int(self.cores[job])}
        return {name: int(n) for name, n in zip(self.partition_names, self.shares[job], strict=True) if n}
