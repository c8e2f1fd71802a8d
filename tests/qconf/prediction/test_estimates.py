"""How long jobs are expected to run: by what had ended when they came, for the order alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from parsim import simulate
from qconf.cli import qconf
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.evaluation.order import order_warnings
from qconf.history import clean, read
from qconf.prediction.runtimes import ALL, Means, predictions, with_estimates

LXF = "(eligible_time + estimate) / estimate"
SITE = SiteConfig(machine=MachineConfig(cores=16), queues=(QueueConfig(name="work"),), order=LXF)


@pytest.fixture
def log(tmp_path):
    """Write a log of 120 jobs of three users; the jobs of one run for a tenth of their walltimes."""
    rng = np.random.default_rng(4)
    submit = np.sort(rng.integers(0, 20000, 120))
    user = rng.choice(["ann", "bob", ""], 120)
    runtime = rng.integers(50, 400, 120)
    walltime = np.where(user == "ann", 10 * runtime, runtime + rng.integers(0, 50, 120))
    start = submit + rng.integers(0, 900, 120)
    table = {"job_id": np.arange(120), "submit": submit, "start": start, "end": start + runtime}
    table |= {"runtime": runtime, "walltime": walltime, "cores": rng.integers(1, 17, 120), "user": user}
    pd.DataFrame(table).assign(queue="work").to_csv(tmp_path / "log.csv", index=False)
    return tmp_path / "log.csv"


def test_each_is_of_the_jobs_that_had_ended(log):
    history = clean(read([log]), SITE)
    jobs = list(history.jobs.sort_values("end", kind="stable").itertuples())
    model = Means()
    found = predictions(history, model)
    for job, estimate in zip(history.jobs.itertuples(), found, strict=True):
        slow = Means()
        for each in jobs:
            if each.end <= job.submit:
                slow.add(each.user, "", each.cores, each.walltime, each.runtime / each.walltime)
        assert estimate == slow.estimate(job.user, "", job.cores, job.walltime) <= job.walltime
    assert model.known[ALL, ":"][0] > slow.known[ALL, ":"][0]
    assert model.estimate("ann", "", 4, 1000) < 300
    assert model.estimate("bob", "", 4, 1000) > 700


def test_one_job_of_a_user_moves_little():
    model = Means()
    assert model.estimate("ann", "", 1, 100) == 0
    for _ in range(50):
        model.add("bob", "", 1, 100, 0.5)
    assert model.estimate("ann", "", 1, 100) == 50
    model.add("ann", "", 1, 100, 1.0)
    assert 50 < model.estimate("ann", "", 1, 100) < 90


def test_the_order_reads_them_where_it_names_them(log, tmp_path):
    history = clean(read([log]), SITE)
    without = SITE.replace(order="(eligible_time + walltime) / walltime")
    assert with_estimates(history, without) is history
    workload = with_estimates(history, without, SITE).between(5000, None).workload(SITE)
    assert workload.estimate.all()
    said = order_warnings(SITE, workload)[0]
    true = np.minimum(workload.runtime, workload.walltime)
    assert f"estimate is {np.median(workload.expected_runtime / true):.1f} times the run time, the" in said
    assert f"{(workload.expected_runtime < true).mean():.0%} of the jobs run longer" in said
    waits = [simulate(workload, each.system()).wait.mean() for each in (SITE, without)]
    assert f"mean wait and bounded slowdown are {waits[0] / waits[1]:.2f} and 0." in said
    for config, name in ((SITE, "estimate"), (without, "walltime")):
        (tmp_path / name).write_text(f"machine: {{cores: 16}}\nqueues: [{{name: work}}]\norder: '{config.order}'\n")
    done = {
        name: CliRunner().invoke(qconf, ["simulate", str(log), "--config", str(tmp_path / name), "--json"])
        for name in ("estimate", "walltime")
    }
    assert [each.exit_code for each in done.values()] == [0, 0]
    assert done["estimate"].stdout != done["walltime"].stdout


def test_a_log_without_ends_or_users_says_so(log, tmp_path):
    jobs = pd.read_csv(log)
    for left_out, said in ((["start", "end"], "tells of no job that ended"), (["user"], "as the history has no users")):
        jobs.drop(columns=left_out).to_csv(tmp_path / "less.csv", index=False)
        history = with_estimates(clean(read([tmp_path / "less.csv"]), SITE), SITE)
        workload = history.workload(SITE)
        assert (workload.expected_runtime <= workload.walltime).all()
        assert said in order_warnings(SITE, workload)[0]
