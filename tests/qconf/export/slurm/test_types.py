"""Types of nodes from the NodeName lines of a slurm.conf, and queues that are bound to some of them."""

import re

import pytest

from qconf.config import dump, parse
from qconf.errors import ExportError
from qconf.evaluation.period import Period
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.history import clean, read
from qconf.strategies import Proposal
from tests.qconf.export.sites import new_conf, slurm_read, written

MIXED = """\
ClusterName=mixed
GresTypes=gpu,fpga
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT Sockets=2 CoresPerSocket=16 ThreadsPerCore=1 State=UNKNOWN
NodeName=gpu[1-2] RealMemory=515000 Gres=gpu:a100:4(S:0-1) Feature=ib,a100 Weight=50
NodeName=cpu[01-06] RealMemory=191000 Feature=ib
NodeName=big1 RealMemory=2063000 MemSpecLimit=1000 Weight=20 Gres=fpga:2 State=DOWN
PartitionName=DEFAULT MaxTime=2-0 State=UP
PartitionName=cpu Nodes=cpu[01-06],big1 Default=YES
PartitionName=gpu Nodes=gpu[1-2]
PartitionName=every Nodes=ALL
"""


def bound(found):
    return {queue.name: queue.nodes for queue in found.config.queues}


def test_three_types_in_the_order_of_their_weights(tmp_path):
    found = slurm_read(tmp_path, MIXED)
    config = found.config
    assert [each.model_dump(exclude_defaults=True) for each in config.nodes] == [
        {"name": "cpu", "count": 6, "cores": 32, "memory": 191000, "features": ("ib",), "hosts": "cpu[01-06]"},
        {"name": "big", "count": 1, "cores": 32, "memory": 2062000, "resources": {"fpga": 2}, "hosts": "big1"},
        {"name": "gpu", "count": 2, "cores": 32, "memory": 515000, "gpus": 4, "features": ("a100", "gpu:a100", "ib")}
        | {"hosts": "gpu[1-2]"},
    ]
    assert bound(found) == {"cpu": ("cpu", "big"), "gpu": ("gpu",), "every": None}
    assert [queue.max_run_cores for queue in config.queues] == [None, None, None]
    assert (config.mode, config.reserve, config.machine.cores) == ("shared", "cores", 9 * 32)
    assert parse(dump(config)) == config
    assert found.warnings == ("1 nodes have State=DOWN or the like: counted as the others, as if they were up",)


def test_a_machine_that_is_divided_between_kinds_is_bound_and_one_of_one_kind_stays_divided(tmp_path):
    divided = MIXED.replace("PartitionName=every Nodes=ALL\n", "")
    assert bound(slurm_read(tmp_path, divided)) == {"cpu": ("cpu", "big"), "gpu": ("gpu",)}
    nodes = "NodeName=a[1-4] CPUs=8 Feature=old\nNodeName=b[1-2] CPUs=8 Feature=new\n"
    config = slurm_read(tmp_path, f"{nodes}PartitionName=a Nodes=a[1-4]\nPartitionName=b Nodes=b[1-2]\n").config
    assert (config.mode, config.nodes, [queue.partition for queue in config.queues]) == ("partitioned", (), [32, 16])
    config = slurm_read(tmp_path, f"{nodes}PartitionName=a Nodes=ALL\n").config
    assert [(each.name, each.features) for each in config.nodes] == [("a", ("old",)), ("b", ("new",))]


def test_weights_are_left_out_where_jobs_are_not_placed_by_them(tmp_path):
    text = """
SelectType=select/cons_tres
SchedulerParameters=bf_busy_nodes,bf_job_part_count_reserve=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=b CPUs=4 Weight=5
NodeName=a CPUs=4 Weight=7
NodeName=g CPUs=8 Gres=gpu:2 Weight=9
PartitionName=p Nodes=ALL Default=YES
PartitionName=q Nodes=ALL PriorityTier=2
"""
    for old, reserve, nodes in (
        ("", "cores", [(2, 1), (1, 1)]),
        ("PriorityTier=2", "queue_nodes", [(1, 5), (1, 7), (1, 9)]),
    ):
        config = slurm_read(tmp_path, text.replace(old, "")).config
        assert (config.reserve, [(each.count, each.weight) for each in config.nodes]) == (reserve, nodes)


