"""Which nodes get which Qlist, and what a list of nodes may look like."""

import pytest

from qconf.config import parse
from qconf.errors import InputError
from qconf.export.errors import ExportError
from qconf.export.pbs.nodes import Node, read_nodes
from qconf.export.pbs.scripts import export_pbs
from tests.qconf.export.pbs_model import PbsServer, commands
from tests.qconf.export.test_pbs import FRESH, HYBRID


def test_nodes_are_given_out_whole():
    files = export_pbs(parse(HYBRID), nodes=read_nodes("nid[001-012]"))
    server = PbsServer(files["queues.qmgr"])
    server.load(files["nodes.qmgr"])
    lists = [attributes["resources_available.Qlist"] for attributes in server.nodes.values()]
    assert len(lists) == 12
    assert lists.count("small,large") == 4
    assert lists.count("medium,large") == 5
    assert lists.count("small_p,medium_p,large") == 3


def test_nodes_stay_where_they_are_if_they_can():
    nodes = [
        Node(f"n{i}", 8, "medium,large" if i < 5 else "small,large" if i < 9 else "small_p,medium_p,large")
        for i in range(12)
    ]
    files = export_pbs(parse(HYBRID), nodes=nodes)
    assert commands(files["nodes.qmgr"]) == []
    nodes[3] = Node("n3", 8, "")
    files = export_pbs(parse(HYBRID), nodes=nodes, current=FRESH)
    assert commands(files["nodes.qmgr"]) == ['set node n3 resources_available.Qlist = "medium,large"']
    assert "unset node n3 resources_available.Qlist" in commands(files["rollback.qmgr"])


PBSNODES = """\
nid00001
     Mom = nid00001.local
     ntype = PBS
     state = free
     resources_available.arch = linux
     resources_available.ncpus = 24
     resources_available.Qlist = small,large
     resources_assigned.ncpus = 0

nid00002
     Mom = nid00002.local
     state = offline
     resources_available.ncpus = 24

"""


def test_node_lists(tmp_path):
    assert [node.name for node in read_nodes("n[8-11],login[01-02]x,single")] == [
        "n8", "n9", "n10", "n11", "login01x", "login02x", "single",
    ]  # fmt: skip
    (tmp_path / "names").write_text("a b\nc[1-2]  # four\n")
    assert [node.name for node in read_nodes(str(tmp_path / "names"))] == ["a", "b", "c1", "c2"]
    (tmp_path / "pbsnodes").write_text(PBSNODES)
    assert read_nodes(str(tmp_path / "pbsnodes")) == [
        Node("nid00001", 24, "small,large"),
        Node("nid00002", 24, ""),
    ]


@pytest.mark.parametrize(
    "given_nodes", ["nosuchfile", "a[3-1]", "a[1-99999999]", "a,a", "a;b[1-2]", "[[1-2]", "é[1-2]", ","]
)
def test_node_lists_that_are_none(given_nodes):
    with pytest.raises((ExportError, InputError)):
        read_nodes(given_nodes)
