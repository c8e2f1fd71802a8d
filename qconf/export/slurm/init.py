"""A first configuration from a slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import ConfigError, MachineConfig, QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.export.pbs.init import Found
from qconf.export.pbs.nodes import expand
from qconf.export.slurm.scripts import LONGEST_AGE
from qconf.history.times import slurm_limit

UNLIMITED = ("UNLIMITED", "INFINITE")


def init_slurm(path: str | Path, *, cores: int | None = None, name: str | None = None) -> Found:
    """Derive a configuration.

    Parameters
    ----------
    path : str or Path
        slurm.conf, or a file of its partitions together with its nodes.
    cores : int, optional
        Of the machine; default what the NodeName lines say.
    name : str, optional
        Of the machine; default its ClusterName.

    Raises
    ------
    InputError
        The file cannot be read, or holds no partition that a job can enter.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error
    warnings: list[str] = []
    nodes: dict[str, int] = {}
    partitions: list[dict[str, str]] = []
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    cluster, parameters = "slurm", ""
    for line, fields in _lines(text):
        first = next(iter(fields))
        if first == "clustername":
            cluster = fields[first]
        if "schedulerparameters" in fields:
            parameters = fields["schedulerparameters"]
        if "schedulerparameters+" in fields:
            parameters += "," + fields["schedulerparameters+"]
        if first == "include":
            warnings.append(f"line {line}: included files are not read: {fields[first]}")
        if first not in defaults:
            continue
        if fields[first] == "DEFAULT":
            defaults[first] |= {key: value for key, value in fields.items() if key != first}
        elif first == "nodename":
            size = _node_cores({**defaults[first], **fields}, line, path)
            nodes.update((node, size) for node in _expand(fields[first], line, path))
        else:
            partitions.append({**defaults[first], **fields, "line": str(line)})
    total = cores or sum(nodes.values())
    if not total:
        fix = "give --cores; what qmgr prints is read with --from-pbs"
        raise InputError("names no node", file=path, field="NodeName", fix=fix)
    sizes = set(nodes.values())
    size = sizes.pop() if len(sizes) == 1 and total % min(nodes.values()) == 0 else 1
    try:
        machine = MachineConfig(name=name or cluster, cores=total, cores_per_node=size)
    except ValueError as error:
        raise InputError(f"no machine of {total} cores named {name or cluster!r} can be", file=path) from error
    places: dict[str, frozenset[str]] = {}
    queues = []
    for fields in partitions:
        queue = _queue(fields, size, total, warnings, path)
        if queue is not None:
            queues.append(queue)
            listed = fields.get("nodes", "")
            every = listed.upper() == "ALL"
            places[queue.name] = frozenset(nodes if every else _expand(listed, int(fields["line"]), path))
    if not queues:
        raise InputError("holds no partition that a job can enter", file=path, field="PartitionName")
    try:
        config = _divided(machine, queues, places, nodes, warnings)
        config = config.replace(reserve_after=_reserve_after(parameters, warnings))
    except ConfigError as error:
        raise InputError(f"cannot be made a configuration: {error}", file=path) from error
    if config.reserve_after and not config.reservation_delay:
        warnings.append(f"bf_min_age_reserve: as reserve_after it plays no part with mode {config.mode}")
    return Found(config, warnings)


def _reserve_after(parameters: str, warnings: list[str]) -> int:
    """Read bf_min_age_reserve among the SchedulerParameters; where Slurm takes it for an error, it counts as none."""
    found = re.search(r"(?:^|,)\s*bf_min_age_reserve=([^,\s]*)", parameters, re.IGNORECASE)
    if found is None:
        return 0
    if re.fullmatch(r"[0-9]{1,7}", found[1]) and int(found[1]) <= LONGEST_AGE:
        return int(found[1])
    warnings.append(f"bf_min_age_reserve={found[1]} is no number of seconds up to {LONGEST_AGE}: left out")
    return 0


