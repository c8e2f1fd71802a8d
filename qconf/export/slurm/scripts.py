"""A configuration as files for Slurm: partitions, QOS, a routing plugin and the plan. No command is run from here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import QueueConfig, SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.base import Export
from qconf.export.checks import refuse_access, refuse_idle
from qconf.export.nodes import Node, assign, check_machine
from qconf.export.priorities import scale
from qconf.export.rendering import checked_queue, comment_name, render
from qconf.export.slurm import fairshare, kept, preemption, qos, shortpools, throttles
from qconf.export.slurm.conf import LIMITS
from qconf.export.slurm.differences import LONGEST_AGE, LONGEST_WINDOW, calc_minutes, differences, placed
from qconf.export.slurm.order import weights_of_tres
from qconf.export.types import hosts as hosts_of_types
from qconf.export.types import is_bound, types_of, types_of_pool, with_own_types
from qconf.hosts import fold
from qconf.text import grouped

#: Who may use a partition: kind of `access`, the list of those let in, the list of those kept out.
ACCESS = {
    "groups": ("AllowGroups", None),
    "accounts": ("AllowAccounts", "DenyAccounts"),
    "qos": ("AllowQos", "DenyQos"),
    "hosts": ("AllocNodes", None),
}
POOL = "pool"  #: name of the partition that is the common pool
LONGEST_NAME = 64  #: characters of a queue's name, of which the tools of Slurm show all
STEPS = 200  #: at most so many starts of a job are tried; Slurm gives up after two seconds


def export(config: SiteConfig, nodes: Sequence[Node] | None) -> Export:
    """Write a configuration for Slurm. Raises ExportError."""
    given = config
    config = with_own_types(config, nodes)
    _refuse(config, nodes)
    pool, machine = config.pool_cores, config.machine
    limited = [queue for queue in config.queues if is_limited(config, queue)]
    lines = list(_partitions(config, _hosts(config, nodes)))
    node = machine.cores_per_node if machine.whole_nodes else None
    order = Multifactor.of(config.order)
    fair = order is not None and order.fair_share > 0
    places = {} if order is None else _places(config, order)
    most = 0 if order is None else order.most + max(places.values())
    keeps = [each.name for each in shortpools.reservations(config, POOL)]
    nice = {} if order is None else {"order": order, "places": places, "most": most}
    queues = [(queue, whole_minutes(queue)) for queue in config.queues]
    rooms, parts, excluded = kept.rooms(config), _parts(config), _excluded(config, nodes)
    of_parts = [name for names, _ in rooms.values() for name in names.split(",")]
    enforced = ["limits"] if limited or throttles.statements(config) or config.qos else []
    enforced += ["qos"] if config.qos else []
    files = {
        "partitions.conf": render(
            "slurm", "partitions.conf", machine=comment_name(config), lines=lines, types=_types(config, given)
        ),
        "job_submit.lua": render(
            "slurm",
            "job_submit.lua",
            queues=queues,
            pool=POOL if pool else None,
            node=node,
            short=max((each.walltime for each in config.shortpools), default=0),
            kept=shortpools.kept(config, POOL) if keeps else {},
            rooms=rooms,
            parts=parts,
            excluded=excluded,
            **nice,
        ),
        "job_submit.back.lua": render(
            "slurm", "job_submit.back.lua", partitions=[*config.names, *of_parts, *([POOL] if pool else [])]
        ),
        "new-conf": render(
            "slurm",
            "new-conf",
            settings={
                "SchedulerType": _scheduler(config),
                **_priority(config, order, most),
                **_use(config, order),
                **preemption.settings(config),
            },
            added={
                "JobSubmitPlugins": ["lua"],
                **({"AccountingStorageEnforce": enforced} if enforced else {}),
                **({"PriorityFlags": ["NO_FAIR_TREE"]} if fair and config.tree.fair_share == "classic" else {}),
            },
            parameters=backfilling(config),
        ),
        "load-conf": render("slurm", "load-conf"),
        "move-jobs": render(
            "slurm",
            "move-jobs",
            config=config,
            queues=queues,
            lists={queue.name: dict(_access(queue)) for queue in config.queues},
            pool=POOL if pool else None,
            held=_held(config),
            parts=parts,
            rooms=rooms,
            excluded=excluded,
        ),
    }
    if limited:
        files["qos.sacctmgr"] = "".join(f"{line}\n" for queue in limited for line in _qos(config, queue))
    if statements := throttles.statements(config):
        files[throttles.FILE] = statements
    if config.qos:
        files[qos.FILE] = qos.statements(config)
    if fair and config.shares:
        files["shares.sacctmgr"] = fairshare.statements(config)
    if config.hours:
        files[hours.FILE] = hours.cron(config, set_limits, ["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"])
    if keeps:
        files[shortpools.FILE] = shortpools.script(config, POOL)
    for name in scripts_of(config):
        files[name] = render("slurm", "promote.py", config=config, pool_name=POOL, parts=parts, excluded=excluded)
    limited_tres = [throttles.tres(name) for name in throttles.limited(config)]
    weighed = (
        [] if order is None else [each.partition("=")[0] for each in weights_of_tres(config, order).split(",") if each]
    )
    notes = tuple(differences(config))
    files["PLAN.md"] = render(
        "slurm",
        "plan.md",
        machine=comment_name(config),
        mode=config.mode,
        limited=[qos_of(queue.name) for queue in limited],
        keeps=keeps,
        hourly=hours.taken_back(config, set_limits),
        pool=bool(pool),
        shares=fair and bool(config.shares),
        throttled=throttles.FILE in files,
        suspended=preemption.suspended(config),
        limited_tres=limited_tres,
        counted_tres=sorted({*limited_tres, *weighed}),
        lifted="".join(f",{throttles.tres(name)}=-1" for name in throttles.limited(config)),
        classes=[each.name for each in config.qos],
        class_accounts=qos.names(config, "accounts", "groups"),
        class_users=qos.names(config, "users"),
        accounts=throttles.names(config, "group"),
        users=throttles.names(config, "user"),
        job=_example(config),
        priority=None if order is None else most - places[config.names[0]] - _example_behind(config, order),
        parameters=backfilling(config),
        lines=notes,
    )
    return Export(files, notes, loaded=("partitions.conf",))


def _places(config: SiteConfig, order: Multifactor) -> dict[str, int]:
    """Return the points that jobs of each queue have less than those of the queue of the highest priority."""
    highest = max(queue.priority for queue in config.queues)
    places = {queue.name: order.weight * (highest - queue.priority) for queue in config.queues}
    if uneven := [name for name, points in places.items() if points != int(points)]:
        raise ExportError(
            f"order {config.order!r}: Slurm's points are whole numbers, and {order.weight} times the priority of "
            f"{', '.join(uneven)} is none apart from the others'; change the factor or the priorities"
        )
    return {name: int(points) for name, points in places.items()}


def _example_behind(config: SiteConfig, order: Multifactor) -> int:
    return order.behind(_example_walltime(config), config.queues[0].cores[0])


def _priority(config: SiteConfig, order: Multifactor | None, most: int) -> dict[str, str]:
    """Write the words of slurm.conf that order the waiting jobs, those of one queue or all."""
    if order is None:
        return {"PriorityType": "priority/basic"}
    return {
        "PriorityType": "priority/multifactor",
        "PriorityCalcPeriod": str(calc_minutes(config)),
        "PriorityFavorSmall": "NO",
        "PriorityMaxAge": clock(order.max_age),
        "PriorityWeightAge": str(order.max_age),
        "PriorityWeightJobSize": "0",
        **({} if (points := qos.weight(config)) is None else {"PriorityWeightQOS": str(points)}),
        **({"PriorityWeightTRES": weights} if (weights := weights_of_tres(config, order)) else {}),
        # The same for every job, so that what job_submit.lua takes away leaves something.
        "PriorityWeightPartition": str(most + 1),
    }


def _use(config: SiteConfig, order: Multifactor | None) -> dict[str, str]:
    """Write the words of slurm.conf about what users have used, where the order reads it."""
    if order is None or not order.fair_share:
        return {}
    return {
        "PriorityWeightFairshare": str(order.fair_share),
        "PriorityDecayHalfLife": clock(fairshare.half_life(config)),
        "PriorityUsageResetPeriod": "NONE",
    }


def _scheduler(config: SiteConfig) -> str:
    return "sched/backfill" if config.backfill else "sched/builtin"


def backfilling(config: SiteConfig) -> dict[str, str]:
    """Return the words of SchedulerParameters with which Slurm backfills as the simulator does, as far as it can.

    One reservation in each partition, on nodes that are in use where these will do, and every waiting job is tried,
    with little delay. When a job can start is found in steps, which double by default: the last may be half of the
    time.
    """
    if not config.backfill:
        return {}
    longest = min(max(queue.walltime[1] for queue in config.queues), LONGEST_WINDOW * 60)
    words = {
        "bf_busy_nodes": "",
        "bf_continue": "",
        "bf_interval": "10",
        "bf_job_part_count_reserve": str(config.reservation_depth or 0),
        "bf_max_job_test": "10000",
        "bf_max_time": "60",
        "bf_resolution": "60",
        "bf_window": str(max(-(-longest // 60), 1440)),
        "bf_window_linear": str(max(1, longest // STEPS)),
    }
    age = min(config.reservation_delay, LONGEST_AGE)
    words |= throttles.parameters(config)
    return words | ({"bf_min_age_reserve": str(age)} if age else {})


def whole_minutes(queue: QueueConfig) -> tuple[int, int]:
    """Return the walltime of a queue in seconds, each bound rounded up to a minute, as Slurm does with every limit."""
    above, upto = (bound if bound >= MAX_DURATION else -(-bound // 60) * 60 for bound in queue.walltime)
    return above, upto


def _example(config: SiteConfig) -> str:
    """Write what sbatch takes for a small job of the first queue."""
    queue = config.queues[0]
    return f"--ntasks={queue.cores[0]} --time={_example_walltime(config) // 60}"


def _example_walltime(config: SiteConfig) -> int:
    return whole_minutes(config.queues[0])[0] + 60


def scripts_of(config: SiteConfig) -> tuple[str, ...]:
    """Name the scripts that cron runs every minute, without which Slurm does not do what was simulated."""
    return ("qconf-promote",) if config.pool_cores else ()


def _refuse(config: SiteConfig, nodes: Sequence[Node] | None) -> None:
    for name in config.names:
        checked_queue(name, system="Slurm", most=LONGEST_NAME)
        if name.lower() in ("default", "all") or (config.pool_cores and name == POOL):
            raise ExportError(f"queue name {name!r} means something else to Slurm, or to the pool: rename it")
    if len({qos_of(name).lower() for name in config.names}) < len(config.names):
        raise ExportError("queue names that differ in case only are one QOS to Slurm: rename one of them")
    if config.order != "fcfs" and Multifactor.of(config.order) is None:
        raise ExportError(
            f"order {config.order!r}: Slurm's priority is a weighted sum and has no form for it; export with order: "
            "fcfs or a sum like min(eligible_time, 2592000) + (86400 if walltime <= 3600 else 0), or to another system"
        )
    qos.refuse(config, [qos_of(queue.name) for queue in config.queues if is_limited(config, queue)])
    throttles.refuse(config)
    hours.refuse(config)
    shortpools.refuse(config)
    refuse_access(config, "Slurm", [*ACCESS])
    if config.mode != "shared" and nodes is None and not config.nodes:
        raise ExportError("partitions are made of nodes: name them with --nodes")
    refuse_idle(placed(config), "Slurm")
    kept.refuse(config)
    preemption.refuse(config)


def _excluded(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Return the nodes of the pool that jobs of a queue may not use, by the queue, where they may use others of it."""
    of_pool = {} if config.pool is None or not config.nodes else config.pool.nodes
    left = {
        queue.name: [name for name in of_pool if name not in types]
        for queue in config.queues
        if 0 < len(types := types_of_pool(config, queue)) < len(of_pool)
    }
    found = hosts_of_types(config, nodes) if left else {}
    return {queue: fold([host for name in types for host in found[name]]) for queue, types in left.items()}


