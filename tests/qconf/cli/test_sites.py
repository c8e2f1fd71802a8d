"""`qconf backtest --histories`: several sites at once, each as it is alone."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from qconf.errors import InputError
from tests.qconf.backtest import walking
from tests.qconf.cli import commands
from tests.qconf.cli.commands import contents, interrupted

QUICK = ["--samples", "20", "--period", "10d", "--strategies", "lxf-easy,pp,dp-nlp"]


invoke = partial(commands.invoke, "backtest", *QUICK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sites: one with a configuration and three periods, one without and of two."""
    folder = tmp_path_factory.mktemp("sites")
    (folder / "north.yaml").write_text(walking.CONFIG)
    walking.write(folder / "north.csv", walking.table())
    (folder / "south.swf").write_text(swf(walking.table(periods=2, first=1)))
    return folder


def swf(jobs: pd.DataFrame) -> str:
    """Write jobs as the Parallel Workloads Archive does; the header tells the size of the machine."""
    lines = ["; MaxProcs: 48", "; UnixStartTime: 0"]
    for i, job in enumerate(jobs.itertuples(), 1):
        wanted = f"{job.cores} {job.walltime}"
        lines.append(f"{i} {job.submit} -1 {job.runtime} {job.cores} -1 -1 {wanted} -1 1 1 1 -1 1 -1 -1 -1")
    return "\n".join(lines) + "\n"


def sites(folder: Path) -> list[object]:
    return ["--histories", f"{folder / 'north.csv'},{folder / 'south.swf'}", "--configs", f"{folder / 'north.yaml'},"]


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("run") / "out"
    return out, invoke(*sites(folder), "--out", out, "--workers", 2)


def test_each_site_is_as_it_is_alone(run, folder, tmp_path) -> None:
    out, result = run
    assert result.exit_code == 0
    alone = {"north": [folder / "north.csv", "--config", folder / "north.yaml"], "south": [folder / "south.swf"]}
    for name, words in alone.items():
        assert invoke(*words, "--workers", 1, "--out", tmp_path / name).exit_code == 0
        assert contents(out / name) == contents(tmp_path / name)
    assert {path.name for path in out.iterdir()} == {"north", "south", "sites.csv", "sites.json"}


def test_one_table_across_the_sites(run) -> None:
    out, result = run
    records = {name: json.loads((out / name / "run.json").read_text()) for name in ("north", "south")}
    table = pd.read_csv(out / "sites.csv")
    for (site, strategy), row in table.set_index(["site", "strategy"]).iterrows():
        (average,) = [each for each in records[site]["averages"] if each["strategy"] == strategy]
        for name, key in (("fcfs-easy", "fcfs_easy"), ("current", "current")):
            for metric in ("mean_wait", "mean_bounded_slowdown", "max_wait"):
                found = row[f"{metric}_against_{key}"]
                if name in average["against"]:
                    assert found == average["against"][name]["ratios"][metric]
                else:
                    assert np.isnan(found)
    assert set(table["site"]) == {"north", "south"}
    assert "current" in set(table[table["site"] == "north"]["strategy"])
    assert "current" not in set(table[table["site"] == "south"]["strategy"])
    for each in json.loads((out / "sites.json").read_text())["strategies"]:
        own = table[table["strategy"] == each["strategy"]].set_index("site")["mean_wait_against_fcfs_easy"]
        assert each["sites"] == len(own)
        assert each["ratios"]["mean_wait"] == pytest.approx(np.prod(own) ** (1 / len(own)))
        assert each["best"] == [own.idxmin(), own.min()]
        assert each["worst"] == [own.idxmax(), own.max()]
        assert f"\n{each['strategy']} " in result.output
    assert max(len(line) for line in result.output.splitlines() if str(out) not in line) <= 80


def test_goes_on_after_an_interrupt(run, folder, tmp_path, monkeypatch) -> None:
    interrupted(monkeypatch, "qconf.backtest.walk_forward.evaluate", lambda calls: len(calls) == 13)
    stopped = invoke(*sites(folder), "--out", tmp_path / "out", "--workers", 1)
    assert stopped.exit_code == 130
    assert "--resume goes on from what was finished" in stopped.stderr
    assert not (tmp_path / "out" / "sites.csv").exists()
    assert list((tmp_path / "out" / "north" / ".unfinished").glob("*.json"))
    assert invoke(*sites(folder), "--out", tmp_path / "out", "--workers", 2, "--resume").exit_code == 0
    assert contents(tmp_path / "out") == contents(run[0])
    assert invoke(*sites(folder), "--out", tmp_path / "out", "--workers", 2).exit_code == 0  # over an earlier run


def test_prints_the_record_and_writes_the_same_with_one_worker(run, folder, tmp_path) -> None:
    found = invoke(*sites(folder), "--out", tmp_path / "out", "--json", "--workers", 1)
    assert json.loads(found.stdout) == json.loads((tmp_path / "out" / "sites.json").read_text())
    assert contents(tmp_path / "out") == contents(run[0])


def test_two_sites_of_one_name_are_refused(folder, tmp_path) -> None:
    (tmp_path / "north.csv").symlink_to(folder / "north.csv")
    with pytest.raises(InputError, match="another site has this name"):
        invoke("--histories", f"{folder / 'north.csv'},{tmp_path / 'north.csv'}", "--out", tmp_path / "out")


def test_what_is_of_no_run_is_not_replaced(folder, tmp_path) -> None:
    (tmp_path / "sites.csv").write_text("mine")
    with pytest.raises(InputError, match="not from an earlier run"):
        invoke(*sites(folder), "--out", tmp_path)
    assert (tmp_path / "sites.csv").read_text() == "mine"
    assert not (tmp_path / "north").exists()
