import json

import pytest
from hypothesis import assume, given, settings

from parsim import Workload, simulate
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import dump, load, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.sites import (
    CRAY,
    FRESH,
    HYBRID,
    PRINTED,
    QUICK,
    exportable,
    exported,
    needs_printed,
    nodes_of,
    pbs_files,
)


@needs_printed
def test_the_real_server():
    found = derive(Server.read(PRINTED), cores=35232, name="cray")
    config = found.config
    assert [(q.name, q.cores, q.walltime, q.priority) for q in config.queues] == [
        ("idqueue", (8, 256), (0, 7200), 100),
        ("small", (24, 1032), (0, 86400), 50),
        ("small72", (24, 1032), (86400, 259200), 40),
        ("medium", (1033, 8208), (0, 86400), 50),
        ("large", (8209, 22800), (0, 86400), 50),
    ]
    assert config.order == "queue_priority * (1 + eligible_time / max(walltime, 1))"
    assert [q.max_run_cores for q in config.queues] == [432, 2400, 1920, 7200, 22800]
    assert config.mode == "hybrid"
    assert config.pool.cores == 480
    assert parse(dump(config)) == config
    text = "\n".join(found.warnings)
    assert "medium: its running-cores limit 7200 is below its widest job 8208: such a job never starts" in text
    assert "a job of 8 cores that names no walltime is given 24:00:00" in text
    assert "no routing leads there: workq" in text
    assert "sizes are a guess" in text


@needs_printed
@pytest.mark.parametrize("cores", [None, 35232])
def test_export_gives_the_real_servers_queues_back(cores):
    found = derive(Server.read(PRINTED), cores=cores)
    ours, real = PbsServer(pbs_files(found.config)["queues.qmgr"]), PbsServer(PRINTED.read_text(encoding="utf-8"))
    assert list(ours.queues) == [name for name in real.queues if name != "workq"]
    assert ours.queues["route"] == real.queues["route"]
    for name in found.config.names:
        assert ours.queues[name] == real.queues[name] | {"backfill_depth": "1"}
    guessed = any("machine.cores" in warning and "guess" in warning for warning in found.warnings)
    assert (guessed, found.config.machine.cores > 34752) == (cores is None, True)


def known(nodes, server, size):
    """Return what pbsnodes says of nodes once nodes.qmgr is loaded."""
    held = {node.name: server.nodes.get(node.name, {}).get("resources_available.Qlist", "") for node in nodes}
    return [Node(name, size, qlist) for name, qlist in held.items()]


def served(config, **given):
    """Return a server on which the export of a configuration was loaded; `given` are its nodes."""
    files = pbs_files(config, **given)
    server = PbsServer(files["queues.qmgr"])
    server.load(files.get("nodes.qmgr", ""))
    return server


@settings(QUICK, max_examples=25)
@given(exportable())
def test_export_print_init_export_is_a_fixed_point(config):
    files = exported(config, nodes=nodes_of(config))
    server = PbsServer(FRESH)
    server.load(files["queues.qmgr"])
    printed = server.printed()
    server.load(files.get("nodes.qmgr", ""))
    nodes = known(nodes_of(config), server, config.machine.cores_per_node)
    again = derive(Server.parse(printed), nodes=nodes).config
    assert again.mode == config.mode or config.mode != "shared"
    files_again = exported(again, nodes=nodes_of(config))
    for name in ("queues.qmgr", "nodes.qmgr"):
        assert commands(files_again.get(name, "")) == commands(files.get(name, ""))


@settings(QUICK, max_examples=30)
@given(exportable())
def test_the_queues_come_back_even_where_the_nodes_are_not_known(config):
    files = exported(config)
    again = derive(Server.parse(PbsServer(files["queues.qmgr"]).printed())).config
    assume(sum(q.cores[0] for q in config.queues) <= config.machine.cores)
    assert [(q.name, q.cores, q.walltime) for q in again.queues] == [
        (q.name, q.cores, q.walltime) for q in config.queues
    ]
    second = PbsServer(exported(again)["queues.qmgr"])
    assert second.queues == PbsServer(files["queues.qmgr"]).queues