def test_weights_that_make_too_many_types_are_left_out(tmp_path):
    names = "\n".join(f"NodeName=n{n} CPUs=32 Weight={n}{' Gres=gpu:4' * (n % 2)}" for n in range(1, 71))
    head = "GresTypes=gpu\nSelectType=select/cons_tres\n"
    head += "SchedulerParameters=bf_busy_nodes,bf_job_part_count_reserve=1\n"
    found = slurm_read(tmp_path, f"{head}{names}\nPartitionName=a Nodes=ALL\n")
    assert [(each.name, each.count, each.weight) for each in found.config.nodes] == [("gpu", 35, 1), ("cpu", 35, 1)]
    assert "weights of nodes: with them there are 70 types; left out" in found.warnings


def test_nodes_that_are_alike_stay_cores(tmp_path):
    text = "NodeName=n1 CPUs=8 RealMemory=64000\nNodeName=n2 CPUs=8 RealMemory=64200\nPartitionName=a Nodes=ALL\n"
    found = slurm_read(tmp_path, text)
    assert (found.config.nodes, found.config.machine.cores_per_node, found.warnings) == ((), 8, ())
    counting = slurm_read(tmp_path, f"SelectTypeParameters=CR_Core_Memory\n{text}")
    assert counting.warnings == ("RealMemory is not counted, all nodes are alike: --history shows whether it binds",)


def log_of(folder, *rows):
    (folder / "jobs.txt").write_text(
        "JobID|Submit|Start|End|TimelimitRaw|AllocCPUS|AllocTRES|Partition|State\n" + "\n".join(rows) + "\n"
    )
    return read([folder / "jobs.txt"])


def test_gpus_of_nodes_that_are_all_alike_count(tmp_path):
    """Each job takes the eight GPUs of a node, and eight of its 96 cores, so that four run at a time."""
    text = "GresTypes=gpu\nNodeName=g[1-4] CPUs=96 Gres=gpu:A100:8\nPartitionName=gpu Nodes=g[1-4] Default=YES\n"
    config = slurm_read(tmp_path, text).config
    assert [(each.count, each.gpus, each.features) for each in config.nodes] == [(4, 8, ("gpu:A100",))]
    tres = "cpu=8,gres/gpu:a100=8,gres/gpu=8,mem=1000M,node=1"  # accounting spells it in its own way
    rows = [f"{i}|{i * 60}|{i * 60}|{i * 60 + 3600}|60|8|{tres}|gpu|COMPLETED" for i in range(1, 9)]
    history = clean(log_of(tmp_path, *rows), config)
    assert history.dropped.empty
    assert Proposal(config).simulate(Period.of(history, config)).wait.tolist() == [0] * 4 + [3360] * 4


@pytest.mark.parametrize(("memory", "counted"), [("16G", False), ("200G", True)])
def test_memory_of_nodes_that_are_alike_counts_where_jobs_of_a_log_take_it(tmp_path, memory, counted):
    text = "SelectTypeParameters=CR_Core_Memory\nNodeName=n[1-2] CPUs=16 RealMemory=256000\nPartitionName=a Nodes=ALL\n"
    records = log_of(tmp_path, f"1|60|60|3660|60|4|cpu=4,mem={memory},node=1|a|COMPLETED")
    found = slurm_read(tmp_path, text, records=records)
    assert [each.memory for each in found.config.nodes] == ([256000] if counted else [])
    assert found.warnings == ()


def test_types_of_several_gpus_of_a_node_and_shards_are_counted_apart(tmp_path):
    found = slurm_read(
        tmp_path,
        "GresTypes=gpu,shard\n"
        "NodeName=m1 CPUs=32 Gres=gpu:a100:2(S:0-1),gpu:1g.5gb:14(S:0-1)\n"
        "NodeName=a1 CPUs=32 Gres=gpu:A100:4\nNodeName=s1 CPUs=32 Gres=gpu:t4:1,shard:8\nPartitionName=a Nodes=ALL\n",
    )
    assert [(each.gpus, dict(each.resources), each.features) for each in found.config.nodes] == [
        (16, {"gpu:1g.5gb": 14, "gpu:a100": 2}, ()),
        (4, {"gpu:A100": 4}, ()),
        (1, {"shard": 8}, ("gpu:t4",)),
    ]
    said = "Gres=mps and shard are counted beside GPUs: in Slurm a GPU is given whole or in parts, here both at once"
    assert found.warnings == (said,)
    assert parse(dump(found.config)) == found.config


