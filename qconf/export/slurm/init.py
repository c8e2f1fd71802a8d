"""Derive a first configuration from a slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

from qconf.config import ConfigError, MachineConfig, QOSConfig, QueueConfig, SiteConfig, ThrottleConfig
from qconf.errors import InputError
from qconf.export import hours
from qconf.export.base import Derived, Given
from qconf.export.slurm import qos, shortpools, throttles
from qconf.export.slurm.conf import Conf, is_yes
from qconf.export.slurm.queues import Partition, Reader
from qconf.export.slurm.settings import LONGEST_AGE, WEIGHTS, with_order
from qconf.export.slurm.throttles import USER_JOBS
from qconf.export.slurm.types import kinds
from qconf.export.types import Types, alike, counts, differ, kept, types
from qconf.text import grouped

#: Settings that affect starts but are not simulated: (values without effect, effect of others). All others affect no
#: start: paths, ports, accounting, limits that the log's jobs have met.
NOT_SIMULATED: dict[str, tuple[tuple[str, ...], str]] = {
    "JobSubmitPlugins": ((), "it may change jobs at submission; the log has what it left"),
    "TopologyPlugin": (
        ("topology/none", "topology/default", "topology/flat"),
        "jobs are put on nodes near each other, which is not simulated",
    ),
    "PrioritySiteFactorPlugin": (("site_factor/none",), "what it adds to priorities is not simulated"),
    "PriorityUsageResetPeriod": (("none",), "that use is forgotten then is not simulated"),
    "CompleteWait": (("0",), "that nothing starts while jobs complete is not simulated"),
    "Licenses": ((), "write licences: {name: number} to have them counted"),
    "FederationParameters": ((), "starts in other clusters are not simulated"),
    "SuspendProgram": ((), "the time in which nodes are powered up is not simulated"),
    "BurstBufferType": (("burst_buffer/none",), "waits for burst buffers are not simulated"),
}
#: Words of SchedulerParameters that are read, or do not affect a simulation.
PARAMETERS = {"bf_min_age_reserve", "bf_job_part_count_reserve", "bf_busy_nodes", USER_JOBS, "pack_serial_at_end"} | {
    *("bf_continue", "bf_interval", "bf_window_linear", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt"),
    *("bf_max_time", "batch_sched_delay", "build_queue_timeout", "max_rpc_cnt", "sched_interval", "max_script_size"),
    *("sched_min_interval", "sched_max_job_start", "max_array_tasks", "max_depend_depth", "kill_invalid_depend"),
    *("enable_user_top", "no_env_cache", "nohold_on_prolog_fail", "permit_job_expansion", "disable_remote_singleton"),
    *("salloc_wait_nodes", "sbatch_wait_nodes", "spec_cores_first", "ignore_prefer_validation", "bf_licenses"),
    *("requeue_setup_env_fail", "allow_zero_lic", "default_gbytes", "max_submit_line_size"),
}
FLAGS = {"", "NO_FAIR_TREE", "FAIR_TREE", "MAX_TRES", "CALCULATE_RUNNING"} | {
    *("NO_NORMAL_ALL", "NO_NORMAL_QOS", "NO_NORMAL_TRES"),
}


def not_simulated(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each setting that is not simulated."""
    for name, (idle, what) in NOT_SIMULATED.items():
        value = settings.get(name.lower(), "")
        if value and value.lower() not in idle:
            yield f"{name}={value}: {what}"
    words = [word.strip() for word in settings.get("schedulerparameters", "").split(",")]
    if others := [word for word in words if word and word.partition("=")[0].lower() not in PARAMETERS]:
        yield f"SchedulerParameters: not simulated: {', '.join(others)}"
    flags = [flag.strip() for flag in settings.get("priorityflags", "").split(",")]
    if others := [flag for flag in flags if flag.upper() not in FLAGS]:
        yield f"PriorityFlags: not simulated: {', '.join(others)}"
    if settings.get("prioritytype", "").lower() == "priority/multifactor":
        weights = {key: value for key, value in settings.items() if key.startswith("priorityweight") and value != "0"}
        listed = ", ".join(f"{WEIGHTS.get(key[14:], key[14:])}={value}" for key, value in sorted(weights.items()))
        yield (
            f"PriorityType=priority/multifactor ({listed or 'no weights'}): the order of the jobs of "
            "one priority is not taken over; they are first come, first served"
        )