@pytest.mark.parametrize("more", ["", ", starving_first: true"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "lxf", "wfp3", "queue_priority * eligible_time / walltime"])
def test_every_order_comes_back(order, more):
    config = parse(HYBRID.replace("entry: move", f"entry: move{more}").replace("order: fcfs", f"order: {order}"))
    for variant in (config, config.replace(mode="shared", pool=None)):
        nodes = read_nodes("n[1-12]")
        server = served(variant, nodes=nodes)
        again = derive(Server.parse(server.printed()), nodes=known(nodes, server, 8)).config
        assert again.order == order
        if not order.startswith("queue_priority"):
            mine, theirs = (
                [q.starvation for q in each.queues if variant.mode == "shared" or not q.reservation]
                for each in (variant, again)
            )
            assert theirs == mine


def test_cray_comes_back_but_for_what_pbs_does_not_hold():
    config = load(CRAY)
    again = derive(Server.parse(served(config).printed()), cores=35232).config
    assert again.queues == tuple(q.model_copy(update={"reservation": False}) for q in config.queues)
    assert again.order == "fcfs"


@pytest.mark.parametrize("order", ["fcfs", "lxf"])
def test_the_starvation_of_a_queue_with_reservations_survives(order):
    text = HYBRID.replace("reservation: true", "reservation: true, starvation: 12h").replace("fcfs", order)
    server = served(parse(text), nodes=(nodes := read_nodes("n[1-12]")))
    for machine in ({"nodes": known(nodes, server, 8)}, {"cores": 96}):
        config = derive(Server.parse(server.printed()), **machine).config
        assert [queue.starvation for queue in config.queues] == [86400, None, 43200]
        assert config.order == order


PBSNODES = """\
{0}
     Mom = {0}
     resources_available.ncpus = 8
     sharing = {1}
"""


@pytest.mark.parametrize(
    ("sharing", "whole"),
    [
        (["default_excl", "force_excl"], True),
        (["default_exclhost", "default_exclhost"], True),
        (["default_shared", "default_shared"], False),
        (["default_excl", "ignore_excl"], False),
    ],
)
def test_nodes_that_are_given_whole(tmp_path, sharing, whole):
    (tmp_path / "nodes").write_text("\n".join(PBSNODES.format(f"n{i}", each) for i, each in enumerate(sharing)))
    found = derive(Server.parse(FRESH), nodes=read_nodes(str(tmp_path / "nodes")))
    assert found.config.machine.whole_nodes is whole
    assert [each.exclusive for each in found.config.nodes] == ([True, False] if "ignore_excl" in sharing else [])


@pytest.mark.parametrize(
    ("lines", "starvation"),
    [
        ("help_starving_jobs:\ttrue\tALL\nmax_starve: 36:00:00\n", 129600),
        ("help_starving_jobs: true ALL\n", 86400),
        ("help_starving_jobs: false ALL\nmax_starve: 24:00:00\n", None),
        ("max_starve: 24:00:00\n", None),
    ],
)
def test_starving_jobs_that_the_scheduler_helps(scheduler, lines, starvation):
    found = derive(Server.parse(FRESH), cores=8, scheduler=scheduler(lines))
    assert [queue.starvation for queue in found.config.queues] == [starvation]
    changes = exporter("pbs")(scheduler=scheduler(lines)).export(found.config).files["sched_config.changes"]
    assert ("\nhelp_starving_jobs: false" in changes) == ("true" in lines)


@pytest.mark.parametrize(
    ("limit", "nodes", "lines", "expected"),
    [
        ("max_run = [o:PBS_ALL=2]", 2, None, ("reserve", "nodes")),
        ("max_run = [o:PBS_ALL=2]", 2, "strict_ordering: True ALL", ("reserve", "nodes")),
        ("max_run = [o:PBS_ALL=2]", 0, "strict_ordering: True ALL", ("reserve", "cores")),
        ("Priority = 2", 2, "strict_ordering: True ALL", ("pass", "nodes")),
        ("max_run = [o:PBS_ALL=2]", 2, "", ("pass", "nothing")),
        ("max_run = [o:PBS_ALL=2]", 2, "by_queue: True ALL", ("pass", "nothing")),
        ("max_run = [o:PBS_ALL=2]", 2, "strict_ordering: false ALL", ("pass", "nothing")),
        ("Priority = 2", 2, "strict_ordering: True prime", ("pass", "nothing")),
        ("Priority = 2", 2, "strict_ordering: true non_prime", ("pass", "nodes")),
        ("Priority = 2", 2, "strict_fifo\ttrue\tALL", ("pass", "nodes")),
    ],
)
def test_what_pbs_does_for_its_top_job(scheduler, limit, nodes, lines, expected):
    server, held = Server.parse(f"{FRESH}\nset queue workq {limit}\n"), [Node(f"n{i}", 8) for i in range(nodes)]
    config = derive(server, cores=16, nodes=held, scheduler=None if lines is None else scheduler(lines)).config
    assert (config.held_jobs, config.reserve) == expected
    assert (config.machine.cores_per_node, config.mode) == (8 if nodes else 1, "shared")


