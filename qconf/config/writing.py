"""A configuration as YAML that is pleasant to read: one queue a line, durations as 24h, defaults left out."""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml
from pydantic import BaseModel

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config.durations import format_duration
from qconf.config.models import SCALARS, AccessConfig
from qconf.config.policy import policy_text
from qconf.config.site import SiteConfig
from qconf.inert import inert

LISTS = ("users", "groups", "accounts", "queues", "exempt", "nodes", "features", "days")
DURATIONS = ("walltime", "starvation", "reserve_after", "priority_calc_period", "p95_wait", "decay_time")


def dump(config: SiteConfig, comment: str = "") -> str:
    """Write a configuration that `parse` reads back as an equal one; `comment` becomes its header."""
    lines = [f"# {inert(line)}".rstrip() for line in comment.splitlines()]
    lines.append(f"machine: {flow(config.machine)}")
    if config.nodes:
        lines += ["nodes:", *(f"  - {flow(each)}" for each in config.nodes)]
    lines += [*_shown(config, SCALARS, ("mode", "order")), "queues:"]
    for queue in config.queues:
        hidden = queue.partition == 0 and (config.mode == "shared" or queue.reservation)
        of_types = bool(queue.partition_nodes)  # its cores follow
        found = queue.model_copy(update={"partition": dict(queue.partition_nodes)}) if of_types else queue
        lines.append(f"  - {flow(found, leave_out=('partition_nodes', *['partition'] * hidden))}")
    if config.pool is not None:
        lines.append(f"pool: {flow(config.pool)}")
    if config.routing is not None:
        lines.append(f"routing: {_scalar(config.routing)}")
    if config.fairshare is not None:
        lines.append(f"fairshare: {flow(config.fairshare)}")
    if config.shares:
        lines += ["shares:", *(f"  - {flow(share)}" for share in config.shares)]
    if config.throttles:
        lines += ["throttles:", *(f"  - {flow(each, always=())}" for each in config.throttles)]
    if config.qos:
        lines += ["qos:", *(f"  - {flow(each, always=())}" for each in config.qos)]
    if config.policy:
        lines.append(f"policy: {policy_text(config.policy)}")
    if config.fixed:
        lines.append(f"fixed: [{', '.join(_scalar(pattern) for pattern in config.fixed)}]")
    if config.targets:
        lines += ["targets:", *(f"  - {flow(target)}" for target in config.targets)]
    if config.downtime:
        lines += ["downtime:", *(f"  - {flow(each, always=())}" for each in config.downtime)]
    if config.hours:
        lines += ["hours:", *(f"  - {flow(each, always=())}" for each in config.hours)]
    if config.shortpools:
        lines += ["shortpools:"]
        lines += [f"  - {flow(each, leave_out=('cores',) if each.types else ())}" for each in config.shortpools]
    if config.licences:
        lines.append(f"licences: {written('licences', config.licences)}")
    if config.fidelity is not None:
        lines.append(f"fidelity: {flow(config.fidelity, always=())}")
    if config.history is not None:
        lines.append(f"history: {flow(config.history, always=())}")
    if config.strategies:
        settings = (f"{_scalar(name)}: {_setting(value)}" for name, value in config.strategies.items())
        lines.append(f"strategies: {{{', '.join(settings)}}}")
    return "\n".join(lines) + "\n"


def _setting(value: object) -> str:
    return f"[{', '.join(map(_scalar, value))}]" if isinstance(value, tuple) else _scalar(value)


def flow(model: BaseModel, leave_out: tuple[str, ...] = (), always: tuple[str, ...] = ("cores", "partition")) -> str:
    """Write a part as one line."""
    names = [name for name in type(model).model_fields if name not in leave_out]
    return "{" + ", ".join(_shown(model, names, always)) + "}"


def _shown(model: BaseModel, names: Iterable[str], always: tuple[str, ...]) -> list[str]:
    defaults, values = type(model).model_fields, dict(model)
    shown = [name for name in names if name in always or values[name] != defaults[name].default]
    return [f"{name}: {written(name, values[name])}" for name in shown]


def written(name: str, value: object) -> str:
    """Write the value of a key."""
    if name in LISTS and isinstance(value, tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, tuple):
        unlimited = MAX_DURATION if name == "walltime" else MAX_CORES
        low, high = value
        return f"[{written(name, low)}, {'null' if high == unlimited else written(name, high)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_scalar(amount)}" for key, amount in value.items()) + "}"
    if isinstance(value, AccessConfig):
        shown = [f"{kind}: [{', '.join(map(_scalar, names))}]" for kind, names in value if names is not None]
        return "{" + ", ".join(shown) + "}"
    if name in DURATIONS and isinstance(value, int):
        return format_duration(value)
    return _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text) and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.dump(text, default_style='"', width=2**31, allow_unicode=True)
    return quoted.strip()
