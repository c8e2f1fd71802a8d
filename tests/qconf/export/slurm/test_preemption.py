"""Queues of different tiers as partitions of different PriorityTiers, and back."""

import json
import re

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from qconf.export.slurm.init import derive
from tests.qconf.export.sites import new_conf, slurm_files, slurm_read, written

TEXT = """\
machine: {name: tiny, cores: 16}
order: fcfs
queues:
  - {name: urgent, cores: [1, 2], walltime: [0, 1h], tier: 9}
  - {name: express, cores: [1, 4], walltime: [0, 1h], tier: 4, preempted: suspend}
  - {name: kept, cores: [1, 8], walltime: [0, 2h]}
  - {name: normal, walltime: [0, 24h], preempted: requeue}
"""
FORMER = """\
ClusterName=tiny
PreemptType=preempt/qos
PreemptMode=CANCEL
NodeName=n[1-16] CPUs=1
PartitionName=all Nodes=ALL Default=YES PreemptMode=OFF
"""
SUM = "min(eligible_time, 2592000) + (7200 if walltime <= 3600 else 0)"


def partitions(text):
    """Return the words of each partition."""
    lines = [line for line in text.splitlines() if line.startswith("PartitionName=")]
    words = [dict(word.split("=", 1) for word in line.split()) for line in lines]
    return {each["PartitionName"]: each for each in words}


def settings(files):
    """Return what new-conf sets in slurm.conf."""
    return json.loads(re.search(r"^SET = (.*)$", files["new-conf"], re.MULTILINE)[1])


def test_partitions_have_the_ranks_of_the_tiers_and_what_becomes_of_their_jobs():
    files = slurm_files(parse(TEXT))
    found = partitions(files["partitions.conf"])
    assert {name: (each["PriorityTier"], each["PreemptMode"]) for name, each in found.items()} == {
        "urgent": ("3", "OFF"),
        "express": ("2", "SUSPEND"),
        "kept": ("1", "OFF"),
        "normal": ("1", "REQUEUE"),
    }
    assert settings(files)["PreemptType"] == "preempt/partition_prio"
    assert settings(files)["PreemptMode"] == "SUSPEND,GANG"
    assert "Preempted jobs of normal begin anew" in files["PLAN.md"]
    assert "Preempted jobs of express keep their nodes" in files["PLAN.md"]
    assert "--states=S --partition=express --format=%A" in files["PLAN.md"].partition("## Undo")[2]
    alone = slurm_files(parse(TEXT.replace("suspend", "requeue")))
    assert settings(alone)["PreemptMode"] == "REQUEUE"
    assert "scontrol resume" not in alone["PLAN.md"]
    plain = slurm_files(parse(re.sub(", tier: [0-9]", "", TEXT)))
    assert not [name for name, text in plain.items() if "Preempt" in text]


def test_what_has_no_form():
    with pytest.raises(ExportError, match="queue normal: preempted: checkpoint has no form in Slurm"):
        slurm_files(parse(TEXT.replace("requeue", "checkpoint")))
    uneven = TEXT.replace("preempted: requeue", "preempted: requeue, priority: 5")
    with pytest.raises(ExportError, match="queues kept, normal: with one tier and different priorities"):
        slurm_files(parse(uneven))
    slurm_files(parse(uneven.replace("fcfs", f"50 * queue_priority + {SUM}")))  # points, no tiers
    slurm_files(parse(TEXT.replace("preempted: suspend", "preempted: suspend, priority: 5")))  # a tier of its own


def loaded(tmp_path, text, former=FORMER):
    """Export a configuration into a folder, and write its slurm.conf there by new-conf."""
    new_conf(written(tmp_path, slurm_files(parse(text))), former, tmp_path)


def test_former_settings_come_back(tmp_path):
    loaded(tmp_path, TEXT)
    after, back = ((tmp_path / f"slurm.conf.{name}").read_text() for name in ("after", "back"))
    ours = {"PreemptType=preempt/partition_prio", "PreemptMode=SUSPEND,GANG"}
    assert (ours & {*after.splitlines()}, ours & {*back.splitlines()}) == (ours, set())
    assert "preempt/qos" not in after
    assert {*FORMER.splitlines()} <= {*back.splitlines()}


@pytest.mark.parametrize("order", ["fcfs", SUM])
def test_what_is_read_back_is_the_same(order, tmp_path):
    text = TEXT.replace("order: fcfs", f'order: "{order}"').replace("tier: 4", "tier: 1").replace("tier: 9", "tier: 2")
    loaded(tmp_path, text)
    found = derive(tmp_path / "slurm.conf.after")
    assert found.config == parse(text).replace(priority_calc_period=found.config.priority_calc_period)
    assert "reservations of each partition: with tiers one for all is simulated" in found.warnings


def test_a_slurm_conf_of_a_site(tmp_path):
    """A partition without a PreemptMode has that of the cluster."""
    head = (
        "PreemptType=preempt/partition_prio\nNodeName=n[1-8] CPUs=2\nPartitionName=left Nodes=n[1-4] PriorityTier=10\n"
    )
    found = slurm_read(
        tmp_path,
        f"""{head}\
PreemptMode=GANG,SUSPEND
PartitionName=right Nodes=n[5-8] PriorityTier=10 PreemptMode=CANCEL
PartitionName=own Nodes=ALL PriorityTier=100 PreemptMode=REQUEUE
PartitionName=gang Nodes=ALL PriorityTier=10 PreemptMode=GANG
""",
    )
    assert found.config.mode == "shared"
    assert {queue.name: (queue.tier, queue.preempted, queue.priority) for queue in found.config.queues} == {
        "left": (0, "suspend", 1),
        "right": (0, "requeue", 1),
        "own": (1, "off", 1),
        "gang": (0, "off", 1),
    }
    assert "right: PreemptMode=CANCEL: taken as REQUEUE, its jobs begin anew" in found.warnings
    found = slurm_read(tmp_path, f"{head}PreemptMode=REQUEUE\nPartitionName=right Nodes=n[5-8]\n")
    assert (found.config.mode, found.config.has_tiers) == ("partitioned", False)  # no job is in the other's way
    found = slurm_read(tmp_path, FORMER)
    assert "PreemptType=preempt/qos: jobs are preempted, which is not simulated" in found.warnings
