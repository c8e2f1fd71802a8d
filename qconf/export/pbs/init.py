"""Derive a first configuration from a PBS server's state, with warnings about contradictions in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from parsim.model.system import MOST_NODE_CORES
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import (
    POOL_SUFFIX,
    ConfigError,
    MachineConfig,
    PoolConfig,
    QOSConfig,
    QueueConfig,
    ShareConfig,
    SiteConfig,
    ThrottleConfig,
    format_clock,
)
from qconf.errors import InputError
from qconf.export.base import Derived
from qconf.export.nodes import Node, of_statements, read_text
from qconf.export.pbs import qos as qualities
from qconf.export.pbs import throttles
from qconf.export.pbs.differences import prime_time
from qconf.export.pbs.fairshare import with_shares
from qconf.export.pbs.merging import newer
from qconf.export.pbs.order import read_order
from qconf.export.pbs.preemption import read_tiers
from qconf.export.pbs.queues import ALL_TOP_JOBS, Reader, within
from qconf.export.pbs.server import ABOUT, TRUE, Scheduler, Server, as_pbs, is_torque, seconds
from qconf.export.pbs.types import bindings, has_alone, kinds, of_sharing, read_kept, usable
from qconf.export.types import Types, alike, counts, differ, types
from qconf.history import Records
from qconf.history.records import most_at_once

if TYPE_CHECKING:
    from qconf.export.pbs import PbsExporter

WHOLE = "give the whole output of qmgr -c 'print server', with its Execution queues"
ASK_FOR_SERVER = "the default queue and the limits of the server are not known: put qstat -Bf into the file too"
ASK_FOR_SCHEDULER = (
    "give the scheduler's sched_config with --scheduler: PBS is shipped with strict_ordering: false, and then reserves "
    "nothing for jobs that wait. Without the file strict_ordering: True is supposed; waits of wide jobs may be wrong"
)


def derive(
    server: Server,
    *,
    cores: int | None = None,
    nodes: Sequence[Node] | None = None,
    scheduler: Scheduler | None = None,
    name: str = "pbs",
    shares: Sequence[ShareConfig] = (),
    qos: Sequence[QOSConfig] = (),
    records: Records | None = None,
    like: SiteConfig | None = None,
) -> Derived:
    """Derive a configuration, as `Exporter.read` does.

    ``print server`` shows neither the machine's size nor its nodes. The size comes from `cores` or `nodes`, partitions
    and pool from the nodes' Qlist, types from differences of nodes. `scheduler`, `shares` and `qos` add settings that
    the server does not show. Without nodes, machine and nodes are those of `like`, if given.
    """
    of_torque, settings = is_torque(server), scheduler or Scheduler()
    server = newer(as_pbs(server) if of_torque else server)
    nodes = [node for node in nodes or () if node.cores != 0]
    reader = Reader(server, nodes, like)
    names = reader.names()
    if reader.free and not _is_divided(server, names, nodes, settings):
        reader = Reader(server, nodes, like, divided=False)
        names = reader.names()
    asking = [] if scheduler is not None else [ABOUT if of_torque else ASK_FOR_SCHEDULER]
    reader.warnings[:0] = [*asking, *([ABOUT] if of_torque and not asking else [])]
    reader.warnings += [f"{name}: left out, it has no queue_type" for name in server.untyped]
    if down := [node.name for node in nodes if node.down]:
        reader.warnings.append(f"{len(down)} nodes are down or offline: counted as the others, as if they were up")
    reader.warnings += [hooks] if (hooks := server.own_hooks) else []
    if not names:
        raise InputError("holds no Execution queue that jobs can enter", file=server.file, fix=WHOLE)
    queues = [queue for queue in map(reader.queue, names) if queue is not None]
    if not queues:
        raise InputError("holds no queue that a job can enter", file=server.file, fix=WHOLE)
    division = _Division(reader, queues, settings, records)
    machine = division.machine(cores, name)
    shape = division.shape(machine, [within(queue, machine.cores, reader.warnings) for queue in queues])
    if like is not None:
        machine, shape = like.machine, _shaped(shape, like, server)
    if not shape["queues"]:
        wanted = sorted({each for held in server.queues.values() for each in bindings(held)})
        said = f"no queue may use any of the nodes: queues ask for {', '.join(wanted)}"
        fix = "give all nodes of the server, with what they have: --nodes with `pbsnodes -av` output"
        raise InputError(said, file=server.file, fix=fix)
    formerly = (settings.value("backfill") or "true").lower() in TRUE
    backfill = server.attributes.get("backfill_depth") != "0" and formerly
    try:
        throttles = reader.throttles(shape.get("nodes", ()))
        fields = {"machine": machine, "backfill": backfill, "qos": qualities.completed(qos, throttles), **shape}
        config = _consistent(fields, throttles, reader.warnings)
        config = _with_top_job(config, nodes, scheduler, server, reader.warnings)
        config = read_tiers(config, server, settings, reader.warnings)
        config = read_order(config, server, settings, reader.warnings)
        config = _helped(config, settings, reader.warnings, waits=of_torque)
        config = with_shares(config, shares, settings, reader.warnings)
    except ConfigError as error:
        raise InputError(f"cannot be made a configuration: {error}", field="print server") from error
    contradictions = [*reader.contradictions(config), *prime_time(config, settings)]
    return Derived(config, tuple(dict.fromkeys([*reader.warnings, *contradictions, *config.warnings()])))


def present(config: SiteConfig, server: Server, options: PbsExporter) -> SiteConfig | None:
    """Return the server's present configuration, None if it cannot be read.

    If the nodes are not known, the properties that they show are taken from `config`.
    """
    nodes = options.nodes
    if nodes is None and server.file is not None:
        nodes = of_statements(read_text(server.file), server.file)
    nodes = nodes if nodes and all(node.cores for node in nodes) else None
    try:
        return derive(
            server,
            nodes=nodes,
            scheduler=options.scheduler,
            cores=None if nodes else config.machine.cores,
            shares=options.shares or (),
            qos=qualities.read(server.file.parent) if server.file else (),
            like=None if nodes else config,
        ).config
    except InputError:
        return None


def _is_divided(server: Server, names: Sequence[str], nodes: Sequence[Node], scheduler: Scheduler) -> bool:
    """Whether these queues divide the machine into separate parts; also true if its nodes are unknown."""
    if not nodes or not any(node.qlist for node in nodes):
        return True
    held = usable(server, names, nodes, scheduler, [])
    parts = [held[name] for name in names if not server.is_pool_queue(name + POOL_SUFFIX)]
    return sum(map(len, parts)) == len(frozenset().union(*parts))


class _Division:
    """Derives the machine and its division: mode, partitions and pool, or types of nodes."""

    def __init__(
        self, reader: Reader, queues: Sequence[QueueConfig], scheduler: Scheduler, records: Records | None
    ) -> None:
        self.server, self.nodes, self.warnings = reader.server, reader.nodes, reader.warnings
        self.queues, self.scheduler, self.records = queues, scheduler, records
        self.bound = [q.name for q in queues if "default_chunk.Qlist" in self.server.queues[q.name]]
        self.pooled = [q.name for q in queues if self.server.is_pool_queue(q.name + POOL_SUFFIX)]
        self.qlists = [(node.qlist or "").split(",") for node in self.nodes]
        self.types = self._types()

    def machine(self, cores: int | None, name: str) -> MachineConfig:
        """Return the machine; without nodes or `cores`, guess its size from the log or the queues."""
        nodes, sizes = self.nodes, {node.cores for node in self.nodes}
        if nodes and all(sizes):
            total = sum(node.cores or 0 for node in nodes)
            if cores is not None and cores != total:
                raise InputError(f"the nodes have {total} cores", field="--cores", value=cores, fix="leave it out")
            if len(sizes) > 1 and self.types is None:
                self.warnings.append("machine.cores_per_node: the nodes are of different sizes, 1 was taken")
            per_node = (sizes.pop() or 1) if len(sizes) == 1 else 1
            whole = self.types is None and self.whole()
            return MachineConfig(name=name, cores=total, cores_per_node=per_node, whole_nodes=whole)
        if cores is None and self.records is not None and (cores := most_at_once(self.records.table) or None):
            self.warnings.append(
                f"machine.cores = {cores} is the most that ran at once in the log: print server does not have the "
                "machine's size. Edit it, or give --cores or --nodes with `pbsnodes -av` output"
            )
        if cores is None:
            limits = [q.max_run_cores or 0 for q in self.queues]
            widest = [q.cores[1] if q.cores[1] < MAX_CORES else q.cores[0] for q in self.queues]
            has = self.server.attributes.get("resources_available.ncpus", "")
            cores = max(1, *limits, *widest, int(has) if re.fullmatch("[0-9]{1,9}", has) else 0)
            if self.bound:
                cores = max(cores, sum(limits), sum(q.cores[0] for q in self.queues))
            if self.pooled:  # add cores for the pool
                cores += max(1, min(q.max_run_cores or q.cores[0] for q in self.queues))
            cores = min(cores, MAX_CORES)
            self.warnings.append(
                f"machine.cores = {cores} is a guess from the queues' limits: print server does not have the machine's "
                "size. Edit it, or give --cores or --nodes with `pbsnodes -av` output"
            )
        per_node = cores // len(nodes) if nodes and cores % len(nodes) == 0 else 1
        return MachineConfig(name=name, cores=cores, cores_per_node=per_node, whole_nodes=self.whole())

    def whole(self) -> bool:
        """Whether every node serves one job at a time."""
        exclusive = sum(node.exclusive for node in self.nodes)
        if 0 < exclusive < len(self.nodes):
            self.warnings.append(
                f"machine.whole_nodes: {exclusive} of {len(self.nodes)} nodes are given whole (sharing = default_excl "
                "or force_excl), and a configuration has one answer for all: false was taken"
            )
        return 0 < exclusive == len(self.nodes)

    def shape(self, machine: MachineConfig, queues: Sequence[QueueConfig]) -> dict[str, Any]:
        """Return the fields mode, queues, and pool or nodes."""
        if self.types is not None:
            bound = self.types.bound
            attributes = {q.name: {**self.server.attributes, **self.server.queues[q.name]} for q in queues}
            held = [
                q.model_copy(update={"nodes": bound[q.name], "exclusive": has_alone(attributes[q.name])})
                for q in queues
                if bound[q.name] != ()
            ]
            self.warnings += [f"{q.name}: left out, it may use no node" for q in queues if bound[q.name] == ()]
            return {"mode": "shared", "queues": held, "nodes": self.types.nodes}
        if not self.bound:
            return {"mode": "shared", "queues": list(queues)}
        reserved = self.reserved()
        own = [q for q in queues if q.name not in reserved]
        if any(map(any, self.qlists)):
            sizes = self.sizes_by_nodes(own)
        else:
            sizes = self.sizes_by_limits(machine, own)
            self.warnings.append(
                "partition and pool sizes are a guess: the queues are bound to nodes by Qlist, which print server does "
                "not show. Edit them, or give --nodes with `pbsnodes -av` output"
            )
        pool = machine.cores - sum(sizes.values())
        parted = [
            q.model_copy(update={"partition": sizes.get(q.name, 0), "reservation": q.name in reserved}) for q in queues
        ]
        if self.pooled or not own:  # without partitions, queues with reservations need a pool to run in
            both = any({name, name + POOL_SUFFIX} <= set(qlist) for qlist in self.qlists for name in self.pooled)
            found = PoolConfig(cores=pool, entry="move", placement="combined" if both else "pool")
            return {"mode": "hybrid", "queues": parted, "pool": found}
        _give_rest(parted, pool, self.warnings)  # the cores of nodes without a queue
        return {"mode": "partitioned", "queues": parted}

    def _types(self) -> Types | None:
        """Return the types of the nodes, None if all are alike or differ only by partition."""
        nodes, server, names = self.nodes, self.server, [queue.name for queue in self.queues]
        holders = [server.attributes, *(server.queues[name] for name in names)]
        by = {resource for attributes in holders for resource in bindings(attributes)}
        whole = [name for name in names if has_alone({**server.attributes, **server.queues[name]})]
        others = by - {"Qlist"} or {node.queue for node in nodes if node.queue}
        if not nodes or not all(node.cores for node in nodes):
            if by - {"Qlist"}:
                self.warnings.append(
                    f"queues are bound to nodes by {', '.join(sorted(by))}, which print server does not show: give "
                    "--nodes with `pbsnodes -av` output"
                )
            if whole:
                self.warnings.append(
                    f"{', '.join(whole)}: jobs have nodes alone by resources_default.place, which is simulated with "
                    "the nodes: give --nodes with `pbsnodes -av` output"
                )
            return None
        self.warnings += of_sharing(nodes)
        found = alike(kinds(nodes, server, self.scheduler, by, self.warnings))
        divided = bool(self.bound) and not others and len(self.bound) == len(names) and not self._overlap()
        held = usable(server, names, nodes, self.scheduler, self.warnings) if others or not divided else {}
        partly = any(len(each) < len(nodes) for each in held.values())
        limited = {name for attributes in holders for name in throttles.resources(attributes).values()}
        several = differ(found.values()) or partly or (len({*found.values()}) > 1 and not divided)
        if not (whole or several or counts(found.values(), limited, self.records)):
            return None
        if self.pooled or (self.bound and not any(map(any, self.qlists))):
            why = "with a pool" if self.pooled else "on a divided machine whose nodes are not known"
            self.warnings.append(f"types of nodes are not simulated {why}: left out")
            return None
        of_queues = held or usable(server, names, nodes, self.scheduler, self.warnings)
        result = types(found, of_queues, self.warnings)
        return result._replace(nodes=read_kept(result.nodes, nodes, self.scheduler))

    def _overlap(self) -> bool:
        """Whether a node is in the partition of several queues."""
        own = {*self.bound} - {*self.reserved()}
        return any(len(own & {*qlist}) > 1 for qlist in self.qlists)

    def reserved(self) -> list[str]:
        """Return the queues with reservations, which run on the nodes of all others."""
        qlists = [qlist for qlist in self.qlists if any(qlist)]
        if qlists and len(self.bound) > 1:
            owners = {qlist[0] for qlist in qlists}  # an export writes the owner first
            everywhere = [name for name in self.bound if all(name in qlist for qlist in qlists)]
            return [name for name in everywhere if name not in owners or len(owners) > 1]
        unpooled = [name for name in self.bound if self.pooled and name not in self.pooled]
        formula = self.server.attributes.get("job_sort_formula", "")
        first = set(re.findall(r"1e38(?: \+ \(eligible_time >= [0-9]+\))? if queue_priority == ([0-9]+)\b", formula))
        return unpooled or [name for name in self.bound if self.server.queues[name].get("Priority") in first]

    def sizes_by_nodes(self, own: Sequence[QueueConfig]) -> dict[str, int]:
        """Return the cores of the nodes with each queue in their Qlist."""
        sizes = dict.fromkeys((q.name for q in own), 0)
        for node, qlist in zip(self.nodes, self.qlists, strict=True):
            owners = [name for name in qlist if name in sizes]
            if len(owners) > 1:
                self.warnings.append(f"node {node.name} belongs to {' and '.join(owners)}; counted for {owners[0]}")
            if owners:
                sizes[owners[0]] += node.cores or 1
        return sizes

    def sizes_by_limits(self, machine: MachineConfig, own: Sequence[QueueConfig]) -> dict[str, int]:
        """Use running-cores limits as partition sizes if they fit, else divide the machine evenly."""
        limits = {q.name: q.max_run_cores or 0 for q in own}
        total = sum(limits.values())
        if all(limits.values()) and (total == machine.cores or (self.pooled and total < machine.cores)):
            return limits
        node = machine.cores_per_node
        least = {q.name: -(-q.cores[0] // node) * node for q in own}
        rest = machine.cores - sum(least.values())
        if rest < 0:
            least, rest = dict.fromkeys(least, 0), machine.cores
        share = rest // (len(own) + bool(self.pooled)) // node * node if own else 0
        sizes = {name: size + share for name, size in least.items()}
        if own and not self.pooled:
            sizes[own[0].name] += machine.cores - sum(sizes.values())
        return sizes


def _shaped(shape: dict[str, Any], like: SiteConfig, server: Server) -> dict[str, Any]:
    """Return the shape with nodes and partitions of `like`, where the server's queues are bound to nodes."""
    divided = like.mode if shape["mode"] != "shared" else "shared"
    queues = []
    for queue in shape["queues"]:
        held = {**server.attributes, **server.queues[queue.name]}
        if queue.name not in like.names:
            lost = (like.nodes and bindings(held)) or queue.cores[0] > like.machine.cores  # left out: it has no nodes
            queues += [] if lost else [queue.model_copy(update={"partition": 0})]
            continue
        wanted = like.queue(queue.name)
        changes: dict[str, object] = {"nodes": wanted.nodes} if bindings(held) else {}
        changes |= {"exclusive": wanted.exclusive} if has_alone(held) else {}
        if divided != "shared":
            changes |= {name: getattr(wanted, name) for name in ("partition", "partition_nodes", "reservation")}
        elif shape["mode"] != "shared":
            changes |= {"partition": 0, "reservation": False}
        queues.append(queue.model_copy(update=changes))
    pool = like.pool if divided == "hybrid" else None
    return {"mode": divided, "queues": queues, "nodes": like.nodes, "pool": pool}