def derive(path: str | Path, **given: Unpack[Given]) -> Derived:
    """Derive a configuration, as `Exporter.read` does; cores default to those of the nodes, name to ClusterName."""
    conf = Conf(path)
    total = given.get("cores") or sum(conf.nodes.values())
    if not total:
        fix = "; ".join([*conf.warnings, "give --cores, or the file that has the NodeName lines"])
        raise InputError("names no node", file=path, field="NodeName", fix=fix)
    table = None if (listed := given.get("qos")) is None else qos.read_table(listed)
    reader = _Reader(conf, _node_size(conf, total), total, table, given.get("records"))
    for quality, words in (table or {}).items():
        reader.warnings += qos.remarks(quality, words, of_queue=quality in reader.of_partitions)
    fields_of = [fields for fields in conf.partitions if fields["partitionname"] not in reader.parts]
    partitions = [each for fields in fields_of if (each := reader.partition(fields)) is not None]
    pools = [each for each in partitions if reader.is_pool(each.name)]
    partitions = reader.ordered([each for each in partitions if each not in pools])
    if not partitions:
        fix = "; ".join(conf.warnings) or "give the file that has the PartitionName lines"
        raise InputError("holds no partition that a job can enter", file=path, field="PartitionName", fix=fix)
    classes, limits = reader.qualities(partitions)
    shape = reader.divided(partitions, pools)
    whole = "nodes" not in shape and reader.whole_nodes([*partitions, *pools])
    if reader.unread:
        unread = "; ".join(f"{key} of {', '.join(names)}" for key, names in sorted(reader.unread.items()))
        reader.warnings.append(f"not taken over: {unread}")
    called = given.get("name") or conf.settings.get("clustername", "slurm")
    try:
        machine = MachineConfig(name=called, cores=total, cores_per_node=reader.size, whole_nodes=whole)
    except ValueError as error:
        raise InputError(f"no machine of {total} cores named {called!r} can be", file=path) from error
    try:
        config = SiteConfig.build(machine=machine, qos=classes, **reader.parts_of(shape, limits))
        config = with_order(config, reader, fields_of, partitions, given.get("shares"))
        if config.order != "fcfs":
            reader.warnings = [each for each in reader.warnings if not each.startswith("PriorityType=")]
        if config.pool is not None:
            config = with_promotion(config, conf)
        found = Derived(config).dedicated((), shortpools.read(conf, reader.size))
    except ConfigError as error:
        raise InputError(f"cannot be made a configuration: {error}", file=path) from error
    if config.reserve_after and not config.reservation_delay:
        reader.warnings.append(f"bf_min_age_reserve: as reserve_after it plays no part with mode {config.mode}")
    return Derived(found.config, tuple(dict.fromkeys([*reader.warnings, *found.warnings])))


def _node_size(conf: Conf, total: int) -> int:
    """Return the cores per node if all nodes have the same number, else 1."""
    sizes = {*conf.nodes.values()}
    size = sizes.pop() if len(sizes) == 1 else 1
    return size if size > 0 and total % size == 0 else 1


def with_promotion(config: SiteConfig, conf: Conf) -> SiteConfig:
    """Return `config` with the priorities and the pool's threshold from an export's qconf-promote."""
    text, number = conf.beside("qconf-promote"), r'Fraction\("([0-9/]+)"\)'
    found = re.search(rf"^THRESHOLD = {number}", text, re.MULTILINE)
    listed = re.findall(rf'^    "([^"]+)": \({number}, ', text, re.MULTILINE)
    priorities = {name: float(Fraction(priority)) for name, priority in listed}
    config = config.with_each(lambda queue: {"priority": priorities.get(queue.name, queue.priority)})
    if config.pool is None or found is None or float(Fraction(found[1])) == config.threshold:
        return config
    return config.replace(pool=config.pool.model_copy(update={"threshold": float(Fraction(found[1]))}))


