"""A period: jobs under a base configuration, ready to be simulated; and the training set of a strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, get_args
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from parsim import UNSTARTED, Schedule, State, System, Workload, simulate
from parsim.metrics.bottleneck import Use, bottleneck, uses
from parsim.metrics.nodes import first_types
from parsim.model.node_types import CORES
from parsim.model.throttles import Whose, whose
from parsim.prepare.chunks import has_place
from qconf.config import QueueConfig, SiteConfig, route, throttled, too_wide
from qconf.errors import QconfError
from qconf.evaluation.calendar import Outage, dedicated, hourly, outages, windows
from qconf.history import History, binding_limits
from qconf.history.chunks import with_kept_cores
from qconf.history.records import MAX_TIME
from qconf.history.times import zone

DAY = 86400
#: Weights of the epochs of a training set, the oldest first (Kondameedi and Vadhiyar, CCGrid 2017, Table III).
WEIGHTS = (1 / 3, 2 / 3, 1.0)

T = TypeVar("T")
P = ParamSpec("P")
Subject = TypeVar("Subject")
#: Actual run times that each queue admits, above the first and up to the second: for studies only.
Runtimes = tuple[tuple[int, int], ...]


class NotApplicableError(QconfError):
    """Nothing can be proposed for, or measured on, these jobs; the message has the reason."""


class UnroutableError(QconfError):
    """A job fits no queue: the configuration is invalid, whatever its gain."""


class Cached(Protocol):
    """A function that `cached` wraps."""

    known: WeakKeyDictionary[Any, dict[object, Any]]  #: results by subject and the further arguments


def cached(function: Callable[Concatenate[Subject, P], T]) -> Callable[Concatenate[Subject, P], T]:
    """Cache a function's results by subject (the first argument, by identity) and further arguments (hashable).

    The results of a subject live as long as the subject.
    """
    known: WeakKeyDictionary[Subject, dict[object, T]] = WeakKeyDictionary()

    @wraps(function)
    def once(subject: Subject, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found = known.setdefault(subject, {})
        key = (args, tuple(kwargs.items()))
        if key not in found:
            found[key] = function(subject, *args, **kwargs)
        return found[key]

    once.known = known  # type: ignore[attr-defined]
    return once


def insert_result(function: Callable[..., T], subject: Any, args: tuple[object, ...], result: T) -> None:  # noqa: ANN401
    """Add a result computed elsewhere to the cache of a `cached` function."""
    once = cast("Cached", function)
    once.known.setdefault(subject, {}).setdefault((args, ()), result)


@dataclass(frozen=True, eq=False)
class Period:
    """The jobs of a stretch of time under the base configuration that routed them."""

    workload: Workload  #: ascending by submit; `queue` indexes the queues of the base configuration
    base: SiteConfig
    #: Paths of the base's limits that keep jobs out of the period. They count as fixed: without such a limit a
    #: configuration would admit jobs that are not simulated, and look better than it is.
    binding: tuple[str, ...] = ()
    #: Position of each job's user group in the base's targets, -1 for none, shape (n,); None if no job has one.
    group: NDArray[np.int64] | None = field(default=None, repr=False)
    #: Recorded starts in the workload's time scale, -1 if unknown, shape (n,); None if the log has no starts.
    started: NDArray[np.int64] | None = field(default=None, repr=False)
    #: The jobs that run when a simulation begins; None: an empty machine at the first submission.
    state: State | None = field(default=None, repr=False)
    outages: tuple[Outage, ...] = ()  #: downtimes of the base
    fills: NDArray[np.bool_] | None = field(default=None, repr=False)  #: jobs of an earlier period, shape (n,)
    epoch: int = 0  #: Unix time of second 0
    timezone: str = "UTC"  #: time zone of a configuration's hours
    #: The bottleneck of the jobs' history: utilization and users' fractions are of this resource.
    resource: str = CORES
    _workloads: dict[tuple[object, ...], Workload] = field(default_factory=dict, init=False, repr=False)
    _routed: dict[tuple[object, ...], NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, history: History, base: SiteConfig, binding: tuple[str, ...] | None = None) -> Period:
        """Take the jobs of a history that was cleaned with `base`; default for `binding`: its binding limits."""
        binding = tuple(binding_limits(history)) if binding is None else binding
        started = history.jobs["start"].to_numpy(dtype=np.int64)
        workload = history.workload(base)
        return cls(
            workload=workload,
            base=base,
            binding=binding,
            group=history.groups(base),
            started=started if (started >= 0).any() else None,
            outages=outages(base, history.epoch, history.timezone),
            epoch=history.epoch,
            timezone=history.timezone,
            resource=bottleneck(workload, base.system()).resource,
        )

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.workload)

    def is_fixed(self, path: str) -> bool:
        """Return whether no search may change `path`: the base fixes it, or it is a limit that binds."""
        return path in self.binding or self.base.is_fixed(path)

    def routed(self, config: SiteConfig, runtimes: Runtimes | None = None, lowered: tuple[str, ...] = ()) -> Workload:
        """Return the jobs with the queues that `config` routes them to.

        A job stays in the queue of its name if that still admits it. Otherwise, as through a Route queue, it goes to
        the first that admits it and whose limits and nodes let it start. Cores are compared in whole nodes if jobs have
        whole nodes. With `runtimes` queues also select by actual run time, for studies only. A job too wide for all
        queues stays in one whose limit was `lowered`, on nodes of several partitions. Raises `UnroutableError` if a job
        fits no queue.
        """
        same = config.queues is self.base.queues and config.throttles is self.base.throttles
        if runtimes is None and (same or admission_keys(config) == admission_keys(self.base)):
            return self.limited(self.workload, config)
        key = (admission_keys(config), runtimes, lowered)
        if key not in self._routed:
            self._routed[key] = self._route(config, runtimes, lowered)
        w = self.workload
        return self.limited(replace(w, queue=self._routed[key]), config)

    def limited(self, jobs: Workload, config: SiteConfig) -> Workload:
        """Return jobs in the queues of `config` with its quotas for hours, and without the cores kept for GPUs."""
        if [each.kept_per_gpu for each in config.nodes] != [each.kept_per_gpu for each in self.base.nodes]:
            jobs = self._with_kept_cores(jobs, config)
        if not config.hours:
            return jobs
        key = (jobs.queue.tobytes(), config.names, config.hours, config.nodes)
        if key not in self._workloads:
            found = hourly(jobs, config, self.epoch, zone(self.timezone))
            self._workloads[key] = replace(jobs, quotas=[*jobs.quotas, *found])
        return self._workloads[key]

    def _with_kept_cores(self, jobs: Workload, config: SiteConfig) -> Workload:
        key = ("kept", jobs.queue.tobytes(), config.nodes)
        if key not in self._workloads:
            request, of_jobs = with_kept_cores(jobs.request, jobs.cores, jobs.requests, config)
            self._workloads[key] = replace(jobs, request=request, requests=of_jobs)
        return self._workloads[key]

    def _route(self, config: SiteConfig, runtimes: Runtimes | None, lowered: tuple[str, ...]) -> NDArray[np.int64]:
        w, has_user = self.workload, self.workload.user >= 0
        position = {queue.name: i for i, queue in enumerate(config.queues)}
        same_name = [position.get(queue.name, -1) for queue in self.base.queues]
        named = np.array(same_name, dtype=np.int64)[w.queue]
        admitted = [
            queue.admits(w.cores, w.walltime, config.grid)
            & ~too_wide(config, queue, w.cores, has_user, self._names["qos"])
            for queue in config.queues
        ]
        for i, name in enumerate(config.names):
            if any(throttle.queue == name for throttle in config.throttles):
                admitted[i] &= ~throttled(config, name, w.cores, w.walltime, self._names, w.amount)
        if config.nodes:
            jobs = self._with_kept_cores(w, config)
            for i in range(len(admitted)):
                admitted[i] &= has_place(config.system(), replace(jobs, queue=np.full(len(w), i)))
        if runtimes is None:
            for old, i in zip(self.base.queues, same_name, strict=True):
                if i >= 0 and _admission_key(old) == _admission_key(config.queues[i]):
                    admitted[i] |= named == i  # an unchanged queue keeps the jobs that cleaning routed to it
        else:
            ran = w.effective_runtime
            spans = [(ran > above) & (ran <= most) for above, most in runtimes]
            admitted = [jobs & span for jobs, span in zip(admitted, spans, strict=True)]
        queue = route(named, admitted)
        if lowered and (queue < 0).any() and not config.nodes:  # no job spans partitions of nodes of several types
            wide = [q.admits(np.maximum(w.cores, q.cores[0]).clip(max=q.cores[1]), w.walltime) for q in config.queues]
            wide = [
                jobs & (q.name in lowered) & (w.cores > q.cores[1]) for q, jobs in zip(config.queues, wide, strict=True)
            ]
            queue = np.where(queue < 0, route(named, wide), queue)
        if (queue < 0).any():
            job = int(np.argmax(queue < 0))
            raise UnroutableError(
                f"{int((queue < 0).sum())} jobs fit no queue, the first has {w.cores[job]} cores, {w.walltime[job]} s"
            )
        return queue

    @cached_property
    def _names(self) -> dict[str, NDArray[np.object_]]:
        """The user, group and other owners of each job by which throttles count jobs, shape (n,) each."""
        found = {}
        for each in get_args(Whose):
            number, name = whose(self.workload, each)
            found[each] = np.array([*map(name, number.tolist())], dtype=object)
        return found

    def under(self, config: SiteConfig) -> Period:
        """Return the same jobs under another base, in the queues that it routes them to. Raises `UnroutableError`."""
        jobs = self.routed(config)
        if config.hours:  # quotas of `hours` do not belong to the jobs
            jobs = replace(self.workload, queue=jobs.queue)
        return replace(self, workload=jobs, base=config)

    def simulate(self, config: SiteConfig) -> Schedule:
        """Simulate all jobs under `config`, from the period's state or else an empty machine."""
        system = self.system(config)
        return simulate(self.routed(config), system, self.begun(system))

    def system(self, config: SiteConfig) -> System:
        """Return parsim's system for a configuration, with its shortpools as windows during these jobs."""
        return self.dedicated(config.system(), config)

    def dedicated(self, system: System, config: SiteConfig | None = None) -> System:
        """Return a system with the shortpools of a configuration (default: the base) as windows during these jobs."""
        shortpools = (self.base if config is None else config).shortpools
        if not shortpools or not len(self):
            return system
        first, last = int(self.workload.submit.min()), int(self.workload.submit.max())
        return dedicated(system, shortpools, (first, last), self.epoch, self.timezone)

    def begun(self, system: System) -> State | None:
        """Return the initial state of a simulation on this system, downtimes included; None for an empty machine."""
        state = self.state
        if not self.outages or not len(self):
            return state
        if state is None:
            state = State(int(self.workload.submit.min()), np.full(len(self), UNSTARTED))
        found = tuple(windows(self.outages, system, state.begin, self.workload.user_names))
        return replace(state, windows=found) if found else self.state

    @cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each job in means: its base queue's times its group's, shape (n,); None if all are equal."""
        weights = {target.what: target.weight or 1.0 for target in self.base.targets}
        if all(weight == 1 for weight in weights.values()):
            return None
        queues = np.array([weights.get(f"queue {name}", 1.0) for name in self.base.names])
        groups = np.array([*(weights[target.what] for target in self.base.targets), 1.0])  # the last of no group
        return queues[self.workload.queue] * (1.0 if self.group is None else groups[self.group])

    def mean(self, values: NDArray[np.float64] | NDArray[np.int64]) -> float:
        """Return the mean of a value per job, weighted by the site's weights."""
        return float(np.average(values, weights=self.weight))

    @cached_property
    def node_type(self) -> NDArray[np.int64]:
        """Position in the base's `nodes` of the first type that fits each job, shape (n,)."""
        return first_types(self.workload, self.base.system())

    @cached_property
    def use(self) -> Use:
        """The amount of the bottleneck that each job takes."""
        cores, *others = uses(self.workload, self.base.system())
        return next((each for each in others if each.resource == self.resource), cores)

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

    def between(self, start: int, end: int) -> Period:
        """Return the jobs submitted in ``[start, end)``."""
        submit = self.workload.submit
        return self.take((submit >= start) & (submit < end))

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Period:
        """Return the jobs at `rows`, in that order, to be simulated from an empty machine."""
        group = None if self.group is None else self.group[rows]
        started = None if self.started is None else self.started[rows]
        fills = None if self.fills is None else self.fills[rows]
        return replace(self, workload=self.workload.take(rows), group=group, started=started, fills=fills, state=None)

    def counted(self, start: int) -> NDArray[np.bool_]:
        """Return the mask of jobs submitted from `start` on that do not only fill the machine, shape (n,)."""
        since = self.workload.submit >= start
        return since if self.fills is None else since & ~self.fills

    def beginning(self, start: int, end: int, warmup: int) -> Period:
        """Return the jobs submitted in ``[start, end)``, and earlier ones that fill the machine.

        If the log has all starts of the `warmup` seconds before, the earlier jobs are those that ran at `start`, as the
        state, and those that waited, submitted at their recorded start: the log does not show whether they were ready
        before. Otherwise they are all jobs of these seconds, from an empty machine.
        """
        submit = self.workload.submit
        if self.started is None or (self.started[(submit >= start - warmup) & (submit < start)] < 0).any():
            return self.between(start - warmup, end)
        began = np.maximum(self.started, submit)
        earlier = (submit < start) & (self.started >= 0)
        runs = earlier & (began < start) & (began + self.workload.effective_runtime > start)
        waits = earlier & (began >= start)
        if not (runs | waits).any():
            return self.between(start, end)
        comes = np.where(waits, began, submit)
        rows = np.flatnonzero(runs | ((comes >= start) & (comes < end)))
        rows = rows[np.argsort(comes[rows], kind="stable")]
        found = self.take(rows)
        jobs = replace(found.workload, submit=comes[rows])
        begun = np.where(runs, began, UNSTARTED)[rows]
        state = fitting(jobs, begun, start, self.base.machine.cores)
        return replace(found, workload=jobs, fills=(runs | waits)[rows], state=state)

    @property
    def days(self) -> float:
        """Days from the first to the last submission."""
        submit = self.workload.submit
        return float(submit[-1] - submit[0]) / DAY if submit.size else 0.0

    def epochs(self, weights: tuple[float, ...], days: int | None = None) -> tuple[tuple[float, Period], ...]:
        """Cut into equal spans, one per weight, as pairs (weight, jobs); spans without jobs are left out.

        The spans cover the period. With `days` each has that length, and the last ends with the last submission.
        """
        if not len(self):
            return ()
        submit = self.workload.submit
        end = int(submit[-1]) + 1
        begin = int(submit[0]) if days is None else end - days * DAY * len(weights)
        edges = np.linspace(begin, end, len(weights) + 1)
        which = np.searchsorted(edges, submit, side="right") - 1
        return tuple((weight, self.take(which == e)) for e, weight in enumerate(weights) if (which == e).any())


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The data that a strategy is trained on: a period, cut into weighted epochs, and the periods before it."""

    period: Period
    #: Earlier periods under the same base, the oldest first: `auto` compares orders on them too.
    earlier: tuple[Period, ...] = field(default=(), repr=False)
    weights: tuple[float, ...] = WEIGHTS  #: of the epochs, equal spans of time, the oldest first
    epoch_days: int | None = None  #: of each epoch; None: the epochs cover the period
    #: The period with all known jobs before it, for epochs that begin earlier; None if there are none.
    known: Period | None = field(default=None, repr=False)
    site: SiteConfig | None = field(default=None, repr=False)  #: the site's configuration, if not the base

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.period)

    @property
    def workload(self) -> Workload:
        """The jobs of the period."""
        return self.period.workload

    @property
    def base(self) -> SiteConfig:
        """The configuration that routed the jobs."""
        return self.period.base

    @cached_property
    def epochs(self) -> tuple[tuple[float, Period], ...]:
        """(weight, jobs) of each epoch that has jobs."""
        return self.period.epochs(self.weights, self.epoch_days)

    def weighted_wait(self, config: SiteConfig) -> float:
        """Return the weighted sum of the epochs' mean waits under `config`, each from an empty machine; seconds."""
        return sum(weight * epoch.mean(epoch.simulate(config).wait) for weight, epoch in self.epochs)

    def under(self, config: SiteConfig) -> TrainingSet:
        """Return the same jobs under another base. Raises `UnroutableError`."""
        return self.of_each(lambda period: period.under(config))

    def of_each(self, change: Callable[[Period], Period]) -> TrainingSet:
        """Return the training set with `change` applied to each of its periods."""
        known = None if self.known is None else change(self.known)
        return replace(self, period=change(self.period), earlier=tuple(map(change, self.earlier)), known=known)

    def between(self, start: int, end: int) -> TrainingSet:
        """Return the jobs submitted in ``[start, end)``; the earlier periods stay the same."""
        known = self.known
        if known is not None:
            known = known.between(-MAX_TIME, end + self.period.epoch - known.epoch)
        return replace(self, period=self.period.between(start, end), known=known)


