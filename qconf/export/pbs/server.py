"""What a PBS server holds: the objects and attributes that ``print server`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qconf.config import POOL_SUFFIX
from qconf.errors import InputError
from qconf.export.pbs import qmgr

Attributes = dict[str, str]


@dataclass
class Server:
    """Server, queues and resources in the order of creation; attributes by ``resources_max.ncpus``."""

    attributes: Attributes = field(default_factory=dict)
    queues: dict[str, Attributes] = field(default_factory=dict)
    resources: dict[str, Attributes] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> Server:
        """Read a saved ``print server``. Raises InputError."""
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
        except UnicodeDecodeError as error:
            raise InputError("is not text", file=path, fix="save the output of qmgr -c 'print server'") from error
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, source: str | Path | None = None) -> Server:
        """Take the text of a ``print server``. Raises InputError."""
        server = cls()
        try:
            statements = qmgr.parse(text)
            for statement in statements:
                server.apply(statement)
        except qmgr.QmgrSyntaxError as error:
            raise InputError(
                str(error), file=source, line=error.line, fix="give the output of qmgr -c 'print server'"
            ) from error
        if not statements:
            raise InputError("holds no statement", file=source, fix="give the output of qmgr -c 'print server'")
        return server

    def apply(self, statement: qmgr.Statement) -> None:
        """Do what a statement says to what is held here; nodes and schedulers are not."""
        if statement.kind == "server":
            self._change(self.attributes, statement)
        elif statement.kind in ("queue", "resource"):
            held = self.queues if statement.kind == "queue" else self.resources
            for name in statement.names:
                if statement.command == "delete":
                    held.pop(name, None)
                else:
                    self._change(held.setdefault(name, {}), statement)

    def _change(self, attributes: Attributes, statement: qmgr.Statement) -> None:
        for setting in statement.settings:
            key = setting.key
            if statement.command == "unset":
                attributes.pop(key, None)
            elif setting.operator == "=":
                attributes[key] = setting.value
            elif setting.operator == "+=":
                attributes[key] = f"{attributes[key]},{setting.value}" if attributes.get(key) else setting.value
            else:
                left = [item for item in attributes.get(key, "").split(",") if item != setting.value]
                attributes[key] = ",".join(left)

    def copy(self) -> Server:
        """Return an independent copy."""
        return Server(
            dict(self.attributes),
            {name: dict(attributes) for name, attributes in self.queues.items()},
            {name: dict(attributes) for name, attributes in self.resources.items()},
        )

    def of_type(self, kind: str) -> list[str]:
        """Name the queues of a type, ``execution`` or ``route``, in the order of their creation."""
        return [name for name, attributes in self.queues.items() if is_type(attributes, kind)]

    def is_pool_queue(self, name: str) -> bool:
        """Tell whether a queue is another's way into the pool: ``small_p`` beside ``small``, by qmove only."""
        only_moved = is_true(self.queues.get(name, {}).get("from_route_only"))
        return only_moved and name.endswith(POOL_SUFFIX) and name.removesuffix(POOL_SUFFIX) in self.queues


def is_type(attributes: Mapping[str, str], kind: str) -> bool:
    """Tell whether a queue's type is `kind`; the server takes any case and the first letter alone."""
    value = attributes.get("queue_type", "").lower()
    return bool(value) and kind.startswith(value)


def is_true(value: str | None) -> bool:
    """Tell whether a boolean attribute is set to true."""
    return value is not None and value.lower() in ("true", "t", "1", "y")


def seconds(value: str) -> int:
    """Read a duration as PBS does: seconds, minutes:seconds or hours:minutes:seconds. Raises ValueError."""
    total = 0
    for part in value.split(":"):
        total = total * 60 + int(part)
    return total


def destinations(attributes: Mapping[str, str]) -> list[str]:
    """Name the destinations of a Route queue, in order, without a server's name after ``@``."""
    listed: Iterable[str] = attributes.get("route_destinations", "").split(",")
    return [name.strip().partition("@")[0] for name in listed if name.strip()]
