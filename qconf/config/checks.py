"""Checks of a configuration as a whole: mistakes and warnings about parts that do not fit together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import numpy as np

from parsim.model.fairshare import Fairshare, Share
from parsim.model.formula import NAMES
from parsim.model.formula import parse as parse_formula
from parsim.model.system import LIMITS, MOST_NODE_CORES, MOST_TIERS, ORDERS
from parsim.model.throttles import RESOURCES, THROTTLES
from parsim.model.workload import MAX_CORES
from qconf.config.durations import format_duration
from qconf.config.models import (
    KEPT,
    SCALARS,
    Downtime,
    MachineConfig,
    PoolConfig,
    QueueConfig,
    ShortpoolConfig,
    SiteFields,
)
from qconf.config.problems import did_you_mean
from qconf.config.routing import CORE_LIMITS, beside_shortpools, lost_job, shortpool_gaps
from qconf.inert import shorten

MINUTE = 60  # seconds
GRID = ("machine.cores_per_node", "machine.whole_nodes")


class Finding(NamedTuple):
    """A mistake or a warning."""

    path: str  #: such as ``queues[2].walltime``
    message: str
    needs: tuple[str, ...] = ()  #: paths that the finding depends on: if one of them is wrong, it is not reported


NO_POOL = "nodes of several types have no common pool: write mode: partitioned or shared, and leave pool out"


def mistakes(config: SiteFields) -> Iterator[Finding]:
    """Yield the mistakes that make a configuration unusable; each field by itself is valid already."""
    checks = (_machine, _depth, _tiers, _queues, _names, _pool, _owned, _sum, _order, _fixed, _targets, _downtime)
    for check in (*checks, _hours, _shortpools, _shares, _throttles, _qos, _nodes):
        yield from check(config)


def _nodes(config: SiteFields) -> Iterator[Finding]:
    """Yield mistakes in the types of nodes, and settings that do not go with them."""
    names = [each.name for each in config.nodes]
    for i, each in enumerate(config.nodes):
        if each.name in names[:i]:
            message = f"nodes[{names.index(each.name)}] has this name already; every type needs its own"
            yield Finding(f"nodes[{i}].name", message)
        if each.kept_per_gpu * each.gpus > each.cores or (each.kept_per_gpu and not each.gpus):
            message = f"{each.kept_per_gpu} cores for each of {each.gpus} GPUs, on nodes of {each.cores} cores"
            yield Finding(f"nodes[{i}].kept_per_gpu", message, (f"nodes[{i}].gpus", f"nodes[{i}].cores"))
        if each.kept_per_gpu and each.exclusive:
            message = "keeps cores for other jobs on nodes that a job has alone: leave it out, or exclusive"
            yield Finding(f"nodes[{i}].kept_per_gpu", message, (f"nodes[{i}].exclusive",))
        if each.hosts is not None and (hosts := _hosts_in(each.hosts)) != each.count:
            like = f"is no list of hosts like {each.name}[01-{each.count:02d}],login1"
            message = f"names {hosts} hosts, and count says {each.count}" if hosts else like
            yield Finding(f"nodes[{i}].hosts", message, (f"nodes[{i}].count",) if hosts else ())
        if KEPT in each.resources:
            yield Finding(f"nodes[{i}].resources", f"{KEPT} is what kept_per_gpu makes: use that, or another name")
        for reserved in {"cores", "memory", "gpus"} & {*each.resources}:
            yield Finding(f"nodes[{i}].resources", f"{reserved} has a key of its own")
    total = sum(each.count * each.cores for each in config.nodes)
    if config.nodes and total != config.machine.cores:
        yield Finding("nodes", f"have {total} cores, the machine {config.machine.cores}", ("machine.cores",))
    for i, queue in enumerate(config.queues):
        for name in queue.nodes or ():
            if name not in names:
                meant = did_you_mean(name, names) or f"; there are {', '.join(names) or 'none'}"
                yield Finding(f"queues[{i}].nodes", f"{name}: no nodes have this name{meant}", ("nodes",))
        if queue.exclusive and not config.nodes:
            message = "is of queues whose jobs use types of nodes; machine.whole_nodes gives whole nodes to all"
            yield Finding(f"queues[{i}].exclusive", message, ("nodes",))
    if config.nodes and config.held_jobs != "pass":
        message = "nodes of several types go with held_jobs: pass only: limits are planned beside cores alone"
        yield Finding("held_jobs", message, ("nodes",))
    if config.nodes and config.machine.whole_nodes:
        what = "whole_nodes: false only: say exclusive: true of those that are given whole"
        yield Finding("machine.whole_nodes", f"nodes of several types go with {what}", ("nodes",))


def _hosts_in(text: str) -> int:
    from qconf.hosts import hosts_in  # noqa: PLC0415 - takes a tenth of a second, and few need it

    return hosts_in(text)


def _owned(config: SiteFields) -> Iterator[Finding]:
    """Yield mistakes in partitions of nodes of several types, and settings that do not go with them."""
    names = [each.name for each in config.nodes]
    needs = ("nodes", "mode", *_each_queue(config, ".partition"))
    if not config.nodes:
        for path, nodes in config.owned:
            if nodes:
                yield Finding(path, "the site has no types of nodes: write a number of cores", ("nodes",))
        return
    if config.mode == "shared":
        return
    if config.mode == "hybrid":
        yield Finding("mode", NO_POOL, ("nodes", "pool.nodes"))
        return
    for path, nodes in config.owned:
        for name in nodes:
            if name not in names:
                yield Finding(path, f"{name}: no nodes have this name{did_you_mean(name, names)}", ("nodes",))
    for i, queue in enumerate(config.queues):
        at = f"queues[{i}]"
        if queue.reservation:
            message = "no job spans partitions where nodes are of several types: give it a partition or leave it out"
            yield Finding(f"{at}.reservation", message, ("nodes",))
        if queue.partition and not queue.partition_nodes:
            message = "nodes are of several types: write how many of each, like {" + f"{names[0]}: 1" + "}"
            yield Finding(f"{at}.partition", message, ("nodes",))
        unused = [name for name in queue.partition_nodes if name in names and name not in (queue.nodes or names)]
        if unused:
            message = f"has {unused[0]}, which its jobs may not use: they are bound to {', '.join(queue.nodes or ())}"
            yield Finding(f"{at}.partition", message, ("nodes", f"{at}.nodes"))
    for each in config.nodes:
        path, most = max(config.owned, key=lambda of: of[1].get(each.name, 0))
        difference = each.count - sum(nodes.get(each.name, 0) for _, nodes in config.owned)
        if most.get(each.name, 0) > each.count:
            message = f"{most[each.name]} nodes of {each.name}, of which there are {each.count}"
            yield Finding(path, message, ("nodes",))
        elif difference:
            message = (
                f"partitions have {each.count - difference} nodes of {each.name}, of {each.count}: "
                f"{abs(difference)} {'missing' if difference > 0 else 'too many'}"
            )
            yield Finding("queues", message, needs)
    cores = {each.name: each.cores for each in config.nodes}
    for (path, nodes), queue in zip(config.owned, config.queues, strict=True):
        total = sum(count * cores.get(name, 0) for name, count in nodes.items())
        if nodes and total != queue.partition:  # not so in a file, where cores follow
            yield Finding(path, f"nodes of {total} cores, for {queue.partition}", ("nodes",))


def _shares(config: SiteFields) -> Iterator[Finding]:
    """Yield mistakes in the tree of shares; each field by itself is valid already."""
    tree = [Share(each.name, each.shares, each.group or "") for each in config.shares]
    for path, message in Fairshare(tree).problems():
        needs = tuple(f"shares[{i}].{name}" for i in range(len(tree)) for name in ("name", "group"))
        yield Finding(path, message, needs)
    if config.fairshare is not None and config.fairshare.decay_time < 1:
        yield Finding("fairshare.decay_time", "is at least a second; with decay_factor 1 nothing decays")


def _throttles(config: SiteFields) -> Iterator[Finding]:
    names = ("queues", *_each_queue(config, ".name"))
    there = sorted({name for each in config.nodes for name, amount in each.amounts.items() if amount})
    first: dict[str, int] = {}
    for i, throttle in enumerate(config.throttles):
        at = f"throttles[{i}]"
        whose = [name for name in ("each", "user", "group") if getattr(throttle, name) is not None]
        if len(whose) > 1:
            yield Finding(at, f"has {' and '.join(whose)}: one of them says whose jobs are meant, none means all")
        if throttle.each == "qos" and throttle.qos is not None:
            yield Finding(at, "has each: qos and qos: leave one out")
        if throttle.qos is not None and throttle.qos not in (known := [qos.name for qos in config.qos]):
            meant = did_you_mean(throttle.qos, known) or f"; there are {', '.join(known) or 'none'}: write it into qos"
            yield Finding(f"{at}.qos", f"no QOS has this name{meant}", ("qos",))
        yield from _queue_there(config, f"{at}.queue", throttle.queue)
        if not throttle.limits:
            known = [*THROTTLES, RESOURCES]
            needs = tuple(f"{at}.{name}" for name in known)
            yield Finding(at, f"limits nothing: give it one of {', '.join(known)}", needs)
        for name in throttle.max_run_resources:
            if name == "cores":
                yield Finding(f"{at}.{RESOURCES}", "cores have a limit of their own, max_run_cores")
            elif name not in there:
                meant = did_you_mean(name, there) or f"; nodes have {', '.join(there) or 'cores alone'}"
                yield Finding(f"{at}.{RESOURCES}", f"no node has {name}{meant}; write it into nodes", ("nodes",))
        if first.setdefault(throttle.what, i) != i:
            yield Finding(at, f"throttles[{first[throttle.what]}] is for {throttle.what} too: put both into one")
        narrowest = min((queue.cores[0] for queue in config.queues if throttle.queue in (None, queue.name)), default=1)
        narrowest = -(-narrowest // config.grid) * config.grid
        if throttle.max_run_cores is not None and throttle.max_run_cores < narrowest:
            message = f"below the {narrowest} cores that the narrowest job takes: no job could ever start"
            yield Finding(f"{at}.max_run_cores", message, (*names, *GRID))


def _qos(config: SiteFields) -> Iterator[Finding]:
    """Yield mistakes in the qualities of service: a name twice, or jobs of two of them."""
    seen: dict[tuple[str, str], int] = {}
    for i, qos in enumerate(config.qos):
        for kind in ("name", "users", "accounts", "groups", "queues"):
            for name in (qos.name,) if kind == "name" else getattr(qos, kind):
                first = seen.setdefault((kind, name), i)
                if first != i:
                    message = f"{name} stands in qos[{first}] too: leave one out"
                    yield Finding(f"qos[{i}].{kind}", message, (f"qos[{first}].{kind}",))
        for name in qos.queues:
            if name not in config.names:
                meant = did_you_mean(name, config.names) or f"; the queues are {', '.join(config.names)}"
                needs = ("queues", *_each_queue(config, ".name"))
                yield Finding(f"qos[{i}].queues", f"no queue is called {name}{meant}", needs)


def _machine(config: SiteFields) -> Iterator[Finding]:
    machine = config.machine
    if machine.cores_per_node > machine.cores:
        message = f"a node of {machine.cores_per_node} cores is larger than the machine of {machine.cores}"
        yield Finding("machine.cores_per_node", message, ("machine.cores",))
    else:
        yield from _whole_nodes("machine.cores", machine.cores, config.grid, GRID[:1])
    if config.reserve == "queue_nodes" and not config.nodes:
        message = "queue_nodes places jobs on nodes: describe them under nodes, of one type where all are alike"
        yield Finding("reserve", message, ("nodes",))
    if config.reserve in ("nodes", "queue_nodes") and machine.cores > MOST_NODE_CORES:
        message = (
            f"nodes are told apart on machines of up to {MOST_NODE_CORES} cores; `cores` reserves a number of them"
        )
        yield Finding("reserve", message, ("machine.cores",))


def _depth(config: SiteFields) -> Iterator[Finding]:
    if config.reservation_depth != 1 and (config.reserve != "cores" or config.held_jobs != "pass"):
        message = "goes with reserve: cores and held_jobs: pass: limits and nodes are planned for one job of each list"
        yield Finding("reservation_depth", message, ("reserve", "held_jobs"))


def _tiers(config: SiteFields) -> Iterator[Finding]:
    if not config.has_tiers:
        return
    tiers = _each_queue(config, ".tier")
    for name, value in (("mode", "shared"), ("held_jobs", "pass"), ("reservation_depth", 1)):
        if getattr(config, name) != value:
            why = "a partition has jobs of one queue" if name == "mode" else "beside more plans no job preempts another"
            yield Finding(name, f"queues of different tiers go with {name}: {value}: {why}", ("queues", *tiers))
    if config.reserve not in ("cores", "nothing", *(["nodes"] if config.nodes else [])):
        known = "cores, nothing or nodes" if config.nodes else "cores or nothing, or with nodes of several types nodes"
        yield Finding("reserve", f"queues of different tiers go with reserve: {known}", ("queues", *tiers))
    for name in ("downtime", "shortpools"):
        if getattr(config, name):
            yield Finding(name, "is not simulated with queues of different tiers", ("queues", *tiers))
    if len({queue.tier for queue in config.queues}) > MOST_TIERS:
        yield Finding("queues", f"have more than {MOST_TIERS} different tiers", tiers)


def _whole_nodes(path: str, size: int, grid: int, needs: tuple[str, ...] = GRID) -> Iterator[Finding]:
    if size % grid:
        below = size // grid * grid
        message = f"not a whole number of nodes of {grid} cores: {below} or {below + grid} would be"
        yield Finding(path, message, needs)


def _queue(config: SiteFields, at: str, queue: QueueConfig) -> Iterator[Finding]:
    cores, grid = config.machine.cores, config.grid
    low, high = queue.cores
    if low > cores:
        message = f"no job can enter: its narrowest has {low} cores, the machine {cores}"
        yield Finding(f"{at}.cores", message, ("machine.cores",))
    elif cores < high < MAX_CORES:
        message = f"wider than the machine's {cores} cores; at most that, or null for no maximum"
        yield Finding(f"{at}.cores", message, ("machine.cores",))
    if queue.reservation and queue.partition:
        message = "a queue with advance reservations owns no partition: leave it out, or 0"
        yield Finding(f"{at}.partition", message, (f"{at}.reservation",))
    yield from _whole_nodes(f"{at}.partition", queue.partition, grid)
    narrowest = -(-low // grid) * grid
    for field in CORE_LIMITS:
        limit = getattr(queue, field)
        if limit is not None and limit < narrowest:
            message = f"below the {narrowest} cores that the queue's narrowest job takes: no job could ever start"
            yield Finding(f"{at}.{field}", message, (f"{at}.cores", *GRID))


def _queues(config: SiteFields) -> Iterator[Finding]:
    for i, queue in enumerate(config.queues):
        yield from _queue(config, f"queues[{i}]", queue)


def _names(config: SiteFields) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for i, queue in enumerate(config.queues):
        other = f"queues[{first.setdefault(queue.name, i)}]"
        if first[queue.name] != i:
            message = f"{other} has this name already; every queue needs its own"
            yield Finding(f"queues[{i}].name", message, (f"{other}.name",))
    if config.routing in first:
        message = "a queue of jobs has this name: the one that leads to the others needs its own"
        yield Finding("routing", message, (f"queues[{first[config.routing]}].name",))


def _pool(config: SiteFields) -> Iterator[Finding]:
    pool = config.pool
    if pool is None:
        if config.mode == "hybrid":
            yield Finding("pool", "missing: mode hybrid needs one, like {cores: 4800} (0 cores at least)", ("mode",))
        return
    yield from _whole_nodes("pool.cores", pool.cores, config.grid)
    if pool.reference is not None and pool.reference not in config.names:
        message = f"no queue has this name{did_you_mean(pool.reference, config.names)}"
        yield Finding("pool.reference", message, ("queues", *_each_queue(config, ".name")))


def _each_queue(config: SiteFields, *fields: str) -> tuple[str, ...]:
    return tuple(f"queues[{i}]{field}" for i in range(len(config.queues)) for field in fields)


def _queue_there(
    config: SiteFields, path: str, name: str | None, listed: str = "the queues are", *others: str
) -> Iterator[Finding]:
    known = (*config.names, *others)
    if name is not None and name not in known:
        meant = did_you_mean(name, known) or f"; {listed} {', '.join(known)}"
        yield Finding(path, f"no queue has this name{meant}", ("queues", *_each_queue(config, ".name")))


def _sum(config: SiteFields) -> Iterator[Finding]:
    partitions = sum(queue.partition for queue in config.queues)
    difference = config.machine.cores - partitions - config.pool_cores
    if config.mode == "shared" or not difference or config.nodes:
        return
    total = f"partitions of {partitions}"
    if config.mode == "hybrid":
        total += f" and a pool of {config.pool_cores}"
    elif config.pool is not None and config.pool.cores:
        total += f" (the pool of {config.pool.cores} counts in mode hybrid only)"
    yield Finding(
        "queues",
        f"{total} cores do not add up to the machine's {config.machine.cores}: "
        f"{abs(difference)} {'missing' if difference > 0 else 'too many'}",
        ("machine.cores", "mode", "pool", "pool.cores", *_each_queue(config, "", ".partition", ".reservation")),
    )


def _order(config: SiteFields) -> Iterator[Finding]:
    order, known = config.order, ", ".join(ORDERS)
    if order in ORDERS:
        return
    if order.isidentifier() and order.isascii() and order not in NAMES and (meant := did_you_mean(order, ORDERS)):
        yield Finding("order", f"no such order{meant}; one of {known}, or a formula")
    elif not re.fullmatch(r"[A-Za-z0-9_ .,+*/()<>=!-]+", order):
        yield Finding("order", f"one of {known}, or a formula of letters, digits and + - * / ( ) . , < > = !")
    else:
        try:
            parse_formula(order)
        except ValueError as error:
            yield Finding("order", f"{error}; one of {known}, or a formula of the names PBS knows")


def _fixed(config: SiteFields) -> Iterator[Finding]:
    paths = fixable_paths(config.names) if config.fixed else []
    stems = {path[: dot.start()] for path in paths for dot in re.finditer(r"\.", path)} | set(paths)
    for i, pattern in enumerate(config.fixed):
        if not any(matches(pattern, path) for path in paths):
            message = (
                f"matches nothing in this file{did_you_mean(pattern, stems)}; "
                "a path like queues.large, queues.*.max_user_run, pool.cores or order"
            )
            yield Finding(f"fixed[{i}]", message, ("queues", *_each_queue(config, ".name")))


def _targets(config: SiteFields) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for i, target in enumerate(config.targets):
        at = f"targets[{i}]"
        if (target.queue is None) == (target.group is None):
            message = "is for a queue or for a group of users, one of the two, like {queue: small, p95_wait: 4h}"
            yield Finding(at, message, (f"{at}.queue", f"{at}.group"))
            continue
        yield from _queue_there(config, f"{at}.queue", target.queue)
        if target.queue is not None and target.users:
            yield Finding(f"{at}.users", "are those of a group: name it with group instead of queue")
        if target.p95_wait is None and target.weight is None:
            message = "wants nothing: give it a p95_wait, a weight or both"
            yield Finding(at, message, (f"{at}.p95_wait", f"{at}.weight"))
        if first.setdefault(target.what, at) != at:
            field = "group" if target.queue is None else "queue"
            yield Finding(f"{at}.{field}", f"{first[target.what]} is for it already; put both into one")
        for user in dict.fromkeys(target.users if target.group is not None else ()):
            if first.setdefault(f"user {user}", at) != at:
                yield Finding(
                    f"{at}.users", f"{shorten(user)} is in {first[f'user {user}']} too; a user is in one group"
                )


def _downtime(config: SiteFields) -> Iterator[Finding]:
    for i, each in enumerate(config.downtime):
        at = f"downtime[{i}]"
        begin, end = datetime.fromisoformat(each.begin), datetime.fromisoformat(each.end)
        if (begin.tzinfo is None) != (end.tzinfo is None):
            yield Finding(f"{at}.end", "one of begin and end has an offset and the other none: write both alike")
        elif begin >= end:
            yield Finding(f"{at}.end", f"is not after its begin {each.begin}", (f"{at}.begin",))
        yield from _queue_there(config, f"{at}.queue", each.queue, "there are")
        yield from _queue_there(config, f"{at}.partition", each.partition, "there are", "pool")
        nodes = -(-config.machine.cores // config.machine.cores_per_node)
        if config.nodes:
            nodes = sum(each.count for each in config.nodes)
        yield from _downtime_of_types(config, each, at)
        wrong = [node for node in each.nodes if node >= nodes]
        if wrong:
            yield Finding(f"{at}.nodes", f"there is no node {wrong[0]}: they are counted from 0 to {nodes - 1}")
        if each.users and each.queue is not None:
            yield Finding(f"{at}.users", "a reservation is for a queue or for users: leave one out")
        if each.cores is not None and each.cores > config.machine.cores:
            yield Finding(f"{at}.cores", f"are more than the machine's {config.machine.cores}")


def _downtime_of_types(config: SiteFields, each: Downtime, at: str) -> Iterator[Finding]:
    """Yield mistakes in the types of nodes of a downtime."""
    names = [of.name for of in config.nodes]
    there = {of.name: of.count for of in config.nodes}
    part = None if config.mode == "shared" else each.partition
    of_part = there if part is None else config.owned_by(part)
    for name, count in each.types.items() if names else ():
        held = of_part.get(name, 0)
        if wrong := [*_nodes_there(f"{at}.types", name, count, there)]:
            yield from wrong
        elif count > held:
            has = f"has {held} of these nodes" if held else "has no such nodes"
            fix = "name types that it has, or leave partition out"
            yield Finding(f"{at}.types", f"{name}: the partition {part} {has}: {fix}", (f"{at}.partition", "queues"))
    if each.types and not names:
        yield Finding(f"{at}.types", "the site has no types of nodes: write cores, or nodes", ("nodes",))
    if names and each.cores is not None:
        message = f"nodes of several types are out of service whole: write nodes, or types like {{{names[0]}: 1}}"
        yield Finding(f"{at}.cores", message, ("nodes",))
    for one, other in (("types", "cores"), ("types", "nodes")):
        if getattr(each, one) and getattr(each, other):
            yield Finding(f"{at}.{one}", f"and {other} are given: leave one out")


def _nodes_there(path: str, name: str, count: int, there: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a mistake if no nodes have this name, or there are fewer than `count`."""
    if name not in there:
        yield Finding(path, f"{name}: no nodes have this name{did_you_mean(name, there)}", ("nodes",))
    elif not 1 <= count <= there[name]:
        yield Finding(path, f"{name}: from 1 to the {there[name]} that there are", ("nodes",))


