"""Parse a slurm.conf with its included files, or what scontrol shows of it: settings, nodes, node sets, partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.errors import InputError
from qconf.export.nodes import beside, read_text
from qconf.hosts import expand, hosts_in, parts

Lines = list[tuple[int, dict[str, str]]]

SHOWN = re.compile(r"\b(?:TotalCPUs|CPUTot|CPUAlloc)=\d|^Configuration data as of", re.MULTILINE)
_BLOCK = re.compile(r"\s*(PartitionName|NodeName)=")
_SETTING = re.compile(r"(\w+)\s+= ?(.*?)\s*")
_SHOWN_WORD = re.compile(r"(?:^|\s)([A-Za-z]\w*)=(\S*)")
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


def shown_lines(text: str, warnings: list[str]) -> Lines | None:
    """Return (line number, fields) as of a slurm.conf; None if the text is no output of scontrol."""
    if SHOWN.search(text) is None:
        return None
    nodes: Lines = []
    partitions: Lines = []
    settings: Lines = []
    members: dict[str, tuple[int, list[str]]] = {}  # nodes by partition, as nodes show them
    for number, block in _blocks(text):
        words = {key.lower(): value for key, value in _SHOWN_WORD.findall(_TEXTS.sub("", block))}
        words = {key: value for key, value in words.items() if value not in _NOTHING}
        if "nodename" in words:
            nodes.append((number, _shown_node(words)))
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
    return [*settings, *nodes, *((number, _shown_partition(words)) for number, words in partitions)]


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the block of each node and partition, and each other line, with its first line number."""
    first, block = 0, ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.rstrip()
        if block and line.strip() and not _BLOCK.match(line) and not _SETTING.fullmatch(line):
            block = f"{block}\n{line}"
            continue
        if block:
            yield first, block
        first, block = (number, line) if _BLOCK.match(line) else (0, "")
        if line.strip() and not block:
            yield number, line
    if block:
        yield first, block


def _shown_node(words: dict[str, str]) -> dict[str, str]:
    """Return the fields of a node's line: usable CPUs, resources, and State if it is down."""
    found = {"nodename": words["nodename"]}
    found |= {_NODE[key]: value for key, value in words.items() if key in _NODE}
    found["cpus"] = words.get("cpuefctv", found.get("cpus", "1"))
    if "cpuefctv" not in words:
        found |= {key: words[key] for key in ("cpuspeclist", "corespeccount", "threadspercore") if key in words}
    states = re.split(r"[+*~#!%$@^-]+", words.get("state", "").upper())
    down = next((state for state in states if re.fullmatch("DOWN|DRAIN.*|FAIL.*|FUTURE", state)), "")
    return found | ({"state": "FUTURE" if down == "FUTURE" else "DOWN"} if down else {})


def _shown_partition(words: dict[str, str]) -> dict[str, str]:
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


MARK = "written by qconf export"

_HUGE = "math.huge"
_TYPE = re.compile(r"^# Nodes (\S+): (\S+)$", re.MULTILINE)

#: Older name of a key -> present name. Of both on a line Slurm takes the present one, but Priority.
_NOW = {"shared": "oversubscribe", "priority": "prioritytier", "procs": "cpus"}

