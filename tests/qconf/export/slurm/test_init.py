"""A slurm.conf as a beginning: what a configuration derived from it holds, and what is warned about."""

import pytest

from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import AccessConfig, dump, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.nodes import read_nodes
from qconf.export.slurm.init import derive
from tests.beside import SHARED
from tests.qconf.export.sites import HYBRID, slurm_files, slurm_read, written

REAL = SHARED / "slurm" / "slurm.conf.in"


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not here")
def test_a_real_file():
    found = derive(REAL)
    config = found.config
    assert (config.machine.cores, config.machine.cores_per_node, config.mode) == (35232, 24, "partitioned")
    assert [(q.name, q.partition, q.cores, q.walltime[1], q.priority) for q in config.queues] == [
        ("small", 2400, (1, 1032), 86400, 50),  # Default=YES
        ("idqueue", 432, (1, 264), 7200, 100),
        ("small72", 1920, (1, 1032), 259200, 40),
        ("medium", 7200, (1033, 8208), 86400, 50),
        ("large", 22800, (8209, 22800), 86400, 50),
        ("common", 480, (1, 480), 259200, 100),
    ]
    assert parse(dump(config)) == config


NODES = "NodeName=DEFAULT CPUs=8 \\\n  RealMemory=1000 # comment\nNodeName=n[1-10,12],m3\n"


@pytest.mark.parametrize(
    ("partitions", "mode", "reserved"),
    [
        ("PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n12,m3\nPartitionName=c Nodes=ALL", "partitioned", "c"),
        ("PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n[9-10]", "shared", ""),
        ("PartitionName=a Nodes=ALL", "shared", ""),
    ],
)
def test_shared_and_partitioned_machines(partitions, mode, reserved, tmp_path):
    config = slurm_read(tmp_path, f"{NODES}{partitions}\n").config
    assert (config.mode, config.machine.cores) == (mode, 96)
    assert "".join(queue.name for queue in config.queues if queue.reservation) == reserved


def test_defaults_of_partitions_and_what_is_left_out(tmp_path):
    found = slurm_read(
        tmp_path,
        NODES
        + "PartitionName=DEFAULT MaxTime=90 Nodes=ALL\nPartitionName=a\n"
        + "PartitionName=b QOS=x\nPartitionName=c State=DOWN\n",
    )
    assert (found.config.mode, found.config.names) == ("shared", ("a", "b"))
    assert found.config.queues[0].walltime == (0, 5400)
    assert len(found.warnings) == 2
    found = slurm_read(tmp_path, NODES + "PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n[9-10]\n")
    assert [(each.name, each.count, each.hosts) for each in found.config.nodes] == [
        *(("n", 8, "n[1-8]"), ("n-2", 2, "n[9-10]"), ("n-3", 2, "m3,n12")),
    ]
    assert queues(found, "nodes") == {"a": (("n", "n-2"),), "b": (("n-2",),)}


@pytest.mark.parametrize(
    ("text", "seconds", "warning"),
    [
        ("", 0, ""),
        ("SchedulerParameters=bf_continue", 0, ""),
        ("SchedulerParameters=bf_continue,bf_min_age_reserve=600,bf_interval=9", 600, ""),
        ("schedulerparameters = BF_Min_Age_Reserve=2592000 # a month", 2592000, ""),
        ("SchedulerParameters==bf_min_age_reserve=600", 600, ""),
        ("SchedulerParameters=bf_continue\nSchedulerParameters+=bf_min_age_reserve=600", 600, ""),
        ("SchedulerParameters=bf_min_age_reserve=600\nSchedulerParameters=bf_continue", 0, ""),
        ("SchedulerParameters=bf_min_age_reserve=2592001", 0, "bf_min_age_reserve=2592001 is no number"),
        ("SchedulerParameters=bf_min_age_reserve=-1", 0, "bf_min_age_reserve=-1 is no number"),
        (
            *("SchedulerParameters=bf_min_age_reserve=600\nPartitionName=b Nodes=n12,m3", 600),
            "bf_min_age_reserve: as reserve_after it plays no part with mode partitioned",
        ),
    ],
)
def test_the_reservation_delay_is_read(text, seconds, warning, tmp_path):
    nodes = "n[1-10]" if "PartitionName" in text else "ALL"
    found = slurm_read(tmp_path, f"{NODES}{text}\nPartitionName=a Nodes={nodes}\n")
    assert found.config.reserve_after == seconds
    assert warning in " ".join(found.warnings)
    assert bool(found.warnings) == bool(warning)