def _give_rest(queues: list[QueueConfig], cores: int, warnings: list[str]) -> None:
    """Add cores that belong to no queue to the first queue's partition."""
    if cores:
        warnings.append(f"{cores} cores belong to no queue; {queues[0].name} was given them")
        queues[0] = queues[0].model_copy(update={"partition": queues[0].partition + cores})


def _consistent(fields: dict[str, Any], throttles: Sequence[ThrottleConfig], warnings: list[str]) -> SiteConfig:
    """Build the configuration without the limits and queues that it refuses; each becomes a warning."""
    queues, names = list(fields["queues"]), [queue.name for queue in fields["queues"]]
    left = [each for each in throttles if each.queue in (None, *names)]
    while True:
        try:
            return SiteConfig.build(**{**fields, "queues": queues, "throttles": left})
        except ConfigError as error:
            found = re.findall(r"(throttles|queues)\[(\d+)\]\.?(cores|max_\w+)?: ([^;]*)", str(error))
            wrong = sorted(((kind, int(at), name, why) for kind, at, name, why in found), key=lambda each: each[0])
            beyond = {at for kind, at, *_ in wrong if kind == "throttles"}
            of_queues = {at: name for kind, at, name, _ in wrong if kind == "queues"}
            unusable = [at for at, name in of_queues.items() if name == "cores"]
            limits = {at: name for at, name in of_queues.items() if name.startswith("max_")}
            if not (beyond or unusable or limits):
                raise
            for kind, at, name, why in wrong:
                whose = queues[at].name if kind == "queues" else left[at].what
                warnings.append(f"left out, {whose} {name}: {why}")
            left = [each for i, each in enumerate(left) if i not in beyond]
            queues = [
                queue.model_copy(update={limits[i]: None} if i in limits else {}) for i, queue in enumerate(queues)
            ]
            freed = sum(queues[at].partition for at in unusable)
            queues = [queue for i, queue in enumerate(queues) if i not in unusable]
            if not queues:
                raise InputError("no queue takes a job that the machine holds", field="print server") from error
            _give_rest(queues, freed, warnings)
            left = [each for each in left if each.queue in (None, *(queue.name for queue in queues))]


