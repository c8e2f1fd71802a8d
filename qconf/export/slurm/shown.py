"""Convert the output of ``scontrol show config``, ``node`` and ``partition`` to lines of a slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qconf.hosts import expand, hosts_in

Lines = list[tuple[int, dict[str, str]]]

SHOWN = re.compile(r"\b(?:TotalCPUs|CPUTot|CPUAlloc)=\d|^Configuration data as of", re.MULTILINE)
_BEGIN = re.compile(r"\s*(PartitionName|NodeName)=")
_SETTING = re.compile(r"(\w+)\s+= ?(.*?)\s*")
_WORD = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")
_TEXTS = re.compile(r"\s(?:Reason|Comment|Extra)=.*")  #: free text up to the end of the line
_NOTHING = ("(null)", "N/A", "n/a")
#: Default values of a partition, and (_OF_NODES) values that follow from its nodes.
_DEFAULTS = {
    **dict.fromkeys(("allowgroups", "allowaccounts", "allowqos", "allocnodes"), ("ALL",)),
    **dict.fromkeys(("disablerootjobs", "exclusiveuser", "exclusivetopo", "hidden", "lln", "reqresv"), ("NO",)),
    **dict.fromkeys(("rootonly", "oversubscribe", "shared", "default", "powerdownonidle"), ("NO",)),
    **dict.fromkeys(("maxnodes", "maxcpuspernode", "maxcpuspersocket", "defmempernode"), ("UNLIMITED",)),
    **dict.fromkeys(("defaulttime", "overtimelimit", "selecttypeparameters"), ("NONE",)),
    "maxmempernode": ("UNLIMITED",),
    "minnodes": ("0", "1"),
    "gracetime": ("0",),
    "preemptmode": ("OFF",),
}
_OF_NODES = ("totalcpus", "totalnodes", "tres", "nodesets")
_NODE = {
    "cputot": "cpus", "cpus": "cpus", "realmemory": "realmemory", "memspeclimit": "memspeclimit", "gres": "gres",
    "availablefeatures": "feature", "features": "feature", "weight": "weight",
}  # fmt: skip


def lines(text: str, warnings: list[str]) -> Lines | None:
    """Return (line number, fields) as of a slurm.conf; None if the text is no output of scontrol."""
    if SHOWN.search(text) is None:
        return None
    nodes: Lines = []
    partitions: Lines = []
    settings: Lines = []
    members: dict[str, tuple[int, list[str]]] = {}  # nodes by partition, as nodes show them
    for number, block in _blocks(text):
        words = {key.lower(): value for key, value in _WORD.findall(_TEXTS.sub("", block))}
        words = {key: value for key, value in words.items() if value not in _NOTHING}
        if "nodename" in words:
            nodes.append((number, _node(words)))
            for name in filter(None, words.get("partitions", "").split(",")):
                members.setdefault(name, (number, []))[1].append(words["nodename"])
        elif "partitionname" in words:
            partitions.append((number, words))
        elif (setting := _SETTING.fullmatch(block)) and setting[2] not in _NOTHING:
            settings.append((number, {setting[1].lower(): setting[2]}))
    if members and not partitions:
        warnings.append("partitions of nodes, without limits and access: scontrol show partition shows them")
        partitions = [
            (number, {"partitionname": name, "nodes": ",".join(hosts)}) for name, (number, hosts) in members.items()
        ]
    nodes += _of_partitions(partitions, {each["nodename"] for _, each in nodes}, warnings)
    return [*settings, *nodes, *((number, _partition(words)) for number, words in partitions)]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the block of each node and partition, and each other line, with its first line number."""
    first, block = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.rstrip()
        if block and line.strip() and not _BEGIN.match(line) and not _SETTING.fullmatch(line):
            block = f"{block}\n{line}"
            continue
        if block:
            yield first, block
        first, block = (number, line) if _BEGIN.match(line) else (0, "")
        if line.strip() and not block:
            yield number, line
    if block:
        yield first, block


def _node(words: dict[str, str]) -> dict[str, str]:
    """Return the fields of a node's line: usable CPUs, resources, and State if it is down."""
    found = {"nodename": words["nodename"]}
    found |= {_NODE[key]: value for key, value in words.items() if key in _NODE}
    found["cpus"] = words.get("cpuefctv", found.get("cpus", "1"))
    if "cpuefctv" not in words:
        found |= {key: words[key] for key in ("cpuspeclist", "corespeccount", "threadspercore") if key in words}
    states = re.split(r"[+*~#!%$@^-]+", words.get("state", "").upper())
    down = next((state for state in states if re.fullmatch("DOWN|DRAIN.*|FAIL.*|FUTURE", state)), "")
    return found | ({"state": "FUTURE" if down == "FUTURE" else "DOWN"} if down else {})


def _partition(words: dict[str, str]) -> dict[str, str]:
    """Return the fields of a partition's line, without defaults."""
    return {
        key: value for key, value in words.items()
        if key not in _OF_NODES and value.upper() not in _DEFAULTS.get(key, ())
    }  # fmt: skip


def _of_partitions(partitions: Lines, known: set[str], warnings: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield lines for nodes that are not shown, as equal parts of the smallest partition with them."""
    for number, words in sorted(partitions, key=lambda each: int(each[1].get("totalnodes", "0"))):
        hosts = words.get("nodes", "")
        names = [name for name in (expand(hosts) if hosts_in(hosts) else ()) if name not in known]
        count = int(words.get("totalnodes", "0"))
        totals = dict(word.split("=", 1) for word in words.get("tres", "").split(",") if "=" in word)
        cpus = totals.get("cpu", words.get("totalcpus", ""))  # of TRES: without those kept for the system
        if not names or not count or not cpus.isdigit():
            continue
        known |= {*names}
        uneven = ", which have other cores than each other" * (int(cpus) % count > 0)
        warnings.append(
            f"the nodes of {words['partitionname']}{uneven}: taken as equal parts of it; scontrol show node shows them"
        )
        of_kinds = [name for name in totals if name.startswith("gres/gpu:")] or ["gres/gpu"]
        gpus = [(name, int(totals[name]) // count) for name in of_kinds if totals.get(name, "").isdigit()]
        memory = re.fullmatch(r"(\d{1,12})(?:\.\d+)?([MGT])", totals.get("mem", ""))
        fields = {"nodename": ",".join(names), "cpus": str(int(cpus) // count)}
        if memory:
            fields["realmemory"] = str(int(memory[1]) * 1024 ** "MGT".index(memory[2]) // count)
        if of_gpus := [f"{name.removeprefix('gres/')}:{most}" for name, most in gpus if most]:
            fields["gres"] = ",".join(of_gpus)
        yield number, fields