def test_memory_counts_where_slurm_counts_it(tmp_path):
    found = slurm_read(tmp_path, MIXED.replace("CR_Core_Memory", "CR_Core"))
    assert {each.memory for each in found.config.nodes} == {0}
    assert any(each.startswith("RealMemory of nodes: left out, SelectTypeParameters has no") for each in found.warnings)


@pytest.mark.parametrize(
    ("gres", "gpus", "resources", "features", "warning"),
    [
        ("gpu:2", 2, {}, (), ""),
        ("gpu", 1, {}, (), ""),
        ("gpu:a100", 1, {}, ("gpu:a100",), ""),
        ("gpu:a100:2,gpu:v100:1", 3, {"gpu:a100": 2, "gpu:v100": 1}, (), ""),
        ("gpu:1g.5gb:7", 7, {}, ("gpu:1g.5gb",), ""),
        ("gpu:tesla_v100-sxm2-16gb:2", 2, {}, ("gpu:tesla_v100-sxm2-16gb",), ""),
        ("GPU:2080:2", 2, {}, ("gpu:2080",), ""),
        ("gpu:4:a100:x", 0, {}, (), "Gres=gpu:4:a100:x: left out, it is not counted here"),
        ("compute-node:1", 0, {}, (), "Gres=compute-node: left out, GresTypes does not have it"),
        ("FPGA:1", 0, {"FPGA": 1}, (), ""),
        ("fpga:xilinx:2", 0, {"fpga": 2}, ("fpga:xilinx",), ""),
        ("gpu:a100:2(S:0,1),fpga:3", 2, {"fpga": 3}, ("gpu:a100",), ""),
        ("fpga:2K", 0, {"fpga": 2048}, (), ""),
        ("gpu:2,mps:200", 2, {}, (), "Gres=mps: left out, GresTypes does not have it"),
        ("gpu:2,fpga:no_consume:4", 2, {}, (), "Gres=fpga:no_consume:4: left out, it is not counted here"),
        ("(null)", 0, {}, (), ""),
    ],
)
def test_generic_resources(tmp_path, gres, gpus, resources, features, warning):
    text = f"GresTypes=gpu,fpga\nNodeName=a CPUs=8 Gres={gres}\nNodeName=b CPUs=16\nPartitionName=a Nodes=ALL\n"
    found = slurm_read(tmp_path, text)
    first = found.config.nodes[0]
    assert (first.gpus, dict(first.resources), first.features) == (gpus, resources, features)
    assert found.warnings == ((warning,) if warning else ())


WORDS = "SchedulerParameters=bf_busy_nodes,bf_job_part_count_reserve=1\n"
BY_NODE = MIXED.replace("PartitionName=DEFAULT", f"{WORDS}PartitionName=DEFAULT")
TIERED = "PreemptType=preempt/partition_prio\n" + MIXED.replace("Default=YES", "Default=YES PriorityTier=2")


def test_weights_of_nodes_by_which_jobs_are_placed(tmp_path):
    found = slurm_read(tmp_path, BY_NODE)
    assert [(each.name, each.weight) for each in found.config.nodes] == [("cpu", 1), ("big", 20), ("gpu", 50)]
    assert parse(dump(found.config)) == found.config
    assert not [each for each in found.warnings if "reservations of each partition" in each]
    alike = BY_NODE.replace("Weight=50", "").replace("Weight=20", "")
    assert [each.name for each in slurm_read(tmp_path, alike).config.nodes] == ["big", "cpu", "gpu"]


@pytest.mark.parametrize(
    ("text", "old", "new", "reserve", "said"),
    [
        (BY_NODE, "", "", "queue_nodes", ""),
        (BY_NODE, "CR_Core_Memory", "CR_Core_Memory,CR_LLN", "queues", ""),
        (BY_NODE, "SelectType=", "TopologyPlugin=topology/tree\nSelectType=", "queues", ""),
        (BY_NODE, "State=UP", "State=UP LLN=YES", "queues", ""),
        (BY_NODE, "bf_busy_nodes", "bf_busy_nodes,pack_serial_at_end", "queues", ""),
        (BY_NODE, "reserve=1", "reserve=2", "cores", ""),
        (TIERED, "", "", "cores", ""),
        (TIERED, "PreemptType", "PreemptMode=SUSPEND,GANG\nPreemptType", "cores", "jobs keep their GPUs and memory in"),
    ],
)
def test_what_types_of_nodes_go_without_is_said(text, old, new, reserve, said, tmp_path):
    found = slurm_read(tmp_path, text.replace(old, new, 1))
    assert (found.config.reserve, len(found.config.nodes), found.config.has_tiers) == (reserve, 3, text == TIERED)
    assert said in "; ".join(found.warnings)


