"""Reading of a configuration from YAML: every mistake at once, each with its line, path and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, get_args

import yaml
from pydantic import BaseModel, ValidationError

from parsim.model.node_types import MOST_NODES
from parsim.model.qos import ALL_LIMITS, EXEMPTIONS
from parsim.model.system import ORDERS
from parsim.model.throttles import RESOURCES
from qconf.config.checks import NO_POOL, mistakes
from qconf.config.durations import FORMS
from qconf.config.maui import FORM as MAUI
from qconf.config.models import DAYS, PARTS, SiteFields, form
from qconf.config.policy import FORMS as POLICY_FORMS
from qconf.config.problems import ConfigError, Problem, did_you_mean, dotted
from qconf.config.site import SiteConfig
from qconf.config.writing import dump
from qconf.errors import InputError, unreadable
from qconf.inert import shorten

#: Descriptions of allowed values that the model lacks, by key, or by part and key.
_ALLOWED = {
    "queues.partition": (
        "a whole number of cores from 0 up, or of nodes of each of several types, like {cpu: 40, gpu: 4}"
    ),
    "fairshare": "like {decay_time: 24h, decay_factor: 0.5}",
    "decay_factor": "a number from 0 to 1",
    "shares": "a list like [{name: physics, shares: 60}, {name: alice, group: physics, shares: 2}]",
    **dict.fromkeys(("shares.name", "shares.group"), "a user or a group as logs name them, 1 to 256 characters"),
    "target": "a percentage from 0 to 100",
    RESOURCES: "limits of what nodes have, by name, like {gpus: 8, memory: 512gb}",
    "throttles": "a list like [{each: user, max_run: 10}, {group: physics, max_run_cores: 512}]",
    "qos": "a list like [{name: gold, priority: 100, target: 2}, {name: urgent, exempt: [max_run], users: [ann]}]",
    "qos.name": "a name as logs have it, 1 to 256 characters",
    "qos.priority": "a number from -1e10 to 1e10",
    "qos.target": "an expansion factor, a number from 1 up",
    "exempt": f"a list of {', '.join(EXEMPTIONS)}, or {ALL_LIMITS}",
    **dict.fromkeys(("qos.users", "qos.groups", "qos.accounts"), "a list of names as logs have them"),
    "qos.queues": "a list of names of queues",
    "nodes": "a list like [{name: cpu, count: 60, cores: 32}, {name: gpu, count: 4, cores: 32, gpus: 4}]",
    "memory": "MiB, or a size like 192gb",
    "kept_per_gpu": "a whole number from 0 up, the cores that jobs without GPUs leave for each GPU",
    "resources": "how many there are on each node by name, like {boards: 2}",
    "features": "a list of words without blanks",
    "nodes.hosts": "the names of these nodes, like gpu[01-16]",
    "queues.nodes": "a list of names of nodes",
    "downtime.partition": "the name of a queue, or pool",
    "downtime.nodes": "a list of numbers of nodes, from 0",
    "machine": "like {cores: 35232, cores_per_node: 24, whole_nodes: true}",
    "order": f"one of {', '.join(ORDERS)}, a formula, or Maui's weights like {MAUI}",
    "queues": "a list of queues, at least one",
    "queues.cores": "[least, most] cores, whole numbers, both inclusive; null for no maximum",
    "queues.walltime": f"[above, up to], each {FORMS}; null for no maximum",
    "pool": "like {cores: 4800, threshold: 40}",
    "threshold": "a number from 0 up",
    "reference": "the name of a queue",
    "policy": POLICY_FORMS,
    "strategies": "settings by name, each a number, a word or a list of numbers, like {samples: 200, pool_entry: move}",
    "access": "like {users: [ann, bob], groups: [staff]}, or leave it out for all users",
    "billing": "like 'CPU=1.0,Mem=0.25G,GRES/gpu=2.0', as TRESBillingWeights of Slurm has it",
    "routing": "the name of the queue that leads to the others, like route",
    "charges": "weights by resource, like {cores: 1, gpus: 20}",
    "usage_factor": "a number from 0 to 1e6",
    "fixed": "a list of paths like queues.large or queues.*.max_user_run",
    "downtime": "a list like [{begin: 2026-03-01T08:00, end: 2026-03-01T18:00, cores: 512}]",
    "licences": "how many there are by name, like {matlab: 20}",
    "hours": "a list like [{queue: large, days: [mon, tue], begin: 08:00, end: 18:00, max_run: 4}]",
    "shortpools": "a list like [{cores: 64, walltime: 2h, days: [mon, tue], begin: 08:00, end: 18:00}]",
    "days": f"a list of {', '.join(DAYS)}",
    "history": "like {columns: {walltime: time_limit}, units: {walltime: min}, timezone: Europe/Stockholm}",
    "history.columns": "columns of the logs by ours, like {walltime: time_limit, cores: num_cores_alloc}",
    "history.units": "units by column, like {walltime: min, memory: gb}",
    "history.timezone": "the name of a zone, like Europe/Stockholm",
    "history.date_format": "a strptime format, like '%d.%m.%Y %H:%M'",
    "fidelity": "what `qconf fidelity --calibrate` wrote, or leave it out",
    "agreement": "a number from 0 to 1",
    "of": "what `qconf fidelity --calibrate` wrote, 12 digits of a hexadecimal number",
    "targets": "a list like [{queue: small, p95_wait: 4h}, {group: physics, users: [alice, bob], weight: 2}]",
    "queue": "the name of a queue",
    "users": "a list of users as logs name them, like [alice, bob]",
}
#: Values in place of wrong required fields, so that the rest can be checked; no message quotes them.
_STAND_INS: dict[str, dict[str, object]] = {
    "machine": {"cores": 1},
    **{part: {"name": "?"} for part in ("queues", "shares", "qos")},
    "nodes": {"name": "?", "count": 1, "cores": 1},
    "downtime": {"begin": "2000-01-01", "end": "2000-01-02"},
    "hours": {"queue": "?", "begin": "00:00", "end": "12:00"},
    "shortpools": {"cores": 1, "walltime": 1},
    "targets": {},
    "throttles": {},
}

#: Examples of an item of each list of parts.
_ITEMS = {
    "queues": "like {name: small, cores: [1, 64], walltime: [0, 24h]}",
    "downtime": "like {begin: 2026-03-01T08:00, end: 2026-03-01T18:00, cores: 512}",
    "hours": "like {queue: large, begin: 08:00, end: 18:00, max_run: 4}",
    "shortpools": "like {cores: 64, walltime: 2h, begin: 08:00, end: 18:00}",
    "targets": "like {queue: small, p95_wait: 4h, weight: 2}",
    "shares": "like {name: alice, shares: 2}",
    "throttles": "like {each: user, max_run: 10}",
    "nodes": "like {name: gpu, count: 16, cores: 32, memory: 512gb, gpus: 4}",
    "qos": "like {name: gold, priority: 100}",
}

Steps = tuple[str | int, ...]
#: Takes name and value of a setting in ``strategies:``, and returns the mistake, or an empty text.
CheckSetting = Callable[[str, object], str]


def load(path: str | Path, check_setting: CheckSetting | None = None) -> SiteConfig:
    """Read a configuration file; `check_setting`, if given, checks the settings in ``strategies:``.

    Raises `ConfigError` with every mistake at once, `InputError` if the file cannot be read.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError("there is no such file", file=path, fix="check the path") from error
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = Problem(line, "", None, f"byte {error.start} is not UTF-8: save the file as UTF-8")
        raise ConfigError(path, [problem]) from error
    return parse(text, path, check_setting)


