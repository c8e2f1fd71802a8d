"""A configuration from what scontrol shows: partitions, nodes and settings, on many lines or one each."""

import re

import pytest

from tests.qconf.export.sites import slurm_read

PARTITIONS = """PartitionName=cpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=2-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED
   Nodes=c[1-8]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=512 TotalNodes=8 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=512,mem=2000G,node=8,billing=512

PartitionName=gpu
   AllowGroups=ALL AllowAccounts=chem,phys AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=2 MaxTime=12:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   NodeSets=a100
   Nodes=g[1-4]
   PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=256 TotalNodes=4 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=256,mem=2T,node=4,billing=256,gres/gpu=16,gres/gpu:a100=16
"""
NODES = """NodeName=g{number} Arch=x86_64 CoresPerSocket=32
   CPUAlloc=4 CPUEfctv=62 CPUTot=64 CPULoad=1.20
   AvailableFeatures=a100,nvme
   ActiveFeatures=a100,nvme
   Gres=gpu:a100:4(S:0-1)
   NodeAddr=g{number} NodeHostName=g{number} Version=22.05.8
   OS=Linux 5.14.0 #1 SMP PREEMPT_DYNAMIC Tue
   RealMemory=512000 AllocMem=16384 FreeMem=490000 Sockets=2 Boards=1
   CoreSpecCount=2 CPUSpecList=62-63 MemSpecLimit=2048
   State=MIXED+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=10 Owner=N/A MCS_label=N/A
   Partitions=gpu
   CfgTRES=cpu=62,mem=500G,billing=62,gres/gpu=4
   Reason=bad disk, CPUs=1 RealMemory=7 [root@2026-03-02T10:00:00]

"""
ORDER = "10000000000 * queue_priority + min(eligible_time, 604800) + 604800 * fair_share"
CONFIG = """Configuration data as of 2026-03-02T10:00:00
AccountingStorageBackupHost = (null)
ClusterName             = hpc
GresTypes               = gpu
PriorityCalcPeriod      = 00:05:00
PriorityMaxAge          = 7-00:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 604800
PriorityWeightFairShare = 604800
PriorityWeightTRES      = (null)
SchedulerParameters     = bf_min_age_reserve=600
SchedulerType           = sched/backfill
SelectTypeParameters    = CR_CORE_MEMORY

Slurmctld(primary) at head is UP

"""


def on_one_line(text):
    """Return what the option -o prints."""
    return re.sub(r"\n\n+", "\n", re.sub(r"\n +", " ", text))


@pytest.mark.parametrize("form", [str, on_one_line])
def test_partitions_alone_are_equal_parts_of_what_they_have(form, tmp_path):
    found = slurm_read(tmp_path, form(PARTITIONS))
    queues = {queue.name: queue for queue in found.config.queues}
    assert (queues["cpu"].cores, queues["cpu"].walltime) == ((1, 512), (0, 172800))
    assert (queues["gpu"].cores, queues["gpu"].walltime) == ((1, 128), (0, 43200))
    assert (queues["gpu"].access.accounts, queues["gpu"].exclusive) == (("chem", "phys"), True)
    nodes = [(each.hosts, each.count, each.cores, each.memory, each.gpus, each.features) for each in found.config.nodes]
    assert sorted(nodes) == [
        ("c[1-8]", 8, 64, 256000, 0, ()),
        ("g[1-4]", 4, 64, 524288, 4, ("gpu:a100",)),
    ]
    assert not [text for text in found.warnings if text.startswith("not taken over")]


@pytest.mark.parametrize("form", [str, on_one_line])
def test_nodes_are_what_jobs_may_have_of_them(form, tmp_path):
    nodes = "".join(NODES.format(number=number) for number in range(1, 5))
    found = slurm_read(tmp_path, form(CONFIG) + form(nodes) + form(PARTITIONS)).config
    (gpu,) = (each for each in found.nodes if each.gpus)
    assert (gpu.hosts, gpu.cores, gpu.memory) == ("g[1-4]", 62, 512000 - 2048)
    assert gpu.features == ("a100", "gpu:a100", "nvme")
    assert (found.machine.name, found.machine.cores) == ("hpc", 8 * 64 + 4 * 62)
    assert (found.order, found.reserve_after) == (ORDER, 600)


def test_cores_kept_for_the_system_are_not_in_the_tres_of_a_partition(tmp_path):
    found = slurm_read(tmp_path, PARTITIONS.replace("TRES=cpu=256", "TRES=cpu=248"))
    assert [each.cores for each in found.config.nodes if each.gpus] == [62]


def test_nodes_alone_name_their_partitions(tmp_path):
    found = slurm_read(tmp_path, NODES.format(number=1) + NODES.format(number=2).replace("=gpu\n", "=gpu,long\n"))
    assert [(queue.name, queue.cores) for queue in found.config.queues] == [("gpu", (1, 2**31 - 1)), ("long", (1, 62))]
    assert any("scontrol show partition" in warning for warning in found.warnings)


def test_nodes_that_are_not_equal_parts_are_said(tmp_path):
    found = slurm_read(tmp_path, PARTITIONS.replace("TotalCPUs=512", "TotalCPUs=515").replace("cpu=512", "cpu=515"))
    assert any("which have other cores than each other" in warning for warning in found.warnings)
    assert found.config.machine.cores == 768
