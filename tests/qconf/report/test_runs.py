"""What a run promised, what became of it in the next month, and both in one table."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qconf import __version__
from qconf.config import QueueConfig, dump
from qconf.errors import InputError
from qconf.evaluation.period import Period
from qconf.export import exporter
from qconf.history import Records, clean, read
from qconf.recommend.last import Gain, Realised, realised
from qconf.report.exported import Exported
from qconf.report.recorded import promised
from qconf.report.run_directory import write_run
from qconf.report.runs import past_runs
from qconf.report.verdict import last_lines
from tests.qconf.backtest import walking
from tests.qconf.cli.commands import invoke
from tests.qconf.report import small

BEFORE = small.site()
AFTER = BEFORE.replace(order="sjf")


def log(folder: Path, *which: int) -> Records:
    """Read the jobs of these stretches of ten days."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{'-'.join(map(str, which))}.csv"
    walking.write(path, walking.pd.concat([walking.table(1, 1500, first=each) for each in which]))
    return read([path])


def run(folder: Path, which: int, verdict: str = "CHANGE", last: Realised | None = None, **bounds: float) -> Path:
    """Write a run on such a stretch that recommends shortest jobs first, and promises this interval."""
    found = small.recommendation(verdict)
    interval = small.bootstrap(0.31, **{"low": 0.05, "high": 0.9} | bounds)
    winner = replace(found.rows[3], config=AFTER, title="the order alone", bootstrap=interval)
    history = clean(log(folder, which), BEFORE)
    first, end = (history.epoch + second for second in history.span)
    spans, rows = {"history": (len(history), first, end)}, [*found.rows[:3], winner]
    config = AFTER if verdict == "CHANGE" else BEFORE
    found = replace(found, rows=rows, config=config, spans=spans, last=last)
    directory = folder / f"run{which}"
    write_run(directory, found, history, exported=Exported.of(found, exporter("pbs")()))
    return directory


def period_of(records: Records) -> tuple[int, int]:
    return clean(records, BEFORE).span


def test_the_gain_is_that_of_both_configurations_on_the_jobs_since(tmp_path: Path) -> None:
    records = log(tmp_path, 1)
    found = realised(promised(run(tmp_path, 0)), records, period_of(records), AFTER)
    jobs = Period.of(clean(records, BEFORE), BEFORE)
    before, after = (jobs.simulate(config).wait.mean() for config in (BEFORE, AFTER))
    assert before > after > 0
    assert found.gain == pytest.approx(1 - after / before, abs=1e-12)
    assert found.inside
    assert found.loaded
    assert found.record()["mean_wait"] == {"before": pytest.approx(before), "after": pytest.approx(after)}
    assert found.span[0] == len(jobs)


def test_jobs_of_the_days_before_fill_the_machine_and_are_not_counted(tmp_path: Path) -> None:
    records = log(tmp_path, 0, 1)
    history = clean(records, BEFORE)
    begin = walking.EPOCH + 10 * walking.DAY
    found = realised(promised(run(tmp_path, 0)), records, (begin, history.span[1]), None)
    jobs = Period.of(history.between(begin - 3 * walking.DAY, None), BEFORE)
    counted = jobs.workload.submit >= begin
    before, after = (jobs.simulate(config).wait[counted].mean() for config in (BEFORE, AFTER))
    assert found.gain == pytest.approx(1 - after / before, abs=1e-12)
    assert found.span[0] == counted.sum() < len(jobs)


@pytest.mark.parametrize(("low", "high", "where"), [(0.05, 0.9, "inside"), (0.9, 0.95, "below"), (0.0, 0.01, "above")])
def test_a_gain_is_inside_the_interval_or_not(tmp_path: Path, low: float, high: float, where: str) -> None:
    records = log(tmp_path, 1)
    found = realised(promised(run(tmp_path, 0, low=low, high=high)), records, period_of(records), BEFORE)
    assert found.inside == (where == "inside")
    assert f"{where} the interval" in list(last_lines(found))[1]


def test_whether_it_was_loaded(tmp_path: Path) -> None:
    records, promise = log(tmp_path, 1), promised(run(tmp_path, 0))
    fixed = AFTER.replace(fixed=("queues.short",), policy=("limits",))
    for now, loaded, said in (
        (AFTER, True, "it is in force"),
        (fixed, True, "it is in force"),
        (BEFORE, False, "it is not in force"),
        (BEFORE.replace(order="lxf"), None, "cannot be told"),
        (None, None, "cannot be told"),
    ):
        found = realised(promise, records, period_of(records), now)
        assert found.loaded is loaded
        assert said in list(last_lines(found))[2]


