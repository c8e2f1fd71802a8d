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
    """When jobs were preempted, in order of time, and when they went on; k of them.

    Attributes
    ----------
    job : ndarray(int64), shape (k,)
        Rows of the schedule.
    begin, end : ndarray(int64), shape (k,)
        Seconds.
    loses : ndarray(bool), shape (k,)
        Whether what the job had done was lost: it was requeued.
    place : ndarray(int64), shape (k,)
        Of the run that ended then, what `Schedule.place` or `Schedule.node` say of the last one; empty where nodes are
        alike.
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
        Seconds, in the workload's time scale; the start of its first run and the end of its last one.
    cores : ndarray(int64), shape (n,)
    partition : ndarray(int32), shape (n,)
        Index into `partition_names`, `SPANNING` for a job on several partitions.
    shares : dict of int to ndarray(int64), shape (partitions,)
        Cores on each partition, for the jobs that span several, by row.
    partition_names : tuple of str
    place : ndarray(int64), shape (n,), or None
        Which of the places of `demands` each job ran on; None where all nodes are alike.
    interruptions : Interruptions
    demands : Demands or None
        The places of jobs, for metrics; None where all nodes are alike.
    node : ndarray(int64), shape (n,), or None
        Where chunks are placed, the node of each job's first one, counted through the types of nodes, partition by
        partition; -1 for none.
    nodes_at : callable, or None
        Where nodes are told apart, what tells the cores of each that the jobs have which run at an instant, by row.
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
        """Job, begin and end of each time that a job ran without interruption, shape (n + k,)."""
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
        """Row of the amounts of `demands` that each of `runs` took, shape (n + k,).

        Where chunks are placed, all runs of a job count where it ran last: on the same nodes, but for those before a
        requeue or a checkpoint.

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
        """Seconds of each job's runs that had to be done again, shape (n,)."""
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
        """Seconds that each job was preempted, shape (n,)."""
        found = np.zeros(len(self), dtype=np.int64)
        stops = self.interruptions
        np.add.at(found, stops.job, stops.end - stops.begin)
        return found

    @cached_property
    def runtime(self) -> Column:
        """Seconds that each job ran, but for those that had to be done again; shape (n,)."""
        run: Column = self.end - self.start
        return run - self.preempted - self.lost if self.interruptions.job.size else run

    @cached_property
    def wait(self) -> Column:
        """Seconds from submit to end that a job did not run, or ran what had to be done again; shape (n,)."""
        if not self.interruptions.job.size:
            return self.start - self.submit
        return self.end - self.submit - self.runtime

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
