"""Every kind of export: loaded by its plan, compared with what was intended, tried, and rolled back."""

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.nodes import read_nodes
from qconf.export.pbs.init import derive
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.test_reservation_delay import DELAYED
from tests.qconf.export.sites import HYBRID
from tests.real_pbs.conftest import AS_NODES, Loaded, become, give
from tests.servers.pbs import PRINTED, follow, held, install
from tests.servers.rehearsal import Rehearsal, run_blocks

SHARED = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
order: ORDER
queues:
  - {name: small, cores: [1, 16], walltime: [0, 2h], priority: 40, starvation: 24h, max_run: 6}
  - {name: long, cores: [1, 16], walltime: [2h, 24h], priority: 80, max_user_run: 2, max_run_cores: 48}
  - {name: large, cores: [17, 96], walltime: [0, 48h], priority: 100, starvation: 12h, max_user_cores: 96}
"""
PARTED = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
mode: partitioned
order: lxf
queues:
  - {name: small, cores: [1, 16], walltime: [0, 24h], priority: 40, partition: 32}
  - {name: medium, cores: [17, 64], walltime: [0, 24h], priority: 80, partition: 64, max_run: 4}
"""
TIERS = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
order: lxf
queues:
  - {name: urgent, cores: [1, 16], walltime: [0, 10m], tier: 2}
  - {name: express, cores: [1, 96], walltime: [0, 1h], tier: 1, preempted: MODE}
  - {name: kept, cores: [1, 8], walltime: [1h, 2h], priority: 300}
  - {name: normal, cores: [1, 96], walltime: [1h, 24h], priority: 600, preempted: MODE}
"""
ADVANCE = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
mode: partitioned
order: fcfs
queues:
  - {name: small, cores: [1, 32], walltime: [0, 24h], priority: 40, partition: 32}
  - {name: medium, cores: [33, 64], walltime: [0, 24h], priority: 80, partition: 64}
  - {name: large, cores: [65, 96], walltime: [0, 24h], priority: 100, reservation: true}
"""
FAMILY = (
    "(1 + (eligible_time / (54000 * (max(walltime, 1) / 36000) ** 0.8)) ** 2.5 * (ncpus / 12.5) ** 1.2) / "
    "(max(walltime, 1) * ncpus ** 0.7) * queue_priority"
)
SITE = listing(
    """
small: Priority = 50; max_queued = "[o:PBS_ALL=500],[u:PBS_GENERIC=50]"; \
max_run = "[o:PBS_ALL=12],[u:PBS_GENERIC=5],[u:bob=2]"; max_run_res.ncpus = "[o:PBS_ALL=64],[u:PBS_GENERIC=48]"; \
max_run_soft = "[o:PBS_ALL=10],[u:PBS_GENERIC=4]"; acl_hosts = pbshost; resources_max.ncpus = 16; \
resources_max.walltime = 24:00:00
old: resources_min.ncpus = 17; resources_max.ncpus = 96
route: queue_type = Route; route_destinations = small; route_destinations += old
""",
    *("default_queue = route", "eligible_time_enable = True", 'max_run = "[o:PBS_ALL=500],[u:PBS_GENERIC=90]"'),
)
ACCESS = f"{SITE}set queue small acl_user_enable = True, acl_users = alice\nset queue small acl_users += bob\n"
BOUND = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
nodes:
  - {name: cpu, count: 7, cores: 8, memory: 16gb, hosts: "n[01-07]"}
  - {name: gpu, count: 3, cores: 8, memory: 32gb, gpus: 2, hosts: "n[08-10]"}
  - {name: bigmem, count: 2, cores: 8, memory: 256gb, hosts: "n[11-12]"}
queues:
  - {name: work, cores: [1, 56], walltime: [0, 24h], nodes: [cpu]}
  - {name: gpu, cores: [1, 24], walltime: [0, 24h], nodes: [gpu], exclusive: true}
  - {name: every, cores: [1, 96], walltime: [0, 2h]}
