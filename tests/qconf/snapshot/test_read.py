"""Snapshots of PBS, Slurm and our own files."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from qconf.errors import InputError
from qconf.snapshot import read_snapshot
from tests.beside import SHARED

REAL = SHARED / "pbs" / "snapshot"


def test_a_real_pbs_server():
    if not REAL.exists():
        pytest.skip(f"{REAL} is not there")
    found = read_snapshot(REAL, UTC)
    assert found.now == 1795429613
    assert found.cores == 16
    assert [job.job_id for job in found.running] == ["1053", "1054", "1055", "1056", "1059[2]"]
    assert {job.job_id: job.held for job in found.jobs if job.held} == {"1061": "on hold (u)"}
    assert [(each.end - each.begin, each.cores) for each in found.closures] == [(120, 4)]
    later = next(job for job in found.jobs if job.job_id == "1068")
    assert later.not_before == 1795478340


def pbs(tmp_path, jobs, nodes):
    (tmp_path / "qstat.json").write_text(json.dumps({"timestamp": 1000000000, "Jobs": jobs}))
    (tmp_path / "nodes.json").write_text(json.dumps({"timestamp": 1000000000, "nodes": nodes}))
    return read_snapshot(tmp_path, UTC)


JOB = {
    "job_state": "Q",
    "queue": "work",
    "ctime": "Sun Sep  9 01:40:00 2001",
    "Resource_List": {"ncpus": 4, "walltime": "01:00:00"},
    "euser": "ann",
}


def test_nodes_that_are_down_and_states_that_are_unknown(tmp_path):
    nodes = {
        "a": {"state": "free", "resources_available": {"ncpus": 8}},
        "b": {"state": "offline,job-busy", "resources_available": {"ncpus": 8}},
    }
    found = pbs(tmp_path, {"1.s": JOB, "2.s": JOB | {"job_state": "?"}, "3.s": JOB | {"Resource_List": {}}}, nodes)
    assert found.cores == 16
    assert [(each.name, each.cores, each.end) for each in found.closures] == [("node b", 8, None)]
    assert len(found.jobs) == 2
    assert dict(found.warnings) == {
        "state ? of a job is unknown: it is taken to wait": 1,
        "a job without cores or time of submission is left out": 1,
    }


def test_an_array_without_its_subjobs_is_one_job_each(tmp_path):
    array = JOB | {"job_state": "B", "array_indices_remaining": "2-6:2,9"}
    found = pbs(tmp_path, {"7[].s": array}, {})
    assert [job.job_id for job in found.jobs] == ["7[2]", "7[4]", "7[6]", "7[9]"]


def test_slurm_of_both_forms(tmp_path):
    old = {"job_id": 1, "job_state": "RUNNING", "cpus": 4, "submit_time": 100, "start_time": 200, "time_limit": 60}
    new = {
        "job_id": 2,
        "job_state": ["PENDING"],
        "cpus": {"set": True, "number": 8},
        "submit_time": {"set": True, "number": 150},
        "start_time": {"set": False, "number": 0},
        "time_limit": {"set": True, "infinite": False, "number": 30},
        "state_reason": "Dependency",
        "user_name": "ann",
        "partition": "work,other",
    }
    nodes = [{"name": "n1", "cpus": 8, "state": "idle"}, {"name": "n2", "cpus": 8, "state": ["DOWN", "DRAIN"]}]
    (tmp_path / "squeue.json").write_text(json.dumps({"jobs": [old, new], "last_update": 300}))
    (tmp_path / "sinfo.json").write_text(json.dumps({"nodes": nodes}))
    (tmp_path / "reservations.txt").write_text(
        "ReservationName=maint StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00 Duration=01:00:00\n"
        "   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null)\n"
    )
    found = read_snapshot(tmp_path, UTC)
    assert (found.now, found.cores) == (300, 16)
    assert [(job.job_id, job.cores, job.walltime, job.start, job.held) for job in found.jobs] == [
        ("1", 4, 3600, 200, ""),
        ("2", 8, 1800, None, "Dependency"),
    ]
    assert [(each.name, each.begin, each.end, each.cores) for each in found.closures] == [
        ("reservation maint", 3600, 7200, 16),
        ("node n2", 300, None, 8),
    ]


def test_files_of_our_own(tmp_path):
    (tmp_path / "jobs.csv").write_text("job_id,cores,walltime,submit,start\na,4,60,10,20\nb,2,60,15,\n")
    (tmp_path / "state.yaml").write_text("{now: 30, cores: 8, down: [{begin: 40, end: 50, cores: 8}]}")
    found = read_snapshot(tmp_path, UTC)
    assert [(job.job_id, job.start) for job in found.jobs] == [("a", 20), ("b", None)]
    assert found.closures[0].end == 50


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"qstat.json": '{"timestamp": 1, "Jobs": {"1.s": {'}, "ends in the middle"),
        ({"note.txt": "nothing"}, "holds no jobs of PBS or Slurm"),
        ({"jobs.csv": "job_id,cores\na,1\n"}, "has no column walltime"),
        ({"jobs.csv": "job_id,cores,walltime,submit\na,many,1,1\n"}, "line 2: not a job"),
        ({"jobs.csv": "job_id,cores,walltime,submit\na,1,1,1\n"}, "state.yaml: 'now'"),
    ],
)
def test_what_cannot_be_read(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_snapshot(tmp_path, UTC)
