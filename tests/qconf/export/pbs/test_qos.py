"""Quality of service to PBS and back: projects, their limits, and the hook that gives jobs what formulas read."""

from __future__ import annotations

import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from parsim.naive.formula import formula_value
from qconf.config import parse
from qconf.errors import ExportError
from qconf.export import exporter
from tests.qconf.export.pbs.listings import exported_for, listing
from tests.qconf.export.pbs.running import asking, run_hook

PBS = exporter("pbs")
SITE = """machine: {name: m, cores: 128}
held_jobs: reserve
reserve: nodes
order: qos_priority + 100 * qos_target_factor + eligible_time / 3600
queues:
  - {name: work, cores: [1, 16], walltime: [0, 24h], max_run: 20}
  - {name: wide, cores: [17, 128], walltime: [0, 24h]}
throttles:
  - {each: qos, max_run: 50}
  - {qos: gold, max_run: 9, max_run_cores: 96}
  - {qos: silver, queue: work, max_queued: 5}
  - {each: user, max_run: 10}
qos:
  - {name: gold, priority: 20, target: 1.5, users: [ann], groups: [chem]}
  - {name: silver, priority: -5, accounts: [a12]}
"""
ORDER = (
    "qos_priority + 100 * ((qos_target > 0) / max(qos_target - (eligible_time + walltime) / max(walltime, 1), "
    "0.0001) ** 2) + eligible_time / 3600"
)


def test_limits_are_those_of_projects_and_the_formula_spells_the_factor(tmp_path: Path):
    lines = exported_for(tmp_path, parse(SITE))["queues.qmgr"].splitlines()
    assert "create resource qos_priority type=float" in lines
    assert 'set server max_run = "[p:silver=50],[p:gold=9],[u:PBS_GENERIC=10]"' in lines
    assert "set server max_run_res.ncpus = [p:gold=96]" in lines
    assert "set queue work max_queued = [p:silver=5]" in lines
    assert f'set server job_sort_formula = "{ORDER}"' in lines
    names = {"qos_priority": 20, "qos_target": 2.5, "eligible_time": 5000, "walltime": 10000}
    spelled = formula_value(ORDER, **names)
    assert spelled == pytest.approx(20 + 100 * 1.0 + 5000 / 3600)


def test_round_trip(tmp_path: Path):
    config = parse(SITE)
    exported_for(tmp_path, config)
    found = PBS().read(tmp_path / "queues.qmgr", cores=128, name="m").config
    assert (found.qos, found.order) == (config.qos, config.order)
    # PBS_GENERIC would be of all projects, so that each that is named has the limit of each.
    assert {each.what: each.limits for each in found.throttles} == {
        "qos silver": {"max_run": 50},
        "qos gold": {"max_run": 9, "max_run_cores": 96},
        "qos silver in queue work": {"max_queued": 5},
        "each user": {"max_run": 10},
    }


WORK = listing("work:", "max_run = [p:atlas=3]", "default_queue = work")


def test_a_server_without_the_hook_has_the_projects_that_it_limits(tmp_path: Path):
    more = "set queue work max_run = [p:atlas=7]\nset server max_queued = [p:_pbs_project_default=9]\n"
    (tmp_path / "server").write_text(WORK + more)
    found = PBS().read(tmp_path / "server", cores=8)
    assert [qos.name for qos in found.config.qos] == ["atlas"]
    assert {each.what: each.limits for each in found.config.throttles} == {
        "qos atlas": {"max_run": 3},
        "qos atlas in queue work": {"max_run": 7},
    }
    assert any("_pbs_project_default" in warning for warning in found.warnings)


def test_limits_of_projects_go_where_there_are_qos_and_return_with_the_undo(tmp_path: Path):
    files = exported_for(tmp_path, parse(SITE), WORK)
    assert "atlas" not in files["queues.qmgr"]
    assert "set server max_run = [p:atlas=3]" in files["rollback.qmgr"]
    assert "delete resource qos_target" in files["rollback.qmgr"]


def test_jobs_by_their_queue_have_the_resources_of_the_queue(tmp_path: Path):
    text = SITE.replace("{each: qos, max_run: 50}", "{max_run: 50}").replace("users: [ann]", "users: [ann], queues: []")
    text = text.replace("accounts: [a12]", "queues: [wide]").replace("{qos: silver, queue: work", "{queue: work")
    lines = exported_for(tmp_path, parse(text))["queues.qmgr"].splitlines()
    assert "set queue wide resources_default.qos_priority = -5" in lines
    assert not any("work resources_default.qos" in line for line in lines)
    found = PBS().read(tmp_path / "queues.qmgr", cores=128, name="m").config
    assert found.qos == parse(text).qos