def with_changes(config: SiteConfig, changes: Mapping[str, str]) -> SiteConfig:
    """Return a configuration with the values at some paths replaced, written as in YAML.

    Parts of lists are found by name: ``queues.small.max_run``. An empty value removes the key. Raises `ConfigError`.
    """
    try:
        return parse(dump(config), changes=changes)
    except ConfigError as error:  # line numbers refer to no file
        raise ConfigError(None, [problem._replace(line=None) for problem in error.problems]) from error


def parse(
    text: str,
    source: str | Path | None = None,
    check_setting: CheckSetting | None = None,
    changes: Mapping[str, str] = MappingProxyType({}),
) -> SiteConfig:
    """Read `text` as `load` does, after `changes` as in `with_changes`; `source` names it. Raises `ConfigError`."""
    document = _Document(source)
    try:
        data = document.read(text)
    except yaml.YAMLError as error:
        mark, at = getattr(error, "problem_mark", None), getattr(error, "position", None)
        line = mark.line + 1 if mark is not None else None if at is None else text[:at].count("\n") + 1
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        document.fail(line, f"not YAML: {shorten(what)}")
    except RecursionError:
        document.fail(None, "nested too deeply for a configuration")
    if data is None:
        document.fail(1, "empty; a configuration has machine: and queues:")
    if not isinstance(data, dict):
        document.fail(1, "expected keys like machine: and queues:")
    for path, value in changes.items():
        document.change(data, path, value)
    return document.check(data, check_setting)


