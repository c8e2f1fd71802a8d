"""What the page shows is what simulate, tune and export say."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from qconf.cli import explore, qconf
from qconf.cli.source import Source
from qconf.config import dump, parse, with_changes
from qconf.errors import InputError, QconfError
from qconf.evaluation.impact import GROWTH
from qconf.explore.results import MEASURED, Results, Wanted
from qconf.explore.states import ALL, TEST
from qconf.export import exporter
from qconf.strategies import Proposal
from tests.qconf.explore.served import ROOT, SITE, write_log
from tests.qconf.small import compared

EXAMPLE = ROOT / "reports" / "example"
SET = {"queues.medium.max_run": "6", "order": "sjf"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("explore")
    write_log(found)
    (found / "site.yaml").write_text(SITE)
    return found


@pytest.fixture(scope="module")
def results(folder):
    source = Source(history=(folder / "log.csv",), config_path=folder / "site.yaml")
    return Results(explore._site(source, folder / "run", exporter("pbs")()))


def messages(results, config, **about):
    return list(results.stream(Wanted(config, results.site.base, **about)))


def simulated(folder, *options):
    arguments = ["simulate", str(folder / "log.csv"), "--config", str(folder / "site.yaml"), "--json", *options]
    found = CliRunner().invoke(qconf, arguments)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.mark.parametrize("load", [100, 80, 130])
def test_numbers_are_those_of_simulate(results, folder, load):
    changes = [word for path, value in SET.items() for word in ("--set", f"{path}={value}")]
    numbers = messages(results, with_changes(results.site.base, SET), load=load)[0]
    for when, options in (("before", []), ("after", changes)):
        wanted = simulated(folder, *options, "--load", str(load / 100))
        assert numbers["overall"][when] == {key: wanted["overall"][key] for key in numbers["overall"][when]}
        for group in numbers["groups"]:
            if group["kind"] == "queue":
                queue = wanted["queues"][group["name"]]
                assert group[when] == {key: queue[key] for key in group[when]}


def test_on_the_test_period_all_is_as_tune_has_it():
    source = Source(history=(EXAMPLE,))
    results = Results(explore._site(source, None, exporter("pbs")()))
    record = json.loads((EXAMPLE / "run.json").read_text())
    rows = {row["name"]: row for row in record["strategies"]}
    numbers = next(results.stream(Wanted(results.site.base, results.site.base, TEST)))
    before = numbers["overall"]["before"]
    assert before == {key: rows["current"]["test"]["overall"][key] for key in before}
    bootstrap = results.evaluator(TEST, 100).bootstrap
    found = compared(bootstrap, [Proposal(results.site.base)] * len(bootstrap.tests))
    wanted = rows["auto"]["bootstrap"]
    assert {"p95": found.before.p95, "longest": found.before.longest} == {
        key: wanted["before"][key] for key in ("p95", "longest")
    }
    assert found.resamples == wanted["resamples"]
    assert results.site.title == "the order alone"
    assert results.site.recommended == parse((EXAMPLE / "config.yaml").read_text())


def test_ranges_come_after_20_resamples_and_after_all_and_say_what_is_beyond_chance(results):
    config = with_changes(results.site.base, SET)
    first, last = [each for each in messages(results, config) if each["kind"] == "ranges"]
    assert (first["resamples"], last["resamples"], last["of"]) == (20, 100, 100)
    bootstrap = results._evaluator(ALL, 100).bootstrap
    wanted = compared(bootstrap, [Proposal(config)])
    assert last["gain"] == {name: getattr(wanted, name) for name in ("expected", "low", "high", "sure", "certain")}
    queues = ("short", "medium", "wide")
    assert {*last["changes"]} == {*MEASURED, *GROWTH, *(f"{key} of {name}" for key in GROWTH for name in queues)}
    for name in queues:
        column = len(MEASURED) + bootstrap.names.index(name)
        change = wanted.numbers[:, column] - bootstrap.before[:, column]
        found = last["changes"][f"p95_wait of {name}"]
        assert [found["low"], found["middle"], found["high"]] == np.nanpercentile(change, [5, 50, 95]).tolist()
    for change in last["changes"].values():
        assert change["low"] <= change["middle"] <= change["high"]
        assert change["beyond"] == (change["low"] > 0 or change["high"] < 0)
    again = Results(results.site)
    for each in messages(results, config):
        if each["kind"] == "known":
            again.keep(each["key"], each["value"])
    assert [each for each in messages(again, config) if each["kind"] == "ranges"] == [first, last], (
        "what is kept is used"
    )


def test_two_states_beside_each_other(results):
    a, b = (with_changes(results.site.base, {"queues.medium.max_run": limit}) for limit in ("4", "8"))
    found = next(results.stream(Wanted(a, b)))["overall"]
    alone = [messages(results, each)[0]["overall"]["after"] for each in (b, a)]
    assert [found["before"], found["after"]] == alone


def test_more_machine_has_its_own_utilization(results):
    found = messages(results, with_changes(results.site.base, {"machine.cores": "128"}))[0]
    assert found["overall"]["after"]["utilization_window"] < 0.75 * found["overall"]["before"]["utilization_window"]
    assert max(found["time"]["used"][1]) <= 1


def test_a_stretch_of_days(results):
    found = messages(results, results.site.base, stretch="2016-02-03/2016-02-06")[0]
    jobs = results.site.history.jobs
    days = jobs["submit"] + results.site.history.epoch
    assert found["jobs"] == int(((days >= 1454457600) & (days < 1454716800)).sum())
    for wrong in ("2016-02-03", "2016-02-06/2016-02-03", "x/y", "2030-01-01/2030-01-02"):
        with pytest.raises(InputError, match="stretch"):
            messages(results, results.site.base, stretch=wrong)


def test_a_job_that_can_never_start(results):
    config = with_changes(results.site.base, {"queues.wide.cores": "[17, 32]"})
    with pytest.raises(QconfError, match="fit no queue"):
        messages(results, config)
    config = with_changes(results.site.base, {"queues.wide.max_run_cores": "20"})
    with pytest.raises(QconfError):
        messages(results, config)


def test_why_a_job_waited_is_what_simulate_says(results, folder):
    config = with_changes(results.site.base, SET)
    moved = messages(results, config)[0]["moved"]
    assert moved[0]["after"] > moved[0]["before"]
    job = moved[0]["job"]
    (found,) = results.explain(Wanted(config, results.site.base), job)
    assert (found["before"]["wait"], found["after"]["wait"]) == (moved[0]["before"], moved[0]["after"])
    (wanted,) = simulated(folder, "--explain", job)["explained"]
    assert len(found["before"]["reasons"]) == len(wanted)
    assert [text.split()[0] for _, text in found["before"]["reasons"]] == [each["text"].split()[0] for each in wanted]
    with pytest.raises(InputError, match="no simulated job"):
        next(results.explain(Wanted(config, results.site.base), "nothing"))


def test_an_export_is_that_of_export(results, tmp_path):
    config = with_changes(results.site.base, SET)
    found = results.export(config, tmp_path / "out" / "pbs")
    (tmp_path / "site.yaml").write_text(dump(config))
    done = CliRunner().invoke(qconf, ["export", str(tmp_path / "site.yaml"), "-o", str(tmp_path / "wanted")])
    assert done.exit_code == 0, done.output
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "wanted").iterdir() if path.name != "export.json"}
    written = {name: (tmp_path / "out" / "pbs" / name).read_bytes() for name in found["files"] if name != "config.yaml"}
    assert written == wanted
    assert found["plan"].encode() == wanted["PLAN.md"]


def test_jobs_for_gpus_have_a_group_of_their_own(folder, tmp_path):
    lines = (folder / "log.csv").read_text().splitlines()
    rows = [f"{line},{int(i % 4 == 0)}" for i, line in enumerate(lines[1:])]
    (tmp_path / "log.csv").write_text("\n".join([f"{lines[0]},gpus", *rows]))
    nodes = "nodes: [{name: cpu, count: 3, cores: 16}, {name: gpu, count: 1, cores: 16, gpus: 4}]"
    (tmp_path / "site.yaml").write_text(SITE.replace("cores: 64}", f"cores: 64}}\n{nodes}"))
    source = Source(history=(tmp_path / "log.csv",), config_path=tmp_path / "site.yaml")
    found = Results(explore._site(source, tmp_path, exporter("pbs")()))
    numbers = messages(found, with_changes(found.site.base, {"order": "sjf"}))[0]
    assert {"nodes", "size"} & {group["kind"] for group in numbers["groups"]}
    assert "gpus of nodes gpu" in numbers["time"]["nodes"]
