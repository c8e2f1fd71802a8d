"""Whether a configuration is eligible at a site: violations of `fixed`, and jobs that could never start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from parsim.model.system import LIMITS
from parsim.model.throttles import RESOURCES
from parsim.model.workload import MAX_DURATION, Workload
from qconf.config import SCALARS, PoolConfig, QueueConfig, SiteConfig, ThrottleConfig, access_changes
from qconf.config.checks import kept_waiting
from qconf.config.models import Settings
from qconf.evaluation.chunks import too_many
from qconf.evaluation.period import Period


def never_start(base: SiteConfig, other: SiteConfig, jobs: Workload | None = None) -> list[str]:
    """List, in sentences, the jobs that start under the base and would never start under `other`.

    A job stays in its queue if the queue still admits it, else it may go to any queue that does. With nodes of several
    types, `jobs` (in the queues of the base) show which chunks the jobs of a queue request.
    """
    takers = _takers(base, other)
    found = []
    for queue in other.queues:
        if _too_wide(base, other, queue, takers):
            found.append(f"jobs of {queue.name} wider than {other.reach(queue)} cores would never start")
        never = kept_waiting(other, queue)
        if (
            never
            and queue.walltime[1] < MAX_DURATION
            and not any(kept_waiting(base, old) == never for old in base.queues)
        ):
            found.append(f"of {queue.name}, {never} would never start: they find no time between those of a shortpool")
    return found if jobs is None else [*found, *map(str, too_many(base, other, jobs, takers))]


def lowered(period: Period, config: SiteConfig) -> SiteConfig:
    """Return a configuration whose queues admit no jobs that are too wide to start.

    Only jobs that the base would start count. A range of cores stays if it is fixed, or if jobs of the period need it.
    """
    base, takers = period.base, _takers(period.base, config)
    most = {queue.name: config.reach(queue) for queue in config.queues if _too_wide(base, config, queue, takers)}
    most = most or {e.queue.name: e.cores(config) for e in too_many(base, config, period.workload, takers)}
    if not most:
        return config
    jobs, queues = period.routed(config), []
    for i, queue in enumerate(config.queues):
        least = max(queue.cores[0], jobs.cores[jobs.queue == i].max(initial=0))
        change = least <= most.get(queue.name, 0) < queue.cores[1] and not period.is_fixed(f"queues.{queue.name}.cores")
        queues.append(queue.model_copy(update={"cores": (queue.cores[0], most[queue.name])}) if change else queue)
    if queues == [*config.queues]:
        return config
    return lowered(period, config.with_queues(queues))  # jobs that leave a queue may be too wide for the next


_Takers = Collection[tuple[QueueConfig, QueueConfig]]


def _takers(base: SiteConfig, other: SiteConfig) -> _Takers:
    """Return the pairs (queue of the base, queue of `other` that admits some of its jobs)."""
    kept = {queue.name: queue for queue in other.queues}

    def stays(old: QueueConfig) -> bool:
        return old.name in kept and _within(old, kept[old.name])

    return [
        (old, queue)
        for queue in other.queues
        for old in base.queues
        if old.name == queue.name or (not stays(old) and _meet(old, queue))
    ]


def _too_wide(base: SiteConfig, other: SiteConfig, queue: QueueConfig, takers: _Takers) -> bool:
    """Return whether a queue of `other` admits a job that starts under the base and could never start under `other`."""
    taken = [min(base.widest(old), base.reach(old)) for old, new in takers if new is queue]
    return min(other.widest(queue), max(taken, default=0)) > other.reach(queue)


def fixed_violations(base: SiteConfig, other: SiteConfig, binding: Collection[str] = ()) -> list[str]:
    """List the paths that `other` changes although they are ``fixed`` in the base or among the `binding` limits.

    A field of a removed queue is unchanged if every queue that admits its jobs has the same value. A second queue for
    the same jobs changes a limit, since each queue counts its own jobs. A field that loses its effect is changed too: a
    partition when the machine becomes shared, a priority that the order does not read. Always fixed are: access to the
    queues that a job can go to, QOS, reservations for queues, and throttles. The exception is a lower limit on a
    queue's total resources (`max_run_resources`), which a search may try.
    """
    without_effect = ("reserve_after",) if base.reservation_delay and not other.reservation_delay else ()
    found = [name for name in SCALARS if getattr(base, name) != getattr(other, name) or name in without_effect]
    found += [
        f"pool.{name}"
        for name in PoolConfig.model_fields
        if getattr(base.pool, name, None) != getattr(other.pool, name, None)
        or (base.mode == "hybrid") != (other.mode == "hybrid")
    ]
    if base.mode == other.mode == "hybrid" and base.threshold == other.threshold:  # given, or of the reference queue
        found = [path for path in found if path != "pool.threshold"]
    later = {queue.name: queue for queue in other.queues}
    for queue in base.queues:
        kept = queue.name in later
        successors = [later[queue.name]] if kept else [new for new in other.queues if _meet(queue, new)]
        second = kept and any(_adds_a_limit(base, new, queue) for new in other.queues)
        found += [
            f"queues.{queue.name}.{name.removesuffix('_nodes')}"  # a partition is cores, or nodes of each type
            for name, value in queue
            if not successors
            or (second and name in LIMITS and value is not None)
            or any(getattr(new, name) != value or _loses_effect(name, queue, base, new, other) for new in successors)
        ]
    always = [f"queues.{name}.access" for name in access_changes(base.queues, other.queues)]
    always += [f"queues.{name}.{field}" for name, field in _tier_changes(base, other)]
    found += [name for name in ("shortpools", "nodes") if getattr(base, name) != getattr(other, name)]
    always += ["qos"] if base.qos != other.qos else []
    always += ["downtime"] if any(each.queue not in {None, *other.names} for each in base.downtime) else []
    always += ["throttles"] if _unlimited(base, other) != _unlimited(base, base) and not _adds_up(base, other) else []
    found += [f"queues.{name}.{RESOURCES}" for name in other.names if _of_nodes(base, name) != _of_nodes(other, name)]
    always += [
        "throttles"
        for name in other.names
        if any(_of_nodes(other, name).get(each, most + 1) > most for each, most in _of_nodes(base, name).items())
    ]
    return list(dict.fromkeys([*always, *(path for path in found if path in binding or base.is_fixed(path))]))


def _of_nodes(config: SiteConfig, queue: str) -> Mapping[str, int]:
    """Return the limits on the total resources of a queue's running jobs, by resource."""
    return next((each.max_run_resources for each in config.throttles if each.is_of_queue(queue)), {})


