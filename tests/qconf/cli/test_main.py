"""What is so of every command: its output and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOG = "job_id,submit,runtime,walltime,cores,queue\n1,0,60,100,4,очередь\n2,9,60,100,4,очередь\n"
SITE = "machine: {cores: 8}\nqueues: [{name: очередь}]\n"


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    (tmp_path / "site.yaml").write_text(SITE, encoding="utf-8")
    return ["--history", str(tmp_path / "log.csv"), "--config", str(tmp_path / "site.yaml")]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "qconf", *map(str, arguments)]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_a_letter_gets_an_escape(inputs: list[str], encoding: str) -> None:
    env = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": encoding}
    done = subprocess.run(command("simulate", *inputs), env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    wanted = "\nочередь " if encoding == "utf-8" else "\n\\u043e\\u0447\\u0435\\u0440\\u0435\\u0434\\u044c "
    assert wanted in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("name", "code"), [("simulate", 0), ("simulate --json", 0), ("inspect", 0), ("simulate --strategy magic", 1)]
)
def test_a_reader_that_leaves_changes_nothing(inputs: list[str], name: str, code: int) -> None:
    given = ["inspect", inputs[1]] if name == "inspect" else [*name.split(), *inputs]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(*given), stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == code


@pytest.mark.parametrize(
    ("given", "traceback"),
    [(["inspect", "missing"], False), (["--debug", "inspect", "missing"], True), (["inspect", "--", "--debug"], False)],
)
def test_a_traceback_is_for_those_who_ask_for_it(given: list[str], traceback: bool, tmp_path: Path) -> None:
    done = subprocess.run(command(*given), capture_output=True, check=False, cwd=tmp_path, text=True)
    assert done.returncode == 1
    assert ("Traceback" in done.stderr) == traceback
    assert "there is no such file" in done.stderr
