"""What counts of Slurm's nodes: memory, GPUs and other generic resources, and features."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from parsim.node_types import MOST, MOST_WEIGHT
from qconf.export.slurm.conf import Conf, Fields
from qconf.export.types import FEATURE, NAME, Kind

_GRES = re.compile(r"(\w+)(?::([\w.-]+))??((?::no_consume)?)(?::([0-9]{1,12})([KMGT]?))?", re.IGNORECASE)
_WORDS = {"realmemory": "RealMemory", "memspeclimit": "MemSpecLimit", "weight": "Weight"}
_SHARED = ("mps", "shard")  #: parts of GPUs
_NOT_UP = ("DOWN", "DRAIN", "FAIL", "FAILING")


def kinds(conf: Conf, *, weighed: bool = False) -> dict[str, Kind]:
    """Return what counts of each node, in the order of weights; `weighed`, with these, of one weight in that of names.

    Raises InputError.
    """
    for name, fields in conf.lines.items():
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,255}", name):
            raise conf.wrong("is no name of a node", fields, "NodeName", name)
    known = {id(fields): _kind(conf, fields) for fields in conf.lines.values()}
    down = [name for name, fields in conf.lines.items() if fields.get("state", "").upper() in _NOT_UP]
    if down:
        conf.warnings.append(
            f"{len(down)} nodes have State=DOWN or the like: counted as the others, as if they were up"
        )
    weights = {name: min(_number(conf, fields, "weight", 1), MOST_WEIGHT) for name, fields in conf.lines.items()}
    found = {}
    for name in sorted(sorted(conf.lines, key=_number_by_number) if weighed else conf.lines, key=weights.__getitem__):
        weight = weights[name] if weighed else 1
        found[name] = replace(known[id(conf.lines[name])], cores=conf.nodes[name], weight=weight)
    return found


def _number_by_number(name: str) -> list[str | int]:
    """Return what puts names in an order in which n2 is before n10, as Slurm has its nodes."""
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]


def _kind(conf: Conf, fields: Fields) -> Kind:
    """Read one line of nodes."""
    memory = _number(conf, fields, "realmemory", 0) - _number(conf, fields, "memspeclimit", 0)
    select = conf.settings.get("selecttypeparameters", "cr_core_memory").lower()
    if memory > 0 and "memory" not in select:
        conf.warnings.append("RealMemory of nodes: left out, SelectTypeParameters has no Memory: Slurm counts none")
        memory = 0
    gpus = 0
    resources: dict[str, int] = {}
    features = {each for each in re.split(r"[,&]", fields.get("feature", fields.get("features", ""))) if each}
    for name, kind, amount in _gres(conf, fields):
        if name == "gpu":
            gpus += amount
            features |= {f"gpu:{kind}"} if kind else set()
        else:
            resources[name] = resources.get(name, 0) + amount
    return Kind(
        cores=0,
        memory=max(0, min(memory, MOST)),
        gpus=gpus,
        resources=tuple(sorted(resources.items())),
        features=frozenset(each for each in features if FEATURE.fullmatch(each)),
    )


def _gres(conf: Conf, fields: Fields) -> Iterator[tuple[str, str, int]]:
    """Yield name, kind and number of the generic resources of a line that are counted."""
    named = {each.strip().lower() for each in conf.settings.get("grestypes", "").split(",")} - {""}
    for text in re.split(r",(?![^(]*\))", fields.get("gres", "")):
        item = re.sub(r"\([^)]*\)", "", text).strip()
        if not item or item.lower() == "(null)":
            continue
        match = _GRES.fullmatch(item)
        if match is None:
            raise conf.wrong("is no list like gpu:a100:4,fpga:2", fields, "Gres", text)
        name, kind, free, number, unit = match.groups()
        amount = int(number or 1) * 1024 ** " KMGT".index((unit or " ").upper())
        if named and name.lower() not in named:
            conf.warnings.append(f"Gres={name}: left out, GresTypes does not have it")
        elif free or name.lower() in _SHARED or not NAME.fullmatch(name) or amount > MOST:
            conf.warnings.append(f"Gres={item}: left out, it is not counted here")
        elif amount:
            yield ("gpu" if name == "gpu" else name), kind or "", amount


def _number(conf: Conf, fields: Fields, key: str, otherwise: int) -> int:
    text = fields.get(key, "")
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", text, re.IGNORECASE)
    if text and match is None:
        raise conf.wrong("is no whole number", fields, _WORDS[key], text)
    return otherwise if match is None else int(match[1]) * 1024 ** " KMG".index(match[2].upper() or " ")
