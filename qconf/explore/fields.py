"""The fields of a configuration for the page, by their paths in the YAML, and changes to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from parsim.model.system import LIMITS, ORDERS
from qconf.config import (
    SCALARS,
    UNDIVIDED,
    ConfigError,
    MachineConfig,
    NodesConfig,
    PoolConfig,
    Problem,
    QueueConfig,
    SiteConfig,
    flow,
    with_changes,
    written,
)
from qconf.config.checks import NO_POOL
from qconf.config.maui import FACTORS
from qconf.config.models import DURATIONS
from qconf.config.points import number
from qconf.report.formulas import order_in_words

_MODES = ("shared", "partitioned", "hybrid")
#: Keys with a control.
QUEUE = (
    *("cores", "walltime", "priority", *LIMITS, "starvation"),
    *("nodes", "tier", "preempted", "reservation", "partition"),
)
_FIRST = ("mode", "backfill", "reserve", "reserve_after", "reservation_depth")
SITE = tuple(key for key in dict.fromkeys((*_FIRST, *SCALARS)) if key not in ("order", "priority_calc_period"))
MACHINE = ("cores", "cores_per_node", "whole_nodes")
NODES = ("count", "cores", "gpus", "kept_per_gpu", "weight")
POOL = ("cores", "threshold", "placement", "entry")
TEXTS = {"nodes", "partition", *DURATIONS}  #: keys whose values are not a single number
#: Keys of lists of named parts, and of single parts.
_LISTS = ("queues", "nodes")
_PARTS = ("machine", "pool")


def values(config: SiteConfig) -> dict[str, str]:
    """Return every value of a configuration by its path, as in the YAML."""
    found = {}
    for key, value in config:
        if key in _LISTS:
            for each in value:
                for name, inner in each:
                    if name != "name":
                        found[f"{key}.{each.name}.{name}"] = _written(name, inner)
        elif key in _PARTS:
            found |= {} if value is None else {f"{key}.{name}": _written(name, inner) for name, inner in value}
        elif isinstance(value, tuple):
            found[key] = "; ".join(_whole(key, each) for each in value)
        elif key not in ("fidelity", "history", "strategies"):
            found[key] = _whole(key, value)
    for queue in config.queues:
        found.pop(f"queues.{queue.name}.partition_nodes")
        if queue.partition_nodes:
            found[f"queues.{queue.name}.partition"] = written("partition", dict(queue.partition_nodes))
    return found


def _written(name: str, value: object) -> str:
    return "" if value is None or value in ((), {}) else written(name, value)


def _whole(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    return flow(value, always=()) if isinstance(value, BaseModel) else _written(name, value)


def differences(base: SiteConfig, config: SiteConfig) -> list[dict[str, str]]:
    """Return the differences between two configurations: path, value before and after."""
    before, after = values(base), values(config)
    found: list[dict[str, str]] = []
    left_out = ["machine.cores"] if base.nodes and config.nodes else []  # follows from the nodes
    for key in _LISTS:
        names, now = ([each.name for each in getattr(of, key)] for of in (base, config))
        gone, new = (
            [f"{key}.{name}" for name in dict.fromkeys(of) if name not in to] for of, to in ((names, now), (now, names))
        )
        found += [{"path": path, "before": "there", "after": "removed"} for path in gone]
        found += [{"path": path, "before": "", "after": "new"} for path in new]
        left_out += [
            path for path in {**before, **after} if path.startswith((*(f"{each}." for each in (*gone, *new)), "\0"))
        ]
        if not gone and not new and names != now:
            found.append({"path": key, "before": ", ".join(names), "after": ", ".join(now)})
    if (base.pool is None) != (config.pool is None):
        left_out += [path for path in {**before, **after} if path.startswith("pool.")]
        before, after = (of | {"pool": _whole("pool", each.pool)} for of, each in ((before, base), (after, config)))
    paths = [path for path in {**before, **after} if path not in left_out]
    pairs = ((path, before.get(path, ""), after.get(path, "")) for path in paths)
    return found + [{"path": path, "before": old, "after": now} for path, old, now in pairs if old != now]


def restored(config: SiteConfig, base: SiteConfig, path: str) -> SiteConfig:
    """Return a configuration with the base's value at a path of `differences`. Raises `ConfigError`.

    The partitions of a divided machine are restored together: a single one would make the sum wrong.
    """
    key, _, rest = path.partition(".")
    name, _, inner = rest.rpartition(".")
    now, then = getattr(config, key), getattr(base, key)
    if path in ("mode", "pool", "pool.cores") or (key == "queues" and inner == "partition"):
        parts = {queue.name: {each: getattr(queue, each) for each in UNDIVIDED} for queue in base.queues}
        return config.with_each(lambda queue: parts.get(queue.name, UNDIVIDED), mode=base.mode, pool=base.pool)
    if not rest or now is None or then is None:
        names = [each.name for each in then] if key in _LISTS else []
        changed = then if not names else tuple(sorted(now, key=lambda each: names.index(each.name)))
    elif key not in _LISTS:
        changed = now.model_copy(update={rest: getattr(then, rest)})
    else:
        mine, others = ({each.name: each for each in parts} for parts in (now, then))
        if name in mine and name in others:
            mine[name] = mine[name].model_copy(update={inner: getattr(others[name], inner)})
        elif mine.pop(rest, None) is None:  # it was removed
            mine = {each: mine.pop(each, others[each]) for each in others if each in mine or each == rest} | mine
        changed = tuple(mine.values())
    if key == "queues" and len(changed) != len(now):
        return config.with_queues(changed)
    if key == "nodes":
        cores = sum(each.count * each.cores for each in changed) or config.machine.cores
        return config.replace(nodes=changed, machine=config.machine.model_copy(update={"cores": cores}))
    return config.replace(**{key: changed})


def control(model: type[BaseModel], key: str) -> tuple[str, tuple[str, ...]]:
    """Return the kind of a key's control (range, number, text, flag or choice) and its choices."""
    of = model.model_fields[key].annotation
    if get_origin(of) is Literal:
        return "choice", get_args(of)
    plain: dict[object, str] = {bool: "flag", tuple[int, int]: "range"}
    return plain.get(of) or ("text" if key in TEXTS else "number"), ()


