"""The files for Slurm, run by a Lua interpreter where one is there, and beside stand-ins of Slurm's programs."""

import grp
import json
import os
import pwd
import re
import runpy
import shutil
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest

from qconf.config import load, parse
from qconf.export import ExportError, exporter
from tests.qconf.export.sites import CRAY, HYBRID, NODES, new_conf, slurm_files, slurm_read, written
from tests.qconf.export.snapshots import check_snapshot
from tests.servers.slurm import Plan

LUA = shutil.which("lua5.3") or shutil.which("lua5.4") or shutil.which("lua")

needs_lua = pytest.mark.skipif(LUA is None, reason="no Lua interpreter here (Debian's lua5.3)")


@cache
def hybrid(text=HYBRID):
    return slurm_files(parse(text), nodes=NODES)


@pytest.fixture
def here(tmp_path):
    """A folder with the export of `HYBRID`."""
    return written(tmp_path, hybrid())


@pytest.mark.parametrize("case", ["cray-xc40", "hybrid"])
def test_snapshot(case):
    check_snapshot(f"slurm-{case}", hybrid() if case == "hybrid" else slurm_files(load(CRAY)))


DELAYED = """\
machine: {cores: 96, cores_per_node: 8}
reserve_after: 2h
queues: [{name: small, cores: [1, 16]}, {name: large, cores: [17, 96]}]
"""


def test_the_reservation_delay_is_a_word_of_slurm_conf_and_cut_to_what_slurm_takes():
    files = slurm_files(parse(DELAYED))
    assert '"bf_min_age_reserve": "7200"' in files["new-conf"]
    assert "counts from when it is eligible to run, the simulator from its submission" in files["PLAN.md"]
    plan = slurm_files(parse(DELAYED.replace("2h", "31d")))["PLAN.md"]
    assert "bf_min_age_reserve=2592000" in plan
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
    assert "bf_min_age_reserve" not in hybrid(text)["PLAN.md"]
    assert hybrid(text) == slurm_files(parse(text).replace(reserve_after=0), nodes=NODES)


HARNESS = """
slurm = {{ SUCCESS = 0, ERROR = -1, NICE_OFFSET = 0x80000000, log_info = function() end, log_user = function() end }}
slurm.log_error = function(...) print(string.format(...)) end
dofile("job_submit.lua")
local function of(text)
   local job = {{}}
   for key, value in text:gmatch("(%w[%w_]*)=(%S+)") do job[key] = tonumber(value) or value end
   return job
end
for line in io.lines("jobs") do
   local one, other = of(line:match("^[^;]*")), of(line:match(";(.*)"))
   print({what})
end
"""
SUBMIT = "slurm_job_submit(one, {}, 0)"
ROUTED = f"{SUBMIT}, one.partition or '-'"


