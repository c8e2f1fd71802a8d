"""`qconf compare` as a person meets it."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from qconf.errors import InputError
from tests.qconf.backtest import walking
from tests.qconf.cli import commands

QUICK = ["--samples", "20", "--strategies", "pp,dp-nlp,planned-sjf"]


invoke = partial(commands.invoke, "compare")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("history")
    (folder / "site.yaml").write_text(walking.CONFIG)
    january = walking.write(folder / "january.csv", walking.table(periods=1))
    february = walking.write(folder / "february.csv", walking.table(periods=1, first=1))
    return january, february, folder / "site.yaml"


def test_learns_from_one_log_and_judges_on_the_next(logs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    first, then, config = logs
    result = invoke("--history", first, "--next", then, "--config", config, *QUICK, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "Trained on 240 jobs, evaluated on 240 later ones." in " ".join(result.output.split())
    assert re.search(r"^(CHANGE|KEEP): \w", result.output, re.MULTILINE)
    assert "\nplanned-sjf* " in result.output
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert list(table.columns) == ["strategy", "queue", "metric", "value"]
    jobs = table[(table["metric"] == "jobs") & (table["queue"] == "all")]
    assert set(jobs["value"]) == {240}
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert [each["name"] for each in record["inputs"]] == ["january.csv", "february.csv", "site.yaml"]
    assert record["periods"][0]["warmup_jobs"] > 0


def test_without_a_configuration_the_queues_of_both_logs_are_known(
    logs: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    table = walking.table(periods=1, first=1).assign(queue="later")
    then = walking.write(tmp_path / "then.csv", table)
    result = invoke("--history", logs[0], "--next", then, "--cores", 48, *QUICK, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (0, "")  # no warning about what was not given
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert "later" in {queue["name"] for queue in record["base"]["queues"]}
    assert record["history"]["dropped"] == {}


def test_goes_on_only_from_what_was_trained_on_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("one", "two", "three")
    logs = [walking.write(tmp_path / f"{name}.csv", walking.table(periods=1, first=i)) for i, name in enumerate(names)]
    (tmp_path / "site.yaml").write_text(walking.CONFIG)
    chosen = ["--config", tmp_path / "site.yaml", "--strategies", "pp", "--workers", 1, "--out", tmp_path / "out"]
    commands.interrupted(monkeypatch, "qconf.backtest.walk_forward.evaluate", lambda calls: len(calls) == 2)
    invoke("--history", logs[0], "--history", logs[1], "--next", logs[2], *chosen)
    assert list((tmp_path / "out" / ".unfinished").glob("*.json"))
    kept = {path: path.read_bytes() for path in (tmp_path / "out" / ".unfinished").iterdir()}
    with pytest.raises(InputError, match="another run was interrupted here, which differs in the period"):
        invoke("--history", logs[0], "--next", logs[1], "--next", logs[2], *chosen, "--resume")
    assert {path: path.read_bytes() for path in (tmp_path / "out" / ".unfinished").iterdir()} == kept
    done = invoke("--history", logs[0], "--next", logs[1], "--next", logs[2], *chosen)
    assert done.exit_code == 0
    assert "what an interrupted run had finished here is deleted" in " ".join(done.stderr.split())
    assert not (tmp_path / "out" / ".unfinished").exists()


def test_refuses_logs_that_overlap(logs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    first, then, config = logs
    with pytest.raises(InputError, match=r"january\.csv.*begins at"):
        invoke("--history", then, "--next", first, "--config", config, *QUICK, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
