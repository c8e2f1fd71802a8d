"""Quality of service in configurations, histories and searches."""

from __future__ import annotations

from pathlib import Path

import pytest

from qconf.config import SiteConfig, dump, parse
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.impact import impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.targets import absent_members
from qconf.history import clean, read
from qconf.history.anonymous import Names
from qconf.strategies.auto.frame import Frame, policy_of

SITE = """\
machine: {name: m, cores: 64}
order: qos_priority + eligible_time / 3600
queues:
  - {name: short, cores: [1, 64], walltime: [0, 1h], max_run_cores: 32}
  - {name: long, cores: [1, 64], walltime: [1h, 24h]}
throttles:
  - {each: qos, max_run: 4}
  - {qos: gold, max_run: 9}
  - {each: user, qos: silver, queue: long, max_run_cores: 48}
qos:
  - {name: gold, priority: 100, target: 1.5, users: [ann], queues: [long]}
  - {name: silver, priority: 10, exempt: [max_run_cores, max_queued], accounts: [chem], groups: [staff]}
  - {name: free, exempt: all}
"""
LOG = """\
job_id,submit,runtime,walltime,cores,queue,user,start,end,state,group,qos,account
1,1000,60,7200,40,long,ann,1000,1060,done,staff,silver,
2,1001,60,7200,40,long,bob,1001,1061,done,staff,normal,chem
3,1002,60,600,56,short,bob,1002,1062,done,guests,,
4,1003,60,600,56,short,bob,1003,1063,done,chem,free,
5,1004,60,600,8,short,bob,1004,1064,done,chem,,
6,1005,60,7200,8,long,eve,1005,1065,done,,,
7,1006,60,600,8,short,eve,1006,1066,done,,,
8,1007,60,600,8,short,ann,1007,1067,done,,,
"""


def site() -> SiteConfig:
    return parse(SITE)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path / "log.csv"


def test_what_is_written_is_read():
    assert parse(dump(site())) == site()
    system = site().system()
    assert [(qos.name, qos.priority, qos.target, qos.exempt) for qos in system.qos] == [
        ("gold", 100, 1.5, ()),
        ("silver", 10, None, ("max_run_cores", "max_queued")),
        ("free", 0, None, ("all",)),
    ]
    of = [(throttle.each, throttle.name, throttle.queue, throttle.qos) for throttle in system.throttles]
    assert of == [("qos", "", None, ""), ("qos", "gold", None, ""), ("user", "", 1, "silver")]


def test_the_log_says_the_qos_else_user_account_group_and_queue(log: Path):
    history = clean(read([log]), site())
    # The third is above max_run_cores, from which the fourth is exempt.
    assert history.dropped[["job_id", "reason"]].values.tolist() == [
        ["3", "above the running-cores limit of queue short"]
    ]
    jobs = Period.of(history, site()).workload
    found = dict(zip(history.jobs["job_id"], map(jobs.qos_name, jobs.qos.tolist()), strict=True))
    assert found == {"1": "silver", "2": "silver", "4": "free", "5": "silver", "6": "gold", "7": "", "8": "gold"}


def test_jobs_have_no_qos_where_the_configuration_has_none(log: Path):
    plain = site().replace(qos=(), throttles=(), order="fcfs")
    assert (Period.of(clean(read([log]), plain), plain).workload.qos == -1).all()


def test_no_search_changes_them():
    assert fixed_violations(site(), site().replace(qos=site().qos[:2])) == ["qos"]
    other = site().with_queues(site().queues[:1])
    assert other.qos[0].queues == ()
    assert "qos" in fixed_violations(site(), other)


def test_formulas_of_a_search_read_what_the_order_reads(log: Path):
    period = Period.of(clean(read([log]), site()), site())
    assert "qos" in policy_of(period)
    order = "eligible_time / walltime"
    assert Frame().formula(site(), order) == "(1 + 0.09 * qos_priority) * eligible_time / walltime"
    aimed = site().replace(order="qos_target_factor")
    assert Frame().formula(aimed, order) == "(1 + qos_target_factor) * eligible_time / walltime"
    assert Frame(dropped=frozenset({"qos"})).formula(site(), order) == order
    assert Frame().formula(site().replace(order="fcfs"), order) == order


def test_a_qos_without_jobs_is_warned_about(log: Path):
    config = site().replace(qos=[*site().qos, {"name": "late", "users": ("zoe",)}])
    assert absent_members(clean(read([log]), config), config) == [
        "qos[3]: no job in this history is of late: none names it, and none is of its users, accounts, groups or queues"
    ]


def test_who_wins_by_qos(log: Path):
    period = Period.of(clean(read([log]), site()), site())
    outcome = Outcome(period, period.simulate(site()))
    found = impact(outcome, outcome).of("qos")
    assert [(group.name, group.jobs) for group in found] == [("QOS gold", 2), ("QOS silver", 3), ("QOS free", 1)]


def test_anonymous_names_are_those_of_the_qos_too(log: Path):
    names = Names()
    records, config = names.records(read([log])), names.config(site())
    assert "chem" not in set(records.table["account"]) | set(records.table["group"])
    jobs = Period.of(clean(records, config), config).workload
    known = Period.of(clean(read([log]), site()), site()).workload
    assert jobs.qos.tolist() == known.qos.tolist()
