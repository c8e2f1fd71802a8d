"""What init reads of QOS and priorities, and names where no configuration has it."""

import re

import pytest

from qconf.export import exporter
from tests.qconf.export.sites import slurm_read

CONF = """ClusterName=x
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=500
PriorityMaxAge=14-0
PriorityWeightQOS=1000
NodeName=g[1-4] CPUs=64 Gres=gpu:a100:4
NodeName=c[1-8] CPUs=64
PartitionName=gpu Nodes=g[1-4] QOS=p_gpu
PartitionName=cpu Nodes=c[1-8] MaxTime=5-0 Default=YES
"""
QOS = """\
Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|GrpTRES|GrpTRESMins|GrpJobs|MaxTRES|MaxTRESPerNode|\
MaxWall|MaxTRESPU|MaxJobsPU|MaxSubmitPU|MinTRES
normal|10|00:00:00||cluster||1.000000||||||||||
p_gpu|0|00:00:00||cluster||1.000000|gres/gpu=12|||cpu=48,gres/gpu=8,node=3|gres/gpu=4|2-00:00:00|gres/gpu=4|2|10|cpu=2
scav|1|00:02:00||requeue|NoReserve|0.000000||cpu=900||||||||
high|1000|00:00:00|scav|cluster|DenyOnLimit|2.000000|cpu=128||4|node=2||04:00:00|||9|
"""
AGE = "min(eligible_time, 1209600)"


def from_text(folder, text, qos=QOS):
    if qos is not None:
        (folder / "qos.txt").write_text(qos)
    return slurm_read(folder, text, qos=None if qos is None else folder / "qos.txt")


def test_each_limit_of_a_qos_is_simulated_or_named(tmp_path):
    found = from_text(tmp_path, CONF)
    gpu = found.config.queue("gpu")
    assert (gpu.cores, gpu.walltime, gpu.max_user_run) == ((2, 48), (0, 2 * 86400), 2)
    assert {each.what: each.limits for each in found.config.throttles} == {
        "qos high": {"max_run": 4, "max_run_cores": 128},
        "each user in qos high": {"max_queued": 9},
        "all jobs in queue gpu": {"max_run_resources.gpus": 12},
        "each user in queue gpu": {"max_run_resources.gpus": 4},
    }
    factors = {each.name: each.usage_factor for each in found.config.qos if each.usage_factor != 1}
    assert factors == {"scav": 0, "high": 2}
    met = "limits of one job, which those of a log have met"
    scav = "GraceTime=00:02:00, PreemptMode=requeue, Flags=NoReserve, GrpTRESMins=cpu=900"
    assert [each for each in found.warnings if each.startswith("QOS")] == [
        "QOS p_gpu: not simulated: MaxSubmitJobsPerUser=10",
        f"QOS p_gpu: {met}: MaxTRES=gres/gpu=8, MaxTRESPerNode=gres/gpu=4",
        f"QOS scav: not simulated: {scav}",
        "QOS high: not simulated: Preempt=scav",
        f"QOS high: {met}: MaxTRES=node=2, MaxWall=04:00:00",
    ]


@pytest.mark.parametrize(
    ("words", "walltime", "cores"),
    [
        ("MaxTime=1-0 MaxNodes=2", 86400, 128),
        ("MaxTime=3-0 MaxNodes=4", 2 * 86400, 192),
        ("MaxTime=INFINITE MaxNodes=UNLIMITED", 2 * 86400, 192),
    ],
)
def test_the_lesser_of_a_partition_and_its_qos_holds(tmp_path, words, walltime, cores):
    text = CONF.replace("Nodes=g[1-4] QOS", f"Nodes=g[1-4] {words} QOS")
    gpu = from_text(tmp_path, text, QOS.replace("cpu=48,", "")).config.queue("gpu")
    assert (gpu.walltime[1], gpu.cores[1]) == (walltime, cores)


@pytest.mark.parametrize(
    ("more", "qos", "order", "said"),
    [
        ("", True, f"{AGE} + 2419 * qos_priority", ""),
        ("PriorityWeightJobSize=1", True, f"{AGE} + 2419 * qos_priority", "PriorityWeightJobSize=1: left out"),
        ("PriorityWeightAssoc=9", True, f"{AGE} + 2419 * qos_priority", "PriorityWeightAssoc=9: left out"),
        (
            "PriorityWeightFairshare=500\nPriorityWeightJobSize=1",
            False,
            f"{AGE} + 1209600 * fair_share",
            "PriorityWeightJobSize=1, PriorityWeightQOS=1000: left out",
        ),
        ("", False, "fcfs", "PriorityWeightQOS: for the priorities give --qos"),
    ],
)
def test_the_order_keeps_the_weights_that_it_can(tmp_path, more, qos, order, said):
    found = from_text(tmp_path, f"{more}\n{CONF}", QOS if qos else None)
    assert found.config.order == order
    assert said in "; ".join(found.warnings)
    assert ("PriorityType=" in "; ".join(found.warnings)) == (order == "fcfs")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("JobSubmitPlugins=lua", "JobSubmitPlugins=lua: it may change jobs at submission"),
        ("TopologyPlugin=topology/tree", "TopologyPlugin=topology/tree: jobs are put on nodes near each other"),
        ("SchedulerParameters=bf_continue,bf_window=4320,defer", "not simulated: bf_window=4320, defer"),
        ("PriorityFlags=SMALL_RELATIVE_TO_TIME,MAX_TRES", "PriorityFlags: not simulated: SMALL_RELATIVE_TO_TIME"),
        ("Licenses=matlab:10", "Licenses=matlab:10: write licences"),
        ("PreemptType=preempt/qos", "PreemptType=preempt/qos: jobs are preempted, which is not simulated"),
        ("DownNodes=c[1-2] State=DOWN Reason=broken", "2 nodes have State=DOWN or the like"),
        ("PartitionName=own Nodes=c1 ExclusiveUser=YES Shared=FORCE:2", "own: OverSubscribe=FORCE:2"),
        ("PartitionName=own Nodes=c1 ExclusiveUser=YES", "not taken over: exclusiveuser of own"),
    ],
)
def test_what_changes_starts_and_is_not_simulated_is_named(tmp_path, line, said):
    assert said in "; ".join(from_text(tmp_path, f"{CONF}{line}\n").warnings)


