"""Torque's server and nodes: read as PBS's, and never written."""

import pytest

from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Scheduler, Server, is_torque
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.sites import FRESH

PRINTED = "create queue standard\n" + listing(
    """
batch: resources_max.procct = 64; resources_max.walltime = 72:00:00; resources_default.nodes = 1
himem: resources_max.nodes = 2:ppn=8; resources_default.neednodes = himem
route: queue_type = Route; route_destinations = batch; route_destinations += himem
""",
    *("scheduling = True", "default_queue = route", "node_check_rate = 150", "tcp_timeout = 300"),
)
CREATED = """\
create node n1
set node n1 state = free
set node n1 np = 8
set node n1 ntype = cluster
create node n2 np = 8, properties = himem
set node n2 properties += avx
"""
FILE = "# name np\nn1 np=8\nn2 np=8 himem avx  # big\n\ng1:ts np=16 gpus=2 avx\n"
PBSNODES = """\
n1
     state = free
     power_state = Running
     np = 8
     ntype = cluster
     status = rectime=1435,cpuclock=Fixed,varattr=,jobs=,state=free,ncpus=8,physmem=16777216kb,totmem=9kb,opsys=linux
     mom_service_port = 15002

n2
     state = job-exclusive
     np = 8
     properties = himem,avx
     ntype = cluster
     jobs = 0/7.srv,1/7.srv
     status = rectime=1435,state=free,ncpus=8,physmem=67108864kb
     gpus = 2
"""


def given(tmp_path, text, name="file"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def types(config):
    return [(each.hosts, each.cores, each.gpus, sorted(each.features)) for each in config.nodes]


def test_a_server_with_its_nodes(tmp_path):
    found = exporter("pbs")().read(given(tmp_path, PRINTED + CREATED))
    config = found.config
    assert [(queue.name, queue.cores, queue.walltime[1], queue.nodes) for queue in config.queues] == [
        ("batch", (1, 16), 259200, None),
        ("himem", (1, 16), 2**31 - 1, ("n-2",)),
    ]
    assert types(config) == [("n1", 8, 0, []), ("n2", 8, 0, ["avx", "himem"])]
    assert found.warnings[0].startswith("this is a Torque server, which is read and cannot be exported to")
    assert "standard: left out, it has no queue_type" in found.warnings


@pytest.mark.parametrize(
    ("text", "expected", "memory"),
    [
        (FILE, [("n1", 8, 0, []), ("n2", 8, 0, ["avx", "himem"]), ("g1", 16, 2, ["avx"])], [0, 0, 0]),
        (PBSNODES, [("n1", 8, 0, []), ("n2", 8, 2, ["avx", "himem"])], [16384, 65536]),
        (CREATED, [("n1", 8, 0, []), ("n2", 8, 0, ["avx", "himem"])], [0, 0]),
    ],
)
def test_nodes_in_each_form(tmp_path, text, expected, memory):
    config = derive(Server.parse(PRINTED), nodes=read_nodes(str(given(tmp_path, text)))).config
    assert types(config) == expected
    assert [each.memory for each in config.nodes] == memory


@pytest.mark.parametrize(("word", "hosts"), [("big-mem.v2", "n2"), ("n1", "n1")])
def test_a_queue_has_the_nodes_of_a_property_or_the_one_of_a_name(tmp_path, word, hosts):
    text = listing(f"a: resources_default.neednodes = {word}\nb:", "node_check_rate = 150")
    nodes = read_nodes(str(given(tmp_path, "n1 np=8\nn2 np=8 big-mem.v2\n")))
    config = derive(Server.parse(text), nodes=nodes).config
    named = {each.name: each.hosts for each in config.nodes}
    assert ([named[name] for name in config.queues[0].nodes], config.queues[1].nodes) == ([hosts], None)


def test_limits_of_nodes_and_of_jobs_that_wait():
    text = listing(
        "a: max_user_queuable = 3; max_queuable = 20\nb: resources_max.nodes = 1",
        *("resources_max.nodes = 4", "resources_available.ncpus = 48", "tcp_timeout = 6"),
    )
    nodes = [Node(f"n{k}", 8) for k in range(6)]
    found = derive(Server.parse(text), nodes=nodes)
    assert [queue.cores for queue in found.config.queues] == [(1, 32), (1, 8)]
    limits = [(each.what, each.max_queued) for each in found.config.throttles]
    assert limits == [("all jobs in queue a", 20), ("each user in queue a", 3)]
    found = derive(Server.parse(text))
    assert found.config.machine.cores == 48
    assert any(warning.startswith("machine.cores = 48 is a guess") for warning in found.warnings)


def test_nodes_of_pbs_as_statements(tmp_path):
    text = "create node a Mom=a.site\nset node a resources_available.ncpus = 4\nset node a Priority = 3\n"
    a, b = read_nodes(str(given(tmp_path, f"{text}create node b\n")))
    assert (a.name, a.cores, a.priority, b.name, b.cores) == ("a", 4, 3, "b", None)


def test_an_export_to_it_is_refused_once(tmp_path):
    path = given(tmp_path, PRINTED)
    with pytest.raises(InputError, match="is of Torque, to which nothing is exported"):
        exporter("pbs").of(current=str(path))
    assert exporter("pbs").of(current=str(given(tmp_path, FRESH, "pbs"))).current is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PRINTED, True),
        (FRESH, False),
        ("create queue a\nset queue a queue_type = E\nset queue a resources_default.neednodes = big\n", True),
        ("create queue a\nset queue a queue_type = E\nset queue a keep_completed = 9\n", True),
        ("create queue a\nset server resources_default.neednodes = 1\n", True),
        ("create queue a\nset queue a queue_type = E\nset server scheduling = True\n", False),
        ("create queue a\nset server resv_enable = True\nset server node_check_rate = 5\n", False),
    ],
)
def test_torque_is_not_taken_for_pbs(text, expected):
    assert is_torque(Server.parse(text)) is expected


