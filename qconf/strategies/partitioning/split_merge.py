"""Splits and merges of queues: the candidates of the paper's dynamic queue reconfiguration.

References
----------
Kondameedi and Vadhiyar, CCGrid 2017, section II.B.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from parsim import Workload
from parsim.model.workload import MAX_DURATION
from qconf.config import POOL_SUFFIX, QueueConfig, SiteConfig, format_duration, lost_job
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import Runtimes, TrainingSet, UnroutableError
from qconf.history.names import LONGEST_NAME
from qconf.strategies.partitioning.limits import UndividedLimitError, with_limits
from qconf.strategies.partitioning.sizes import apportion

ANY_RUNTIME = (0, MAX_DURATION)
Part = tuple[QueueConfig, tuple[int, int]]  # a queue, and the range of actual run times that it admits


@dataclass(frozen=True, eq=False)
class Layout:
    """Queues on partitions, and the split that made each queue."""

    config: SiteConfig
    origin: tuple[int, ...]  # for each queue the number of the split that made it, 0 for none
    runtimes: Runtimes | None = None  # actual run times that each queue admits, if a study splits by them

    @classmethod
    def of(cls, config: SiteConfig) -> Layout:
        """Return the layout of queues that no split has made."""
        return cls(config, (0,) * len(config.queues))

    @property
    def spans(self) -> Runtimes:
        """Actual run times that each queue admits: any, unless a study splits by them."""
        return self.runtimes or (ANY_RUNTIME,) * len(self.config.queues)

    def replaced(self, gone: tuple[int, ...], new: list[Part], origin: int, **changes: object) -> Layout:
        """Return the layout with `new` queues at the place of the first of the queues `gone` (indices).

        `changes` are of other fields of the configuration.
        """
        at = min(gone)
        queues: list[tuple[QueueConfig, int, tuple[int, int]]] = []
        for i, entry in enumerate(zip(self.config.queues, self.origin, self.spans, strict=True)):
            if i == at:
                queues += [(queue, origin, spans) for queue, spans in new]
            if i not in gone:
                queues.append(entry)
        spans = tuple(entry[2] for entry in queues)
        return Layout(
            self.config.with_queues([entry[0] for entry in queues], **changes),
            tuple(entry[1] for entry in queues),
            None if set(spans) == {ANY_RUNTIME} else spans,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A layout to try, or the reason why there is none."""

    what: str  # kind of split, or the pair to merge
    layout: Layout | None
    rule: str  # where the queue is cut: ``cores <= 240``; without a layout, the reason


def splits(
    training: TrainingSet,
    layout: Layout,
    index: int,
    split_on: str,
    number: int,
    *,
    half_first: bool = True,
    rounding: str = "remainders",
) -> Iterator[Candidate]:
    """Yield the three splits of the queue at `index`; `number` identifies this split, from 1.

    The first part keeps the queue's name and position, so that jobs that name the queue stay in it. The first split is
    by walltime, or by actual run time; jobs of exactly half the limit go to the first part, with `half_first` false to
    the second. The others halve the core-seconds and the number of jobs, by cores.
    """
    jobs = training.period.routed(layout.config, layout.runtimes)
    own = jobs.take(jobs.queue == index)
    for kind in (split_on, "cpu-hours", "jobs"):
        if not len(own):
            yield Candidate(kind, None, "no job is in it")
            continue
        if kind != split_on:
            load = own.cores * own.effective_runtime if kind == "cpu-hours" else np.ones_like(own.cores)
            parts: list[Part] | str = _by_cores(layout, index, own.cores, load)
        else:
            parts = _by_time(layout, index, split_on, int(own.walltime.max()), half_first=half_first)
        yield (
            Candidate(kind, None, parts)
            if isinstance(parts, str)
            else _placed(training, layout, (index,), parts, number, kind, rounding)
        )


