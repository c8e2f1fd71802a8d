"""The text of ``qstat -f`` and ``pbsnodes -a``, converted to the documents of ``-F json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

#: Heads of the blocks of qstat, and their keys in a document.
_HEADS = {"Job Id": "Jobs", "Queue": "Queue", "Server": "Server"}
_HEAD = re.compile(r"(Job Id|Queue|Server)(?:: *| +)(\S+)")  # without a colon: list of qmgr
_OF_RESERVATION = re.compile("[RSM][0-9]+")  #: name of a reservation's queue in PBS
_NODE = re.compile(r"[A-Za-z0-9][\w.\[\]-]*")
_ATTRIBUTE = re.compile(r" +([A-Za-z_]\w*)(?:\.([\w-]+))? = ?(.*)")
#: Attributes of the server and its queues that a manager does not set.
_STATE = (
    *("server_state", "server_host", "total_jobs", "state_count", "license_count", "pbs_version", "hasnodes"),
    *("resources_assigned", "mtime"),
)
_CONTINUED = re.compile(r"\t| {8}")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Yield one document each for jobs, queues, servers and nodes, if the text has any."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for kind, name, attributes in _blocks(text):
        found.setdefault(kind, {})[name] = attributes
    yield from ({kind: held} for kind, held in found.items())


def _blocks(text: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield kind, name and attributes of each block."""
    kind = name = ""
    lines: list[str] = []
    for line in [*text.replace("\r\n", "\n").split("\n"), "end"]:
        if line[:1] in ("\t", " "):
            if lines and _CONTINUED.match(line):
                lines[-1] += line.lstrip("\t") if line.startswith("\t") else line.lstrip()
            elif line.strip():
                lines.append(line)
            continue
        attributes = _attributes(lines)
        if name and attributes:
            yield kind, name, attributes
        head, lines = _HEAD.fullmatch(line.strip()), []
        if head is not None:
            kind, name = _HEADS[head[1]], head[2]
        else:
            kind, name = "nodes", line.strip() if _NODE.fullmatch(line.strip()) else ""


def printed(text: str) -> str:
    """Return the output of ``qstat -Qf`` and ``-Bf``, text or JSON, or of qmgr's ``list``, as that of ``print server``.

    "" for text without queues.
    """
    held, rest = [], text.lstrip()
    try:
        while rest.startswith("{"):
            document, end = json.JSONDecoder().raw_decode(rest)
            held.append(document)
            rest = rest[end:].lstrip()
    except ValueError:
        return ""
    return statements(held or documents(text))


def statements(documents: Iterable[dict[str, Any]]) -> str:
    """Return the queues and the server of documents as statements of ``print server``, without reservations' queues."""
    queues: dict[str, dict[str, Any]] = {}
    server: dict[str, Any] = {}
    for document in documents:
        queues |= document.get("Queue", {})
        server |= next(iter(document.get("Server", {}).values()), {})
    queues = {name: of for name, of in queues.items() if not _is_of_reservation(name, of)}
    lines = [f"create queue {name}" for name in queues]
    held = [*((f"queue {name}", attributes) for name, attributes in queues.items()), ("server", server)]
    lines += [f"set {what} {key} = {value}" for what, attributes in held for key, value in _settings(attributes)]
    return "\n".join(lines) + "\n" if queues else ""


def _is_of_reservation(name: str, attributes: dict[str, Any]) -> bool:
    """Whether a reservation made the queue: by its name, and it has no type or admits only named users."""
    listed = attributes.get("acl_user_enable") == "True"
    return _OF_RESERVATION.fullmatch(name) is not None and (listed or "queue_type" not in attributes)


def _settings(attributes: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the attributes that a manager sets, in quotes if they have blanks or commas."""
    for name, held in attributes.items():
        for resource, value in held.items() if isinstance(held, dict) else [("", held)]:
            if name not in _STATE and not (quoted := f"{value}").count('"'):
                yield f"{name}.{resource}".rstrip("."), f'"{quoted}"' if re.search(r"[\s,]", quoted) else quoted


def _attributes(lines: list[str]) -> dict[str, Any]:
    """Read lines such as `` Resource_List.ncpus = 4``; dotted names make nested dicts."""
    found: dict[str, Any] = {}
    for line in lines:
        match = _ATTRIBUTE.fullmatch(line)
        if match is None:
            continue
        name, resource, value = match.groups()
        if resource is None:
            found[name] = value.strip()
        elif isinstance(found.setdefault(name, {}), dict):
            found[name][resource] = value.strip()
    return found