@cached
def in_epochs(training: TrainingSet, weights: tuple[float, ...], days: int | None) -> TrainingSet:
    """Return a training set in other epochs; with `days` each has that length, and the last ends with the set.

    A longer set loses its first days; a shorter one is extended by known jobs before it.
    """
    if days is None or not len(training):
        return replace(training, weights=weights)
    everything = training.period if training.known is None else training.known
    end = int(everything.workload.submit[-1]) + 1
    period = everything.between(end - days * DAY * len(weights), end)
    return replace(training, period=period, weights=weights, epoch_days=days)


def fitting(workload: Workload, begun: NDArray[np.int64], start: int, cores: int) -> State:
    """Return the state at `start` by the log; the last starts that exceed the machine are undone, in `begun` too."""
    running = np.flatnonzero(begun < start)
    running = running[np.argsort(begun[running], kind="stable")]
    left = cores
    for job in running.tolist():
        if workload.cores[job] <= left:
            left -= int(workload.cores[job])
        else:
            begun[job] = UNSTARTED
    return State(start, np.where(begun < start, begun, UNSTARTED))


def admission_keys(config: SiteConfig) -> tuple[object, ...]:
    """Return all values that decide which jobs the queues of a configuration admit, hashable."""
    keeps = tuple(each.kept_per_gpu for each in config.nodes)
    throttles = (each for each in config.throttles if each.queue is not None)
    return *map(_admission_key, config.queues), *keeps, *throttles, *config.owned


def _admission_key(queue: QueueConfig) -> tuple[object, ...]:
    limits = queue.max_run_cores, queue.max_user_cores
    return queue.name, queue.cores, queue.walltime, *limits, queue.nodes, queue.partition_nodes
