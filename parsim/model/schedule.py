"""When and where each job ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.model.node_types import Demands
from parsim.model.workload import Column

NodesAt = Callable[[int], Mapping[int, Mapping[int, int]]]  #: instant -> job by row -> node -> its cores

SPANNING = -1  #: value of `Schedule.partition` for a job that runs on several partitions at once


class Interruptions(NamedTuple):
    """The k interruptions of jobs, in order of time: each begins with a preemption and ends when the job goes on.

    Attributes
    ----------
    job : ndarray(int64), shape (k,)
        Rows of the schedule.
    begin, end : ndarray(int64), shape (k,)
        Seconds.
    loses : ndarray(bool), shape (k,)
        Whether the job was requeued, and its work until then was lost.
    place : ndarray(int64), shape (k,)
        Place or node of the run before the interruption, as `Schedule.place` or `Schedule.node` has that of the last
        run; empty where nodes are alike.
    """

    job: Column
    begin: Column
    end: Column
    loses: NDArray[np.bool_]
    place: Column = np.empty(0, dtype=np.int64)


_NONE = np.empty(0, dtype=np.int64)
NO_INTERRUPTIONS = Interruptions(_NONE, _NONE, _NONE, _NONE.astype(np.bool_))


@dataclass(frozen=True, eq=False)
class Schedule:
    """When and where each job of a workload ran; columns in the workload's row order.

    A partition is a set of cores that jobs run on: a queue's own, the common pool, or the whole machine.

    Attributes
    ----------
    submit, start, end : ndarray(int64), shape (n,)
        Seconds, in the workload's time scale: the start of the first run, the end of the last. A job that waits for
        others is submitted when the last of them has ended.
    cores : ndarray(int64), shape (n,)
    partition : ndarray(int32), shape (n,)
        Index into `partition_names`, `SPANNING` for a job on several partitions.
    shares : dict of int to ndarray(int64), shape (partitions,)
        By row of a job that spans several partitions: its cores on each.
    partition_names : tuple of str
    place : ndarray(int64), shape (n,), or None
        Which of the places of `demands` each job ran on; None where all nodes are alike.
    interruptions : Interruptions
    demands : Demands or None
        The places of jobs, for metrics; None where all nodes are alike.
    node : ndarray(int64), shape (n,), or None
        Where chunks are placed on nodes, the node of each job's first chunk, -1 for none. Nodes are numbered type by
        type, partition by partition.
    nodes_at : callable, or None
        Where nodes are told apart: returns the cores on each node of the jobs that run at an instant, by row.
    """

    submit: Column
    start: Column
    end: Column
    cores: Column
    partition: NDArray[np.int32]
    shares: dict[int, Column]
    partition_names: tuple[str, ...]
    place: Column | None = None
    interruptions: Interruptions = NO_INTERRUPTIONS
    demands: Demands | None = None
    node: Column | None = None
    nodes_at: NodesAt | None = field(default=None, repr=False)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return self.start.size

    @cached_property
    def runs(self) -> tuple[Column, Column, Column]:
        """Job, begin and end of each uninterrupted run, each of shape (n + k,), by job and time."""
        stops = self.interruptions
        if not stops.job.size:
            return np.arange(len(self)), self.start, self.end
        job = np.concatenate((np.arange(len(self)), stops.job))
        begin = np.concatenate((self.start, stops.end))
        order = np.lexsort((begin, job))
        job, begin = job[order], begin[order]
        end = np.concatenate((self.end, stops.begin))
        return job, begin, end[np.lexsort((end, np.concatenate((np.arange(len(self)), stops.job))))]

    @cached_property
    def taken_by_run(self) -> Column:
        """Place of `demands` that each of `runs` took, shape (n + k,).

        Where chunks are placed on nodes, each run of a job has the place of its last run. Only runs before a requeue or
        a checkpoint may have had another.

        Raises
        ------
        ValueError
            All nodes are alike.
        """
        demands, stops, job = self.demands, self.interruptions, self.runs[0]
        if demands is None:
            raise ValueError("the schedule does not say what jobs may take of nodes")
        taken = demands.taken[job]
        if self.place is not None and stops.job.size:
            before = np.flatnonzero(job[:-1] == job[1:])  # runs that another one of the same job follows
            first = demands.first[demands.of[job[before]]]
            taken[before] = first + stops.place[np.lexsort((stops.begin, stops.job))]
        return taken

    @cached_property
    def lost(self) -> Column:
        """Seconds of each job's runs whose work was lost, shape (n,)."""
        found = np.zeros(len(self), dtype=np.int64)
        job, begin, end = self.runs
        last = np.full(len(self), np.iinfo(np.int64).min)
        stops = self.interruptions
        np.maximum.at(last, stops.job[stops.loses], stops.begin[stops.loses])
        again = end <= last[job]
        np.add.at(found, job[again], (end - begin)[again])
        return found

    @cached_property
    def preempted(self) -> Column:
        """Seconds between each job's preemptions and the runs after them, shape (n,)."""
        found = np.zeros(len(self), dtype=np.int64)
        stops = self.interruptions
        np.add.at(found, stops.job, stops.end - stops.begin)
        return found

    @cached_property
    def runtime(self) -> Column:
        """Seconds that each job ran, without `lost`; shape (n,)."""
        run: Column = self.end - self.start
        return run - self.preempted - self.lost if self.interruptions.job.size else run

    @cached_property
    def wait(self) -> Column:
        """Seconds from submit to end without `runtime`, so with `lost`; shape (n,)."""
        if not self.interruptions.job.size:
            return self.start - self.submit
        return self.end - self.submit - self.runtime

    def placement(self, job: int) -> dict[str, int]:
        """Return the partitions that a job ran on.

        Parameters
        ----------
        job : int
            Row of the schedule.

        Returns
        -------
        dict of str to int
            Cores of the job on each partition, by name, without zeros.
        """
        if self.partition[job] != SPANNING:
            return {self.partition_names[self.partition[job]]: int(self.cores[job])}
        return {name: int(n) for name, n in zip(self.partition_names, self.shares[job], strict=True) if n}
