import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qconf.config import load, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.pbs.server import Server
from qconf.history import clean, read
from qconf.history.records import SourceInfo
from qconf.report.exported import Exported
from qconf.report.recorded import recorded
from qconf.report.run_directory import RECORD, TIMINGS, check_target, names_of, write_run
from qconf.text import as_json
from tests.qconf.report import small

LOG = "job_id,submit,runtime,walltime,cores,queue\n" + "".join(
    f"{i},{small.FEBRUARY + 3600 * i},{600 if i % 7 else -1},7000,{1 + i % 8},short\n" for i in range(50)
)
PRINTED = """#
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
set server scheduling = True
set server default_queue = workq
"""


PBS = exporter("pbs")()


@pytest.fixture
def past(tmp_path):
    return history_in(tmp_path / "in")


def history_in(folder, text=LOG):
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text(text)
    return clean(read([folder / "log.csv"]), small.site())


def write(folder, found, past, *, to=PBS, **more):
    """Write a run with an export."""
    return write_run(folder, found, past, exported=Exported.of(found, to), **more)


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_files_of_a_run(tmp_path, past):
    found = write(tmp_path / "run", small.recommendation(), past, timings={"all": 1.25})
    files = content(tmp_path / "run")
    assert set(files) == set(found.files)
    drawn = (f"figures/{name}.vl.json" for name in ("strategies", "machine", "wait-by-size", "utilization-by-size"))
    plain = ("report.html", "comparison.csv", "config.yaml", "dropped.csv", "run.json", "timings.json")
    assert {*plain, *drawn, "pbs/PLAN.md", "pbs/queues.qmgr", "pbs/nodes.qmgr"} <= set(files)
    config = load(tmp_path / "run" / "config.yaml")
    assert config == small.recommendation().config
    dropped = files["dropped.csv"].decode().splitlines()
    assert [line.split(",")[:4] for line in dropped[1:]] == [
        [str(i), "log.csv", str(i + 2), "no run time"] for i in range(0, 50, 7)
    ]
    assert json.loads(files["timings.json"])["strategies"]["hybrid"] == 1.5


def test_run_json(tmp_path, past):
    site = tmp_path / "site.yaml"
    site.write_text("x")
    read_too = {"configuration": SourceInfo.of(site)}
    write(tmp_path / "run", small.recommendation(), past, inputs=read_too, warnings=["careful"])
    text = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert text == json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert (record["verdict"], record["winner"], record["seed"]) == ("CHANGE", "hybrid", 0)
    assert record["reason"] == "plain: hybrid is expected to lower mean wait by 31 %. A plain reason."
    assert record["advice"]["lead"] == "plain: hybrid is expected to lower mean wait by 31 %"
    assert record["advice"]["undo"] == "qmgr -c 'print server' > now.txt, then tune with --current now.txt"
    assert {"qconf", "python", "numpy", "numba", "scipy"} <= set(record["versions"])
    assert record["inputs"] == [
        {"what": "history", "name": "log.csv", "sha256": hashlib.sha256(LOG.encode()).hexdigest()},
        {"what": "configuration", "name": "site.yaml", "sha256": hashlib.sha256(b"x").hexdigest()},
    ]
    assert record["history"]["read"] == 50
    assert record["history"]["jobs"] + sum(record["history"]["dropped"].values()) == 50
    assert "careful" in record["warnings"]
    strategies = {row["name"]: row for row in record["strategies"]}
    assert strategies["hybrid"]["decisions"][0] == {"step": "carve", "pool": 32, "kept": True, "wait": None}
    assert strategies["pp"]["ineligible"]
    assert strategies["exact"]["test"] is None
    assert "workers" not in record["settings"]
    for name, digest in record["files"].items():
        assert hashlib.sha256((tmp_path / "run" / name).read_bytes()).hexdigest() == digest


def test_the_same_bytes_wherever_and_with_however_many_workers(tmp_path):
    results = []
    for place, workers in (("a", 1), ("b/c", 9)):
        found = small.recommendation()
        rows = [replace(row, seconds=workers) for row in found.rows]
        found = replace(found, settings={**found.settings, "workers": workers}, rows=rows)
        folder = tmp_path / place
        write(folder / "run", found, history_in(folder / "in"), timings={"all": workers})
        results.append(content(folder / "run"))
        results[-1].pop(TIMINGS)
        for name, data in results[-1].items():
            assert str(tmp_path).encode() not in data, name
    assert results[0] == results[1]