def _hours(config: SiteFields) -> Iterator[Finding]:
    for i, each in enumerate(config.hours):
        at = f"hours[{i}]"
        if each.begin == each.end:
            yield Finding(f"{at}.end", "is its begin: write limits of the whole day into the queue", (f"{at}.begin",))
        yield from _queue_there(config, f"{at}.queue", each.queue, "there are")
        if all(getattr(each, limit) is None for limit in LIMITS):
            yield Finding(at, f"limits nothing: give it one of {', '.join(LIMITS)}")
        if not each.days:
            yield Finding(f"{at}.days", "are none: leave it out for every day")


def _shortpools(config: SiteFields) -> Iterator[Finding]:
    for i, each in enumerate(config.shortpools):
        at = f"shortpools[{i}]"
        if config.nodes or each.types:
            yield from _shortpool_of_types(config, each, at)
        elif each.cores > config.machine.cores:
            yield Finding(f"{at}.cores", f"are more than the machine's {config.machine.cores}", ("machine.cores",))
        else:
            yield from _whole_nodes(f"{at}.cores", each.cores, config.grid)
        if each.walltime < 1:
            yield Finding(f"{at}.walltime", "no job is as short: give it the longest walltime of a short job, like 2h")
        if not each.days:
            yield Finding(f"{at}.days", "are none: leave it out for every day")