def test_the_backfilling_of_an_export_is_read(tmp_path):
    for words, reserve in (("bf_busy_nodes,bf_job_part_count_reserve=1", "queues"), ("bf_busy_nodes", "cores")):
        found = slurm_read(tmp_path, f"{NODES}SchedulerParameters=defer,{words}\nPartitionName=a Nodes=ALL\n")
        assert found.config.reserve == reserve


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("30", 1800), ("30:15", 1815), ("2:30:15", 9015), ("1-2", 93600)),
        *(("1-2:30", 95400), ("1-2:30:15", 95415), ("UNLIMITED", MAX_DURATION)),
    ],
)
def test_times_are_read_as_slurm_does(text, seconds, tmp_path):
    found = slurm_read(tmp_path, NODES + f"PartitionName=a Nodes=ALL MaxTime={text}\n")
    assert found.config.queues[0].walltime == (0, seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, r"slurm\.conf: ") for text in ("", "PartitionName=a Nodes=x", NODES)),
        *(
            (f"{NODES}PartitionName=a {words}", r"slurm\.conf, line 4: ")
            for words in ("Nodes=ALL MaxTime=soon", "Nodes=n[5-1]", "Nodes=n[1-4, 6]")
        ),
        ("NodeName=a CPUs=x", r"slurm\.conf, line 1: CPUs of a = 'x': is no number"),
        ("NodeName=a Sockets=2 CoresPerSocket=", "CoresPerSocket of a = '': is no number"),
        *(
            (f"{NODES}NodeName={words} CPUs=8\nPartitionName=a Nodes=ALL", f"line 4: {message}")
            for words, message in (
                ("b RealMemory=64gb", "RealMemory = '64gb': is no whole number"),
                ("b Weight=heavy", "Weight = 'heavy': is no whole number"),
                ("n²", "NodeName = 'n²': is no name of a node"),
                (f"n{'1' * 5000}", r"NodeName = 'n1+\.\.\.: is no name of a node"),
            )
        ),
        *(
            (f"{NODES}PartitionName=a Nodes=ALL {word}=1e3", rf"line 4: .*{word}=1e3 is no whole number")
            for word in ("PriorityTier", "PriorityJobFactor", "MinNodes", "MaxNodes", "MaxCPUsPerNode")
        ),
        ("include nodes.conf", r"nodes\.conf is not there"),
        ("NodeName=n[1-2] CPUs=2\ninclude partitions.conf", r"partitions\.conf is not there"),
        ("# nodes\nNodeName={{ name }} CPUs=4", "line 2: is a line of a template. Give the slurm.conf that it makes"),
        (NODES + "PartitionName=a Nodes=n[1-${most}]", "is a line of a template"),
        (NODES + "PartitionName=a Nodes=<name of the nodes>", "is a line of a template"),
    ],
)
def test_what_is_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        slurm_read(tmp_path, text)


def test_booleans_have_the_words_of_slurm(tmp_path):
    text = (
        "PartitionName=a Nodes=ALL MaxTime=60 RootOnly=False Hidden=0 DisableRootJobs=FALSE\n"
        "PartitionName=b Nodes=ALL Default=TRUE\nPartitionName=c Nodes=ALL RootOnly=1 Default=Up\n"
    )
    found = slurm_read(tmp_path, NODES + text)
    assert found.config.names == ("b", "a")
    assert [line.partition(",")[0] for line in found.warnings] == ["c: RootOnly=1", "b: first of the queues"]


