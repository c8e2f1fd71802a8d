"""What init reads of a server, exported unedited, changes nothing; and what is edited changes that alone."""

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from qconf.config import AccessConfig, ConfigError, FairshareConfig, ThrottleConfig, dump, parse
from qconf.errors import ExportError, InputError
from qconf.export.pbs import PbsExporter, qmgr
from qconf.export.pbs.beside import NOTHING
from qconf.export.pbs.fairshare import charges_of
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.beside import SHARED
from tests.qconf.export.pbs.listings import Site, listing, sites
from tests.qconf.export.pbs.model import commands
from tests.qconf.export.sites import PRINTED, QUICK

LISTINGS = [
    *(SHARED / "cases" / "pbs" / f"{name}_ps.txt" for name in ("M1", "M2", "depth", "nested", "nodect")),
    PRINTED,
    SHARED / "pbs" / "snapshot" / "print_server.txt",
]


def read(server, **options):
    """The configuration of a server, as it comes back from its file."""
    return parse(dump(derive(server, **options).config, "unedited"))


def is_nothing(export):
    """Whether nothing is loaded, and that is said."""
    said = NOTHING in export.notes and NOTHING in export.files["PLAN.md"]
    return said and sorted(export.files) == ["PLAN.md", "queues.qmgr"] and commands(export.files["queues.qmgr"]) == []


def statements(export):
    return commands(export.files["queues.qmgr"])


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_site_unedited(path):
    if not path.exists():
        pytest.skip(f"{path} is not here")
    server = Server.read(path)
    assert is_nothing(PbsExporter(current=server).export(read(server)))


@settings(QUICK, max_examples=150)
@given(sites(), st.booleans(), st.booleans(), st.booleans())
def test_any_server_unedited(site, with_nodes, with_scheduler, again):
    """With its nodes and the scheduler's settings, or without; the export may lack the nodes that init was given."""
    server = Server.parse(site.printed())
    nodes = site.nodes() if with_nodes else None
    scheduler = site.scheduler() if with_scheduler else None
    try:
        config = read(server, nodes=nodes, scheduler=scheduler)
    except InputError as error:
        none = ("no queue may use any of the nodes", "that the machine holds", "no queue that a job can enter")
        assume(not any(words in str(error) for words in none))
        raise
    current = PbsExporter(current=server, nodes=nodes if again else None, scheduler=scheduler)
    assert is_nothing(current.export(config))


TWO = listing("short: resources_max.walltime = 02:00:00\nlong:", "default_queue = short")


@pytest.mark.parametrize(
    ("routing", "option", "made"), [(None, None, None), ("in", None, "in"), (None, "in", "in"), ("in", "way", "way")]
)
def test_a_route_queue_that_is_wanted_is_made_and_then_there(routing, option, made):
    server = Server.parse(TWO)
    config = parse(dump(read(server).replace(routing=routing)))
    export = PbsExporter(current=server, route=option).export(config)
    after = Server.parse(TWO)
    for statement in qmgr.parse(export.files["queues.qmgr"]):
        after.apply(statement)
    assert after.of_type("route") == ([made] if made else [])
    assert after.attributes["default_queue"] == (made or "short")
    assert after.queues.get(made, {}).get("route_destinations") == ("short,long" if made else None)
    assert is_nothing(PbsExporter(current=after, route=option).export(config))


ORDER = {"job_sort_formula", "job_sort_formula_threshold", "eligible_time_enable"}
LISTS = ("acl_users", "acl_user_enable", "acl_groups", "acl_group_enable", "acl_hosts", "acl_host_enable")
CHARGES = {"cores": 0.5, "memory": 3.0, "gpus": 7.0, "scratch": 1e-05}
USER = ThrottleConfig(user="erin", max_run=7)
#: Of a queue: what is edited, and the attributes that may change by it.
OF_QUEUE = {
    "max_run": (lambda queue: (queue.max_run or 0) + 1, {"max_run", "max_running"}),
    "max_user_run": (lambda queue: (queue.max_user_run or 0) + 1, {"max_run", "max_user_run"}),
    "max_run_cores": (lambda queue: (queue.max_run_cores or 5000) + 1, {"max_run_res.ncpus"}),
    "max_user_cores": (lambda queue: (queue.max_user_cores or 5000) + 1, {"max_run_res.ncpus", "max_user_res.ncpus"}),
    "walltime": (lambda queue: (queue.walltime[0], queue.walltime[0] + 7200), {"resources_max.walltime"}),
    "cores": (
        lambda queue: (queue.cores[0], queue.cores[0] + 7),
        {"resources_max.ncpus", "resources_max.nodect", "resources_min.ncpus", "resources_min.nodect"},
    ),
    "priority": (lambda queue: queue.priority + 1, {"Priority"}),
    "access": (lambda queue: AccessConfig(users=("erin",)), {*LISTS}),
}
#: Of the whole: what is edited, and what may change of the server.
OF_ALL = {
    "order": (lambda config: "sjf" if config.order == "ljf" else "ljf", ORDER),
    "throttles": (lambda config: (*config.throttles, USER), {"max_run"}),
    "reservation_depth": (lambda config: (config.reservation_depth or 1) + 1, {"backfill_depth"}),
    "fairshare": (
        lambda config: (config.fairshare or FairshareConfig()).model_copy(update={"charges": CHARGES}),
        set(),
    ),
}


