import pytest
from hypothesis import assume, given, settings

from parsim import Workload, simulate
from parsim.model.workload import MAX_CORES, MAX_DURATION
from qconf.config import dump, load, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.init import derive
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Server
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
def test_export_gives_the_real_servers_queues_back():
    for cores in (None, 35232):
        config = derive(Server.read(PRINTED), cores=cores).config
        exported_server = PbsServer(pbs_files(config)["queues.qmgr"])
        real = PbsServer(PRINTED.read_text(encoding="utf-8"))
        assert list(exported_server.queues) == [name for name in real.queues if name != "workq"]
        assert exported_server.queues["route"] == real.queues["route"]
        for name in config.names:
            ours = dict(exported_server.queues[name])
            assert ours.pop("backfill_depth") == "1"
            assert ours == real.queues[name]


@needs_printed
def test_without_a_size_it_guesses_and_says_so():
    found = derive(Server.read(PRINTED))
    assert found.config.machine.cores > 34752
    assert any("machine.cores" in warning and "guess" in warning for warning in found.warnings)


@settings(QUICK, max_examples=25)
@given(exportable())
def test_export_print_init_export_is_a_fixed_point(config):
    files = exported(config, nodes=nodes_of(config))
    server = PbsServer(FRESH)
    server.load(files["queues.qmgr"])
    printed = server.printed()
    # what pbsnodes would say after nodes.qmgr
    server.load(files.get("nodes.qmgr", ""))
    size = config.machine.cores_per_node
    qlists = {name: attributes.get("resources_available.Qlist", "") for name, attributes in server.nodes.items()}
    nodes = [Node(node.name, size, qlists.get(node.name, "")) for node in nodes_of(config)]
    again = derive(Server.parse(printed), nodes=nodes).config
    assert again.mode == config.mode or config.mode != "shared"
    files_again = exported(again, nodes=nodes_of(config))
    assert commands(files_again["queues.qmgr"]) == commands(files["queues.qmgr"])
    assert commands(files_again.get("nodes.qmgr", "")) == commands(files.get("nodes.qmgr", ""))


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


def test_every_order_comes_back():
    for order in ("fcfs", "sjf", "ljf", "lxf", "wfp3", "queue_priority * eligible_time / max(walltime, 1)"):
        for text in (HYBRID, HYBRID.replace("entry: move", "entry: move, starving_first: true")):
            config = parse(text.replace("order: fcfs", f"order: {order}"))
            for variant in (config, config.replace(mode="shared", pool=None)):
                nodes = read_nodes("n[1-12]")
                server = PbsServer(pbs_files(variant, nodes=nodes)["queues.qmgr"])
                server.load(pbs_files(variant, nodes=nodes).get("nodes.qmgr", ""))
                known = [
                    Node(n.name, 8, server.nodes.get(n.name, {}).get("resources_available.Qlist", "")) for n in nodes
                ]
                again = derive(Server.parse(server.printed()), nodes=known).config
                assert again.order == order
                if not order.startswith("queue_priority"):
                    mine = [q.starvation for q in variant.queues if variant.mode == "shared" or not q.reservation]
                    theirs = [q.starvation for q in again.queues if variant.mode == "shared" or not q.reservation]
                    assert theirs == mine


def test_cray_comes_back_but_for_what_pbs_does_not_hold():
    config = load(CRAY)
    again = derive(Server.parse(PbsServer(pbs_files(config)["queues.qmgr"]).printed()), cores=35232).config
    queues = [q.model_copy(update={"reservation": False}) for q in config.queues]
    assert again.queues == tuple(queues)
    assert again.order == "fcfs"


@pytest.mark.parametrize("order", ["fcfs", "lxf"])
def test_the_starvation_of_a_queue_with_reservations_survives(order):
    text = HYBRID.replace("reservation: true", "reservation: true, starvation: 12h").replace("fcfs", order)
    server = PbsServer(pbs_files(parse(text), nodes=(nodes := read_nodes("n[1-12]")))["queues.qmgr"])
    server.load(pbs_files(parse(text), nodes=nodes)["nodes.qmgr"])
    known = [Node(n.name, 8, server.nodes[n.name]["resources_available.Qlist"]) for n in nodes]
    for found in (
        derive(Server.parse(server.printed()), nodes=known),
        derive(Server.parse(server.printed()), cores=96),
    ):
        assert [queue.starvation for queue in found.config.queues] == [86400, None, 43200]
        assert found.config.order == order


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
def test_starving_jobs_that_the_scheduler_helps(tmp_path, lines, starvation):
    (tmp_path / "sched_config").write_text(lines)
    scheduler = Scheduler.read(tmp_path / "sched_config")
    found = derive(Server.parse(FRESH), cores=8, scheduler=scheduler)
    assert [queue.starvation for queue in found.config.queues] == [starvation]
    changes = exporter("pbs")(scheduler=scheduler).export(found.config).files["sched_config.changes"]
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
def test_what_pbs_does_for_its_top_job(tmp_path, limit, nodes, lines, expected):
    (tmp_path / "sched_config").write_text(lines or "")
    config = derive(
        Server.parse(f"{FRESH}\nset queue workq {limit}\n"),
        cores=16,
        nodes=[Node(f"n{i}", 8) for i in range(nodes)],
        scheduler=None if lines is None else Scheduler.read(tmp_path / "sched_config"),
    ).config
    assert (config.held_jobs, config.reserve) == expected
    assert (config.machine.cores_per_node, config.mode) == (8 if nodes else 1, "shared")