def _hosts(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Write the nodes of each partition, the pool's among them, as a host list."""
    every = "ALL" if nodes is None else fold([node.name for node in nodes])
    if _names_nodes(config):
        found = hosts_of_types(config, nodes)
        of_queues = {queue.name: types_of(config, queue) for queue in config.queues}
        bound = {name: types for name, types in of_queues.items() if types is not None}
        bound |= {part.name: part.nodes for of in kept.parts(config).values() for part in of}
        if config.pool is not None and config.pool_cores:
            bound[POOL] = tuple(config.pool.nodes)
        own = {name: fold([host for each in types for host in found[each]]) or '""' for name, types in bound.items()}
        return dict.fromkeys(config.names, every) | own
    if nodes is None or config.nodes:
        return dict.fromkeys(config.names, every)
    check_machine(config, nodes)
    if config.mode == "shared":
        return dict.fromkeys(config.names, every)
    owned = grouped((owner or POOL, name) for name, owner in assign(config, nodes).items())
    # A queue without nodes of its own has its jobs in the pool, or on all nodes if it has reservations.
    hosts = {queue.name: every if queue.reservation else '""' for queue in config.queues}
    return hosts | {name: fold(names) for name, names in owned.items()}


def _types(config: SiteConfig, given: SiteConfig) -> dict[str, str]:
    """Return the names of types of nodes with their hosts, where queues are bound to some; with a pool those `given`.

    Of partitions alone each queue has types of its own.
    """
    named = given.nodes if config.pool_cores else config.nodes
    return {each.name: each.hosts for each in named if each.hosts is not None} if _names_nodes(config) else {}


def _names_nodes(config: SiteConfig) -> bool:
    """Whether partitions are on some types of nodes."""
    return is_bound(config) or config.keeps_cores


def _gives_whole(config: SiteConfig, queue: QueueConfig) -> bool:
    """Whether the jobs of a queue have their nodes alone. Raises ExportError where they have some of them."""
    types = types_of(config, queue)
    alone = [each.exclusive for each in config.nodes if types is None or each.name in types]
    if any(alone) and not (all(alone) or queue.exclusive):
        raise ExportError(
            f"queue {queue.name}: jobs have some of its nodes alone and others not, and Slurm gives the jobs of a "
            "partition whole nodes or none: bind it to nodes of one kind, or give it exclusive: true"
        )
    return config.machine.whole_nodes or queue.exclusive or any(alone)


def _pool_gives_whole(config: SiteConfig) -> bool:
    """Whether jobs have nodes of the pool alone. Raises ExportError where some have and others not, or some nodes."""
    of_pool = {} if config.pool is None else config.pool.nodes
    users = [queue for queue in config.queues if types_of_pool(config, queue)]
    alone = {queue.exclusive or each.exclusive for queue in users for each in config.nodes if each.name in of_pool}
    if len(alone) > 1:
        raise ExportError(
            "pool: some jobs have nodes of it alone and others not, and Slurm gives the jobs of a partition whole "
            "nodes or none: make its nodes of one kind, and exclusive: true of all queues or of none"
        )
    return config.machine.whole_nodes or True in alone


def _held(config: SiteConfig) -> dict[str, list[tuple[float, dict[str, int]]]]:
    """Return the memory in MiB, endless where it is not counted, and the generic resources of the nodes of queues."""
    counted = any(each.memory for each in config.nodes)
    return {
        queue.name: [
            (each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
            for each in config.nodes
            if (types := types_of(config, queue)) is None or each.name in types
        ]
        for queue in (config.queues if _names_nodes(config) else ())
    }


def _parts(config: SiteConfig) -> dict[str, tuple[list[tuple[int, int, float, dict[str, int]]], ...]]:
    """Return number, cores, memory and generic resources of the nodes of partitions and of the pool, as `_held` has."""
    counted = any(each.memory for each in config.nodes)
    of = {
        each.name: (each.count, each.cores, each.memory if counted else 1e18, {**each.resources, "gpu": each.gpus})
        for each in config.nodes
    }
    return {
        queue.name: ([of[name] for name in queue.partition_nodes], [of[name] for name in types_of_pool(config, queue)])
        for queue in (config.queues if config.nodes and config.pool_cores else ())
    }


def _partitions(config: SiteConfig, hosts: dict[str, str]) -> Iterator[str]:
    """Write the lines of the partitions, and of the pool after them."""
    order = Multifactor.of(config.order)
    priorities = scale(config.queues).values if order is None or order.tiers else dict.fromkeys(config.names, 1)
    factors = priorities if order is None else dict.fromkeys(config.names, 1)
    tiers, modes = preemption.tiers(config) if config.has_tiers else priorities, preemption.modes(config)
    whole = ["OverSubscribe=EXCLUSIVE"]
    of_queues = kept.parts(config)
    lines = [
        (queue, name, cores)
        for queue in config.queues
        for name, cores in [(queue.name, None), *((part.name, part.cores) for part in of_queues.get(queue.name, ()))]
    ]
    for queue, name, cores in lines:
        tier = tiers[queue.name] if config.mode == "shared" or queue.reservation else 1
        yield " ".join(
            [
                *(f"PartitionName={name}", f"Nodes={hosts[name]}", f"MaxTime={clock(whole_minutes(queue)[1])}"),
                *([f"MaxCPUsPerNode={cores}"] if cores else []),
                *_sizes(config, queue.cores),
                *(f"PriorityTier={tier}", f"PriorityJobFactor={factors[queue.name]}"),
                *(whole if _gives_whole(config, queue) else []),
                *([f"PreemptMode={modes[queue.name]}"] if modes else []),
                *([f"QOS={qos_of(queue.name)}"] if is_limited(config, queue) else []),
                *([f"TRESBillingWeights={queue.billing}"] if queue.billing else []),
                *(f"{word}={names}" for word, names in _access(queue)),
                "State=UP",
            ]
        )
    if config.pool_cores:
        longest = max(whole_minutes(queue)[1] for queue in config.queues)
        pool = f"PartitionName={POOL} Nodes={hosts[POOL]} MaxTime={clock(longest)} PriorityTier=1 PriorityJobFactor=1"
        charged = {queue.billing for queue in config.queues}
        billing = [f"TRESBillingWeights={text}" for text in charged if text and len(charged) == 1]
        yield " ".join([pool, *(whole if _pool_gives_whole(config) else []), *billing, "State=UP"])


def _access(queue: QueueConfig) -> Iterator[tuple[str, str]]:
    """Yield who may use a queue as words of a partition and their names; those after a ``-`` are kept out."""
    for kind, names in queue.access or ():
        if names is None:
            continue
        out = [name.removeprefix("-") for name in names if name.startswith("-")]
        allowed, denied = ACCESS[kind]
        if not names or (out and (len(out) < len(names) or denied is None)):
            raise ExportError(
                f"queue {queue.name}: access of {kind} is a list of those let in, or for accounts and qos of those "
                f"kept out, each after a -; not {', '.join(names) or 'empty'}"
            )
        yield str(denied if out else allowed), ",".join(out or names)


def _sizes(config: SiteConfig, cores: tuple[int, int]) -> list[str]:
    """Write sizes in nodes, where a job of so many cores has so many nodes and no more."""
    node = config.machine.cores_per_node
    of_one_core = node == 1 and all(each.cores == 1 for each in config.nodes)
    if not (config.machine.whole_nodes or of_one_core):
        return []
    least, most = (-(-bound // node) for bound in cores)
    return [f"MinNodes={least}", *([f"MaxNodes={most}"] if cores[1] < MAX_CORES else [])]


def _qos(config: SiteConfig, queue: QueueConfig) -> Iterator[str]:
    """Write the limits of a queue; -1 takes back what an earlier configuration set."""
    limits = {word: getattr(queue, name) for name, word in LIMITS.items()}
    written = " ".join(f"{word}={-1 if limit is None else limit}" for word, limit in limits.items())
    yield f"add qos {qos_of(queue.name)}"
    yield f"modify qos {qos_of(queue.name)} set {written}"
    for word, limit in throttles.of_queue(config, queue.name):
        yield f"modify qos {qos_of(queue.name)} set {word}={limit}"


def is_limited(config: SiteConfig, queue: QueueConfig) -> bool:
    """Whether a queue has limits, always or for some hours, which its QOS holds."""
    return queue.limited or hours.has_hours(config, queue) or bool(throttles.of_queue(config, queue.name))


def set_limits(queue: QueueConfig, limits: Mapping[str, int | None]) -> list[str]:
    """Write the command that gives a queue these limits."""
    words = " ".join(f"{LIMITS[name]}={-1 if most is None else most}" for name, most in limits.items())
    return [f"sacctmgr --immediate modify qos {qos_of(queue.name)} set {words} > /dev/null"]


def qos_of(name: str) -> str:
    """Name the QOS that holds the limits of a queue: that which all jobs have must not."""
    return f"{name}-queue" if name.lower() == throttles.QOS else name


def clock(seconds: int) -> str:
    """Write seconds as Slurm's D-HH:MM:SS, or UNLIMITED."""
    if seconds >= MAX_DURATION:
        return "UNLIMITED"
    days, rest = divmod(seconds, 86400)
    return f"{days}-{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
