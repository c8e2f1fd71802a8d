"""Shortpools as reservations of Slurm that come again: written, named in the plan, and read back."""

import re

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from qconf.export.nodes import Node
from qconf.history.closures import read_standing, shortpools
from tests.qconf.export.sites import slurm_files, slurm_read, written

SHARED = """\
machine: {{name: tiny, cores: 16, cores_per_node: 2{whole}}}
queues:
  - {{name: work, cores: [1, 16], walltime: [0, 20m]}}
shortpools:
  - {pool}
"""
PARTED = """\
machine: {cores: 16, cores_per_node: 2}
mode: partitioned
queues:
  - {name: small, cores: [1, 4], walltime: [0, 5m], partition: 6}
  - {name: work, cores: [5, 10], walltime: [0, 5m], partition: 10}
shortpools:
  - {cores: 6, walltime: 2m, days: [mon, wed], begin: "22:00", end: "06:00"}
"""
WORKING = '{cores: 6, walltime: 2m, days: [mon, tue, wed, thu, fri], begin: "08:00", end: "18:00"}'
POOLS = {
    "working days": WORKING,
    "weekend": '{cores: 6, walltime: 90, days: [sat, sun], begin: "20:00"}',
    "daily": '{cores: 6, walltime: 2h, begin: "12:30", end: "13:00"}',
    "always": "{cores: 6, walltime: 2h}",
    "some days": '{cores: 6, walltime: 2h, days: [tue, fri], begin: "09:00", end: "09:00"}',
}
CASES = {name: SHARED.format(pool=pool, whole="") for name, pool in POOLS.items()}
CASES |= {"whole nodes": SHARED.format(pool=WORKING, whole=", whole_nodes: true"), "partitioned": PARTED}


def files(text):
    return slurm_files(parse(text), [Node(f"n{number}", 2) for number in range(1, 9)])


@pytest.mark.parametrize("name", CASES)
def test_what_is_exported_is_read_back(name, tmp_path):
    conf = "ClusterName=tiny\nNodeName=n[1-8] CPUs=2\ninclude partitions.conf\n"
    conf += "SchedulerParameters=bf_busy_nodes,bf_job_part_count_reserve=1\n"  # as new-conf writes them
    found = slurm_read(written(tmp_path, files(CASES[name])), conf).config
    assert found.shortpools == parse(CASES[name]).shortpools


def test_short_jobs_ask_for_the_reservation_and_others_do_not():
    found = files(CASES["working days"])
    assert (
        "scontrol create reservation ReservationName=shortpool_120_1 StartTime=$(date --date='next Mon 08:00' "
        "+%Y-%m-%dT%H:%M) Duration=600 Users=-daemon TRES=cpu=6 PartitionName=work "
        "Flags=FLEX,IGNORE_JOBS,NO_HOLD_JOBS_AFTER,WEEKDAY\n"
    ) in found["shortpool"]
    assert 'local KEPT = { ["work"] = "shortpool_120_1", }' in found["job_submit.lua"]
    assert "local SHORT = 120\n" in found["job_submit.lua"]
    assert found["PLAN.md"].count("sh shortpool\n") == 1
    assert "scontrol delete ReservationName" in found["PLAN.md"].partition("## Undo")[2]
    assert "Slurm keeps particular nodes" in found["PLAN.md"]
    plain = files(re.sub("shortpools:.*", "", CASES["working days"], flags=re.DOTALL))
    plan = plain.pop("PLAN.md")
    assert "shortpool" not in "".join([*plain, *plain.values()])
    assert "sh shortpool\n" not in plan
    assert plan.partition("## Undo")[0].count("scontrol delete ReservationName") == 1  # of an earlier export
    assert "KEPT" not in plain["job_submit.lua"]


def test_whole_nodes_are_counted_in_nodes_and_a_partition_keeps_its_share():
    assert " NodeCnt=3 " in files(CASES["whole nodes"])["shortpool"]
    lua = files(PARTED)["job_submit.lua"]
    assert '["small"] = "shortpool_120_1,shortpool_120_2"' in lua
    assert '["work"] = "shortpool_120_3,shortpool_120_4"' in lua


def test_a_second_shortpool_has_no_form():
    with pytest.raises(ExportError, match="a job of Slurm runs in one reservation"):
        files(CASES["always"] + "  - {cores: 2, walltime: 10m}\n")


SHOWN = """\
ReservationName=shortpool_7200_1 StartTime=2026-11-30T08:00:00 EndTime=2026-11-30T18:00:00 Duration=10:00:00
   Nodes=n[1-3] NodeCnt=3 CoreCnt=6 Features=(null) PartitionName=work Flags=FLEX,IGNORE_JOBS,WEEKDAY
   TRES=cpu=6 Users=-daemon Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE

ReservationName=shortpool_600_2 StartTime=2026-11-25T18:09:28 EndTime=2027-11-25T18:09:28 Duration=365-00:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=4 Features=(null) PartitionName=work Flags=FLEX,IGNORE_JOBS
ReservationName=alice_3 StartTime=2026-11-25T18:09:28 EndTime=2027-11-25T18:09:28 NodeCnt=2 CoreCnt=4 Flags=WEEKDAY
"""


def test_what_scontrol_shows_is_read():
    config = parse(CASES["working days"].replace("2m", "2h"))
    found = shortpools(read_standing(SHOWN, 2))
    assert found[:1] == config.shortpools
    (other,) = found[1:]
    assert (other.cores, other.walltime, other.begin, other.end, len(other.days)) == (4, 600, "00:00", "00:00", 7)
