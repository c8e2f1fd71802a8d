import gzip
import json
import re

import pandas as pd
import pytest
from click.testing import CliRunner

import parsim
from parsim.explain import Reason
from parsim.verify import Violation
from qconf.cli import main, qconf
from qconf.cli import simulate as command
from qconf.config import parse
from qconf.errors import QconfError
from qconf.evaluation.period import Period
from qconf.strategies import Proposal
from tests.qconf.report.example import SAMPLE, SITE

HEADER = "job_id,submit,start,end,wait,cores,queue,placement"
LOG = """job_id,submit,runtime,walltime,cores,queue
c,1000,50,60,4,a
a,900,100,200,6,a
bad,950,-1,60,1,a
b,950,30,40,3,b
"""
MACHINE = "machine: {cores: 8}\n"
SHARED = MACHINE + "queues:\n  - {name: a, priority: 2}\n  - {name: b}\n"
SPANNING = """mode: hybrid
queues: [{name: a, partition: 6}]
pool: {cores: 2, threshold: 0, placement: combined}
"""


@pytest.fixture
def run(tmp_path, capsys):
    (tmp_path / "log.csv").write_text(LOG)

    def go(site=SHARED, *options, code=0):
        (tmp_path / "site.yaml").write_text(site)
        arguments = ["simulate", "--history", tmp_path / "log.csv", "--config", tmp_path / "site.yaml", *options]
        with pytest.raises(SystemExit) as end:
            main([str(each) for each in arguments])
        out = capsys.readouterr()
        assert end.value.code == code, out.err
        return out

    return go


def test_schedule_csv_is_in_the_order_and_time_of_the_input(run, tmp_path):
    out = run(SHARED, "--out", tmp_path / "out" / "schedule.csv", "--verify")
    assert (tmp_path / "out" / "schedule.csv").read_text().splitlines() == [
        HEADER,
        "c,1000,1000,1050,0,4,a,machine:4",
        "a,900,900,1000,0,6,a,machine:6",
        "b,950,1000,1030,50,3,b,machine:3",
    ]
    assert (tmp_path / "out" / "dropped.csv").read_text().splitlines()[1].startswith("bad,")
    assert "verified: the schedule breaks no rule" in out.out
    assert "current: 3 jobs from 1970-01-01T00:15:00+00:00" in out.out
    assert out.out.isascii()


def test_the_list_of_dropped_records_is_empty_where_none_was(run, tmp_path):
    run(SHARED, "--out", tmp_path / "out" / "s.csv.gz")
    assert "bad" in (tmp_path / "out" / "dropped.csv").read_text()
    (tmp_path / "log.csv").write_text(LOG.replace("bad,950,-1", "good,950,1"))
    run(SHARED, "--out", tmp_path / "out" / "s.csv.gz")
    assert (tmp_path / "out" / "dropped.csv").read_text() == "job_id,file,line,reason,detail\n"
    assert gzip.decompress((tmp_path / "out" / "s.csv.gz").read_bytes()).decode().startswith(HEADER + "\nc,1000,")


def test_a_job_on_several_parts_names_them_all(run, tmp_path):
    (tmp_path / "log.csv").write_text(LOG.replace("6,a", "4,a").replace("40,3,b", "40,4,a"))
    run(MACHINE + SPANNING, "--out", tmp_path / "s.csv", "--verify")
    placed = pd.read_csv(tmp_path / "s.csv").set_index("job_id")["placement"].to_dict()
    assert placed == {"c": "a:4", "a": "a:4", "b": "a:2;pool:2"}


@pytest.mark.parametrize("name", ["fcfs-easy", "lxf-easy", "shared", "pp"])
def test_strategies(run, tmp_path, name):
    (tmp_path / "log.csv").write_text(LOG.replace("6,a", "5,a"))
    result = json.loads(run(SHARED, "--strategy", name, "--json", "--verify").out)
    assert result["strategy"] == name
    assert result["jobs"] == 3
    assert result["dropped"] == {"no run time": 1}
    assert result["violations"] == []
    assert list(result["queues"]) == ["a", "b"]
    assert result["config"]["mode"] == ("partitioned" if name == "pp" else "shared")


