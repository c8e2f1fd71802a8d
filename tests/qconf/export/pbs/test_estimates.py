"""Predicted run times on PBS: the formula, and the hook with its table; and back."""

from __future__ import annotations

import time

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.export.estimates import OLDEST, PRIOR, VERSION, Estimates
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from qconf.prediction.runtimes import Means
from tests.qconf.export.estimated import JOBS, write_log
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.pbs.running import asking, run_hook
from tests.qconf.export.sites import FRESH

SITE = """machine: {name: pbs, cores: 64}
queues: [{name: work, cores: [1, 64], walltime: [0, 48h]}]
order: (eligible_time + estimate) / estimate
"""


@pytest.fixture
def log(tmp_path):
    return write_log(tmp_path / "log.csv")


def written(log, text=SITE, printed=FRESH):
    return exporter("pbs")(current=Server.parse(printed), estimates=log and Estimates(log)).export(parse(text)).files


def after_hook(monkeypatch, folder, files, resources, user="ann", table=None, before=None):
    """Run the hook on a job; return the resources that it has then, and the lines of the log."""
    (folder / "table.txt").write_text(files["qconf_estimate.txt"] if table is None else table)
    names = ("select", "ncpus", "walltime", "estimate")
    job, was = asking(names, resources), None if before is None else asking(names, before, Job_Owner="ann@host")
    path = None if table == "none" else str(folder / "table.txt")
    event = run_hook(monkeypatch, files["qconf_estimate.py"], job, was, user=user, hook_config_filename=path)
    return job.Resource_List["estimate"], event.said


def test_the_log_is_read_as_the_configuration_says_and_needs_no_ends(tmp_path):
    (tmp_path / "log.csv").write_text("job_id,when,runtime,walltime,cores,queue\n1,2026-10-01T10:00:00,60,90,4,work\n")
    site = parse(f"{SITE}history: {{columns: {{submit: when}}, timezone: Europe/Berlin}}\n")
    first = Estimates(tmp_path / "log.csv").table(site).splitlines()[0]
    assert first == f"{VERSION} {1790841600 + 60}"  # 08:01:00 in UTC


def test_the_resource_the_formula_and_the_hook_and_back(log):
    server = PbsServer(FRESH)
    before, files = server.printed(), written(log)
    assert "create resource estimate type=long, flag=r" in commands(files["queues.qmgr"])
    assert "import hook qconf_estimate application/x-config default qconf_estimate.txt" in files["PLAN.md"]
    server.load(files["queues.qmgr"])
    assert derive(Server.parse(server.printed()), cores=64).config.order == parse(SITE).order
    again = written(log, printed=server.printed())
    assert commands(again["queues.qmgr"]) == []
    walltime = written(None, SITE.replace("estimate", "walltime"), server.printed())
    assert "qconf_estimate" not in walltime["PLAN.md"].partition("Take off what an earlier export installed")[0]
    assert '"qconf_estimate"' in walltime["qconf-pbs"]
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    with pytest.raises(ExportError, match="give a log of jobs with --estimates"):
        written(None)


@pytest.mark.parametrize(
    ("user", "cores", "walltime", "resources"),
    [
        ("ann", 4, 7200, {"select": "2:ncpus=2"}),
        ("ann", 5, 7200, {"select": "2:ncpus=2:mem=4gb+1"}),
        ("ann", 1, 60, {"ncpus": 1}),
        ("bob", 64, 90000, {"select": "8:ncpus=8"}),
        ("new", 4, 7200, {"select": "4"}),
    ],
)
def test_the_hook_predicts_as_the_model_does(monkeypatch, tmp_path, log, user, cores, walltime, resources):
    model = Means()
    for name, of, limit, ran in sorted(JOBS, key=lambda job: JOBS.index(job) + job[3]):
        model.add(name, "", of, limit, ran / limit)
    found, said = after_hook(monkeypatch, tmp_path, written(log), {"walltime": walltime} | resources, user)
    assert said == []
    assert found == pytest.approx(model.estimate(user, "", cores, walltime), rel=0.01)
    # A change of the walltime alone.
    changed = after_hook(monkeypatch, tmp_path, written(log), {"walltime": 100}, "root", before={"ncpus": 4})[0]
    assert changed == pytest.approx(model.estimate("ann", "", 4, 100), rel=0.01)
    assert after_hook(monkeypatch, tmp_path, written(log), {"ncpus": 4}, before={"ncpus": 4})[0] is None


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("none", "expected str"),
        ("", "another version"),
        (f"{VERSION}.1 {int(time.time())}\n", "another version"),
        (f"{VERSION} {int(time.time()) - 86400 * OLDEST - 9}\n", f"older than {OLDEST} days"),
        (f"{VERSION} {int(time.time())}\n*\t:=3\t\n", "not enough values"),
    ],
    ids=["absent", "empty", "version", "old", "malformed"],  # no instant: each process collects them
)
def test_without_a_good_table_the_walltime_is_taken(monkeypatch, tmp_path, log, table, why):
    found, said = after_hook(monkeypatch, tmp_path, written(log), {"ncpus": 4, "walltime": 7200}, table=table)
    assert found is None
    assert len(said) == 1
    assert why in said[0]
    empty = f"{VERSION} {int(time.time())}\n"
    assert after_hook(monkeypatch, tmp_path, written(log), {"ncpus": 4, "walltime": 9}, table=empty) == (None, [])
    assert after_hook(monkeypatch, tmp_path, written(log), {"ncpus": 4}) == (None, [])


def test_a_user_is_found_in_a_large_table(monkeypatch, tmp_path, log):
    words = "".join(f"{size}:{3600 * hours}=3.14,0.271\t" for size in range(12) for hours in range(1, 10))
    table = f"{VERSION} {int(time.time())}\n*\t:=9,0.5\t\n" + "".join(f"u{i}\t{words}\n" for i in range(1000))
    assert len(table) > 2_000_000
    job = {"ncpus": 4, "walltime": 7200}
    found, _ = after_hook(monkeypatch, tmp_path, written(log), job, "u999", table=table)
    weight = 3.14 / (3.14 + PRIOR)
    own = weight * 0.271 + (1 - weight) * 9 / (9 + PRIOR) * 0.5
    assert found == pytest.approx(7200 * own / (weight + (1 - weight) * 9 / (9 + PRIOR)), abs=1)
