"""The script that moves jobs: which queue takes a job, and which jobs it leaves where they are."""

import pytest

from qconf.config import parse
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.sites import pbs_files

SITE = listing(
    """
old: resources_max.walltime = 100:00:00
short: resources_max.ncpus = 8; resources_max.mem = 4gb; resources_max.walltime = 01:00:00; acl_user_enable = True; \
acl_users = alice; acl_users += bob@login*; max_array_size = 10
gpu: resources_min.ngpus = 1; resources_max.nodect = 2; enabled = False; started = False
inner: queue_type = Route; route_destinations = short; resources_max.ncpus = 4
way: queue_type = Route; route_destinations = inner; route_destinations += old
""",
    *("default_queue = way", "resources_default.walltime = 00:30:00", "resources_max.ncpus = 64"),
)
CONFIG = """\
machine: {name: tiny, cores: 64}
queues:
  - {name: small, cores: [1, 8], walltime: [0, 1h], access: {users: [alice, bob@login*]}}
  - {name: large, cores: [1, 64], walltime: [0, 24h]}
"""


@pytest.fixture(scope="module")
def script():
    names = {"__name__": "qconf-pbs"}
    exec(pbs_files(parse(CONFIG), current=SITE, route="way")["qconf-pbs"], names)
    return names


def job(queue="way", owner="alice@login1", **resources):
    given = {"ncpus": 1, "walltime": "00:30:00"} | {name.replace("_", "."): value for name, value in resources.items()}
    return {"queue": queue, "Job_Owner": owner, "euser": "", "egroup": "users", "Resource_List": given}


@pytest.mark.parametrize(
    ("changes", "takes"),
    [
        ({}, "short"),
        ({"ncpus": 5}, "old"),  # too large for the nested Route queue
        ({"walltime": "99:00:00"}, None),  # the nested Route queue takes it, and its destination does not
        ({"walltime": "99:00:00", "ncpus": 5}, "old"),
        ({"walltime": "101:00:00", "ncpus": 5}, None),
        ({"ncpus": 65}, None),  # of the server
        ({"mem": "4194304kb"}, "short"),
        ({"mem": "4097mb"}, None),
        ({"owner": "bob@login2"}, "short"),
        ({"owner": "bob@elsewhere"}, None),
        ({"owner": "carol@login1", "ncpus": 5}, "old"),
    ],
)
def test_jobs_are_routed_as_pbs_does_it(script, changes, takes):
    assert script["routed"](script["OLD"], "way", job(**changes)) == takes


def test_arrays_are_routed_by_their_size(script):
    array = job() | {"array_indices_submitted": "1-20:2"}
    assert script["routed"](script["OLD"], "short", array) == "short"
    assert script["routed"](script["OLD"], "short", array | {"array_indices_submitted": "1-11"}) is None
    assert script["size"]({"array_indices_submitted": "0-9,20"}) == 11


def test_what_its_queue_gave_a_job_it_loses_with_the_queue(script, monkeypatch):
    from_limit = job("old", walltime="100:00:00")
    assert script["routed"](script["NEW"], "small", from_limit) is None  # its own: the server's default is 30 minutes
    for table in ("OLD", "NEW"):
        monkeypatch.delitem(script[table][""], "default")
    assert script["routed"](script["NEW"], "small", from_limit) == "small"
    assert script["routed"](script["NEW"], "small", job("short", walltime="100:00:00")) is None


def test_a_destination_that_is_closed_is_waited_for(script):
    table = {"": {}, "way": {"to": ["gpu", "far@away"]}, "gpu": {"min": {"ngpus": "1"}}}
    assert script["routed"](table, "way", job(ngpus=0)) == ""
    assert script["routed"]({"": {}, "way": {"to": ["gone"]}}, "way", job()) is None
    assert script["routed"]({"": {}, "way": {"to": ["gone@away"]}}, "way", job()) == ""


@pytest.mark.parametrize(
    ("one", "other", "is_above"),
    [
        ("01:00:00", "3599", True),
        (10, "9", True),
        ("1gb", "1024mb", False),
        ("1gw", "7gb", True),
        ("True", "False", True),
        ("b", "a", True),
        ("big", 3, False),  # not to be compared
    ],
)
def test_resources_are_compared_by_their_kind(script, one, other, is_above):
    assert script["above"](one, other) is is_above


@pytest.mark.parametrize(
    ("depend", "others", "moves"),
    [
        ("", {}, True),
        ("on:2", {}, True),
        ("afterok:2.s@s", {"2.s": "bob@s"}, True),
        ("beforeok:2.s@s", {"2.s": "alice@s"}, True),
        ("beforeok:2.s@s", {"2.s": "bob@s"}, False),
        ("before:2.s@s:3.s@s", {"2.s": "alice@s", "3.s": "bob@s"}, False),
        ("afterany:4.s@s,beforenotok:2.s@s", {"4.s": "alice@s", "2.s": "bob@s"}, False),
        ("runone:2.s@s", {"2.s": "bob@s"}, False),
        ("afterok:2.s@s", {}, False),  # it is no more
        ("beforeany:2.s@s", {"2.s": "alice@far"}, False),  # another host, where the server has no flatuid
    ],
)
def test_jobs_that_pbs_would_delete_are_not_moved(script, monkeypatch, depend, others, moves):
    monkeypatch.setitem(script, "known", lambda name: {"Job_Owner": others[name]} if name in others else None)
    monkeypatch.setitem(script, "run", lambda *_: "Server: s\n    server_host = s.site\n    flatuid = False\n")
    why = script["immovable"]({"Job_Owner": "alice@s", "depend": depend})
    assert (why is None) is moves, why
