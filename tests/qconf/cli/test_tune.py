"""`qconf tune` as a person meets it: what it prints, what it writes, what it says to bad input."""

from __future__ import annotations

import gzip
import html
import json
import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from click.testing import Result

from qconf.cli.progress import Estimate
from qconf.errors import InputError, QconfError
from qconf.report.wording import value_text
from tests.qconf.cli import commands
from tests.qconf.report import example

pytestmark = pytest.mark.usefixtures("few_resamples")
ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "data" / "cray-xc40-2016-02.csv.gz"
QUICK = ["--samples", "20"]


CRAY = ROOT / "configs/cray-xc40.yaml"
invoke = partial(commands.invoke, "tune")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every fortieth job of the sample."""
    path = tmp_path_factory.mktemp("history") / "fortieth.csv"
    pd.read_csv(SAMPLE).iloc[::40].to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(small: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("run") / "out"
    arguments = ["--history", small, "--config", CRAY, "--out", out, *QUICK]
    return out, invoke(*arguments, "--workers", 1)


def test_prints_verdict_table_and_place(run: tuple[Path, Result]) -> None:
    out, result = run
    assert result.exit_code == 0
    verdict = json.loads((out / "run.json").read_text())["verdict"]
    assert f"\n{verdict}: " in result.output
    assert len(result.stdout.splitlines()) <= 30
    names = ("current", "fcfs-easy", "lxf-easy", "shared", "static (= pp)", "dp-nlp", "dqr", "hybrid", "mqb", "exact")
    printed = " ".join(result.output.split())
    for name in (*names, "auto"):
        assert re.search(rf" {re.escape(name)}\*? ", printed), name
    assert str(out) in result.output
    assert max(len(line) for line in result.output.splitlines() if str(out) not in line) <= 80


def test_writes_the_run_directory(run: tuple[Path, Result]) -> None:
    out, _ = run
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    files = ("comparison.csv", "config.yaml", "run.json", "timings.json", "pbs/queues.qmgr", "pbs/PLAN.md")
    assert {"report.html", *files} <= written
    assert not any(".unfinished" in name for name in written)
    record = json.loads((out / "run.json").read_text())
    assert record["verdict"] in ("CHANGE", "KEEP")
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert config["machine"]["cores"] == 35232
    table = pd.read_csv(out / "comparison.csv")
    assert list(table.columns) == ["strategy", "queue", "metric", "value"]
    assert {"all", "idqueue", "large"} <= set(table["queue"])


def test_what_hybrid_and_mqb_did_can_be_followed(run: tuple[Path, Result]) -> None:
    out, _ = run
    rows = {row["name"]: row for row in json.loads((out / "run.json").read_text())["strategies"]}
    page = html.unescape((out / "report.html").read_text())
    listed = page[page.index('id="decisions"') :].split("<li>")
    for name, steps in (
        ("hybrid", {"bounds", "minimum", "decide", "split", "merge", "queues", "threshold", "pool"}),
        ("mqb", {"class", "no search"}),
    ):
        decisions = rows[name]["decisions"]
        assert steps <= {step["step"] for step in decisions}
        for step in decisions:
            span = [value_text(value) for value in step.values() if value_text(value) != "-"]
            assert any(all(text in line for text in span) for line in listed), step
            if step["step"] in ("split", "merge"):
                assert step["why"]
                assert ("weighted_wait" in step) == ("into" in step)
    assert rows["mqb"]["ineligible"]


def test_resume_uses_what_was_finished(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = commands.interrupted(monkeypatch, "qconf.recommend.training.variants", lambda calls: calls[-1] == "exact")
    arguments = ["--history", small, "--config", CRAY, "--out", tmp_path / "out", *QUICK]
    arguments += ["--workers", 1, "--strategies", "pp,exact,auto"]
    stopped = invoke(*arguments)
    assert (stopped.exit_code, stopped.stderr) == (130, "qconf: interrupted: --resume goes on from what was finished\n")
    assert not (tmp_path / "out" / "run.json").exists()
    before = len(calls)
    assert invoke(*arguments, "--resume").exit_code == 0
    # What came before the interruption is not run again.
    assert set(calls[before:]) == {"exact", "auto"}
    assert (tmp_path / "out" / "run.json").exists()
    assert not (tmp_path / "out" / ".unfinished").exists()


def test_without_a_configuration_current_is_assumed(small: Path, tmp_path: Path) -> None:
    result = invoke("--history", small, "--cores", 35232, "--out", tmp_path / "out", "--strategies", "pp")
    assert result.exit_code == 0
    assert "assumed" in result.output
    assert not (tmp_path / "out" / "pbs" / "rollback.qmgr").exists()


def test_the_least_gain_and_what_really_happened_reach_the_run(small: Path, tmp_path: Path) -> None:
    jobs = pd.read_csv(small)
    history = tmp_path / "real.csv"
    jobs.assign(start=jobs["submit"] + 60).to_csv(history, index=False)
    arguments = ["--history", history, "--config", CRAY, "--strategies", "pp"]
    result = invoke(*arguments, "--out", tmp_path / "out", "--least-gain", "37", "-v")
    record = json.loads((tmp_path / "out/run.json").read_text())
    assert record["settings"]["least_gain"] == 0.37
    assert record["fidelity"]["real_mean"] == 60
    says = f"According to the log, the {len(jobs)} jobs with a recorded start waited 0.02 h on average"
    assert "Fidelity grade A: simulated from what ran" in " ".join(result.output.split())
    assert says in " ".join(result.output.split())
    assert says in " ".join(html.unescape((tmp_path / "out/report.html").read_text()).split())


def test_why_a_configuration_is_not_exportable_is_said_beside_the_verdict(small: Path, tmp_path: Path) -> None:
    text = CRAY.read_text()
    config = tmp_path / "long.yaml"
    config.write_text(text.replace("name: medium,", "name: medium_size_queue,"))
    history = tmp_path / "long.csv"
    jobs = pd.read_csv(small)
    jobs.assign(queue=jobs["queue"].replace({"medium": "medium_size_queue"})).to_csv(history, index=False)
    result = invoke("--history", history, "--config", config, "--out", tmp_path / "out", "--strategies", "pp")
    printed = " ".join(result.output.split())
    assert "not exportable to PBS: queue name 'medium_size_queue': PBS takes 1 to 15 letters" in printed
    rows = json.loads((tmp_path / "out/run.json").read_text())["strategies"]
    # what the site has now is not exportable either
    assert not any("not exportable" in row["ineligible"] for row in rows)


def test_json_is_one_document_on_stdout(small: Path, tmp_path: Path) -> None:
    chosen = ["--strategies", "pp", "--json", "--exit-code"]
    result = invoke("--history", small, "--cores", 35232, "--out", tmp_path / "out", *chosen)
    verdict = json.loads(result.stdout)["verdict"]
    assert result.exit_code == {"CHANGE": 10, "CHECK": 11, "KEEP": 0}[verdict]
    assert " jobs from 2016-02-01 to 2016-02-29" in result.stderr
    assert "No configuration was given" in result.stderr


def test_quiet_is_the_verdict_and_where_it_is_written(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import qconf.recommend

    found, passed = example.recommendation("CHANGE"), iter([False])
    a_minute = SimpleNamespace(wait=lambda _: next(passed, True), set=lambda: None)
    monkeypatch.setattr(qconf.recommend, "recommend", lambda *_, **__: found)
    monkeypatch.setattr("qconf.cli.progress.Event", lambda: a_minute)
    monkeypatch.setattr("qconf.cli.progress.Estimate", partial(Estimate, lambda: 0.0))
    site = tmp_path / "site.yaml"
    site.write_text(CRAY.read_text().replace("order: fcfs", 'order: "0 * ncpus"'))
    given = ["--history", small, "--config", site, "--out", tmp_path / "out", "--quiet"]
    result = invoke(*given, "--exit-code")
    assert result.exit_code == 10
    lines = result.stdout.splitlines()
    assert lines[0].startswith("CHANGE: auto is expected to lower mean wait by 20 %")
    assert "Written to" in result.stdout
    assert len(lines) < 10
    assert "is the same for every job of this history: first come, first served" in " ".join(result.stderr.split())
    assert "elapsed" not in result.stderr
    assert "tuning: 0:00 elapsed" in invoke(*given[:-1]).stderr
    assert invoke(*given).exit_code == 0


def test_what_was_read_is_printed_before_the_search(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.interrupted(monkeypatch, "qconf.recommend.recommend")
    result = invoke("--history", small, "--config", CRAY, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert " jobs from 2016-02-01 to 2016-02-29 on cray-xc40" in result.stdout


def refused(tmp_path: Path, *arguments: object) -> str:
    return commands.refused(tmp_path / "out", "tune", *arguments)


def test_bad_input_is_one_message_and_nothing_written(small: Path, tmp_path: Path) -> None:
    config = CRAY
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "empty.csv" in refused(tmp_path, "--history", empty, "--cores", 8)
    torn = tmp_path / "torn.csv.gz"
    torn.write_bytes(gzip.compress(small.read_bytes())[:2000])
    assert "torn.csv.gz" in refused(tmp_path, "--history", torn, "--config", config)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("job_id,submit,runtime,walltime,cores,queue\n1,2,3,4,nan,\n")
    message = refused(tmp_path, "--history", wrong, "--cores", 8)
    assert all(word in message for word in ("wrong.csv", "line 2", "cores"))
    assert "cores" in refused(tmp_path, "--history", small)  # neither configuration nor size of the machine
    assert "missing.csv" in refused(tmp_path, "--history", tmp_path / "missing.csv", "--cores", 8)
    tiny = tmp_path / "tiny.yaml"
    tiny.write_text("machine: {cores: 4}\nqueues:\n  - {name: all}\n")
    few = tmp_path / "few.csv"
    few.write_text("job_id,submit,runtime,walltime,cores,queue\n1,0,10,10,8,\n")
    assert "few.csv" in refused(tmp_path, "--history", few, "--config", tiny)
    assert "2016-05" in refused(tmp_path, "--history", small, "--config", config, "--month", "2016-05")
    there = ["--target", "slurm", "--current", empty]
    assert "holds no partition" in refused(tmp_path, "--history", small, "--config", config, *there)
    wish = tmp_path / "wish.yaml"
    wish.write_text(config.read_text() + "targets:\n  - {queue: smal, p95_wait: 4h}\n")
    line = len(wish.read_text().splitlines())
    assert refused(tmp_path, "--history", small, "--config", wish) == (
        f"{wish}: the configuration has 1 mistake\n"
        f"  line {line}: targets[0].queue = smal: no queue has this name, did you mean small?"
    )


def test_the_months_before_the_one_tuned_on_are_looked_at(small: Path, tmp_path: Path) -> None:
    month = pd.read_csv(small)
    before = month.assign(submit=month["submit"] - 31 * 86400, job_id=-month["job_id"])
    log = tmp_path / "log.csv"
    pd.concat([before, month]).to_csv(log, index=False)
    out = tmp_path / "out"
    site = ["--config", CRAY, "--strategies", "auto-guarded"]
    result = invoke("--history", log, "--month", "2016-02", *site, "--out", out, *QUICK, "--verbose")
    assert result.exit_code == 0
    assert f"{len(before)} jobs of the months before, from 2016-01 on, are there for auto" in result.output
    record = json.loads((out / "run.json").read_text())
    span = record["spans"]["earlier periods"]
    assert (span["jobs"], span["last_submit"]) == (len(before), int(before["submit"].max()))
    (auto,) = (each for each in record["strategies"] if each["name"] == "auto-guarded")
    assert {"months", "prior_score"} <= set(auto["decisions"][0])
    assert "earlier periods" in (out / "report.html").read_text()
    assert record["history"]["jobs"] == record["history"]["outside_period"] == len(month)


def test_unknown_names_are_said_before_anything_is_written(small: Path, tmp_path: Path) -> None:
    given = ("--history", small, "--config", CRAY, "--strategies")
    message = refused(tmp_path, *given, "magic")
    assert "strategy = 'magic': no such strategy. Choose among current, fcfs-easy" in message
    assert message.count(" auto,") == 1
    assert "reference = 'huge': no such reference. Choose among" in refused(
        tmp_path, *given, "hybrid", "--reference", "huge"
    )


def test_an_unknown_strategy_is_said_before_the_log_is_read(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    assert "no such strategy" in refused(tmp_path, "--history", empty, "--cores", 8, "--strategies", "pp,magic")
    assert "empty.csv" in refused(tmp_path, "--history", empty, "--cores", 8, "--strategies", "pp")


def test_a_mistyped_option_leaves_an_interrupted_run_alone(small: Path, tmp_path: Path) -> None:
    kept = tmp_path / "out" / ".unfinished" / "pp-whole.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    given = ("--history", small, "--config", CRAY, "--out", tmp_path / "out")
    with pytest.raises(QconfError, match="no such reference"):
        invoke(*given, "--strategies", "hybrid", "--reference", "huge")
    assert kept.read_text() == "{}"


def test_the_export_goes_to_the_folder_of_the_target(small: Path, tmp_path: Path) -> None:
    site = ["--history", small, "--config", CRAY, "--out", tmp_path / "out"]
    result = invoke(*site, "--strategies", "current", "--target", "slurm", *QUICK)
    assert f"In {tmp_path / 'out'}: report.html; -v prints" in " ".join(result.output.split())
    longer = invoke(*site, "--strategies", "current", "--target", "slurm", *QUICK, "-v")
    assert "slurm/ (see slurm/PLAN.md)" in longer.output
    assert (tmp_path / "out" / "slurm" / "partitions.conf").exists()
    assert not (tmp_path / "out" / "pbs").exists()


@pytest.mark.parametrize("target", ["pbs", "slurm"])
def test_an_order_that_reads_estimate_is_exported_with_the_table_of_the_log(
    small: Path, tmp_path: Path, target: str
) -> None:
    site = CRAY.read_text()
    order = "min(eligible_time, 86400) + (7200 if estimate <= 3600 else 0)"
    (tmp_path / "site.yaml").write_text(site.replace("order: fcfs", f"order: {order}"))
    given = ["--history", small, "--config", tmp_path / "site.yaml", "--out", tmp_path / "out"]
    given += ["--strategies", "current"]
    invoke(*given, "--target", target, *QUICK)
    assert (tmp_path / "out" / target / "qconf_estimate.txt").read_text().startswith("qconf-estimates 1 ")
    invoke(*given, "--target", target, *QUICK, "--anonymous")
    assert "give a log of jobs with --estimates" in (tmp_path / "out" / target / "PLAN.md").read_text()


def test_what_the_server_holds_needs_the_configuration_that_it_stands_for(small: Path, tmp_path: Path) -> None:
    (tmp_path / "server.txt").write_text("create queue idqueue\n")
    arguments = ["--history", small, "--cores", 35232, "--current", tmp_path / "server.txt", "--out", tmp_path / "out"]
    with pytest.raises(InputError, match="qconf init --from-pbs"):
        invoke(*arguments)
    assert not (tmp_path / "out").exists()