def test_partitions_of_whole_nodes_of_types(tmp_path):
    whole = MIXED.replace("State=UP", "State=UP OverSubscribe=EXCLUSIVE").replace("Weight=50", "")
    config = slurm_read(tmp_path, whole).config
    assert (config.machine.whole_nodes, len(config.nodes)) == (False, 3)
    assert all(queue.exclusive for queue in config.queues)


def test_jobs_may_use_part_of_each_node(tmp_path):
    found = slurm_read(tmp_path, MIXED.replace("Nodes=ALL\n", "Nodes=ALL MaxCPUsPerNode=30\n"))
    assert found.config.queue("every").max_run_cores == 9 * 30
    assert "every: MaxCPUsPerNode: a limit of what runs on all of its nodes together" in found.warnings


SITE = """\
machine: {name: mixed, cores: 288, cores_per_node: 32}
nodes:
  - {name: plain, count: 6, cores: 32, memory: 191000, hosts: "cpu[01-06]"}
  - {name: large, count: 1, cores: 32, memory: 2062000, resources: {fpga: 2}, hosts: big1}
  - {name: gpu, count: 2, cores: 32, memory: 515000, gpus: 4, features: ["gpu:a100"], hosts: "gpu[1-2]"}
queues:
  - {name: cpu, cores: [1, 192], walltime: [0, 48h], nodes: [plain, large]}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h], nodes: [gpu], max_run: 20, exclusive: true}
  - {name: every, walltime: [0, 1h]}
"""
NODES = """\
ClusterName=mixed
GresTypes=gpu,fpga
NodeName=DEFAULT CPUs=32
NodeName=cpu[01-06] RealMemory=191000
NodeName=big1 RealMemory=2063000 MemSpecLimit=1000 Gres=fpga:2
NodeName=gpu[1-2] RealMemory=515000 Gres=gpu:a100:4
include partitions.conf
"""


def exported(text, **options):
    return exporter("slurm")(**options).export(parse(text))


def nodes_lines(files):
    """Return where the partitions of an export are."""
    return [line.split()[1] for line in files["partitions.conf"].splitlines() if line.startswith("Part")]


def test_bound_queues_are_exported_and_come_back(tmp_path):
    files = exported(SITE).files
    assert nodes_lines(files) == ["Nodes=big1,cpu[01-06]", "Nodes=gpu[1-2]", "Nodes=ALL"]
    found = slurm_read(written(tmp_path, files), NODES).config
    assert found == parse(SITE)
    assert exported(dump(found)).files == files
    listed = exported(SITE, nodes=read_nodes("cpu[01-06],big1,gpu[1-2]")).files
    assert nodes_lines(listed)[-1] == "Nodes=big1,cpu[01-06],gpu[1-2]"


def test_partitions_of_nodes_that_jobs_have_alone():
    alone = SITE.replace("exclusive: true", "exclusive: false").replace("gpus: 4,", "gpus: 4, exclusive: true,")
    with pytest.raises(ExportError, match="queue every: jobs have some of its nodes alone and others not"):
        exported(alone)
    lines = exported(alone.replace("walltime: [0, 1h]", "walltime: [0, 1h], nodes: [plain]")).files["partitions.conf"]
    assert re.findall(r"^PartitionName=(\S+).* OverSubscribe=EXCLUSIVE", lines, re.MULTILINE) == ["gpu"]


def test_types_without_bound_queues_need_no_names():
    free = "\n".join(re.sub(r", (hosts: [^}]*|nodes: \[[^]]*\])", "", line) for line in SITE.splitlines())
    files = exported(free).files
    assert re.findall(r"Nodes=(\S+)", files["partitions.conf"]) == ["ALL", "ALL", "ALL"]
    assert "# Nodes" not in files["partitions.conf"]
    assert "NODES = " not in files["move-jobs"]