def _by_cores(layout: Layout, index: int, cores: NDArray[np.int64], load: NDArray[np.int64]) -> list[Part] | str:
    """Split by cores at the size up to which the narrowest jobs have half the load; a text says why not."""
    queue = layout.config.queues[index]
    sizes, which = np.unique(cores, return_inverse=True)
    held = np.cumsum(np.bincount(which, load))
    last = int(sizes[int(np.searchsorted(held, held[-1] / 2))])
    if last >= sizes[-1]:
        return f"the jobs of {last} cores, its widest, are in the first part too: no job is left for the second"
    low, high = queue.cores
    return [
        (queue.model_copy(update={"cores": (low, last)}), layout.spans[index]),
        (_second(layout, queue).model_copy(update={"cores": (last + 1, high)}), layout.spans[index]),
    ]


def _by_time(layout: Layout, index: int, split_on: str, longest: int, *, half_first: bool) -> list[Part] | str:
    """Split at half the walltime limit; without a limit, at half the longest walltime; a text says why not."""
    queue, runtimes = layout.config.queues[index], layout.spans[index]
    above, limit = queue.walltime
    if split_on == "runtime":
        above, limit = runtimes[0], min(runtimes[1], limit)
    half = ((longest if limit == MAX_DURATION else limit) - (0 if half_first else 1)) // 2
    if not above < half < limit:
        return f"half of its limit, {format_duration(half)}, is not above its least, {format_duration(above)}"
    second = _second(layout, queue)
    if split_on == "runtime":
        return [(queue, (runtimes[0], half)), (second, (half, runtimes[1]))]
    return [
        (queue.model_copy(update={"walltime": (above, half)}), runtimes),
        (second.model_copy(update={"walltime": (half, limit)}), runtimes),
    ]


def _second(layout: Layout, queue: QueueConfig) -> QueueConfig:
    return queue.model_copy(update={"name": free_name(queue.name, layout.config.names)})


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a free name like `name` that PBS accepts, even with the suffix of a pool."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    stem = stem if stem[0].isascii() and stem[0].isalpha() else f"q{stem}"
    used = {other.lower() for other in taken}
    number = 2
    while True:
        suffix = f"-{number}"
        found = stem[: LONGEST_NAME - len(POOL_SUFFIX + suffix)] + suffix
        if found.lower() not in used:
            return found
        number += 1


