"""A first configuration from a slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import ConfigError, MachineConfig, QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.export.base import Derived
from qconf.export.nodes import expand, read_text
from qconf.export.slurm.differences import LONGEST_AGE
from qconf.history.times import slurm_limit

UNLIMITED = ("UNLIMITED", "INFINITE")


def derive(path: str | Path, *, cores: int | None = None, name: str | None = None) -> Derived:
    """Derive a configuration, as `Exporter.read` does; the nodes' cores and the ClusterName are the defaults."""
    reader = _Reader(path)
    total = cores or sum(reader.nodes.values())
    if not total:
        fix = "give --cores, or the file that has the NodeName lines"
        raise InputError("names no node", file=path, field="NodeName", fix=fix)
    size = min(reader.nodes.values(), default=1)
    if {size} != set(reader.nodes.values()) or size < 1 or total % size:
        size = 1
    called = name or reader.cluster
    try:
        machine = MachineConfig(name=called, cores=total, cores_per_node=size)
    except ValueError as error:
        raise InputError(f"no machine of {total} cores named {called!r} can be", file=path) from error
    queues = [
        (queue, reader.hosts(fields))
        for fields in reader.partitions
        if (queue := reader.queue(fields, size, total)) is not None
    ]
    if not queues:
        raise InputError("holds no partition that a job can enter", file=path, field="PartitionName")
    shape = _divided(machine, queues, reader)
    try:
        config = SiteConfig.build(machine=machine, reserve_after=reader.reserve_after(), **shape)
    except ConfigError as error:
        raise InputError(f"cannot be made a configuration: {error}", file=path) from error
    if config.reserve_after and not config.reservation_delay:
        reader.warnings.append(f"bf_min_age_reserve: as reserve_after it plays no part with mode {config.mode}")
    return Derived(config, tuple(reader.warnings))


class _Reader:
    """What a slurm.conf holds, and what is odd about it."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.cluster, self.parameters = "slurm", ""
        self.nodes: dict[str, int] = {}
        self.partitions: list[dict[str, str]] = []
        defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
        for line, fields in _lines(read_text(path)):
            first = next(iter(fields))
            if first == "clustername":
                self.cluster = fields[first]
            self.parameters = fields.get("schedulerparameters", self.parameters)
            if "schedulerparameters+" in fields:
                self.parameters += "," + fields["schedulerparameters+"]
            if first == "include":
                self.warnings.append(f"line {line}: included files are not read: {fields[first]}")
            if first not in defaults:
                continue
            if fields[first] == "DEFAULT":
                defaults[first] |= {key: value for key, value in fields.items() if key != first}
                continue
            merged = {**defaults[first], **fields, "line": str(line)}
            if first == "nodename":
                self.nodes |= dict.fromkeys(self.expand(merged, first), self.node_cores(merged))
            else:
                self.partitions.append(merged)

    def wrong(self, message: str, fields: dict[str, str], field: str, value: str | None = None) -> InputError:
        """Return the error to raise about a line."""
        return InputError(message, file=self.path, line=int(fields["line"]), field=field, value=value)

    def expand(self, fields: dict[str, str], key: str) -> list[str]:
        """Expand a field that is a host list."""
        text = fields.get(key, "")
        try:
            return list(expand(text)) if text else []
        except InputError as error:
            raise self.wrong("is no list of nodes", fields, "Nodes", text) from error

    def node_cores(self, fields: dict[str, str]) -> int:
        """Read the cores of the nodes of a line."""
        try:
            if "cpus" in fields:
                return int(fields["cpus"])
            sockets = int(fields.get("sockets", fields.get("socketsperboard", "1")))
            return sockets * int(fields.get("corespersocket", "1")) * int(fields.get("threadspercore", "1"))
        except ValueError as error:
            raise self.wrong("is no number of cores", fields, "NodeName") from error

    def hosts(self, fields: dict[str, str]) -> frozenset[str]:
        """Return the nodes of a partition."""
        return frozenset(self.nodes if fields.get("nodes", "").upper() == "ALL" else self.expand(fields, "nodes"))

    def queue(self, fields: dict[str, str], size: int, total: int) -> QueueConfig | None:
        """Read a partition; None, with a warning, where no job can enter it."""
        name = fields["partitionname"]
        if fields.get("state", "UP").upper() != "UP":
            self.warnings.append(f"{name}: State={fields['state']}, left out")
            return None
        try:
            least = int(fields.get("minnodes", "0"))
            most, longest = (fields.get(key, "UNLIMITED").upper() for key in ("maxnodes", "maxtime"))
            upto = MAX_DURATION if longest in UNLIMITED else min(slurm_limit(longest), MAX_DURATION)
            tier, factor = (int(fields.get(key, "1")) for key in ("prioritytier", "priorityjobfactor"))
            widest = MAX_CORES if most in UNLIMITED else int(most) * size
            narrowest = max(1, (least - 1) * size + 1)
            if narrowest > min(widest, total) or not upto:
                self.warnings.append(f"{name}: left out, no job can enter it")
                return None
            if "qos" in fields:
                self.warnings.append(
                    f"{name}: the limits of QOS {fields['qos']} are not in slurm.conf; add max_run and the like"
                )
            return QueueConfig(
                name=name,
                cores=(narrowest, widest if widest == MAX_CORES else min(widest, total)),
                walltime=(0, upto),
                priority=float(max(1, factor if factor > 1 else tier)),
            )
        except ValueError as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise self.wrong(f"is not understood: {reason}", fields, "PartitionName", name) from error

    def reserve_after(self) -> int:
        """Read bf_min_age_reserve among the SchedulerParameters; a value that is an error to Slurm counts as none."""
        found = re.search(r"(?:^|,)\s*bf_min_age_reserve=([^,\s]*)", self.parameters, re.IGNORECASE)
        if found is None:
            return 0
        if re.fullmatch(r"[0-9]{1,7}", found[1]) and int(found[1]) <= LONGEST_AGE:
            return int(found[1])
        self.warnings.append(f"bf_min_age_reserve={found[1]} is no number of seconds up to {LONGEST_AGE}: left out")
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


def _divided(
    machine: MachineConfig, queues: list[tuple[QueueConfig, frozenset[str]]], reader: _Reader
) -> dict[str, Any]:
    """Work out mode and partitions: the machine is partitioned where the partitions share no node, else shared."""
    every = frozenset(reader.nodes)
    own = [hosts for _, hosts in queues if hosts != every]
    whole = own and frozenset().union(*own) == every and sum(map(len, own)) == len(every)
    if whole and sum(reader.nodes.values()) == machine.cores:
        shares = {hosts: sum(reader.nodes[node] for node in hosts) for hosts in own}
        parted = [
            queue.model_copy(update={"partition": shares.get(hosts, 0), "reservation": hosts == every})
            for queue, hosts in queues
        ]
        return {"mode": "partitioned", "queues": parted}
    if own:
        reader.warnings.append(
            "the partitions share some nodes and not others, or leave some out: taken as one shared machine"
        )
    return {"mode": "shared", "queues": [queue for queue, _ in queues]}
