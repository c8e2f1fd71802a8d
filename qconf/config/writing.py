"""Writing of a configuration as readable YAML: one queue a line, durations as 24h, defaults left out."""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml
from pydantic import BaseModel

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config.durations import format_duration
from qconf.config.models import DURATIONS, SCALARS, AccessConfig, Downtime, QueueConfig, ShortpoolConfig
from qconf.config.policy import policy_text
from qconf.config.site import SiteConfig
from qconf.inert import inert

ALWAYS = ("cores", "partition")  #: keys that are written even with default values, except in downtimes
RANGES = ("cores", "walltime")  #: keys whose values are the least and the most


def dump(config: SiteConfig, comment: str = "") -> str:
    """Return a configuration as text that `parse` reads back as an equal one; `comment` becomes its header."""
    lines = [f"# {inert(line)}".rstrip() for line in comment.splitlines()]
    for name in type(config).model_fields:
        lines += _shown(config, [name], ("mode", "order")) if name in SCALARS else _part(config, name)
    return "\n".join(lines) + "\n"


def _part(config: SiteConfig, name: str) -> list[str]:
    value = getattr(config, name)
    if value is None or value in ((), {}):
        return []
    if isinstance(value, BaseModel):
        return [f"{name}: {flow(value)}"]
    if isinstance(value, tuple) and isinstance(value[0], BaseModel):
        return [f"{name}:", *(f"  - {_item(config, each)}" for each in value)]
    return [f"{name}: {policy_text(value) if name == 'policy' else written(name, value)}"]


def _item(config: SiteConfig, item: BaseModel) -> str:
    """Format an item of a list of parts; cores that follow from whole nodes are left out."""
    if isinstance(item, QueueConfig):
        hidden = item.partition == 0 and (config.mode == "shared" or item.reservation)
        if item.partition_nodes:
            item = item.model_copy(update={"partition": dict(item.partition_nodes)})
        return flow(item, leave_out=("partition_nodes", *["partition"] * hidden))
    of_types = isinstance(item, ShortpoolConfig) and item.types
    return flow(item, ("cores",) if of_types else (), () if isinstance(item, Downtime) else ALWAYS)


def flow(model: BaseModel, leave_out: tuple[str, ...] = (), always: tuple[str, ...] = ALWAYS) -> str:
    """Format a part as one line."""
    names = [name for name in type(model).model_fields if name not in leave_out]
    return "{" + ", ".join(_shown(model, names, always)) + "}"


def _shown(model: BaseModel, names: Iterable[str], always: tuple[str, ...]) -> list[str]:
    defaults, values = type(model).model_fields, dict(model)
    shown = [name for name in names if name in always or values[name] != defaults[name].default]
    return [f"{name}: {written(name, values[name])}" for name in shown]


def written(name: str, value: object) -> str:
    """Format the value of a key."""
    if isinstance(value, tuple) and name in RANGES:
        unlimited = MAX_DURATION if name == "walltime" else MAX_CORES
        low, high = value
        return f"[{written(name, low)}, {'null' if high == unlimited else written(name, high)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_scalar(each)}" for key, each in value.items()) + "}"
    if isinstance(value, AccessConfig):
        shown = [f"{kind}: {_scalar(names)}" for kind, names in value if names is not None]
        return "{" + ", ".join(shown) + "}"
    if name in DURATIONS and isinstance(value, int):
        return format_duration(value)
    return _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text) and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.dump(text, default_style='"', width=2**31, allow_unicode=True)
    return quoted.strip()
