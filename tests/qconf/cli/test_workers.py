"""Where workers run: the same bytes on every back end, on a Dask cluster of processes too, and clear refusals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qconf.errors import InputError
from qconf.parallel import Shared, parallel_map
from tests.qconf.backtest import walking
from tests.qconf.cli.commands import contents, invoke

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as found:
        yield found.scheduler_address


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    folder = tmp_path_factory.mktemp("log")
    log = walking.write(folder / "log.csv", walking.table(jobs=120))
    (folder / "site.yaml").write_text(walking.CONFIG)
    given = ["--history", log, "--config", folder / "site.yaml", "--samples", 20]
    return {
        "tune": ["tune", *given, "--strategies", "dp-nlp,hybrid,auto"],
        "backtest": ["backtest", *given, "--period", "10d", "--strategies", "pp,dqr,auto"],
    }


@pytest.fixture(scope="module")
def alone(commands: dict[str, list[object]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bytes]]:
    """What one worker writes."""
    found = {}
    for name, words in commands.items():
        out = tmp_path_factory.mktemp("alone") / name
        assert invoke(*words, "--workers", 1, "--out", out).exit_code == 0
        found[name] = contents(out)
    return found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tune", ("--workers", 3)),
        ("backtest", ("--workers", 3)),
        pytest.param("tune", ("--workers", 2, "--backend", "loky"), marks=pytest.mark.slow),
        ("backtest", ("--workers", 2, "--backend", "threading")),
    ],
)
def test_the_same_bytes_on_every_back_end(commands, alone, tmp_path, name, words) -> None:
    assert invoke(*commands[name], *words, "--out", tmp_path / "out").exit_code == 0
    assert contents(tmp_path / "out") == alone[name]


@pytest.mark.parametrize("name", [pytest.param("tune", marks=pytest.mark.slow), "backtest"])
def test_the_same_bytes_on_a_dask_cluster(commands, alone, cluster, tmp_path, name) -> None:
    words = ["--backend", "dask", "--scheduler", cluster, "--out", tmp_path / "out"]
    assert invoke(*commands[name], *words).exit_code == 0
    assert contents(tmp_path / "out") == alone[name]


def found_in(shared: Shared[list[int]], number: int) -> tuple[int, int, int]:
    time.sleep(0.02)
    return shared.value[number], os.getpid(), id(shared.value)


def test_a_cluster_gets_what_is_shared_once(cluster: str) -> None:
    from joblib import parallel_config

    shared = Shared(list(range(40)))
    with distributed.Client(cluster), parallel_config(backend="dask"):
        found = parallel_map(2, found_in, [(shared, i) for i in range(40)], processes=True)
    assert [each[0] for each in found] == list(range(40))
    assert os.getpid() not in {each[1] for each in found}
    assert len({each[1:] for each in found}) <= 2 * len({each[1] for each in found})  # Dask may copy it once more


def test_what_is_no_back_end_is_refused(commands, tmp_path, monkeypatch) -> None:
    out = ["--out", tmp_path / "out"]
    with pytest.raises(InputError, match="no such back end"):
        invoke(*commands["tune"], *out, "--backend", "none such")
    with pytest.raises(InputError, match="waits for ever"):
        invoke(*commands["tune"], *out, "--backend", "multiprocessing")
    monkeypatch.setattr("qconf.cli.workers.TIMEOUT", 0.5)
    with pytest.raises(InputError, match="no scheduler answers"):
        invoke(*commands["tune"], *out, "--backend", "dask", "--scheduler", "tcp://127.0.0.1:9")
    assert invoke(*commands["tune"], *out, "--backend", "dask").exit_code == 2
    assert not (tmp_path / "out" / "run.json").exists()


def test_an_interrupt_within_a_callback_is_not_lost() -> None:
    script = (
        "import ctypes, os, signal, sys, time; import qconf.cli.interrupts as interrupts\n"
        "sys.unraisablehook = interrupts.repeat_lost\n"
        "def interrupted():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    time.sleep(0)\n"
        "try: ctypes.CFUNCTYPE(None)(interrupted)(); time.sleep(10); print('lost')\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_an_interrupt_at_the_terminal_is_one_line_and_leaves_no_process(commands, tmp_path) -> None:
    line = [sys.executable, "-m", "qconf", *map(str, commands["tune"]), "--workers", "2", "--out", tmp_path / "out"]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(line, start_new_session=True, **pipes)
    workers: list[str] = []
    while process.poll() is None and not workers:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        workers = [each for each in children if _is_copy(each, process.pid)]
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip().splitlines()[-1].startswith("qconf: interrupted")
    assert "Traceback" not in said
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{each}").exists() for each in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{each}").exists() for each in workers)


def _is_copy(process: str, of: int) -> bool:
    try:
        one, other = (Path(f"/proc/{each}/cmdline").read_bytes() for each in (process, of))
    except OSError:  # it has ended
        return False
    return one == other != b""