def _placed(
    training: TrainingSet,
    layout: Layout,
    gone: tuple[int, ...],
    parts: list[Part],
    origin: int,
    what: str,
    rounding: str = "remainders",
) -> Candidate:
    """Replace queues by new ones, and divide their cores and running limits among these by core-seconds."""
    grid = layout.config.grid
    held = sum(layout.config.queues[i].partition for i in gone)
    nodes = held // grid
    whole = layout.replaced(gone, _with_sizes(parts, [held] + [0] * (len(parts) - 1)), origin)
    try:
        jobs = training.period.routed(whole.config, whole.runtimes)
    except UnroutableError as error:
        return Candidate(what, None, str(error))
    own = [jobs.queue == i for i in range(min(gone), min(gone) + len(parts))]
    work = np.array([_work(jobs, mask) for mask in own])
    widest = np.array([jobs.cores[mask].max(initial=0) for mask in own])
    least = -(-widest // grid)
    if not least.all():
        return Candidate(what, None, f"no job would be in {parts[int(least.argmin())][0].name}")
    if least.sum() > nodes:
        return Candidate(what, None, f"the widest jobs need {least.sum() * grid} of its {nodes * grid} cores at once")
    sized = _with_sizes(parts, [int(size) * grid for size in apportion(work, nodes, least, rounding)])
    try:
        queues, changes = with_limits(layout.config, gone, [queue for queue, _ in sized], work, widest)
    except UndividedLimitError as error:
        return Candidate(what, None, str(error))
    new = list(zip(queues, (spans for _, spans in sized), strict=True))
    done = layout.replaced(gone, new, origin, **changes)
    if why := _objection(training, layout, done):
        return Candidate(what, None, why)
    return Candidate(what, done, rule([queue for queue, _ in parts], done.runtimes))


def _with_sizes(parts: list[Part], sizes: list[int]) -> list[Part]:
    return [
        (queue.model_copy(update={"partition": size}), spans) for (queue, spans), size in zip(parts, sizes, strict=True)
    ]


def _work(jobs: Workload, mask: NDArray[np.bool_]) -> float:
    return float((jobs.cores[mask] * jobs.effective_runtime[mask]).sum())


def rule(queues: list[QueueConfig], runtimes: Runtimes | None = None) -> str:
    """Describe the jobs that the first of these queues admits, and the second, if there is one, does not."""
    first = queues[0]
    if len(queues) == 1:
        spans = " to ".join(format_duration(edge) for edge in first.walltime)
        return f"cores {first.cores[0]} to {first.cores[1]}, walltime {spans}"
    if first.cores != queues[1].cores:
        return f"cores <= {first.cores[1]}"
    if runtimes is None or first.walltime != queues[1].walltime:
        return f"walltime <= {format_duration(first.walltime[1])}"
    return "actual run time at half the limit"


def mergeable(layout: Layout, gap: int = 1) -> Iterator[tuple[int, int]]:
    """Yield pairs of queues whose ranges touch or overlap and whose access, billing and QOS are the same.

    Ranges of cores touch if at most `gap` apart. Parts of one split, and queues with reservations, are left out.
    """
    for i, j in combinations(range(len(layout.config.queues)), 2):
        a, b = layout.config.queues[i], layout.config.queues[j]
        if a.reservation or b.reservation or (layout.origin[i] and layout.origin[i] == layout.origin[j]):
            continue
        if a.access != b.access or a.billing != b.billing:
            continue  # a merged queue would admit other users, or charge differently
        if any((a.name in each.queues) != (b.name in each.queues) for each in layout.config.qos):
            continue  # jobs of one queue would get another QOS
        near = max(a.cores[0], b.cores[0]) <= min(a.cores[1], b.cores[1]) + gap
        if near and max(a.walltime[0], b.walltime[0]) <= min(a.walltime[1], b.walltime[1]):
            yield i, j


def merged(training: TrainingSet, layout: Layout, pair: tuple[int, int]) -> Candidate:
    """Merge two queues: the name of the busier, both partitions, the sum of their limits.

    The priority is the mean weighted by core-seconds; the starvation period is the shorter one.
    """
    jobs = training.period.routed(layout.config, layout.runtimes)
    queues = [layout.config.queues[i] for i in pair]
    work = [_work(jobs, jobs.queue == i) for i in pair]
    what = " + ".join(queue.name for queue in queues)
    busier = queues[0] if work[0] >= work[1] else queues[1]
    weight = work if sum(work) > 0 else [1.0, 1.0]
    priority = sum(w * queue.priority for w, queue in zip(weight, queues, strict=True)) / sum(weight)
    starvation = [queue.starvation for queue in queues if queue.starvation is not None]
    changes: dict[str, object] = {
        "cores": (min(q.cores[0] for q in queues), max(q.cores[1] for q in queues)),
        "walltime": (min(q.walltime[0] for q in queues), max(q.walltime[1] for q in queues)),
        "priority": round(priority, 6),
        "starvation": min(starvation, default=None),
    }
    spans = (min(layout.spans[i][0] for i in pair), max(layout.spans[i][1] for i in pair))
    return _placed(training, layout, pair, [(busier.model_copy(update=changes), spans)], 0, what)


def _objection(training: TrainingSet, before: Layout, layout: Layout) -> str:
    """Return a new violation of `fixed`, or a job that `layout` does not admit or never starts; empty if none."""
    old, new = (set(fixed_violations(training.base, each.config, training.period.binding)) for each in (before, layout))
    if fixed := new - old:
        return f"changes {min(fixed)}, which is fixed"
    if lost := lost_job(training.base.queues, layout.config.queues):
        return f"no queue would take {lost[0]} cores for {lost[1]} s"
    jobs = training.period.routed(layout.config, layout.runtimes)
    for i, queue in enumerate(layout.config.queues):
        widest = int(jobs.cores[jobs.queue == i].max(initial=0))
        for limit in (queue.max_run_cores, queue.max_user_cores, None if queue.reservation else queue.partition):
            if limit is not None and widest > limit:
                return f"a job of {widest} cores could not start in {queue.name}"
    return ""