def _shortpool_of_types(config: SiteFields, each: ShortpoolConfig, at: str) -> Iterator[Finding]:
    """Yield mistakes in the types of nodes of a shortpool."""
    there = {its.name: its.count for its in config.nodes}
    if not there:
        yield Finding(f"{at}.types", "the site has no types of nodes: write cores", ("nodes",))
    elif not each.types:
        message = f"nodes of several types are kept whole: write how many of each, like {{{next(iter(there))}: 1}}"
        yield Finding(f"{at}.types", message, ("nodes",))
    for name, count in each.types.items() if there else ():
        yield from _nodes_there(f"{at}.types", name, count, there)


def kept_waiting(config: SiteFields, queue: QueueConfig) -> str:
    """Name the jobs of a queue that shortpools never let start; empty if none, or if nodes are of several types."""
    if config.nodes:  # depends on the jobs' chunks: `qconf.history.chunks.without_time`
        return ""
    widest = np.array([config.widest(queue)])
    for kept, longest in shortpool_gaps(config):
        beside = int(beside_shortpools(config, kept, widest, np.array([config.queues.index(queue)]))[0])
        if widest[0] > beside and queue.walltime[1] > longest:
            return f"jobs wider than {beside} cores and longer than {format_duration(longest)}"
    return ""