def test_a_queue_named_all_is_shown_apart_from_the_total(run):
    lines = run(MACHINE + "queues: [{name: all}]\n").out.splitlines()
    assert [line.split("  ")[0] for line in lines[-2:]] == ["all", "all (queue)"]


def test_json_is_one_document_without_nan(run):
    text = run(SHARED.replace("{name: b}", "{name: b}\n  - {name: empty, cores: [8, 8]}"), "--json").out
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert result["queues"]["empty"]["mean_wait"] is None
    assert result["overall"]["mean_wait"] == pytest.approx(50 / 3)


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_a_schedule_that_breaks_a_rule_is_exit_1_and_not_written(run, tmp_path, monkeypatch, as_json):
    monkeypatch.setattr(Proposal, "verify", lambda *_: [Violation("head", 0, 950, "delayed")] * 30)
    out = run(SHARED, "--verify", "--out", tmp_path / "s.csv", *as_json, code=1)
    assert "[head] job 0 at 950: delayed (job_id a)" in out.err
    assert "... and 10 more" in out.err
    assert "30 violations. Nothing was written." in out.err
    assert not (tmp_path / "s.csv").exists()
    if as_json:
        assert len(json.loads(out.out)["violations"]) == 30


def test_explain_prints_why_a_job_started_when_it_did(run, tmp_path):
    out = run(SHARED, "--explain", "b").out
    assert out.startswith(
        "job b, submitted 1970-01-01T00:15:50+00:00, waits 50s\n"
        "  1970-01-01T00:15:50+00:00 to 1970-01-01T00:16:40+00:00: heads the list of\n"
        "    machine, waits for 3 cores\n"
        "  1970-01-01T00:16:40+00:00: starts on machine, in turn\n\n"
    )
    result = json.loads(run(SHARED, "--explain", "b", "--json").out)
    assert result["explained"][0][-1] == {"begin": 1000, "end": 1000, "text": "starts on machine, in turn"}
    assert json.loads(run(SHARED, "--json").out)["explained"] is None
    (tmp_path / "log.csv").write_text(LOG.replace("c,1000", "b,1000"))
    assert run(SHARED, "--explain", "b").out.count("job b, submitted") == 2


def test_instants_of_explanations_are_dates(run, monkeypatch):
    monkeypatch.setattr(Proposal, "explain", lambda *_: (Reason(950, 960, "nodes are out of service from 1000 on"),))
    assert "nodes are out of\n    service from 1970-01-01T00:16:40+00:00 on\n" in run(SHARED, "--explain", "b").out


def test_jobs_are_explained_by_their_names_under_every_strategy(run, tmp_path):
    (tmp_path / "log.csv").write_text(
        "job_id,submit,runtime,walltime,cores,queue\nx,0,9,9,5,a\ny,1,9,9,8,a\nz,2,5,5,1,a\n"
    )
    for name in ("current", "mqb"):
        text = run(SHARED, "--explain", "z", "--strategy", name).out
        assert "backfilled before job y, which it does not delay" in text


@pytest.mark.parametrize(
    ("site", "options", "message"),
    [
        (SHARED, ("--explain", "x"), "--explain = 'x': no simulated job has this name"),
        (SHARED, ("--explain", "bad"), "--explain = 'bad': was dropped: no run time"),
        (SHARED, ("--explain", "b", "--strategy", "dynp"), "under a planning discipline cannot be explained"),
        (SHARED, ("--strategy", "best"), "no such strategy"),
        (SHARED, ("--out", "dropped.csv"), "is the name of the list of dropped records"),
        (SHARED, ("--strategy", "pp"), "no partitions can hold them"),
    ],
)
def test_mistakes_are_one_message(run, site, options, message):
    out = run(site, *options, code=1)
    assert message in out.err
    assert "Traceback" not in out.err
    assert out.out == ""


def test_jobs_that_a_strategys_queues_can_never_run_are_a_message():
    workload = parsim.Workload(submit=[0], cores=[8], runtime=[1], walltime=[1])
    config = parse(MACHINE + "queues: [{name: a, max_run_cores: 4}]\n")
    with pytest.raises(QconfError, match=r"the configuration cannot run these jobs: cores\[0\]: 8 is above"):
        command._simulate(Period(workload, config), Proposal(config))


