"""Routing: a job goes to the queue that it names if that admits it, else to the first that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from parsim.model.qos import ALL_LIMITS
from parsim.model.throttles import MOST_WORK, RESOURCES
from qconf.config.models import AccessConfig, QueueConfig, SiteFields

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]
Texts = NDArray[np.object_]

#: Limits of a queue on the cores that run at once: a job wider than one never starts.
CORE_LIMITS = ("max_run_cores", "max_user_cores")


def route(named: Column, admitted: Sequence[Mask]) -> Column:
    """Return the index of each job's queue, -1 if none admits it, shape (J,).

    `named` is the index of the queue that each job names, -1 for none of these; `admitted` has a mask of the admitted
    jobs for each queue, in order.
    """
    queue = np.full(named.size, -1, dtype=np.int64)
    for i, jobs in enumerate(admitted):
        queue[jobs & (named == i)] = i
    for i, jobs in enumerate(admitted):
        queue[jobs & (queue < 0)] = i
    return queue


def qos_of(config: SiteFields, logged: Texts, user: Texts, account: Texts, group: Texts, queue: Texts) -> Texts:
    """Return the name of each job's QOS, empty for none, shape (J,).

    The log's QOS counts if the configuration has it, else the first QOS that lists the user, the account, the group or
    the queue, in this order. For a job without an account its group stands in.
    """
    found = np.full(logged.size, "", dtype=object)
    lists: tuple[tuple[Texts, dict[str, str]], ...] = (
        (logged, {qos.name: qos.name for qos in config.qos}),
        (user, {name: qos.name for qos in config.qos for name in qos.users}),
        (np.where(account != "", account, group), {name: qos.name for qos in config.qos for name in qos.accounts}),
        (group, {name: qos.name for qos in config.qos for name in qos.groups}),
        (queue, {name: qos.name for qos in config.qos for name in qos.queues}),
    )
    for names, of in lists:
        if of:
            found[:] = [known or of.get(name, "") for known, name in zip(found.tolist(), names.tolist(), strict=True)]
    return found


def exempt(config: SiteFields, limit: str, jobs: int, qos: Texts | None) -> Mask:
    """Mark the jobs whose QOS exempts them from limits of this name, shape (J,)."""
    names = [each.name for each in config.qos if {limit, ALL_LIMITS} & {*each.exempt}]
    return np.zeros(jobs, dtype=np.bool_) if qos is None or not names else np.isin(qos.astype(str), names)


def too_wide(config: SiteFields, queue: QueueConfig, cores: Column, has_user: Mask, qos: Texts | None = None) -> Mask:
    """Mark the jobs that never start because of a limit of the queue on cores (`CORE_LIMITS`), shape (J,)."""
    over = np.zeros(cores.size, dtype=np.bool_)
    for limit in CORE_LIMITS:
        over |= over_limit(config, queue, limit, cores, has_user, qos)
    return over


def over_limit(
    config: SiteFields, queue: QueueConfig, limit: str, cores: Column, has_user: Mask, qos: Texts | None = None
) -> Mask:
    """Mark the jobs wider than one limit of `CORE_LIMITS`, shape (J,); a limit per user spares jobs without one."""
    most = getattr(queue, limit)
    if most is None:
        return np.zeros(cores.size, dtype=np.bool_)
    over: Mask = (cores > most) & ~exempt(config, limit, cores.size, qos)
    return over & has_user if limit == "max_user_cores" else over


def throttled(
    config: SiteFields,
    queue: str,
    cores: Column,
    walltime: Column,
    names: Mapping[str, Texts],
    taken: Callable[[str], Column] | None = None,
) -> Mask:
    """Mark the jobs of a queue that throttles never let start, shape (J,).

    `names` has the jobs' user, group and QOS, by the values of `ThrottleConfig.each`, empty for none. `taken` returns
    the jobs' amounts of a resource by its name; without it only cores and core-seconds count.
    """
    out = np.zeros(cores.size, dtype=np.bool_)
    amounts = {"max_run_cores": cores, "max_run_core_seconds": cores * walltime}
    if taken is not None:
        resources = dict.fromkeys(name for each in config.throttles for name in each.max_run_resources)
        amounts |= {f"{RESOURCES}.{name}": taken(name) for name in resources}
    whose = {"": np.full(cores.size, ""), **names}
    for limit, amount in amounts.items():
        for kind, of_kind in whose.items():
            for where, of in product((None, queue), sorted({each.of_qos for each in config.throttles})):
                found = [t for t in config.throttles if (t.kind, t.queue, t.of_qos) == (kind, where, of)]
                known = {each.name: value for each in found if (value := each.limits.get(limit)) is not None}
                if known:
                    most = np.array([known.get(name, known.get("", MOST_WORK)) for name in of_kind], dtype=np.int64)
                    over = (amount > most) & ((of_kind != "") | (kind == ""))
                    if of:
                        over &= whose.get("qos", whose[""]) == of
                    elif kind != "qos":
                        over &= ~exempt(config, limit.partition(".")[0], cores.size, names.get("qos"))
                    out |= over
    return out


def shortpool_gaps(config: SiteFields) -> list[tuple[int, int]]:
    """Return pairs: cores that shortpools reserve at some time, and the longest time (s) without that many.

    Overlapping shortpools add up. A gap is at least the shortpools' longest walltime, up to which jobs may use them.
    """
    found = []
    for walltime in sorted({each.walltime for each in config.shortpools}):
        kept = np.sum([each.cores * each.minutes for each in config.shortpools if each.walltime <= walltime], axis=0)
        for cores in np.unique(kept[kept > 0]).tolist():
            full = np.flatnonzero(kept >= cores)
            longest_gap = 60 * int(np.diff(full, append=full[0] + kept.size).max() - 1)
            found.append((min(cores, config.machine.cores), max(walltime, longest_gap)))
    return found


def shortpool_gaps_of_types(config: SiteFields) -> list[tuple[dict[str, int], int]]:
    """Return pairs as `shortpool_gaps`, for nodes of several types: nodes of each type by name, and seconds."""
    found = []
    for walltime in sorted({each.walltime for each in config.shortpools}):
        pools = [each for each in config.shortpools if each.walltime <= walltime]
        kept = np.array([sum(p.types.get(each.name, 0) * p.minutes for p in pools) for each in config.nodes])
        for counts in np.unique(kept[:, kept.any(axis=0)], axis=1).T:
            full = np.flatnonzero((kept >= counts[:, np.newaxis]).all(axis=0))
            longest_gap = 60 * int(np.diff(full, append=full[0] + kept.shape[1]).max() - 1)
            names = (each.name for each in config.nodes)
            most = np.minimum(counts, [each.count for each in config.nodes]).tolist()
            found.append((dict(zip(names, most, strict=True)), max(walltime, longest_gap)))
    return found


def beside_shortpools(config: SiteFields, kept: int, cores: Column, queue: Column) -> Column:
    """Return the most cores that jobs of these sizes and queues can have while `kept` cores are reserved, shape (J,).

    On a divided machine each part gives its part of `kept` (rule "shares of a reservation"). A job may have its
    partition, or the pool, with combined placement both; if it fits none of them, all parts together.
    """
    beside = np.full(cores.size, config.machine.cores - kept, dtype=np.int64)
    if config.mode == "shared":
        return beside
    pool = config.pool_cores
    parts = np.array([*(each.partition for each in config.queues), pool], dtype=np.int64)
    shares = kept * parts // parts.sum()
    shares[np.argsort(-parts, kind="stable")[: kept - shares.sum()]] += 1
    left = parts - shares
    in_own, in_pool = cores <= parts[queue], cores <= pool
    own = np.where(in_own, left[queue], 0)
    if config.pool is not None and config.pool.placement == "combined":
        own += left[-1]
    return np.where(in_own | in_pool, np.maximum(own, np.where(in_pool, left[-1], 0)), beside)


def kept_off(config: SiteFields, cores: Column, walltime: Column, queue: Column | None = None) -> Mask:
    """Mark the jobs that never start beside shortpools: too long for the gaps and too wide beside them, shape (J,).

    `queue` is the index of each job's queue; without it a job is marked if no queue can start it. With nodes of several
    types no job is marked: `qconf.history.chunks.without_time` does that.
    """
    if config.nodes:
        return np.zeros(cores.size, dtype=np.bool_)
    if queue is None:
        each = (kept_off(config, cores, walltime, np.full(cores.size, i)) for i in range(len(config.queues)))
        in_all: Mask = np.all(list(each), axis=0)
        return in_all
    out = np.zeros(cores.size, dtype=np.bool_)
    for kept, longest in shortpool_gaps(config):
        out |= (walltime > longest) & (cores > beside_shortpools(config, kept, cores, queue))
    return out


def lost_job(queues: Sequence[QueueConfig], others: Sequence[QueueConfig]) -> tuple[int, int] | None:
    """Return (cores, walltime) of a job that one of `queues` admits and none of `others`; None if there is none."""
    for job in _corners(queues, others):
        if any(queue.admits(*job) for queue in queues) and not any(queue.admits(*job) for queue in others):
            return job
    return None


def access_changes(queues: Sequence[QueueConfig], others: Sequence[QueueConfig]) -> list[str]:
    """Return the names of `queues` whose jobs more or fewer users may submit to `others`."""
    if all(queue.access is None for queue in (*queues, *others)):
        return []
    changed: dict[str, None] = {}
    for job in _corners(queues, others):
        takers = [queue for queue in queues if queue.admits(*job)]
        later = [queue for queue in others if queue.admits(*job)]
        if takers and later and _accesses(takers) != _accesses(later):
            changed |= dict.fromkeys(queue.name for queue in takers)
    return list(changed)


def _accesses(takers: Sequence[QueueConfig]) -> list[AccessConfig | None]:
    """Return the access lists of the queues that a job may go to, in order, up to the first that is open to all."""
    found = list(dict.fromkeys(queue.access for queue in takers))
    return found[: found.index(None) + 1] if None in found else found


def _corners(*both: Sequence[QueueConfig]) -> Iterator[tuple[int, int]]:
    """Yield (cores, walltime) of a job of each kind that these queues distinguish."""
    every = [queue for queues in both for queue in queues]
    cores = sorted({edge for queue in every for edge in (queue.cores[0], queue.cores[1] + 1)})
    walltimes = sorted({edge + 1 for queue in every for edge in queue.walltime})
    return product(cores, walltimes)