#: Words of Slurm's booleans.
YES, NO = ("YES", "UP", "TRUE", "1"), ("NO", "DOWN", "FALSE", "0")
#: Marks of templates: of their languages, or a value to put in, like ``<nodes>``.
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\[%|\$\{|=\s*[<{]\w")

Fields = dict[str, str]


def is_yes(value: str) -> bool:
    """Whether a boolean of slurm.conf is true."""
    return value.upper() in YES


class Conf:
    """The content of a slurm.conf; `warnings` lists what is ignored."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.exported = False  #: whether an export wrote its partitions
        self.called: dict[tuple[str, ...], str] = {}  #: from an export: nodes of a type -> its name
        self.settings: Fields = {}
        self.nodes: dict[str, int] = {}  #: cores by name
        self.lines: dict[str, Fields] = {}  #: fields of each node's line
        self.partitions: list[Fields] = []
        self.lines_of_partitions: list[str] = []  #: raw text, in order
        self._features: dict[str, set[str]] = {}
        self.sets: dict[str, list[Fields]] = {}
        self.future: set[str] = set()  #: nodes with State=FUTURE
        defaults: dict[str, Fields] = {"nodename": {}, "partitionname": {}, "nodeset": {}}
        down: list[Fields] = []
        for fields in self._read(Path(path), ()):
            first = next(iter(fields))
            if first == "downnodes":
                down.append(fields)
                continue
            if first not in defaults:
                self._set(fields)
            elif fields[first].upper() == "DEFAULT":
                defaults[first] |= {key: value for key, value in fields.items() if key != first}
            else:
                merged = {**defaults[first], **fields}
                if first == "nodename":
                    self._add_nodes(merged)
                elif first == "nodeset":
                    self.sets.setdefault(fields[first], []).append(merged)
                else:
                    self._add_partition(merged)
        for fields in down:
            for name in self.expand(fields["downnodes"], fields):
                if name in self.lines:
                    self.lines[name] = {**self.lines[name], "state": fields.get("state", "DOWN")}
        if not self.exported:
            self._default()
        if self.future:
            self.warnings.append(f"{len(self.future)} nodes have State=FUTURE: left out")

    def beside(self, name: str) -> str:
        """Read another file of the export that wrote the partitions, "" without one."""
        text = beside(Path(self.path).parent, name) if self.exported else ""
        return text if MARK in text.lower() or name.endswith(".sacctmgr") else ""

    def statements(self, file: str) -> Iterator[tuple[str, str, str, str]]:
        """Yield (kind, name, word, value) for each setting in an export's file of sacctmgr lines."""
        line = r"^modify (qos|account|user) (?:where name=)?(\S+) set (.*)$"
        for kind, name, words in re.findall(line, self.beside(file), re.MULTILINE):
            for each in words.split():
                word, _, value = each.rpartition("=")
                yield kind, name, word.removesuffix("+"), value

    def routes(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Read the queues' ranges of cores and walltime from an export's job_submit.lua, in order; may be empty."""
        row = r'name = "([^"]+)", least = (\d+), most = (\d+|math\.huge), above = (\d+), upto = (\d+|math\.huge)\b'
        return {
            name: {
                "cores": (int(least), MAX_CORES if most == _HUGE else int(most)),
                "walltime": (int(above), MAX_DURATION if upto == _HUGE else int(upto)),
            }
            for name, least, most, above, upto in re.findall(row, self.beside("job_submit.lua"))
        }

    def wrong(self, message: str, fields: Fields, field: str, value: str | None = None) -> InputError:
        """Return an `InputError` that names a line."""
        return InputError(message, file=fields["file"], line=int(fields["line"]), field=field, value=value)

    def hosts(self, fields: Fields) -> frozenset[str]:
        """Return the nodes of a line (names, node sets, ALL); unknown nodes are left out, if any node is known."""
        found: set[str] = set()
        for part in parts(fields.get("nodes", "")):
            if part.upper() == "ALL":
                found |= {*self.nodes}
            elif part in self.sets:
                for each in self.sets[part]:
                    found |= self.hosts(each) if "nodes" in each else set()
                    found |= {name for name, has in self._features.items() if each.get("feature") in has}
            else:
                found |= {*self.expand(part, fields)}
        if not self.nodes:
            return frozenset(found)
        if strange := sorted(found - {*self.nodes} - self.future):
            self.warnings.append(f"line {fields['line']}: no NodeName line has {', '.join(strange[:3])}: left out")
        return frozenset(found & {*self.nodes})

    def expand(self, text: str, fields: Fields) -> list[str]:
        """Expand a host list of a line. Raises InputError."""
        try:
            return list(expand(text)) if text else []
        except InputError as error:
            raise self.wrong("is no list of nodes", fields, "Nodes", text) from error

    def _default(self) -> None:
        """Take the defaults of Slurm 23.11 and later where earlier ones differ, with warnings."""
        weighs = any(key.startswith("priorityweight") and value != "0" for key, value in self.settings.items())
        if weighs and "prioritytype" not in self.settings:
            self.settings["prioritytype"] = "priority/multifactor"
            self.warnings.append("PriorityType is not set: taken as by Slurm 23.11 or later; before, no weight counts")
        if "clustername" in self.settings and "selecttype" not in self.settings:  # a whole slurm.conf
            self.warnings.append(
                "SelectType is not set: taken as by Slurm 23.11 or later; before, jobs get whole nodes: "
                "write machine.whole_nodes: true"
            )

    def _set(self, fields: Fields) -> None:
        for key, value in fields.items():
            if key.endswith("+"):
                self.settings[key[:-1]] = f"{self.settings.get(key[:-1], '')},{value}"
            elif key not in ("file", "line") and value.lower() not in ("(null)", "n/a"):
                self.settings[key] = value

    def _add_partition(self, fields: Fields) -> None:
        """Add a partition; a second line for it adds nodes, and overrides other keys."""
        found = next((each for each in self.partitions if each["partitionname"] == fields["partitionname"]), None)
        if found is None:
            self.partitions.append(fields)
            return
        nodes = [each["nodes"] for each in (found, fields) if each.get("nodes")]
        found |= fields | ({"nodes": ",".join(nodes)} if nodes else {})

    def _add_nodes(self, fields: Fields) -> None:
        names = self.expand(fields["nodename"], fields)
        if fields.get("state", "").upper() == "FUTURE":
            self.future |= {*names}
            return
        self.nodes |= dict.fromkeys(names, self._node_cores(fields))
        self.lines |= dict.fromkeys(names, fields)
        features = {*fields.get("feature", fields.get("features", "")).split(",")} - {""}
        self._features |= dict.fromkeys(names, features)

    def _node_cores(self, fields: Fields) -> int:
        """Return the CPUs of a node that jobs may use, without those reserved for the system."""

        def number(word: str, default: int) -> int:
            text = fields.get(word.lower(), str(default))
            if not re.fullmatch("[0-9]{1,9}", text):
                raise self.wrong("is no number", fields, f"{word} of {fields['nodename']}", text)
            return int(text)

        boards = number("Boards", 1) * number("SocketsPerBoard", 1)
        cores = number("Sockets", boards) * number("CoresPerSocket", 1)
        threads = number("ThreadsPerCore", 1)
        cpus = number("CPUs", cores * threads)
        if cores > 1:
            threads = max(1, cpus // cores)  # CPUs may mean cores
        kept = number("CoreSpecCount", 0) * threads
        if listed := fields.get("cpuspeclist"):
            kept = len(self.expand(f"[{listed}]", fields))
        return max(0, cpus - kept)

    def _read(self, path: Path, above: tuple[Path, ...]) -> Iterator[Fields]:
        """Yield the fields of each line of a file and of its included files: there, or beside it."""
        text = read_text(path)
        if MARK in text:
            self.exported = True
            self.called |= {tuple(expand(hosts)): name for name, hosts in _TYPE.findall(text)}
        listed = [(line, fields, "") for line, fields in shown_lines(text, self.warnings) or ()]
        for line, fields, written in listed or _lines(text):
            if _TEMPLATE.search(written) and next(iter(fields)) in ("include", "nodename", "partitionname"):
                fix = "give the slurm.conf that it makes, as the servers have it"
                raise InputError("is a line of a template", file=path, line=line, fix=fix)
            if "include" not in fields:
                self.lines_of_partitions += [written] if written and "partitionname" in fields else []
                yield {**fields, "file": str(path), "line": str(line)}
                continue
            included = path.parent / fields["include"]
            copied = path.parent / included.name  # with slurm.conf, from another machine
            included = copied if copied.is_file() and not included.is_file() else included
            if included in (*above, path):
                raise InputError("includes itself", file=path, line=line, field="include", value=str(included))
            if included.is_file():
                yield from self._read(included, (*above, path))
            else:
                self.warnings.append(f"line {line}: {included} is not there, and what it holds is missing here")


def _lines(text: str) -> Iterator[tuple[int, Fields, str]]:
    """Yield (line number, fields, text), keys in lower case, with "+" for +=; a backslash joins lines."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        first = first if pending else number
        joined = pending + re.sub(r"(?<!\\)#.*", "", raw)
        if joined.endswith("\\"):
            pending = joined[:-1]
            continue
        pending = ""
        if include := re.match(r"\s*include\s+(\S+)", joined, re.IGNORECASE):
            yield first, {"include": include[1]}, joined
            continue
        fields = re.findall(r'([A-Za-z]\w*)\s*(\+?)=+\s*("[^"]*"|\S*)', joined)
        if fields:
            keys = {key.lower() for key, *_ in fields}
            lost = {old for old, new in _NOW.items() if new in keys and old != "priority"}
            lost |= {"prioritytier"} if "priority" in keys else set()
            found = {
                _NOW.get(key.lower(), key.lower()) + added: value.strip('"')
                for key, added, value in fields
                if key.lower() not in lost
            }
            yield first, found, joined
