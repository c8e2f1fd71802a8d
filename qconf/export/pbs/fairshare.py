"""Fair share in PBS: write and read the shares as a resource_group, and the lines of sched_config on usage."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from parsim.model.fairshare import EQUAL_SHARES, MOST_SHARES
from parsim.model.formula import expression
from qconf.config import FairshareConfig, ShareConfig, SiteConfig, format_clock
from qconf.errors import ExportError, InputError
from qconf.export.nodes import read_text
from qconf.export.pbs.server import Scheduler, seconds

ROOT, UNKNOWN = "root", "unknown"
FIRST_ID = 10  #: first id in a resource_group; lower ones are reserved by PBS
_ENTRY = re.compile(r"(\S+)\s+([0-9]{1,9})\s+(\S+)\s+([0-9]{1,10})\s*(?:#.*)?")
USAGE = "ncpus*walltime"  #: usage as in the simulator
_NAMES = {"cores": "ncpus", "gpus": "ngpus", "memory": "mem"}  #: PBS's names of resources
_SAME = ("cput", USAGE, "walltime*ncpus")


def by_pbs(config: SiteConfig, text: str) -> str:
    """Return a formula with PBS's names of fair-share values. Raises ExportError."""
    tree = config.tree
    if re.search(r"\bactive_jobs\b", text):
        raise ExportError("order: active_jobs: PBS's formulas do not count the running jobs of a user")
    if re.search(r"\bfairshare_target\b", text):
        raise ExportError("order: fairshare_target is Maui's; PBS's formulas have no targets of users")
    if not re.search(r"\bfair_share\b", text):
        return text
    if tree.fair_share == "tree":
        raise ExportError("order: fair_share as the rank in a Fair Tree is Slurm's; PBS has fairshare_factor")
    return re.sub(r"\bfair_share\b", "fairshare_factor", text)


def usage(config: SiteConfig) -> str:
    """Return fairshare_usage_res: weighted resources times walltime. Raises ExportError."""
    charges = dict(config.tree.charges)
    if not charges:
        return USAGE
    if config.tree.charged == "max" and len(charges) > 1:
        raise ExportError("fairshare: charged: max has no form in PBS, which adds up; use sum")
    terms = []
    for name, weight in charges.items():
        called, per = _NAMES.get(name, name), weight / (1024 if name == "memory" else 1)  # PBS counts memory in KiB
        terms.append(called if per == 1 else f"{per:.12f}".rstrip("0").rstrip(".") + f"*{called}")
    return f"{terms[0]}*walltime" if len(terms) == 1 else f"({'+'.join(terms)})*walltime"


def charges_of(text: str) -> dict[str, float] | None:
    """Return the weight by resource of a fairshare_usage_res, None if it is no weighted sum times walltime."""
    if text in _SAME:
        return {}
    try:
        sums = _sums(expression(text))
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = {}
    for names, weight in sums.items():
        others = [name for name in names if name != "walltime"]
        if len(names) != 2 or len(others) != 1 or weight < 0:
            return None
        name = next((resource for resource, own in _NAMES.items() if own == others[0]), others[0])
        found[name] = weight * (1024 if name == "memory" else 1)
    return found


def _sums(node: ast.expr) -> dict[tuple[str, ...], float]:
    """Expand an expression into a sum: the coefficient of each product of names. Raises ValueError."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return {(): float(number)}
        case ast.Name(id=name):
            return {(name,): 1.0}
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult() as op, right=right):
            one, other = _sums(left), _sums(right)
            if isinstance(op, ast.Add):
                return {names: one.get(names, 0) + other.get(names, 0) for names in {**one, **other}}
            return {tuple(sorted((*a, *b))): x * y for a, x in one.items() for b, y in other.items()}
    raise ValueError(ast.dump(node))


def resource_group(config: SiteConfig) -> str:
    """Return the tree of shares as the text of a resource_group; parents come first."""
    lines = ["# The tree of shares. Written by qconf export.", "# name\tid\tgroup\tshares"]
    numbers = {share.name: FIRST_ID + i for i, share in enumerate(config.shares)}
    left = list(config.shares)
    written: set[str | None] = {None}
    while left:
        ready = [share for share in left if share.group in written]
        written |= {share.name for share in ready}
        left = [share for share in left if share not in ready]
        lines += [f"{s.name}\t{numbers[s.name]}\t{s.group or ROOT}\t{s.shares}" for s in ready]
    return "\n".join(lines) + "\n"


def settings(config: SiteConfig) -> dict[str, str]:
    """Return the lines of sched_config on usage, by name; empty if the order reads no shares."""
    if not config.is_fair:
        return {}
    tree = config.tree
    return {
        "fairshare_usage_res": usage(config),
        "fairshare_entity": "euser",
        "fairshare_decay_time": format_clock(tree.decay_time),
        "fairshare_decay_factor": f"{tree.decay_factor:.9g}",
        # Without a tree all users are unknown, and share equally.
        "unknown_shares": str(tree.unknown_shares if config.shares else max(tree.unknown_shares, 1)),
    }


def read_shares(path: str | Path) -> tuple[ShareConfig, ...]:
    """Read a resource_group. Raises InputError."""
    found: dict[str, ShareConfig] = {}
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        entry = _ENTRY.fullmatch(text)
        if entry is None or int(entry[4]) > MOST_SHARES:
            fix = "give the scheduler's sched_priv/resource_group"
            raise InputError("is no line like 'alice 10 root 5'", file=path, line=number, value=text, fix=fix)
        name, _, group, shares = entry.groups()
        if name in found:
            raise InputError("is there twice", file=path, line=number, value=name)
        found[name] = ShareConfig(name=name, shares=int(shares), group=None if group == ROOT else group)
    for share in found.values():
        if share.group is not None and share.group not in found:
            raise InputError(f"{share.name} is in a group that has no line", file=path, value=share.group)
    return tuple(found.values())


def with_shares(
    config: SiteConfig, shares: Sequence[ShareConfig], scheduler: Scheduler, warnings: list[str]
) -> SiteConfig:
    """Return `config` with shares and decay of usage, if the order reads them or shares are given."""
    if not (config.is_fair or shares):
        return config
    found: dict[str, object] = {}
    if (half := scheduler.value("half_life")) is not None:
        found |= {"decay_time": seconds(half), "decay_factor": 0.5}
    if (time := scheduler.value("fairshare_decay_time")) is not None and re.fullmatch(r"[0-9:]+", time):
        found["decay_time"] = max(1, seconds(time))
    if (factor := scheduler.value("fairshare_decay_factor")) is not None and re.fullmatch(r"[01]?\.?[0-9]+", factor):
        found["decay_factor"] = float(factor)
    unknown = scheduler.value("unknown_shares")
    if shares:
        found["unknown_shares"] = int(unknown) if unknown is not None and unknown.isdigit() else 0
    if (value := scheduler.value("fairshare_usage_res")) is not None:
        charges = charges_of(value)
        if charges is None:
            warnings.append(f"sched_config: fairshare_usage_res {value}: simulated as {USAGE}")
        found["charges"] = charges or {}
    if (value := scheduler.value("fairshare_entity")) not in (None, "euser"):
        warnings.append(f"sched_config: fairshare_entity {value}: simulated as euser")
    given = FairshareConfig.model_validate(found)
    default = FairshareConfig.model_validate({"unknown_shares": EQUAL_SHARES.unknown_shares})
    return config.replace(shares=tuple(shares), fairshare=None if given == default else given)