OTHER = [
    Node(name, 64 if name == "gpu2" else 32) for name in ("big1", *(f"cpu0{i}" for i in range(1, 7)), "gpu1", "gpu2")
]


@pytest.mark.parametrize(
    ("old", "new", "nodes", "message"),
    [
        (", hosts: big1", "", None, r"nodes large: queues are bound to nodes, and these have no names: add hosts"),
        ("big1", "gpu1", None, "nodes gpu: hosts has gpu1 among those of large too"),
        ("", "", [Node("big1"), Node("x")], "node x is in none of the hosts of the configuration's nodes"),
        ("", "", [Node("big1")], "nodes plain: hosts has cpu01, which --nodes has not"),
        ("", "", OTHER, "node gpu2 has 64 cores, nodes gpu of the configuration have 32"),
        ("[1, 64]", "[65, 96]", None, r"queue gpu: its nodes \(gpu\) of 64 cores together are narrower"),
        ("name: cpu,", "name: 1a,", None, "queue name '1a': Slurm takes 1 to 64 letters"),
    ],
)
def test_what_does_not_fit_is_refused(old, new, nodes, message):
    with pytest.raises(ExportError, match=message):
        exported(SITE.replace(old, new), nodes=nodes)


def test_waiting_jobs_go_where_nodes_can_hold_them():
    script = {}
    exec(exported(SITE).files["move-jobs"].rpartition("\ndef main")[0], script)
    rows = [
        ("1|4000M|N/A", (4000, {}), ["cpu", "gpu", "every"]),
        ("2|400G|N/A", (400 * 1024, {}), ["cpu", "gpu", "every"]),
        ("3|0|gres:gpu:2", (0, {"gpu": 2}), ["gpu", "every"]),
        ("4|1G|gres:gpu:a100:8", (1024, {"gpu": 8}), []),
        ("5_[1-3%2]|2T|gres:fpga", (2 * 1024**2, {"fpga": 1}), []),  # 2 TiB are more than the node has
    ]
    script["squeue"] = lambda *_: [printed for printed, *_ in rows]
    wanted = script["wanted_of_nodes"]()
    assert [*wanted] == ["1", "2", "3", "4", "5_[1-3]"]
    assert [*wanted.values()] == [amounts for _, amounts, _ in rows]
    takes = [[name for name in ("cpu", "gpu", "every") if script["holds"](name, *each)] for each in wanted.values()]
    assert takes == [places for *_, places in rows]
    assert script["holds"]("theirs", 1e9, {"gpu": 99})


QOS = """\
Name|Priority|Flags|GrpTRES|MaxTRESPU|GrpJobs
normal|0||||
gpuq|0|DenyOnLimit|cpu=64,gres/gpu=8|gres/gpu=2|5
deep|0||gres/gpu=6,gres/gpu:a100=4,gres/boards=1,mem=1.50G,node=3|mem=much|
"""


def test_limits_of_what_nodes_have_are_read_and_others_are_named(tmp_path):
    (tmp_path / "qos").write_text(QOS)
    found = slurm_read(tmp_path, MIXED.replace("Nodes=gpu[1-2]", "Nodes=gpu[1-2] QOS=gpuq"), qos=tmp_path / "qos")
    assert (found.config.queue("gpu").max_run_cores, found.config.queue("gpu").max_run) == (64, 5)
    most = {"gpu:a100": 4, "gpus": 6, "memory": 1536}
    assert {each.what: each.limits for each in found.config.throttles} == {
        "all jobs in queue gpu": {"max_run_resources.gpus": 8},
        "each user in queue gpu": {"max_run_resources.gpus": 2},
        "qos deep": {f"max_run_resources.{name}": limit for name, limit in most.items()},
    }
    assert {
        "QOS deep: not simulated: GrpTRES=node=3, MaxTRESPerUser=mem=much",
        "throttles: the limit of gres/boards of qos deep is not simulated: it is not counted of nodes",
    } <= {*found.warnings}
    alike = slurm_read(
        tmp_path,
        "NodeName=g[1-2] CPUs=8 Gres=gpu:4\nPartitionName=a Nodes=ALL QOS=gpuq\n",
        qos=tmp_path / "qos",
    ).config
    assert ([each.gpus for each in alike.nodes], len(alike.throttles)) == ([4], 3)  # a type, for its limits


