"""Resources of PBS nodes: read the kinds of nodes, bind queues to nodes, keep cores for jobs with GPUs.

Kept cores: a node has its other cores as an amount of the resource `KEPT`, and a hook makes every chunk of a job
without GPUs request as much of it as it has cores. So the scheduler counts it like cores.

References
----------
OpenPBS Administrator's Guide, "Custom Resources"; Hooks Guide, "queuejob", "modifyjob".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from parsim.model.node_types import MOST
from qconf.config import KEPT, POOL_SUFFIX, NodesConfig, QueueConfig, SiteConfig
from qconf.errors import ExportError, InputError
from qconf.export.nodes import POOL, Node, assign
from qconf.export.pbs.server import Attributes, Scheduler, Server
from qconf.export.types import FEATURE, NAME, Kind, hosts, is_bound
from qconf.export.types import kept as with_kept
from qconf.history.chunks import MIB, NAMES, NOT_TAKEN, SIZE, bytes_of_pbs
from qconf.hosts import fold
from qconf.text import grouped

if TYPE_CHECKING:
    from qconf.export.pbs import Binding, PbsExporter

KEPT_HOOK = "qconf_kept"
OF_QUEUE = "q_"  #: prefix of the resource that marks the nodes of a queue
#: Spellings of booleans.
TRUTH = {"true": True, "t": True, "1": True, "y": True, "false": False, "f": False, "0": False, "n": False}
_PER_STATEMENT = 24


def qlists(config: SiteConfig, nodes: Sequence[Node]) -> dict[str, str]:
    """Return the Qlist of every node, by name.

    A node of a partition lists its queue, and with ``pool.placement: combined`` that queue's pool queue; a node of the
    pool lists every pool queue; all nodes list the queues with reservations.
    """
    reserved = [queue.name for queue in config.queues if queue.reservation]
    own = [queue.name for queue in config.queues if not queue.reservation]
    both = config.pool_cores and config.pool is not None and config.pool.placement == "combined"
    lists = {name: [name, *([name + POOL_SUFFIX] if both else []), *reserved] for name in own}
    lists[POOL] = [*(name + POOL_SUFFIX for name in own), *reserved]
    return {node: ",".join(lists[owner]) for node, owner in assign(config, nodes).items()}


def kept(config: SiteConfig, nodes: Sequence[Node] | None) -> dict[str, int]:
    """Return by node the cores that jobs without GPUs may use. Raises ExportError if nodes have no names."""
    if not config.keeps_cores:
        return {}
    names = hosts(config, nodes)
    return {name: each.cores - each.kept_per_gpu * each.gpus for each in config.nodes for name in names[each.name]}


def read_kept(nodes: tuple[NodesConfig, ...], there: Sequence[Node], scheduler: Scheduler) -> tuple[NodesConfig, ...]:
    """Return the types with `kept_per_gpu` read from the resource `KEPT`, if nodes have it and it is scheduled."""
    line = scheduler.value("resources")
    if line is not None and KEPT not in line:
        return nodes
    amounts = ((node.resources.get(KEPT, ""), node.name) for node in there)
    caps = grouped((int(amount), name) for amount, name in amounts if amount.isdigit())
    return with_kept(nodes, caps) if caps else nodes


def statements(wanted: Iterable[tuple[str, str, str]], nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """Return the statements that set resources of nodes, and those that restore the present values.

    `wanted` are (node, resource, value), with "" for no value.
    """
    held = {node.name: node for node in nodes}
    rows = [(name, resource, new, _now(held.get(name), resource)) for name, resource, new in wanted]
    changed = [row for row in rows if not _is_same(*row[1:])]
    return (
        _per_node((_statement(name, resource, new), name) for name, resource, new, _ in changed),
        _per_node((_statement(name, resource, old), name) for name, resource, _, old in changed),
    )


def _now(node: Node | None, resource: str) -> str:
    if node is None:
        return ""
    return node.qlist or "" if resource == "Qlist" else node.resources.get(resource, "")


def _is_same(resource: str, new: str, now: str) -> bool:
    is_of_queue = resource.startswith(OF_QUEUE)
    return TRUTH.get(now.lower(), False) is (new == "True") if is_of_queue else new == now


def _statement(name: str, resource: str, value: str) -> str:
    """Return a statement with ``{}`` in place of the node."""
    key = f"resources_available.{resource}"
    if resource == "Qlist" and value:
        if not re.fullmatch(r"[A-Za-z0-9_,-]*", value):
            raise ExportError(f"node {name} has the Qlist {value!r}, which is more than queue names")
        value = f'"{value}"'
    return f"set node {{}} {key} = {value}" if value else f"unset node {{}} {key}"


def _per_node(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Fill in the nodes, up to `_PER_STATEMENT` in one statement."""
    return [
        statement.format(",".join(names[at : at + _PER_STATEMENT]))
        for statement, names in grouped(pairs).items()
        for at in range(0, len(names), _PER_STATEMENT)
    ]


