r"""Parse statements of qmgr, PBS's manager.

qmgr joins lines that end in ``\``, starts a comment at ``#`` after white space, separates statements by
``;``, and has two kinds of quotes, without escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

COMMANDS = ("create", "delete", "set", "unset")
KINDS = ("server", "queue", "node", "resource", "sched", "hook", "pbshook")

_NAMES = r"[^\s,=\"']+(?:,[^\s,=\"']+)*"
_NAME = re.compile(
    r"[A-Za-z0-9_.@:+*-]+(?:\[[A-Za-z0-9_.-]+\])?"
)  # without characters that are special in a shell, since plans use it there
_ATTRIBUTE = r"\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_-]*)?)\s*"
_END = r"\s*(?:,(?=\s*\S)|$)"  # a comma and another attribute, or the end
_UNSET = re.compile(_ATTRIBUTE + _END)
_SET = re.compile(rf"""{_ATTRIBUTE}(\+=|-=|=)\s*("[^"]*"|'[^']*'|[^\s,"'][^,]*?){_END}""")

#: The base64 text in ``print hook``; prompts of a terminal; the block of a hook in ``list hook``.
_SHOWN = re.compile(
    r"^import hook .*\n(?:[A-Za-z0-9+/=]+(?:\n|\Z))*"
    r"|^(?:Max open servers:.*|Qmgr:.*|.*[#$>] *(?:\S*/)?qmgr\b.*)(?:\n|\Z)"
    r"|^Hook (?P<name>\S+)(?:\n|\Z)(?P<of>(?:[ \t]+.*(?:\n|\Z))*)",
    re.MULTILINE,
)

#: Tokens of a line: end of a statement (also by a comment); quoted text; open quote; other character.
_TOKEN = re.compile(r"""(?P<end>(?:^|(?<=\s))\#.*\n|[;\n])|"[^"\n]*"|'[^'\n]*'|(?P<open>["'])|.""")


class QmgrSyntaxError(ValueError):
    """A text that qmgr would reject; `line` is the number of its first line, from 1."""

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        super().__init__(message)


class Setting(NamedTuple):
    """One attribute, like ``resources_max.ncpus = 24``; `operator` and `value` are empty after unset."""

    key: str
    operator: str = ""
    value: str = ""


class Statement(NamedTuple):
    """One statement: command, kind and names of the objects, settings of attributes."""

    command: str
    kind: str
    names: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    line: int = 1


def split(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each statement, without comments and outer blanks. Raises `QmgrSyntaxError`."""
    pending, first = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        first = first if pending else number
        if line.endswith("\\"):
            pending += line[:-1]
            continue
        yield from ((first, piece) for piece in _pieces(pending + line, first))
        pending = ""
    if pending:
        raise QmgrSyntaxError(first, "the last line ends in \\ and asks for another one")


def _pieces(line: str, number: int) -> Iterator[str]:
    piece = ""
    for token in _TOKEN.finditer(f"{line}\n"):
        if token["open"]:
            raise QmgrSyntaxError(number, f"a quote {token['open']} is left open")
        if not token["end"]:
            piece += token[0]
            continue
        if piece.strip():
            yield piece.strip()
        piece = ""


def parse(text: str) -> list[Statement]:
    """Parse a script, or the output of ``print server``. Raises `QmgrSyntaxError`."""
    return [parse_statement(piece, line) for line, piece in split(_SHOWN.sub(_hook, text))]


def _hook(found: re.Match[str]) -> str:
    """Convert a hook's block of ``list hook`` to statements; drop the text of ``print hook``."""
    name, of = found["name"], found["of"] or ""
    shown = "".join(
        f"; set hook {name} {key} = '{value}'" for key, value in re.findall(r"(\w+) = (.+)", of.replace("\n\t", ""))
    )
    return (f"create hook {name}{shown}" if name else "") + "\n" * found[0].count("\n")


def parse_statement(text: str, line: int = 1) -> Statement:
    """Parse one statement. Raises `QmgrSyntaxError`."""
    head = re.match(r"([A-Za-z]+)\s+([A-Za-z]+)(?:\s+|$)", text)
    if head is None:
        raise QmgrSyntaxError(line, "expected: command object name attribute = value")
    command, kind, rest = head[1].lower(), head[2].lower(), text[head.end() :]
    for word, known in ((command, COMMANDS), (kind, KINDS)):
        if word not in known:
            raise QmgrSyntaxError(line, f"{word!r} is none of {', '.join(known)}")
    names: tuple[str, ...] = ()
    anonymous = kind == "sched" and command not in ("create", "delete")  # the name is optional
    named = rf"({_NAMES})\s+(?![+-]?=|,)" if anonymous else rf"({_NAMES})(?:\s+(?![+-]?=)|$)"
    if kind != "server" and (match := re.match(named, rest)):
        names, rest = tuple(match[1].split(",")), rest[match.end() :]
    if not names and kind not in ("server", "sched"):
        raise QmgrSyntaxError(line, f"the name of the {kind} is missing")
    if strange := [name for name in names if not _NAME.fullmatch(name)]:
        raise QmgrSyntaxError(line, f"{strange[0]!r} is no name of a {kind}")
    settings = tuple(_settings(rest, line, _UNSET if command == "unset" else _SET))
    if command in ("set", "unset") and not settings:
        raise QmgrSyntaxError(line, f"{command} without an attribute")
    if command == "delete" and settings:
        raise QmgrSyntaxError(line, "delete takes names only")
    return Statement(command, kind, names, settings, line)


def _settings(text: str, line: int, pattern: re.Pattern[str]) -> Iterator[Setting]:
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None:
            expected = "attribute" if pattern is _UNSET else "attribute = value"
            raise QmgrSyntaxError(line, f"expected {expected} at {text[at : at + 30].strip()!r}")
        key, *assigned = match.groups()
        operator, value = assigned or ("", "")
        yield Setting(key, operator, value[1:-1] if value[:1] in ("'", '"') else value)
        at = match.end()