def test_the_history_is_not_overwritten(run, tmp_path):
    out = run(SHARED, "--out", tmp_path / "log.csv", code=1)
    assert "log.csv: is an input, and would be overwritten" in out.err
    assert (tmp_path / "log.csv").read_text() == LOG


def test_neither_the_configuration_nor_a_foreign_dropped_csv_is_overwritten(run, tmp_path):
    out = run(SHARED, "--out", tmp_path / "site.yaml", code=1)
    assert "site.yaml: is an input, and would be overwritten" in out.err
    assert (tmp_path / "site.yaml").read_text() == SHARED
    (tmp_path / "dropped.csv").write_text("mine")
    out = run(SHARED, "--out", tmp_path / "schedule.csv", code=1)
    assert "dropped.csv: is there already and no list of dropped records" in out.err
    (tmp_path / "dropped.csv").unlink()
    for _ in range(2):
        run(SHARED, "--out", tmp_path / "schedule.csv")


def test_dropped_jobs_are_reported_with_their_reason(run):
    assert "left out: 1 no run time" in run(SHARED).out
    never = MACHINE + "queues:\n  - {name: a}\n  - {name: b}\n"
    assert "warning:" in run(never).err


def test_the_sample(tmp_path):
    out, jobs = tmp_path / "schedule.csv", tmp_path / "quarter.csv"
    pd.read_csv(SAMPLE).iloc[::4].to_csv(jobs, index=False)
    arguments = ["simulate", "--history", str(jobs), "--config", str(SITE), "--out", str(out), "--verify"]
    done = CliRunner().invoke(qconf, arguments)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(out, dtype={"job_id": str})
    raw = pd.read_csv(jobs, dtype={"job_id": str})
    assert table["job_id"].tolist() == raw["job_id"].tolist()
    assert (table["wait"] == table["start"] - table["submit"]).all()
    assert (table["submit"] == raw["submit"]).all()
    assert all(line == line.rstrip() or line.startswith("queue") for line in done.output.splitlines())


def test_short_jobs_of_a_shortpool_stand_beside_the_others(run):
    site = SHARED + "shortpools: [{cores: 4, walltime: 60, begin: 08:00, end: 09:00}]\n"
    assert re.search(r"jobs up to 1m\s+2 .*\n.*jobs above 1m\s+1 ", run(site).out)
    found = json.loads(run(site, "--json").out)["shortpools"]
    assert {name: each["jobs"] for name, each in found.items()} == {"up to 1m": 2, "above 1m": 1}


def test_values_of_the_configuration_and_the_load_are_changed_for_one_simulation(run, tmp_path):
    def simulated(*options):
        return json.loads(run(SHARED, "--json", *options).out)

    plain = simulated()
    assert (plain["overall"]["mean_wait"], plain["set"], plain["load"]) == (pytest.approx(50 / 3), {}, 1.0)
    wider = simulated("--set", "machine.cores=16", "--set", "queues.b.max_run=1")
    assert wider["overall"]["mean_wait"] == 0
    assert wider["set"] == {"machine.cores": "16", "queues.b.max_run": "1"}
    assert (wider["config"]["machine"]["cores"], wider["config"]["queues"][1]["max_run"]) == (16, 1)
    denser = simulated("--load", "2")  # 900, 925, 950 in place of 900, 950, 1000
    assert denser["overall"]["mean_wait"] == pytest.approx((75 + 50) / 3)
    assert "at 2 times their load" in " ".join(run(SHARED, "--load", "2").out.split())
    assert (tmp_path / "site.yaml").read_text() == SHARED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("queues.bb.max_run=1", "nothing has the name bb, did you mean b?"),
        ("queues.b.max_run=none at all", "queues[1].max_run = none at all: not allowed here: a whole number from 1 up"),
        ("queues.b.max_rum=1", "no such key, did you mean max_run?"),
        ("order.terms=1", "order has no keys"),
        ("order=[fcfs", "not YAML"),
        ("mode=hybrid", "pool: missing: mode hybrid needs one"),
    ],
)
def test_a_change_that_cannot_be_is_named(run, change, why):
    found = run(SHARED, "--set", change, code=1)
    assert why in " ".join(found.err.split())
    assert "line " not in found.err, "what is changed stands in no file"
    assert not found.out
