"""Imports point one way, nothing heavy happens at import, every command is documented."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Rooms of qconf from left to right; each imports from itself and from those before it, and from parsim.
LAYERS = (
    ("qconf.errors", "qconf.forked", "qconf.hosts", "qconf.inert", "qconf.parallel", "qconf.text"),
    ("qconf.config",),
    ("qconf.history",),
    ("qconf.snapshot",),
    ("qconf.synth",),
    ("qconf.evaluation",),
    ("qconf.prediction",),
    ("qconf.fidelity",),
    ("qconf.strategies",),
    ("qconf.recommend", "qconf.backtest"),
    ("qconf.export",),
    ("qconf.report",),
    ("qconf.explore",),
    ("qconf.cli",),
    ("qconf.__main__",),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def modules(package: str) -> list[tuple[str, Path]]:
    files = sorted((ROOT / package).rglob("*.py"))
    return [(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path) for path in files]


class Imports(NamedTuple):
    """The names that a module imports."""

    every: frozenset[str]  #: including imports in functions
    running: frozenset[str]  #: without imports for type checkers only
    first: frozenset[str]  #: imported at module level


def of_nodes(nodes: Iterable[ast.AST]) -> frozenset[str]:
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


@cache
def imports(path: Path) -> Imports:
    body = ast.parse(path.read_text()).body
    blocks = [node for node in body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    running = of_nodes(inner for node in body if node not in blocks for inner in ast.walk(node))
    return Imports(running | of_nodes(inner for node in blocks for inner in ast.walk(node)), running, of_nodes(body))


def imported(path: Path) -> frozenset[str]:
    return imports(path).every


def layer(name: str) -> str:
    return ".".join(name.split(".")[:2])


def test_parsim_imports_numpy_and_no_more_and_what_compiles_numba() -> None:
    compiles = {"parsim.engine.compile.compiler", "parsim.engine.compile.lowering"}
    outside = {
        (name, package)
        for name, path in modules("parsim")
        for package in {each.split(".")[0] for each in imported(path)} - sys.stdlib_module_names - {"parsim", "numpy"}
        if not (package == "numba" and name in compiles)
    }
    assert not outside


def test_numba_waits_for_the_first_simulation() -> None:
    script = (
        "import sys, parsim; system = parsim.System(4, [parsim.Queue()], order='eligible_time / walltime')\n"
        "jobs = parsim.Workload([0, 1], [4, 1], [5, 5], [5, 5]); loaded = 'numba' in sys.modules\n"
        "schedule = parsim.simulate(jobs, system); print(loaded, 'numba' in sys.modules, schedule.start.tolist())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "False True [0, 5]\n"), done.stderr


def test_imports_point_left() -> None:
    files = [(name, path) for name, path in modules("qconf") if name != "qconf"]
    assert not [name for name, _ in files if layer(name) not in LEVEL], "name it in LAYERS"
    wrong = [
        f"{name} imports {each}"
        for name, path in files
        for each in sorted(imported(path))
        if LEVEL.get(layer(each), 0) > LEVEL[layer(name)]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ["parsim", "qconf"])
def test_no_import_cycle(package: str) -> None:
    paths = dict(modules(package))
    graph = {}
    for name, path in paths.items():
        targets = {each if each in paths else each.rpartition(".")[0] for each in imports(path).running}
        graph[name] = targets & paths.keys() - {name}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules


#: The modules of parsim that the reference simulator and the verifier may import: its input and output.
DATA = {
    f"parsim.{module}.{name}"
    for module, names in {
        "model.fairshare": "Fairshare",
        "model.needs": "Quota",
        "model.node_types": "Chunk NodeType Request",
        "planning.plan": "Policy",
        "model.schedule": "Interruptions SPANNING Schedule",
        "model.state": "State Window",
        "model.system": "LIMITS Queue System",
        "model.workload": "Column Workload",
    }.items()
    for name in names.split()
}


def test_verifier_and_reference_simulator_share_no_code() -> None:
    for name, path in modules("parsim"):
        rooms = {"parsim.naive": ("parsim.naive.",), "parsim.verify": ("parsim.naive.", "parsim.verify.")}.get(
            layer(name)
        )
        if rooms:
            found = {each for each in imported(path) if not each.startswith(rooms)}
            assert {each for each in found if each.startswith(("parsim", "tests"))} <= DATA, name


@pytest.mark.parametrize("package", ["parsim", "qconf"])
def test_what_is_installed_imports_nothing_that_is_not(package: str) -> None:
    for name, path in modules(package):
        assert not {each.split(".")[0] for each in imported(path)} & {"studies", "tests"}, name


def test_what_is_slow_to_import_is_imported_where_it_is_used() -> None:
    slow = ("scipy.stats", "scipy.optimize", "sklearn")
    for name, path in modules("qconf"):
        found = imports(path)
        assert not {each for each in found.first if each.startswith(slow)} | (found.every & {"scipy"}), name


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from qconf.cli import qconf\n"
        "result = CliRunner().invoke(qconf, ['--help']); assert result.exit_code == 0, result.output\n"
        "heavy = {'numpy', 'numba', 'pandas', 'scipy', 'vl_convert', 'pydantic', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy; print(result.output)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "tune" in done.stdout


def test_what_was_read_waits_for_no_strategy() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from qconf.cli import options, qconf\n"
        "def stop(*given, **named): raise SystemExit(0)\n"
        "import qconf.cli.run_command as run; run.report_history = stop\n"
        "qconf.main(['tune'], standalone_mode=False)"
    )
    after = "heavy = {'qconf.strategies', 'qconf.recommend', 'vl_convert'} & set(sys.modules)"
    script = script.replace("raise SystemExit(0)", f"{after}; assert not heavy, heavy; print('read'); sys.exit(0)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr


def test_every_command_has_help_and_stands_in_the_readme() -> None:
    import click
    from click.testing import CliRunner

    from qconf.cli import qconf

    readme = (ROOT / "README.md").read_text()
    context = click.Context(qconf)
    names = qconf.list_commands(context)
    assert {"tune", "inspect", "simulate", "synth"} <= set(names)
    for name in names:
        result = CliRunner().invoke(qconf, [name, "--help"])
        assert result.exit_code == 0, result.output
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
    # Paths of the checkout and of the folder beside it; docs may name their parent, since it may be /tmp.
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