def _unlimited(base: SiteConfig, other: SiteConfig) -> dict[str, ThrottleConfig]:
    """Return the throttles by their subject, without the resource limits of queues that both configurations have."""
    names = {*base.names} & {*other.names}
    found = {}
    for each in other.throttles:
        is_of_queue = any(each.is_of_queue(name) for name in names)
        rest = each.model_copy(update={RESOURCES: Settings()}) if is_of_queue else each
        if rest.limits:
            found[each.what] = rest
    return found


def _adds_up(base: SiteConfig, other: SiteConfig) -> bool:
    """Return whether only throttles of queues that were split or merged differ, with equal totals."""
    ranges = {queue.name: (queue.cores, queue.walltime) for queue in base.queues}
    same = {queue.name for queue in other.queues if ranges.get(queue.name) == (queue.cores, queue.walltime)}
    kept, total = [], []
    for config in (base, other):
        kept.append({each for each in config.throttles if each.queue is None or each.queue in same})
        sums: Counter[tuple[object, ...]] = Counter()
        for each in config.throttles:
            for kind, limit in each.limits.items() if each not in kept[-1] else ():
                sums[each.each, each.user, each.group, each.qos, kind] += limit
        total.append(sums)
    return kept[0] == kept[1] and total[0] == total[1]


def _tier_changes(base: SiteConfig, other: SiteConfig) -> list[tuple[str, str]]:
    """Return (queue, field) where a job would have another tier or another way to be preempted."""
    if not base.has_tiers and not other.has_tiers:
        return []
    found = []
    for queue in base.queues:
        stays = [new for new in other.queues if new.name == queue.name and _within(queue, new)]
        for new in stays or [new for new in other.queues if _meet(queue, new)]:
            found += [
                (queue.name, each) for each in ("tier", "preempted") if getattr(new, each) != getattr(queue, each)
            ]
    return list(dict.fromkeys(found))


def fixed_text(changed: Collection[str], names: Collection[str]) -> str:
    """Say in one clause which fixed paths are changed; a field of all queues is written ``queues.*``."""
    found = []
    for path in changed:
        field = path.rpartition(".")[2]
        every = [f"queues.{name}.{field}" for name in names]
        found.append(f"queues.*.{field}" if len(every) > 1 and {path} < set(every) <= set(changed) else path)
    paths = list(dict.fromkeys(found))
    return f"changes {', '.join(paths)}, which {'is' if len(paths) == 1 else 'are'} fixed"


#: Fields of a queue that have an effect under some configurations only.
SOMETIMES = ("partition", "priority")


def _counts(name: str, queue: QueueConfig, config: SiteConfig) -> bool:
    """Return whether a field of `SOMETIMES` has an effect on a queue under a configuration."""
    if name == "partition":
        return config.mode != "shared"
    by_submission = queue.reservation and config.mode != "shared"  # in any order
    return config.uses_priority or by_submission


def _loses_effect(name: str, queue: QueueConfig, base: SiteConfig, new: QueueConfig, other: SiteConfig) -> bool:
    """Return whether a field has an effect in the base and none in `other`."""
    given = name in SOMETIMES and bool(getattr(queue, name))
    return given and _counts(name, queue, base) and not _counts(name, new, other)


def _adds_a_limit(base: SiteConfig, successor: QueueConfig, queue: QueueConfig) -> bool:
    """Return whether a new queue takes jobs of a base queue that no other base queue admits."""
    if successor.name in base.names or not _meet(queue, successor):
        return False
    return not any(old.name != queue.name and _within(successor, old) for old in base.queues)


def _within(inner: QueueConfig, outer: QueueConfig) -> bool:
    """Return whether `outer` admits all jobs that `inner` admits."""
    cores = outer.cores[0] <= inner.cores[0] and inner.cores[1] <= outer.cores[1]
    return cores and outer.walltime[0] <= inner.walltime[0] and inner.walltime[1] <= outer.walltime[1]


def _meet(a: QueueConfig, b: QueueConfig) -> bool:
    """Return whether both queues admit some job."""
    cores = max(a.cores[0], b.cores[0]) <= min(a.cores[1], b.cores[1])
    return cores and max(a.walltime[0], b.walltime[0]) < min(a.walltime[1], b.walltime[1])