def test_what_changes_no_start_is_not_named(tmp_path):
    idle = "PriorityWeightTRES=(null)\nJobSubmitPlugins=(null)\nPrioritySiteFactorPlugin=site_factor/none\n"
    idle += "PriorityWeightTRES=0\nTopologyPlugin=topology/none\nCompleteWait=0\nSchedulerParameters=bf_continue\n"
    shared = CONF.replace("Default=YES", "Default=YES OverSubscribe=FORCE:1 LLN=NO")
    before, after = from_text(tmp_path, CONF), from_text(tmp_path, f"{idle}{shared}")
    assert before.warnings == after.warnings


SITE = """\
# slurm.conf of a site
ClusterName = "big"   # quoted, with blanks
include more.conf
SelectType = select/cons_res
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
GresTypes=gpu,lscratch,bandwidth,shard
NodeName=DEFAULT Sockets=2 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=500K State=UNKNOWN
NodeName=c[001-003,012] CPUs=128 Feature=rome,ib
NodeName=g[01-04] CPUs=256 Gres=gpu:A100-SXM4-80GB:4(S:0-1),lscratch:3K,bandwidth:lustre:no_consume:4G \\
   Features="rome,gpu" MemSpecLimit=8192 CoreSpecCount=4
NodeName=fut[1-9] State=FUTURE
NodeName=cloud[1-3] State=CLOUD CPUs=16
NodeSet=gpus Feature=gpu
DownNodes=c[001-002] State=DOWN Reason="bad dimm"
PartitionName=DEFAULT MaxTime=INFINITE State=UP
PartitionName=batch Nodes=c[001-003,012],g[01-04] Default=YES TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=16"
PartitionName=gpu Nodes=gpus AllowAccounts=ai,ml DenyQos=low
PartitionName=all Nodes=ALL MaxNodes=4 MaxTime=3-12:30
PartitionName=short Nodes=c[001-002] Shared=EXCLUSIVE MaxTime=60
PartitionName=old Nodes=ALL State=DOWN
"""


def test_a_conf_as_sites_write_it(tmp_path):
    (tmp_path / "more.conf").write_text("SchedulerParameters=bf_continue\n")
    found = from_text(tmp_path, SITE, None)
    config = found.config
    assert (config.machine.name, config.machine.cores) == ("big", 4 * 128 + 4 * 248 + 3 * 16)
    assert [(each.hosts, each.cores, each.memory, each.gpus, dict(each.resources)) for each in config.nodes] == [
        ("c[001-002]", 128, 512000, 0, {}),
        ("c[003,012]", 128, 512000, 0, {}),
        ("g[01-04]", 248, 512000 - 8192, 4, {"lscratch": 3072}),
        ("cloud[1-3]", 16, 512000, 0, {}),
    ]
    assert config.nodes[2].features == ("gpu", "gpu:A100-SXM4-80GB", "rome")
    times = {queue.name: (queue.walltime[1], queue.nodes, queue.exclusive) for queue in config.queues}
    assert times["gpu"] == (config.queue("batch").walltime[1], ("g",), False)
    assert times["all"] == (3 * 86400 + 12 * 3600 + 30 * 60, None, False)
    assert times["short"] == (3600, ("c",), True)
    assert [*times] == ["batch", "gpu", "all", "short"]
    assert found.warnings == (
        "9 nodes have State=FUTURE: left out",
        "old: State=DOWN, left out",
        "Gres=bandwidth:lustre:no_consume:4G: left out, it is not counted here",
        "2 nodes have State=DOWN or the like: counted as the others, as if they were up",
    )


@pytest.mark.parametrize("qos", [QOS, None])
@pytest.mark.parametrize("text", [CONF, f"PriorityWeightJobSize=1\n{CONF}", SITE.replace("include more.conf\n", "")])
def test_what_was_read_in_part_is_exported_as_it_is(tmp_path, text, qos):
    found = from_text(tmp_path, text, qos)
    given = {"current": tmp_path / "slurm.conf", "qos": None if qos is None else tmp_path / "qos.txt"}
    export = exporter("slurm").of(**{name: str(path) for name, path in given.items() if path}).export(found.config)
    assert export.notes[0].endswith("has nothing to load.")


def test_a_weight_of_qos_without_priorities_needs_no_other_file(tmp_path):
    found = from_text(tmp_path, CONF, re.sub(r"(?m)^(\w+)\|[1-9]\d*", r"\1|0", QOS))
    assert found.config.order == "fcfs"
    assert "--qos" not in "; ".join(found.warnings)