def test_of_an_older_and_a_present_name_slurm_takes_one(tmp_path):
    found = slurm_read(
        tmp_path,
        "NodeName=n[1-2] CPUs=8 Procs=1\n"
        "PartitionName=a Nodes=ALL OverSubscribe=EXCLUSIVE Shared=NO Priority=5 PriorityTier=3\n"
        "PartitionName=b Nodes=ALL Shared=EXCLUSIVE Priority=2\n",
    )
    assert (found.config.machine.cores, found.config.machine.whole_nodes) == (16, True)
    assert queues(found, "priority") == {"a": (5,), "b": (2,)}


@pytest.mark.parametrize(
    ("text", "order", "missing"),
    [
        ("ClusterName=m\n", "fcfs", "SelectType"),
        ("ClusterName=m\nSelectType=select/linear\n", "fcfs", ""),
        ("PriorityWeightFairshare=10\n", "fairshare", "PriorityType"),
        ("PriorityType=priority/basic\nPriorityWeightFairshare=10\n", "fcfs", ""),
    ],
)
def test_missing_words_whose_default_changed_are_warned_of(text, order, missing, tmp_path):
    found = slurm_read(tmp_path, f"{text}{NODES}PartitionName=a Nodes=ALL\n")
    assert found.config.order == order
    assert [warning.partition(" is not set")[0] for warning in found.warnings] == [missing] * bool(missing)


def test_nodes_are_refused(tmp_path):
    with pytest.raises(InputError, match="names its nodes itself"):
        exporter("slurm").of(nodes="n[1-2]").read(tmp_path / "slurm.conf")


def queues(found, *fields):
    return {queue.name: tuple(getattr(queue, field) for field in fields) for queue in found.config.queues}


# Of files that a real controller takes.
UNEQUAL = """\
PriorityType=priority/multifactor
NodeName=DEFAULT CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=256000 State=UNKNOWN
NodeName=cn[001-100] Feature=cascade,ib
NodeName=cn[101-140] Feature=zen,ib CPUs=128 CoresPerSocket=64 ThreadsPerCore=1
NodeName=gpu[01-10] CPUs=48 CoresPerSocket=12 Gres=gpu:a100:4 Feature=gpu
NodeName=login[1-2] CPUs=16 State=FUTURE
NodeSet=zenset Feature=zen
NodeSet=mix Nodes=cn[001-010],gpu[01-02]
PartitionName=DEFAULT MaxTime=2-0 DefaultTime=60 State=UP PriorityTier=10 OverSubscribe=NO
PartitionName=zen Nodes=zenset MaxNodes=20
PartitionName=mix Nodes=mix Hidden=YES PriorityTier=20
PartitionName=std Nodes=cn[001-100] Default=YES AllowAccounts=proj,root MaxTime=UNLIMITED
PartitionName=gpu Nodes=gpu[01-10] AllowQos=gpu QOS=gpuq MaxTime=infinite MaxCPUsPerNode=24
PartitionName=scav Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE OverSubscribe=FORCE:2 MaxTime=30
PartitionName=down Nodes=ALL State=DOWN
PartitionName=rootonly Nodes=ALL RootOnly=YES
"""
TIERED = """\
NodeName=a[1-4],b[1-4] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2
NodeName=c[1-2] CPUs=32 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2
PartitionName=p1 Nodes=a[1-4] MaxTime=7-12 MinNodes=2 MaxNodes=3 AllowGroups=x OverSubscribe=EXCLUSIVE
PartitionName=p2 Nodes=b[1-4],c[1-2] MaxTime=1440 MaxTime=720 PriorityJobFactor=1000 PriorityTier=5
PartitionName=p3 nodes=a1,a2 maxtime=12:00:00 State=INACTIVE
PartitionName=p4 Nodes="a[1-4]" AllocNodes=login QOS=part_p4 Alternate=p2 \\
   MaxTime=-1 DefMemPerCPU=2000
"""


