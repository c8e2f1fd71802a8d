"""A configuration for Slurm: partitions, QOS, a routing plugin and the plan. Nothing is run from here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import POOL_SUFFIX, QueueConfig, SiteConfig, format_duration
from qconf.export.errors import ExportError, checked_queue
from qconf.export.pbs import nodes as node_lists
from qconf.export.pbs.nodes import Node
from qconf.export.pbs.order import scale
from qconf.export.pbs.scripts import Export, comment_name, exact
from qconf.export.templates import render

POOL = "pool"  #: name of the partition that is the common pool
LONGEST_AGE = 30 * 86400  #: a larger bf_min_age_reserve is an error to Slurm, and counts as none


def export_slurm(config: SiteConfig, *, nodes: Sequence[Node] | None = None) -> dict[str, str]:
    """Write a configuration for Slurm.

    Parameters
    ----------
    config : SiteConfig
    nodes : sequence of Node, optional
        The nodes that the partitions may use; a machine that is shared needs none.

    Returns
    -------
    dict of str to str
        File name to text.

    Raises
    ------
    ExportError
        Slurm cannot say it, or a name may not enter a file.
    """
    return prepare_slurm(config, nodes=nodes).files


def prepare_slurm(config: SiteConfig, *, nodes: Sequence[Node] | None = None) -> Export:
    """Do what `export_slurm` does, and return its notes too."""
    pool = config.pool_cores
    _refuse(config, nodes)
    places = _places(config, nodes)
    limited = [queue for queue in config.queues if _qos(queue)]
    pooled = [queue for queue in config.queues if pool and not queue.reservation]
    files = {
        "partitions.conf": render(
            "slurm/partitions.conf", machine=comment_name(config), lines=list(_partitions(config, places))
        ),
        "job_submit.lua": render(
            "slurm/job_submit.lua",
            queues=[
                {
                    "name": queue.name,
                    "least": queue.cores[0],
                    "most": queue.cores[1] if queue.cores[1] < MAX_CORES else "math.huge",
                    "above": queue.walltime[0],
                    "upto": queue.walltime[1] if queue.walltime[1] < MAX_DURATION else "math.huge",
                }
                for queue in config.queues
            ],
            pool=POOL if pool else None,
            node=config.machine.cores_per_node if config.machine.whole_nodes else None,
        ),
    }
    if limited:
        files["qos.sacctmgr"] = "".join(
            f"add qos {queue.name}\nmodify qos {queue.name} set {' '.join(_qos(queue))}\n" for queue in limited
        )
    if pool and config.pool is not None:
        files["qconf-promote"] = render(
            "slurm/promote.py",
            threshold=exact(config.threshold),
            pool=pool,
            pool_name=POOL,
            grid=config.grid,
            queues=[
                {
                    "name": queue.name,
                    "priority": exact(queue.priority),
                    "partition": queue.partition,
                    "longest": queue.walltime[1] if queue.walltime[1] < MAX_DURATION else None,
                }
                for queue in pooled
            ],
        )
    notes = list(_unsaid(config))
    files["PLAN.md"] = render(
        "slurm/plan.md",
        machine=comment_name(config),
        mode=config.mode,
        scheduler="sched/backfill" if config.backfill else "sched/builtin",
        limited=[queue.name for queue in limited],
        pool=bool(pool),
        age=min(config.reservation_delay, LONGEST_AGE),
        notes=notes,
    )
    return Export(files, notes)


def _refuse(config: SiteConfig, nodes: Sequence[Node] | None) -> None:
    for queue in config.queues:
        checked_queue(queue.name)
        if queue.name.lower() in ("default", "all") or (config.pool_cores and queue.name == POOL):
            raise ExportError(f"queue name {queue.name!r} means something else to Slurm, or to the pool: rename it")
    lowered = [queue.name.lower() for queue in config.queues]
    if len(set(lowered)) < len(lowered):
        raise ExportError("queue names that differ in case only are one QOS to Slurm: rename one of them")
    if config.order != "fcfs":
        raise ExportError(
            f"order {config.order!r}: Slurm's priority is a weighted sum and cannot say it; export with order: fcfs, "
            "or to PBS"
        )
    if config.mode != "shared" and nodes is None:
        raise ExportError("partitions are made of nodes: name them with --nodes")


def _places(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, str]:
    """Say which nodes each partition has, as a host list."""
    if nodes is None:
        return {queue.name: "ALL" for queue in config.queues}
    node_lists.check_machine(config, nodes)
    every = hostlist([node.name for node in nodes])
    if config.mode == "shared":
        return {queue.name: every for queue in config.queues}
    wanted = node_lists.assign(config, nodes)
    owned: dict[str, list[str]] = {}
    for name, qlist in wanted.items():
        owner = qlist.split(",")[0]
        if config.pool_cores and owner.endswith(POOL_SUFFIX) and owner not in config.names:
            owner = POOL
        owned.setdefault(owner, []).append(name)
    places = {name: hostlist(names) for name, names in owned.items()}
    return {**places, **{queue.name: every for queue in config.queues if queue.reservation}}


def _partitions(config: SiteConfig, places: dict[str, str]) -> Iterator[str]:
    """Write the lines of the partitions, and of the pool after them."""
    priorities = scale(config.queues).values
    for queue in config.queues:
        if queue.name not in places:  # a partition without nodes: its jobs go to the pool
            places[queue.name] = '""'
        tier = priorities[queue.name] if config.mode == "shared" or queue.reservation else 1
        yield " ".join(
            [
                f"PartitionName={queue.name}",
                f"Nodes={places[queue.name]}",
                f"MaxTime={clock(queue.walltime[1])}",
                *_sizes(config, queue.cores),
                f"PriorityTier={tier}",
                f"PriorityJobFactor={priorities[queue.name]}",
                *(["OverSubscribe=EXCLUSIVE"] if config.machine.whole_nodes else []),
                *([f"QOS={queue.name}"] if _qos(queue) else []),
                "State=UP",
            ]
        )
    if config.pool_cores:
        longest = max(queue.walltime[1] for queue in config.queues)
        exclusive = " OverSubscribe=EXCLUSIVE" if config.machine.whole_nodes else ""
        yield (
            f"PartitionName={POOL} Nodes={places[POOL]} MaxTime={clock(longest)} PriorityTier=1 "
            f"PriorityJobFactor=1{exclusive} State=UP"
        )


def _sizes(config: SiteConfig, cores: tuple[int, int]) -> list[str]:
    """Say sizes in nodes, where a job of so many cores has so many nodes and no more."""
    node = config.machine.cores_per_node
    if not (config.machine.whole_nodes or node == 1):
        return []
    least, most = (-(-bound // node) for bound in cores)
    return [f"MinNodes={least}", *([f"MaxNodes={most}"] if cores[1] < MAX_CORES else [])]


def _qos(queue: QueueConfig) -> list[str]:
    """Write the limits of a queue that has some; -1 takes back what an earlier configuration set."""
    limits = {
        "GrpJobs": queue.max_run,
        "GrpTRES=cpu": queue.max_run_cores,
        "MaxJobsPerUser": queue.max_user_run,
        "MaxTRESPerUser=cpu": queue.max_user_cores,
    }
    return [f"{key}={-1 if limit is None else limit}" for key, limit in limits.items()] if queue.limited else []


def _unsaid(config: SiteConfig) -> Iterator[str]:
    """Name what Slurm does otherwise than the simulator."""
    if any(queue.starvation is not None for queue in config.queues):
        yield "Starvation periods have no form in Slurm: PriorityWeightAge raises waiting jobs slowly instead."
    if any(queue.reservation for queue in config.queues) and config.mode != "shared":
        yield (
            "Advance reservations: the queue's partition spans all nodes at a higher PriorityTier, and Slurm's "
            "backfill reserves time for its first jobs; the shares of the partitions have no form in Slurm."
        )
    if any(bound % 60 for queue in config.queues for bound in queue.walltime if bound < MAX_DURATION):
        yield "Slurm counts walltime in minutes: limits that are no whole minutes are enforced by job_submit.lua only."
    if config.pool is not None and config.pool_cores:
        yield "The pool goes by Slurm's own order, by submission, not by priority factor: only the entry does."
        if config.pool.entry == "either":
            yield "pool entry `either` is exported as `move`."
        if config.pool.placement == "combined":
            yield "pool placement `combined` is exported as `pool`: a job runs in one partition."
    if config.reservation_delay:
        yield (
            f"A job gets a reservation once it has waited {format_duration(config.reservation_delay)}: bf_min_age_reserve "
            "counts from when it is eligible to run, the simulator from its submission."
        )
    if config.reservation_delay > LONGEST_AGE:
        yield f"bf_min_age_reserve is at most {format_duration(LONGEST_AGE)}, which is exported instead."
    if config.mode == "shared" and any(queue.partition for queue in config.queues):
        yield "Partition sizes are not exported: the mode is shared."


def clock(seconds: int) -> str:
    """Write seconds as Slurm's D-HH:MM:SS, or UNLIMITED."""
    if seconds >= MAX_DURATION:
        return "UNLIMITED"
    days, rest = divmod(seconds, 86400)
    return f"{days}-{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def hostlist(names: Sequence[str]) -> str:
    """Write node names short: ``nid[0001-0018,0020],login``."""
    groups: dict[tuple[str, int], list[int]] = {}
    plain = []
    for name in names:
        match = re.fullmatch(r"(.*?)([0-9]{1,9})", name)
        if match:
            groups.setdefault((match[1], len(match[2])), []).append(int(match[2]))
        else:
            plain.append(name)
    parts = []
    for (prefix, width), numbers in groups.items():
        ranges: list[list[int]] = []
        for number in sorted(numbers):
            if ranges and number == ranges[-1][1] + 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        said = ",".join(f"{a:0{width}d}" if a == b else f"{a:0{width}d}-{b:0{width}d}" for a, b in ranges)
        parts.append(f"{prefix}{said}" if len(numbers) == 1 else f"{prefix}[{said}]")
    return ",".join([*parts, *plain])
