import re
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.config import MachineConfig, PoolConfig, QueueConfig, SiteConfig, load, parse
from qconf.export import ExportError
from qconf.export.nodes import Node
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.pbs.test_reservation_delay import DELAYED
from tests.qconf.export.sites import (
    CRAY,
    FRESH,
    HYBRID,
    NODES,
    PRINTED,
    QUICK,
    exportable,
    exported,
    needs_printed,
    nodes_of,
    pbs,
    pbs_files,
)
from tests.qconf.export.snapshots import check_snapshot


def current():
    return PRINTED.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("case", "config", "options"),
    [
        ("cray-xc40", load(CRAY), {}),
        ("hybrid", parse(HYBRID), {"nodes": NODES, "current": FRESH}),
        ("reserve-after", parse(DELAYED), {"current": FRESH}),
    ],
)
def test_snapshot(case, config, options):
    check_snapshot(f"pbs-{case}", pbs_files(config, **options))


@settings(QUICK, max_examples=40)
@given(exportable(), st.booleans())
def test_any_valid_configuration_loads_and_is_undone(config, known):
    before = PbsServer(FRESH)
    files = exported(config, nodes=nodes_of(config), current=FRESH if known else None)
    server = PbsServer(FRESH if known else "")
    server.load(files["queues.qmgr"])
    server.load(files.get("nodes.qmgr", ""))
    route = server.server["default_queue"]
    assert server.queues[route]["route_destinations"] == list(config.names)
    assert ("rollback.qmgr" in files) == known
    if known:
        server.load(files["rollback.qmgr"])
        assert server.printed() == before.printed()
    else:
        assert "There is no rollback script." in files["PLAN.md"]
    assert ("qconf-reserve" in files) == (config.reservation_delay > 0)
    for name in {"qconf-promote", "qconf-reserve"} & set(files):
        compile(files[name], name, "exec")
    for name in ("queues.qmgr", "nodes.qmgr", "rollback.qmgr"):
        assert all(
            re.match(r"(create|set|unset|delete) (queue|server|node|resource)", line)
            for line in commands(files.get(name, ""))
        )


@needs_printed
def test_difference_to_a_real_server_and_back():
    printed = current()
    assert sorted(PbsServer(printed).printed().splitlines()) == sorted(printed.splitlines())
    config = load(CRAY)
    queues = [*config.queues[:2], config.queues[3].model_copy(update={"name": "middle"}), config.queues[4]]
    files = pbs_files(config.with_queues(queues), current=printed)
    server = PbsServer(printed)
    server.load(files["queues.qmgr"])
    assert server.queues["medium"]["enabled"] == "False"
    assert server.queues["small72_p"]["enabled"] == "False"
    assert "max_run_res.ncpus" not in server.queues["small"]
    assert server.queues["route"]["route_destinations"] == ["idqueue", "small", "middle", "large"]
    changed = server.printed()
    server.load(files["rollback.qmgr"])
    assert server.printed() == PbsServer(printed).printed()
    cleaned = PbsServer(changed)
    cleaned.load(files["cleanup.qmgr"])
    assert "small72" not in cleaned.queues
    assert "python3 -I qconf-pbs move" in files["PLAN.md"]
    assert "workq" in files["PLAN.md"]


def in_plan(text):
    """The qmgr statements of a plan's shell commands; a script that is loaded there is named, and which part of it."""
    command = r"^qmgr -a -c '(.*)'$|^python3 -I qconf-pbs load (\S+)(?: --(but|only))?$"
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            yield from re.findall(command, line)


def follow(server, files, text):
    for statement, script, part in in_plan(text):
        kept = {"": (False, True), "but": (False,), "only": (True,)}[part]
        lines = files.get(script, "").splitlines()
        server.load(statement or "\n".join(line for line in lines if line.startswith("delete") in kept))


def test_the_plan_says_that_eligible_time_begins_at_0():
    lxf = parse(HYBRID.replace("fcfs", "lxf"))
    said = "jobs that wait already start at 0"
    assert said in pbs_files(lxf, current=FRESH)["PLAN.md"]
    assert said not in pbs_files(lxf, current=FRESH.replace("enable = False", "enable = True"))["PLAN.md"]


