"""Predictions of a snapshot."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from qconf.cli import qconf
from qconf.cli.predict import Query
from qconf.config import MachineConfig, QueueConfig, SiteConfig
from qconf.errors import InputError
from qconf.history import clean, read
from qconf.prediction.loading import loading
from qconf.prediction.replays import Calibration
from qconf.prediction.results import predict
from qconf.prediction.runtimes import STEPS, RunTimes, correlated_uniforms, final_fractions, sample
from qconf.report.figures.ahead import ahead_figures
from qconf.report.prediction import render_prediction, tables
from qconf.snapshot import Closure, Job, Snapshot

SITE = SiteConfig(machine=MachineConfig(cores=16), queues=(QueueConfig(name="work"),))


def job(name, cores, walltime, start=None, **more):
    return Job(name, "ann", "", "work", cores, walltime, 900, start, **more)


def starts(found):
    return {each.job.job_id: each.planned for each in found.starts}


def test_the_plan_by_walltimes():
    jobs = (job("r", 12, 300, 950), job("a", 8, 100), job("b", 4, 200), job("c", 4, 400))
    found = predict(Snapshot(1000, jobs), SITE)
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


@pytest.mark.parametrize("order", ["fcfs", "eligible_time"])
@pytest.mark.parametrize(("cores", "closures"), [(12, ()), (16, (Closure("node", 1000, None, 4),))])
def test_tiers_go_before_others_while_nodes_are_down(order, cores, closures):
    queues = (QueueConfig(name="express", tier=1), QueueConfig(name="work", priority=5, preempted="requeue"))
    site = SITE.replace(queues=queues, order=order)
    jobs = (job("r", 8, 300, 950), job("a", 8, 100), replace(job("b", 8, 100), queue="express"))
    assert starts(predict(Snapshot(1000, jobs, 16), site))["b"] == 1000
    found = predict(Snapshot(1000, jobs, cores, closures), site)
    assert "no job preempts another: tiers are not simulated where cores are out of service" in found.ahead.warnings
    assert starts(found) == ({"b": 1250, "a": 1350} if order == "fcfs" else {"a": 1250, "b": 1350})


def test_what_a_new_job_would_get_and_a_job_that_is_none_yet():
    jobs = (job("r", 8, 600, 900), job("a", 12, 100))
    found = predict(Snapshot(1000, jobs), SITE, extra=[job("what-if 1", 4, 400)])
    assert starts(found)["what-if 1"] == 1000
    assert [(gap.cores, gap.seconds) for gap in predict(Snapshot(1000, jobs), SITE).gaps] == [(8, 500), (4, None)]


def test_the_qos_of_a_job_holds_it_or_frees_it():
    site = SITE.replace(
        queues=(QueueConfig(name="work", max_run=1, max_user_cores=4),),
        qos=[{"name": "gold", "exempt": ("max_run", "max_user_cores"), "accounts": ("chem",)}, {"name": "free"}],
        throttles=[{"qos": "gold", "max_run": 2}, {"each": "user", "qos": "free", "max_run_cores": 2}],
    )
    jobs = (job("r", 1, 300, 950, qos="free"), job("a", 8, 100, account="chem"), job("b", 2, 100, qos="gold"))
    waits = (job("c", 1, 100, qos="gold"), job("d", 8, 10), job("e", 2, 100, qos="free"))
    found = predict(Snapshot(1000, (*jobs, *waits)), site)
    assert starts(found) == {"a": 1000, "b": 1000, "c": 1100, "e": 1250}
    assert [why for _, why in found.ahead.left_out] == ["asks for 8 cores, and may have 4 at most"]
    why = {each.job.job_id: each.why for each in found.starts}
    assert why["e"] == "limit: 1 running jobs of work"
    running = [replace(each, start=950) for each in (jobs[1], jobs[2])]
    held = predict(Snapshot(1000, (*running, waits[0])), site)
    assert [each.why for each in held.starts] == ["limit: max_run 2 of qos gold"]


@pytest.mark.parametrize(
    "limits",
    [{"queues": (QueueConfig(name="work", max_run_cores=8),)}, {"throttles": ({"each": "user", "max_run_cores": 8},)}],
)
def test_a_job_that_runs_beyond_a_limit_is_named(limits):
    jobs = Snapshot(1000, (job("r", 12, 300, 950), job("a", 8, 100)))
    with pytest.raises(InputError, match="job r runs on 12 cores, which a limit of the configuration never lets it"):
        predict(jobs, SITE.replace(**limits))


def test_what_a_snapshot_has_not_of_a_policy_is_a_warning():
    jobs = Snapshot(1000, (job("a", 8, 100),))
    found = predict(jobs, SITE.replace(qos=({"name": "urgent", "groups": ("physics",)},), order="qos_priority"))
    assert found.ahead.warnings == ("no job is of a QOS by its group: a snapshot does not tell the groups of jobs",)
    found = predict(jobs, SITE.replace(order="fairshare"))
    assert found.ahead.warnings == (
        "all have used nothing of their shares so far: a snapshot does not tell the use of before",
    )
    assert not predict(jobs, SITE).ahead.warnings


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


def test_a_divided_machine_may_have_nodes_that_are_down():
    queues = (QueueConfig(name="work", partition=8), QueueConfig(name="other", partition=8))
    jobs = (job("a", 6, 100), job("b", 3, 100), replace(job("c", 6, 100), queue="other"))
    found = predict(Snapshot(1000, jobs, 12), SITE.replace(mode="partitioned", queues=queues))
    assert "the others are down, and each partition lacks its share" in found.ahead.warnings[0]
    assert starts(found) == {"a": 1000, "b": 1100, "c": 1000}


def test_run_times_are_those_of_jobs_alike_that_ran_as_long():
    model = RunTimes()
    for user, share in [("ann", 0.1)] * 10 + [("ann", 0.3)] * 10 + [("bob", 0.9)] * 20:
        model.add(user, "", 4, 1000, share)
    of_ann, of_bob = model.quantiles("ann", "", 4, 1000), model.quantiles("bob", "", 4, 1000)
    assert (of_ann <= 0.3).mean() > 0.9
    assert (of_bob == 0.9).mean() > 0.9
    assert (np.diff(of_ann) >= 0).all()
    assert np.median(of_ann) == 0.3  # the later ones count more
    longer = model.quantiles("ann", "", 4, 1000, elapsed=200)
    assert longer[0] == 0.3
    assert (model.quantiles("new", "", 64, 7, elapsed=3) > 3 / 7).all()


def test_a_user_without_a_past_is_like_all_others():
    model = RunTimes()
    for _ in range(30):
        model.add("ann", "", 4, 1000, 0.5)
    assert (model.quantiles("new", "", 4, 1000) == 0.5).all()
    assert RunTimes().quantiles("new", "", 4, 1000)[[0, -1]].tolist() == [0, 1]


def test_jobs_that_run_have_run_so_long_at_least():
    shares, closed = np.array([0.1, 0.5, 0.5]), np.array([True, False, False])
    found = final_fractions(shares, np.ones(3), closed)
    assert (found == 0.1).mean() == pytest.approx(1 / 3, abs=0.05)
    assert ((found > 0.5) & (found <= 1)).mean() == pytest.approx(2 / 3, abs=0.05)


def test_shares_are_linear_between_quantiles():
    of = np.linspace(0, 1, STEPS + 1)[None]
    assert sample(of, np.array([0.25])) == pytest.approx(0.25)
    assert sample(of, np.array([1.0])) == pytest.approx(1.0)


def test_jobs_of_one_user_run_alike():
    users = np.array([0, 0, 1] + [-1] * 2)
    drawn = np.array([correlated_uniforms(np.random.default_rng(i), users) for i in range(2000)])
    found = np.corrcoef(drawn.T)
    assert 0.2 < found[0, 1] < 0.4
    assert abs(found[0, 2]) < 0.1
    assert drawn.mean() == pytest.approx(0.5, abs=0.02)


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
    missing = CliRunner().invoke(qconf, ["predict", "--snapshot", "nowhere"])
    assert isinstance(missing.exception, InputError)
    assert str(missing.exception) == "nowhere: cannot be read: No such file or directory. Give a folder."


@pytest.mark.parametrize(("zone", "submit"), [(None, 5), ("UTC", 3605)])  # an option that is given counts first
def test_the_history_is_read_as_the_configuration_says(tmp_path, zone, submit):
    (tmp_path / "jobs.csv").write_text("job_id,cores,walltime,submit,start\na,1,60,0,\n")
    (tmp_path / "state.yaml").write_text("{now: 100, cores: 4}")
    (tmp_path / "log.tsv").write_text("nr,when,ran,most,width,where\n1,1970-01-01 01:00:05,20,1,2,all\n")
    names = "{job_id: nr, submit: when, runtime: ran, walltime: most, cores: width, queue: where}"
    how = f"history: {{columns: {names}, units: {{walltime: min}}, timezone: Europe/Berlin}}\n"
    (tmp_path / "site.yaml").write_text("machine: {cores: 4}\nqueues: [{name: all}]\n" + how)
    query = Query(tmp_path, tmp_path / "site.yaml", (tmp_path / "log.tsv",), (), None, 7, 1, 0, 0, zone, 1, None, True)
    query.show()
    assert query.past is not None
    assert query.past.jobs[["submit", "walltime"]].values.tolist() == [[submit, 60]]


def test_queues_that_the_configuration_lacks_and_clocks_apart():
    jobs = (Job("x", "ann", "", "gone", 4, 100, 900), job("r", 4, 50, 1010), job("a", 8, 100))
    found = predict(Snapshot(1000, jobs), SITE)
    assert list(found.ahead.warnings) == [
        "a job started after the snapshot: clocks are apart",
        "the configuration has no queue gone: its jobs are taken by their size",
    ]
    assert starts(found) == {"x": 1000, "a": 1000}


def test_limits_of_a_queue_are_a_reason():
    for limit, most, what in (
        ("max_run", 1, "jobs of"),
        ("max_run_cores", 7, "cores of"),
        ("max_user_run", 1, "jobs of a user in"),
        ("max_user_cores", 7, "cores of a user in"),
    ):
        site = SITE.replace(queues=(QueueConfig(name="work", **{limit: most}),))
        found = predict(Snapshot(1000, (job("r", 4, 500, 950), job("a", 4, 100))), site)
        assert found.starts[0].why == f"limit: {most} running {what} work"
        assert starts(found) == {"a": 1450}


def history(tmp_path, days=40, every=1800):
    log = tmp_path / "log.csv"
    rows = [f"{i},{every * i},{600 * (1 + i % 7)},7200,{1 + i % 8},work,u{i % 3}" for i in range(days * 86400 // every)]
    log.write_text("\n".join(["job_id,submit,runtime,walltime,cores,queue,user", *rows]) + "\n")
    return clean(read([log]), SITE)


def test_what_becomes_of_a_recommendation(tmp_path):
    past, now = history(tmp_path), 35 * 86400
    backlog = tuple(Job(f"b{i}", "u1", "", "work", 16, 7200, now - 99) for i in range(40))
    other = SITE.replace(order="-ncpus")  # narrow jobs first, as all that come are
    found = loading(Snapshot(now, backlog), SITE, other, past, "mean-wait", runs=4, days=2)
    assert [day.begin for day in found.days] == [now, now + 86400]
    assert 40 < found.days[0].submitted < 60
    assert found.empty.low <= found.empty.mean <= found.empty.high
    assert found.later.mean > 0.3  # jobs that come do not wait behind the backlog
    same = loading(Snapshot(now, backlog), SITE, SITE, past, "mean-wait", runs=2, days=2)
    assert same.gain.mean == same.later.mean == same.empty.mean == 0
    assert json.dumps(found.document())


@pytest.mark.parametrize(
    ("day", "says"),
    [
        (41, ()),
        (47, ("7 days before the snapshot: run times are of older days; add",)),
        (70, ("30 days before the snapshot: run times are of older days, and no jobs come; add",)),
        (-1, ("no job from before the snapshot",)),
    ],
)
def test_a_history_that_ends_long_before_the_snapshot(tmp_path, day, says):
    past, now = history(tmp_path), day * 86400 + 1
    found = predict(Snapshot(now, (job("a", 8, 100),)), SITE, history=past, runs=5, instants=0)
    assert len(found.ahead.warnings) == len(says)
    assert all(text in warning for text, warning in zip(says, found.ahead.warnings, strict=True))
    assert found.document()["warnings"] == list(found.ahead.warnings)


def of_a_backlog(tmp_path, user="ann", **more):
    """Return a prediction of one wide job that runs and four that wait, and when it is."""
    past, now = history(tmp_path), 35 * 86400
    jobs = [Job(f"b{i}", user, "", "work", 16, 7200, now - 99, now - 50 if i == 0 else None) for i in range(5)]
    return predict(Snapshot(now, tuple(jobs)), SITE, history=past, runs=20, **more), now


def test_the_page_shows_every_job_and_its_intervals(tmp_path):
    found, now = of_a_backlog(tmp_path, "<u>", instants=5)
    text = render_prediction(found, "UTC")
    assert all(f"b{i}" in text for i in range(1, 5))
    assert "<u>" not in text
    for figure in ("gantt", "use", "starts"):
        assert f'id="figure-{figure}"' in text
    for each in found.starts:
        low, high = each.intervals[0.8]
        assert now <= low <= each.expected <= high
    drawn = ahead_figures(found, "UTC")["gantt"].spec
    assert len(drawn["data"]["values"]) == len(drawn["datasets"]["jobs"]) == 5


def test_an_interval_of_more_starts_holds_that_of_fewer(tmp_path, monkeypatch):
    calibrations = {0.8: Calibration(9.0, 60), 0.95: Calibration(1.0, 60)}
    monkeypatch.setattr("qconf.prediction.results.replay", lambda *_, **__: (RunTimes(), calibrations))
    for each in of_a_backlog(tmp_path)[0].starts:
        (inner, outer) = each.intervals.values()
        assert outer[0] <= inner[0] < each.expected < inner[1] <= outer[1]


def far_off(tmp_path):
    """Return a prediction with intervals, one of which goes on for months."""
    found, now = of_a_backlog(tmp_path, instants=5)
    first = found.starts[0]
    wide = replace(first, intervals={**first.intervals, 0.95: (now, now + 10**7)})
    return replace(found, starts=[wide, *found.starts[1:]])


@pytest.mark.parametrize(("width", "lines"), [(80, 2), (153, 2), (154, 1), (200, 1)])
def test_no_instant_is_cut_off_at_any_width(tmp_path, width, lines):
    console = Console(width=width, file=io.StringIO(), color_system=None)
    found = far_off(tmp_path)
    for each in tables(found, "UTC", width):
        console.print(each)
    text = console.file.getvalue()
    assert "…" not in text
    rows = text.splitlines()
    (at,) = [i for i, row in enumerate(rows) if row.startswith("b1")]
    high = f"{datetime.fromtimestamp(found.starts[0].intervals[0.95][1], UTC):%d %b %H:%M}"
    shown = " ".join(rows[at : at + lines])
    assert high in shown
    assert "needs 16 cores, 0 idle" in shown
    assert (found.starts[0].why in rows[at]) == (lines == 1)


def test_an_interval_of_months_does_not_hide_the_others(tmp_path):
    found = far_off(tmp_path)
    figure = ahead_figures(found, "UTC")["starts"]
    assert "cut at the right" in figure.caption
    spans, dots = (layer["data"]["values"] for layer in figure.spec["layer"])
    starts = [dot["at"] for dot in dots if dot["kind"] == "expected"]
    assert len(starts) == 4
    assert max(starts) - min(starts) > 0.05 * (max(span["b"] for span in spans) - min(span["a"] for span in spans))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [("cores=0,walltime=4h", "one core at least"), ("cores=1,walltime=4h,gpus=2", "no gpus"), ("cores=1", "walltime")],
)
def test_a_what_if_that_is_no_job_is_said(tmp_path, wanted, words):
    (tmp_path / "jobs.csv").write_text("job_id,cores,walltime,submit,start\na,1,60,0,\n")
    (tmp_path / "state.yaml").write_text("{now: 100, cores: 4}")
    result = CliRunner().invoke(qconf, ["predict", "--snapshot", str(tmp_path), "--what-if", wanted])
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())