@pytest.mark.parametrize("depth", ["", "set server backfill_depth = 0\n", "set server backfill_depth = 40\n"])
@pytest.mark.parametrize("nodes", [[Node("n1", 8), Node("n2", 8)], [Node("n1", 8), Node("n2", 16)]])
def test_without_strict_ordering_what_fits_starts(scheduler, nodes, depth):
    """A wide job waits for as long as narrow ones keep the machine busy, whatever backfill_depth is."""
    found = scheduler("strict_ordering: false ALL\n")
    config = derive(Server.parse(f"{FRESH}\n{depth}"), nodes=nodes, scheduler=found).config
    assert parse(dump(config)) == config
    assert config.reserves_nothing
    cores = config.machine.cores
    submit = [0, 1, *range(2, 42, 2)]
    width = [cores - 1, cores, *[1] * 20]
    seconds = [30, 10, *[5] * 20]
    jobs = Workload(submit=submit, cores=width, runtime=seconds, walltime=seconds, queue=[0] * 22, user=[0] * 22)
    start = simulate(jobs, config.system()).start.tolist()
    assert start[1] == 45  # behind the last of those that came after it
    easy = config.reserving()
    assert not easy.reserves_nothing
    assert simulate(jobs, easy.system()).start.tolist()[1] == 30
    assert config.replace(fixed=("reserve",)).reserving().reserves_nothing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ("cores", 0, None, True)),
        ("strict_ordering: True ALL\n", ("cores", 0, None, True)),
        (
            "strict_ordering: false ALL\nhelp_starving_jobs: true ALL\nmax_starve: 12:00:00\n",
            ("cores", 43200, 43200, True),  # it reserves for jobs that starve alone
        ),
        ("strict_fifo: true ALL\nbackfill: false ALL\n", ("cores", 0, None, False)),
    ],
)
def test_what_the_scheduler_reserves_and_backfills(scheduler, text, expected):
    found = derive(Server.parse(FRESH), cores=8, scheduler=text and scheduler(text))
    config = found.config
    assert (config.reserve, config.reserve_after, config.queues[0].starvation, config.backfill) == expected
    said = [each for each in found.warnings if each.startswith("give the scheduler's sched_config")]
    assert (len(said), found.warnings[: len(said)]) == (text is None, tuple(said))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("round_robin: True ALL", "round_robin: True lets the queues take turns"),
        ("sort_by: shortest_job_first ALL", "sort_by: shortest_job_first sorts jobs too"),
        ('peer_queue: "workq workq@other"', "peer_queue: workq workq@other lets jobs of other servers in"),
        ('server_dyn_res: "matlab !/bin/count"', "server_dyn_res: matlab !/bin/count asks a script"),
        ("by_queue: True ALL", "of queues of one Priority (b, workq) PBS takes all jobs of one"),
        ("by_queue: True prime", "of queues of one Priority (b, workq) PBS takes all jobs of one"),
        ("strict_ordering: True prime", "strict_ordering is one thing in prime time and another out of it"),
        ("fair_share: true prime", "fair_share is one thing in prime time and another out of it"),
        ("fair_share: true ALL\nfairshare_entity: egroup", "fairshare_entity egroup: simulated as euser"),
        ("help_starving_jobs: true ALL\nmax_starve: soon", "max_starve = soon is not understood"),
    ],
)
def test_what_else_the_scheduler_does_is_said(scheduler, line, words):
    second = FRESH.replace("workq", "b")
    found = derive(Server.parse(f"{FRESH}\n{second}"), cores=8, scheduler=scheduler(line))
    assert words in "\n".join(found.warnings)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("resources_max.ncpus = many", "workq: resources_max.ncpus = many is not understood"),
        (
            'acl_user_enable = True\nset queue workq acl_users = "a;b"',
            "workq: its lists of who may use it are not under",
        ),
    ],
)
def test_what_of_a_queue_is_not_understood_is_said(line, words):
    found = derive(Server.parse(f"{FRESH}\nset queue workq {line}\n"), cores=8)
    assert found.warnings[-1].startswith(words)


