"""What a list of nodes may look like."""

import pytest

from qconf.errors import InputError
from qconf.export import ExportError
from qconf.export.nodes import Node, read_nodes
from qconf.hosts import fold

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


def test_lists_of_nodes(tmp_path):
    assert [node.name for node in read_nodes("n[8-11],login[01-02]x,single")] == [
        "n8", "n9", "n10", "n11", "login01x", "login02x", "single",
    ]  # fmt: skip
    racks = [f"rack{rack}n{node}" for rack in range(4) for node in range(8)]
    assert [node.name for node in read_nodes("rack[0-3]n[0-7]")] == racks
    assert fold(racks) == "rack[0-3]n[0-7]"
    wide = [f"n{number:03}" for number in range(998, 1003)]
    assert [node.name for node in read_nodes("n[998-1002]")] == wide
    assert [node.name for node in read_nodes("r[0-1]n[098-101]")][2:5] == ["r0n100", "r0n101", "r1n098"]
    assert [node.name for node in read_nodes("n[007-9,1000]")] == ["n007", "n008", "n009", "n1000"]
    (tmp_path / "names").write_text("a b\nc[1-2]  # four\n")
    assert [node.name for node in read_nodes(str(tmp_path / "names"))] == ["a", "b", "c1", "c2"]
    (tmp_path / "pbsnodes").write_text(PBSNODES)
    assert read_nodes(str(tmp_path / "pbsnodes")) == [
        Node("nid00001", 24, "small,large"),
        Node("nid00002", 24, ""),
    ]


@pytest.mark.parametrize(
    "given_nodes",
    [
        "nosuchfile",
        "a[3-1]",
        "a[1-99999999]",
        "a[1-9999]b[1-9999]",
        "a[1]!b[1]",
        "a,a",
        "a;b[1-2]",
        "[[1-2]",
        "a[1-2",
        "a[1,2",
        "b,a1]",
        "é[1-2]",
        ",",
    ],
)
def test_what_is_no_list_of_nodes(given_nodes):
    with pytest.raises((ExportError, InputError)):
        read_nodes(given_nodes)


@pytest.mark.parametrize(
    "text",
    [
        "n1              down\nn2              offline,job-exclusive\n",
        "n1              free\n",
        "vnode   state  njobs\n------- ------ -----\nn1      busy       0\n",
    ],
)
def test_a_table_of_states_is_refused(text, tmp_path):
    (tmp_path / "table").write_text(text)
    with pytest.raises(InputError, match=r"is a table of states.* Give the output of pbsnodes -av"):
        read_nodes(str(tmp_path / "table"))


def test_host_lists():
    names = [f"nid{i:04d}" for i in (1, 2, 3, 7)] + ["login", "a9", "a10", "a11"]
    text = fold(names)
    assert text == "a[9-11],login,nid[0001-0003,0007]"
    assert sorted(node.name for node in read_nodes(text)) == sorted(names)
