"""The files for Slurm, run by the real controller and a Lua interpreter where they are there."""

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from qconf.config import load, parse
from qconf.export import ExportError, exporter
from qconf.export.nodes import read_nodes
from qconf.export.slurm.scripts import clock
from tests.qconf.export.sites import CRAY, HYBRID, NODES, slurm_files
from tests.qconf.export.snapshots import check_snapshot

LUA = shutil.which("lua5.3") or shutil.which("lua5.4") or shutil.which("lua")

needs_lua = pytest.mark.skipif(LUA is None, reason="no Lua interpreter here (Debian's lua5.3)")
needs_controller = pytest.mark.skipif(
    shutil.which("slurmctld") is None, reason="no slurmctld here (Debian's slurm-wlm)"
)

CONF = """\
ClusterName=qconf
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={other}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PriorityType=priority/basic
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
CommunicationParameters=NoCtldInAddrAny
NodeName={nodes} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=64000 State=IDLE
"""


def hybrid(text=HYBRID):
    return slurm_files(parse(text), nodes=NODES)


@pytest.mark.parametrize("case", ["cray-xc40", "hybrid"])
def test_snapshot(case):
    check_snapshot(f"slurm-{case}", hybrid() if case == "hybrid" else slurm_files(load(CRAY)))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def shown_by_the_controller(folder, text, nodes, cpus, subject="partition"):
    """Return what `scontrol show` prints of the subject after the real controller has read a file of partitions."""
    (folder / "state").mkdir()
    conf = folder / "slurm.conf"
    # A QOS lives in the accounting database, which is not here.
    text = "\n".join(" ".join(w for w in line.split() if not w.startswith("QOS=")) for line in text.splitlines())
    values = {
        "host": socket.gethostname().split(".")[0],
        "user": getpass.getuser(),
        "folder": folder,
        "nodes": nodes,
        "cpus": cpus,
    }
    conf.write_text(CONF.format(port=free_port(), other=free_port(), **values) + text + "\n")
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    log = folder / "log"
    with log.open("w") as out:
        controller = subprocess.Popen(
            ["slurmctld", "-D", "-c", "-i", "-f", conf], env=environment, stdout=out, stderr=out
        )
    try:
        for _ in range(60):
            time.sleep(0.25)
            if controller.poll() is not None:
                break
            shown = subprocess.run(
                ["scontrol", "--oneliner", "show", subject],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if shown.returncode == 0 and ("PartitionName" in shown.stdout or subject != "partition"):
                return shown.stdout
        raise AssertionError(log.read_text()[-3000:])
    finally:
        controller.terminate()
        controller.wait(timeout=20)


@needs_controller
@pytest.mark.parametrize("case", ["cray-xc40", "hybrid"])
def test_the_real_controller_takes_the_partitions(case, tmp_path):
    files, nodes, cpus = (
        (hybrid(), "nid[001-012]", 8) if case == "hybrid" else (slurm_files(load(CRAY)), "nid[00001-01468]", 24)
    )
    config = parse(HYBRID) if case == "hybrid" else load(CRAY)
    found = {
        p["PartitionName"]: p
        for line in shown_by_the_controller(tmp_path, files["partitions.conf"], nodes, cpus).splitlines()
        if (p := dict(w.split("=", 1) for w in line.split() if "=" in w))
    }
    assert list(found) == [*config.names, *(["pool"] if case == "hybrid" else [])]
    for queue in config.queues:
        partition = found[queue.name]
        assert (
            partition["MaxTime"] == clock(queue.walltime[1]).replace("0-", "", 1)
            if queue.walltime[1] < 86400
            else clock(queue.walltime[1])
        )
        assert partition["MaxNodes"] == str(-(-queue.cores[1] // cpus))
        cores = queue.partition if config.mode != "shared" and not queue.reservation else config.machine.cores
        assert int(partition["TotalCPUs"]) == cores
    if case == "hybrid":
        assert int(found["pool"]["TotalCPUs"]) == 24


DELAYED = """\
machine: {cores: 96, cores_per_node: 8}
reserve_after: 2h
queues: [{name: small, cores: [1, 16]}, {name: large, cores: [17, 96]}]
"""
LINE = "SchedulerParameters=bf_min_age_reserve=7200"


@needs_controller
def test_the_real_controller_takes_the_reservation_delay(tmp_path):
    text = LINE + "\n" + slurm_files(parse(DELAYED))["partitions.conf"]
    shown = shown_by_the_controller(tmp_path, text, "nid[001-012]", 8, "config")
    assert re.search(r"^SchedulerParameters *= bf_min_age_reserve=7200$", shown, re.MULTILINE)
    assert "Invalid" not in (tmp_path / "log").read_text()


def test_the_reservation_delay_is_a_line_of_slurm_conf():
    files = slurm_files(parse(DELAYED))
    plan = files["PLAN.md"]
    assert re.findall(r"^Scheduler.*", plan[plan.index("```\nScheduler") :], re.MULTILINE)[:2] == [
        "SchedulerType=sched/backfill",
        LINE,
    ]
    assert "do not replace it: add `,bf_min_age_reserve=7200`" in plan
    assert "counts from when it is eligible to run, the simulator from its submission" in plan


def test_a_reservation_delay_longer_than_slurm_takes_is_cut_and_noted():
    plan = slurm_files(parse(DELAYED.replace("2h", "31d")))["PLAN.md"]
    assert "SchedulerParameters=bf_min_age_reserve=2592000\n" in plan
    assert "bf_min_age_reserve is at most 30d" in plan


@pytest.mark.parametrize(
    "text",
    [
        DELAYED.replace("reserve_after: 2h\n", ""),
        DELAYED.replace("reserve_after: 2h", "backfill: false\nreserve_after: 2h"),
        HYBRID + "reserve_after: 2h\n",
    ],
)
def test_no_reservation_delay_where_it_plays_no_part(text):
    assert "SchedulerParameters" not in hybrid(text)["PLAN.md"]
    assert hybrid(text) == slurm_files(parse(text).replace(reserve_after=0), nodes=NODES)


HARNESS = """
slurm = { SUCCESS = 0, ERROR = -1, log_info = function() end, log_user = function() end }
dofile(arg[1])
for line in io.lines(arg[2]) do
   local job = {}
   for key, value in line:gmatch("(%w[%w_]*)=(%S+)") do job[key] = tonumber(value) or value end
   local rc = slurm_job_submit(job, {}, 0)
   print(rc, job.partition or "-", job.time_limit or "-")
end
"""


def submit(tmp_path, lua, jobs):
    (tmp_path / "harness.lua").write_text(HARNESS)
    (tmp_path / "job_submit.lua").write_text(lua)
    (tmp_path / "jobs").write_text("\n".join(" ".join(f"{k}={v}" for k, v in job.items()) for job in jobs))
    command = [LUA, "harness.lua", "job_submit.lua", "jobs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def taker(config, cores, walltime=0):
    """Name the first queue that takes a job of so many cores in the simulator; None where there is none."""
    grid = config.grid
    job = np.array([-(-cores // grid) * grid]), np.array([walltime]), grid
    return next((queue.name for queue in config.queues if queue.admits(*job).all()), None)


@needs_lua
def test_lua_routes_every_boundary_as_the_simulator_does(tmp_path):
    config = load(CRAY)
    sizes = sorted({edge + d for q in config.queues for edge in q.cores for d in (-1, 0, 1)})
    minutes = sorted({edge // 60 + d for q in config.queues for edge in q.walltime for d in (-1, 0, 1)} - {-1, 0})
    jobs = [{"num_tasks": c, "time_limit": m} for c in sizes for m in minutes]
    results = submit(tmp_path, slurm_files(config)["job_submit.lua"], jobs)
    assert len(results) == len(jobs)
    for job, (rc, partition, _) in zip(jobs, results, strict=True):
        expected = taker(config, job["num_tasks"], job["time_limit"] * 60)
        assert (rc, partition) == (("0", expected) if expected else ("-1", "-")), job


@needs_lua
def test_lua_on_what_jobs_leave_out(tmp_path):
    unset, unset16, unlimited = 4294967294, 65534, 4294967295
    jobs = [
        {"num_tasks": 2, "cpus_per_task": 8, "time_limit": unset},  # by cores alone, then the queue's longest
        {"num_tasks": unset, "cpus_per_task": unset16, "min_cpus": 30, "time_limit": 60},
        {"min_nodes": 6, "time_limit": 60},  # whole nodes of 8
        {"num_tasks": 4, "time_limit": unlimited},
        {"num_tasks": 4, "partition": "small", "time_limit": 60},
        {"num_tasks": 30, "partition": "small", "time_limit": 60},
        {"num_tasks": 4, "partition": "pool", "time_limit": 60},
        {"num_tasks": 4, "partition": "other", "time_limit": 60},
    ]
    results = submit(tmp_path, hybrid()["job_submit.lua"], jobs)
    assert [(rc, partition) for rc, partition, _ in results] == [
        ("0", "small"),
        ("0", "medium"),
        ("0", "large"),
        ("-1", "-"),
        ("0", "small"),
        ("-1", "small"),
        ("-1", "pool"),
        ("0", "other"),
    ]
    assert results[0][2] == "1440"


WHOLE = """\
machine: {name: w, cores: 96, cores_per_node: 8, whole_nodes: true}
queues: [{name: narrow, cores: [8, 20]}, {name: wide, cores: [21, 96]}]
"""


@needs_lua
def test_lua_rounds_up_to_whole_nodes_as_the_simulator_does(tmp_path):
    config = parse(WHOLE)
    jobs = [{"num_tasks": cores} for cores in range(1, 98)]
    results = submit(tmp_path, slurm_files(config)["job_submit.lua"], jobs)
    assert [partition for _, partition, _ in results] == [taker(config, job["num_tasks"]) or "-" for job in jobs]
    assert [partition for _, partition, _ in results[::20]] == ["narrow", "narrow", "wide", "wide", "wide"]


def test_the_promotion_script_moves_due_jobs_largest_factor_first(tmp_path):
    (tmp_path / "qconf-promote").write_text(hybrid()["qconf-promote"])

    def line(number, queue, cores, limit, waited):
        return f"{number}|{queue}|{cores}|{limit}|" + time.strftime(
            "%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - waited)
        )

    listing = [
        line("1", "small", 8, "1:00:00", 3500),
        line("2_[3-9%2]", "small", 8, "1:00:00", 3700),
        line("3", "medium", 24, "60:00", 3700),
        line("4", "medium", 25, "1:00:00", 99999),
        line("5", "large", 48, "1:00:00", 99999),
        line("6", "small", 8, "1-00:00:00", 87000),
        line("7; reboot", "small", 8, "1:00:00", 99999),
    ]
    (tmp_path / "listing").write_text("\n".join(listing) + "\n")
    for name, body in (("squeue", 'cat "$HERE/listing"'), ("scontrol", 'echo "$@" >> "$HERE/moved"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HERE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, tmp_path / "qconf-promote"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    moved = (tmp_path / "moved").read_text().splitlines()
    assert moved == [
        f"update JobId={job} Partition=pool AdminComment=qconf-promote:{queue}"
        for job, queue in (("3", "medium"), ("2", "small"), ("6", "small"))
    ]


def test_nothing_is_said_to_raise_waiting_jobs_beside_a_priority_that_does_not():
    text = "\n".join(hybrid().values())
    assert "priority/basic" in text
    assert "PriorityWeightAge" not in text


def test_running_limits_are_qos_lines():
    config = parse(HYBRID.replace("max_run: 6", "max_run: 6, max_run_cores: 32, max_user_run: 2, max_user_cores: 16"))
    text = slurm_files(config, nodes=read_nodes("n[1-12]"))["qos.sacctmgr"]
    assert text.splitlines()[:2] == [
        "add qos small",
        "modify qos small set GrpJobs=6 GrpTRES=cpu=32 MaxJobsPerUser=2 MaxTRESPerUser=cpu=16",
    ]
    text = slurm_files(parse(HYBRID), nodes=read_nodes("n[1-12]"))["qos.sacctmgr"]
    assert "modify qos small set GrpJobs=6 GrpTRES=cpu=-1 MaxJobsPerUser=-1 MaxTRESPerUser=cpu=-1" in text


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (HYBRID, {}, "name them with --nodes"),
        (HYBRID, {"nodes": "n[1-11]"}, "11 nodes of 8 cores are not the machine's 96"),
        (
            "{machine: {cores: 8}, queues: [{name: a}]}",
            {"nodes": "n[1-2]"},
            "2 nodes of 1 cores are not the machine's 8",
        ),
        (HYBRID.replace("order: fcfs", "order: lxf"), {"nodes": "n[1-12]"}, "weighted sum"),
        (HYBRID.replace("name: small", "name: pool"), {"nodes": "n[1-12]"}, "something else"),
        (HYBRID.replace("name: small", "name: default"), {"nodes": "n[1-12]"}, "something else"),
        (HYBRID.replace("name: small", "name: Medium"), {"nodes": "n[1-12]"}, "differ in case only"),
        (HYBRID.replace("name: small", "name: é"), {"nodes": "n[1-12]"}, "Rename it"),
    ],
)
def test_what_is_not_exportable(text, options, reason):
    with pytest.raises(ExportError, match=reason):
        exporter("slurm").of(**options).export(parse(text))


def test_a_pool_of_queues_with_reservations_alone():
    text = "{machine: {cores: 8}, mode: hybrid, queues: [{name: a, reservation: true}], pool: {cores: 8, entry: move}}"
    lines = slurm_files(parse(text), nodes=NODES[:8])["partitions.conf"].splitlines()
    assert [line.split()[1] for line in lines if line.startswith("PartitionName")] == ["Nodes=nid[001-008]"] * 2