def test_a_server_whose_queues_no_job_can_enter_is_refused():
    limits = "set queue workq resources_min.ncpus = 9\nset queue workq resources_max.ncpus = 8\n"
    with pytest.raises(InputError, match="holds no queue that a job can enter"):
        derive(Server.parse(f"{FRESH}\n{limits}"), cores=8)


ODD = listing(
    """
a: Priority = -5; resources_max.ncpus = 64; resources_max.walltime = 24:00; resources_max.nodect = 4; \
max_running = 7; max_user_res.ncpus = 32
b: queue_type = e; resources_min.ncpus = 9; resources_max.ncpus = 8; started = False
c: resources_min.ncpus = 16; max_run = "[u:PBS_GENERIC=2],[g:staff=3]"; max_run_res.ncpus = [o:PBS_ALL=8]
d: enabled = False
r: queue_type = Route; resources_max.ncpus = 32; route_destinations = "a,b,c,d,gone"; route_lifetime = 0
""",
    *("default_queue = nowhere", 'job_sort_formula = "accrue_type * eligible_time"', "backfill_depth = 0"),
)


def test_older_limits_of_the_server_and_of_groups():
    text = listing(
        "a: max_group_run = 4; max_group_res.ncpus = 64; max_run_soft = [u:PBS_GENERIC=2]",
        *("max_running = 90", "max_user_run = 9", "max_user_res.ncpus = 32", "node_group_key = rack"),
    )
    found = derive(Server.parse(text), cores=128)
    assert [(each.what, each.max_run, each.max_run_cores) for each in found.config.throttles] == [
        ("all jobs", 90, None),
        ("each user", 9, 32),
        ("each group in queue a", 4, 64),
    ]
    said = "\n".join(found.warnings)
    assert "a: max_run_soft = [u:PBS_GENERIC=2] is not simulated" in said
    assert "server: node_group_key = rack is not simulated" in said


def test_a_default_queue_may_name_its_server():
    text = listing("long:\nr: queue_type = Route; route_destinations = short\nshort:", "default_queue = r@head")
    found = derive(Server.parse(text), cores=8)
    assert found.config.names == ("short", "long")
    assert not [warning for warning in found.warnings if "default_queue" in warning]


LISTED = """\
Server: head
    server_state = Active
    default_queue = long
    max_run_res.ncpus = [u:PBS_GENERIC=48]
    license_count = Avail_Global:9 Avail_Local:9 Used:0
    resv_enable = True

Queue: long
    queue_type = Execution
    state_count = Transit:0 Queued:5 Held:0 Waiting:0 Running:2 Exiting:0 Be
\tgun:0
    acl_user_enable = True
    acl_users = ada,ber
\tta
    resources_max.walltime = 48:00:00
    resources_assigned.ncpus = 12
    comment = for all, and not only "some"
    enabled = True
    started = True

Queue: short
    queue_type = Execution
    resources_max.walltime = 02:00:00
    enabled = True
    started = True
"""


@pytest.mark.parametrize("list_of_qmgr", [False, True])
def test_what_qstat_lists_of_server_and_queues(tmp_path, list_of_qmgr):
    text = LISTED.replace("Queue: ", "Queue ").replace("Server: ", "Server ") if list_of_qmgr else LISTED
    (tmp_path / "listed").write_text(text)
    found = exporter("pbs")().read(tmp_path / "listed", cores=96)
    long, short = found.config.queues
    assert (long.name, long.walltime[1], long.access.users) == ("long", 48 * 3600, ("ada", "berta"))
    assert (short.name, short.walltime[1]) == ("short", 7200)
    assert [(each.what, each.max_run_cores) for each in found.config.throttles] == [("each user", 48)]
    assert "qstat -Bf" not in "".join(found.warnings)
    (tmp_path / "listed").write_text(text[text.index("Queue") :])
    assert "put qstat -Bf into the file too" in exporter("pbs")().read(tmp_path / "listed", cores=96).warnings[0]


def test_json_of_qstat_is_read_as_its_text(tmp_path):
    queues = {"long": {"queue_type": "Execution", "resources_max": {"ncpus": 8}, "enabled": "True", "started": "True"}}
    documents = json.dumps({"Server": {"head": {"default_queue": "long"}}}) + json.dumps({"Queue": queues})
    (tmp_path / "listed").write_text(documents)
    assert [queue.cores for queue in exporter("pbs")().read(tmp_path / "listed", cores=96).config.queues] == [(1, 8)]
    (tmp_path / "listed").write_text(documents[:-9])
    with pytest.raises(InputError, match="Give the output of qmgr"):
        exporter("pbs")().read(tmp_path / "listed")


