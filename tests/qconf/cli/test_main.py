"""What is so of every command: its output and how it ends."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from qconf.cli import COMMANDS, main, qconf
from qconf.errors import InputError

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
    done = subprocess.run(command("inspect", *inputs), env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    wanted = "\nочередь " if encoding == "utf-8" else "\n\\u043e\\u0447\\u0435\\u0440\\u0435\\u0434\\u044c "
    assert wanted in done.stdout.decode(encoding)


@pytest.mark.parametrize(
    ("name", "code"), [("simulate", 0), ("inspect --json", 0), ("inspect", 0), ("inspect --cores 2", 1)]
)
def test_a_reader_that_leaves_changes_nothing(inputs: list[str], name: str, code: int) -> None:
    given = [*name.split(), *(inputs[:2] if "cores" in name else inputs)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command(*given), stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == code


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("click", "raise KeyboardInterrupt"),  # before there is a command
        ("pandas", "exec('raise KeyboardInterrupt')"),  # within a text, as data classes are made of
    ],
)
def test_an_interrupt_while_modules_are_imported_is_one_line(module: str, text: str, tmp_path: Path) -> None:
    (tmp_path / f"{module}.py").write_text(text)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command("policies", "none"), env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "qconf: interrupted\n")


def test_an_end_that_came_in_a_callback_has_its_own_exit_code(tmp_path: Path) -> None:
    """As in scipy's: Cython shows the interrupt, and drops it."""
    (tmp_path / "pandas.py").write_text(
        "import ctypes, os, signal, sys, time\n"
        "def terminated():\n"
        "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)\n"
        "    except KeyboardInterrupt: sys.excepthook(*sys.exc_info()); raise\n"
        "ctypes.CFUNCTYPE(None)(terminated)()\n"
        "time.sleep(60)\n"
    )
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command("policies", "none"), env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "qconf: interrupted\n")


@pytest.mark.parametrize(
    ("given", "traceback"),
    [(["inspect", "missing"], False), (["--debug", "inspect", "missing"], True), (["inspect", "--", "--debug"], False)],
)
def test_a_traceback_is_for_those_who_ask_for_it(
    given: list[str], traceback: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError if traceback else SystemExit) as ended:
        main(given)
    said = capsys.readouterr().err
    assert traceback or (ended.value.code, said.count("\n")) == (1, 1)
    assert "there is no such file" in (str(ended.value) if traceback else said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tnue", "No such command 'tnue', did you mean tune?"),
        ("xyz", "No such command 'xyz'."),
        ("inspect", "Missing a log: FILE, or --history FILE."),
        ("policies", "Missing a log: FILE, or --history FILE."),
        ("backtest", "Missing a log: FILE, or --history FILE."),
        ("compare log", "Missing option '--next'"),
        ("simulate log --load nan", "'nan' is no finite number"),
        ("tune log --config c --target slurm --scheduler s", "--scheduler is no option of --target slurm, but of pbs"),
        ("export c --target slurm --binding limits", "--binding is no option of --target slurm, but of pbs"),
        ("export c --target slurm --route r", "--route is no option of --target slurm, but of pbs"),
        ("export c --target slurm --remove q", "--remove is no option of --target slurm, but of pbs"),
        ("export c --format slurm", "No such option: --format. It is --target now."),
        ("export .", "give its config.yaml, or --run . --strategy NAME"),
        *(
            (f"export {words}", "Give CONFIG, or --run DIRECTORY and --strategy NAME.")
            for words in ("", "--run r", "--strategy s", "c --run r --strategy s")
        ),
        ("init", "give one of --from-pbs, --from-slurm and --history"),
        ("init --from-pbs a --from-slurm b", "give one of --from-pbs, --from-slurm and --history"),
        ("init --history h --nodes n", "--nodes needs what the batch system holds"),
        ("fidelity log --window 24h..2h", "is not like 2h..24h"),
        ("fidelity log --window soon", "is not like 2h..24h"),
        ("fidelity log --windows 0", "--windows"),
        *((f"backtest log --weights '{text}'", "is not like 1,2,3") for text in ("", "1,-1", "nan", "1;2")),
        ("backtest --histories a.csv,b.csv --config a.yaml", "--configs their machines"),
        ("backtest --histories a.csv,b.csv c.csv", "leave FILE"),
        ("backtest --histories a.csv,b.csv --configs a.yaml", "names 2 logs, --configs 1"),
        ("backtest --histories a.csv,", "an empty name"),
        ("backtest c.csv --configs a.yaml", "--configs goes with --histories"),
        ("policies --shrink 0", "no number above 0"),
        ("policies --shrink much", "no number above 0"),
        ("policies --job-set set1", "--job-set is retired: `python -m studies.dynp --job-set`"),
        ("policies --job-set=set1", "--job-set is retired"),
        ("policies --sweep --json", "--sweep is retired: `python -m studies.dynp --sweep`"),
        ("policies --grid", "--grid is retired"),
        ("policies -o figures", "--out is retired"),
        ("policies --seed 1", "--seed is retired"),
    ],
)
def test_wrong_usage_is_named(words: str, said: str) -> None:
    done = CliRunner().invoke(qconf, shlex.split(words))
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json(name: str) -> None:
    command = qconf.get_command(click.Context(qconf), name)
    assert command is not None
    assert any("--json" in option.opts for option in command.params)


def test_files_that_are_written_are_listed_as_json(tmp_path: Path) -> None:
    def document(*given: object) -> dict[str, object]:
        done = CliRunner().invoke(qconf, [*map(str, given), "--json"], catch_exceptions=False)
        assert done.exit_code == 0
        found: dict[str, object] = json.loads(done.stdout)
        return found

    log, site = tmp_path / "log.csv", tmp_path / "site.yaml"
    log.write_text("job_id,submit,runtime,walltime,cores,queue\n1,0,60,100,4,a\n")
    made = document("init", "--history", log, "--cores", 8, "-o", site)
    assert (made["file"], made["config"]["machine"]["cores"]) == (str(site), 8)  # type: ignore[index]
    found = document("export", site, "-o", tmp_path / "pbs")
    assert found["directory"] == str(tmp_path / "pbs")
    assert {path.name for path in (tmp_path / "pbs").iterdir()} == {"export.json", *found["files"]}  # type: ignore[misc]
    stable = document("synth", "--preset", "stable", "--jobs", 3, "--cores", 8, "-o", tmp_path)
    assert stable == {"files": [str(tmp_path / "stable-3.csv.gz")]}


def test_a_question_ends_with_its_mark() -> None:
    assert str(InputError("no such queue", fix="did you mean small?")) == "no such queue. Did you mean small?"
    assert str(InputError("no such queue", fix="name another")) == "no such queue. Name another."
    assert str(InputError("is walltime 'walltme'?", fix="say which")) == "is walltime 'walltme'? Say which."


@pytest.mark.parametrize(("words", "completed"), [("qconf tu", "tune"), ("qconf tune --hist", "--history")])
def test_a_shell_completes_commands_and_options(words: str, completed: str) -> None:
    wanted = {"_QCONF_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    script = Path(sys.executable).with_name("qconf")
    done = subprocess.run([script], capture_output=True, check=False, text=True, env=os.environ | wanted)
    assert done.stdout == f"plain,{completed}\n"
