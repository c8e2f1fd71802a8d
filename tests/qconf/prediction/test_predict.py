"""Predictions of a snapshot."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from qconf.cli import qconf
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.prediction.results import predict
from qconf.prediction.runtimes import Ended, RunTimes, quantiles, sample
from qconf.snapshot import Closure, Job, Snapshot

SITE = SiteConfig(machine=MachineConfig(cores=16), queues=(QueueConfig(name="work"),))


def job(name, cores, walltime, start=None, **more):
    return Job(name, "ann", "", "work", cores, walltime, 900, start, **more)


def starts(found):
    return {each.job.job_id: each.planned for each in found.starts}


def test_the_plan_by_walltimes():
    found = predict(
        Snapshot(1000, (job("r", 12, 300, 950), job("a", 8, 100), job("b", 4, 200), job("c", 4, 400))), SITE
    )
    assert starts(found) == {"b": 1000, "a": 1250, "c": 1200}
    assert {each.job.job_id: each.why for each in found.starts} == {
        "b": "starts now",
        "a": "needs 8 cores, 0 idle",
        "c": "needs 4 cores, 0 idle",
    }


def test_nodes_that_are_down_and_a_maintenance():
    closures = (Closure("node", 1000, None, 4), Closure("maintenance", 1200, 1500, 16))
    found = predict(Snapshot(1000, (job("a", 16, 50), job("b", 12, 300), job("c", 12, 100)), 16, closures), SITE)
    assert starts(found) == {"c": 1000, "b": 1500, "a": None}
    assert found.starts[-1].why == "needs nodes that are down, their return is unknown"


def test_what_a_new_job_would_get_and_a_job_that_is_none_yet():
    jobs = (job("r", 8, 600, 900), job("a", 12, 100))
    found = predict(Snapshot(1000, jobs), SITE, extra=[job("what-if 1", 4, 400)])
    assert starts(found)["what-if 1"] == 1000
    assert [(gap.cores, gap.seconds) for gap in predict(Snapshot(1000, jobs), SITE).gaps] == [(8, 500), (4, None)]


def test_what_is_odd_is_counted_and_the_rest_predicted():
    jobs = (job("r", 12, 10, 900), job("s", 12, 300, 950), job("h", 1, 10, held="on hold"), job("w", 20, 10))
    found = predict(Snapshot(1000, (*jobs, job("a", 8, 10))), SITE)
    assert list(found.ahead.warnings) == [
        "a job runs past its walltime: it is expected to end within a minute",
        "a job runs that the machine has no cores for: it is left out",
    ]
    assert [why for _, why in found.ahead.left_out] == ["on hold", "asks for 20 cores, and may have 16 at most"]
    assert starts(found) == {"a": 1060}


def test_another_machine_is_refused():
    with pytest.raises(InputError, match="have 32 cores, the machine of the configuration 16"):
        predict(Snapshot(1000, (job("a", 8, 10),), 32), SITE)


def test_run_times_are_those_of_jobs_alike_that_ran_as_long():
    n = 40
    who = np.array(["ann"] * 20 + ["bob"] * 20)
    ran = np.array([100] * 10 + [300] * 10 + [900] * 20)
    model = RunTimes.of(Ended(who, np.full(n, ""), np.full(n, 4), np.full(n, 1000), ran))
    assert model.like("ann", "", 4, 1000).tolist() == [0.1] * 10 + [0.3] * 10
    assert set(model.like("ann", "", 4, 1000, elapsed=200)) == {0.3}
    assert set(model.like("bob", "", 4, 1000)) == {0.9}
    assert (model.like("new", "", 64, 7, elapsed=3) > 3 / 7).all()


def test_quantiles_are_linear_between_what_is_known():
    of = quantiles(np.array([0.0, 1.0]))[None]
    assert sample(of, np.array([0.25])).tolist() == [0.25]


def test_the_command(tmp_path):
    (tmp_path / "jobs.csv").write_text("job_id,cores,walltime,submit,start\nr,12,300,900,950\na,8,100,960,\n")
    (tmp_path / "state.yaml").write_text("{now: 1000, cores: 16}")
    log = tmp_path / "log.csv"
    rows = [f"{i},{40 * i},20,100,2,all,ann" for i in range(30)]
    log.write_text("\n".join(["job_id,submit,runtime,walltime,cores,queue,user", *rows]) + "\n")
    snapshot = tmp_path / "now"
    snapshot.mkdir()
    for name in ("jobs.csv", "state.yaml"):
        (tmp_path / name).rename(snapshot / name)
    run = CliRunner().invoke(qconf, ["predict", "--snapshot", str(snapshot), "--what-if", "cores=4,walltime=1m"])
    assert run.exit_code == 0, run.output
    assert "what-if 1" in run.output
    words = ["predict", "--snapshot", str(snapshot), "--json", "--history", str(log), "--runs", "20"]
    first, second = (CliRunner().invoke(qconf, words).stdout for _ in range(2))
    assert first == second
    found = json.loads(first[first.index("{") :])["jobs"][0]
    assert found["planned"] == 1250
    low, high = found["intervals"]["95"]
    assert 1000 <= low <= found["expected"] <= high <= 1250
    wrong = CliRunner().invoke(qconf, ["predict", "--snapshot", str(snapshot), "--what-if", "cores=x"])
    assert wrong.exit_code == 2