@needs_printed
@pytest.mark.parametrize("after", ["Change the scheduler", "Start again", "Later: delete"])
@pytest.mark.parametrize("routing", ["True", "False", "none"])
@pytest.mark.parametrize("starting", ["True", "False"])
def test_undoing_the_plan_from_any_step_leaves_the_server_as_it_was(after, routing, starting):
    server = PbsServer(FRESH if routing == "none" else current())
    server.load("" if routing == "none" else f"set queue route started = {routing}")
    server.load(f"set server scheduling = {starting}")
    before = server.printed()
    plan = (files := pbs_files(load(CRAY), current=before))["PLAN.md"]
    follow(server, files, plan[: plan.index(after if after in plan else "## Undo")])
    assert server.printed() != before
    undo = plan[plan.index("## Undo") :]
    assert undo.index("scheduling = False") < undo.index("rollback.qmgr") < undo.rindex(f"scheduling = {starting}")
    assert (undo.count("started = False"), undo.count("started = True")) == ((1, 1) if routing == "True" else (0, 0))
    follow(server, files, undo)
    assert server.printed() == before


@needs_printed
def test_exporting_what_is_there_writes_nothing():
    config = load(CRAY)
    server = PbsServer(current())
    server.load(pbs_files(config, current=server.printed())["queues.qmgr"])
    assert commands(pbs_files(config, current=server.printed())["queues.qmgr"]) == []


def limited(*names, **limits):
    queues = [QueueConfig(name=name, cores=(1, 8), **limits) for name in names]
    return SiteConfig(machine=MachineConfig(cores=8), queues=queues)


def loaded_and_undone(config, printed):
    """Return the queues of a server that has an export, and the files; the undo brings all back."""
    server = PbsServer(printed)
    before, files = server.printed(), pbs_files(config, current=printed)
    server.load(files["queues.qmgr"])
    queues = deepcopy(server.queues)
    server.load(files["rollback.qmgr"])
    assert server.printed() == before
    return queues, files


def test_older_limits_stay_of_the_older_kind_and_come_back():
    printed = listing("a: max_running = 5\nb: max_user_run = 2", "default_queue = a")
    config = limited("a", "b", max_run=4)
    queues, _ = loaded_and_undone(config, printed)
    assert (queues["a"]["max_running"], queues["b"]["max_running"]) == ("4", "4")
    assert "max_user_run" not in queues["b"]
    of_cores = config.queues[0].model_copy(update={"max_run_cores": 8})
    with pytest.raises(ExportError, match="older kind"):
        pbs_files(config.with_queues([of_cores, config.queues[1]]), current=printed)


SCOPES = listing(
    "a: max_queued = [o:PBS_ALL=500]; max_queued = [u:PBS_GENERIC=50]; max_run = [o:PBS_ALL=12]; "
    "max_run = [u:PBS_GENERIC=5]; max_run_soft = [o:PBS_ALL=10]; max_run_soft = [u:PBS_GENERIC=4]",
    *("default_queue = a", "max_run = [o:PBS_ALL=90]", "max_run = [u:alice=9]"),
)


def test_every_scope_of_a_limit_comes_back():
    assert {*SCOPES.splitlines()} <= {*PbsServer(SCOPES).printed().splitlines()}
    queues, _ = loaded_and_undone(limited("a", max_run=4), SCOPES)
    assert queues["a"]["max_run"] == "[o:PBS_ALL=4]"
    assert queues["a"]["max_queued"] == "[o:PBS_ALL=500],[u:PBS_GENERIC=50]"


def test_limits_of_others_are_kept():
    queue = 'a: max_run = "[o:PBS_ALL=9],[u:alice=3]"; max_run_res.ncpus = "[u:bob=4]"'
    printed = listing(queue, "default_queue = a")
    for limits, kept in (({"max_run": 4}, "[o:PBS_ALL=4],[u:alice=3]"), ({}, "[u:alice=3]")):
        queues, files = loaded_and_undone(limited("a", **limits), printed)
        assert (queues["a"]["max_run"], queues["a"]["max_run_res.ncpus"]) == (kept, "[u:bob=4]")
        assert "were not simulated: user alice in queue a, user bob in queue a." in files["PLAN.md"]


@needs_printed
def test_a_default_walltime_that_no_queue_takes_is_noted():
    assert "set server resources_default.walltime = 24:00:00" in current()
    note = "a job of 8 cores that names no walltime is given 24:00:00 (resources_default.walltime), with which no queue"
    assert note in pbs_files(load(CRAY), current=current())["PLAN.md"]
    short = current().replace("resources_default.walltime = 24:00:00", "resources_default.walltime = 02:00:00")
    assert "names no walltime" not in pbs_files(load(CRAY), current=short)["PLAN.md"]


