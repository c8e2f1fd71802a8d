import pytest

from qconf.export.pbs.qmgr import parse_statement
from qconf.export.pbs.server import Server
from tests.beside import SHARED
from tests.qconf.export.pbs.lint import Linter

VERDICTS = SHARED / "pbs" / "qmgr_verdicts.tsv"

needs_verdicts = pytest.mark.skipif(not VERDICTS.exists(), reason=f"{VERDICTS} is not here")

#: What the server takes and cannot be meant: a minimum above its maximum.
STRICTER = ("set queue t resources_min.ncpus=20",)
#: What the server alone knows.
UNKNOWN = ("create node nosuchhost", "set node nid0001 queue=nosuch")


HELD = Server.parse(
    "create queue r queue_type=Route; create queue a queue_type=Execution; create queue t queue_type=Execution; "
    "set queue t max_run = [o:PBS_ALL=9]"
)


def verdicts():
    for line in VERDICTS.read_text(encoding="utf-8").split("\n")[1:]:
        if line:
            rc, statement, message = (*line.split("\t"), "")[:3]
            yield int(rc), statement, message


@needs_verdicts
def test_verdicts_of_the_real_server_line_by_line():
    """With its state at hand, what it refuses is refused, but for names of hosts; what it takes is taken."""
    printed = """
        create resource Qlist type=string_array, flag=h
        create queue idqueue queue_type=Execution
        create queue small queue_type=Execution
        create queue medium queue_type=Execution
        create queue t queue_type=Execution
    """
    linter, count = Linter(Server.parse(printed)), 0
    for rc, statement, message in verdicts():
        count += 1
        if "create resource Qlist" in statement:
            continue
        if "route_held_jobs" in statement and rc == 0:  # the server was given one in between
            assert linter.statement("create queue route queue_type=Route") == []
        wrong = linter.statement(statement)
        if rc:
            assert wrong or statement in UNKNOWN, (statement, message)
        else:
            assert not wrong or "no script has to" in wrong[0] or statement in STRICTER, (statement, wrong)
    assert count == 130


@pytest.mark.parametrize(
    "statement",
    [
        "set queue t resources_max.walltime = 1:00:00:00",
        "set queue t max_running = 10",
        "set queue t max_run = [o:PBS_ALL=3],[o:PBS_ALL=4]",
        'set queue t max_run = "[o:PBS_ALL=3],[o:PBS_ALL=4]"',
        'set server job_sort_formula = "__import__(1)"',
        "create hook h",
        "set queue t enabled = maybe",
        "print server",
        "delete queue t enabled",
        "set server",
        "set queue t Priority",
        "set queue t Priority = ",
        "set queue t Priority = 3,",
        'set queue t Priority = "3',
        "set queue t\u00a0Priority = 3",
        "set queue t, Priority = 3",
        "set queue t not_of_this_version = 3",
    ],
)
def test_what_the_server_would_refuse_or_cannot_be_meant(statement):
    assert Linter(HELD).script(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "set queue a resources_max.walltime = 1:30",
        "set queue a resources_min.walltime = 01:00:00.5",
        "set sched preempt_queue_prio = 200",
        'set sched default preempt_prio = "express_queue, normal_jobs"',
        "set sched preempt_order = SCR",
    ],
)
def test_what_the_server_takes(statement):
    assert Linter(HELD).statement(statement) == []


def test_a_resource_has_to_be_defined():
    statement, linter = "set queue a default_chunk.Qlist = a", Linter(HELD)
    assert linter.statement(statement) == [
        "default_chunk.Qlist: no script has to set it, or the server lacks the resource"
    ]
    assert linter.statement("create resource Qlist type=string_array,flag=h") == []
    assert linter.statement(statement) == []


def test_a_script_is_read_as_a_whole():
    text = """\
# a comment ; delete queue x
create queue a
set queue a enabled = True
create queue b \\
  queue_type = Execution
set queue b resources_min.walltime = 02:00:01
set queue b resources_max.walltime = 02:00:00
create queue b
set server default_queue = nosuch
"""
    found = [finding.partition(":")[0] for finding in Linter(Server()).script(text)]
    assert found == ["line 3", "line 7", "line 8", "line 9"]


def test_values_that_a_server_held_are_trusted():
    printed = """
        create queue a
        set queue a queue_type = Execution
        set queue a max_running = 3
        set server job_sort_formula = "accrue_type"
    """
    had = Server.parse(printed)
    statement = 'set server job_sort_formula = "accrue_type"'
    assert Linter(had).statement(statement)
    assert not Linter(had, trusted=had).statement(statement)
    assert not Linter(had, trusted=had).statement("set queue a max_running = 3")
    assert not Linter(had, trusted=had).statement("set queue a max_running = 4")
    assert Linter(had, trusted=had).statement("set queue a max_running = many")
    had.apply(parse_statement("set server max_run = [o:PBS_ALL=9]"))
    assert Linter(had).statement("set queue a max_running = 4")
