"""Cores that jobs without GPUs leave to others, as partitions with MaxCPUsPerNode, and back."""

import pytest

from qconf.config import dump, parse
from qconf.errors import ExportError
from tests.qconf.export.sites import slurm_files, slurm_read, written
from tests.qconf.export.slurm.test_scripts import called, check_rows, needs_lua

SITE = """machine: {name: mixed, cores: 256, cores_per_node: 32}
order: 100 * queue_priority + min(eligible_time, 86400)
nodes:
  - {name: cpu, count: 6, cores: 32, memory: 191000, hosts: "cpu[1-6]"}
  - {name: gpu, count: 2, cores: 32, memory: 191000, gpus: 4, kept_per_gpu: 2, hosts: "gpu[1-2]"}
queues:
  - {name: work, cores: [1, 256], walltime: [0, 48h], priority: 2, max_run: 20}
  - {name: deep, cores: [1, 64], walltime: [0, 48h], nodes: [gpu]}
  - {name: plain, cores: [1, 64], walltime: [0, 48h], nodes: [cpu]}
"""
NODES = """ClusterName=mixed
NodeName=cpu[1-6] CPUs=32 RealMemory=191000
NodeName=gpu[1-2] CPUs=32 RealMemory=191000 Gres=gpu:4
include partitions.conf
"""


def exported(text=SITE):
    return slurm_files(parse(text))


def test_partitions_of_jobs_without_gpus():
    files = exported()
    lines = [line.split(" MaxTime=2-00:00:00 ") for line in files["partitions.conf"].splitlines() if "=2-" in line]
    assert [line[0] for line in lines] == [
        "PartitionName=work Nodes=ALL",
        "PartitionName=work-plain Nodes=cpu[1-6]",
        "PartitionName=work-24 Nodes=gpu[1-2]",
        "PartitionName=deep Nodes=gpu[1-2]",
        "PartitionName=deep-24 Nodes=gpu[1-2]",
        "PartitionName=plain Nodes=cpu[1-6]",
    ]
    assert [line[1].startswith("MaxCPUsPerNode=24 ") for line in lines] == [False, False, True, False, True, False]
    assert [line[1].count("QOS=work") for line in lines] == [1, 1, 1, 0, 0, 0]
    assert '["work-24"] = true' in files["job_submit.back.lua"]
    assert "those without GPUs of work, deep leave the cores" in files["PLAN.md"]


def test_partitioned_machines_have_no_form():
    queues = "queues:\n  - {name: a, partition: {cpu: 6, gpu: 1}}\n  - {name: b, partition: {gpu: 1}}\n"
    with pytest.raises(ExportError, match="kept_per_gpu on a partitioned machine: Slurm would need a partition"):
        exported(SITE.partition("queues:")[0] + "mode: partitioned\n" + queues)


def test_they_come_back(tmp_path):
    written(tmp_path, exported())
    weights = "PriorityWeightAge=86400\nPriorityMaxAge=1-0\nPriorityWeightPartition=1000\n"
    found = slurm_read(tmp_path, f"PriorityType=priority/multifactor\n{weights}{NODES}")
    assert (found.config.nodes, found.config.queues) == (parse(SITE).nodes, parse(SITE).queues)
    assert not any("MaxCPUsPerNode" in each for each in found.warnings)
    assert exported(dump(found.config))["partitions.conf"] == exported()["partitions.conf"]


@needs_lua
def test_lua_sends_jobs_without_gpus_to_them(tmp_path):
    without = "work-plain,work-24"
    rows = [
        ({"num_tasks": 4}, without),
        ({"num_tasks": 4, "tres_per_node": "gres:gpu:2"}, "work"),
        ({"num_tasks": 4, "tres_per_job": "gpu:1"}, "work"),
        ({"num_tasks": 4, "tres_per_node": "gres:fpga:1"}, without),
        ({"num_tasks": 192}, without),
        ({"num_tasks": 193}, "work"),  # wider than each: as wide jobs of the simulator take no account
        ({"num_tasks": 4, "partition": "deep"}, "deep-24"),
        ({"num_tasks": 4, "partition": "deep,work"}, f"deep-24,{without}"),
        ({"num_tasks": 4, "partition": "deep,work", "tres_per_task": "gpu:1"}, "deep,work"),
        ({"num_tasks": 4, "partition": "work-24"}, "work-24"),
    ]
    lua = exported(SITE.replace(SITE.splitlines()[1], "order: fcfs"))["job_submit.lua"]
    found = called(
        tmp_path, lua, "slurm_job_submit(one, {}, 0), one.partition", *({**job, "time_limit": 60} for job, _ in rows)
    )
    check_rows(found, [(job, ["0", partition]) for job, partition in rows])


def test_waiting_jobs_are_moved_into_them_and_keep_the_points_of_their_queue(tmp_path, monkeypatch):
    script = {}
    exec(exported()["move-jobs"].rpartition("\ndef main")[0], script)
    jobs = (("work", 4, {}), ("work", 4, {"gpu": 1}), ("work", 200, {}), ("plain", 4, {}))
    assert [script["home"](*job) for job in jobs] == ["work-plain,work-24", "work", "work", "plain"]
    monkeypatch.chdir(written(tmp_path, exported(), "job_submit.lua"))
    points = script["Points"]("job_submit.lua")
    names = ("work", "work-24", "work-plain,work-24", "deep", "deep-24", "plain")
    assert [points.of(name, 4, 60) for name in names] == [0, 0, 0, 100, 100, 100]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kept_per_gpu: 2", "kept_per_gpu: 8", "nodes gpu: kept_per_gpu keeps all cores"),
        ("name: plain", "name: work-24", "queue work-24 has the name of a partition of work"),
        ("nodes: [gpu]", "nodes: [gpu], exclusive: true", "queue deep: its jobs have nodes alone"),
        (', hosts: "gpu[1-2]"', "", "nodes gpu: queues are bound to nodes, and these have no names"),
    ],
)
def test_what_has_no_form_is_refused(old, new, message):
    with pytest.raises(ExportError, match=message):
        exported(SITE.replace(old, new))