def after_hook(monkeypatch, tmp_path: Path, *, change: bool = False, user: str = "ann", **attributes):
    """Run the hook for a job of these attributes; return the job, and what it was refused for."""
    text = exported_for(tmp_path, parse(SITE))["qconf_qos.py"]
    given = {"project": None, "Account_Name": None, "Resource_List": {}} | attributes
    job = asking(("qos_priority", "qos_target"), given.pop("Resource_List"), **given)
    before = SimpleNamespace(project="_pbs_project_default", Account_Name="a12", Job_Owner=f"{user}@host")
    monkeypatch.setattr(pwd, "getpwnam", {"root": pwd.getpwuid(0)}.__getitem__)
    return job, run_hook(monkeypatch, text, job, before if change else None, user=user).said


@pytest.mark.parametrize(
    ("attributes", "project", "priority"),
    [
        ({}, "gold", 20),
        ({"user": "bob"}, None, None),
        ({"user": "bob", "Account_Name": "a12"}, "silver", -5),
        ({"Account_Name": "a12"}, "gold", 20),  # the user goes before the account
        ({"project": "silver"}, "silver", -5),
        ({"project": "_pbs_project_default"}, "gold", 20),
        ({"project": "other"}, "other", 20),
        ({"user": "bob", "Resource_List": {"qos_priority": 1e9}}, None, None),
    ],
)
def test_the_hook_gives_a_job_its_qos(monkeypatch, tmp_path, attributes, project, priority):
    job, refused = after_hook(monkeypatch, tmp_path, **attributes)
    assert (job.project, job.Resource_List["qos_priority"], refused) == (project, priority, [])


@pytest.mark.parametrize(
    ("attributes", "priority", "is_refused"),
    [
        ({"project": "silver"}, -5, False),
        ({"project": "other", "user": "bob"}, -5, False),  # by its account
        ({"Account_Name": "none", "user": "bob"}, None, False),
        ({"Resource_List": {"qos_priority": 1e9}}, 1e9, True),
        ({"Resource_List": {"qos_priority": 7}, "user": "root"}, 7, False),
        ({}, None, False),
    ],
)
def test_the_hook_keeps_it_at_changes(monkeypatch, tmp_path, attributes, priority, is_refused):
    job, refused = after_hook(monkeypatch, tmp_path, change=True, **attributes)
    assert (job.Resource_List["qos_priority"], bool(refused)) == (priority, is_refused)


def test_the_plan_installs_the_hook_and_takes_it_back(tmp_path: Path):
    files = exported_for(tmp_path, parse(SITE), "set server scheduling = True\n")
    plan, _, undo = files["PLAN.md"].partition("## Undo")
    assert "import hook qconf_qos application/x-python default qconf_qos.py" in plan
    assert "qconf-pbs uninstall\n" in undo
    assert '"qconf_qos"' in files["qconf-pbs"]
    assert any("qconf_qos" in each for each in PBS().needs(parse(SITE)))
    plain = parse(SITE).replace(qos=(), throttles=(), order="fcfs")
    assert not any("qos" in text for name, text in exported_for(tmp_path, plain).items() if name != "qconf-pbs")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("target: 1.5", "exempt: [max_run]", "gold is exempt from max_run, which has no form in PBS"),
        ("{each: user, max_run: 10}", "{each: user, qos: gold, max_run: 10}", "limits the jobs of a project together"),
        ("{each: user, max_run: 10}", "{qos: gold, queue: wide, max_eligible: 9}", "max_eligible of qos gold in queue"),
        ("groups: [chem]", "queues: [wide]", "gold has jobs by their queue, and a limit"),
        ("silver", "_pbs_project_default", "no name of a project"),
    ],
)
def test_what_pbs_has_no_form_for(old: str, new: str, message: str):
    with pytest.raises(ExportError, match=message):
        PBS().export(parse(SITE.replace(old, new, 2 if old == "silver" else 1)))
    PBS().export(parse(SITE.replace("target: 1.5", "exempt: [max_user_cores]")))  # there is no such limit