def test_sets_of_nodes_unequal_nodes_and_access(tmp_path):
    found = slurm_read(tmp_path, UNEQUAL)
    assert (found.config.machine.cores, found.config.mode) == (100 * 64 + 40 * 128 + 10 * 48, "shared")
    assert list(queues(found, "cores", "max_run_cores", "priority", "nodes").items()) == [
        ("std", ((1, 6400), None, 10, ("cn", "cn-2"))),  # Default=YES: first
        ("zen", ((1, 20 * 128), None, 10, ("cn-3",))),
        ("mix", ((1, 10 * 64 + 2 * 48), None, 20, ("cn", "gpu"))),
        ("gpu", ((1, 240), 240, 10, ("gpu", "gpu-2"))),  # 24 cores a node
        ("scav", ((1, MAX_CORES), None, 1, None)),
    ]
    assert [(each.name, each.count, each.cores, each.gpus, each.features) for each in found.config.nodes] == [
        ("cn", 10, 64, 0, ("cascade", "ib")),  # of mix too
        ("cn-2", 90, 64, 0, ("cascade", "ib")),
        ("cn-3", 40, 128, 0, ("ib", "zen")),
        ("gpu", 2, 48, 4, ("gpu", "gpu:a100")),
        ("gpu-2", 8, 48, 4, ("gpu", "gpu:a100")),
    ]
    assert found.config.queue("std").access == AccessConfig(accounts=("proj", "root"))
    assert found.config.queue("gpu").access == AccessConfig(qos=("gpu",))
    said = "\n".join(found.warnings)
    for text in (
        *("2 nodes have State=FUTURE", "mix: Hidden=YES", "gpuq are not in", "scav: OverSubscribe=FORCE:2"),
        *("scav: PreemptMode=REQUEUE", "down: State=DOWN, left out", "rootonly: RootOnly=YES, left out"),
        *("std: first of the queues", "priority/multifactor"),
        "gpu: MaxCPUsPerNode: a limit of what runs on all of its nodes together",
    ):
        assert text in said


def test_tiers_minutes_and_partitions_of_whole_nodes(tmp_path):
    found = slurm_read(tmp_path, TIERED)
    assert queues(found, "cores", "walltime", "priority", "exclusive") == {
        "p1": ((33, 96), (0, 180 * 3600), 1, True),
        "p2": ((1, 192), (0, 12 * 3600), 5, False),
        "p4": ((1, 128), (0, MAX_DURATION), 1, False),  # MaxTime=-1
    }
    assert found.config.queue("p1").access == AccessConfig(groups=("x",))
    assert found.config.queue("p4").access == AccessConfig(hosts=("login",))
    assert "not taken over: alternate of p4; defmempercpu of p4" in "\n".join(found.warnings)
    assert not found.config.machine.whole_nodes


def test_exclusive_partitions_are_whole_nodes(tmp_path):
    nodes = "NodeName=n[1-8] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CPUs=32\n"
    found = slurm_read(
        tmp_path, f"{nodes}PartitionName=x Nodes=n[1-8] OverSubscribe=EXCLUSIVE MaxNodes=4 MaxTime=1-0\n"
    )
    assert (found.config.machine.whole_nodes, found.config.machine.cores_per_node) == (True, 32)
    assert (queues(found, "cores"), found.warnings) == ({"x": ((1, 128),)}, ())


def test_racks(tmp_path):
    found = slurm_read(tmp_path, "NodeName=rack[0-3]n[0-7] CPUs=8\nPartitionName=a Nodes=rack[0-1]n[0-7]\n")
    assert found.config.machine.cores == 4 * 8 * 8
    assert queues(found, "cores", "nodes") == {"a": ((1, 128), ("rack",))}
    hosts = [(each.name, each.count, each.hosts) for each in found.config.nodes]
    assert hosts == [("rack", 16, "rack[0-1]n[0-7]"), ("rack-2", 16, "rack[2-3]n[0-7]")]


