"""One word per thing, the field's: retired words stay at zero, in names and wherever a reader meets them."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
THIS = Path(__file__).name

#: Retired words of names, each with the word to use. A name is split at underscores and capitals.
NAMES = {
    "answer": "result",
    "answers": "results",
    "asked": "queried, wanted",
    "asks": "uses",
    "barred": "ineligible",
    "barrier": "limit that binds",
    "barriers": "limits that bind",
    "bench": "evaluator",
    "caution": "warning",
    "cautions": "warnings",
    "doors": "admission key",
    "excused": "tolerated",
    "farewell": "interrupt message",
    "foretold": "forecast skill",
    "homeless": "unroutable",
    "judge": "evaluate, check, score",
    "judged": "test",
    "knows": "has",
    "learned": "training",
    "patience": "reservation delay",
    "poverty": "data warnings",
    "redrawn": "resampled",
    "relearned": "fallback",
    "remoteness": "distance penalty",
    "ripe": "eligible",
    "stranded": "jobs that could never run",
    "strangers": "unknown queues",
    "surveyed": "smoothed",
    "told": "reported",
    "tell": "report",
    "tells": "reports",
    "touched": "violations of fixed",
    "unsaid": "differences",
    "walked": "walk-forward",
    "workshop": "checkpoint",
}
#: Names retired whole.
WHOLE = {
    *("Draws", "Evidence", "Meter", "Month", "Room", "SPREAD", "Stage", "Trial", "Waits"),
    *("keep_barriers", "put_aside", "release", "remember", "side_by_side", "spare", "why_not"),
}
#: Retired words of prose: docstrings, comments, messages, templates, docs.
PROSE = re.compile(
    r"\b(judg(e|es|ed|ing)|learn(s|ed)? from|drawn anew|side by side|put aside|foretold|nobody|everybody|everyone|whom"
    r"|whoever|barred|stranded|poverty|farewell)\b",
    re.IGNORECASE,
)
SUFFIXES = {".py", ".j2", ".md", ".yaml", ".toml"}
#: What lists retired words because they are retired.
LISTS = {"CHANGELOG.md", f"tests/{THIS}"}


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    return [name for name in listed if Path(name).suffix in SUFFIXES and name not in LISTS and (ROOT / name).is_file()]


#: `walk` is part of these and of nothing else.
WALKS = re.compile(r"walk_forward|WalkForward|walk_packages|^walk$")  # the last is the standard library's


@cache
def words(name: str) -> set[str]:
    found = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
    return found if WALKS.search(name) else {"walked" if part in {"walk", "walks"} else part for part in found}


@cache
def is_retired(name: str) -> bool:
    return name in WHOLE or not words(name).isdisjoint(NAMES)


def names_of(source: str) -> dict[str, int]:
    """Return each retired name of a module, with a line that has it; most have none of these words anywhere."""
    found: dict[str, int] = {}
    if not any(map(is_retired, re.findall(r"\w+", source))):
        return found
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            for each in str(getattr(node, field, None) or "").split("."):
                if is_retired(each):
                    found.setdefault(each, getattr(node, "lineno", 0))
    return found


def test_no_name_is_a_retired_one() -> None:
    found = [
        f"{name}:{line}: {each}, use {', '.join(NAMES[word] for word in words(each) & NAMES.keys()) or 'another'}"
        for name in tracked()
        if name.endswith(".py")
        for each, line in names_of((ROOT / name).read_text()).items()
    ]
    assert not found, "\n".join(found)


def test_no_sentence_has_a_retired_word() -> None:
    found = [
        f"{name}:{i}: {line.strip()[:100]}"
        for name in tracked()
        for i, line in enumerate((ROOT / name).read_text().splitlines(), 1)
        if PROSE.search(line)
    ]
    assert not found, "\n".join(found)