def document(config: SiteConfig, base: SiteConfig) -> dict[str, Any]:
    """Return all that the page shows of a configuration, with the base's value of each field."""
    now, then = values(config), values(base)

    def fields(prefix: str, model: type[BaseModel], known: Sequence[str]) -> list[dict[str, Any]]:
        found = []
        for key in known:
            path, (kind, choices) = f"{prefix}{key}", control(model, key)
            low, high = ("", "")
            value = now.get(path, "")
            if kind == "range":
                low, high = (part.strip() for part in value.strip("[]").split(",", 1))
                high = "" if high == "null" else high
            about = {"path": path, "key": key, "kind": kind, "choices": choices, "value": value}
            found.append({**about, "was": then.get(path), "low": low, "high": high})
        return found

    divided = config.mode != "shared"
    hidden = {"partition"} if not divided else set()
    hidden |= {"nodes"} if not config.nodes else set()
    hidden |= {"tier", "preempted"} if not config.has_tiers else set()
    of_queue = [key for key in QUEUE if key not in hidden]
    of_machine = [key for key in MACHINE if not (key == "cores" and config.nodes)]
    return {
        "queues": [
            {"name": each.name, "fields": fields(f"queues.{each.name}.", QueueConfig, of_queue)}
            for each in config.queues
        ],
        "site": fields("", SiteConfig, SITE),
        "machine": fields("machine.", MachineConfig, of_machine),
        "nodes": [
            {"name": each.name, "fields": fields(f"nodes.{each.name}.", NodesConfig, NODES)} for each in config.nodes
        ],
        "pool": fields("pool.", PoolConfig, POOL) if config.mode == "hybrid" else [],
        "bars": _bars(config),
        "order": {
            "value": config.order,
            "was": base.order,
            "words": order_in_words(config),
            "terms": [{"points": points, "text": text} for points, text in terms(config.order)],
        },
        "changes": differences(base, config),
    }


def orders(base: SiteConfig, recommended: SiteConfig | None) -> list[dict[str, str]]:
    """Return the orders to choose from, with names."""
    found = [{"name": "in force", "order": base.order}]
    if recommended is not None and recommended.order != base.order:
        found.append({"name": "recommended", "order": recommended.order})
    return found + [{"name": name, "order": name} for name in ORDERS if name != base.order]


def factors() -> list[dict[str, str]]:
    """Return possible terms of an order, with names."""
    return [{"name": name.replace("_", " "), "text": text} for name, text in FACTORS.items()]


def _bars(config: SiteConfig) -> list[dict[str, Any]]:
    """Return the partitions of a divided machine; with types of nodes, those of each type, in nodes."""
    owners = [queue for queue in config.queues if not queue.reservation and config.mode != "shared"]

    def part(queue: QueueConfig, size: int) -> dict[str, Any]:
        return {"name": queue.name, "path": f"queues.{queue.name}.partition", "size": size}

    if not owners:
        return []
    if config.nodes:
        return [
            {"type": each.name, "grid": 1, "total": each.count, "unit": "nodes"}
            | {"parts": [part(queue, queue.partition_nodes.get(each.name, 0)) for queue in _users(owners, each)]}
            for each in config.nodes
        ]
    parts = [part(queue, queue.partition) for queue in owners]
    if config.mode == "hybrid":
        parts.append({"name": "pool", "path": "pool.cores", "size": config.pool_cores})
    return [{"type": "", "grid": config.grid, "total": config.machine.cores, "unit": "cores", "parts": parts}]