TIERS = "PriorityTier=1 PriorityJobFactor=500\nPartitionName=b Nodes=ALL PriorityTier=2 PriorityJobFactor=10\n"
FACTORS = "PriorityJobFactor=500\nPartitionName=b Nodes=ALL PriorityJobFactor=10\n"


@pytest.mark.parametrize(
    ("partitions", "weight", "priorities", "warning"),
    [
        (TIERS, 1000, [1, 2], "PriorityTier goes before"),
        (TIERS, 0, [1, 2], ""),
        (FACTORS, 1000, [500, 10], "PriorityType is not set"),
        (FACTORS, 0, [1, 1], "with a PriorityWeightPartition only"),
    ],
)
def test_the_tier_goes_before_the_factor(partitions, weight, priorities, warning, tmp_path):
    found = slurm_read(tmp_path, f"{NODES}PriorityWeightPartition={weight}\nPartitionName=a Nodes=ALL {partitions}")
    assert [queue.priority for queue in found.config.queues] == priorities
    assert warning in " ".join(found.warnings)
    assert bool(warning) == bool(found.warnings)


def test_an_included_file_may_have_been_copied_beside(tmp_path):
    (tmp_path / "nodes.conf").write_text("NodeName=n[1-2] CPUs=4\n")
    found = slurm_read(tmp_path, "include /no/such/folder/nodes.conf\nPartitionName=a Nodes=ALL\n")
    assert (found.config.machine.cores, found.warnings) == (8, ())


def test_includes_are_read_relative_to_the_file_that_has_them(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "parts").write_text("include nodes\nPartitionName=a Nodes=ALL\n")
    (tmp_path / "more" / "nodes").write_text("NodeName=n[1-2] CPUs=4\n")
    found = slurm_read(tmp_path, "include more/parts\nInclude secrets\n")
    assert found.config.machine.cores == 8
    assert found.warnings == (f"line 2: {tmp_path / 'secrets'} is not there, and what it holds is missing here",)
    for text, message in (
        ("include parts\n", r"nodes, line 1: .*includes itself"),
        ("\nNodeName=n CPUs=x\n", r"nodes, line 2"),
    ):
        (tmp_path / "more" / "nodes").write_text(text)
        with pytest.raises(InputError, match=message):
            slurm_read(tmp_path, "include more/parts\n")


def test_backfilling_and_nodes_that_are_nowhere(tmp_path):
    parts = "SchedulerType=sched/builtin\nPartitionName=a Nodes=n[1-2],x\nPartitionName=b\n"
    found = slurm_read(tmp_path, NODES + parts)
    assert not found.config.backfill
    assert found.config.names == ("a",)
    assert "no NodeName line has x" in found.warnings[0]
    assert "b: left out, it has no nodes" in found.warnings


EXCLUSIVE = """\
NodeName=n[1-2] CPUs=8
NodeName=m[1-2] CPUs={}
PartitionName=a Nodes=n[1-2] OverSubscribe=EXCLUSIVE
PartitionName=b Nodes=m[1-2] {}
"""


@pytest.mark.parametrize(
    ("cores", "words", "said"),
    [
        (8, "", "a: jobs get whole nodes, and others do not: simulated by cores"),
        (16, "OverSubscribe=EXCLUSIVE", "a, b: jobs get whole nodes, and the nodes are unequal: simulated by cores"),
        (8, "MaxTime=0", "b: left out, no job can enter it"),
    ],
)
def test_what_is_left_out_or_simulated_otherwise_is_said(cores, words, said, tmp_path):
    assert said in slurm_read(tmp_path, EXCLUSIVE.format(cores, words)).warnings


