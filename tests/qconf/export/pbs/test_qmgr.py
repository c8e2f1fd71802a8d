import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qconf.errors import InputError
from qconf.export.pbs import qmgr
from qconf.export.pbs.server import Server, destinations
from tests.beside import SHARED
from tests.qconf.export.pbs.model import RefusedError, commands

VERDICTS = SHARED / "pbs" / "qmgr_verdicts.tsv"


def test_parts_of_a_statement():
    text = 'set queue a,b resources_max.ncpus = 24, max_run += "[o:PBS_ALL=1],[u:PBS_GENERIC=2]"'
    (statement,) = qmgr.parse(f"  {text}  # why\n")
    assert statement.command == "set"
    assert statement.kind == "queue"
    assert statement.names == ("a", "b")
    assert [(s.key, s.operator, s.value) for s in statement.settings] == [
        ("resources_max.ncpus", "=", "24"),
        ("max_run", "+=", "[o:PBS_ALL=1],[u:PBS_GENERIC=2]"),
    ]


def test_lines_are_split_as_qmgr_does():
    text = 'create queue a; create queue b # c; d\nset queue a \\\nPriority = 3\nset server x = "1;2 # 3"\n#e\n'
    assert list(qmgr.split(text)) == [
        (1, "create queue a"),
        (1, "create queue b"),
        (2, "set queue a Priority = 3"),
        (4, 'set server x = "1;2 # 3"'),
    ]


@example("\\\\\n")
@given(st.text(alphabet="ab \\\n;#'\"=,", max_size=40))
def test_split_like_the_model_that_shares_no_code(text):
    try:
        expected = commands(text)
    except RefusedError:
        expected = None
    try:
        found = [piece for _, piece in qmgr.split(text)]
    except qmgr.QmgrSyntaxError as error:
        found = None
        if "asks for another one" in str(error):
            return
    assert found == expected


@given(st.text(max_size=60))
def test_any_text_parses_or_is_a_syntax_error(text):
    try:
        qmgr.parse(text)
    except qmgr.QmgrSyntaxError as error:
        message = str(error)
        assert message


def test_a_server_holds_what_statements_set():
    server = Server.parse(
        """
        create queue r queue_type=Route, route_destinations = "a, b@host"
        set queue r route_destinations += c
        set queue r route_destinations -= a
        create queue x
        unset queue r queue_type
        delete queue x
        """
    )
    assert list(server.queues) == ["r"]
    assert destinations(server.queues["r"]) == ["b", "c"]
    assert "queue_type" not in server.queues["r"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "hello", "set queue", 'set server a = "b', "delete queue a b = 1"])
def test_what_is_no_print_server(text):
    with pytest.raises(InputError, match="print server"):
        Server.parse(text, "saved.txt")


def test_unreadable_files(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        Server.read(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\xff")
    with pytest.raises(InputError, match="is not text"):
        Server.read(tmp_path / "binary")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_of_a_saved_text(tmp_path, encoding):
    text = "# café\r\ncreate queue short\r\nset queue short comment = 'für alle'\r\n"
    (tmp_path / "saved").write_bytes(text.encode(encoding))
    assert Server.read(tmp_path / "saved").queues == {"short": {"comment": "für alle"}}


def test_what_a_terminal_shows_beside_the_statements_is_left_out():
    text = "[root@head ~]# qmgr\nMax open servers: 49\nQmgr: p s\n# a comment\ncreate queue short\nQmgr: quit\n"
    assert [(each.command, each.names, each.line) for each in qmgr.parse(text)] == [("create", ("short",), 5)]


@pytest.mark.skipif(not VERDICTS.exists(), reason=f"{VERDICTS} is not here")
def test_every_statement_that_a_real_server_took_is_one_statement():
    rows = [line.split("\t") for line in VERDICTS.read_text(encoding="utf-8").splitlines()[1:]]
    taken = [statement for code, statement, *_ in rows if code == "0"]
    assert (len(rows), [len(qmgr.parse(each)) for each in taken]) == (130, [1] * len(taken))