def edited(config, edit, number):
    """One edit of a configuration; the objects and the attributes that may change by it."""
    if edit in OF_ALL:
        new, keys = OF_ALL[edit]
        return config.replace(**{edit: new(config)}), {("server", key) for key in keys}
    at = number % len(config.queues)
    queue = config.queues[at]
    if edit == "new":
        queues = (*config.queues[: at + 1], queue.model_copy(update={"name": "added"}), *config.queues[at + 1 :])
        return config.replace(queues=queues), set()
    new, keys = OF_QUEUE[edit]
    changed = queue.model_copy(update={edit: new(queue)})
    queues = (*config.queues[:at], changed, *config.queues[at + 1 :])
    return config.replace(queues=queues), {(queue.name, key) for key in keys}


def differences(one, other):
    """The objects and attributes in which two servers differ."""
    held = [
        {"server": server.attributes, "scheduler": server.scheduler, **server.resources, **server.queues}
        for server in (one, other)
    ]
    names = {*held[0], *held[1]}
    pairs = [(name, *(each.get(name, {}) for each in held)) for name in names]
    return {(name, key) for name, old, new in pairs for key in {*old, *new} if old.get(key) != new.get(key)}


@settings(QUICK, max_examples=50)
@example(Site(1379142721), "priority", 3)  # the least Priority is 0, and a formula names it
@example(Site(285474), "priority", 0)  # a queue below an express queue
@example(Site(536870913), "priority", 6)  # an express queue of a divided machine
@example(Site(3673967), "priority", 0)  # what would be an express queue
@example(Site(1767562), "new", 0)  # which express queues without preempt_targets preempt
@given(sites(), st.sampled_from([*OF_QUEUE, *OF_ALL, "new"]), st.integers(0, 9))
def test_one_edit_changes_that_alone_and_the_rollback_brings_it_back(site, edit, number):
    """Beside it a Route queue's own limits, which follow those of its destinations, and where a new queue comes in."""
    printed, scheduler = site.printed(), site.scheduler()
    server, after = Server.parse(printed), Server.parse(printed)
    try:
        config = read(server, scheduler=scheduler)
        wanted, allowed = edited(config, edit, number)
        export = PbsExporter(current=server, scheduler=scheduler).export(wanted)
    except (InputError, ExportError, ConfigError):
        assume(False)
    for statement in qmgr.parse(export.files["queues.qmgr"]):
        after.apply(statement)
    if edit == "fairshare":
        lines = dict(re.findall(r"^(\w+): (\S+)", export.files.get("sched_config.changes", ""), re.MULTILINE))
        assert [*lines] == ["fairshare_usage_res"] * config.is_fair
        assert [charges_of(text) for text in lines.values()] == [CHARGES] * len(lines)
    routes = after.of_type("route")
    found = differences(server, after)
    if edit in ("walltime", "cores"):
        allowed |= {(name, key) for name in routes for key in OF_QUEUE[edit][1]}
    if edit == "reservation_depth":
        allowed |= {(name, "backfill_depth") for name in (config.names if config.mode != "shared" else ())}
    if edit == "new":
        entries = {"added", *(name for name in after.queues if name not in server.queues)}
        allowed |= {(name, "route_destinations") for name in routes} | {each for each in found if each[0] in entries}
        allowed |= {("server", "default_queue")} if entries != {"added"} else set()
    assert found <= allowed
    for statement in qmgr.parse(export.files.get("rollback.qmgr", "")):
        after.apply(statement)
    assert after == server
