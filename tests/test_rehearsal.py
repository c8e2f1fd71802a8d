"""Rehearsals of exports, the parts without a batch system; the others are in tests/real_pbs and tests/real_slurm."""

import pytest

from qconf.config import parse
from qconf.export.directory import write_export
from qconf.export.slurm.conf import Conf
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.sites import FRESH, HYBRID, NODES, pbs_files, slurm_files
from tests.servers.__main__ import command as main
from tests.servers.pbs import Plan
from tests.servers.slurm import Plan as SlurmPlan
from tests.servers.slurm_changes import Site, beside_table


def test_without_an_installation_it_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("PBS_EXEC", raising=False)
    write_export(tmp_path, pbs_files(parse(HYBRID)))
    with pytest.raises(SystemExit, match="1"):
        main([str(tmp_path)])
    assert "PBS_EXEC names no installation of OpenPBS" in capsys.readouterr().err


def test_without_slurm_it_says_so(tmp_path, monkeypatch, capsys):
    write_export(tmp_path, slurm_files(parse(HYBRID), nodes=NODES))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="1"):
        main([str(tmp_path)])
    assert "slurmctld, slurmd, sbatch, scontrol, squeue, slurmdbd" in capsys.readouterr().err


CONF = """ClusterName=m
NodeName=n[1-4] CPUs=2
NodeName=late State=FUTURE
NodeSet=half Nodes=n[1-2]
PriorityType=priority/multifactor
PriorityWeightAge=1000
PartitionName=short Nodes=half MaxTime=60 AllowGroups=lab AllowAccounts=physics QOS=fast Default=YES
PartitionName=long Nodes=n[1-4] MaxTime=7-0 MinNodes=2
PartitionName=shut Nodes=n4,late State=DOWN
"""


def test_an_export_of_what_differs_is_tried_on_the_slurm_conf_that_it_was_made_from(tmp_path, monkeypatch, capsys):
    (tmp_path / "slurm.conf").write_text(CONF)
    write_export(tmp_path, {"PLAN.md": "What is not in this table does not change.", "new-conf": ""})
    with pytest.raises(SystemExit, match="1"):
        main([str(tmp_path)])
    assert "give --current here, too: the slurm.conf that it was made from" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="1"):
        main([str(tmp_path), "--current", str(tmp_path / "slurm.conf")])
    assert "slurmctld, slurmd, sbatch, scontrol, squeue, slurmdbd" in capsys.readouterr().err


def test_the_slurm_of_its_own_has_what_the_site_has(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)
    site = Site(Conf(tmp_path / "slurm.conf"))
    assert site.nodes == dict.fromkeys(("n1", "n2", "n3", "n4"), 2)
    assert site.settings.splitlines() == [
        *("prioritytype=priority/multifactor", "priorityweightage=1000"),
        *("NodeName=late CPUs=1 State=FUTURE", "NodeSet=half Nodes=n[1-2]"),
    ]
    assert site.lines == CONF[CONF.index("PartitionName") :]
    assert (site.named("qos", "allowaccounts"), site.named("allowgroups")) == (["fast", "physics"], ["lab"])


def test_what_changes_and_is_not_in_the_table_is_named():
    plan = "| setting | old | new | why |\n| partition a: MaxTime | 1 | 2 | x |\n| PriorityWeightAge | 1 | 2 | x |\n"
    before = {("a", "MaxTime"): "1", ("b", "MaxTime"): "1", ("", "PriorityWeightAge"): "1", ("", "PriorityMaxAge"): "1"}
    after = dict.fromkeys(before, "2")
    assert [*beside_table(plan, before, after)] == [
        "changed, and not in the table: PriorityMaxAge: 1 to 2",
        "changed, and not in the table: partition b: MaxTime: 1 to 2",
    ]


def test_a_plan_for_slurm_is_read_with_its_queues_and_nodes(tmp_path):
    for name, text in slurm_files(parse(HYBRID), nodes=NODES).items():
        (tmp_path / name).write_text(text)
    plan = SlurmPlan(tmp_path)
    assert plan.queues == [("small", 1, 1), ("medium", 17, 1), ("large", 41, 1)]
    assert list(plan.partitions) == ["small", "medium", "large", "pool"]
    assert plan.accounted
    assert plan.nodes() == {node.name: 8 for node in NODES}
    assert [title for title, _ in plan.undo] == ["Undo"] * 6
    assert plan.steps[-1][0] == "9. Install the script that moves jobs into the pool"


def test_queues_of_one_size_have_examples_of_their_walltimes(tmp_path):
    queues = "{name: a, cores: [1, 8], walltime: [0, 2h]}, {name: b, cores: [1, 16], walltime: [0, 1d]}, {name: c}"
    text = f"{{machine: {{cores: 96, cores_per_node: 8, whole_nodes: true}}, queues: [{queues}]}}"
    write_export(tmp_path, slurm_files(parse(text)))
    plan = SlurmPlan(tmp_path)
    assert plan.queues == [("a", 1, 1), ("b", 1, 121), ("c", 1, 1441)]
    wide = queues.replace("{name: c}", "{name: c, cores: [81, 96]}, {name: never, cores: [1, 2], walltime: [0, 1h]}")
    write_export(tmp_path, slurm_files(parse(text.replace(queues, wide))))
    plan = SlurmPlan(tmp_path)
    assert plan.queues == [("a", 1, 1), ("b", 1, 121), ("c", 81, 1)]  # no job is routed to `never`
    assert len(plan.nodes()) == 11  # enough for the widest example


def test_a_directory_that_is_no_export_is_refused(tmp_path, capsys):
    for given, why in ((tmp_path, "holds no PLAN.md"), (tmp_path / "no", "no such directory")):
        with pytest.raises(SystemExit, match="1"):
            main([str(given)])
        assert why in capsys.readouterr().err


def test_the_plan_is_read_block_by_block(tmp_path):
    for name, text in pbs_files(parse(HYBRID), current=FRESH, nodes=NODES).items():
        (tmp_path / name).write_text(text)
    plan = Plan(tmp_path)
    assert plan.route == "route"
    assert plan.examples == [("small", 1, "24:00:00"), ("medium", 17, "24:00:00"), ("large", 41, "48:00:00")]
    assert plan.steps[0][0] == "1. Look at the waiting jobs, and save what there is"
    assert [block.splitlines()[0] for _, block in plan.undo] == [
        f"sh step undo {number} <<'END'" for number in ("1", "2", "3", "4 last")
    ]
    assert list(plan.nodes()) == [node.name for node in NODES]


def test_an_export_for_another_server_needs_that_servers_state(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PBS_EXEC", str(tmp_path))
    with_small = f"{FRESH}create queue small\nset queue small queue_type = Execution\n"
    write_export(tmp_path, pbs_files(parse(HYBRID), current=with_small, nodes=NODES))
    with pytest.raises(SystemExit, match="1"):
        main([str(tmp_path)])
    said = capsys.readouterr().err
    assert "changes queues that the server has already (small), and a new one lacks them" in said
    assert "Give --current" in said
    files = pbs_files(parse(HYBRID), current=FRESH, nodes=NODES)
    write_export(tmp_path, files)
    assert Plan(tmp_path).presumed() == []
    (server := PbsServer(FRESH)).load(files["queues.qmgr"])
    order_alone = pbs_files(parse(HYBRID.replace("order: fcfs", "order: lxf")), current=server.printed(), nodes=NODES)
    write_export(tmp_path / "order", order_alone)
    assert "route" in Plan(tmp_path / "order").presumed()
