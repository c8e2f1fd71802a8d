"""What the parts of a configuration must be to each other."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from parsim.formula import parse as parse_formula
from parsim.system import ORDERS
from parsim.workload import MAX_CORES
from qconf.config.models import MachineConfig, PoolConfig, QueueConfig, lost_job

if TYPE_CHECKING:
    from qconf.config.site import SiteConfig


MINUTE = 60  # seconds


class Finding(NamedTuple):
    """A mistake or an oddity.

    Attributes
    ----------
    path : str
        Where it is: ``queues[2].walltime``.
    message : str
    needs : tuple of str
        Other paths it was derived from: where one of those is wrong itself, it is not worth telling.
    """

    path: str
    message: str
    needs: tuple[str, ...] = ()


def mistakes(config: SiteConfig) -> Iterator[Finding]:
    """Yield what makes the configuration unusable, given that each field by itself is well-formed."""
    yield from _machine(config.machine)
    for i, queue in enumerate(config.queues):
        yield from _queue(config, f"queues[{i}]", queue)
    yield from _names(config)
    yield from _pool(config)
    yield from _sum(config)
    yield from _order(config)
    yield from _fixed(config)


def _machine(machine: MachineConfig) -> Iterator[Finding]:
    if machine.cores_per_node > machine.cores:
        yield Finding(
            "machine.cores_per_node",
            f"a node of {machine.cores_per_node} cores is larger than the machine of {machine.cores}",
            ("machine.cores",),
        )
    elif machine.whole_nodes and machine.cores % machine.cores_per_node:
        yield Finding(
            "machine.cores",
            f"not a whole number of nodes of {machine.cores_per_node} cores: "
            + _nearest(machine.cores, machine.cores_per_node),
            ("machine.cores_per_node",),
        )


def _nearest(size: int, grid: int) -> str:
    below = size // grid * grid
    return f"{below} or {below + grid} would be"


def _queue(config: SiteConfig, at: str, queue: QueueConfig) -> Iterator[Finding]:
    machine, grid = config.machine, config.grid
    low, high = queue.cores
    if low > machine.cores:
        yield Finding(
            f"{at}.cores",
            f"no job can enter: its narrowest has {low} cores, the machine {machine.cores}",
            ("machine.cores",),
        )
    elif machine.cores < high < MAX_CORES:
        yield Finding(
            f"{at}.cores",
            f"wider than the machine's {machine.cores} cores; at most that, or null for no maximum",
            ("machine.cores",),
        )
    if queue.reservation and queue.partition:
        yield Finding(
            f"{at}.partition",
            "a queue with advance reservations owns no partition: leave it out, or 0",
            (f"{at}.reservation",),
        )
    if queue.partition % grid:
        yield Finding(
            f"{at}.partition",
            f"not a whole number of nodes of {grid} cores: " + _nearest(queue.partition, grid),
            ("machine.cores_per_node", "machine.whole_nodes"),
        )
    narrowest = -(-low // grid) * grid
    for field in ("max_run_cores", "max_user_cores"):
        limit = getattr(queue, field)
        if limit is not None and limit < narrowest:
            yield Finding(
                f"{at}.{field}",
                f"below the {narrowest} cores that the queue's narrowest job takes: no job could ever start",
                (f"{at}.cores", "machine.cores_per_node", "machine.whole_nodes"),
            )


def _names(config: SiteConfig) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for i, queue in enumerate(config.queues):
        if queue.name in first:
            yield Finding(
                f"queues[{i}].name",
                f"queues[{first[queue.name]}] has this name already; every queue needs its own",
                (f"queues[{first[queue.name]}].name",),
            )
        first.setdefault(queue.name, i)


def _pool(config: SiteConfig) -> Iterator[Finding]:
    pool: PoolConfig | None = config.pool
    if pool is None:
        if config.mode == "hybrid":
            yield Finding("pool", "missing: mode hybrid needs one, like {cores: 4800} (0 cores at least)", ("mode",))
        return
    if pool.cores % config.grid:
        yield Finding(
            "pool.cores",
            f"not a whole number of nodes of {config.grid} cores: " + _nearest(pool.cores, config.grid),
            ("machine.cores_per_node", "machine.whole_nodes"),
        )
    if pool.reference is not None and pool.reference not in config.names:
        yield Finding(
            "pool.reference",
            f"no queue has this name{_meant(pool.reference, config.names)}",
            ("queues", *(f"queues[{i}].name" for i in range(len(config.queues)))),
        )


def _sum(config: SiteConfig) -> Iterator[Finding]:
    if config.mode == "shared":
        return
    partitions = sum(queue.partition for queue in config.queues)
    difference = config.machine.cores - partitions - config.pool_cores
    if not difference:
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
        (
            "machine.cores",
            "mode",
            "pool",
            "pool.cores",
            *(f"queues[{i}]{field}" for i in range(len(config.queues)) for field in ("", ".partition", ".reservation")),
        ),
    )


def _order(config: SiteConfig) -> Iterator[Finding]:
    if config.order in ORDERS:
        return
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", config.order):
        meant = _meant(config.order, ORDERS)
        if meant:
            yield Finding("order", f"no such order{meant}; one of {', '.join(ORDERS)}, or a formula")
            return
    if not re.fullmatch(r"[A-Za-z0-9_ .,+*/()<>=!-]+", config.order):
        yield Finding(
            "order",
            f"one of {', '.join(ORDERS)}, or a formula of letters, digits and + - * / ( ) . , < > = !",
        )
        return
    try:
        parse_formula(config.order)
    except ValueError as error:
        yield Finding("order", f"{error}; one of {', '.join(ORDERS)}, or a formula of the names PBS knows")


def fixable_paths(names: Iterable[str]) -> list[str]:
    """List every path that `fixed` can name."""
    return [
        "mode",
        "order",
        "backfill",
        "reserve_after",
        *(f"machine.{field}" for field in MachineConfig.model_fields),
        *(f"queues.{name}.{field}" for name in names for field in QueueConfig.model_fields),
        *(f"pool.{field}" for field in PoolConfig.model_fields),
    ]


def matches(pattern: str, path: str) -> bool:
    """Tell whether a pattern of `fixed`, where ``*`` is any text, covers `path` or what it lies beneath."""
    text = re.escape(pattern).replace(r"\*", ".*")
    return re.fullmatch(rf"{text}(\..*)?", path, re.DOTALL) is not None


def _fixed(config: SiteConfig) -> Iterator[Finding]:
    if not config.fixed:
        return
    paths = fixable_paths(config.names)
    stems = {path[: dot.start()] for path in paths for dot in re.finditer(r"\.", path)} | set(paths)
    for i, pattern in enumerate(config.fixed):
        if not any(matches(pattern, path) for path in paths):
            yield Finding(
                f"fixed[{i}]",
                f"matches nothing in this file{_meant(pattern, stems)}; "
                "a path like queues.large, queues.*.max_user_run, pool.cores or order",
                ("queues", *(f"queues[{k}].name" for k in range(len(config.queues)))),
            )


def _meant(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""


def oddities(config: SiteConfig) -> Iterator[Finding]:
    """Yield what can be simulated but is probably not meant."""
    machine, grid = config.machine, config.grid
    for i, queue in enumerate(config.queues):
        at = f"queues[{i}]"
        widest = min(-(-min(queue.cores[1], machine.cores) // grid) * grid, machine.cores)
        for field in ("max_run_cores", "max_user_cores"):
            limit = getattr(queue, field)
            if limit is not None and limit < widest:
                yield Finding(
                    f"{at}.{field}",
                    f"{limit} is below the queue's widest job of {widest} cores: "
                    "a job wider than the limit never starts",
                )
        if config.mode != "shared" and not queue.reservation and queue.partition < widest:
            yield Finding(
                f"{at}.partition",
                f"{queue.partition} is below the queue's widest job of {widest} cores: "
                "wider jobs wait for the pool or a reservation",
            )
        if queue.walltime[1] < MINUTE:
            yield Finding(f"{at}.walltime", f"up to {queue.walltime[1]} seconds; for hours write {queue.walltime[1]}h")
        if lost_job([queue], config.queues[:i]) is None:
            yield Finding(at, f"no job is ever routed to {queue.name}: the queues before it take everything it admits")
    if config.reserve_after and not config.reservation_delay:
        why = f"mode {config.mode}" if config.mode != "shared" else "backfill: false"
        yield Finding("reserve_after", f"plays no part with {why}")
    if config.mode == "hybrid" and config.order != "fcfs":
        yield Finding("order", "orders the partitions only: the pool goes by priority factor")