def test_its_own_scheduler(tmp_path):
    """It goes through the list, and waits for a job that starves; its file has lines without a colon."""
    text = "round_robin: False\tall\nby_queue: True\t\tprime\nby_queue: True\t\tnon_prime\nstrict_fifo: false\tALL\n"
    text += "fair_share: false\tALL\nhelp_starving_jobs\ttrue\tALL\nsort_queues\ttrue\tALL\nmax_starve: 24:00:00\n"
    scheduler = Scheduler.read(given(tmp_path, text + "sort_by: shortest_job_first\tALL\nsync_time: 1:00:00\n"))
    found = derive(Server.parse(PRINTED), cores=64, scheduler=scheduler)
    assert (found.config.reserve, found.config.reserve_after) == ("nothing", 86400)
    assert any("sort_by: shortest_job_first sorts jobs too" in warning for warning in found.warnings)


def test_the_file_of_another_scheduler_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"line 2: is no line like .* Of Maui or Moab leave it out"):
        Scheduler.read(given(tmp_path, "# maui.cfg\nRMCFG[base]  TYPE=PBS\nQUEUETIMEWEIGHT 1\n"))
    with pytest.raises(InputError, match=r"line 1: .* Give the scheduler's sched_priv"):
        Scheduler.read(given(tmp_path, "by_queue True\n"))


def test_a_queue_without_a_type_is_named_for_pbs_too():
    found = derive(Server.parse(FRESH + "create queue odd\n"), cores=8)
    assert "odd: left out, it has no queue_type" in found.warnings


def test_nodes_without_what_queues_ask_for_are_named_by_it(tmp_path):
    text = PRINTED.replace("batch resources_default.nodes = 1", "batch resources_default.neednodes = smp")
    with pytest.raises(InputError, match=r"listing: no queue may use any of the nodes: queues ask for himem, smp\."):
        exporter("pbs")().read(given(tmp_path, f"{text}create node n1 np = 8, properties = big\n", "listing"))