def test_files_of_one_name_in_two_folders_have_different_labels(tmp_path):
    texts = LOG, LOG.replace(",short", ",long").replace("\n", "\n1", 1)
    for server, text in zip("ab", texts, strict=True):
        (tmp_path / server).mkdir()
        (tmp_path / server / "log.csv").write_text(text)
    past = clean(read([tmp_path / "a" / "log.csv", tmp_path / "b" / "log.csv"]), small.site())
    write(tmp_path / "run", small.recommendation(), past)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [each["name"] for each in record["inputs"]] == ["a/log.csv", "b/log.csv"]
    assert "a/log.csv," in (tmp_path / "run" / "dropped.csv").read_text()


@pytest.mark.parametrize("verdict", ["CHANGE", "KEEP"])
def test_without_the_servers_state_there_is_no_rollback(tmp_path, past, verdict):
    write(tmp_path / "run", small.recommendation(verdict), past)
    assert not (tmp_path / "run" / "pbs" / "rollback.qmgr").exists()
    plan = (tmp_path / "run" / "pbs" / "PLAN.md").read_text()
    assert "rollback.qmgr" not in plan
    assert "There is no rollback script." in plan
    assert "There is no rollback" in (tmp_path / "run" / "report.html").read_text()
    assert ("nothing to load" in plan) == (verdict == "KEEP")


def test_with_the_servers_state_there_is_one(tmp_path, past):
    write(tmp_path / "run", small.recommendation(), past, to=exporter("pbs")(current=Server.parse(PRINTED)))
    assert "delete queue short" in (tmp_path / "run" / "pbs" / "rollback.qmgr").read_text()
    assert "rollback.qmgr" in (tmp_path / "run" / "pbs" / "PLAN.md").read_text()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["export"]["rollback"] is True


def test_an_assumed_configuration_is_a_warning(tmp_path, past):
    write(tmp_path / "run", small.recommendation(), past, warnings=["no configuration was given"], assumed_current=True)
    assert not (tmp_path / "run" / "pbs" / "rollback.qmgr").exists()
    assert "no configuration was given" in (tmp_path / "run" / "report.html").read_text()


def test_keep_is_the_base(tmp_path, past):
    write(tmp_path / "run", small.recommendation("KEEP"), past)
    text = (tmp_path / "run" / "config.yaml").read_text()
    assert text.startswith("# KEEP: the configuration as it stands, nothing to load.\n")
    assert parse(text) == small.site()
    script = (tmp_path / "run" / "pbs" / "queues.qmgr").read_text()
    assert script.startswith("# KEEP: nothing to load.")


def test_a_configuration_that_is_not_exportable_has_a_reason_instead_of_scripts(tmp_path, past):
    write(tmp_path / "run", small.recommendation(names=("short", "a-name-that-is-too-long")), past)
    export = json.loads((tmp_path / "run" / RECORD).read_text())["export"]
    assert "a-name-that-is-too-long" in export["not_exportable"]
    assert [p.name for p in (tmp_path / "run" / "pbs").iterdir()] == ["PLAN.md"]
    plan = (tmp_path / "run" / "pbs" / "PLAN.md").read_text()
    assert plan.startswith("# No scripts for PBS\n")
    assert export["not_exportable"] in plan
    assert "not exportable to PBS" in (tmp_path / "run" / "report.html").read_text()


def test_a_second_run_replaces_the_first_and_leaves_other_files(tmp_path, past):
    target = tmp_path / "run"
    write(target, small.recommendation(), past)
    assert (target / "pbs" / "nodes.qmgr").exists()
    (target / "pbs" / "notes.txt").write_text("mine")
    write(target, small.recommendation("KEEP"), past)
    assert not (target / "pbs" / "nodes.qmgr").exists(), "a shared machine has none"
    assert not (target / "pbs" / "qconf-promote").exists()
    assert (target / "pbs" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["config.yaml", "pbs/qconf-promote"])
