"""Users who answer to what they see: their log is the schedule that they answered to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from parsim import Pool, Queue, System, Throttle, Workload, simulate
from parsim.model.workload import Column
from qconf.cli import qconf
from qconf.config import load, parse
from qconf.errors import InputError
from qconf.history import clean, read
from qconf.synth.agents import DAY, GIVES_UP, HOUR, LOOK, MONDAY, USUAL, WORK, Heavy, View, anywhere, live, routing

ROOT = Path(__file__).resolve().parents[2]
QUEUES = [Queue(name="short", priority=2, starvation=7200), Queue(name="long", priority=1, starvation=86400)]
SYSTEMS = {
    "easy": System(64),
    "no backfill": System(64, backfill=False),
    "list": System(64, reserve="nothing", reserve_after=86400),
    "formula": System(64, order="eligible_time / 60 + 10 * ncpus"),
    "queues": System(64, QUEUES),
    "limits": System(64, [replace(queue, max_run=5, max_user_cores=40) for queue in QUEUES]),
    "held jobs": System(64, [replace(queue, max_run=5) for queue in QUEUES], held_jobs="reserve"),
    "throttles": System(64, QUEUES, throttles=[Throttle(each="user", max_run_cores=40, max_eligible=2)]),
    "depth": System(64, QUEUES, reservation_depth=3),
    "one reservation a queue": System(64, QUEUES, reserve="queues"),
    "nodes": System(64, QUEUES, reserve="nodes", cores_per_node=4),
    "fairshare": System(64, order="fairshare"),
    "partitioned": System(64, [replace(QUEUES[0], partition=32), replace(QUEUES[1], partition=32)], "partitioned"),
    "hybrid": System(
        64, [replace(QUEUES[0], partition=16), replace(QUEUES[1], partition=24)], "hybrid", pool=Pool(24, threshold=0.5)
    ),
    "reservations": System(64, [replace(QUEUES[0], partition=64), replace(QUEUES[1], reservation=True)], "partitioned"),
}


def by_walltime(cores: Column, walltime: Column, users: list[str]) -> Column:
    return np.where((cores > 32) & (walltime <= 4 * HOUR), -1, (walltime > 4 * HOUR).astype(np.int64))


def schedule(log: pd.DataFrame, system: System) -> Column:
    names = [queue.name for queue in system.queues]
    users = sorted({*log["user"]}, key=lambda name: (list(USUAL).index(name.rstrip("0123456789")), name))
    numbers = [log[name].to_numpy() for name in ("submit", "cores", "runtime", "walltime")]
    queue = np.array([names.index(name) for name in log["queue"]])
    return simulate(Workload(*numbers, queue, np.array([users.index(name) for name in log["user"]])), system).start


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_log_is_what_the_scheduler_makes_of_it_at_once(name: str):
    system = SYSTEMS[name]
    log = live(system, 1, 3, to_queue=anywhere if len(system.queues) == 1 else by_walltime).log
    started = (log["start"] >= 0).to_numpy()
    assert 20 < started.sum() < len(log)
    assert (schedule(log, system)[started] == log["start"].to_numpy()[started]).all()
    assert (schedule(log, system)[~started] >= MONDAY + DAY).all()


@pytest.fixture(scope="module")
def log() -> pd.DataFrame:
    found = live(System(64), 14, 1).log
    return found.assign(kind=found["user"].str.rstrip("0123456789"), wait=found["start"] - found["submit"])


def test_a_developer_works_by_day_one_job_at_a_time_and_goes_home(log: pd.DataFrame):
    day, second = np.divmod(log["submit"] - MONDAY, DAY)
    at_work = (day % 7 < 5) & (second >= WORK[0]) & (second < WORK[1] + LOOK)
    assert at_work[log["kind"] == "developer"].all()
    for _, jobs in log[log["kind"] == "developer"].groupby("user"):
        end = (jobs["start"] + jobs["runtime"]).where(jobs["start"] >= 0, MONDAY + 99 * DAY)
        assert (jobs["submit"].to_numpy()[1:] >= end.to_numpy()[:-1]).all()
        waited = (jobs["wait"] > GIVES_UP + LOOK) & (jobs["start"] >= 0)
        following = jobs["submit"].shift(-1)[waited].dropna()
        home = ((jobs["submit"] + GIVES_UP + LOOK - MONDAY) // DAY)[following.index]
        assert ((following - MONDAY) // DAY > home).all()
    assert (log["kind"] == "developer").sum() > 50


def test_a_heavy_user_has_three_jobs_and_a_greedy_one_fills_what_is_idle(log: pd.DataFrame):
    for now in range(MONDAY + LOOK, MONDAY + 14 * DAY, 7 * HOUR):
        came = log["submit"] < now - LOOK
        over = (log["start"] >= 0) & (log["start"] + log["runtime"] <= now)
        heavy = log[came & ~over & (log["kind"] == "heavy")]
        assert (heavy.groupby("user").size() <= 3).all()
        assert heavy["user"].nunique() == USUAL["heavy"] or now < MONDAY + 2 * LOOK
    alone = live(System(64), 5, 1, {"heavy": 4, "greedy": 1}).log
    greedy = alone[alone["user"] == "greedy1"]
    assert (greedy["start"] == greedy["submit"]).mean() > 0.9
    assert len(greedy) > 500
    assert list(Heavy().submits(View(0, 64, DAY, np.array([5, 5, 5]), 0, 0, 0), np.random.default_rng(0))) == []


def test_another_scheduler_gets_another_log():
    logs = [live(system, 3, 1).log for system in (System(64), System(64, backfill=False), System(64))]
    assert logs[0].equals(logs[2])
    greedy = [log["user"].str.startswith("greedy").sum() for log in logs]
    assert greedy[0] > 2 * greedy[1]


def test_a_configuration_routes_and_no_job_is_one_that_never_starts(tmp_path: Path):
    path = ROOT / "configs" / "cray-xc40.yaml"
    done = CliRunner().invoke(
        qconf, ["synth", "--preset", "agents", "--config", str(path), "--days", "3", "-o", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    config = load(path)
    history = clean(read([tmp_path / "agents-3.csv.gz"]), config)
    assert len(history.jobs) > 50
    assert not len(history.dropped)
    assert (history.jobs["cores"] % config.grid == 0).all()
    limits = (
        "{machine: {cores: 64}, queues: [{name: a, max_user_cores: 8}], throttles: [{each: user, max_run_cores: 4}]}"
    )
    narrow = parse(limits)
    few = live(narrow.system(), 1, 0, to_queue=routing(narrow))
    assert few.log["cores"].max() <= 4
    assert few.refused > 0


def test_agents_ask_for_no_longer_than_some_queue_takes():
    site = parse("{machine: {cores: 64}, queues: [{name: a, walltime: [0, 10m]}, {name: b, walltime: [10m, 2h]}]}")
    found = live(site.system(), 2, 0, to_queue=routing(site))
    assert found.refused == 0
    assert {*found.log["user"].str.rstrip("0123456789")} == {*USUAL}
    assert found.log["walltime"].max() == 2 * HOUR


def test_what_no_queue_takes_is_counted_and_nothing_at_all_is_refused(tmp_path: Path):
    (tmp_path / "site.yaml").write_text("{machine: {cores: 64}, queues: [{name: a, cores: [1, 4]}]}")
    words = ["synth", "--preset", "agents", "--config", str(tmp_path / "site.yaml"), "--days", "1"]
    done = CliRunner().invoke(qconf, [*words, "-o", str(tmp_path / "one")])
    assert done.exit_code == 0
    assert "requests are in no log, as no queue takes them" in done.output
    with pytest.raises(InputError, match=r"nothing was submitted, and no queue takes \d+ requests"):
        CliRunner().invoke(qconf, [*words, "--agents", "heavy=1", "-o", str(tmp_path / "two")], catch_exceptions=False)
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--preset", "agents"], "needs --config or --cores"),
        (["--preset", "agents", "--cores", "8", "--config", "x"], "not both"),
        (["--preset", "agents", "--cores", "8", "--agents", "lazy=2"], "is no list like developer=6"),
        (["--preset", "agents", "--cores", "8", "--agents", "heavy=1,heavy=2"], "is no list like developer=6"),
        (["--preset", "agents", "--cores", "8", "--agents", "heavy=0"], "is no list like developer=6"),
        (["--preset", "agents", "--cores", "8", "--agents", "heavy=1,"], "is no list like developer=6"),
        (["--preset", "agents", "--cores", "8", "--load", "1"], "agents submit what they like"),
        (["--preset", "agents", "--cores", "8", "--months", "1"], "belong to the presets of machines"),
        (["--preset", "stable", "--cores", "8", "--jobs", "5", "--days", "1"], "belong to --preset agents"),
    ],
)
def test_what_is_refused(given: list[str], said: str, tmp_path: Path):
    done = CliRunner().invoke(qconf, ["synth", *given, "-o", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()