def _with_top_job(
    config: SiteConfig, nodes: Sequence[Node], scheduler: Scheduler | None, server: Server, warnings: list[str]
) -> SiteConfig:
    """Return `config` with PBS's reservations: of nodes if possible, also for a job that a limit holds.

    With several top jobs, cores are reserved. Without ``strict_ordering`` PBS has no top job, whatever backfill_depth.
    """
    holders = [server.attributes] if config.mode == "shared" else [server.queues[name] for name in config.names]
    depth, *others = {each.get("backfill_depth", "1") for each in holders}
    strict = scheduler is None or scheduler.is_true("strict_ordering")
    if config.mode == "shared" and not strict:
        return config.replace(reserve="nothing", backfill=True)
    if not strict:
        warnings.append(
            "sched_config: strict_ordering is not True, so PBS reserves nothing for jobs that wait; a reservation for "
            "the first of each partition is simulated"
        )
    reserves = strict and (config.mode == "shared" or bool(config.nodes))
    if config.nodes:
        if config.backfill and depth != "1":
            warnings.append(f"backfill_depth = {depth}: with types of nodes one reservation is simulated")
        by_node = reserves and config.backfill and config.machine.cores <= MOST_NODE_CORES
        return config.replace(reserve="nodes" if by_node else "cores")
    if config.backfill and not others and re.fullmatch("[0-9]{1,9}", depth) and int(depth) > 1:
        return config.replace(reservation_depth=int(depth) if int(depth) < ALL_TOP_JOBS else None)
    if not reserves:
        return config
    limited = any(queue.limited for queue in config.queues) or bool(config.throttles)
    alike = len(nodes) * config.machine.cores_per_node == config.machine.cores <= MOST_NODE_CORES
    return config.replace(
        held_jobs="reserve" if limited else "pass",
        reserve="nodes" if alike and config.backfill else "cores",
    )


def _helped(config: SiteConfig, scheduler: Scheduler, warnings: list[str], *, waits: bool) -> SiteConfig:
    """Return `config` with the starvation period of help_starving_jobs, which PBS before 22.05 has on by default.

    PBS reserves for starving jobs; Torque's scheduler `waits`: it starts no other job before them.
    """
    if not scheduler.on("help_starving_jobs"):
        return config
    text = scheduler.value("max_starve") or "24:00:00"
    if not re.fullmatch(r"[0-9]{1,9}(:[0-9]{1,2}){0,2}", text):
        warnings.append(f"sched_config: max_starve = {text} is not understood; help_starving_jobs was left out")
        return config
    period = min(seconds(text), MAX_DURATION)
    warnings.append(
        f"starvation: {format_clock(period)} for every queue, from sched_config (help_starving_jobs, max_starve); PBS "
        "counts a job's eligible_time there"
    )
    if config.reserves_nothing:  # except for starving jobs
        config = (config if waits and not config.nodes else config.reserving()).replace(reserve_after=period)
    return config.with_each(
        lambda queue: {"starvation": min(period, MAX_DURATION if queue.starvation is None else queue.starvation)}
    )
