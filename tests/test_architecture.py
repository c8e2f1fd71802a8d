"""Imports point one way, nothing heavy happens at import, every command is documented."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Rooms of qconf from left to right; each imports from itself and from those before it, and from parsim.
LAYERS = (
    ("qconf.errors", "qconf.parallel", "qconf.text"),
    ("qconf.config",),
    ("qconf.history",),
    ("qconf.synth",),
    ("qconf.evaluation",),
    ("qconf.strategies",),
    ("qconf.recommend", "qconf.backtest"),
    ("qconf.export",),
    ("qconf.report",),
    ("qconf.cli",),
    ("qconf.__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def modules(package: str) -> list[tuple[str, Path]]:
    files = sorted((ROOT / package).rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in files]


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def partition_space(name: str) -> str:
    return ".".join(name.split(".")[:2])


@pytest.mark.parametrize(("name", "path"), modules("parsim"), ids=[name for name, _ in modules("parsim")])
def test_parsim_imports_numpy_and_numba_and_no_more(name: str, path: Path) -> None:
    outside = {each.split(".")[0] for each in imported(path)} - set(sys.stdlib_module_names) - {"parsim"}
    assert outside <= {"numpy", "numba"}, name


@pytest.mark.parametrize(("name", "path"), modules("qconf"), ids=[name for name, _ in modules("qconf")])
def test_imports_point_left(name: str, path: Path) -> None:
    if name == "qconf":
        return
    assert partition_space(name) in LEVEL, f"{name}: give it a place in LAYERS"
    for each in imported(path):
        if each.startswith("qconf.") and partition_space(each) in LEVEL:
            assert LEVEL[partition_space(each)] <= LEVEL[partition_space(name)], f"{name} imports {each}"


@pytest.mark.parametrize("package", ["parsim", "qconf"])
def test_what_is_installed_imports_nothing_that_is_not(package: str) -> None:
    for name, path in modules(package):
        assert not {each.split(".")[0] for each in imported(path)} & {"studies", "tests"}, name


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from qconf.cli import qconf\n"
        "answer = CliRunner().invoke(qconf, ['--help']); assert answer.exit_code == 0, answer.output\n"
        "heavy = {'numpy', 'numba', 'pandas', 'scipy', 'matplotlib', 'pydantic', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy; print(answer.output)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "tune" in done.stdout


def test_every_command_has_help_and_stands_in_the_readme() -> None:
    import click
    from click.testing import CliRunner

    from qconf.cli import qconf

    readme = (ROOT / "README.md").read_text()
    context = click.Context(qconf)
    names = qconf.list_commands(context)
    assert {"tune", "inspect", "simulate", "synth"} <= set(names)
    for name in names:
        answer = CliRunner().invoke(qconf, [name, "--help"])
        assert answer.exit_code == 0, answer.output
        command = qconf.get_command(context, name)
        assert command is not None
        assert command.help
        assert f"qconf {name}" in readme, name
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.help:
                assert parameter.name in {"output", "seed", "kind", "workers"}, (
                    f"{name}: --{parameter.name} has no help"
                )


def test_the_project_speaks_of_itself_alone() -> None:
    # The clone and what lies beside it: docs may name the folder of both, which is /tmp for some.
    workplace = re.compile("|".join(rf"{re.escape(str(ROOT.parent / name))}\b" for name in (ROOT.name, "shared")))
    tracked = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    for name in tracked:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".yaml", ".toml", ".j2", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not workplace.search(text), name


EXAMPLES = [name for package in ("parsim", "qconf") for name, path in modules(package) if ">>>" in path.read_text()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_in_docstrings_are_right(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
