"""Snapshots of PBS, Slurm and our own files."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from parsim import simulate
from qconf.errors import InputError
from qconf.export import exporter
from qconf.prediction.present import ahead
from qconf.snapshot import read_snapshot
from tests.beside import SHARED

REAL = SHARED / "pbs" / "snapshot"
needs_real = pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not there")


def snapshot(folder, **files):
    """Write files of a snapshot, documents as JSON, the ending behind two underscores; read them."""
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content if isinstance(content, str) else json.dumps(content))
    return read_snapshot(folder)


@needs_real
def test_a_real_pbs_server():
    found = read_snapshot(REAL)
    assert (found.now, found.cores) == (1795429613, 16)
    assert [job.job_id for job in found.jobs if job.start is not None] == ["1053", "1054", "1055", "1056", "1059[2]"]
    assert {job.job_id: job.held for job in found.jobs if job.held} == {"1061": "on hold (u)"}
    assert [(each.end - each.begin, each.cores) for each in found.closures] == [(120, 4)]
    later = next(job for job in found.jobs if job.job_id == "1068")
    assert later.not_before == 1795478340


def pbs(folder, jobs, nodes):
    of = {"timestamp": 1000000000}
    return snapshot(folder, qstat__json=of | {"Jobs": jobs}, nodes__json=of | {"nodes": nodes})


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
    times = "StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00 Duration=01:00:00"
    found = snapshot(
        tmp_path,
        squeue__json={"jobs": [old, new], "last_update": 300},
        sinfo__json={"nodes": nodes},
        reservations__txt=f"ReservationName=maint {times}\n   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null)\n",
    )
    assert (found.now, found.cores) == (300, 16)
    assert [(job.job_id, job.cores, job.walltime, job.start, job.held) for job in found.jobs] == [
        ("1", 4, 3600, 200, ""),
        ("2", 8, 1800, None, "Dependency"),
    ]
    assert [(each.name, each.begin, each.end, each.cores) for each in found.closures] == [
        ("reservation maint", 3600, 7200, 16),
        ("node n2", 300, None, 8),
    ]


OWN = "job_id,cores,walltime,submit,start\na,4,60,10,20\n"


def test_files_of_our_own(tmp_path):
    state = "{now: 30, cores: 8, down: [{begin: 40, end: 50, cores: 8}]}"
    found = snapshot(tmp_path, jobs__csv=f"{OWN}b,2,60,15,\n", state__yaml=state)
    assert [(job.job_id, job.start) for job in found.jobs] == [("a", 20), ("b", None)]
    assert found.closures[0].end == 50
    down = "[{begin: 20, cores: 9, nodes: 'c[1-2]'}, {begin: 20, end: 50, cores: 8, nodes: 'c3,g1'}]"
    closures = snapshot(tmp_path, jobs__csv=OWN, state__yaml=f"{{now: 30, down: {down}}}").closures
    of_nodes = [(each.cores, each.node, each.nodes) for each in closures]
    assert of_nodes == [(5, "c1", ()), (4, "c2", ()), (8, "", ("c3", "g1"))]


JOBS = "job_id,cores,walltime,submit\na,1,1,1\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"qstat__json": '{"timestamp": 1, "Jobs": {"1.s": {'}, "ends in the middle"),
        ({"note__txt": "nothing"}, "holds no jobs of PBS or Slurm"),
        ({"jobs__csv": "job_id,cores\na,1\n"}, "has no column walltime"),
        ({"jobs__csv": JOBS.replace("a,1", "a,many")}, "line 2: not a job"),
        ({"jobs__csv": JOBS}, "state.yaml: is no state: 'now'"),
        ({"jobs__csv": JOBS, "state__yaml": "now: ["}, "state.yaml, line 1: is no YAML"),
        *(
            ({"jobs__csv": JOBS, "state__yaml": f"{{now: 3, {state}}}"}, f"state.yaml: is no state: {message}")
            for state, message in (
                ("closures: []", "closures is none of now, cores, down"),
                ("down: [{begin: 4, until: 9, cores: 1}]", "until is none of name, begin, end, cores, queue"),
                ("down: [{begin: 4, cores: 1, nodes: 'c[1-'}]", r"nodes: c\[1- is no list of hosts like"),
            )
        ),
    ],
)
def test_what_cannot_be_read(tmp_path, files, message):
    with pytest.raises(InputError, match=message):
        snapshot(tmp_path, **files)


def test_json_that_was_cut_is_read_up_to_its_last_whole_job(tmp_path):
    whole = json.dumps({"timestamp": 1000000000, "Jobs": {"1.s": JOB, "2.s": JOB, "3.s": JOB}})
    for cut in range(whole.index("3.s"), len(whole)):
        found = snapshot(tmp_path, qstat__json=whole[:cut])
        assert [job.job_id for job in found.jobs] in (["1", "2"], ["1", "2", "3"])
        assert list(found.warnings) == [
            "qstat.json ends in the middle: what comes before is read, what is missing is not predicted"
        ]


def test_slurm_that_was_cut(tmp_path):
    job = {"job_state": "PENDING", "cpus": 4, "submit_time": 100, "time_limit": 60}
    whole = json.dumps({"last_update": 300, "jobs": [job | {"job_id": 1, "name": 'a "{'}, job | {"job_id": 2}]})
    assert [job.job_id for job in snapshot(tmp_path, squeue__json=whole[:-20]).jobs] == ["1"]


def test_lines_that_are_no_jobs_are_counted(tmp_path):
    rows = "a,4,1h,10\nb,x,60,10\nc,4,60,\nd,4"
    found = snapshot(tmp_path, jobs__csv=f"job_id,cores,walltime,submit\n{rows}", state__yaml="{now: 30}")
    assert [(job.job_id, job.walltime) for job in found.jobs] == [("a", 3600)]
    assert (len(found.warnings), found.warnings.total()) == (1, 3)


def test_a_list_of_jobs(tmp_path):
    jobs = "[{job_id: 7, cores: 4, walltime: 3600, submit: 1970-01-01T00:00:10}]"
    found = snapshot(tmp_path, jobs__yaml=jobs, state__yaml="{now: 30, down: [{begin: 40, cores: 8}]}")
    assert [(job.job_id, job.submit) for job in found.jobs] == [("7", 10)]
    assert found.closures[0].end is None


def test_clocks_that_are_apart(tmp_path):
    later = JOB | {"ctime": "Sun Sep  9 01:50:00 2001"}
    found = snapshot(
        tmp_path,
        qstat__json={"timestamp": 1000000000, "Jobs": {"1.s": later}},
        nodes__json={"timestamp": 1000000900, "nodes": {"a": {"resources_available": {"ncpus": 8}}}},
    )
    assert found.jobs[0].submit == found.now
    assert set(found.warnings) == {
        "a job was submitted after the snapshot: clocks are apart",
        "jobs and nodes were printed more than ten minutes apart",
    }


TWO = {"job_state": ["PENDING"], "cpus": 2, "submit_time": 100, "time_limit": 60}


def test_tasks_of_an_array_that_wait_together(tmp_path):
    array = {"array_job_id": {"set": True, "number": 12}, "array_task_id": {"set": False}, "array_task_string": "3-5%2"}
    found = snapshot(tmp_path, squeue__json={"last_update": 300, "jobs": [TWO | {"job_id": 12} | array]})
    assert [job.job_id for job in found.jobs] == ["12_3", "12_4", "12_5"]


def test_nodes_as_newer_sinfo_groups_them_and_jobs_in_a_reservation(tmp_path):
    groups = [
        {"nodes": {"nodes": ["n1", "n2"]}, "cpus": {"maximum": 8}, "node": {"state": ["IDLE"]}},
        {"nodes": {"nodes": ["n3"]}, "cpus": {"maximum": 16}, "node": {"state": ["DOWN"]}},
    ]
    times = "StartTime=1970-01-01T01:00:00 EndTime=1970-01-01T02:00:00"
    found = snapshot(
        tmp_path,
        squeue__json={"last_update": 300, "jobs": [TWO | {"job_id": 1, "resv_name": "course"}]},
        sinfo__json={"sinfo": groups},
        reservations__txt=f"ReservationName=course {times} NodeCnt=1 Flags=\n",
    )
    assert found.cores == 32
    assert [(each.name, each.cores, each.queue) for each in found.closures] == [
        ("reservation course", 16, "reservation course"),
        ("node n3", 16, ""),
    ]
    assert found.jobs[0].queue == "reservation course"


@needs_real
def test_with_the_real_run_times_every_job_starts_when_the_real_server_started_it():
    found = read_snapshot(REAL)
    read = exporter("pbs").of(scheduler=str(REAL / "sched_config.txt")).read
    present = ahead(found, read(REAL / "print_server.txt", cores=found.cores).config)
    real = {}
    for line in (REAL / "accounting_after.log").read_text().splitlines():
        _, kind, rest = line.split(";", 2)
        if kind == "E":
            begin, end = (int(re.search(rf" {key}=(\d+)", rest)[1]) for key in ("start", "end"))
            real[rest.split(".")[0]] = begin, end
    jobs = present.present.workload
    ran = [np.diff(real[job.job_id])[0] if job.job_id in real else job.walltime for job in present.jobs]
    schedule = simulate(replace(jobs, runtime=np.array(ran)), present.system, present.present.state)
    starts = {job.job_id: start for job, start in zip(present.jobs, schedule.start.tolist(), strict=True)}
    waited = [job.job_id for job in present.jobs if job.start is None and job.job_id in real]
    assert len(waited) == 10
    assert {name: starts[name] for name in waited} == {name: real[name][0] for name in waited}


def printed(document, head, indent):
    """Write a document as qstat and pbsnodes print it as text: values that are long go on behind a tab."""
    lines = []
    for name, held in document.items():
        lines.append(head.format(name))
        for key, value in held.items():
            inner = value if isinstance(value, dict) and key != "Variable_List" else {"": value}
            for resource, text in inner.items():
                variables = ",".join(f"{k}={v}" for k, v in text.items()) if isinstance(text, dict) else text
                shown = ", ".join(f"{each}/0" for each in text) if isinstance(text, list) else variables
                line = f"{' ' * indent}{key}{'.' * bool(resource)}{resource} = {shown}"
                lines.append(line[:79])
                lines += ["\t" + line[at : at + 71] for at in range(79, len(line), 71)]
        lines.append("")
    return "\n".join(lines) + "\n"


def as_text(folder, found):
    """Write the text of each JSON document of PBS in a folder, and copy the rest."""
    heads = {"Jobs": ("Job Id: {}", 4), "Queue": ("Queue: {}", 4), "Server": ("Server: {}", 4), "nodes": ("{}", 5)}
    for path in found.iterdir():
        if path.suffix != ".json":
            (folder / path.name).write_text(path.read_text())
            continue
        document = json.loads(path.read_text())
        for kind, how in heads.items():
            if kind in document:
                (folder / path.with_suffix(".txt").name).write_text(printed(document[kind], *how))


@needs_real
def test_text_and_json_of_a_real_pbs_server_are_the_same(tmp_path):
    as_text(tmp_path, REAL)
    found, expected = read_snapshot(tmp_path), read_snapshot(REAL)
    assert not [*tmp_path.glob("*.json")]
    assert found == expected
    assert len(found.jobs) > 15
    (tmp_path / "taken_at").unlink()
    found = read_snapshot(tmp_path)
    assert 0 <= 1795429613 - found.now < 60
    assert [warning[:40] for warning in found.warnings] == ["no file says when jobs were printed: 202"]


def test_a_text_in_one_line_and_one_in_two(tmp_path):
    """`qstat -f -w` breaks no lines; those of PBS Professional break in the middle of a word."""
    job = "Job Id: 7.srv\n    Job_Name = a\n    Job_Owner = ann@login\n    job_state = {}\n    queue = work\n"
    job += "    ctime = Sun Sep  9 01:40:00 2001\n    etime = Sun Sep  9 01:40:00 2001\n    eligible_time = 00:01:40\n"
    job += "    Resource_List.ncpus = 4\n    Resource_List.select = 1:ncpus=4:mem=4gb\n"
    job += "    Resource_List.walltime = 01:00:00\n"
    node = "n{0}\n     Mom = n{0}.site\n     state = {1}\n     resources_available.ncpus = 4\n\n"
    nodes = node.format(1, "free") + node.format(2, "down,offline")
    one, other = (
        snapshot(tmp_path, nodes=nodes, qstat=job.format("H") + "    Hold_Types = s\n    depend = after" + more)
        for more in ("any:12345.server@server\n", "\n\tany:12345.ser\n\tver@server\n")
    )
    assert one == other
    (found,) = one.jobs
    needs = "after:12345 chunk:1:cores=4,memory=4096"
    assert (found.cores, found.walltime, found.needs, found.held) == (4, 3600, needs, "")
    assert (one.now, one.cores) == (999999700, 8)
    assert [each.name for each in one.closures] == ["node n2"]


def test_torque(tmp_path):
    """Nodes have np, jobs ask for nodes; what has ended is shown for a while."""
    (tmp_path / "taken_at").write_text("1000000100\n")
    (tmp_path / "pbsnodes").write_text(
        "n1\n     state = job-exclusive\n     np = 8\n     properties = avx\n     ntype = cluster\n"
        "     jobs = 0/7.srv, 1/7.srv\n     status = rectime=1,ncpus=8,physmem=16384kb\n\n"
        "n2\n     state = down,offline\n     np = 8\n     ntype = cluster\n\n"
    )
    job = (
        "Job Id: {}.srv\n    Job_Name = a\n    Job_Owner = ann@login\n    job_state = {}\n    queue = work\n"
        "    ctime = Sun Sep  9 01:40:00 2001\n    exec_host = {}\n    Resource_List.nodes = {}\n"
        "    Resource_List.walltime = 01:00:00\n    start_time = Sun Sep  9 01:41:00 2001\n"
        "    Variable_List = PBS_O_QUEUE=batch,PBS_O_HOME=/home/ann,\n        PBS_O_PATH=/usr/bin:/bin\n\n"
    )
    (tmp_path / "qstat").write_text(
        job.format(7, "R", "n1/0-1", "1:ppn=2")
        + job.format(8, "C", "n1/2", "1").replace("    exec", "    exit_status = 0\n    exec")
        + job.format("9[]", "Q", "", "2:ppn=4:avx").replace("    exec_host = \n", "    job_array_request = 0-1%1\n")
    )
    found = read_snapshot(tmp_path)
    assert (found.cores, found.nodes) == (16, ("n1", "n2"))
    assert [(job.job_id, job.cores, job.start, job.on, job.needs) for job in found.jobs] == [
        ("7", 2, 999999660, (("n1", 2),), "chunk:1:cores=2"),
        ("9[0]", 8, None, (), "chunk:2:cores=4,avx"),
        ("9[1]", 8, None, (), "chunk:2:cores=4,avx"),
    ]


@needs_real
def test_the_server_of_a_real_snapshot_without_print_server(tmp_path):
    """`qstat -Qf` and `qstat -Bf` tell the same configuration, as text and as JSON."""
    as_text(tmp_path, REAL)
    expected = exporter("pbs")().read(REAL / "print_server.txt", cores=16).config
    for folder in (REAL, tmp_path):
        (path := tmp_path / "statements").write_text(read_snapshot(folder).server)
        assert exporter("pbs")().read(path, cores=16).config == expected
        path.unlink()


RESERVED = """\
Queue: R12
    queue_type = Execution
    enabled = True
    started = True

Queue: R0
    acl_user_enable = True
    acl_users = alice@pbshost
    resources_max.ncpus = 2
    enabled = True
    started = False
"""


def test_a_queue_of_a_reservation_has_no_type(tmp_path):
    job = {"job_state": "Q", "ctime": "Mon Nov 23 10:26:41 2026", "Resource_List": {"ncpus": 1}, "queue": "R12"}
    found = snapshot(tmp_path, jobs={"timestamp": 1795429613, "Jobs": {"1.s": job}}, queues=RESERVED)
    assert [line for line in found.server.splitlines() if line.startswith("create")] == ["create queue R12"]
