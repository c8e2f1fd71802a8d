"""The configuration of a strategy out of the record of an earlier run."""

import json
from dataclasses import replace

import pytest

from qconf import __version__
from qconf.errors import InputError
from qconf.export import exporter
from qconf.history import clean, read
from qconf.report.exported import Exported
from qconf.report.recorded import recorded
from qconf.report.run_directory import RECORD, write_run
from tests.qconf.report import small

LOG = "job_id,submit,runtime,walltime,cores,queue\n1,1454284800,60,600,1,short\n2,1454284900,60,600,1,short\n"


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "log.csv").write_text(LOG)
    found = small.recommendation()
    rows = [replace(row, same_as="static") if row.name == "pp" else row for row in found.rows]
    rows.append(replace(rows[0], name="mqb", not_exportable="no batch system has such classes"))
    found = replace(found, rows=rows, without_scripts=replace(rows[1], ineligible="it is the second best"))
    past = clean(read([folder / "log.csv"]), small.site())
    write_run(folder / "run", found, past, exported=Exported.of(found, exporter("pbs")()))
    return json.loads((folder / "run" / RECORD).read_text())


@pytest.fixture
def run(tmp_path, record):
    def write(**changes):
        (tmp_path / RECORD).write_text(json.dumps(record | changes))
        return tmp_path

    return write


def refused(directory, strategy="hybrid"):
    with pytest.raises(InputError) as error:
        recorded(directory, strategy)
    return str(error.value)


def test_a_configuration_is_what_it_was(run):
    by_name = {row.name: row for row in small.recommendation().rows}
    for name in ("current", "lxf-easy", "hybrid"):
        found = recorded(run(), name)
        assert (found.name, found.config, found.ineligible) == (name, by_name[name].config, "")


@pytest.mark.parametrize(("name", "plain"), [("static", "static"), ("static (= pp)", "static"), ("pp", "pp")])
def test_a_row_of_two_strategies_has_either_name(run, name, plain):
    found = recorded(run(), name)
    assert found.name == plain
    assert found.config.mode == "partitioned"
    assert "95 % wait of queue long grows" in found.ineligible


def test_an_unknown_strategy_is_refused_with_those_there_are(run):
    directory = run()
    assert refused(directory, "dqr") == (
        f"{directory / RECORD}: --strategy = 'dqr': no such strategy in this run. Choose among current, lxf-easy, "
        "static (= pp), hybrid, exact, mqb, without-scripts, queues."
    )


def test_the_result_without_scripts(run):
    found = recorded(run(), "without-scripts")
    assert (found.name, found.ineligible) == ("without-scripts", "it is the second best")
    assert found.config == recorded(run(), "lxf-easy").config
    assert recorded(run(), "lxf-easy").ineligible == ""
    assert "no such strategy" in refused(run(without_scripts=None), "without-scripts")


@pytest.mark.parametrize(
    ("name", "why"), [("exact", "a queue has no job"), ("mqb", "no batch system has such classes")]
)
def test_a_row_with_nothing_to_export_says_why(run, name, why):
    assert refused(run(), name).endswith(f"--strategy = '{name}': has nothing to export: {why}")


def test_where_no_run_is(tmp_path):
    assert refused(tmp_path / "none").startswith(f"{tmp_path / 'none'}: holds no run: there is no run.json. Name the")
    (tmp_path / "file").write_text("")
    assert "holds no run" in refused(tmp_path / "file")
    for text in ("{", "[1]", "{}", '"versions"'):
        (tmp_path / RECORD).write_text(text)
        assert "is no record of a run" in refused(tmp_path)
    (tmp_path / RECORD).write_text('{"versions": {}, "results": [], "averages": []}')
    assert "is of qconf compare or backtest, which recommend nothing. Run `qconf tune`." in refused(tmp_path)


def test_a_run_of_an_older_version_says_which_and_what_to_do(run, record):
    old = {"versions": {"qconf": "0.0.7"}}
    rows = record["strategies"]
    fewer = [{key: value for key, value in row.items() if key != "not_exportable"} for row in rows]
    other = [row | {"config": row["config"] and row["config"] | {"shape": "round"}} for row in rows]
    for changes, lacking in (
        ({"strategies": None}, "it holds no strategies"),
        ({"strategies": ["hybrid"]}, "it holds no strategies"),
        ({"strategies": fewer}, "it holds no not_exportable of its strategies"),
        ({"strategies": other}, "it holds a configuration of hybrid that this version does not read: the"),
    ):
        text = refused(run(**old, **changes))
        assert f"was written by qconf 0.0.7, this is {__version__}: {lacking}" in text
        assert text.endswith(
            "Run `qconf tune` again, with --out elsewhere to keep this run; nothing in it was changed."
        )
    assert "an unknown version" in refused(run(versions=[], strategies=fewer))
