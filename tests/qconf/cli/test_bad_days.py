"""What ends a run before its end, what is in its way, and what changes under it: said, and nothing lost."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qconf.errors import InputError, QconfError
from qconf.recommend.checkpoint import FOLDER
from qconf.recommend.lock import exclusive
from tests.qconf.backtest import walking
from tests.qconf.cli.commands import contents, interrupted, invoke

ROOT = Path(__file__).resolve().parents[3]
QUICK = ("--strategies", "pp,dp-nlp", "--samples", "20", "--workers", "1")


def command(folder: Path) -> list[str]:
    """Return a command with a log and a configuration in a folder."""
    folder.mkdir()
    log = walking.write(folder / "log.csv", walking.table(periods=2))
    (folder / "site.yaml").write_text(walking.CONFIG)
    return ["backtest", str(log), "--period", "10d", "--config", str(folder / "site.yaml"), *QUICK, "--quiet"]


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    return command(tmp_path / "in")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed run writes, wherever."""
    folder = tmp_path_factory.mktemp("calm")
    assert invoke(*command(folder / "in"), "--out", folder / "out").exit_code == 0
    return contents(folder / "out")


@pytest.mark.slow
def test_killed_runs_go_on_to_the_same_bytes() -> None:
    given = ["--kills", "1", "--quick"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.kills", *given], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["tune", "compare", "backtest"]
    assert all(int(row[1]) >= 1 for row in rows)


@pytest.mark.parametrize(
    ("number", "code", "ignored"),
    [(signal.SIGTERM, 143, False), (signal.SIGINT, 130, False), (signal.SIGTERM, 0, True)],
)
def test_sigterm_is_as_ctrl_c(
    given: list[str], calm: dict[str, bytes], tmp_path: Path, number: int, code: int, ignored: bool
) -> None:
    script = (
        "import sys, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's job in the background ignores it
        f"signal.signal(signal.SIGTERM, signal.{'SIG_IGN' if ignored else 'SIG_DFL'})\n"
        "import qconf.backtest.walk_forward as w\n"
        "from qconf.cli import main\n"
        "evaluate = w.evaluate\n"
        "def slow(fold, name, *rest):\n"
        f"    if name == 'pp': print('there', flush=True); time.sleep({0.2 if ignored else 60})\n"
        "    return evaluate(fold, name, *rest)\n"
        "w.evaluate = slow\n"
        "main(sys.argv[1:])\n"
    )
    arguments = [*given, "--out", str(tmp_path / "out")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script, *arguments], text=True, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == code, err
    if not ignored:
        assert err.endswith("qconf: interrupted: --resume goes on from what was finished\n")
        assert not (tmp_path / "out" / FOLDER / "lock").exists()
        assert invoke(*arguments, "--resume").exit_code == 0
    assert contents(tmp_path / "out") == calm


def small_files(most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def test_a_disk_that_takes_no_more_is_said_and_the_run_goes_on_later(
    given: list[str], calm: dict[str, bytes], tmp_path: Path
) -> None:
    arguments = [*given, "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "qconf", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        preexec_fn=small_files(20_000),  # what is kept meanwhile is smaller, the report is not
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # Python would leave the beginnings of modules
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"qconf: {tmp_path}/out: cannot be written: File too large\nqconf: --resume goes on from what was finished\n"
    )
    assert {Path(name).parts[0] for name in contents(tmp_path / "out")} == {FOLDER}
    assert invoke(*arguments, "--resume").exit_code == 0
    assert contents(tmp_path / "out") == calm


def test_a_disk_that_is_full_from_the_beginning_is_said_then(
    given: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("qconf.recommend.lock.os.write", full)
    with pytest.raises(QconfError, match=r"out: cannot be written: No space left on device$"):
        invoke(*given, "--out", tmp_path / "out")


def test_an_unwritable_directory_is_said_before_the_work(given: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qconf.backtest.walk_forward.evaluate_all", lambda *_, **__: pytest.fail("worked"))
    with pytest.raises(QconfError, match=r"^/sys/qconf: cannot be written: (Operation not|Perm|Read-only)"):
        invoke(*given, "--out", "/sys/qconf")  # where not even root can


def test_two_runs_in_one_directory(
    given: list[str], calm: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qconf.backtest import walk_forward

    evaluate, refused = walk_forward.evaluate, []

    def meanwhile(*arguments: object) -> object:
        if not refused:
            for more in ([], ["--resume"]):
                with pytest.raises(InputError, match=rf"process {os.getpid()} on .* is writing a run here") as error:
                    invoke(*given, "--out", tmp_path / "out", *more)
                refused.append(getattr(error.value, "__notes__", None))
        return evaluate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walk_forward, "evaluate", meanwhile)
    assert invoke(*given, "--out", tmp_path / "out").exit_code == 0
    assert refused == [None, None]
    assert contents(tmp_path / "out") == calm


def test_a_directory_may_be_a_link(given: list[str], calm: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    assert invoke(*given, "--out", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").is_symlink()
    assert contents(tmp_path / "real") == calm


def test_links_that_lead_out_of_the_directory_or_nowhere_are_refused(given: list[str], tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    with pytest.raises(InputError, match=r"nowhere: is a symbolic link to nothing\. Choose another directory"):
        invoke(*given, "--out", tmp_path / "nowhere")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "mean-wait.svg").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "else")
    with pytest.raises(InputError, match=r"figures: is a symbolic link that leads out of the directory\. Remove it"):
        invoke(*given, "--out", tmp_path / "out")
    assert contents(tmp_path / "else") == {"mean-wait.svg": b"mine"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figures"]


def test_what_changes_while_a_run_goes_on_is_said_and_the_hash_is_that_of_what_was_read(
    given: list[str], calm: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from qconf.backtest import walk_forward

    evaluate = walk_forward.evaluate

    def edited(*arguments: object) -> object:
        (tmp_path / "in" / "site.yaml").write_text(walking.CONFIG.replace("48", "96"))
        (tmp_path / "in" / "log.csv").unlink(missing_ok=True)
        return evaluate(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(walk_forward, "evaluate", edited)
    done = invoke(*given, "--out", tmp_path / "out")
    for name in ("log.csv", "site.yaml"):
        assert f"{name}: changed since it was read; the result is of what it was" in " ".join(done.stderr.split())
    assert contents(tmp_path / "out") == calm


@pytest.mark.parametrize(("file", "named"), [("log.csv", "the log"), ("site.yaml", "the configuration")])
def test_what_changed_since_an_interrupted_run_is_named_and_its_work_kept(
    given: list[str], calm: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, named: str
) -> None:
    interrupted(monkeypatch, "qconf.backtest.walk_forward.averages")
    assert invoke(*given, "--out", tmp_path / "out").exit_code == 130
    path = tmp_path / "in" / file
    text = path.read_text()
    path.write_text(text.replace("40}", "41}") if file == "site.yaml" else text[: text.rindex("1.")])
    kept = contents(tmp_path / "out")
    with pytest.raises(InputError, match=f"which differs in .*{named}"):
        invoke(*given, "--out", tmp_path / "out", "--resume")
    assert contents(tmp_path / "out") == kept
    path.write_text(text)
    assert invoke(*given, "--out", tmp_path / "out", "--resume").exit_code == 0
    assert contents(tmp_path / "out") == calm


def test_a_lock_dies_with_its_process_whatever_its_workers_do(tmp_path: Path) -> None:
    script = (
        "import multiprocessing, sys, time\n"
        "from pathlib import Path\n"
        "from qconf.recommend.lock import exclusive\n"
        "with exclusive(Path(sys.argv[1])):\n"
        "    worker = multiprocessing.get_context('fork').Process(target=time.sleep, args=(60,))\n"
        "    worker.start()\n"
        "    print(worker.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(arguments, text=True, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        with (
            pytest.raises(InputError, match=rf"process {process.pid} on .* is writing a run here"),
            exclusive(tmp_path),
        ):
            pass
        process.kill()
        process.wait()
        try:
            with exclusive(tmp_path):
                pass
        finally:
            os.kill(worker, signal.SIGKILL)


def test_a_run_waits_for_no_other_once_it_was_killed(given: list[str], tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "qconf", *given, "--out", str(tmp_path / "out")]
    with subprocess.Popen(arguments, cwd=ROOT) as process:
        while not (tmp_path / "out" / FOLDER / "lock").exists():
            time.sleep(0.01)
        process.kill()
    assert invoke(*given, "--out", tmp_path / "out", "--resume").exit_code == 0
    assert not (tmp_path / "out" / FOLDER).exists()
