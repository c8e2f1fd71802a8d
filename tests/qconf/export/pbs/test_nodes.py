"""Which nodes get which Qlist, and the statements that set it."""

from qconf.config import parse
from qconf.export.nodes import Node
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.sites import FRESH, HYBRID, NODES, pbs_files


def test_every_queue_gets_whole_nodes():
    files = pbs_files(parse(HYBRID), nodes=NODES)
    server = PbsServer(files["queues.qmgr"])
    server.load(files["nodes.qmgr"])
    lists = [attributes["resources_available.Qlist"] for attributes in server.nodes.values()]
    assert len(lists) == 12
    assert lists.count("small,large") == 4
    assert lists.count("medium,large") == 5
    assert lists.count("small_p,medium_p,large") == 3


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
