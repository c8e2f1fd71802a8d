"""Commands of `qconf` in this process, what they write, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from qconf.cli import qconf
from qconf.errors import QconfError


def invoke(*words: object) -> Result:
    """Run a command; an error is raised."""
    return CliRunner().invoke(qconf, [*map(str, words)], catch_exceptions=False)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what every file holds, but that of the times, which are never the same."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "timings.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def interrupted(
    monkeypatch: pytest.MonkeyPatch, name: str, now: Callable[[list[Any]], bool] = lambda _: True
) -> list[Any]:
    """Let a function raise KeyboardInterrupt once: at the call at which `now` holds, given the calls so far.

    A call is its first argument. Returns the calls, which go on after the interrupt.
    """
    module, _, own = name.rpartition(".")
    function, calls, left = getattr(import_module(module), own), [], [1]

    def called(*given: object, **more: object) -> object:
        calls.append(given[0])
        if left and now(calls):
            left.pop()
            raise KeyboardInterrupt
        return function(*given, **more)

    monkeypatch.setattr(name, called)
    return calls


def refused(out: Path, *words: object) -> str:
    """Return the message of a command that writes nothing to a folder."""
    with pytest.raises(QconfError) as error:
        invoke(*words, "--out", out)
    assert not out.exists()
    return str(error.value)