LIMITED = """\
qos:
  - {name: gold, exempt: [max_run_resources], users: [ann]}
  - {name: deep, users: [bob]}
throttles:
  - {user: bob, max_run_resources: {gpus: 4, memory: 384gb}}
  - {each: group, queue: gpu, max_run_resources: {gpus: 6}}
  - {queue: gpu, max_run_resources: {gpus: 7}}
  - {qos: deep, max_queued: 9, max_run_resources: {memory: 5000}}
  - {each: user, qos: gold, max_run_resources: {memory: 1000}}
"""


def test_limits_of_what_nodes_have_come_back(tmp_path):
    config = parse(SITE + LIMITED)
    export = exported(SITE + LIMITED)
    files = export.files
    assert files["throttles.sacctmgr"].splitlines() == [
        "modify user where name=bob set GrpTRES=gres/gpu=4",
        "modify user where name=bob set GrpTRES=mem=393216",
    ]
    assert [line for line in files["qos.sacctmgr"].splitlines() if "gres" in line] == [
        "modify qos gpu set MaxTRESPerAccount=gres/gpu=6",
        "modify qos gpu set GrpTRES=gres/gpu=7",
    ]
    free = "modify qos gold set MaxTRESPerAccount=gres/gpu=2000000000"
    assert {free, "modify qos deep set GrpTRES=mem=5000"} <= {*files["classes.sacctmgr"].splitlines()}
    assert "printf '%s\\n' gres/gpu mem | grep -Fxv -f tres.known" in files["PLAN.md"]
    assert any("generic resources that AccountingStorageTRES" in note for note in export.notes)
    found = slurm_read(written(tmp_path, files), NODES).config
    assert {each.what: each for each in found.throttles} == {each.what: each for each in config.throttles}
    assert found.qos == config.qos


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{user: ann, queue: gpu, max_run_resources: {gpus: 1}}", "of what nodes have beside cores, limits of all"),
        ("{queue: cpu, max_run: 3, max_run_resources: {gpus: 1}}", "no form in Slurm beside the limits of the queue"),
        ("{max_run_resources: {gpus: 1}}", "counts the jobs of all QOS together"),
        ("{each: group, qos: deep, max_run_resources: {gpus: 7}}", "deep and queue gpu both have MaxTRESPerAccount"),
    ],
)
def test_limits_of_what_nodes_have_without_a_form_are_refused(line, message):
    with pytest.raises(ExportError, match=message):
        exported(SITE + LIMITED + f"  - {line}\n")


def test_a_qos_that_another_takes_the_place_of_is_named(tmp_path):
    written(tmp_path, exported(SITE).files)
    for qos, said in (("gpuq", True), ("gpu", False)):
        printed = new_conf(
            tmp_path, NODES.replace("include partitions.conf", f"PartitionName=gpu Nodes=gpu1 QOS={qos}")
        )
        assert ("gpu: QOS=gpuq becomes gpu: give it the limits of gpuq that are to stay" in printed) is said


def test_partitions_of_types_are_partitions_of_their_nodes(tmp_path):
    text = (
        SITE.partition("queues:")[0]
        + """mode: partitioned
queues:
  - {name: cpu, cores: [1, 160], walltime: [0, 48h], partition: {plain: 5}}
  - {name: gpu, cores: [1, 64], walltime: [0, 48h], partition: {plain: 1, large: 1, gpu: 2}}
"""
    )
    files = exported(text).files
    assert nodes_lines(files) == ["Nodes=cpu[01-05]", "Nodes=big1,cpu06,gpu[1-2]"]
    again = slurm_read(written(tmp_path, files), NODES).config
    of = {each.name: each.hosts for each in again.nodes}
    hosts = [sorted(of[name] for name in queue.nodes) for queue in again.queues]
    assert hosts == [["cpu[01-05]"], ["big1", "cpu06", "gpu[1-2]"]]


def test_queues_are_limited_to_nodes_only_where_each_is_a_core():
    text = (
        "machine: {{name: m, cores: {}}}\n"
        "nodes: [{{name: thin, {}, hosts: 'a[1-3]'}}, {{name: fat, {}, hosts: b1}}]\n"
        "queues: [{{name: wide, cores: [33, 96]}}]\n"
    )
    assert (
        "MinNodes"
        not in exported(text.format(160, "count: 3, cores: 32", "count: 1, cores: 64")).files["partitions.conf"]
    )
    of_one = text.replace(", hosts: 'a[1-3]'", "").replace(", hosts: b1", ", gpus: 1")
    of_one = of_one.format(96, "count: 48, cores: 1", "count: 48, cores: 1")
    assert "MinNodes=33 MaxNodes=96" in exported(of_one).files["partitions.conf"]