BOOLEAN = {"type": "boolean", "flag": "h"}
_OF_NODES = ("arch", "host", "vnode", "ncpus", "mem", "nodect", *NOT_TAKEN)


def kinds(
    nodes: Sequence[Node], server: Server, scheduler: Scheduler, binding: Collection[str], warnings: list[str]
) -> dict[str, Kind]:
    """Return the kind of each node, by name, in the order in which PBS uses them.

    Only booleans and the resources on the scheduler's line ``resources:`` are scheduled. `binding` are the resources
    that bind queues; those that are not boolean do not become features.
    """
    line = scheduler.value("resources")
    scheduled = None if line is None else {*re.findall(r"[^\s,]+", line)}
    left: dict[str, str] = {}

    def counts(name: str) -> bool:
        if scheduled is None or name in scheduled:
            return True
        left[name] = "not on the scheduler's line resources:, so PBS does not schedule it"
        return False

    found = {}
    for node in sorted(nodes, key=lambda node: -node.priority):
        amounts, features = {}, set()
        for name, value in node.resources.items():
            kind, truth = server.resources.get(name, {}).get("type", ""), TRUTH.get(value.lower())
            own = NAMES.get(name, name)
            if name in _OF_NODES or (name == "Qlist" and name in binding) or not value:
                continue
            if kind.startswith("bool") or (not kind and value.lower() in ("true", "false")):
                features |= {name} if truth and not _is_of_export(name, server) else set()
            elif re.fullmatch(r"[0-9]{1,12}", value) and not kind.startswith(("string", "size")):
                if int(value) and counts(name):
                    if own in ("cores", "memory") or not NAME.fullmatch(own) or int(value) > MOST:
                        left[name] = "no name or no number that can be counted here"
                    else:
                        amounts[own] = int(value)
            elif SIZE.fullmatch(value) or re.fullmatch(r"[0-9]+\.[0-9]+", value):
                left[name] = "no whole number"
            elif name not in binding and counts(name):
                features |= {f"{name}={each}" for each in _items(value) if FEATURE.fullmatch(f"{name}={each}")}
        memory = _memory(node) if "mem" in node.resources and counts("mem") else 0
        gpus = amounts.pop("gpus", 0)
        resources = tuple(sorted(amounts.items()))
        found[node.name] = Kind(node.cores or 0, memory, gpus, resources, frozenset(features), node.exclusive)
    warnings += [f"nodes: {name} was left out: {why}" for name, why in left.items()]
    if scheduled is None and any(kind.gpus or kind.resources for kind in found.values()):
        warnings.append(
            "nodes: which of their resources PBS schedules, sched_config says: give it with --scheduler; all were taken"
        )
    return found