def loses(config, *keys):
    """Return a configuration without these keys of its queues."""
    queues = (queue.model_copy(update=dict.fromkeys(keys)) for queue in config.queues)
    return config.replace(queues=tuple(queues))


INCLUDES = "ClusterName={}\nNodeName=n[1-{}] CPUs=8\ninclude partitions.conf\n"


@pytest.mark.parametrize("text", [HYBRID, HYBRID.replace(", whole_nodes: true", "").replace("[17, 40]", "[15, 39]")])
def test_an_exported_hybrid_machine_comes_back_after_its_plan(text, tmp_path):
    config = parse(text)
    written(tmp_path, slurm_files(config, nodes=read_nodes("n[1-12]")))
    found = slurm_read(tmp_path, INCLUDES.format("tiny", 12))
    assert found.config == loses(config, "starvation")  # it has no form
    assert found.warnings == ()
    (tmp_path / "qos.sacctmgr").unlink()  # limits are in accounting alone
    found = slurm_read(tmp_path, INCLUDES.format("tiny", 12))
    assert found.config == loses(config, "starvation", "max_run", "max_user_run")
    assert [warning.partition(":")[0] for warning in found.warnings] == ["small", "medium"]


def test_the_threshold_and_the_priorities_of_the_pool_come_back(tmp_path):
    config = parse(HYBRID)
    priorities = dict(zip(config.names, (0.3, 1 / 7, 9.5), strict=True))
    queues = tuple(queue.model_copy(update={"priority": priorities[queue.name]}) for queue in config.queues)
    config = config.replace(queues=queues, pool=config.pool.model_copy(update={"threshold": 2.25}))
    written(tmp_path, slurm_files(config, nodes=read_nodes("n[1-12]")))
    found = slurm_read(tmp_path, INCLUDES.format("tiny", 12)).config
    assert found.threshold == 2.25
    assert {name: found.queue(name).priority for name in ("small", "medium")} | {"large": 9.5} == priorities


def test_a_lower_tier_on_all_nodes_is_no_advance_reservation(tmp_path):
    parts = "NodeName=n[1-4] CPUs=8\nPartitionName=a Nodes=n[1-2] PriorityTier={0}\n"
    parts += "PartitionName=b Nodes=n[3-4] PriorityTier={0}\nPartitionName=rest Nodes=ALL PriorityTier={1}\n"
    found = slurm_read(tmp_path, parts.format(2, 1))
    assert found.config.mode == "shared"
    assert queues(found, "priority", "nodes") == {"a": (2, ("n",)), "b": (2, ("n-2",)), "rest": (1, None)}
    found = slurm_read(tmp_path, parts.format(1, 2))
    assert (found.config.mode, found.config.queue("rest").reservation) == ("partitioned", True)


def test_the_defaults_of_partitions_in_small_letters(tmp_path):
    text = "NodeName=default CPUs=8\nNodeName=n[1-2]\nPartitionName=Default MaxTime=60\nPartitionName=a Nodes=ALL\n"
    found = slurm_read(tmp_path, text)
    assert (found.config.machine.cores, queues(found, "walltime")) == (16, {"a": ((0, 3600),)})


def test_several_lines_of_a_partition_are_one(tmp_path):
    """Its nodes are those of all of them, and of other words the last holds."""
    text = "NodeName=n[1-3] CPUs=8\nPartitionName=a Nodes=n1 MaxTime=60\nPartitionName=b Nodes=n3\n"
    found = slurm_read(tmp_path, f"{text}PartitionName=a Nodes=n2 MaxTime=120\n")
    assert queues(found, "partition", "walltime") == {"a": (16, (0, 7200)), "b": (8, (0, MAX_DURATION))}


