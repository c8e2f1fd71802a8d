"""The fields of a configuration as a page has them, each by its path in the YAML; and what is done with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.model.system import ORDERS
from qconf.config import SiteConfig, parse, with_changes, written
from qconf.config.maui import FACTORS
from qconf.config.models import MachineConfig, NodesConfig, PoolConfig, QueueConfig
from qconf.report.formulas import order_in_words


class Field(NamedTuple):
    """A key that has a control of its own; a range is two values, the least and the most."""

    key: str
    kind: str  #: range, number, text, flag, or choice
    choices: tuple[str, ...] = ()


_MODES = ("shared", "partitioned", "hybrid")
QUEUE = (
    Field("cores", "range"),
    Field("walltime", "range"),
    Field("priority", "number"),
    Field("max_run", "number"),
    Field("max_run_cores", "number"),
    Field("max_user_run", "number"),
    Field("max_user_cores", "number"),
    Field("starvation", "text"),
    Field("nodes", "text"),
    Field("tier", "number"),
    Field("preempted", "choice", ("off", "suspend", "checkpoint", "requeue")),
    Field("reservation", "flag"),
    Field("partition", "text"),
)
SITE = (
    Field("mode", "choice", _MODES),
    Field("backfill", "flag"),
    Field("reserve", "choice", ("cores", "nodes", "queues", "queue_nodes", "nothing")),
    Field("reserve_after", "text"),
    Field("reservation_depth", "number"),
    Field("held_jobs", "choice", ("pass", "reserve")),
)
MACHINE = (Field("cores", "number"), Field("cores_per_node", "number"), Field("whole_nodes", "flag"))
NODES = (Field("count", "number"), *(Field(name, "number") for name in ("cores", "gpus", "kept_per_gpu", "weight")))
POOL = (
    Field("cores", "number"),
    Field("threshold", "number"),
    Field("placement", "choice", ("pool", "combined")),
    Field("entry", "choice", ("either", "move")),
)
#: The part of each key of a configuration that has parts with names.
_LISTS = {"queues": QueueConfig, "nodes": NodesConfig}
_PARTS = {"machine": MachineConfig, "pool": PoolConfig}
_OTHERS = ("fairshare", "shares", "throttles", "qos", "downtime", "hours", "shortpools", "licences", "fixed", "policy")


def values(config: SiteConfig) -> dict[str, str]:
    """Return every value of a configuration by its path, as the YAML has it."""
    found = {}
    for key, value in config:
        if key in _LISTS:
            for each in value:
                for name, inner in each:
                    if name != "name":
                        found[f"{key}.{each.name}.{name}"] = _written(name, inner)
        elif key in _PARTS and value is not None:
            found |= {f"{key}.{name}": _written(name, inner) for name, inner in value}
        elif key in _OTHERS:
            found[key] = "" if not value else f"{len(value)} entries" if isinstance(value, tuple) else "changed"
        elif key not in ("fidelity", "history", "strategies"):
            found[key] = _written(key, value)
    for queue in config.queues:
        found.pop(f"queues.{queue.name}.partition_nodes")
        if queue.partition_nodes:
            found[f"queues.{queue.name}.partition"] = written("partition", dict(queue.partition_nodes))
    return found


def _written(name: str, value: object) -> str:
    return "" if value is None or value == () else written(name, value)


def differences(base: SiteConfig, config: SiteConfig) -> list[dict[str, str]]:
    """List what one configuration has otherwise than another, by path, as it is before and after."""
    before, after = values(base), values(config)
    gone, new = (
        [*dict.fromkeys(name for name in names if name not in others)]
        for names, others in ((base.names, config.names), (config.names, base.names))
    )
    found = [{"path": f"queues.{name}", "before": "there", "after": "removed"} for name in gone]
    found += [{"path": f"queues.{name}", "before": "", "after": "new"} for name in new]
    whole = tuple(f"queues.{name}." for name in (*gone, *new))
    if not whole and base.names != config.names:
        found.append({"path": "queues", "before": ", ".join(base.names), "after": ", ".join(config.names)})
    paths = [path for path in dict.fromkeys([*before, *after]) if not path.startswith(whole or ("\0",))]
    pairs = ((path, before.get(path, ""), after.get(path, "")) for path in paths)
    found += [{"path": path, "before": old, "after": now} for path, old, now in pairs if old != now]
    named = {each["path"] for each in found}
    others = (name for name in _OTHERS if name not in named and getattr(base, name) != getattr(config, name))
    return found + [{"path": name, "before": "", "after": "changed"} for name in others]


def document(config: SiteConfig, base: SiteConfig) -> dict[str, Any]:
    """Return all that controls show of a configuration, and what each field is at the base."""
    now, then = values(config), values(base)

    def fields(prefix: str, known: Sequence[Field]) -> list[dict[str, Any]]:
        found = []
        for field in known:
            path = f"{prefix}{field.key}"
            low, high = ("", "")
            value = now.get(path, "")
            if field.kind == "range":
                low, high = (part.strip() for part in value.strip("[]").split(",", 1))
                high = "" if high == "null" else high
            found.append(
                {"path": path, "key": field.key, "kind": field.kind, "choices": field.choices, "value": value}
                | {"was": then.get(path), "low": low, "high": high}
            )
        return found

    divided = config.mode != "shared"
    hidden = {"partition"} if not divided else set()
    hidden |= {"nodes"} if not config.nodes else set()
    hidden |= {"tier", "preempted"} if not config.has_tiers else set()
    queue_fields = [field for field in QUEUE if field.key not in hidden]
    machine = [field for field in MACHINE if not (field.key == "cores" and config.nodes)]
    return {
        "queues": [
            {"name": queue.name, "fields": fields(f"queues.{queue.name}.", queue_fields)} for queue in config.queues
        ],
        "site": fields("", SITE),
        "machine": fields("machine.", machine),
        "nodes": [{"name": each.name, "fields": fields(f"nodes.{each.name}.", NODES)} for each in config.nodes],
        "pool": fields("pool.", POOL) if config.mode == "hybrid" else [],
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
    """Name the orders that there are to choose from."""
    found = [{"name": "in force", "order": base.order}]
    if recommended is not None and recommended.order != base.order:
        found.append({"name": "recommended", "order": recommended.order})
    return found + [{"name": name, "order": name} for name in ORDERS if name != base.order]


def factors() -> list[dict[str, str]]:
    """Return terms that an order may have, by name."""
    return [{"name": name.replace("_", " "), "text": text} for name, text in FACTORS.items()]


def _bars(config: SiteConfig) -> dict[str, Any] | None:
    """Return the parts of a divided machine; None where it is not divided, or by types of nodes."""
    if config.mode == "shared" or config.nodes:
        return None
    parts = [
        {"name": queue.name, "path": f"queues.{queue.name}.partition", "cores": queue.partition}
        for queue in config.queues
        if not queue.reservation
    ]
    if config.mode == "hybrid":
        parts.append({"name": "pool", "path": "pool.cores", "cores": config.pool_cores})
    return {"parts": parts, "grid": config.grid, "cores": config.machine.cores}


def terms(order: str) -> list[tuple[float, str]]:
    """Take a formula apart into terms, each so many points times what a job has; none where it is no formula."""
    if order in ORDERS:
        return []
    try:
        return [*_terms(ast.parse(order, mode="eval").body, 1.0)]
    except (SyntaxError, ValueError, RecursionError):
        return []


def _terms(node: ast.expr, points: float) -> Iterator[tuple[float, str]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _terms(node.left, points)
        yield from _terms(node.right, points if isinstance(node.op, ast.Add) else -points)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand, -points)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (number := _number(node.left)) is not None:
        yield points * number, ast.unparse(node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (number := _number(node.right)) is not None:
        yield points * number, ast.unparse(node.left)
    else:
        yield points, ast.unparse(node)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    return float(node.value) if isinstance(node, ast.Constant) and type(node.value) in (int, float) else None  # type: ignore[arg-type]


def formula(found: Sequence[tuple[float, str]]) -> str:
    """Write terms as a formula."""
    texts = (text if points == 1 else f"{points:.12g} * {_factor(text)}" for points, text in found if points)
    return " + ".join(texts).replace("+ -", "- ") or "0 * ncpus"


def _factor(text: str) -> str:
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return f"({text})"  # whose mistake the configuration names
    return text if isinstance(node, ast.Name | ast.Call | ast.Constant) else f"({text})"


def changed(
    config: SiteConfig,
    given: Mapping[str, str],
    work: NDArray[np.float64],
    *,
    order: Sequence[str] | None = None,
) -> SiteConfig:
    """Return a configuration with other values by path, and its queues in another `order`, if one is given.

    Cores of the machine follow from those of its nodes. Where a machine is divided that was not, the parts are in
    proportion to the `work` of each queue. Raises `ConfigError`.
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
    """Return a configuration in the mode that is given, with a first division, and what else is given."""
    mode = given.pop("mode")
    if mode == "shared":
        return config.replace(mode="shared", pool=None), given
    if config.nodes or mode == config.mode:
        return config, given | {"mode": mode}
    grid = config.grid
    owners = [i for i, queue in enumerate(config.queues) if not queue.reservation]
    shares = np.array([max(float(work[i]), 1.0) if i < len(work) else 1.0 for i in owners])
    pool = config.machine.cores // grid // 5 if mode == "hybrid" else 0
    units = config.machine.cores // grid - pool
    sizes = np.maximum(np.floor(shares / shares.sum() * units).astype(np.int64), 1)
    sizes[int(np.argmax(sizes))] += units - int(sizes.sum())
    partitions = [0] * len(config.queues)
    for i, size in zip(owners, sizes.tolist(), strict=True):
        partitions[i] = size * grid
    if mode == "partitioned":
        return config.with_partitions(partitions), given
    settings = PoolConfig(cores=pool * grid + config.machine.cores % grid)
    return config.with_partitions(partitions, mode="hybrid", pool=settings), given


def read(text: str) -> SiteConfig:
    """Read a configuration that was edited as a text."""
    return parse(text)
