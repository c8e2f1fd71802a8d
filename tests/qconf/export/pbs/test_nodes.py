"""Which nodes get which Qlist, and the statements that set it."""

import pytest

from qconf.config import parse
from qconf.errors import ExportError, InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from tests.qconf.export.pbs.model import commands
from tests.qconf.export.sites import FRESH, HYBRID, pbs_files


def test_nodes_keep_their_queue_if_they_can():
    nodes = [
        Node(f"n{i}", 8, "medium,large" if i < 5 else "small,large" if i < 9 else "small_p,medium_p,large")
        for i in range(12)
    ]
    files = pbs_files(parse(HYBRID), nodes=nodes)
    assert commands(files["nodes.qmgr"]) == []
    nodes[3] = Node("n3", 8, "")
    files = pbs_files(parse(HYBRID), nodes=nodes, current=FRESH)
    assert commands(files["nodes.qmgr"]) == ['set node n3 resources_available.Qlist = "medium,large"']
    assert "unset node n3 resources_available.Qlist" in commands(files["rollback.qmgr"])


VNODES = """\
gpu01
     state = free
     resources_available.mem = 0kb
     resources_available.ncpus = 0
     sharing = default_shared

gpu01[0]
     state = free
     resources_available.mem = 1gb
     resources_available.ncpus = 16
     resources_available.ngpus = 2
     resources_available.gpu_model = v100
     sharing = default_excl

gpu01[1]
     state = free
     resources_available.mem = 512mb
     resources_available.ncpus = 16
     resources_available.ngpus = 2
     resources_available.gpu_model = v100
     sharing = default_excl
"""


def test_vnodes_of_a_host_are_one_node_to_which_no_queue_is_bound(tmp_path):
    (tmp_path / "nodes").write_text(VNODES)
    (node,) = read_nodes(str(tmp_path / "nodes"))
    assert (node.name, node.cores, node.exclusive) == ("gpu01", 32, True)
    assert node.resources == {"mem": "1572864kb", "ncpus": "32", "ngpus": "4", "gpu_model": "v100"}
    config = parse(
        "machine: {cores: 32, cores_per_node: 32}\nmode: partitioned\nqueues: [{name: all, partition: 32}]\n"
    )
    with pytest.raises(ExportError, match=r"hosts of several vnodes \(gpu01\[0\]\)"):
        exporter("pbs")(nodes=[node]).export(config)
    (tmp_path / "twice").write_text(VNODES + VNODES)
    with pytest.raises(InputError, match="named twice"):
        read_nodes(str(tmp_path / "twice"))