class _Reader(yaml.SafeLoader):
    """YAML without its traps: ``no`` is a name, ``24:00:00`` is no number, and there are no aliases."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:  # noqa: ANN401
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not supported here", mark)
        return super().compose_node(parent, index)


_Reader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("int", "[-+]?[0-9]{1,18}", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", "-+.0123456789"),
):
    _Reader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _Document:
    """One YAML text: its data, the line and the text of each path, and the mistakes."""

    def __init__(self, source: str | Path | None) -> None:
        self.source = source
        self.written: dict[Steps, tuple[int | None, str]] = {}
        self.problems: list[Problem] = []
        self.broken: set[str] = set()

    def fail(self, line: int | None, message: str) -> NoReturn:
        raise ConfigError(self.source, [Problem(line, "", None, message)])

    def read(self, text: str) -> object:
        reader = _Reader(text)
        try:
            node = reader.get_single_node()
            return None if node is None else self._plain(reader, node, (), node.start_mark.line + 1)
        finally:
            reader.dispose()

    def change(self, data: dict[str, Any], path: str, text: str) -> None:
        """Set the value at a path; an empty text removes the key."""

        def fail(why: str) -> NoReturn:
            raise ConfigError(self.source, [Problem(None, path, shorten(text), why)])

        *outer, last = path.split(".")
        place: Any = data
        steps: Steps = ()
        while outer:
            name = outer.pop(0)
            step: str | int = name
            if isinstance(place, list):
                known = [str(each.get("name")) for each in _dicts(place)]
                while name not in known and outer:
                    name = f"{name}.{outer.pop(0)}"  # the name has a point
                if name not in known:
                    first = path.split(".")[len(steps)]
                    fail(f"nothing has the name {first}{did_you_mean(first, known)}")
                step = known.index(name)
            elif isinstance(place, dict):
                place.setdefault(name, {})
            else:
                break
            place, steps = place[step], (*steps, step)
        if not isinstance(place, dict):
            fail(f"{dotted(steps)} has no keys")
        steps = (*steps, last)
        try:
            node = _Reader(text).get_single_node()
            value = None if node is None else self._plain(_Reader(text), node, steps, 1)
        except yaml.YAMLError:
            fail("not YAML")
        place.pop(last, None)
        if value is not None:
            place[last] = value
        self.written |= {each: (None, shorten(text)) for each in (*self.written, steps) if each[: len(steps)] == steps}

    def _plain(self, reader: _Reader, node: yaml.Node, path: Steps, line: int) -> Any:  # noqa: ANN401
        """Convert a node to plain data, and record its lines and texts."""
        first, last = node.start_mark, node.end_mark
        self.written[path] = line, shorten(" ".join((first.buffer or "")[first.pointer : last.pointer].split()))
        if isinstance(node, yaml.SequenceNode):
            return [
                self._plain(reader, item, (*path, i), item.start_mark.line + 1) for i, item in enumerate(node.value)
            ]
        if not isinstance(node, yaml.MappingNode):
            try:
                return reader.construct_object(node)
            except (ValueError, OverflowError, yaml.YAMLError):
                return node.value
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
            line = key_node.start_mark.line + 1
            if key in result:
                message = f"given twice, first in line {self.written[*path, key][0]}"
                self.problems.append(Problem(line, dotted((*path, key)), None, message))
            else:
                result[key] = self._plain(reader, value_node, (*path, key), line)
        return result

    def check(self, data: dict[str, Any], check_setting: CheckSetting | None) -> SiteConfig:
        """Check each field, then, with stand-ins for wrong ones, the configuration as a whole."""
        fields = None
        self._count_cores(data)
        while fields is None:
            try:
                fields = SiteFields.model_validate(data)
            except ValidationError as error:
                for path, message in _field_problems(error):
                    if dotted(path) in self.broken:
                        raise AssertionError(f"nothing stands in for {dotted(path)}") from error
                    self._note(path, message)
                    _stand_in(data, path)
        for i, queue in enumerate(fields.queues if fields.mode != "shared" else ()):
            if not queue.reservation and ("queues", i, "partition") not in self.written:
                message = "needs the cores of every partition (none of a queue with reservation: true)"
                self._note(("queues", i, "partition"), f"missing: mode {fields.mode} {message}")
        for finding in mistakes(fields):
            if not any(_within(path, wrong) for path in (finding.path, *finding.needs) for wrong in self.broken):
                self._note(_steps(finding.path), finding.message)
        for name, value in fields.strategies.items():
            if check_setting is not None and (wrong := check_setting(name, value)):
                self._note(("strategies", name), wrong)
        config = SiteConfig.model_construct(fields.model_fields_set, **dict(fields))
        if not self.problems:
            try:
                config.system()
            except ValueError as error:  # of values that the simulator alone does not let go together
                where, _, message = str(error).partition(": ")
                self._note(_steps(where), message)
        if self.problems:
            raise ConfigError(self.source, sorted(self.problems, key=lambda problem: problem.line or 0))
        return config

    def _count_cores(self, data: dict[str, Any]) -> None:
        """Convert partitions and shortpools given as nodes of several types: add their cores."""
        each_has = {
            each["name"]: each["cores"]
            for each in _dicts(data.get("nodes"))
            if isinstance(each.get("cores"), int) and isinstance(each.get("name"), str)
        }

        def cores_of(nodes: dict[str, Any]) -> int:
            return sum(each_has.get(name, 0) * count for name, count in nodes.items() if _is_count(count))

        for i, queue in enumerate(data["queues"] if isinstance(data.get("queues"), list) else ()):
            if not isinstance(queue, dict):
                continue
            if "partition_nodes" in queue:
                del queue["partition_nodes"]
                self._note(("queues", i, "partition_nodes"), "no such key: partition takes them, like {cpu: 40}")
            if isinstance(nodes := queue.get("partition"), dict):
                queue |= {"partition_nodes": nodes, "partition": cores_of(nodes)}
        pool = data.get("pool")
        if isinstance(pool, dict) and "nodes" in pool:
            del pool["nodes"]
            self._note(("pool", "nodes"), NO_POOL)
        for i, each in enumerate(_dicts(data.get("shortpools"))):
            if "types" in each:
                if "cores" in each:
                    self._note(("shortpools", i, "cores"), "those of its types: leave one of the two out")
                each["cores"] = max(1, cores_of(each["types"]) if isinstance(each["types"], dict) else 1)

    def _note(self, path: Steps, message: str) -> None:
        """Record a mistake at the line of its path, or of the nearest parent with a line."""
        name = dotted(path)
        if any(_within(name, wrong) for wrong in self.broken):
            return
        self.broken.add(name)
        value = self.written[path][1] if path in self.written and name not in PARTS else None
        while path and path not in self.written:
            path = path[:-1]
        self.problems.append(Problem(self.written[path][0], name, value or None, message))


def _dicts(data: object) -> list[dict[str, Any]]:
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NODES


def _within(path: str, wrong: str) -> bool:
    return path == wrong or path.startswith((f"{wrong}.", f"{wrong}["))


def _steps(path: str) -> Steps:
    return tuple(int(number) if number else name for number, name in re.findall(r"\[([0-9]+)\]|([^.\[\]]+)", path))


def _field_problems(error: ValidationError) -> Iterator[tuple[Steps, str]]:
    seen = set()
    for detail in error.errors(include_url=False, include_context=False):
        path = detail["loc"]
        path = path[: 3 if path[0] in _ITEMS else 2]
        path = (*path[:-1], "partition") if path[-1] == "partition_nodes" else path
        if path in seen:
            continue
        seen.add(path)
        kind, allowed = detail["type"], _allowed(path)
        if kind == "extra_forbidden":
            yield path, f"no such key{_instead(path)}"
        elif kind == "missing":
            yield path, f"missing: {allowed}" if allowed else "missing"
        elif kind == "value_error":
            message = detail["msg"].removeprefix("Value error, ")
            yield path, message if allowed in message else f"{message}; allowed: {allowed}"
        else:
            yield path, f"not allowed here: {allowed}"


def _allowed(path: Steps) -> str:
    if len(path) == 2 and path[0] in _ITEMS:
        return _ITEMS[str(path[0])]
    if path[0] in ("strategies", "licences"):
        path = path[:1]
    names = [step for step in path if isinstance(step, str)]
    model, last = _model_of(names), names[-1]
    field = None if model is None else model.model_fields.get(last)
    return _ALLOWED.get(".".join(names)) or ("" if last in PARTS else _ALLOWED.get(last, "")) or form(field)


def _instead(path: Steps) -> str:
    model = _model_of(path)
    known = () if model is None else tuple(model.model_fields)
    return did_you_mean(str(path[-1]), known) or f"; known are {', '.join(known)}"


def _model_of(path: Sequence[str | int]) -> type[BaseModel] | None:
    """Return the model that has the last key of a path."""
    return SiteFields if len(path) == 1 else _model_in(SiteFields.model_fields[str(path[0])].annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401
    """Return the model of a part, or of the items of a list of parts."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _stand_in(data: dict[str, Any], path: Steps) -> None:
    """Replace a wrong value by a harmless one; remove an optional field."""
    part, last = str(path[0]), path[-1]
    if part in ("fidelity", "history"):
        data.pop(part, None)
        return
    parent: Any = data
    for step in path[:-1]:
        parent = parent[step]
    needed = dict(_STAND_INS.get(part, {}))
    if "name" in needed and len(path) > 1:
        needed["name"] = f"?{path[1]}"
    if last == "partition":
        parent.pop("partition_nodes", None)
    if path in (("machine",), ("queues",)):
        parent[last] = needed if last == "machine" else [needed]
    elif isinstance(last, int):
        parent[last] = needed if part in _STAND_INS else "*"
    elif len(path) > 1 and last in needed:
        parent[last] = needed[last]
    else:
        del parent[last]