def test_nodes_that_are_not_up_are_counted_with_a_warning():
    found = derive(Server.parse(FRESH), nodes=[Node("n1", 8), Node("n2", 8, down=True)])
    assert found.config.machine.cores == 16
    assert "1 nodes are down or offline: counted as the others, as if they were up" in found.warnings


def test_contradictions_are_warnings():
    found = derive(Server.parse(ODD), cores=48)
    a, c = found.config.queues
    assert (a.name, a.cores, a.walltime, a.max_run, a.max_user_cores) == ("a", (1, 48), (0, 1440), 7, 32)
    assert (c.name, c.cores, c.max_user_run, c.max_run_cores) == ("c", (16, MAX_CORES), 2, None)
    assert [(each.what, each.max_run) for each in found.config.throttles] == [("group staff in queue c", 3)]
    assert a.priority == 1
    assert c.priority == 6
    assert c.walltime == (0, MAX_DURATION)
    assert not found.config.backfill
    text = "\n".join(found.warnings)
    for words in (
        "default_queue = nowhere: there is no such queue",
        "its destination gone does not exist",
        "b: not started",
        "b: left out, its minimum is above its maximum",
        "c: its running-cores limit 8 is below its narrowest job 16",
        "d: not enabled, left out",
        "a: resources_max.walltime = 24:00 means 00:24:00",
        "a: its limits of nodes (nodect) are not simulated",
        "a: resources_max.ncpus 64 is above the machine's 48; cut",
        "r: with route_lifetime = 0",
        "a: r's own limits turn some of its jobs away",
        "priorities were raised by 6",
        "job_sort_formula was left out",
        "eligible_time_enable is not True",
    ):
        assert words in text, words


def test_a_server_without_a_route_queue_and_the_sizes_of_its_nodes():
    found = derive(Server.parse(FRESH), cores=8)
    assert (found.config.names, found.config.mode) == (("workq",), "shared")
    assert any("no Route queue" in warning for warning in found.warnings)
    with pytest.raises(InputError, match="the nodes have 16 cores"):
        derive(Server.parse(FRESH), cores=8, nodes=[Node("a", 8), Node("b", 8)])
    config = derive(Server.parse(FRESH), nodes=[Node("n1", 8), Node("n2", 16)]).config
    assert (config.machine.cores, len(config.nodes), config.reserve) == (24, 2, "nodes")


@pytest.mark.parametrize("text", ["set server scheduling = True", "create queue a", "create queue r queue_type=Route"])
def test_nothing_to_begin_with(text):
    with pytest.raises(InputError, match="no Execution queue"):
        derive(Server.parse(text))


def test_limits_of_every_scope_and_those_of_the_server_for_queues_without_their_own():
    limits = "set queue workq max_run = [o:PBS_ALL=12]\nset queue workq max_run = [u:PBS_GENERIC=5]\n"
    queue = derive(Server.parse(FRESH + limits), cores=8).config.queue("workq")
    assert (queue.max_run, queue.max_user_run) == (12, 5)
    text = FRESH + "set server resources_max.walltime = 72:00:00\nset server resources_max.ncpus = 64\n"
    text += "create queue long queue_type = Execution, enabled = True, started = True\n"
    text += "set queue long resources_max.walltime = 100:00:00\n"
    found = {q.name: (q.cores, q.walltime) for q in derive(Server.parse(text), cores=96).config.queues}
    assert found == {"workq": ((1, 64), (0, 72 * 3600)), "long": ((1, 64), (0, 100 * 3600))}


@pytest.mark.parametrize(
    "limit", ["max_run = [o:PBS_ALL=9999999999]", "max_run_res.ncpus = [u:PBS_GENERIC=2147483648]"]
)
def test_a_limit_that_nothing_reaches_is_named_and_left_out(limit):
    found = derive(Server.parse(listing(f"workq: {limit}")), cores=64)
    assert not found.config.queue("workq").limited
    assert f"workq: {limit} has no place in a configuration" in found.warnings


def test_a_listing_that_is_cut_off_before_its_queues_names_its_file(tmp_path):
    (tmp_path / "server").write_text("#\n# Create queues and set their attributes.\n#\nset server scheduling = True\n")
    with pytest.raises(
        InputError, match=r"/server: holds no Execution queue that jobs can enter\. Give the whole output"
    ):
        derive(Server.read(tmp_path / "server"), cores=64)