def test_keep_promised_nothing(tmp_path: Path) -> None:
    records = log(tmp_path, 1)
    found = realised(promised(run(tmp_path, 0, "KEEP")), records, period_of(records), BEFORE)
    assert (found.gain, found.inside, found.loaded, found.record()["promised"]) == (None, None, None, None)
    (line,) = last_lines(found)
    assert line == "2016-01-01 to 2016-01-10: KEEP, so nothing was promised"


def test_a_job_that_the_recommended_configuration_has_no_queue_for_is_said(tmp_path: Path) -> None:
    records, promise = log(tmp_path, 1), promised(run(tmp_path, 0))
    narrow = AFTER.replace(queues=(QueueConfig(name="short", cores=(1, 2)), QueueConfig(name="long", cores=(1, 4))))
    found = realised(replace(promise, after=narrow), records, period_of(records), BEFORE)
    assert found.gain is None
    assert "jobs fit no queue" in list(last_lines(found))[1]
    assert "jobs fit no queue" in found.record()["not_evaluated"]


def refused(tmp_path: Path, **changes: object) -> str:
    records, promise = log(tmp_path, 1), promised(run(tmp_path, 0))
    with pytest.raises(InputError) as error:
        realised(promise, records, period_of(records), BEFORE.replace(**changes))
    return str(error.value)


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    machine = BEFORE.machine
    assert refused(tmp_path, machine=machine.model_copy(update={"cores": 256})) == (
        f"{tmp_path}/run0: --last: cannot be compared: it is of another machine (toy, 128 cores; this one: toy, "
        "256 cores). Give a run of the same machine on the months before this log."
    )
    assert "(nodes of 1 cores; this one: nodes of 8 cores)" in refused(
        tmp_path, machine=machine.model_copy(update={"cores_per_node": 8})
    )
    records = log(tmp_path, 1)
    with pytest.raises(InputError, match=r"it rests on jobs until 2016-01-20.*, and this log begins at 2016-01-11"):
        realised(promised(run(tmp_path, 1)), records, period_of(records), BEFORE)


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"base": None}, "a configuration of current that this version does not read"),
        ({"spans": {}}, "no history"),
        ({"winner": "other"}, "another form of what was recommended"),
        ({"strategies": None}, "another form of what was recommended"),
    ],
)
def test_a_run_of_another_version_is_refused(tmp_path: Path, changes: dict[str, object], lacking: str) -> None:
    path = run(tmp_path, 0) / "run.json"
    record = json.loads(path.read_text()) | changes | {"versions": {"qconf": "0.0.1"}}
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=f"was written by qconf 0.0.1, this is {__version__}: it holds {lacking}"):
        promised(tmp_path / "run0")


def story(tmp_path: Path) -> list[Path]:
    """Write three runs in a row, each with what became of the one before: CHANGE, KEEP, CHANGE."""
    runs = [run(tmp_path, 0)]
    for which, verdict in ((1, "KEEP"), (2, "CHANGE")):
        records = log(tmp_path, which)
        runs.append(run(tmp_path, which, verdict, realised(promised(runs[-1]), records, period_of(records), AFTER)))
    return runs


def test_runs_are_joined_in_the_order_of_their_months(tmp_path: Path) -> None:
    runs = story(tmp_path)
    found = past_runs(runs[::-1])
    assert [month.run for month in found] == [str(each) for each in runs]
    assert [month.verdict for month in found] == ["CHANGE", "KEEP", "CHANGE"]
    assert [month.expected for month in found] == [0.31, None, 0.31]
    assert [month.realised_in for month in found] == [str(runs[1]), str(runs[2]), ""]
    assert found[0].realised == json.loads((runs[1] / "run.json").read_text())["last"]["realised"] > 0
    assert (found[0].inside, found[0].loaded) == (True, True)
    assert found[1].realised is found[2].realised is None
    assert past_runs([tmp_path]) == found  # a folder stands for the runs in it
    later = past_runs([runs[1]])  # the first is known from the second
    assert [(month.run, month.realised) for month in later] == [("", found[0].realised), (str(runs[1]), None)]
    assert (later[0].first_submit[:10], later[0].title) == ("2016-01-01", "the order alone")


def test_an_edited_run_is_another_one(tmp_path: Path) -> None:
    runs = story(tmp_path)
    path = runs[0] / "run.json"
    path.write_text(path.read_text() + " ")
    assert [month.run for month in past_runs(runs)] == ["", *map(str, runs)]
    assert all(month.realised is None for month in past_runs(runs) if month.run)