def _users(queues: Sequence[QueueConfig], nodes: NodesConfig) -> list[QueueConfig]:
    """Return the queues whose jobs may use a type of nodes."""
    return [queue for queue in queues if nodes.name in (queue.nodes or (nodes.name,))]


def terms(order: str) -> list[tuple[float, str]]:
    """Split a formula into terms (points, factor); empty if the order is not a formula."""
    if order in ORDERS:
        return []
    try:
        return [*_terms(ast.parse(order, mode="eval").body, 1.0)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _terms(node: ast.expr, points: float) -> Iterator[tuple[float, str]]:
    match node:
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            yield from _terms(left, points)
            yield from _terms(right, points if isinstance(sign, ast.Add) else -points)
        case ast.UnaryOp(ast.USub(), inner):
            yield from _terms(inner, -points)
        case ast.BinOp(left, ast.Mult(), inner) if (times := number(left)) is not None:
            yield points * times, ast.unparse(inner)
        case ast.BinOp(inner, ast.Mult(), right) if (times := number(right)) is not None:
            yield points * times, ast.unparse(inner)
        case _:
            yield points, ast.unparse(node)


def formula(found: Sequence[tuple[float, str]]) -> str:
    """Join terms to a formula."""
    texts = (text if points == 1 else f"{points:.12g} * {_factor(text)}" for points, text in found if points)
    return " + ".join(texts).replace("+ -", "- ") or "0 * ncpus"


def _factor(text: str) -> str:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return f"({text})"  # checking the configuration reports the mistake
    return text if isinstance(node, ast.Name | ast.Call | ast.Constant) else f"({text})"


def changed(
    config: SiteConfig,
    given: Mapping[str, str],
    work: NDArray[np.float64],
    *,
    order: Sequence[str] | None = None,
) -> SiteConfig:
    """Return a configuration with other values by path, and its queues in another `order`, if given.

    The machine's cores follow from the nodes. A machine that becomes divided gets partitions in proportion to the
    `work` of each queue. Raises `ConfigError`.
    """
    given = dict(given)
    if given.get("mode", config.mode) != config.mode and given["mode"] in _MODES:
        config, given = _divided(config, given, work)
    if any(path.startswith("nodes.") for path in given) and "machine.cores" not in given:
        given["machine.cores"] = str(_cores(config, given))
    if order is not None and sorted(order) == sorted(config.names):
        config = config.replace(queues=tuple(config.queue(name) for name in order))
    return with_changes(config, given) if given else config


def _cores(config: SiteConfig, given: Mapping[str, str]) -> int:
    total = 0
    for each in config.nodes:
        count, cores = (given.get(f"nodes.{each.name}.{key}", str(getattr(each, key))) for key in ("count", "cores"))
        total += int(count) * int(cores) if count.isdigit() and cores.isdigit() else each.count * each.cores
    return total


def _divided(config: SiteConfig, given: dict[str, str], work: NDArray[np.float64]) -> tuple[SiteConfig, dict[str, str]]:
    """Return a configuration in the given mode, with a first division, and the other given values."""
    mode = given.pop("mode")
    if mode == "shared":
        return config.replace(mode="shared", pool=None), given
    if config.nodes and mode == "hybrid":
        raise ConfigError(None, [Problem(None, "mode", None, NO_POOL)])
    owners = {
        queue.name: max(float(part), 1.0)
        for queue, part in zip(config.queues, work, strict=True)
        if not queue.reservation
    }
    if config.nodes:
        owned: dict[str, dict[str, int]] = {name: {} for name in config.names}
        for each in config.nodes:
            users = [queue.name for queue in _users(config.queues, each) if queue.name in owners]
            for name, count in zip(users, _shared([owners[name] for name in users], each.count), strict=True):
                owned[name] |= {each.name: count} if count else {}
        return config.with_owned([owned[name] for name in config.names]), given
    pool = config.machine.cores // config.grid // 5 if mode == "hybrid" else 0
    sizes = _shared([*owners.values()], config.machine.cores // config.grid - pool)
    found = dict(zip(owners, sizes, strict=True))
    partitions = [found.get(name, 0) * config.grid for name in config.names]
    if mode == "partitioned":
        return config.with_partitions(partitions), given
    settings = PoolConfig(cores=pool * config.grid + config.machine.cores % config.grid)
    return config.with_partitions(partitions, mode="hybrid", pool=settings), given


def _shared(work: Sequence[float], units: int) -> list[int]:
    """Divide units in proportion to `work`, at least one each if there are enough; the largest gets the remainder."""
    shares = np.array(work)
    sizes = np.maximum(np.floor(shares / max(shares.sum(), 1.0) * units).astype(np.int64), int(units >= shares.size))
    if sizes.size:
        sizes[int(np.argmax(sizes))] += units - int(sizes.sum())
    found: list[int] = sizes.tolist()
    return found
