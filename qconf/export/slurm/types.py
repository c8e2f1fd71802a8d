"""Read the kinds of Slurm nodes: memory, GPUs and other generic resources, features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from parsim.model.node_types import MOST, MOST_WEIGHT
from qconf.export.slurm.conf import Conf, Fields
from qconf.export.types import FEATURE, NAME, Kind

_GRES = re.compile(r"([^:=]+)(?::([^:=]+))??((?::no_consume)?)(?::([0-9]{1,12})([KMGTP]?))?", re.IGNORECASE)
_WORDS = {"realmemory": "RealMemory", "memspeclimit": "MemSpecLimit", "weight": "Weight"}
_SHARED = ("mps", "shard")  #: parts of GPUs
_NOT_UP = ("DOWN", "DRAIN", "FAIL", "FAILING")


def kinds(conf: Conf, limited: Collection[str] = (), *, weighed: bool = False) -> dict[str, Kind]:
    """Return the kind of each node, by name, in order of weight; `weighed` keeps weights, and sorts ties by name.

    A type of a generic resource, like ``gpu:a100``, is a feature. It is also counted if a node has several types of the
    resource, such as slices of a GPU, or if it is in `limited`. Raises InputError.
    """
    for name, fields in conf.lines.items():
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,255}", name):
            raise conf.wrong("is no name of a node", fields, "NodeName", name)
    lines = {id(fields): fields for fields in conf.lines.values()}
    listed = {key: _gres(conf, fields) for key, fields in lines.items()}
    apart = {name.lower() for name in limited} | {name.lower() for each in listed.values() for name in _several(each)}
    known = {key: _kind(conf, fields, listed[key], apart) for key, fields in lines.items()}
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
    """Return a sort key with n2 before n10, Slurm's order of nodes."""
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", name)]


def _kind(conf: Conf, fields: Fields, gres: Sequence[tuple[str, str, int]], apart: Collection[str]) -> Kind:
    """Read the kind of a line of nodes, without cores."""
    memory = _number(conf, fields, "realmemory", 0) - _number(conf, fields, "memspeclimit", 0)
    select = conf.settings.get("selecttypeparameters", "cr_core_memory").lower()
    if memory > 0 and "memory" not in select:
        conf.warnings.append("RealMemory of nodes: left out, SelectTypeParameters has no Memory: Slurm counts none")
        memory = 0
    features = {each for each in re.split(r"[,&]", fields.get("feature", fields.get("features", ""))) if each}
    amounts: Counter[str] = Counter()
    for name, kind, amount in gres:
        amounts[{"gpu": "gpus"}.get(name, name)] += amount
        if kind and f"{name}:{kind}".lower() in apart:
            amounts[f"{name}:{kind}"] += amount
        elif kind:
            features.add(f"{name}:{kind}")
    return Kind(
        cores=0,
        memory=max(0, min(memory, MOST)),
        gpus=amounts.pop("gpus", 0),
        resources=tuple(sorted(amounts.items())),
        features=frozenset(each for each in features if FEATURE.fullmatch(each)),
    )


def _several(gres: Sequence[tuple[str, str, int]]) -> set[str]:
    """Return the types of generic resources of which a node has several types."""
    kinds = {(name, kind) for name, kind, _ in gres}
    names = Counter(name for name, _ in kinds)
    return {f"{name}:{kind}" for name, kind in kinds if kind and names[name] > 1}


def _gres(conf: Conf, fields: Fields) -> list[tuple[str, str, int]]:
    """Return (name, type, number) of a line's counted generic resources."""
    named = {each.strip().lower() for each in conf.settings.get("grestypes", "").split(",")} - {""}
    found = []
    for text in re.split(r",(?![^(]*\))", fields.get("gres", "")):
        item = re.sub(r"\([^)]*\)", "", text).strip()
        if not item or item.lower() == "(null)":
            continue
        match = _GRES.fullmatch(item)
        name, kind, free, number, unit = match.groups(default="") if match else [item, "", "", "", ""]
        amount = int(number or 1) * 1024 ** " KMGTP".index((unit or " ").upper())
        whole = f"{name}:{kind}" if kind else name
        if match and named and name.lower() not in named:
            conf.warnings.append(f"Gres={name}: left out, GresTypes does not have it")
        elif amount > MOST:
            conf.warnings.append(f"Gres={item}: left out, at most {MOST} can be counted")
        elif free or not match or not NAME.fullmatch(whole):
            conf.warnings.append(f"Gres={item}: left out, it is not counted here")
        elif amount:
            found.append((name.lower() if name.lower() in ("gpu", *_SHARED) else name, kind, amount))
    if any(name in _SHARED for name, *_ in found):
        conf.warnings.append(
            "Gres=mps and shard are counted beside GPUs: in Slurm a GPU is given whole or in parts, here both at once"
        )
    return found


def _number(conf: Conf, fields: Fields, key: str, otherwise: int) -> int:
    text = fields.get(key, "")
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", text, re.IGNORECASE)
    if text and match is None:
        raise conf.wrong("is no whole number", fields, _WORDS[key], text)
    return otherwise if match is None else int(match[1]) * 1024 ** " KMG".index(match[2].upper() or " ")
