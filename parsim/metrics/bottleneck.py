"""The bottleneck of a machine: the resource of which its jobs use the largest fraction.

Whether jobs wait for cores, GPUs, memory or whole nodes depends on the machine and its jobs alone, not on a schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.model.node_types import CORES, GPUS, MEMORY
from parsim.model.schedule import Schedule
from parsim.model.system import System
from parsim.model.workload import Workload
from parsim.prepare.columns import prepare
from parsim.prepare.node_types import lay_out, resources_of

NODES = "nodes"  #: whole nodes, and fractions of them by cores: more than the jobs' cores where nodes are exclusive
RESOURCES = (CORES, GPUS, MEMORY, NODES)  #: resources that may be the bottleneck; of equal ones the first
_EQUAL = 1e-9  # relative: sums of the same amounts in another unit

Floats = NDArray[np.float64]


class Use(NamedTuple):
    """The amounts of a resource that jobs take.

    Attributes
    ----------
    resource : str
        Of `RESOURCES`.
    there : int or float
        Amount that the machine has.
    amount : ndarray(int64 or float64), shape (n,)
        Amount that each job takes at its first place (rule "places of a job"), whatever place it runs on.
    """

    resource: str
    there: float
    amount: NDArray[np.int64] | Floats

    def work(self, workload: Workload) -> Floats:
        """Return the amount of each job times the seconds that it runs, shape (n,)."""
        found: Floats = (self.amount * workload.effective_runtime).astype(np.float64)
        return found


def uses(workload: Workload, system: System) -> Iterator[Use]:
    """Yield the amounts that jobs take of each resource that the machine has, in the order of `RESOURCES`.

    Parameters
    ----------
    workload : Workload
        Its queues are those of `system`.
    system : System

    Yields
    ------
    Use
        Only that of cores where all nodes are alike.
    """
    yield Use(CORES, system.cores, workload.cores)
    if not system.node_types or not len(workload):
        return
    names = resources_of(system.node_types)
    amounts, row = first_places(workload, system)
    for resource in RESOURCES[1:]:
        weight = _weights(system, names, resource)
        if weight.any():
            there = np.array([[each.nodes * each.amount(name) for name in names] for each in system.node_types])
            yield Use(resource, float((there * weight).sum()), np.tensordot(amounts, weight, 2)[row])


def bottleneck(workload: Workload, system: System) -> Use:
    """Return the use of the bottleneck.

    Parameters
    ----------
    workload : Workload
        Its queues are those of `system`.
    system : System

    Returns
    -------
    Use
        Of the resource with the most `Use.work` per unit that the machine has; of equal ones the first.
    """
    found = list(uses(workload, system))
    part = np.array([each.work(workload).sum() / each.there for each in found])
    return found[int(np.argmax(part >= part.max() * (1 - _EQUAL)))]


def by_run(schedule: Schedule, system: System, resource: str) -> tuple[NDArray[np.int64] | Floats, float]:
    """Return the amount of a resource that each run of a job takes, and the amount of the machine.

    Parameters
    ----------
    schedule : Schedule
        Of `system` or of a variant: with other resources of nodes, or other exclusive jobs.
    system : System
    resource : str
        Of `RESOURCES`; cores are measured if the schedule has no `Schedule.demands`.

    Returns
    -------
    amount : ndarray(int64 or float64), shape (n + k,), for k interruptions
    there : int or float
    """
    demands = schedule.demands
    if resource == CORES or demands is None:
        return schedule.cores[schedule.runs[0]], system.cores
    weight = _weights(system, demands.resources, resource)
    return np.tensordot(demands.amounts, weight, 2)[schedule.taken_by_run], float((demands.there * weight).sum())


def first_places(workload: Workload, system: System) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the amounts of all places on nodes of several types, and each job's first (rule "places of a job").

    Parameters
    ----------
    workload : Workload
        Its queues are those of `system`.
    system : System

    Returns
    -------
    amounts : ndarray(int64), shape (places + 1, types, resources)
        The last takes nothing: it stands for jobs without a place.
    row : ndarray(int64), shape (n,)
        Row of `amounts`.
    """
    prepared = prepare(workload)
    laid_out = prepared.node_types(system) or lay_out(system, prepared.workload)
    amounts = laid_out.amounts.reshape(-1, len(system.node_types), len(resources_of(system.node_types)))
    has_place = laid_out.first[:-1] < laid_out.first[1:]
    row = np.where(has_place, laid_out.first[:-1], len(amounts))
    nothing = np.zeros((1, *amounts.shape[1:]), dtype=np.int64)
    return np.concatenate((amounts, nothing)), prepared.restore(row[laid_out.of])


def _weights(system: System, names: Sequence[str], resource: str) -> Floats:
    """Return the amount of `resource` in one unit of each type's resources, shape (types, resources)."""
    found = np.zeros((len(system.node_types), len(names)))
    if resource == NODES:
        found[:, 0] = [1 / each.cores for each in system.node_types]
    elif resource in names:
        found[:, names.index(resource)] = 1.0
    return found
