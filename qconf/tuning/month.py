"""What a strategy learns from: the jobs of one period under a base configuration, ready to be simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from parsim import Schedule, Workload, simulate
from qconf.config import QueueConfig, SiteConfig
from qconf.errors import QconfError

#: Of the epochs that a month is cut into, the oldest first (Kondameedi and Vadhiyar, CCGrid 2017, section IV).
WEIGHTS = (1 / 3, 2 / 3, 1.0)

T = TypeVar("T")
Runtimes = tuple[
    tuple[int, int], ...
]  #: for each queue, real runtimes above the first and up to the second; study only


class UnroutableError(QconfError):
    """A configuration that cannot take every job which the base configuration takes: invalid, whatever it promises."""


@dataclass(frozen=True, eq=False)
class Month:
    """Jobs and the base configuration that routed them.

    Attributes
    ----------
    workload : Workload
        Ascending by submit; `queue` counts the base configuration's queues.
    base : SiteConfig
    weights : tuple of float
        Of its epochs, equal spans of time, the oldest first.
    earlier : tuple of Month
        Those before it under the same base, the oldest first: `auto` looks at what orders were worth there.
    """

    workload: Workload
    base: SiteConfig
    weights: tuple[float, ...] = WEIGHTS
    earlier: tuple[Month, ...] = field(default=(), repr=False)
    _routed: dict[tuple[object, ...], NDArray[np.int64]] = field(default_factory=dict, repr=False)
    _memory: dict[object, object] = field(default_factory=dict, repr=False)
    _lasting: dict[object, object] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.workload)

    def remember(self, key: object, make: Callable[[], T], *, lasting: bool = False) -> T:
        """Return what `make` gave when it was first asked for `key`: strategies build on one another's answers.

        What is `lasting` depends on the jobs and the base alone, and is still known when the month is `past`.
        """
        memory = self._lasting if lasting else self._memory
        if key not in memory:
            memory[key] = make()
        return cast("T", memory[key])

    @property
    def past(self) -> Month:
        """The same jobs as one of the months before another: only what is lasting is still known."""
        return Month(self.workload, self.base, _lasting=self._lasting)

    def routed(self, config: SiteConfig, runtimes: Runtimes | None = None) -> Workload:
        """Return the jobs with the queues that `config` routes them to.

        A job stays in the queue of its name where that still admits it; others go to the first queue in order that
        does and whose limits let it start, as a Route queue would send them. Sizes are compared in whole grid units.
        With `runtimes` a queue also looks at what a job really ran, which no scheduler can: for study only.

        Raises
        ------
        UnroutableError
            A job fits no queue.
        """
        if runtimes is None and (config.queues is self.base.queues or _doors(config) == _doors(self.base)):
            return self.workload
        key = (_doors(config), runtimes)
        if key not in self._routed:
            self._routed[key] = self._route(config, runtimes)
        w = self.workload
        return Workload(w.submit, w.cores, w.runtime, w.walltime, queue=self._routed[key], user=w.user)

    def _route(self, config: SiteConfig, runtimes: Runtimes | None) -> NDArray[np.int64]:
        w, grid = self.workload, config.grid
        queue = np.full(len(w), -1, dtype=np.int64)
        admitted = []
        for q in config.queues:
            low, high = q.cores[0], -(-q.cores[1] // grid) * grid
            may = (w.cores >= low) & (w.cores <= high) & (w.walltime > q.walltime[0]) & (w.walltime <= q.walltime[1])
            if q.max_run_cores is not None:
                may &= w.cores <= q.max_run_cores
            if q.max_user_cores is not None:
                may &= (w.cores <= q.max_user_cores) | (w.user < 0)
            admitted.append(may)
        if runtimes is not None:
            ran = w.effective_runtime
            admitted = [
                may & (ran > above) & (ran <= most) for may, (above, most) in zip(admitted, runtimes, strict=True)
            ]
        names = {q.name: i for i, q in enumerate(config.queues)}
        for i, old in enumerate(self.base.queues):
            if old.name in names:
                j = names[old.name]
                unchanged = runtimes is None and _door(old) == _door(config.queues[j])
                stays = (w.queue == i) if unchanged else (w.queue == i) & admitted[j]
                queue[stays] = j
        for j, may in enumerate(admitted):
            queue[(queue < 0) & may] = j
        if (queue < 0).any():
            job = int(np.argmax(queue < 0))
            raise UnroutableError(
                f"{int((queue < 0).sum())} jobs fit no queue, the first has {w.cores[job]} cores, {w.walltime[job]} s"
            )
        return queue

    def simulate(self, config: SiteConfig) -> Schedule:
        """Simulate all jobs under `config`, from an empty machine."""
        return simulate(self.routed(config), config.system())

    @cached_property
    def epochs(self) -> tuple[tuple[float, Month], ...]:
        """(weight, jobs) of equal spans of time, one for each of `weights`; spans without jobs are left out."""
        if not len(self):
            return ()
        submit = self.workload.submit
        edges = np.linspace(int(submit[0]), int(submit[-1]) + 1, len(self.weights) + 1)
        which = np.searchsorted(edges, submit, side="right") - 1
        return tuple(
            (weight, Month(self.workload.take(which == e), self.base))
            for e, weight in enumerate(self.weights)
            if (which == e).any()
        )

    def weighted_wait(self, config: SiteConfig) -> float:
        """Return the weighted sum of the epochs' mean waits under `config`, each from an empty machine; seconds."""
        return sum(weight * float(epoch.simulate(config).wait.mean()) for weight, epoch in self.epochs)

    @cached_property
    def core_seconds(self) -> NDArray[np.float64]:
        """Core-seconds of each base queue, shape (Q,)."""
        w = self.workload
        work = (w.cores * w.effective_runtime).astype(np.float64)
        return np.bincount(w.queue, work, len(self.base.queues)).astype(np.float64)

    @cached_property
    def widest(self) -> NDArray[np.int64]:
        """Cores of the widest job of each base queue, 0 without jobs, shape (Q,)."""
        out = np.zeros(len(self.base.queues), dtype=np.int64)
        np.maximum.at(out, self.workload.queue, self.workload.cores)
        return out

    def between(self, start: int, end: int) -> Month:
        """Return the jobs submitted in ``[start, end)``; the months before stay those before."""
        submit = self.workload.submit
        return Month(self.workload.take((submit >= start) & (submit < end)), self.base, self.weights, self.earlier)

    def weighing(self, weights: tuple[float, ...]) -> Month:
        """Return the same jobs, cut into epochs of these weights."""
        if weights == self.weights:
            return self
        return self.remember(("weights", weights), lambda: replace(self, weights=weights, _memory={}))


def _doors(config: SiteConfig) -> tuple[object, ...]:
    return tuple(_door(queue) for queue in config.queues)


def _door(queue: QueueConfig) -> tuple[object, ...]:
    return queue.name, queue.cores, queue.walltime, queue.max_run_cores, queue.max_user_cores