def lines_of(tmp_path, text):
    (tmp_path / "sched_config").write_text(text)
    return Scheduler.read(tmp_path / "sched_config")


@pytest.mark.parametrize("depth", ["", "set server backfill_depth = 0\n", "set server backfill_depth = 40\n"])
@pytest.mark.parametrize("nodes", [[Node("n1", 8), Node("n2", 8)], [Node("n1", 8), Node("n2", 16)]])
def test_without_strict_ordering_what_fits_starts(tmp_path, nodes, depth):
    """A wide job waits for as long as narrow ones keep the machine busy, whatever backfill_depth is."""
    server, scheduler = Server.parse(f"{FRESH}\n{depth}"), lines_of(tmp_path, "strict_ordering: false ALL\n")
    config = derive(server, nodes=nodes, scheduler=scheduler).config
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


def test_what_there_is_no_sched_config_for_is_said_first(tmp_path):
    assert derive(Server.parse(FRESH), cores=8).warnings[0].startswith("give the scheduler's sched_config")
    scheduler = lines_of(tmp_path, "strict_ordering: True ALL\n")
    assert not any(
        "sched_config" in each for each in derive(Server.parse(FRESH), cores=8, scheduler=scheduler).warnings
    )


def test_a_scheduler_that_helps_starving_jobs_reserves_for_them_alone(tmp_path):
    text = "strict_ordering: false ALL\nhelp_starving_jobs: true ALL\nmax_starve: 12:00:00\n"
    config = derive(Server.parse(FRESH), cores=8, scheduler=lines_of(tmp_path, text)).config
    assert (config.reserve, config.reserve_after, config.queues[0].starvation) == ("cores", 43200, 43200)


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
    ],
)
def test_what_else_the_scheduler_does_is_said(tmp_path, line, words):
    second = FRESH.replace("workq", "b")
    found = derive(Server.parse(f"{FRESH}\n{second}"), cores=8, scheduler=lines_of(tmp_path, line))
    assert words in "\n".join(found.warnings)


def test_a_scheduler_that_does_not_backfill(tmp_path):
    scheduler = lines_of(tmp_path, "strict_fifo: true ALL\nbackfill: false ALL\n")
    assert not derive(Server.parse(FRESH), cores=8, scheduler=scheduler).config.backfill


def test_nodes_are_reserved_where_their_sizes_differ_too():
    config = derive(Server.parse(FRESH), nodes=[Node("n1", 8), Node("n2", 16)]).config
    assert (config.machine.cores, len(config.nodes), config.reserve) == (24, 2, "nodes")


ODD = """\
create queue a
set queue a queue_type = Execution
set queue a Priority = -5
set queue a resources_max.ncpus = 64
set queue a resources_max.walltime = 24:00
set queue a resources_max.nodect = 4
set queue a max_running = 7
set queue a max_user_res.ncpus = 32
set queue a enabled = True
set queue a started = True
create queue b
set queue b queue_type = e
set queue b resources_min.ncpus = 9
set queue b resources_max.ncpus = 8
set queue b enabled = True
set queue b started = False
create queue c
set queue c queue_type = Execution
set queue c resources_min.ncpus = 16
set queue c max_run = "[u:PBS_GENERIC=2],[g:staff=3]"
set queue c max_run_res.ncpus = [o:PBS_ALL=8]
set queue c enabled = True
set queue c started = True
create queue d
set queue d queue_type = Execution
create queue r
set queue r queue_type = Route
set queue r resources_max.ncpus = 32
set queue r route_destinations = "a,b,c,d,gone"
set queue r route_lifetime = 0
set queue r enabled = True
set queue r started = True
set server default_queue = nowhere
set server job_sort_formula = "accrue_type * eligible_time"
set server backfill_depth = 0
"""


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


def test_without_a_route_queue():
    found = derive(Server.parse(FRESH), cores=8)
    assert found.config.names == ("workq",)
    assert found.config.mode == "shared"
    assert any("no Route queue" in warning for warning in found.warnings)


@pytest.mark.parametrize("text", ["set server scheduling = True", "create queue a", "create queue r queue_type=Route"])
def test_nothing_to_begin_with(text):
    with pytest.raises(InputError, match="no Execution queue"):
        derive(Server.parse(text))


def test_sizes_that_contradict_each_other():
    with pytest.raises(InputError, match="the nodes have 16 cores"):
        derive(Server.parse(FRESH), cores=8, nodes=[Node("a", 8), Node("b", 8)])


def test_every_scope_of_a_limit_is_read():
    server = Server.parse(
        """\
create queue a
set queue a queue_type = Execution
set queue a resources_max.ncpus = 8
set queue a max_run = [o:PBS_ALL=12]
set queue a max_run = [u:PBS_GENERIC=5]
set queue a enabled = True
set queue a started = True
"""
    )
    queue = derive(server, cores=8).config.queue("a")
    assert (queue.max_run, queue.max_user_run) == (12, 5)


def test_limits_of_the_server_hold_for_queues_without_their_own():
    text = FRESH + "set server resources_max.walltime = 72:00:00\nset server resources_max.ncpus = 64\n"
    text += "create queue long\nset queue long queue_type = Execution\nset queue long enabled = True\n"
    text += "set queue long resources_max.walltime = 100:00:00\nset queue long started = True\n"
    found = {q.name: (q.cores, q.walltime) for q in derive(Server.parse(text), cores=96).config.queues}
    assert found == {"workq": ((1, 64), (0, 72 * 3600)), "long": ((1, 64), (0, 100 * 3600))}