def _memory(node: Node) -> int:
    """Return the memory of a node in MiB. Raises InputError."""
    text = node.resources["mem"]
    if (size := bytes_of_pbs(text)) is None:
        fix = "write a size like 263842748kb, or give pbsnodes -av as it was printed"
        where = f"{node.name}: resources_available.mem"
        raise InputError("is no size", file=node.file, line=node.line, field=where, value=text, fix=fix)
    return min(size // MIB, MOST)


def _items(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip()]


def _is_of_export(name: str, server: Server) -> bool:
    """Whether a resource binds a queue by an export, so that no job requests it itself."""
    queue = name.removeprefix(OF_QUEUE)
    return name != queue and f"default_chunk.{name}" in server.queues.get(queue, {})


def bindings(attributes: Attributes) -> dict[str, str]:
    """Return the resource values that default_chunk of a server or queue requires of nodes, by resource."""
    found = {}
    for key, value in attributes.items():
        kind, _, name = key.partition(".")
        if kind == "default_chunk" and name not in ("ncpus", "mem") and not SIZE.fullmatch(value):
            found[name] = value
    return found


def usable(
    server: Server, queues: Sequence[str], nodes: Sequence[Node], scheduler: Scheduler, warnings: list[str]
) -> dict[str, frozenset[str]]:
    """Return the names of the nodes that each queue may use, by ``default_chunk`` and the nodes' ``queue``."""
    line = scheduler.value("resources")
    scheduled = None if line is None else {*re.findall(r"[^\s,]+", line)}
    of_queues = {node.queue for node in nodes}
    found = {}
    for queue in queues:
        held = [node for node in nodes if node.queue == (queue if queue in of_queues else "")]
        for name, value in bindings({**server.attributes, **server.queues[queue]}).items():
            truth = TRUTH.get(value.lower())
            if truth is None and scheduled is not None and name not in scheduled:
                warnings.append(
                    f"{queue}: default_chunk.{name} = {value}: {name} is not on the scheduler's line resources:, so "
                    "PBS does not look at it"
                )
                continue
            held = [node for node in held if _has(node, name, value)]
        found[queue] = frozenset(node.name for node in held)
    return found


def to_bind(config: SiteConfig, before: Server, options: PbsExporter) -> dict[str, list[str]]:
    """Return all nodes to bind to each queue whose binding must change; those of the machine if it loses its binding.

    If the nodes' resources are known, a queue already bound to the right nodes keeps its binding. Raises ExportError.
    """
    if not is_bound(config):
        return {}
    of_types = hosts(config, options.nodes)
    every = [name for names in of_types.values() for name in names]
    wanted = {
        queue.name: every if queue.nodes is None else [name for each in queue.nodes for name in of_types[each]]
        for queue in config.queues
    }
    nodes = [node for node in options.nodes or () if node.resources]
    there = [name for name in wanted if name in before.queues]
    present = usable(before, there, nodes, options.scheduler or Scheduler(), [])
    changed = {
        name: names
        for name, names in wanted.items()
        if present.get(name, frozenset(every if not bindings(before.attributes) else ())) != {*names}
    }
    if changed and (node := next((node for node in nodes if node.queue), None)):
        raise ExportError(
            f"node {node.name} has queue = {node.queue}, which keeps the jobs of other queues off it: take that off "
            f"({', '.join(changed)} would have other nodes), with qmgr -c 'unset node {node.name} queue'"
        )
    if changed and (server := bindings(before.attributes)):
        name, value = next(iter(server.items()))
        raise ExportError(
            f"the server has default_chunk.{name} = {value}, which binds all queues: give it to the queues, with "
            f"{', '.join(changed)} otherwise"
        )
    return changed


def resource_of(queue: str) -> str:
    """Return the name of the resource that marks the nodes of a queue."""
    return f"{OF_QUEUE}{queue}"


def own_resources(config: SiteConfig, bound: Collection[str]) -> list[str]:
    """Return the resources for the queues in `bound` that use only some types of nodes."""
    return [resource_of(each.name) for each in config.queues if each.nodes is not None and each.name in bound]


def gpus_of(scheduler: Scheduler | None) -> str:
    """Return the scheduler's name of GPUs: ngpus or naccelerators."""
    line = (scheduler.value("resources") if scheduler else None) or ""
    return "naccelerators" if "naccelerators" in line and "ngpus" not in line else "ngpus"


def name_of(resource: str, gpus: str) -> str:
    """Return PBS's name of a resource; `gpus` is its name of GPUs."""
    return {"memory": "mem", "gpus": gpus}.get(resource, resource)


def by_qlist(config: SiteConfig, binding: Binding) -> bool:
    """Whether the partitions of a divided machine are exported as nodes with a Qlist."""
    return config.mode != "shared" and binding == "qlist" and not config.nodes


def scheduled(config: SiteConfig, bound: Collection[str], options: PbsExporter) -> list[str]:
    """Return the resources needed on the scheduler's line ``resources:``: counted ones, and those that bind queues."""
    counted = {name for each in config.nodes for name, amount in each.amounts.items() if amount}
    names = sorted(name_of(name, gpus_of(options.scheduler)) for name in counted)
    there = {"mem", *(names if options.current is None else options.current.resources)}
    own = [*(["Qlist"] if by_qlist(config, options.binding) else []), *([KEPT] if config.keeps_cores else [])]
    return [*own, *own_resources(config, bound), *(name for name in names if name in there)]


def _has(node: Node, name: str, value: str) -> bool:
    there = node.resources.get(name, (node.qlist or "") if name == "Qlist" else "")
    truth = TRUTH.get(value.lower())
    if truth is not None:  # a property of Torque may be the name of the node
        return TRUTH.get(there.lower(), name == node.name) is truth
    return {*_items(value)} <= {*_items(there)}


PLACE = "resources_default.place"
EXCLUSIVE = ("excl", "exclhost")


def place(config: SiteConfig, queue: QueueConfig, server: Server) -> str:
    """Return a queue's resources_default.place, "" for none: the present one, changed to match `exclusive`."""
    now = server.queues.get(queue.name, {}).get(PLACE, "")
    if not config.nodes:
        return now
    words = [word for word in now.split(":") if word and (queue.exclusive or word not in EXCLUSIVE)]
    if queue.exclusive and not {*EXCLUSIVE} & {*words}:
        words = [*(word for word in words if word != "shared"), EXCLUSIVE[0]]
    if not words and not queue.exclusive and has_alone(server.attributes):
        words = ["free"]  # overrides the server's exclusive default
    return ":".join(words)


def has_alone(attributes: Attributes) -> bool:
    """Whether the default `place` of a server or queue gives jobs exclusive nodes."""
    return bool({*EXCLUSIVE} & {*attributes.get(PLACE, "").split(":")})


def of_sharing(nodes: Sequence[Node]) -> list[str]:
    """Return warnings on nodes whose `sharing` is simulated differently, or is invalid."""
    found = []
    for value, names in grouped((node.sharing, node.name) for node in nodes).items():
        if value == "ignore_excl":
            why = "PBS lets jobs that ask for excl share them; such jobs have nodes alone in the simulation"
        elif value and value != "default_shared" and not re.fullmatch("(default|force)_excl(host)?", value):
            why = "PBS has no such value: taken as default_shared"
        else:
            continue
        found.append(f"nodes {fold(names)}: sharing = {value}: {why}")
    return found