"""
TYPES = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
nodes:
  - {name: cpu, count: 8, cores: 8, memory: 16gb, hosts: "n[01-08]"}
  - {name: gpu, count: 4, cores: 8, memory: 32gb, gpus: 2, hosts: "n[09-12]"}
mode: partitioned
queues:
  - {name: work, cores: [1, 48], walltime: [0, 24h], priority: 10, partition: {cpu: 8, gpu: 2}}
  - {name: gpu, cores: [1, 24], walltime: [0, 24h], priority: 20, partition: {gpu: 2}, nodes: [gpu]}
"""
KINDS = {
    **{order: (SHARED.replace("ORDER", order), "", {}) for order in ("fcfs", "sjf", "ljf", "lxf", "wfp3")},
    "family": (SHARED.replace("ORDER", FAMILY), "", {}),
    "ratios": (SHARED.replace("ORDER", FAMILY).replace("80", "233.28").replace("100", "512.7"), "", {}),
    "plain": (SHARED.replace("ORDER", "fcfs") + "backfill: false\n", "", {}),
    "reserve": (DELAYED, "", {}),
    "partitioned": (PARTED, "", {}),
    "limits": (PARTED, "", {"binding": "limits"}),
    "hybrid": (HYBRID, "", {}),
    "combined": (HYBRID.replace("entry: move", "entry: move, placement: combined, starving_first: true"), "", {}),
    "site": (SHARED.replace("ORDER", "lxf"), SITE, {}),
    "site-hybrid": (HYBRID, SITE, {}),
    "above": (SHARED.replace("ORDER", "lxf"), SITE.replace("Priority = 50", "Priority = 500"), {}),
    "tiers": (TIERS.replace("MODE", "suspend"), "set sched preempt_order = SR\n", {}),
    "whole": (PARTED.replace("cores_per_node: 8", "cores_per_node: 8, whole_nodes: true"), "", {}),
    "unbounded": (
        SHARED.replace("ORDER", "fcfs").replace("[2h, 24h]", "[2h, null]").replace("[0, 48h]", "[0, null]"),
        "",
        {},
    ),
    "bound": (BOUND, "", {}),
    "types": (TYPES, "", {}),
    "advance": (ADVANCE, "", {}),
    "sorted": (
        SHARED.replace("ORDER", "lxf"),
        "set sched job_sort_formula_threshold = 5\nset sched job_sort_formula = ncpus\n",
        {},
    ),
    "stopped": (SHARED.replace("ORDER", "lxf"), "set server scheduling = False\n", {}),
    "access": (
        SHARED.replace("ORDER", "fcfs")
        .replace("max_run: 6", "access: {users: [alice, bob]}")
        .replace("max_user_run: 2", "access: {users: [alice, bob]}"),
        ACCESS,
        {},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_loaded_compared_and_rolled_back(kind, fresh, tmp_path, record_property):
    text, printed, options = KINDS[kind]
    become(fresh, printed)
    export = exporter("pbs")(current=held(fresh), nodes=AS_NODES, **options).export(parse(text))
    plan = install(export.files, fresh, tmp_path)
    result = follow(plan, fresh)
    record_property("statements", result.statements)
    record_property("examples", result.examples)
    print(f"{kind}: {result.statements} statements, {result.blocks} blocks, {result.examples} examples")
    assert result.problems == []
    assert result.rolled_back
    assert result.examples == len(plan.examples) > 0


def test_jobs_run_on_the_nodes_of_their_queue_and_go_back_with_the_undo(fresh, tmp_path):
    """GPUs and memory are counted, those of one queue have nodes alone; jobs that wait ask for other nodes then."""
    config = parse(BOUND)
    there = "create resource ngpus type = long, flag = nh\ncreate queue gpu queue_type = e, enabled = t, started = t\n"
    become(fresh, there)
    give(fresh, config)
    fresh.run("qmgr -c 'set server scheduling = False'")
    before = fresh.run(f"{PRINTED}; qmgr -c 'print node @default'").stdout
    fresh.run("pbsnodes -av > pbsnodes; pbsnodes -av -F json > pbsnodes.json")
    for name in ("pbsnodes", "pbsnodes.json"):
        (tmp_path / name).write_text(fresh.run(f"cat {name}").stdout)
    nodes = read_nodes(str(tmp_path / "pbsnodes"))
    assert nodes == read_nodes(str(tmp_path / "pbsnodes.json"))
    early = fresh.qsub("-q gpu -l select=1:ncpus=1")
    files = exporter("pbs")(current=held(fresh), nodes=nodes).export(config).files
    plan, result = install(files, fresh, tmp_path), Rehearsal("")
    loaded = Loaded(fresh, plan, result.problems)
    run_blocks(plan.steps, fresh, result)
    assert result.problems == []
    fresh.run("qmgr -c 'set server scheduling = True'")
    jobs = [fresh.qsub("-q gpu -l select=1:ncpus=1:ngpus=1") for _ in range(4)]
    plain = [loaded.submit(queue="work", cores=8, walltime=60) for _ in range(8)]
    assert loaded.until(lambda: loaded.states(*jobs) == ["R", "R", "Q", "Q"]), (jobs, loaded.states(*jobs))
    assert loaded.until(lambda: loaded.states(*plain) == ["R"] * 7 + ["Q"]), loaded.states(*plain)
    assert [loaded.nodes(job) for job in (early, *jobs[:2])] == [{"n08"}, {"n09"}, {"n10"}]
    assert set().union(*(loaded.nodes(job) for job in plain[:7])) == {f"n{number:02}" for number in range(1, 8)}
    again = derive(held(fresh), nodes=read_nodes_of(fresh, tmp_path))
    assert again.config.nodes == config.nodes
    of_queues = [[(queue.nodes, queue.exclusive) for queue in each.queues] for each in (again.config, config)]
    assert of_queues[0] == of_queues[1]
    assert loaded.attribute(jobs[3], "Resource_List.place") == "excl"
    assert "q_gpu=True" in loaded.attribute(jobs[3], "schedselect")
    assert loaded.attribute(early, "queue") == "gpu"
    fresh.run(f"qhold {jobs[3]}; qdel {' '.join([early, *jobs[:3], *plain])}")
    assert loaded.until(lambda: loaded.states(*plain) == ["F"] * 8)
    fresh.run(f"qdel -x -W force {' '.join([early, *jobs[:3], *plain])}")  # in the history they would keep resources
    run_blocks(plan.undo, fresh, result)
    assert result.problems == []
    assert loaded.attribute(jobs[3], "queue") == "gpu"
    assert "q_gpu" not in loaded.attribute(jobs[3], "schedselect")
    assert "excl" not in loaded.attribute(jobs[3], "Resource_List.place")
    after = fresh.run(f"{PRINTED}; qmgr -c 'print node @default'").stdout
    assert after == before


def test_jobs_of_partitions_of_types_run_on_their_nodes_up_to_a_limit_of_gpus(fresh, loading, tmp_path):
    """The nodes of partitions are read back as queues that are bound to them."""
    fresh.run("qmgr -c 'create resource ngpus type = long, flag = nh'")
    give(fresh, parse(TYPES))
    text = TYPES + "throttles:\n  - {each: user, max_run_resources: {gpus: 3}}\n"
    with loading(text) as loaded:
        words = "-q {} -l select={} -l walltime=1:0:0"
        plain = [fresh.qsub(words.format("work", "1:ncpus=8"), user="bob") for _ in range(8)]
        own = fresh.qsub(words.format("gpu", "2:ncpus=8:ngpus=1"), user="bob")
        jobs = [fresh.qsub(words.format("work", "1:ncpus=1:ngpus=1")) for _ in range(4)]
        assert loaded.until(lambda: loaded.states(*jobs) == ["R", "R", "R", "Q"]), loaded.states(*jobs)
        assert loaded.until(lambda: loaded.states(own, *plain) == ["R"] * 9), loaded.states(own, *plain)
        assert set().union(*(loaded.nodes(job) for job in jobs[:3])) <= {"n09", "n10"}
        assert loaded.nodes(own) == {"n11", "n12"}
        assert set().union(*(loaded.nodes(job) for job in plain)) == {f"n{number:02}" for number in range(1, 9)}
        assert "ngpus" in loaded.attribute(jobs[3], "comment")
        again = derive(held(fresh), nodes=read_nodes_of(fresh, tmp_path)).config
        wanted = parse(text)
        assert (again.mode, again.throttles) == ("shared", wanted.throttles)
        count = {each.name: each.count for each in again.nodes}
        assert [sum(count[name] for name in queue.nodes) for queue in again.queues] == [10, 2]


def test_what_an_earlier_export_keeps_for_short_jobs_ends(fresh, loading):
    """A job that waits in its queue goes to the Route queue."""
    fresh.run("qmgr -c 'set server managers += alice@*'")
    reserve = "pbs_rsub -N shortpool_7200_1 -R $(date --date=tomorrow +%Y%m%d%H%M) -D 3600 -l select=2:ncpus=1"
    fresh.run(reserve, user="alice")
    assert fresh.run("for i in 1 2 3 4 5 6 7 8 9; do pbs_rstat | grep CO && break; sleep 1; done").stdout
    (queue,) = fresh.run("pbs_rstat -F | sed -n 's/^queue = //p'").stdout.split()
    job = fresh.qsub(f"-q {queue} -l ncpus=1 -l walltime=9", seconds=1)
    with loading(SHARED.replace("ORDER", "fcfs")) as loaded:
        assert "shortpool_" not in fresh.run("pbs_rstat -F").stdout
        assert loaded.until(lambda: loaded.states(job) == ["F"])
        assert loaded.attribute(job, "queue") == "small"


KEEPS = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
nodes:
  - {name: cpu, count: 10, cores: 8, memory: 16gb, hosts: "n[01-10]"}
  - {name: gpu, count: 2, cores: 8, memory: 16gb, gpus: 2, kept_per_gpu: 2, hosts: "n[11-12]"}
queues:
  - {name: work, cores: [1, 96], walltime: [0, 24h]}
"""


def test_jobs_without_gpus_leave_cores_to_those_with_gpus(fresh, loading, tmp_path):
    """Also those that waited before; after the undo they ask for what they asked for."""
    fresh.run("qmgr -c 'create resource ngpus type = long, flag = nh'")
    give(fresh, parse(KEEPS))
    early = [fresh.qsub(f"-h -q workq -l {words} -l walltime=1:0:0") for words in ("select=2:ncpus=4", "ncpus=3")]
    with loading(KEEPS) as loaded:
        waited = ["2:ncpus=4:cores_without_gpus=4", "1:ncpus=3:cores_without_gpus=3"]
        assert [loaded.attribute(job, "Resource_List.select") for job in early] == waited
        own = ["ncpus=8", *["select=1:ncpus=8"] * 9, *["select=1:ncpus=4:cores_without_gpus=0"] * 3]
        jobs = [fresh.qsub(f"-q work -l {words} -l walltime=1:0:0") for words in own]
        of_gpus = [fresh.qsub("-q work -l select=1:ncpus=4:ngpus=2 -l walltime=1:0:0", user="bob") for _ in range(2)]
        assert loaded.until(lambda: loaded.states(*jobs, *of_gpus) == ["R"] * 12 + ["Q", "R", "R"])
        assert {*loaded.nodes(jobs[10]), *loaded.nodes(jobs[11])} == {"n11", "n12"}
        assert "cores_without_gpus" in loaded.attribute(jobs[12], "comment")
        again = derive(held(fresh), nodes=read_nodes_of(fresh, tmp_path)).config
        assert again.nodes == parse(KEEPS).nodes
        fresh.run(f"qdel -W force {' '.join([*jobs, *of_gpus])}; qselect -x -s F | xargs -r qdel -x -W force")
        loaded.undo()
        (problem,) = loaded.problems
        assert "obj=cores_without_gpus svr=default: Resource busy on job" in problem
        assert [loaded.attribute(job, "Resource_List.select") for job in early] == ["2:ncpus=4", "1:ncpus=3"]
        fresh.run("qselect -x | xargs -r qdel -x -W force; sleep 0.5")
        loaded.problems.clear()
        run_blocks(loaded.plan.undo[-1:], fresh, Rehearsal("", problems=loaded.problems))  # as the plan says


def read_nodes_of(server, folder):
    (folder / "again").write_text(server.run("pbsnodes -av").stdout)
    return read_nodes(str(folder / "again"))


def test_what_an_earlier_export_installed_is_taken_off_and_comes_back(fresh, loading):
    """The script of a pool and the hook of cores that are kept, and what waiting jobs ask for by it."""
    there = (
        "create resource cores_without_gpus type=long, flag=nh\n"
        "create queue small queue_type=Execution,enabled=True,started=True\n"
        "create queue small_p queue_type=Execution,enabled=True,started=True\n"
    )
    own = "ls /usr/local/sbin/qconf-promote /etc/cron.d/qconf-promote; qmgr -c 'print hook qconf_kept' | grep -v ^#"
    fresh.run("mkdir -p /etc/cron.d; echo 1 > /usr/local/sbin/qconf-promote; echo 2 > /etc/cron.d/qconf-promote")
    fresh.write("old.py", "import pbs\npbs.event().accept()\n")
    fresh.run(
        "qmgr -c 'create hook qconf_kept'; qmgr -c 'set hook qconf_kept event = \"queuejob,modifyjob\"'; "
        "qmgr -c 'import hook qconf_kept application/x-python default old.py'; "
        "qmgr -c 'create resource cores_without_gpus type=long, flag=nh'"
    )
    before = fresh.run(own).stdout
    assert "import hook qconf_kept application/x-python base64 -" in before
    select = "-l select=1:ncpus=1:cores_without_gpus=1"
    job = fresh.qsub(f"-h {select} -l walltime=9", seconds=1)
    try:
        with loading(SHARED.replace("ORDER", "fcfs"), printed=there) as loaded:
            assert "No such file" in fresh.run(own).stdout
            assert "create hook" not in fresh.run(own).stdout
            assert loaded.attribute(job, "Resource_List.select") == "1:ncpus=1"
            loaded.undo()
            assert fresh.run(own).stdout == before
    finally:
        fresh.run("qmgr -c 'delete hook qconf_kept'; rm -f /usr/local/sbin/qconf-promote /etc/cron.d/qconf-promote")