class _Reader(Reader):
    """Builds a configuration from a slurm.conf; `warnings` lists what it cannot hold."""

    def qualities(self, partitions: Sequence[Partition]) -> tuple[tuple[QOSConfig, ...], tuple[ThrottleConfig, ...]]:
        """Read the QOS of jobs, and the limits of associations, of QOS and of partitions' QOS."""
        conf = self.conf
        limits = throttles.with_parameters(throttles.read(conf), self.parameters)
        others = {name: words for name, words in (self.table or {}).items() if name not in self.of_partitions}
        classes, of_classes = qos.read(conf) if self.table is None else qos.configs(others)
        limits = (*limits, *of_classes, *self.throttles(partitions))
        weighed = conf.settings.get("priorityweighttres", "").lower()
        self.counted = {name for each in limits for name in each.max_run_resources}
        self.counted |= {name for word, name in (("gres/gpu=", "gpus"), ("mem=", "memory")) if word in weighed}
        return classes, limits

    def parts_of(self, shape: dict[str, Any], limits: Sequence[ThrottleConfig]) -> dict[str, Any]:
        """Return the fields for partitions, limits and backfilling, with warnings for what is not simulated."""
        counted = {name for each in shape.get("nodes", ()) for name, amount in each.amounts.items() if amount}
        parts = {
            "throttles": throttles.counted_only(limits, counted, self.warnings),
            "hours": tuple(hours.read_hours(self.conf.beside(hours.FILE))),
            **self.discipline(),
            **shape,
        }
        tiered = len({queue.tier for queue in shape["queues"]}) > 1
        suspended = [queue.name for queue in shape["queues"] if queue.preempted == "suspend"]
        if suspended and counted:
            self.warnings.append(
                f"{', '.join(suspended)}: suspended jobs keep their GPUs and memory in Slurm, and give them back "
                "in the simulator until they go on"
            )
        if tiered:
            if (parts["reserve"], parts["reservation_depth"]) != ("cores", 1):
                self.warnings.append("reservations of each partition: with tiers one for all is simulated")
            parts |= {"reserve": "cores", "reservation_depth": 1}
        elif "nodes" in shape and self.fills_nodes_best and parts["reserve"] == "queues":
            parts["reserve"] = "queue_nodes"
        return parts

    def whole_nodes(self, partitions: Sequence[Partition]) -> bool:
        """Whether jobs get whole nodes; false, with a warning, if only some do or nodes are unequal."""
        exclusive = [each.name for each in partitions if self.gives_whole(each)]
        some, unequal = len(exclusive) < len(partitions), self.size == 1 < max(self.conf.nodes.values(), default=1)
        if exclusive and (some or unequal):
            why = "others do not" if some else "the nodes are unequal"
            self.warnings.append(f"{', '.join(exclusive)}: jobs get whole nodes, and {why}: simulated by cores")
            return False
        return bool(exclusive) and self.size > 1

    def ordered(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Sort the partitions in routing order: a job without a partition goes to the first that admits it."""
        if self.routes:
            order = {name: position for position, name in enumerate(self.routes)}
            return sorted(partitions, key=lambda each: order.get(each.name, len(order)))
        default = [each for each in partitions if is_yes(each.fields.get("default", "NO"))][-1:]
        if default and default[0] is not partitions[0]:
            self.warnings.append(f"{default[0].name}: first of the queues, since jobs that name none go to it")
        return [*default, *(each for each in partitions if each not in default)]

    @property
    def parameters(self) -> set[str]:
        """The words of SchedulerParameters; empty without backfilling."""
        if self.conf.settings.get("schedulertype", "").lower() == "sched/builtin":
            return set()
        return {word.strip().lower() for word in self.conf.settings.get("schedulerparameters", "").split(",")}

    @property
    def reserves_as_exported(self) -> bool:
        """Whether each partition has one reservation, on busy nodes if possible, as with an export."""
        return {"bf_busy_nodes", "bf_job_part_count_reserve=1"} <= self.parameters

    @property
    def fills_nodes_best(self) -> bool:
        """Whether Slurm selects nodes like `reserve: queue_nodes` (rule "rows of nodes")."""
        settings = {key: value.lower() for key, value in self.conf.settings.items()}
        select = {word.strip() for word in settings.get("selecttypeparameters", "").split(",")}
        others = select & {"cr_lln", "cr_socket", "cr_socket_memory"} or "pack_serial_at_end" in self.parameters
        topology = settings.get("topologyplugin", "topology/none")
        lln = any(is_yes(fields.get("lln", "NO")) for fields in self.conf.partitions)
        plain = topology in ("topology/none", "topology/default", "topology/flat")
        return settings.get("selecttype") == "select/cons_tres" and plain and not others and not lln

    def discipline(self) -> dict[str, Any]:
        """Read backfilling, reservations and their delay; warn about settings that are not simulated."""
        settings = self.conf.settings
        self.warnings += not_simulated({} if self.conf.exported else settings)
        other = settings.get("preempttype", "preempt/none")
        if not self.preempts and other.lower() != "preempt/none":
            self.warnings.append(f"PreemptType={other}: jobs are preempted, which is not simulated")
        backfill = settings.get("schedulertype", "").lower() != "sched/builtin"
        parameters = self.parameters
        depths = [int(word[26:]) for word in parameters if re.fullmatch("bf_job_part_count_reserve=[0-9]{1,9}", word)]
        depth = depths[0] if depths else 1
        return {
            "backfill": backfill,
            "reserve": "queues" if self.reserves_as_exported else "cores",
            "reservation_depth": depth or None,  # 0 is no limit
            "reserve_after": self._reserve_after(),
        }

    def _reserve_after(self) -> int:
        """Read bf_min_age_reserve in seconds from SchedulerParameters; 0 if Slurm would reject it."""
        parameters = self.conf.settings.get("schedulerparameters", "")
        found = re.search(r"(?:^|,)\s*bf_min_age_reserve=([^,\s]*)", parameters, re.IGNORECASE)
        if found is None:
            return 0
        if re.fullmatch(r"[0-9]{1,7}", found[1]) and int(found[1]) <= LONGEST_AGE:
            return int(found[1])
        self.warnings.append(f"bf_min_age_reserve={found[1]} is no number of seconds up to {LONGEST_AGE}: left out")
        return 0

    def divided(self, partitions: Sequence[Partition], pools: Sequence[Partition]) -> dict[str, Any]:
        """Return the fields mode, queues, and nodes or pool.

        The machine is partitioned if partitions share no node and nodes do not differ, else shared.
        """
        nodes = self.conf.nodes
        every = frozenset(nodes)
        own = [each.hosts for each in (*partitions, *pools) if each.hosts not in (every, frozenset())]
        parted = own and frozenset().union(*own) == every and sum(map(len, own)) == len(every)
        highest = max((each.tier for each in partitions if each.hosts != every), default=0)
        below = [each.name for each in partitions if each.hosts == every and each.tier < highest]
        several = self.preempts and len({each.tier for each in partitions}) > 1
        everywhere = several and any(each.hosts == every for each in partitions)
        shared = not parted or below or everywhere or sum(nodes.values()) != self.total
        found = self._types(partitions, shared=bool(shared), pooled=bool(pools))
        if found:
            queues = [self._queue(each, sum(map(nodes.__getitem__, each.hosts))) for each in self._tiered(partitions)]
            alone = {each.name for each in partitions if self.gives_whole(each)}
            bound = [
                queue.model_copy(update={"nodes": found.bound[queue.name], "exclusive": queue.name in alone})
                for queue in queues
            ]
            return {"mode": "shared", "queues": bound, "nodes": found.nodes}
        if shared:
            if own:
                self.warnings.append(
                    "the partitions share some nodes and not others, or leave some out: taken as one shared machine; "
                    "of a queue as many cores may run as its partition has"
                )
            return {"mode": "shared", "queues": [self._queue(each, self.total) for each in self._tiered(partitions)]}
        queues = []
        for each in partitions:
            share = sum(nodes[host] for host in each.hosts)
            update = {"partition": 0, "reservation": True} if each.hosts == every else {"partition": share}
            queues.append(self._queue(each, share).model_copy(update=update))
        if not pools:
            return {"mode": "partitioned", "queues": queues}
        pool = {"cores": sum(nodes[host] for each in pools for host in each.hosts), "entry": "move"}
        return {"mode": "hybrid", "queues": queues, "pool": pool}

    def _types(self, partitions: Sequence[Partition], *, shared: bool, pooled: bool) -> Types | None:
        """Return the types of the nodes, None if all are alike or differ only by partition."""
        conf = self.conf
        if not conf.nodes or sum(conf.nodes.values()) != self.total or not all(conf.nodes.values()):
            return None
        tiers = self.preempts and len({each.tier for each in partitions}) > 1
        weighed = self.fills_nodes_best and self.reserves_as_exported and not tiers
        found = alike(kinds(conf, self.counted, weighed=weighed))
        partly = any(len(each.hosts) < len(found) for each in partitions)
        some_whole = len({self.gives_whole(each) for each in partitions}) > 1
        unequal = len({replace(kind, weight=1) for kind in found.values()}) > 1
        several = differ(found.values()) or (shared and (partly or some_whole or unequal))
        if not (several or counts(found.values(), self.counted, self.records)):
            if self.records is None and "memory" in conf.settings.get("selecttypeparameters", "").lower():
                self.warnings.append("RealMemory is not counted, all nodes are alike: --history shows whether it binds")
            return None
        if pooled:
            if differ(found.values()):
                self.warnings.append("types of nodes are not simulated with a pool: left out")
            return None
        for each in partitions:
            if "maxcpuspernode" in each.fields:
                self.warnings.append(f"{each.name}: MaxCPUsPerNode: a limit of what runs on all of its nodes together")
        called = {frozenset(names): name for names, name in conf.called.items()}
        usable = {each.name: each.hosts or frozenset(found) for each in partitions}
        return self._keeping(types(found, usable, self.warnings, called))

    def _keeping(self, found: Types) -> Types:
        """Return the types with `kept_per_gpu`, read from partitions for jobs without GPUs."""
        parts = [fields for fields in self.conf.partitions if fields["partitionname"] in self.parts]
        capped = [fields for fields in parts if "maxcpuspernode" in fields]
        caps = grouped((int(fields["maxcpuspernode"]), host) for fields in capped for host in self.conf.hosts(fields))
        return found._replace(nodes=kept(found.nodes, caps)) if caps else found

    def _queue(self, partition: Partition, share: int) -> QueueConfig:
        """Return the queue with its priority, and max_run_cores if its partition has less than `share` cores."""
        own = partition.queue.max_run_cores
        limit = min(own or share, partition.cores) if partition.hosts and partition.cores < share else own
        return partition.queue.model_copy(update={"priority": partition.priority, "max_run_cores": limit})

    def _tiered(self, partitions: Sequence[Partition]) -> Sequence[Partition]:
        """Set tiers or priorities of the partitions, so that a higher PriorityTier always comes first."""
        factors = self.conf.settings.get("priorityweightpartition", "0") != "0"
        if self.preempts and len(levels := sorted({each.tier for each in partitions})) > 1:
            for each in partitions:
                below = {"preempted": self.preempted(each)} if each.tier < levels[-1] else {}
                each.queue = each.queue.model_copy(update={"tier": levels.index(each.tier)} | below)
                each.priority = float(max(1, each.factor)) if factors else 1.0
            return partitions
        keys = [(each.tier, each.factor if factors else 1) for each in partitions]
        if not factors and len({*keys}) < len({(each.tier, each.factor) for each in partitions}):
            self.warnings.append("PriorityJobFactor: counts with a PriorityWeightPartition only, left out")
        values = [float(max(1, factor if factors and factor > 1 else tier)) for tier, factor in keys]
        pairs = sorted({*zip(keys, values, strict=True)})
        if any(above <= below for (_, below), (_, above) in pairwise(pairs)):
            self.warnings.append("PriorityTier goes before PriorityJobFactor: priorities are ranks by both")
            ranks = {key: float(rank) for rank, key in enumerate(sorted({*keys}), start=1)}
            values = [ranks[key] for key in keys]
        for each, value in zip(partitions, values, strict=True):
            each.priority = value
        return partitions