def called(folder, lua, what, *jobs):
    """Return the words of an expression of job_submit.lua for each job, or each pair of a change and a record."""
    pairs = [job if isinstance(job, tuple) else (job, {}) for job in jobs]
    lines = ("; ".join(" ".join(f"{key}={value}" for key, value in of.items()) for of in pair) for pair in pairs)
    texts = {"called.lua": HARNESS.format(what=what), "job_submit.lua": lua, "jobs": "\n".join(lines)}
    written(folder, texts)
    done = subprocess.run([LUA, "called.lua"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def check_rows(found, rows):
    """Compare what was found with the last item of each row."""
    assert [(*row[:-1], each) for row, each in zip(rows, found, strict=True)] == [tuple(row) for row in rows]


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
    names = [taker(config, job["num_tasks"], job["time_limit"] * 60) for job in jobs]
    rows = [(job, ["0", name] if name else ["-1", "-"]) for job, name in zip(jobs, names, strict=True)]
    check_rows(called(tmp_path, slurm_files(config)["job_submit.lua"], ROUTED, *jobs), rows)


@needs_lua
def test_lua_on_what_jobs_leave_out(tmp_path):
    unset, unset16, unlimited = 4294967294, 65534, 4294967295
    rows = [
        ({"num_tasks": 2, "cpus_per_task": 8, "time_limit": unset}, ["0", "small", "1440"]),  # the queue's longest
        ({"num_tasks": unset, "cpus_per_task": unset16, "min_cpus": 30, "time_limit": 60}, ["0", "medium", "60"]),
        ({"min_nodes": 6, "time_limit": 60}, ["0", "large", "60"]),  # whole nodes of 8
        ({"num_tasks": 4, "time_limit": unlimited}, ["-1", "-", str(unlimited)]),
        ({"num_tasks": 30, "partition": "small", "time_limit": 60}, ["-1", "small", "60"]),
    ]
    lists = {"small": "0", "pool": "-1", "other": "0", "small,other": "0", "small,pool": "-1", "pool,other": "-1"}
    for name, verdict in (lists | {"other,medium": "-1", "small,medium": "-1"}).items():
        rows.append(({"num_tasks": 4, "partition": name, "time_limit": 60}, [verdict, name, "60"]))
    jobs = [job for job, _ in rows]
    check_rows(called(tmp_path, hybrid()["job_submit.lua"], f"{ROUTED}, one.time_limit", *jobs), rows)


WHOLE = """\
machine: {name: w, cores: 96, cores_per_node: 8, whole_nodes: true}
queues: [{name: narrow, cores: [8, 20]}, {name: wide, cores: [21, 96]}]
"""


@needs_lua
def test_lua_rounds_up_to_whole_nodes_as_the_simulator_does(tmp_path):
    config = parse(WHOLE)
    jobs = [{"num_tasks": cores} for cores in range(1, 98)]
    found = [partition for _, partition in called(tmp_path, slurm_files(config)["job_submit.lua"], ROUTED, *jobs)]
    assert found == [taker(config, job["num_tasks"]) or "-" for job in jobs]
    assert found[::20] == ["narrow", "narrow", "wide", "wide", "wide"]


def run_script(folder, name, listings, *arguments, scontrol="", priority="basic", lists=None, **environment):
    """Run a script beside a squeue that prints the listings, the last one again and again; return what was changed.

    `lists` has lines: `credentials` of id, user, account and QOS, `nice` of id and nice value, `wanted` of id, memory
    and generic resources, `came` of id and AdminComment.
    """
    for left in ("changed", "calls"):
        (folder / left).unlink(missing_ok=True)
    files = dict.fromkeys(("credentials", "nice", "wanted", "came"), ()) | (lists or {})
    files |= {f"listing{number}": listing for number, listing in enumerate(listings)}
    written(folder, {file: "".join(f"{line}\n" for line in lines) for file, lines in files.items()})
    show = f"[ $1 != show ] || {{ echo PriorityType = priority/{priority}; exit; }}"
    squeue = f"""\
case "$*" in *admin_comment*) exec cat "$HERE/came" ;; *%u*) exec cat "$HERE/credentials" ;;
  *%y*) exec cat "$HERE/nice" ;; *%m*) exec cat "$HERE/wanted" ;; esac
env | grep -E '^(SQUEUE|SLURM)_' >> "$HERE/environment"
number=$(cat "$HERE/calls" 2> /dev/null || echo 0)
echo $((number < {len(listings) - 1} ? number + 1 : number)) > "$HERE/calls"
cat "$HERE/listing$number"
"""
    for program, body in (("squeue", squeue), ("scontrol", f'{show}\necho "$@" >> "$HERE/changed"\n{scontrol}\n')):
        (folder / program).write_text(f"#!/bin/sh\n{body}")
        (folder / program).chmod(0o755)
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HERE": str(folder), **environment}
    command = [sys.executable, name, *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    changed = folder / "changed"
    return done, changed.read_text().splitlines() if changed.exists() else []


def moved(folder, listing, *arguments, **given):
    """Return what move-jobs changes, which succeeds."""
    done, changed = run_script(folder, "move-jobs", [listing], *arguments, **given)
    assert done.returncode == 0, done.stderr
    return changed


def waiting(number, queue, cores, limit, waited, reason="Resources", priority=4294901000):
    return f"{number}|{queue}|{cores}|1|{limit}|{int(time.time() - waited)}|{priority}|{reason}"


def test_the_promotion_script_moves_due_jobs_largest_factor_first(here):
    """And leaves those that may not start."""
    held = ("JobHeldUser", "JobHeldAdmin", "Dependency", "BeginTime")
    listing = [
        waiting("1", "small", 8, "1:00:00", 3500),
        waiting("2_[3-9,12%2]", "small", 8, "1:00:00", 3700, "Priority"),
        waiting("3", "medium", 24, "60:00", 3700),
        waiting("4", "medium", 25, "1:00:00", 99999),
        waiting("5", "large", 48, "1:00:00", 99999),
        waiting("6", "small", 8, "1-00:00:00", 87000),
        waiting("8+1", "small", 8, "1-00:00:00", 86900),
        waiting("9_4", "small", 8, "UNLIMITED", 86800),
        *(waiting(str(n), "small", 8, "1:00:00", 99999, reason) for n, reason in enumerate(held, 10)),
    ]
    done, changed = run_script(here, "qconf-promote", [listing])
    assert done.returncode == 0, done.stderr
    moved = {"3": "medium", "2_[3-9,12]": "small", "6": "small", "8+1": "small", "9_4": "small"}
    assert changed == [f"update JobId={job} Partition=pool AdminComment=qconf-promote:{q}" for job, q in moved.items()]


def test_the_pool_is_ordered_by_priority_factor(here):
    """Its jobs keep the priorities that they have among them; those that come at this time are not listed there yet."""
    listing = [
        waiting("1", "pool", 8, "4:00:00", 9000, priority=4294901009),  # factors of 40, 80 and 40 an hour
        waiting("2", "pool", 8, "1:00:00", 8000, priority=4294901008),
        waiting("3", "pool", 24, "1:00:00", 7000, priority=4294901007),
        waiting("4_[1-3%2]", "pool", 8, "4:00:00", 9000, priority=4294901006),
        waiting("5", "pool", 8, "1:00:00", 99999, "JobHeldUser", priority=0),
        waiting("6", "pool", 8, "1:00:00", 99999, priority=4294901005),  # not ours
    ]
    came = [f"{job}|qconf-promote:small|" for job in ("1", "2", "4_[1-3%2]", "5")] + ["3|qconf-promote:medium|"]
    lists = {"came": [*came, "6||"]}
    done, changed = run_script(here, "qconf-promote", [listing], lists=lists)
    assert (done.returncode, done.stderr) == (0, "")
    order = {"3": 9, "2": 8, "1": 7, "4_[1-3]": 6}
    assert changed == [f"update JobId={job} Priority=429490100{order[job]}" for job in ("3", "1")]
    equal = [re.sub(r"\|42949010..\|", "|5000000|", line) for line in listing[:3]]
    _, changed = run_script(here, "qconf-promote", [equal], lists=lists)
    assert changed == ["update JobId=2 Priority=4999999", "update JobId=1 Priority=4999998"]


def test_the_promotion_script_fails_for_jobs_only_that_wait_on(here):
    """An array of which a task has begun meanwhile is no failure, one that Slurm does not move is."""
    before, refusal = waiting("2_[3-4]", "small", 8, "1:00:00", 99999), "echo slurm says no >&2; exit 1"
    after = waiting("2_[4]", "small", 8, "1:00:00", 99999)
    for later, ended in (([], (0, "")), ([after], (1, "2_[3-4]: slurm says no\n"))):
        done, _ = run_script(here, "qconf-promote", [[before], later], scontrol=refusal)
        assert (done.returncode, done.stderr) == ended


def test_the_promotion_script_depends_on_no_variable_of_slurm(here):
    given = {"SLURM_TIME_FORMAT": "relative", "SQUEUE_PARTITION": "other", "SQUEUE_FORMAT": "%i"}
    done, changed = run_script(here, "qconf-promote", [[waiting("1", "small", 8, "1:00:00", 3700)]], **given)
    assert (done.returncode, len(changed)) == (0, 1)
    assert sorted((here / "environment").read_text().split()) == ["SLURM_BITSTR_LEN=0", "SLURM_TIME_FORMAT=%s"]


def test_what_a_script_does_not_understand_it_names_and_leaves(here):
    listing = [waiting("7; reboot", "small", 8, "1:00:00", 99999), waiting("1", "small", 8, "NOT_SET", 99999)]
    done, changed = run_script(here, "qconf-promote", [listing])
    assert (done.returncode, changed, done.stderr.count("not understood")) == (1, [], 2)


BEFORE = """\
PartitionName=other State=UP Default=NO TotalCPUs=96 MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0
PartitionName=work State=UP Default=YES TotalCPUs=96 MaxNodes=4 MaxTime=UNLIMITED MinNodes=1
PartitionName=shut State=DOWN Default=NO TotalCPUs=96 MaxNodes=4 MaxTime=UNLIMITED MinNodes=1
"""


def test_waiting_jobs_are_moved_into_the_queue_that_takes_them_and_back(here):
    (here / "partitions.before").write_text(BEFORE)
    listing = [
        waiting("5", "work", 20, "1:00:00", 50, priority=12),
        waiting("1_[1-3%2]", "work,other", 8, "1:00:00", 90, priority=11),
        waiting("2", "work", 48, "1:00:00", 80, "JobHeldUser", priority=0),
        waiting("3", "small", 8, "1:00:00", 70, priority=13),
        waiting("4", "pool", 8, "1:00:00", 60, priority=13),
    ]
    places = (("5", "medium"), ("1_[1-3]", "small"), ("2", "large"))
    moves = [f"update JobId={job} Partition={place}" for job, place in places]
    assert moved(here, listing) == [*moves, *(f"release {job}" for job in ("1_[1-3]", "3", "4", "5"))]
    listing = [
        waiting("5", "medium", 20, "1:00:00", 50),
        waiting("1_[2-3%2]", "small", 8, "1:00:00", 90),
        waiting("2", "large", 48, "1:00:00", 80, "JobHeldUser", priority=0),
        waiting("6", "pool", 8, "1:00:00", 60),
        waiting("7", "other", 8, "1:00:00", 60, priority=4294901001),
    ]
    places = (("5", "work"), ("1_[2-3]", "work,other"), ("2", "work"), ("6", "work"))
    moves = [f"update JobId={job} Partition={place}" for job, place in places]
    assert moved(here, listing, "--back") == [*moves, *(f"release {job}" for job in ("1_[2-3]", "6", "7", "5"))]
    listing[0] = waiting("5", "medium", 20, "1:00:00", 50, priority=7000)  # a priority of its own
    changed = moved(here, listing, "--back", priority="multifactor")
    assert changed == [*moves, *(f"release {job}" for job in ("1_[2-3]", "6", "7"))]


def test_a_job_that_was_requeued_and_held_stays_held(here):
    """Slurm gives another reason then, and the priority 0 that all held jobs have."""
    listing = [waiting("1", "small", 8, "1:00:00", 99999, "job requeued in held state", priority=0)]
    assert [run_script(here, name, [listing])[1] for name in ("move-jobs", "qconf-promote")] == [[], []]


def test_parts_of_a_heterogeneous_job_return_each_to_its_own_partition(here):
    (here / "partitions.before").write_text(BEFORE)
    lines = [waiting("1+0", "work", 8, "1:00:00", 90), waiting("1+1", "other", 8, "1:00:00", 90)]
    moved(here, lines)
    lines = [line.replace("work", "small").replace("other", "small") for line in lines]
    changed = moved(here, lines, "--back")
    assert changed == ["update JobId=1+0 Partition=work", "update JobId=1+1 Partition=other"]


@pytest.mark.parametrize(
    ("before", "places", "listing"),
    [
        pytest.param(BEFORE, "1 work\n1 small\n", [(1, "medium", 20)], id="moved twice"),
        pytest.param(
            *(BEFORE.replace("=other", "=small"), "1 work\n", [(1, "small", 8), (2, "small", 8)]),
            id="from a queue that was there before",
        ),
    ],
)
def test_jobs_return_to_where_they_were_at_first(before, places, listing, here):
    written(here, {"partitions.before": before, "jobs.moved": places})
    lines = [waiting(job, place, cores, "1:00:00", 90 - job) for job, place, cores in listing]
    changed = moved(here, lines, "--back")
    assert [each for each in changed if each[:6] == "update"] == ["update JobId=1 Partition=work"]


def test_a_job_that_is_released_keeps_its_nice_value(here):
    """Slurm sets it to 0 then."""
    listing = [waiting(n, "small", 8, "1:00:00", 90 - n, priority=12) for n in (1, 2)]
    changed = moved(here, listing, lists={"nice": ["1|50", "2|0"]})
    assert changed == ["release 1", "update JobId=1 Nice=50", "release 2"]


def test_waiting_jobs_that_no_queue_takes_are_named(here):
    listing = [waiting("5", "work", 20, "9-00:00:00", 50), waiting("6", "work", 20, "1:00:00", 50)]
    done, changed = run_script(here, "move-jobs", [listing])
    assert (done.returncode, changed) == (1, ["update JobId=6 Partition=medium"])
    assert "5: no queue takes 20 cores for that long from it; it stays in work" in done.stderr


def test_waiting_jobs_are_moved_only_where_they_are_let_in(tmp_path):
    group = grp.getgrgid(os.getgid()).gr_name
    access = ({"groups": ["none-such"]}, {"accounts": ["-bad"], "groups": [group]}, {"qos": ["high"]}, {})
    queues = [{"name": f"q{n}", "cores": [1, 8], **({"access": each} if each else {})} for n, each in enumerate(access)]
    written(tmp_path, slurm_files(parse(json.dumps({"machine": {"cores": 8}, "queues": queues}))), "move-jobs")
    user = pwd.getpwuid(os.getuid()).pw_name
    listing = [waiting(n, place, 4, "1:00:00", 50) for n, place in enumerate(("old", "old", "old", "old", "q2", "q1"))]
    whose = ("{}|good|low", "{}|bad|high", "stranger|good|low", "{}|good|high", "{}|bad|low", "{}|good|low")
    lists = {"credentials": [f"{n}|{each.format(user)}" for n, each in enumerate(whose)]}
    changed = [line for line in moved(tmp_path, listing, lists=lists) if line.startswith("update")]
    assert changed == [f"update JobId={n} Partition=q{k}" for n, k in ((0, 1), (1, 2), (2, 3), (3, 1), (4, 3))]
    (tmp_path / "partitions.before").write_text(
        f"PartitionName=old AllowGroups={group} AllowAccounts=ALL DenyQos=low MaxNodes=UNLIMITED MaxTime=UNLIMITED "
        "TotalCPUs=8 State=UP Default=YES\n"
    )
    (tmp_path / "jobs.moved").unlink()  # those that were moved go back to where they were
    listing = [waiting(n, "q1", 4, "1:00:00", 50) for n in range(4)]
    done, changed = run_script(tmp_path, "move-jobs", [listing], "--back", lists=lists)
    assert done.returncode == 1
    assert [line for line in changed if line[:6] == "update"] == [f"update JobId={n} Partition=old" for n in (1, 3)]
    assert "2: no queue takes 4 cores for that long from it; it stays in q1" in done.stderr


SITE_CONF = """\
ClusterName=c # PriorityType=none
include nodes.conf
SCHEDULERTYPE=sched/builtin SlurmctldPort=6817
SchedulerParameters=defer,bf_interval=5,bf_window=99999,bf_max_job_test=10
SchedulerParameters=bf_min_age_reserve=60
JobSubmitPlugins=throttle
AccountingStorageEnforce=safe
PartitionName=DEFAULT State=DOWN \\
  MaxTime=30
include more/parts.conf
PartitionName=work Nodes=ALL Default=YES State=UP # the main one
# the end
"""


def confs(folder, text=SITE_CONF, files=None):
    """Return what new-conf writes for a slurm.conf with two included files: beside, after and back, in lines."""
    written(folder, files or hybrid(), "new-conf", "partitions.conf")
    (folder / "site" / "more").mkdir(parents=True)
    (folder / "site" / "nodes.conf").write_text("NodeName=n[1-12] CPUs=8\n")
    (folder / "site" / "more" / "parts.conf").write_text("PartitionName=small Nodes=ALL\nPartitionName=old Nodes=n1\n")
    new_conf(folder, text, "site")
    assert (folder / "slurm.conf.before").read_text() == text
    return [(folder / f"slurm.conf.{name}").read_text().splitlines() for name in ("beside", "after", "back")]


def test_slurm_conf_gets_the_new_partitions_beside_the_old_and_then_alone(tmp_path):
    beside, after, back = confs(tmp_path)
    rest = "bf_busy_nodes,bf_continue,bf_job_part_count_reserve=1,bf_max_time=60,bf_resolution=60,bf_window_linear=864"
    begin = ["ClusterName=c # PriorityType=none", "include nodes.conf", " SlurmctldPort=6817"]
    ours = [
        "PriorityType=priority/basic",
        "SchedulerType=sched/backfill",
        "AccountingStorageEnforce=safe,limits",
        "JobSubmitPlugins=throttle,lua",
        f"SchedulerParameters=defer,bf_interval=5,bf_window=99999,bf_max_job_test=10000,{rest}",
        "include partitions.conf",
    ]
    assert after == [*begin, *ours, "# the end"]
    old = ["PartitionName=old Nodes=n1 State=DRAIN", "PartitionName=work Nodes=ALL Default=YES State=DRAIN"]
    assert beside == [*begin, *ours, "PartitionName=DEFAULT State=DOWN    MaxTime=30", *old, "# the end"]
    closed = [line for line in back if line.endswith("State=DRAIN")]
    assert [re.match(r"PartitionName=(\w+) ", line)[1] for line in closed] == ["medium", "large", "pool"]
    assert back.index(closed[-1]) < back.index("PartitionName=DEFAULT State=DOWN    MaxTime=30")
    plugins, *rest = (line for line in back if line not in closed)
    assert plugins == "JobSubmitPlugins=throttle,lua"
    included = "PartitionName=small Nodes=ALL\nPartitionName=old Nodes=n1"
    former = SITE_CONF.replace("JobSubmitPlugins=throttle\n", "").replace("\\\n", " ")
    assert rest == former.replace("include more/parts.conf", included).rstrip().splitlines()
    assert (tmp_path / "partitions.gone").read_text().split() == ["old", "work"]
    assert (tmp_path / "partitions.new").read_text().split() == ["medium", "large", "pool"]


def test_what_an_included_file_includes_is_beside_it(here):
    """As Slurm has it, where it is in another folder than slurm.conf."""
    (here / "site" / "more").mkdir(parents=True)
    (here / "site" / "more" / "all.conf").write_text("include parts.conf\ninclude rest.conf\n")
    (here / "site" / "more" / "parts.conf").write_text("PartitionName=old Nodes=n1\n")
    (here / "site" / "more" / "rest.conf").write_text("MinJobAge=900\n")
    new_conf(here, "ClusterName=c\ninclude more/all.conf\n", here / "site")
    assert (here / "partitions.gone").read_text().split() == ["old"]
    assert f"include {here}/site/more/rest.conf" in (here / "slurm.conf.after").read_text().splitlines()


@pytest.mark.parametrize(
    ("present", "written"),
    [
        ("require_timelimit,all_partitions", "require_timelimit,lua,all_partitions"),
        ("partition", "lua,partition"),
        ("lua,partition", "lua,partition"),
    ],
)
def test_routing_goes_before_plugins_that_choose_a_partition(present, written, tmp_path):
    outputs = confs(tmp_path, SITE_CONF.replace("JobSubmitPlugins=throttle", f"JobSubmitPlugins={present}"))
    found = [[line for line in output if "JobSubmitPlugins" in line] for output in outputs]
    assert found == [[f"JobSubmitPlugins={written}"]] * 3


def test_closed_partitions_take_nothing_off_the_priorities_in_open_ones(tmp_path):
    """Slurm divides the factor of a partition by the largest one of all."""
    beside, *_ = confs(tmp_path, SITE_CONF + "PartitionName=last Nodes=n1 PriorityJobFactor=9 MaxTime=5\n")
    assert "PartitionName=last Nodes=n1 MaxTime=5 State=DRAIN" in beside


def test_slurm_conf_is_the_same_when_it_is_written_again_after_it_was_loaded(here):
    """Then the partitions.conf that the old one includes is ours already: its own is the one that was saved."""
    former = "PartitionName=small Nodes=n1\nPartitionName=old Nodes=n2\n"
    (here / "partitions.conf.before").write_text(former)
    (here / "site").mkdir()
    found = []
    for included in (former, hybrid()["partitions.conf"]):
        (here / "site" / "partitions.conf").write_text(included)
        new_conf(here, "ClusterName=c\ninclude partitions.conf\n", "site")
        found.append([(here / f"slurm.conf.{name}").read_text() for name in ("beside", "after", "back")])
        assert (here / "partitions.gone").read_text().split() == ["old"]
        assert (here / "partitions.kept").read_text().split() == ["small"]
    assert found[0] == found[1]


def test_partitions_keep_what_they_have_beside_and_what_ends_is_named(here):
    """Also words that are not known here, and what DEFAULT says; where nothing is DefaultTime above MaxTime."""
    old = (
        "PartitionName=DEFAULT DefMemPerCPU=2000 MaxTime=30 defaulttime=3-0 AllowAccounts=chem\n"
        "partitionname=small Nodes=ALL AllowGroups=a,b Default=YES Novelty=1 QOS=own\n"
        "PartitionName=gone Nodes=ALL AllowQos=high Hidden=YES\n"
    )
    for _ in range(2):
        printed = new_conf(here, old, "site")
        lines = (here / "partitions.conf").read_text().splitlines()
        found = {line.split()[0].partition("=")[2]: line for line in lines if line.startswith("Part")}
        kept = {"DefMemPerCPU=2000", "Default=YES", "Novelty=1", "DefaultTime=1-00:00:00"}
        assert kept | {"defaulttime=3-0"} & {*found["small"].split()} == kept
        assert kept <= {*found["small"].split()}
        assert "AllowGroups" not in found["small"]
        assert " DefMemPerCPU=2000" in found["medium"]
        assert "AllowAccounts" not in found["medium"]
        for said in (
            "small: AllowGroups=a,b becomes none",
            "small: AllowAccounts=chem becomes none",
            "small: QOS=own becomes small: give it the limits of own that are to stay",
            f"ends: PartitionName=gone {old.splitlines()[0].partition(' ')[2]} Nodes=ALL AllowQos=high Hidden=YES",
        ):
            assert said in printed


def test_slurm_conf_after_an_earlier_export_loses_its_partitions(here):
    (here / "site").mkdir()
    written(here / "site", hybrid(HYBRID.replace("name: small", "name: tiny")), "partitions.conf")
    new_conf(here, "ClusterName=c\ninclude partitions.conf\n", "site")
    after = (here / "slurm.conf.after").read_text()
    assert (after.count("include partitions.conf"), after.count("PartitionName")) == (1, 0)
    assert (here / "partitions.gone").read_text().split() == ["tiny"]


@pytest.mark.parametrize(("days", "window", "step"), [(7, 10080, 3024), (90, 43200, 12960)])
def test_slurm_backfills_as_far_as_the_longest_walltime(days, window, step):
    files = hybrid(HYBRID.replace("[0, 48h]", f"[0, {days}d]"))
    assert f'"bf_window": "{window}", "bf_window_linear": "{step}"' in files["new-conf"]
    assert f"bf_window={window},bf_window_linear={step}`" in files["PLAN.md"]


def test_nothing_is_said_of_backfilling_where_there_is_none():
    assert "bf_" not in hybrid(HYBRID.replace("order: fcfs", "backfill: false"))["PLAN.md"].split("## 1")[1]


def test_a_limit_of_seconds_is_the_whole_minutes_that_slurm_makes_of_it():
    files = slurm_files(
        parse("{machine: {cores: 8}, queues: [{name: a, walltime: [0, 90]}, {name: b, walltime: [90, 1h]}]}")
    )
    assert "PartitionName=a Nodes=ALL MaxTime=0-00:02:00" in files["partitions.conf"]
    assert 'name = "a", least = 1, most = math.huge, above = 0, upto = 120' in files["job_submit.lua"]
    assert 'name = "b", least = 1, most = math.huge, above = 120, upto = 3600' in files["job_submit.lua"]
    assert "1m30s of a is 2 minutes, to the routing and to the partition" in files["PLAN.md"]


@needs_lua
@pytest.mark.parametrize(("state", "verdict"), [(3, "0"), (2, "-1")])
def test_lua_takes_no_list_that_holds_a_closed_partition(state, verdict, tmp_path):
    what = f"slurm_job_submit(one, {{ other = {{ state_up = {state} }} }}, 0)"
    job = {"num_tasks": 4, "partition": "small,other", "time_limit": 60}
    assert called(tmp_path, hybrid()["job_submit.lua"], what, job) == [[verdict]]


@needs_lua
@pytest.mark.parametrize("site", [True, False])
def test_no_list_holds_a_partition_that_ends_while_the_former_ones_come_back(site, tmp_path):
    """The site's own script, if it had one, decides on all else."""
    text, path = hybrid()["job_submit.back.lua"], tmp_path / "job_submit.former.lua"
    if site:
        refuse = "function slurm_job_{}({}) return one.num_tasks == 9 and {} or slurm.SUCCESS end\n"
        path.write_text(refuse.format("submit", "one", 7) + refuse.format("modify", "one, other", 8) + "return 0\n")
    text = text.replace("/etc/slurm/job_submit.former.lua", str(path))
    parts = "{ small = { state_up = 3 }, medium = { state_up = 2 }, other = { state_up = 2 } }"
    what = f"slurm_job_submit(one, {parts}, 0), slurm_job_modify(one, other, {parts}, 7)"
    rows = [
        ({"partition": "small,medium"}, ["-1", "2002"]),
        ({"partition": "small,other"}, ["0", "0"]),
        ({"num_tasks": 3}, ["0", "0"]),
        ({"num_tasks": 9}, ["7", "8"] if site else ["0", "0"]),
    ]
    check_rows(called(tmp_path, text, what, *(job for job, _ in rows)), rows)


@needs_lua
def test_the_sites_own_script_goes_before_the_routing(tmp_path):
    """What it refuses is refused, and what it makes of a job is routed; the same where a user changes a job."""
    (tmp_path / "theirs.lua").write_text(
        "function slurm_job_submit(job) job.num_tasks = (job.num_tasks or 1) * 2 return job.num_tasks == 8 and 7 end\n"
        "function slurm_job_modify(job) return job.partition == 'small' and 8 or slurm.SUCCESS end\nreturn 0\n"
    )
    text = hybrid()["job_submit.lua"].replace("/etc/slurm/job_submit.site.lua", str(tmp_path / "theirs.lua"))
    rows = [(4, ["7", "8", "nil"]), (1, ["0", "2", "small"]), (12, ["0", "24", "medium"])]
    jobs = ({"num_tasks": tasks, "time_limit": 60} for tasks, _ in rows)
    check_rows(called(tmp_path, text, f"{SUBMIT}, one.num_tasks, one.partition", *jobs), rows)
    record = {"user_id": 7, "partition": "medium", "min_cpus": 20, "min_nodes": 1, "time_limit": 60, "job_state": 0}
    rows = [("small", ["8"]), ("pool", ["2002"]), ("medium", ["0"])]
    changes = (({"partition": partition}, record) for partition, _ in rows)
    check_rows(called(tmp_path, text, "slurm_job_modify(one, other, {}, 7)", *changes), rows)


def test_the_sites_own_script_is_kept_once_beneath_several_exports(tmp_path):
    """new-conf keeps what was there for the undo, and what is the site's own for the routing."""
    said, theirs = {}, "function slurm_job_submit(job) job.partition = 'old' end\n"
    for name, there in (("site", theirs), ("export", hybrid()["job_submit.lua"])):
        folder = tmp_path / name
        folder.mkdir()
        written(folder, hybrid(), "new-conf", "partitions.conf")
        (folder / "job_submit.lua.before").write_text(there)
        said[name] = new_conf(folder, "JobSubmitPlugins=lua\nPartitionName=old Nodes=ALL\n", tmp_path)
    assert (tmp_path / "site" / "job_submit.site.lua").read_text() == theirs
    assert (tmp_path / "site" / "job_submit.former.lua").read_text() == theirs
    assert "job_submit.lua: it names old, which end" in said["site"]
    assert not (tmp_path / "export" / "job_submit.site.lua").exists()
    assert "Written by qconf export" in (tmp_path / "export" / "job_submit.former.lua").read_text()


@needs_lua
def test_lua_lets_users_move_their_jobs_where_they_may_submit_them(tmp_path):
    own = {"user_id": 7001, "partition": "small", "min_cpus": 8, "min_nodes": 1, "time_limit": 60, "job_state": 0}
    rows = [
        ({"partition": "pool"}, {}, 7001, ["2002"]),
        ({"partition": "pool"}, {}, 0, ["0"]),
        ({"partition": "pool"}, {}, 64030, ["0"]),
        ({"partition": "medium"}, {}, 7001, ["2002"]),
        ({"partition": "small,medium"}, {}, 7001, ["2002"]),
        ({"partition": "medium", "num_tasks": 20}, {}, 7001, ["0"]),
        ({"partition": "other"}, {}, 7001, ["0"]),
        ({"min_cpus": 20}, {}, 7001, ["2002"]),
        ({"time_limit": 2000}, {}, 7001, ["2002"]),
        ({"time_limit": 4294967295}, {}, 7001, ["2002"]),
        ({"time_limit": 30}, {}, 7001, ["0"]),
        ({"time_limit": 30}, {"job_state": 1, "partition": "other"}, 7001, ["0"]),
        ({"time_limit": 30}, {"partition": "pool"}, 7001, ["0"]),
        ({}, {"partition": "pool"}, 7001, ["0"]),
    ]
    changes = ((change, own | record | {"by": uid}) for change, record, uid, _ in rows)
    check_rows(
        called(tmp_path, hybrid()["job_submit.lua"], "slurm_job_modify(one, other, {}, other.by)", *changes), rows
    )


SUM = """\
machine: {name: m, cores: 64}
order: >-
  50 * queue_priority + min(eligible_time, 86400) + (72 if walltime <= 3600 else 36 if walltime <= 7200 else 0)
  + (9 if ncpus <= 4 else 0)
queues:
  - {name: day, cores: [1, 64], walltime: [0, 10h], priority: 3}
  - {name: late, cores: [1, 64], walltime: [10h, 20h], priority: 1}
"""
OFFSET = 0x80000000


@needs_lua
def test_lua_takes_points_from_what_comes_later_in_the_order(tmp_path):
    rows = [
        ({"num_tasks": 4, "time_limit": 60}, 0),
        ({"num_tasks": 5, "time_limit": 60}, 9),
        ({"num_tasks": 5, "time_limit": 61}, 9 + 36),
        ({"num_tasks": 5, "time_limit": 121}, 9 + 72),
        ({"num_tasks": 5, "time_limit": 700}, 9 + 72 + 100),
        ({"num_tasks": 5, "time_limit": 700, "partition": "late,other"}, 9 + 72 + 100),
        ({"num_tasks": 1, "time_limit": 60, "nice": OFFSET + 5}, 5),
        ({"num_tasks": 1}, 72),  # for as long as the queue takes
    ]
    found = called(
        tmp_path, slurm_files(parse(SUM))["job_submit.lua"], f"{SUBMIT}, one.nice", *(job for job, _ in rows)
    )
    check_rows(found, [(job, ["0", str(OFFSET + nice)]) for job, nice in rows])


@needs_lua
def test_lua_keeps_what_it_took_beside_the_users_own_nice_value(tmp_path):
    record = {"user_id": 7, "partition": "day", "min_cpus": 2, "min_nodes": 1, "time_limit": 600, "job_state": 0}
    rows = [
        ({"nice": OFFSET}, 0, 7, OFFSET + 72),
        ({"nice": OFFSET + 7}, 0, 7, OFFSET + 79),
        ({"min_cpus": 8}, 0, 7, OFFSET + 81),
        ({"time_limit": 60}, 0, 7, OFFSET),
        ({"time_limit": 60, "nice": OFFSET + 2}, 30, 7, OFFSET + 2),
        ({"time_limit": 700, "partition": "late"}, 30, 7, OFFSET + 30 + 72 + 100),
        ({"min_cpus": 8}, 30, 0, 0),  # of an administrator
    ]
    changes = ((change, record | {"nice": OFFSET + 72 + own, "by": uid}) for change, own, uid, _ in rows)
    what = "slurm_job_modify(one, other, {}, other.by), one.nice or 0"
    found = called(tmp_path, slurm_files(parse(SUM))["job_submit.lua"], what, *changes)
    check_rows(found, [(*row, ["0", str(nice)]) for *row, nice in rows])


def test_the_queues_of_a_sum_are_read_back(tmp_path):
    written(tmp_path, slurm_files(parse(SUM)))
    found = slurm_read(tmp_path, "NodeName=n[1-8] CPUs=8\ninclude partitions.conf\n").config
    assert found.names == ("day", "late")
    assert Plan(tmp_path).queues == [("day", 1, 1), ("late", 1, 601)]


def test_running_limits_are_qos_lines():
    more = HYBRID.replace("max_run: 6", "max_run: 6, max_run_cores: 32, max_user_run: 2, max_user_cores: 16")
    limits = ("GrpJobs=6", "GrpTRES=cpu=32", "MaxJobsPerUser=2", "MaxTRESPerUser=cpu=16")
    lines = hybrid(more)["qos.sacctmgr"].splitlines()
    assert lines[:5] == ["add qos small", *(f"modify qos small set {limit}" for limit in limits)]
    assert "modify qos small set GrpJobs=6\nmodify qos small set GrpTRES=cpu=-1\n" in hybrid()["qos.sacctmgr"]


def test_the_limits_of_a_queue_named_normal_are_not_those_of_the_qos_that_all_jobs_have():
    text = HYBRID.replace("name: small", "name: normal")
    files = hybrid(text)
    assert files["qos.sacctmgr"].splitlines()[0] == "add qos normal-queue"
    assert " QOS=normal-queue " in files["partitions.conf"]
    with pytest.raises(ExportError, match="one QOS to Slurm"):
        hybrid(text.replace("name: medium", "name: normal-queue"))


@pytest.mark.parametrize(
    ("old", "new", "nodes", "reason"),
    [
        ("", "", None, "name them with --nodes"),
        ("", "", "n[1-11]", "11 nodes of 8 cores are not the machine's 96"),
        (HYBRID, "{machine: {cores: 8}, queues: [{name: a}]}", "n[1-2]", "2 nodes of 1 cores are not the machine's 8"),
        (HYBRID, SUM.replace("priority: 1}", "priority: 1.01}"), None, "50 times the priority of late"),
        ("order: fcfs", "order: lxf", "n[1-12]", "weighted sum"),
        ("name: small", "name: pool", "n[1-12]", "something else"),
        ("name: small", "name: default", "n[1-12]", "something else"),
        ("name: small", "name: Medium", "n[1-12]", "differ in case only"),
        ("name: small", "name: é", "n[1-12]", "Rename it"),
    ],
)
def test_what_is_not_exportable(old, new, nodes, reason):
    with pytest.raises(ExportError, match=reason):
        exporter("slurm").of(**({"nodes": nodes} if nodes else {})).export(parse(HYBRID.replace(old, new, 1)))


def test_a_pool_of_queues_with_reservations_alone():
    text = "{machine: {cores: 8}, mode: hybrid, queues: [{name: a, reservation: true}], pool: {cores: 8, entry: move}}"
    lines = slurm_files(parse(text), nodes=NODES[:8])["partitions.conf"].splitlines()
    assert [line.split()[1] for line in lines if line.startswith("PartitionName")] == ["Nodes=nid[001-008]"] * 2


@pytest.mark.parametrize(
    ("pinged", "up", "backups"),
    [
        ("primary) at one is UP", True, []),
        ("primary) at one is DOWN\nSlurmctld(backup) at two is UP", False, ["two"]),
        ("primary) at one is UP\nSlurmctld(backup1) at a is DOWN\nSlurmctld(backup2) at b is UP", True, ["b"]),
    ],
)
def test_a_backup_is_not_the_controller_that_is_restarted(pinged, up, backups, here, monkeypatch):
    (here / "scontrol").write_text(f"#!/bin/sh\ncat <<END\nSlurmctld({pinged}\nEND\n")
    (here / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}:{os.environ['PATH']}")
    script = runpy.run_path(str(here / "load-conf"))
    assert (script["up"](), script["backups"]()) == (up, backups)


def test_points_of_an_earlier_export_make_way_and_come_back(tmp_path):
    """Jobs have those of the sum that they were submitted under; a nice value of the user's own stays."""
    former = slurm_files(parse(SUM.replace("72 if", "500 if").replace("50 *", "60 *")))["job_submit.lua"]
    (tmp_path / "job_submit.lua.before").write_text(former)
    written(tmp_path, slurm_files(parse(SUM)), "move-jobs", "job_submit.lua")
    row = "PartitionName={} MaxNodes=UNLIMITED MaxTime=UNLIMITED TotalCPUs=64 State=UP Default={}\n"
    (tmp_path / "partitions.before").write_text(row.format("day", "YES") + row.format("late", "NO"))
    listing = [waiting(n, "day", 2, "10:00:00", 90 - n, priority=100) for n in range(3)]
    listing += [waiting(3, "late", 8, "12:00:00", 50, priority=100)]
    listing += [waiting(4, "day", 2, "10:00:00", 50, "JobHeldUser", priority=0)]  # which a nice value would release

    def changed(values, *arguments):
        lists = {"nice": [f"{job}|{value}" for job, value in enumerate(values)]}
        return moved(tmp_path, listing, *arguments, lists=lists, priority="multifactor")

    there, ours = [500, 7, 72, 500 + 9 + 120, 500], [72, 7, 72, 181, 72]
    assert changed(there) == ["update JobId=0 Nice=72", "update JobId=3 Nice=181"]
    assert changed(ours) == []  # run again
    assert changed(ours, "--back") == [f"update JobId={n} Nice={nice}" for n, nice in ((0, 500), (2, 500), (3, 629))]
    (tmp_path / "job_submit.lua").write_text(hybrid()["job_submit.lua"])  # no sum: first come, first served
    assert changed(there) == ["update JobId=0 Nice=0", "update JobId=3 Nice=0"]


def test_a_script_tries_again_where_slurm_says_so(here):
    busy = '[ -e "$HERE/once" ] || { touch "$HERE/once"; echo "being set, try again in a bit" >&2; exit 1; }'
    job = waiting("2", "small", 8, "1:00:00", 99999)
    done, changed = run_script(here, "qconf-promote", [[job]], scontrol=busy)
    assert (done.returncode, done.stderr, len(changed)) == (0, "", 2)