@pytest.mark.parametrize("system", ["pbs", "slurm"])
def test_downtimes_of_types_are_no_part_of_an_export(system):
    down = "downtime: [{begin: 2026-03-01, end: 2026-03-02, types: {gpu: 1}}]\n"
    assert exporter(system)().export(parse(SITE + down)).files == exporter(system)().export(parse(SITE)).files


def test_weights_of_billing_come_back_and_are_left_out_where_they_cannot_be_read(tmp_path):
    weights = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0"
    conf = MIXED.replace("PartitionName=gpu ", f'PartitionName=gpu TRESBillingWeights="{weights}" ')
    found = slurm_read(tmp_path, conf)
    assert [queue.billing for queue in found.config.queues] == [None, weights, None]
    assert not any("tresbilling" in warning.lower() for warning in found.warnings)
    assert parse(dump(found.config)) == found.config
    lines = exported(dump(found.config)).files["partitions.conf"].splitlines()
    assert [line.split()[0] for line in lines if f" TRESBillingWeights={weights} " in line] == ["PartitionName=gpu"]
    assert "`billing` of queues has no form in PBS." in exporter("pbs")().notes(found.config)
    found = slurm_read(tmp_path, conf.replace(weights, "CPU"))
    assert [queue.billing for queue in found.config.queues] == [None, None, None]
    (warning,) = (each for each in found.warnings if "Billing" in each)
    assert warning.startswith("line 11: TRESBillingWeights = 'CPU': is no list like CPU=1.0")


HYBRID = """\
machine: {name: m, cores: 96, cores_per_node: 32}
mode: hybrid
queues:
  - {name: a, cores: [1, 96], walltime: [0, 1h], priority: 40, partition: 32}
  - {name: b, cores: [1, 96], walltime: [1h, 48h], priority: 80, partition: 32}
pool: {cores: 32, entry: move, threshold: 40}
"""


def test_the_pool_has_the_weights_of_billing_of_all_queues():
    def pool(text):
        found = exported(text, nodes=[Node(f"n{k}", 32) for k in range(1, 4)])
        return found.files["partitions.conf"].splitlines()[-1], " ".join(found.notes)

    every = HYBRID.replace("priority", "billing: 'CPU=2', priority")
    assert "TRESBillingWeights=CPU=2 State" in pool(every)[0]
    line, notes = pool(HYBRID.replace("priority: 40", "billing: 'CPU=2', priority: 40"))
    assert "Billing" not in line
    assert "TRESBillingWeights of the queues differ" in notes


def test_whole_nodes_that_slurm_reserves_are_named_where_jobs_share_larger_ones():
    said = "Where jobs share nodes, Slurm reserves whole nodes"
    unequal = SITE.replace("cores: 288, cores_per_node: 32", "cores: 288")
    assert any(note.startswith(said) for note in exported(unequal).notes)
    alone = unequal.replace("memory:", "exclusive: true, memory:")
    assert not any(note.startswith(said) for note in exported(alone).notes)


def test_weights_of_nodes_stay_and_are_named():
    text = """
machine: {name: m, cores: 64}
reserve: queue_nodes
nodes: [{name: cpu, count: 1, cores: 32}, {name: gpu, count: 1, cores: 32, gpus: 4, weight: 10}]
queues: [{name: a}]
"""
    said = "Weight of nodes stays as slurm.conf has it; the simulator takes nodes by: cpu 1, gpu 10."
    for config, times in ((text, 1), (text.replace(", weight: 10", ""), 0), (text.replace("queue_nodes", "nodes"), 0)):
        plan = exporter("slurm")().export(parse(config)).files["PLAN.md"]
        assert " ".join(plan.split()).count(said) == times


def test_names_of_queues_are_as_long_as_slurm_takes_them():
    name = "a" * 64
    assert f"PartitionName={name} " in exported(SITE.replace("name: cpu,", f"name: {name},")).files["partitions.conf"]