def _lines(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line, fields) with keys in lower case, with a + where += adds; a line ending in a backslash goes on."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        first = first if pending else number
        joined = pending + re.sub(r"(^|\s)#.*", "", raw)
        if joined.endswith("\\"):
            pending = joined[:-1]
            continue
        pending = ""
        if include := re.match(r"\s*include\s+(\S+)", joined, re.IGNORECASE):
            yield first, {"include": include[1]}
            continue
        fields = re.findall(r'([A-Za-z]\w*)\s*(\+?)=\s*("[^"]*"|\S*)', joined)
        if fields:
            yield first, {key.lower() + added: value.strip('"') for key, added, value in fields}


def _expand(text: str, line: int, path: str | Path) -> list[str]:
    try:
        return list(expand(text)) if text else []
    except InputError as error:
        raise InputError("is no list of nodes", file=path, line=line, field="Nodes", value=text) from error


def _node_cores(fields: dict[str, str], line: int, path: str | Path) -> int:
    try:
        if "cpus" in fields:
            return int(fields["cpus"])
        sockets = int(fields.get("sockets", fields.get("socketsperboard", "1")))
        return sockets * int(fields.get("corespersocket", "1")) * int(fields.get("threadspercore", "1"))
    except ValueError as error:
        raise InputError("is no number of cores", file=path, line=line, field="NodeName") from error


def _queue(fields: dict[str, str], size: int, total: int, warnings: list[str], path: str | Path) -> QueueConfig | None:
    name, line = fields["partitionname"], int(fields["line"])
    if fields.get("state", "UP").upper() != "UP":
        warnings.append(f"{name}: State={fields['state']}, left out")
        return None
    try:
        least = int(fields.get("minnodes", "0"))
        most, longest = (fields.get(key, "UNLIMITED").upper() for key in ("maxnodes", "maxtime"))
        upto = MAX_DURATION if longest in UNLIMITED else min(slurm_limit(longest), MAX_DURATION)
        tier, factor = (int(fields.get(key, "1")) for key in ("prioritytier", "priorityjobfactor"))
        widest = MAX_CORES if most in UNLIMITED else int(most) * size
        narrowest = max(1, (least - 1) * size + 1)
        if narrowest > min(widest, total) or not upto:
            warnings.append(f"{name}: left out, no job can enter it")
            return None
        if "qos" in fields:
            warnings.append(
                f"{name}: the limits of QOS {fields['qos']} are not in slurm.conf; add max_run and the like"
            )
        return QueueConfig(
            name=name,
            cores=(narrowest, widest if widest == MAX_CORES else min(widest, total)),
            walltime=(0, upto),
            priority=float(max(1, factor if factor > 1 else tier)),
        )
    except ValidationError as error:
        raise InputError(
            f"is not understood: {error.errors()[0]['msg']}", file=path, line=line, field="PartitionName", value=name
        ) from error
    except ValueError as error:
        raise InputError(
            f"is not understood: {error}", file=path, line=line, field="PartitionName", value=name
        ) from error


def _divided(
    machine: MachineConfig,
    queues: list[QueueConfig],
    places: dict[str, frozenset[str]],
    nodes: dict[str, int],
    warnings: list[str],
) -> SiteConfig:
    """Tell a partitioned machine, whose partitions share no node, from a shared one."""
    spans = {name: held for name, held in places.items() if held == frozenset(nodes)}
    own = {name: held for name, held in places.items() if name not in spans}
    disjoint = sum(map(len, own.values())) == len(frozenset().union(*own.values())) if own else False
    whole = disjoint and frozenset().union(*own.values()) == frozenset(nodes)
    if whole and sum(nodes.values()) == machine.cores:
        parted = [
            q.model_copy(
                update={
                    "partition": sum(nodes[node] for node in own.get(q.name, ())),
                    "reservation": q.name in spans,
                }
            )
            for q in queues
        ]
        return SiteConfig.build(machine=machine, mode="partitioned", queues=tuple(parted))
    if own:
        warnings.append(
            "the partitions share some nodes and not others, or leave some out: taken as one shared machine"
        )
    return SiteConfig.build(machine=machine, mode="shared", queues=tuple(queues))