def warnings(config: SiteFields) -> Iterator[Finding]:
    """Yield settings that are valid but probably not intended."""
    grid = config.grid
    for i, queue in enumerate(config.queues):
        at = f"queues[{i}]"
        widest = min(-(-config.widest(queue) // grid) * grid, config.machine.cores)
        below = f"is below the queue's widest job of {widest} cores"
        for field in CORE_LIMITS:
            limit = getattr(queue, field)
            if limit is not None and limit < widest:
                yield Finding(f"{at}.{field}", f"{limit} {below}: a job wider than the limit never starts")
        if config.mode != "shared" and not queue.reservation and queue.partition < widest:
            others = "run in the pool, or have no place" if config.nodes else "wait for the pool or a reservation"
            message = f"{queue.partition} {below}: wider jobs {others}"
            yield Finding(f"{at}.partition", message)
        if queue.walltime[1] < MINUTE:
            yield Finding(f"{at}.walltime", f"up to {queue.walltime[1]} seconds; for hours write {queue.walltime[1]}h")
        if queue.preempted != "off" and queue.tier == max(each.tier for each in config.queues):
            yield Finding(f"{at}.preempted", "plays no part: no queue has a higher tier")
        if never := kept_waiting(config, queue):
            yield Finding(at, f"{never} never start: they find no time between those of a shortpool")
        # With types of nodes jobs name their queue.
        if not config.nodes and lost_job([queue], config.queues[:i]) is None:
            yield Finding(at, f"no job is ever routed to {queue.name}: the queues before it take everything it admits")
    for i, throttle in enumerate(config.throttles):
        widest = max(
            (config.widest(queue) for queue in config.queues if throttle.queue in (None, queue.name)), default=1
        )
        limit = throttle.max_run_cores
        if limit is not None and limit < widest:
            message = f"{limit} is below the widest job of {widest} cores: a job wider than the limit never starts"
            yield Finding(f"throttles[{i}].max_run_cores", message)
    for i, target in enumerate(config.targets):
        if target.p95_wait is not None and target.p95_wait < MINUTE:
            yield Finding(f"targets[{i}].p95_wait", f"{target.p95_wait} seconds; for hours write {target.p95_wait}h")
    if config.reserve_after and not config.reservation_delay:
        why = f"mode {config.mode}" if config.mode != "shared" else "backfill: false"
        yield Finding("reserve_after", f"plays no part with {why}")
    if config.reserve == "nothing" and config.mode != "shared":
        yield Finding("reserve", f"nothing plays no part with mode {config.mode}: each partition has a reservation")
    if config.reservation_depth != 1 and not config.backfill:
        yield Finding("reservation_depth", "plays no part with backfill: false")
    reads_waits = config.order not in ORDERS and parse_formula(config.order).uses_eligible_time
    if config.priority_calc_period and not reads_waits:
        yield Finding("priority_calc_period", f"plays no part with order {shorten(config.order)}: no wait is in it")
    if config.mode == "hybrid" and config.order != "fcfs":
        yield Finding("order", "orders the partitions only: the pool goes by priority factor")


def fixable_paths(names: Iterable[str]) -> list[str]:
    """Return every path that `fixed` can name, given the names of the queues."""
    return [
        *SCALARS,
        "shortpools",
        "nodes",
        *(f"machine.{field}" for field in MachineConfig.model_fields),
        *(
            f"queues.{name}.{field}"
            for name in names
            for field in QueueConfig.model_fields
            if field != "partition_nodes"
        ),
        *(f"queues.{name}.max_run_resources" for name in names),
        *(f"pool.{field}" for field in PoolConfig.model_fields),
    ]


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of `fixed`, where ``*`` is any text, covers `path` or one of its parents."""
    text = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(rf"{text}(\..*)?", path, re.DOTALL) is not None