@pytest.mark.parametrize("last", [{}, {"sha256": "0"}, [1], "x", {"sha256": "0", "span": {}, "promised": None}])
def test_a_record_of_another_form_is_refused(tmp_path: Path, last: object) -> None:
    path = run(tmp_path, 0) / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"last": last}))
    if last:
        with pytest.raises(InputError, match="holds another form of what became of the run before it"):
            past_runs([tmp_path / "run0"])
    else:
        assert len(past_runs([tmp_path / "run0"])) == 1


def test_the_command_prints_a_table_csv_or_json(tmp_path: Path) -> None:
    runs = story(tmp_path)
    lines = invoke("runs", tmp_path).stdout.splitlines()
    assert " ".join(lines[0].split()) == "period change run promised % realised % inside loaded"
    assert len([line for line in lines if line.startswith("2016-01")]) == 3
    assert " yes" in lines[1]
    assert "Promises with jobs since: 1, of which 1 inside the interval" in " ".join(lines)
    rows = [*csv.DictReader(io.StringIO(invoke("runs", *runs, "--csv").stdout))]
    record = json.loads(invoke("runs", *runs, "--json").stdout)["runs"]
    assert [{*row} for row in rows] == [{*row} for row in record]
    for row, other in zip(rows, record, strict=True):
        assert float(row["realised"] or "nan") == pytest.approx(other["realised"] or math.nan, nan_ok=True)
        assert row["jobs"] == str(other["jobs"])
    assert invoke("runs", tmp_path, "--csv", "--json").exit_code == 2


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: holds no run of qconf tune"):
        past_runs([tmp_path / "empty"])
    with pytest.raises(InputError, match=r"holds no run: there is no run\.json"):
        past_runs([tmp_path / "missing"])
    (tmp_path / "empty" / "run.json").write_text('{"averages": [], "versions": {}}')
    with pytest.raises(InputError, match="is of qconf compare or backtest"):
        past_runs([tmp_path / "empty"])


def test_a_run_of_an_older_version_among_others_is_left_out_and_said(tmp_path: Path) -> None:
    runs = story(tmp_path)
    path = runs[0] / "run.json"
    record = json.loads(path.read_text())
    del record["spans"]
    path.write_text(json.dumps(record))
    found = invoke("runs", tmp_path, "--csv")
    assert found.exit_code == 0
    assert "it holds no span of its history" in " ".join(found.stderr.split())
    assert str(runs[1]) in found.stdout
    with pytest.raises(InputError, match="no span of its history"):  # what is named is not left out
        invoke("runs", runs[0])


def test_tune_says_and_records_what_became_of_the_last_recommendation(tmp_path: Path) -> None:
    before = run(tmp_path, 0)
    log(tmp_path, 1)
    (tmp_path / "site.yaml").write_text(dump(AFTER))
    given = ["tune", tmp_path / "1.csv", "--config", tmp_path / "site.yaml", "--strategies", "lxf-easy"]
    done = invoke(*given, "--last", before, "--out", tmp_path / "next")
    assert done.exit_code == 0
    printed = " ".join(done.stdout.split())
    assert "The last recommendation: 2016-01-01 to 2016-01-10: CHANGE to hybrid (the order alone)" in printed
    record = json.loads((tmp_path / "next" / "run.json").read_text())
    gain = record["last"]["realised"]
    assert f"gain {100 * gain:+.1f} %, inside the interval" in printed
    assert "it is in force" in printed
    page = " ".join((tmp_path / "next" / "report.html").read_text().split())
    assert "The last recommendation" in page
    assert f"gain {100 * gain:+.1f} %, inside the interval" in page
    assert [each["what"] for each in record["inputs"]] == ["history", "configuration", "last run"]
    assert [month.realised for month in past_runs([before, tmp_path / "next"])] == [gain, None]
    with pytest.raises(InputError, match=r"run\.json: is an input, and would be overwritten"):
        invoke(*given, "--last", before, "--out", before)
    with pytest.raises(InputError, match="holds no run"):
        invoke(*given, "--last", tmp_path, "--out", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_numbers_of_a_promise_are_those_of_the_table(tmp_path: Path) -> None:
    promise = promised(run(tmp_path, 0))
    assert promise.gain == Gain(1 / 3, 0.31, 0.05, 0.9)
    assert (promise.before, promise.after, promise.objective) == (BEFORE, AFTER, "mean-wait")
    assert np.diff(promise.span[1:]).item() < 10 * walking.DAY
