"""`qconf backtest` as a person meets it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from qconf.errors import InputError
from qconf.report.columns import COLUMNS
from tests.qconf.backtest import walking
from tests.qconf.cli import commands
from tests.qconf.cli.commands import contents, interrupted
from tests.qconf.report.page import Page

QUICK = ["--samples", "20", "--period", "10d", "--strategies", "current,lxf-easy,pp,dp-nlp,dynp"]


invoke = partial(commands.invoke, "backtest")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("history")
    (folder / "site.yaml").write_text(walking.CONFIG)
    return ["--history", walking.write(folder / "log.csv", walking.table()), "--config", folder / "site.yaml"]


@pytest.fixture(scope="module")
def run(inputs: list[object], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("run") / "out"
    return out, invoke(*inputs, *QUICK, "--out", out, "--workers", 2)


def test_prints_a_row_per_strategy_and_where_it_is(run: tuple[Path, Result]) -> None:
    out, result = run
    assert result.exit_code == 0
    for name in ("current", "fcfs-easy", "lxf-easy", "shared", "static", "pp", "dp-nlp", "dynp*"):
        assert f"\n{name} " in result.output
    assert "2 test periods, 2016-01-11 to 2016-01-21" in " ".join(result.output.split())
    assert str(out) in result.output
    assert max(len(line) for line in result.output.splitlines() if str(out) not in line) <= 80


def test_writes_the_run_directory(run: tuple[Path, Result]) -> None:
    out, _ = run
    figures = ("mean-wait", "mean-bounded-slowdown", "utilization", "core-hours")
    files = {"backtest.csv", "dropped.csv", "report.html", "run.json"}
    assert set(contents(out)) == files | {f"figures/{name}.vl.json" for name in figures}
    table = pd.read_csv(out / "backtest.csv")
    assert list(table.columns) == ["period", "strategy", "queue", "metric", "value"]
    assert set(table["queue"]) == {"all", "short", "long", "wide"}
    assert set(table["period"]) == {"2016-01-11", "2016-01-21"}
    record = json.loads((out / "run.json").read_text())
    assert record["settings"]["warmup_days"] == 3
    assert [stage["jobs"] for stage in record["periods"]] == [240, 240]
    wait = table[(table["strategy"] == "pp") & (table["queue"] == "all") & (table["metric"] == "mean_wait")]["value"]
    mean = next(row["means"]["mean_wait"] for row in record["averages"] if row["strategy"] == "pp")
    assert mean == pytest.approx(wait.mean())


def test_the_report_opens_offline(run: tuple[Path, Result]) -> None:
    page = Page((run[0] / "report.html").read_text())
    assert page.wrong == []
    assert not page.sources
    assert all(link.startswith("#") for link in page.links)
    assert len(page.ids) == len(set(page.ids))
    assert "fcfs-easy" in page.texts
    assert "fairness" not in page.texts  # one figure of it: the spread
    heads = page.texts.index("spread")
    record = json.loads((run[0] / "run.json").read_text())
    means = record["averages"][0]["means"]
    shown = page.texts[heads:]
    row = shown[shown.index(record["averages"][0]["strategy"]) :]
    column = heads - page.texts.index("strategy")
    assert row[column] == COLUMNS["spread_users"].write(means["spread_users"])
    advice = record["advice"]
    shown = " ".join(" ".join(page.texts).split())
    assert f"{advice['verdict']}: {advice['lead']}" in shown  # what the terminal says
    assert f"\n{advice['verdict']}: {advice['lead']}"[:70] in run[1].output
    assert "decisions" in page.ids
    assert any(text.startswith("dp-nlp: ") and text.endswith("steps") for text in page.texts)


def test_one_test_period_is_a_backtest_too(inputs: list[object], tmp_path: Path) -> None:
    done = invoke(*inputs, "--period", "20d", "--strategies", "lxf-easy", "--out", tmp_path / "out")
    assert "backtest.csv" in done.output
    assert len(set(pd.read_csv(tmp_path / "out" / "backtest.csv")["period"])) == 1
    assert "backtest.csv" in (tmp_path / "out" / "report.html").read_text()


def test_an_interrupted_run_goes_on_and_gives_the_same(
    run: tuple[Path, Result], inputs: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "qconf.backtest.walk_forward.propose"
    calls = interrupted(monkeypatch, name, lambda calls: calls.count("dp-nlp") == 2)
    arguments = [*inputs, *QUICK, "--workers", 1, "--out", tmp_path / "out"]
    stopped = invoke(*arguments)
    assert (stopped.exit_code, stopped.stderr) == (130, "qconf: interrupted: --resume goes on from what was finished\n")
    assert not (tmp_path / "out" / "run.json").exists()
    before = len(calls)
    assert invoke(*arguments, "--resume").exit_code == 0
    assert set(calls[before:]) == {"dp-nlp", "dynp"}
    assert contents(tmp_path / "out") == contents(run[0])


def test_an_interrupt_before_anything_is_finished(
    inputs: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, "qconf.backtest.walk_forward.propose")
    stopped = invoke(*inputs, *QUICK, "--workers", 1, "--out", tmp_path / "out")
    assert (stopped.exit_code, stopped.stderr) == (130, "qconf: interrupted: nothing is left to go on from\n")
    assert not (tmp_path / "out").exists()


def test_without_a_configuration_nothing_of_the_log_but_its_queue_names_is_used(
    inputs: list[object], tmp_path: Path
) -> None:
    result = invoke(*inputs[:2], *QUICK, "--cores", 48, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "No --config" in result.output
    assert "of queues without limits only the first can be split" in " ".join(result.output.split())
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["assumed_current"]
    assert record["base"]["queues"][0]["cores"] == [1, 48]
    rows = {row["strategy"]: row["means"] for row in record["averages"]}
    assert rows["current"] == rows["fcfs-easy"]


def test_json_is_one_document_on_stdout(inputs: list[object], tmp_path: Path) -> None:
    result = invoke(*inputs, "--period", "10d", "--strategies", "pp", "--out", tmp_path / "out", "--json")
    rows = [row["strategy"] for row in json.loads(result.stdout)["averages"]]
    assert rows == ["current", "fcfs-easy", "shared", "pp", "static"]  # what the site has stands beside what is named


def refused(tmp_path: Path, *arguments: object) -> str:
    return commands.refused(tmp_path / "out", "backtest", *arguments)


def test_bad_input_is_one_message_and_nothing_written(inputs: list[object], tmp_path: Path) -> None:
    assert "1 of 1 periods" in refused(tmp_path, *inputs)  # one calendar month
    assert "fortnight" in refused(tmp_path, *inputs, "--period", "fortnight")
    assert "missing.csv" in refused(tmp_path, "--history", tmp_path / "missing.csv", "--cores", 8)
    assert "size of the machine" in refused(tmp_path, *inputs[:2])
    with pytest.raises(InputError, match="magic"):
        invoke(*inputs, "--strategies", "pp,magic")


def test_overwrites_nothing_that_is_of_no_run(inputs: list[object], tmp_path: Path) -> None:
    (tmp_path / "backtest.csv").write_text("mine")
    with pytest.raises(InputError, match="not from an earlier run"):
        invoke(*inputs, *QUICK, "--out", tmp_path)
    assert (tmp_path / "backtest.csv").read_text() == "mine"


def test_settings_of_the_searches_reach_them(inputs: list[object], tmp_path: Path) -> None:
    settings = ["--degree", 2, "--weights", "1,1", "--slack", 0.9, "--tau-util", 1, "--carve", "partitions"]
    wanted = ["--samples", "30", "--period", "10d", "--strategies", "dp-nlp", *settings, "--out", tmp_path / "out"]
    assert invoke(*inputs, *wanted).exit_code == 0
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    chosen = {"degree": 2, "weights": [1.0, 1.0], "slack": 0.9, "tau_util": 1.0, "carve": "partitions", "samples": 30}
    assert {key: record["settings"][key] for key in chosen} == chosen
    for result in record["results"]:
        fits = [step for step in result["decisions"] if step["step"] == "surrogate"]
        if result["strategy"] == "dp-nlp":
            assert [(step["weight"], step["degree"]) for step in fits] == [(1.0, 2), (1.0, 2)]
