"""Points for what jobs ask for, as PriorityWeightTRES, and back."""

import pytest

from qconf.config import parse
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export import exporter
from tests.qconf.export.sites import slurm_files, slurm_read

ORDER = "min(eligible_time, 86400) + 5000 * ngpus / 8 + 300 * ncpus / 128 + 20 * mem / 786432000"
SITE = f"""machine: {{name: m, cores: 256, cores_per_node: 32}}
order: {ORDER}
nodes:
  - {{name: cpu, count: 6, cores: 32, memory: 96000}}
  - {{name: gpu, count: 2, cores: 32, memory: 96000, gpus: 4}}
queues:
  - {{name: work, cores: [1, 256], walltime: [0, 48h]}}
"""
CONF = """ClusterName=m
NodeName=cpu[1-6] CPUs=32 RealMemory=96000
NodeName=gpu[1-2] CPUs=32 RealMemory=96000 Gres=gpu:4
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=1-0
PriorityCalcPeriod=1
PriorityWeightTRES=CPU=10,GRES/gpu=200.5,Mem=0
PartitionName=work Nodes=ALL
"""


def test_a_sum_with_them_is_one_that_slurm_has():
    order = Multifactor.of(ORDER)
    assert order is not None
    assert order.tres == (("ngpus", 5000, 8), ("ncpus", 300, 128), ("mem", 20, 786432000))
    assert order.formula == ORDER
    assert Multifactor.of(ORDER.replace("ngpus / 8", "ngpus")) is None
    assert Multifactor.of(ORDER.replace("5000", "5000000000")) is None


def test_weights_are_of_all_that_a_partition_has():
    files = slurm_files(parse(SITE))
    # The 256 cores of the machine are twice as many as those of which a job has 300 points.
    assert '"PriorityWeightTRES": "gres/gpu=5000,cpu=600,mem=20"' in files["new-conf"]
    assert "printf '%s\\n' cpu gres/gpu mem | grep -Fxv -f tres.known" in files["PLAN.md"]
    plain = slurm_files(parse(SITE.replace(ORDER, ORDER.partition(" + 5000")[0])))
    assert "TRES" not in plain["new-conf"]


def read(tmp_path, old="", new=""):
    found = slurm_read(tmp_path, CONF.replace(old, new) if old else CONF)
    return found.config.order, [each for each in found.warnings if each.startswith("PriorityType=")]


def test_weights_are_read(tmp_path):
    # A point of age is 86.4 seconds of waiting.
    order, warnings = read(tmp_path)
    assert order == "min(eligible_time, 86400) + 864 * ncpus / 256 + 17323 * ngpus / 8"
    assert warnings == []
    assert Multifactor.of(order) is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("CPU=10", "Node=10", "PriorityWeightTRES=Node=10: left out"),
        ("CPU=10", "GRES/gpu:a100=10", "PriorityWeightTRES=GRES/gpu:a100=10: left out"),
        ("CPU=10", "CPU=1e3", "PriorityWeightTRES=CPU=1e3: left out"),
        (" Gres=gpu:4", "", "PriorityWeightTRES=GRES/gpu=200.5: left out"),
    ],
)
def test_weights_that_no_order_holds_are_named_and_the_others_kept(tmp_path, old, new, said):
    found = slurm_read(tmp_path, CONF.replace(old, new).replace("Mem=0", "Mem=0,CPU=20"))
    assert found.config.order.startswith("min(eligible_time, 86400) + ")
    assert "1728 * ncpus / 256" in found.config.order
    assert any(each.startswith(said) for each in found.warnings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Nodes=ALL", "Nodes=cpu[1-6]\nPartitionName=gpu Nodes=gpu[1-2]"),
        ("PriorityWeightAge=1000", "PriorityWeightAge=0"),
    ],
)
def test_weights_that_no_order_holds_are_named(tmp_path, old, new):
    order, warnings = read(tmp_path, old, new)
    assert order == "fcfs"
    assert len(warnings) == 1
    assert "the order of the jobs of one priority is not taken over" in warnings[0]
    assert "TRES=" in warnings[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[0, 48h]}", "[0, 48h], nodes: [gpu]}", "partitions have different nodes: take that out of the order"),
        (", gpus: 4", "", "nodes have nothing of ngpus that counts"),
    ],
)
def test_what_is_no_part_of_the_same_is_refused(old, new, message):
    text = SITE.replace(old, new)
    hosts = text.replace("memory: 96000}", "memory: 96000, hosts: 'cpu[1-6]'}").replace(
        "gpus: 4}", "gpus: 4, hosts: 'g[1-2]'}"
    )
    with pytest.raises(ExportError, match=message):
        slurm_files(parse(hosts if "nodes: [gpu]" in new else text))


@pytest.mark.parametrize(
    ("more", "order", "said"),
    [
        ("", "1080 * queue_priority + min(eligible_time, 86400)", []),
        ("PriorityWeightFairshare=5\n", "1080 * queue_priority + min(eligible_time, 86400) + 432 * fair_share", []),
        ("PriorityWeightJobSize=7\n", "1080 * queue_priority + min(eligible_time, 86400)", ["PriorityWeightJobSize=7"]),
    ],
)
def test_factors_of_partitions_are_points(tmp_path, more, order, said):
    """Parts of the highest factor, which a closed partition may have; a change of them is a nice value."""
    found = slurm_read(
        tmp_path,
        f"ClusterName=m\nNodeName=n[1-4] CPUs=8\nPriorityType=priority/multifactor\nPriorityWeightAge=1000\n{more}"
        "PriorityMaxAge=1-0\nPriorityWeightPartition=500\nPartitionName=old Nodes=ALL State=DOWN PriorityJobFactor=40\n"
        "PartitionName=a Nodes=ALL PriorityJobFactor=20 MaxTime=1-0\nPartitionName=b Nodes=ALL PriorityJobFactor=0\n",
    )
    assert found.config.order == order
    assert [queue.priority for queue in found.config.queues] == [21, 1]
    assert [each for each in found.warnings if "left out of the order" in each] == [
        f"{each}: left out of the order, which has the other weights" for each in said
    ]
    of = exporter("slurm").of(current=tmp_path / "slurm.conf")
    assert list(of.export(found.config).files) == ["PLAN.md"]
    assert "place = 21600" in slurm_files(found.config)["job_submit.lua"]
