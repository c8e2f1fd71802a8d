"""The states of an exploration: the current one, earlier ones to undo to, and named ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from qconf.config import ConfigError, SiteConfig, parse
from qconf.errors import InputError
from qconf.inert import inert
from qconf.text import as_json, keep_backup, write_whole

FORMAT = 1  #: version of the file
KEPT = 200  #: most states to undo to
MOST = 100  #: most named states
LOADS = (50, 200)  #: range of the load, per cent
ALL, TEST = "all", "test"  #: stretches of the history


@dataclass(frozen=True)
class State:
    """A configuration, and the jobs to simulate it with."""

    text: str  #: YAML
    load: int = 100  #: per cent of the log's load
    stretch: str = ALL  #: of the history: `ALL`, `TEST` (the test period), or days like 2026-03-01/2026-03-08

    @property
    def config(self) -> SiteConfig:
        """The configuration; raises `ConfigError`."""
        return _parsed(self.text)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Read a state from a request or a file; raises InputError."""
        try:
            found = cls(str(given["text"]), int(given["load"]), str(given["stretch"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError("is no state", field="state") from error
        if not LOADS[0] <= found.load <= LOADS[1]:
            fix = f"give a percentage from {LOADS[0]} to {LOADS[1]}"
            raise InputError("not so much", field="load", value=found.load, fix=fix)
        return found


_parsed = lru_cache(maxsize=32)(parse)  # a configuration is read several times between two changes


class States:
    """All states of an exploration, kept in a file unless it is None."""

    def __init__(self, first: State, path: Path | None) -> None:
        self.first, self.path = first, path
        self.line, self.place = [first], 0
        self.named: dict[str, State] = {}
        self.notes: list[str] = []
        if path is not None and path.exists():
            self._read(path)

    @property
    def now(self) -> State:
        """The current state."""
        return self.line[self.place]

    def go(self, state: State, *, instead: bool = False) -> None:
        """Make a state the current one, or, with `instead`, replace the current one; undone states are dropped."""
        if state != self.now:
            self.line = [*self.line[: self.place + (not instead or not self.place)], state][-KEPT:]
            self.place = len(self.line) - 1
            self.write()

    def step(self, by: int) -> None:
        """Undo (-1) or redo (1), if possible."""
        place = self.place + by
        if 0 <= place < len(self.line):
            self.place = place
            self.write()

    def name(self, name: str, state: State | None) -> None:
        """Store a state under a name, or with None remove that name. Raises InputError."""
        name = name.strip()
        if not name or len(name) > 64 or inert(name) != name:
            raise InputError("is no name", field="name", value=name, fix="give 1 to 64 visible characters")
        if state is None:
            self.named.pop(name, None)
        elif name not in self.named and len(self.named) >= MOST:
            raise InputError(f"there are {MOST} already", field="name", value=name, fix="forget some")
        else:
            self.named[name] = state
        self.write()

    def write(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is None:
            return
        states = {name: asdict(state) for name, state in self.named.items()}
        line = [asdict(each) for each in self.line]
        kept = {"format": FORMAT, "first": self.first.text, "line": line, "place": self.place, "named": states}
        write_whole(self.path, as_json(kept))

    def _read(self, path: Path) -> None:
        """Read the states of an earlier exploration; an unreadable file becomes a backup, with a note."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            _check_format(kept["format"])
            named = {str(name): State.read(each) for name, each in kept["named"].items()}
            line, place = [State.read(each) for each in kept["line"]], int(kept["place"])
            for each in (*named.values(), line[place]):
                _ = each.config
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, InputError, ConfigError) as error:
            self.notes.append(f"{path}: not read, and kept as {keep_backup(path).name}: {error}")
            return
        self.named = named
        if kept["first"] == self.first.text:
            self.line, self.place = line, place
        else:
            self.notes.append("the configuration in force is another one than before: named states are still there")


def _check_format(found: object) -> None:
    if found != FORMAT:
        raise InputError("is of another version", field="format", value=found)


def secret(path: Path, new: str) -> str:
    """Return the secret in a file that only this user can read; if there is none, write and return `new`."""
    try:
        about = path.lstat()
        if about.st_uid == os.getuid() and about.st_mode & 0o777 == 0o600 and path.is_file():
            return path.read_text(encoding="ascii").strip() or new
    except (OSError, ValueError):
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(new)
    return new
