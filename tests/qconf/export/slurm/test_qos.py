"""Quality of service to Slurm and back: QOS, their limits, and whose they are."""

import pytest

from qconf.config import parse
from qconf.errors import ExportError, InputError
from tests.qconf.export.sites import slurm_files, slurm_read, written

SITE = """machine: {name: m, cores: 64, cores_per_node: 8}
order: min(eligible_time, 2592000) + 100 * qos_priority
queues:
  - {name: work, cores: [1, 64], walltime: [0, 24h], max_user_run: 4}
throttles:
  - {each: qos, max_run: 50}
  - {qos: gold, max_run: 9, max_run_cores: 32}
  - {each: user, qos: silver, max_queued: 3}
  - {user: bob, max_run: 2}
qos:
  - {name: gold, priority: 20, users: [ann], accounts: [chem]}
  - {name: silver, priority: 5, exempt: [max_user_run], usage_factor: 0.25}
  - {name: free}
"""


CONF = """ClusterName=m
NodeName=n[1-8] CPUs=8
PriorityType=priority/multifactor
PriorityWeightAge=2592000
PriorityMaxAge=30-0
PriorityWeightPartition=1
PriorityWeightQOS=2000
PriorityCalcPeriod=1
include partitions.conf
"""


def test_statements_and_undo():
    files = slurm_files(parse(SITE))
    assert files["classes.sacctmgr"].splitlines() == [
        "add qos gold",
        "modify qos gold set Priority=20",
        "modify qos gold set UsageFactor=1",
        "modify qos gold set GrpJobs=9",
        "modify qos gold set GrpTRES=cpu=32",
        "add qos silver",
        "modify qos silver set Priority=5",
        "modify qos silver set UsageFactor=0.25",
        "modify qos silver set Flags+=OverPartQOS",
        "modify qos silver set MaxJobsPerUser=2000000000",
        "modify qos silver set GrpJobs=50",
        "modify qos silver set MaxSubmitJobsPerUser=3",
        "add qos free",
        "modify qos free set Priority=0",
        "modify qos free set UsageFactor=1",
        "modify qos free set GrpJobs=50",
        "modify account where name=chem set QosLevel+=gold",
        "modify account where name=chem set DefaultQOS=gold",
        "modify user where name=ann set QosLevel+=gold",
        "modify user where name=ann set DefaultQOS=gold",
    ]
    assert files["throttles.sacctmgr"] == "modify user where name=bob set GrpJobs=2\n"
    assert '"PriorityWeightQOS": "2000"' in files["new-conf"]
    assert '"AccountingStorageEnforce": ["limits", "qos"]' in files["new-conf"]
    plan, _, undo = files["PLAN.md"].partition("## Undo")
    assert "python3 -I accounts load classes.sacctmgr" in plan
    assert "python3 -I accounts back" in undo
    plain = slurm_files(parse(SITE).replace(qos=(), throttles=(), order="fcfs"))
    assert not any("classes.sacctmgr" in text for text in (*plain, *plain.values()))
    assert "PriorityWeightQOS" not in plain["new-conf"]


def test_round_trip(tmp_path):
    files = slurm_files(parse(SITE))
    found = slurm_read(written(tmp_path, files), CONF, name="m").config
    assert (found.qos, found.order) == (parse(SITE).qos, parse(SITE).order)
    # Slurm has no limit of each QOS: each that is named has its own.
    assert {throttle.what: throttle.limits for throttle in found.throttles} == {
        "qos gold": {"max_run": 9, "max_run_cores": 32},
        "qos silver": {"max_run": 50},
        "qos free": {"max_run": 50},
        "each user in qos silver": {"max_queued": 3},
        "user bob": {"max_run": 2},
    }
    again = slurm_files(found)["classes.sacctmgr"].splitlines()
    assert sorted(again) == sorted(files["classes.sacctmgr"].splitlines())


TABLE = """Name|Priority|GraceTime|Flags|GrpTRES|GrpTRESRunMins|GrpJobs|GrpSubmit|MaxTRESPU|MaxJobsPU|MaxSubmitPU
normal|0|00:00:00||||||||
gold|50|00:00:00|OverPartQOS,DenyOnLimit|cpu=40,node=2|cpu=600|10||cpu=16|3|8
small|0|00:00:00||||7|||2|
"""


def test_a_table_of_sacctmgr(tmp_path):
    (tmp_path / "qos").write_text(TABLE)
    derived = slurm_read(
        tmp_path,
        "ClusterName=m\nNodeName=n[1-8] CPUs=8\nPriorityType=priority/multifactor\nPriorityWeightAge=1000\n"
        "PriorityWeightQOS=500\nPriorityMaxAge=1-0\nPartitionName=small Nodes=ALL QOS=small MaxTime=1-0\n",
        name="m",
        qos=tmp_path / "qos",
    )
    config = derived.config
    assert [each for each in derived.warnings if "QOS" in each] == ["QOS gold: not simulated: GrpTRES=node=2"]
    assert (config.queues[0].max_run, config.queues[0].max_user_run) == (7, 2)
    limits = ("max_run", "max_run_cores", "max_run_core_seconds", "max_user_run", "max_user_cores")
    assert [(qos.name, qos.priority, qos.exempt) for qos in config.qos] == [("normal", 0, ()), ("gold", 50, limits)]
    assert {throttle.what: throttle.limits for throttle in config.throttles} == {
        "qos gold": {"max_run": 10, "max_run_cores": 40, "max_run_core_seconds": 36000},
        "each user in qos gold": {"max_run": 3, "max_run_cores": 16, "max_queued": 8},
    }
    assert config.order == "min(eligible_time, 86400) + 864 * qos_priority"  # half of the points of a day's age


@pytest.mark.parametrize(
    ("text", "message"),
    [("gold|1\n", "has no column Name"), ("Name|Priority|Flags\ngold|1\n", "2 columns where the header has 3")],
)
def test_a_table_that_is_none(tmp_path, text, message):
    (tmp_path / "qos").write_text(text)
    with pytest.raises(InputError, match=message):
        slurm_read(tmp_path, "NodeName=n[1-8] CPUs=8\nPartitionName=small Nodes=ALL\n", qos=tmp_path / "qos")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: free", "name: Gold", "no name of one QOS"),
        ("name: free", "name: work", "work is the QOS that holds the limits of that queue"),
        ("priority: 5,", "priority: 2.5,", "whole numbers from 0 up"),
        ("priority: 5,", "priority: -5,", "whole numbers from 0 up"),
        ("accounts: [chem]", "queues: [work]", "not of its partition: list users or accounts"),
        ("{user: bob, max_run: 2}", "{max_run: 2}", "counts the jobs of all QOS together.*exempt gold, silver, free"),
        ("{user: bob, max_run: 2}", "{user: bob, qos: gold, max_run: 2}", "not of one"),
        ("{user: bob, max_run: 2}", "{qos: gold, queue: work, max_run: 2}", "has no form in Slurm beside the limits"),
        ("{user: bob, max_run: 2}", "{each: user, qos: gold, max_run: 2}", "both have MaxJobsPerUser"),
        ("100 * qos_priority", "100 * qos_priority + qos_target_factor", "no form for it"),
        ("100 * qos_priority", "400000000 * qos_priority", "more than Slurm's priority holds"),
    ],
)
def test_what_slurm_has_no_form_for(old, new, message):
    with pytest.raises(ExportError, match=message):
        slurm_files(parse(SITE.replace(old, new, 1)))
    assert slurm_files(parse(SITE.replace("exempt: [max_user_run]", "exempt: [max_run_cores]")))