def test_a_file_edited_since_a_run_is_kept_as_a_backup(tmp_path, past, name):
    target = tmp_path / "run"
    write(target, small.recommendation(), past)
    for text in ("edited", "edited again"):
        (target / name).write_text(text)
        assert write(target, small.recommendation(), past).backups
        assert "edited" not in (target / name).read_text()
    assert (target / f"{name}~").read_text() == "edited"
    assert (target / f"{name}~~").read_text() == "edited again"
    assert write(target, small.recommendation(), past).backups == ()


def test_files_that_are_of_no_run_are_not_overwritten(tmp_path, past):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"config\.yaml: is there already and not from an earlier run"):
        write(tmp_path / "run", small.recommendation(), past)
    assert list(content(tmp_path / "run")) == ["config.yaml"]


def test_an_input_is_not_overwritten(tmp_path, past):
    write(tmp_path / "run", small.recommendation(), past)
    site = tmp_path / "run" / "config.yaml"
    before = content(tmp_path / "run")
    with pytest.raises(InputError, match=r"config\.yaml: is an input, and would be overwritten"):
        write(tmp_path / "run", small.recommendation(), past, inputs={"configuration": SourceInfo.of(site)})
    assert content(tmp_path / "run") == before


def test_a_directory_is_checked_beforehand(tmp_path, past):
    check_target(tmp_path / "run", [], names_of("tune", PBS))
    write(tmp_path / "run", small.recommendation(), past)
    check_target(tmp_path / "run", [], names_of("tune", PBS))
    with pytest.raises(InputError, match="is an input, and would be overwritten"):
        check_target(tmp_path / "run", [tmp_path / "run" / "config.yaml"], names_of("tune", PBS))
    (tmp_path / "run" / "run.json").write_text("{}")
    with pytest.raises(InputError, match="not from an earlier run"):
        check_target(tmp_path / "run", [], names_of("tune", PBS))


def test_a_directory_that_is_a_file_or_in_one_is_refused_beforehand(tmp_path):
    (tmp_path / "file").write_text("x")
    for directory in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(InputError, match="file: is a file, no directory"):
            check_target(directory, [], names_of("tune", PBS))


def test_json_takes_what_strategies_note_down():
    given = {"b": np.float64("nan"), "a": [np.int64(3), np.inf, {2, 1}], 5: Path("/x/y.csv"), "c": np.array([1.5])}
    assert json.loads(as_json(given)) == {"a": [3, None, [1, 2]], "b": None, "5": "y.csv", "c": [1.5]}
    assert re.sub(r"\s", "", as_json({"b": 1, "a": "ä"})) == '{"a":"ä","b":1}'


def test_the_export_lies_in_a_folder_of_its_targets_name(tmp_path, past):
    slurm = exporter("slurm").of(nodes="nid[1-128]")
    write(tmp_path / "run", small.recommendation(), past)
    write(tmp_path / "run", small.recommendation("KEEP"), past, to=slurm)
    assert not list((tmp_path / "run" / "pbs").glob("*"))
    assert (tmp_path / "run" / "slurm" / "partitions.conf").read_text().startswith("# KEEP: nothing to load.")
    assert (tmp_path / "run" / "slurm" / "job_submit.lua").read_text().startswith("-- Sends each job")
    record = json.loads((tmp_path / "run" / "run.json").read_text())["export"]
    assert (record["target"], record["not_exportable"], record["rollback"]) == ("slurm", "", False)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "slurm/ holds" in page
    assert "There is no rollback" not in page


def test_the_best_queue_configuration_lies_beside_another_recommendation(tmp_path, past):
    folder = tmp_path / "run"
    kept = small.recommendation("KEEP")
    write(folder, kept, past)
    assert parse((folder / "queues" / "config.yaml").read_text()) == kept.queues.row.config
    assert "not the recommendation" in (folder / "queues" / "PLAN.md").read_text()
    assert "queues.qmgr" in {path.name for path in (folder / "queues").iterdir()}
    record = json.loads((folder / "run.json").read_text())
    assert (record["queues"]["name"], record["queues"]["recommended"]) == ("hybrid", False)
    assert recorded(folder, "queues").config == kept.queues.row.config

    write(folder, small.recommendation("CHANGE"), past)  # which is the same one
    assert not (folder / "queues").exists()
    assert json.loads((folder / "run.json").read_text())["queues"]["recommended"]
    assert recorded(folder, "queues").config == kept.queues.row.config

    write(tmp_path / "none", replace(kept, queues=None), past)
    assert not (tmp_path / "none" / "queues").exists()
