"""Throttles to Slurm and back: limits of associations and of the QOS normal."""

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from tests.qconf.export.sites import slurm_files, slurm_read, written

SITE = """machine: {name: m, cores: 64}
queues:
  - {name: work, cores: [1, 64], walltime: [0, 24h]}
throttles:
  - {max_run: 40, max_run_cores: 60}
  - {each: user, max_run: 10, max_run_core_seconds: 864000}
  - {user: bob, max_run: 2, max_run_core_seconds: 86400, max_queued: 20}
  - {each: group, max_run_cores: 48}
  - {group: physics, max_run: 9}
"""


def test_statements_and_undo():
    files = slurm_files(parse(SITE))
    assert files["throttles.sacctmgr"].splitlines() == [
        "modify qos normal set GrpJobs=40",
        "modify qos normal set GrpTRES=cpu=60",
        "modify qos normal set MaxJobsPerUser=10",
        "modify qos normal set MaxTRESRunMinsPU=cpu=14400",
        "modify user where name=bob set GrpJobs=2",
        "modify user where name=bob set GrpTRESRunMins=cpu=1440",
        "modify user where name=bob set GrpSubmitJobs=20",
        "modify qos normal set MaxTRESPerAccount=cpu=48",
        "modify account where name=physics set GrpJobs=9",
    ]
    assert '"AccountingStorageEnforce": ["limits"]' in files["new-conf"]
    plan, _, undo = files["PLAN.md"].partition("## Undo")
    assert "python3 -I accounts load throttles.sacctmgr" in plan
    assert "python3 -I accounts back" in undo
    plain = slurm_files(parse(SITE).replace(throttles=()))
    assert not any("throttles" in text for text in (*plain, *plain.values()))


def comes_back(folder, config, words=""):
    """Return the throttles that are read from what an export of them loads."""
    files = slurm_files(config)
    written(folder, files, *{"partitions.conf", "job_submit.lua", "throttles.sacctmgr"} & {*files})
    return slurm_read(
        folder, f"ClusterName=m\nNodeName=n[1-8] CPUs=8\n{words}include partitions.conf\n"
    ).config.throttles


def test_round_trip(tmp_path):
    found = comes_back(tmp_path, parse(SITE))
    assert {each.what: each for each in found} == {each.what: each for each in parse(SITE).throttles}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{each: group, queue: work, max_run: 1}", "no form in Slurm beside the limits of the queue"),
        ("{user: ann, max_eligible: 2}", "that of each user has, where it backfills, and max_queued"),
        ("{queue: work, max_eligible: 2}", "no form in Slurm beside the limits of the queue"),
        ("{user: ann, max_run: 11}", "above that of each user"),
        ('{group: "a b", max_run: 1}', "no name that sacctmgr takes"),
    ],
)
def test_what_has_no_form_is_refused(line, words):
    with pytest.raises(ExportError, match=words):
        slurm_files(parse(SITE + f"  - {line}\n"))


@pytest.mark.parametrize(("depth", "number"), [("4", "4"), ("null", "0")])
def test_the_depth_of_reservations(depth, number, tmp_path):
    config = parse(SITE.partition("throttles")[0] + f"reservation_depth: {depth}\n")
    assert f'"bf_job_part_count_reserve": "{number}"' in slurm_files(config)["new-conf"]
    words = f"SchedulerParameters=bf_busy_nodes,bf_job_part_count_reserve={number}"
    found = slurm_read(tmp_path, f"NodeName=n[1-8] CPUs=8\n{words}\nPartitionName=work Nodes=ALL State=UP\n")
    assert found.config.reservation_depth == config.reservation_depth


def looked_at(*throttles):
    return parse(SITE.partition("throttles")[0] + "throttles:\n" + "".join(f"  - {each}\n" for each in throttles))


@pytest.mark.parametrize("also", ["", ", max_run: 10"])
def test_the_jobs_of_each_user_that_are_looked_at(also, tmp_path):
    config = looked_at(f"{{each: user, max_eligible: 3{also}}}")
    files = slurm_files(config)
    assert '"bf_max_job_user": "3"' in files["new-conf"]
    assert "bf_max_job_user counts a user's jobs in the order of their priorities" in files["PLAN.md"]
    assert ("throttles.sacctmgr" in files) == bool(also)
    assert ("AccountingStorageEnforce" in files["new-conf"].split("PARAMETERS")[0]) == bool(also)
    words = "SchedulerParameters=bf_continue,BF_max_job_user=3,bf_interval=10\n"
    assert comes_back(tmp_path, config, words) == config.throttles


def test_no_number_of_jobs_looked_at_without_backfilling(tmp_path):
    with pytest.raises(ExportError, match="where it backfills"):
        slurm_files(looked_at("{each: user, max_eligible: 3}").replace(backfill=False))
    for words in (
        "SchedulerType=sched/builtin\nSchedulerParameters=bf_max_job_user=3",
        "SchedulerParameters=bf_max_job_user=0",
    ):
        text = f"NodeName=n[1-8] CPUs=8\n{words}\nPartitionName=a Nodes=ALL State=UP\n"
        assert not slurm_read(tmp_path, text).config.throttles