def test_no_walltime_is_a_default_since_pbs_takes_the_queues_longest():
    endless = [QueueConfig(name="a", cores=(1, 4), walltime=(0, 1800)), QueueConfig(name="b", cores=(5, 8))]
    config = limited("a").replace(queues=endless)
    note = "A job that names no walltime has its queue's longest, in PBS as in the simulator; b has none"
    assert note in pbs_files(config)["PLAN.md"]
    assert "resources_default.walltime" not in pbs_files(config)["queues.qmgr"]
    assert note not in pbs_files(config.replace(queues=[endless[0]]))["PLAN.md"]


def test_binding_by_limits():
    config = parse(HYBRID).with_partitions([40, 56, 0])
    files = pbs_files(config, binding="limits")
    assert "Qlist" not in files["queues.qmgr"]
    assert "nodes.qmgr" not in files
    assert "set queue small max_run_res.ncpus = [o:PBS_ALL=40]" in files["queues.qmgr"]
    assert "reserve nothing" in files["PLAN.md"]


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        ({}, {"binding": "limits"}, "cannot make a common pool"),
        ({}, {"nodes": [Node("a")]}, "1 nodes of 8 cores are not the machine's 96"),
        ({}, {"nodes": [Node(f"a{i}", 16) for i in range(12)]}, "has 16 cores"),
        ({"backfill": False}, {}, "backfill: false"),
        ({}, {"route": "small"}, "cannot be the Route queue"),
        ({}, {"remove": ["small"]}, "the configuration has it"),
        ({}, {"remove": ["other"]}, "no such queue"),
        ({}, {"current": "create queue small queue_type=Route"}, "no Execution queue"),
        ({}, {"current": "create resource Qlist type=string"}, "no string_array"),
        ("small_p", {}, "rename one of them"),  # a name that the pool needs
        *((name, {}, "Rename it") for name in ("a" * 14, "1st", "é", "a.b", "a;b", 'a"b', "a#b", "a\\")),
    ],
)
def test_what_is_not_exportable(change, options, reason):
    config = parse(HYBRID)
    if isinstance(change, str):
        first, second, *rest = config.queues
        config, change = config.with_queues([first, second.model_copy(update={"name": change}), *rest]), {}
    with pytest.raises(ExportError, match=re.escape(reason)):
        pbs_files(config.replace(**change), **options)


def test_what_has_no_form_in_pbs_is_noted():
    export = pbs(parse(HYBRID.replace("entry: move", "entry: either, placement: combined")))
    text = " ".join(export.notes)
    for words in (
        *("no form in PBS", "exported as `move`", "`combined`", "does not count both together"),
        *("whole nodes", "the nodes"),
    ):
        assert words in text, words
    assert all(note in export.files["PLAN.md"] for note in export.notes)


# Safety


@settings(max_examples=150)
@given(
    st.text(min_size=1, max_size=12),
    st.text(min_size=1, max_size=12),
    st.text(max_size=12),
    st.text(max_size=30),
)
def test_arbitrary_text_is_refused_or_harmless(queue, host, machine, order):
    """Whatever the names, the scripts hold the intended commands and nothing else."""
    try:
        config = SiteConfig(
            machine=MachineConfig(name=machine, cores=2),
            mode="hybrid",
            order=order or "fcfs",
            queues=[QueueConfig(name=queue, cores=(1, 1), partition=1)],
            pool=PoolConfig(cores=1, entry="move"),
        )
        files = pbs_files(config, nodes=[Node(host), Node("n2")], current=FRESH)
    except (ExportError, ValueError) as error:
        assert str(error)  # noqa: PT017
        return
    expected = {f"create queue {queue}", f"create queue {queue}_p", "create queue route"}
    lines = commands(files["queues.qmgr"])
    assert expected <= set(lines)
    assert len([line for line in lines if line.startswith("create queue")]) == 3
    for name in ("queues.qmgr", "nodes.qmgr", "rollback.qmgr"):
        assert files[name].isascii()
        physical = [line for line in files[name].splitlines() if line and not line.startswith("#")]
        assert commands(files[name]) == physical
    compile(files["qconf-promote"], "qconf-promote", "exec")