@pytest.mark.parametrize(
    ("words", "cores"),
    [
        ("Procs=8", 8),
        ("CPUs=4#8", 4),
        ("CPUs=4 Comment=a\\#b Sockets=9", 4),
        ("Boards=2 SocketsPerBoard=3 CoresPerSocket=4", 24),
        ("Boards=2 Sockets=3 CoresPerSocket=4", 12),
        ("CPUs=16 CoreSpecCount=2", 14),
        ("CPUs=16 ThreadsPerCore=2 CoreSpecCount=1", 14),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1", 14),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=1", 7),
        ("CPUs=16 CpuSpecList=0,4-6", 12),
    ],
)
def test_the_cores_of_a_node_as_slurm_counts_them(words, cores, tmp_path):
    assert slurm_read(tmp_path, f"NodeName=n {words}\nPartitionName=a Nodes=n\n").config.machine.cores == cores


@pytest.mark.parametrize(("mode", "share"), [("shared", ""), ("partitioned", ", partition: 16")])
def test_all_limits_of_an_export_come_back(mode, share, tmp_path):
    config = parse(
        f"machine: {{name: m, cores: 32, cores_per_node: 8}}\nmode: {mode}\nqueues:\n"
        f"  - {{name: normal, max_run: 3, max_run_cores: 12{share}}}\n"  # also a QOS that all jobs have
        f"  - {{name: wide, max_run_cores: 5, max_user_cores: 4{share}}}\n"
    )
    written(tmp_path, slurm_files(config, nodes=read_nodes("n[1-4]")))
    found = slurm_read(tmp_path, INCLUDES.format("m", 4))
    assert (found.config.queues, found.warnings) == (config.queues, ())


def test_access_comes_back(tmp_path):
    text = "{machine: {cores: 8}, queues: [{name: a, access: {groups: [x, y], accounts: [-bad], hosts: [l1, l2]}}]}"
    config = parse(text)
    line = slurm_files(config)["partitions.conf"]
    assert any("by size alone" in note for note in exporter("slurm")().notes(config))
    assert "AllowGroups=x,y AllocNodes=l1,l2 DenyAccounts=bad" in line
    assert slurm_read(tmp_path, "ClusterName=machine\nNodeName=n[1-8]\n" + line).config == config


QOS_TABLE = "Name|Priority|GrpJobs|MaxJobsPU|MaxWall\nnormal|0|||\n"


def test_numbers_of_a_qos_that_nothing_reaches_are_no_limits(tmp_path):
    (tmp_path / "qos").write_text(QOS_TABLE + "of_a|4294967295|99999999999|2147483648|999-99999999999:00\n")
    text = NODES + "PartitionName=a Nodes=ALL QOS=of_a MaxTime=60\n"
    found = slurm_read(tmp_path, text, qos=tmp_path / "qos").config
    assert not found.queue("a").limited
    assert found.queue("a").walltime == (0, 3600)
    (tmp_path / "qos").write_text(QOS_TABLE + "fast|4294967295|||\n")
    assert slurm_read(tmp_path, text, qos=tmp_path / "qos").config.qos[-1].priority == 2**32 - 1


def test_a_partition_whose_qos_lets_no_job_run_is_left_out(tmp_path):
    (tmp_path / "qos").write_text(QOS_TABLE + "drained|0|0||\nslow|0|8|0|\n")
    text = (
        NODES + "PartitionName=a Nodes=ALL QOS=drained\nPartitionName=b Nodes=ALL QOS=slow\nPartitionName=c Nodes=ALL\n"
    )
    found = slurm_read(tmp_path, text, qos=tmp_path / "qos")
    assert found.config.names == ("c",)
    assert "a: left out, its QOS drained lets no job run" in found.warnings
    assert "b: left out, its QOS slow lets no job run" in found.warnings


def test_a_priority_of_a_qos_that_is_no_number_is_named(tmp_path):
    (tmp_path / "qos").write_text(QOS_TABLE + "fast|1K|||\n")
    with pytest.raises(InputError, match=r"qos, line 3: Priority = '1K': is no whole number"):
        slurm_read(tmp_path, NODES + "PartitionName=a Nodes=ALL\n", qos=tmp_path / "qos")
