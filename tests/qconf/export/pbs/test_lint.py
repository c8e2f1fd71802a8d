import pytest

from qconf.export.pbs.qmgr import parse_statement
from qconf.export.pbs.server import Server
from tests.beside import SHARED
from tests.qconf.export.pbs.lint import Linter

VERDICTS = SHARED / "pbs" / "qmgr_verdicts.tsv"

needs_verdicts = pytest.mark.skipif(not VERDICTS.exists(), reason=f"{VERDICTS} is not here")

# Refusals that do not follow from a statement alone: what exists, and of which type it is.
ONLY_ON_THE_SERVER = {
    "create node nosuchhost": "15062",
    "create queue idqueue": "15025",
    "set node nid0001 queue=nosuch": "15018",
    "set queue route partition=P_small": "15217",
    "set queue route resources_max.ncpus=22800": "15018",
    "set queue route resources_min.ncpus=8": "15018",
    "set queue route max_run_res.ncpus=[o:PBS_ALL=5]": "150",
    "set queue route resources_default.walltime=24:00:00": "150",
    "set queue route Priority=5": "15018",
    "unset queue route resources_default.walltime": "15018",
    "unset queue route Priority": "15018",
    "set queue route route_lifetime=0": "15018",
    # attributes and resources that are none, or that no script sets
    "create queue q8 bogus=1": "15002",
    "create queue q9 resources_max.bogus=1": "15035",
    "set queue t hasnodes=True": "15003",
    "set queue t require_cred=foo": "15014",
    "set queue t foo.bar=3": "15002",
    "set server job_sort_formula_threshold=60": "15002",
    "set server strict_ordering=True": "Syntax",
}
# What the server takes and cannot be meant.
STRICTER = {
    "set queue t resources_min.ncpus=20",  # its maximum is 10
    "set queue route route_held_jobs=True",  # it was given limits, its type unknown
    "set queue route route_waiting_jobs=True",
    "set queue route route_retry_time=30",
}


def verdicts():
    for line in VERDICTS.read_text(encoding="utf-8").split("\n")[1:]:
        if line:
            rc, statement, message = (*line.split("\t"), "")[:3]
            yield int(rc), statement, message


@needs_verdicts
def test_verdicts_of_the_real_server_line_by_line():
    linter = Linter()
    count = 0
    for rc, statement, message in verdicts():
        wrong = linter.statement(statement)
        if rc and not wrong:
            assert ONLY_ON_THE_SERVER.get(statement, "no exception") in message, statement
        if not rc and wrong:
            assert statement in STRICTER, (statement, wrong)
        count += 1
    assert count == 130


@needs_verdicts
def test_verdicts_are_all_followed_where_the_server_is_known():
    """With the server's state at hand, nothing that it refuses is accepted but an unknown host."""
    printed = """
        create resource Qlist type=string_array, flag=h
        create queue idqueue queue_type=Execution
        create queue small queue_type=Execution
        create queue medium queue_type=Execution
        create queue t queue_type=Execution
    """
    linter = Linter(Server.parse(printed))
    for rc, statement, message in verdicts():
        if "create resource Qlist" in statement:
            continue
        if "route_held_jobs" in statement and rc == 0:  # the server was given one in between
            assert linter.statement("create queue route queue_type=Route") == []
        linter.unchecked.clear()
        wrong = linter.statement(statement)
        if rc:
            assert (
                wrong or linter.unchecked or statement in ("create node nosuchhost", "set node nid0001 queue=nosuch")
            ), (statement, message)


@pytest.mark.parametrize(
    "statement",
    [
        "set queue t resources_max.walltime = 1:00:00:00",
        "set queue t max_running = 10",
        "set queue t route_lifetime = -1",
        "set queue t partition = pbs-default",
        "set node n1 partition = a,pbs-default",
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
    ],
)
def test_what_the_server_would_refuse_or_cannot_be_meant(statement):
    assert Linter().script(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "set queue r route_lifetime = 0",
        "set queue a resources_max.walltime = 1:30",
        "set queue a resources_min.walltime = 01:00:00.5",
        "set queue a checkpoint_min = 5",
        'set server comment = "drained on Monday"',
        "set node n1 comment = 'new disk'",
        "set sched preempt_queue_prio = 200",
        'set sched default preempt_prio = "express_queue, normal_jobs"',
        "set sched throughput_mode = False",
        "set sched opt_backfill_fuzzy = high",
        "set sched preempt_order = SCR",
    ],
)
def test_what_the_server_takes(statement):
    printed = "create queue r queue_type=Route; create queue a queue_type=Execution"
    assert Linter(Server.parse(printed)).statement(statement) == []


def test_a_resource_has_to_be_defined():
    statement = "set queue a default_chunk.Qlist = a"
    printed = "create queue a queue_type=Execution"
    assert Linter(Server.parse(printed)).statement(statement) == [
        "default_chunk.Qlist: the server has no resource Qlist"
    ]
    assert Linter(Server.parse(f"create resource Qlist type=string_array,flag=h; {printed}")).statement(statement) == []
    assert Linter().statement(statement) == []


def test_what_is_not_known_is_not_checked():
    linter = Linter()
    assert linter.statement("set queue a not_of_this_version = 3, Priority = 5") == []
    assert linter.unchecked == ["queue not_of_this_version"]
    assert linter.server.queues["a"]["Priority"] == "5"


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
    found = [(finding.line, finding.message) for finding in Linter(Server()).script(text)]
    assert [line for line, _ in found] == [3, 7, 8, 9]
    assert str(Linter(Server()).script("create queue 1")[0]).startswith("line 1: ")


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
