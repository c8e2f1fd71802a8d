"""What lies in the current folder is data: no process that is started takes a module from there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from parsim.compiling import Compiling, seconds
from qconf.cli.source import STRATEGIES
from tests.qconf.backtest import walking
from tests.qconf.export.snapshots import FOLDER

COMMAND = Path(sys.executable).with_name("qconf")
NAMES = {*sys.stdlib_module_names, "joblib", "numba", "numpy", "pandas", "parsim", "qconf", "sitecustomize"}


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A current folder in which every module says that it was imported; and a log."""
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)  # a command that ran in this process has set it
    for name in NAMES - {*sys.builtin_module_names}:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\n")
    walking.write(tmp_path / "log.csv", walking.table(1, 60))
    walking.write(tmp_path / "next.csv", walking.table(1, 60, first=1))
    (tmp_path / "site.yaml").write_text(walking.CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_takes_modules_from_the_current_folder_by_itself(hostile):
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert "json " in (hostile / "imported").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "inspect log.csv --cores 48",
        "compare log.csv next.csv --config site.yaml --strategies pp,static --workers 2",
        "compare log.csv next.csv --config site.yaml --strategies pp,static --workers 2 --backend loky",
    ],
)
def test_no_command_takes_modules_from_the_current_folder(hostile, words):
    subprocess.run([COMMAND, *words.split()], check=True, capture_output=True, timeout=300)
    assert not (hostile / "imported").exists()


def test_what_compiles_has_the_modules_of_its_caller(hostile):
    running = Compiling(seconds(["lists"]) | STRATEGIES, 2)
    running.wait()
    assert running.failed == []
    assert not (hostile / "imported").exists()


def test_what_is_exported_takes_no_modules_from_the_current_folder_either():
    """Root starts it where PLAN.md says, beside other files."""
    found = [text for path in FOLDER.glob("*/*") for text in re.findall("python3.*", path.read_text(encoding="utf-8"))]
    assert found
    assert [text for text in found if not text.startswith("python3 -I")] == []
