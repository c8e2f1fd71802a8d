"""Queues of different tiers as express queues, and back."""

import re

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from qconf.export.pbs import qmgr
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.sites import FRESH, pbs

TEXT = """\
machine: {name: tiny, cores: 16}
order: ORDER
queues:
  - {name: urgent, cores: [1, 2], walltime: [0, 1h], tier: 2, priority: 7}
  - {name: express, cores: [1, 4], walltime: [0, 1h], tier: 1, preempted: requeue}
  - {name: kept, cores: [1, 8], walltime: [0, 2h], priority: 300}
  - {name: normal, walltime: [0, 24h], preempted: requeue, priority: 600}
"""
FCFS = TEXT.replace("ORDER", "fcfs")
SUM = "min(eligible_time, 2592000) + 3600 * queue_priority"


def loaded(text, former=FRESH):
    """Return the server on which an export was loaded, and the export."""
    export = pbs(parse(text), current=former)
    server = Server.parse(former)
    for statement in qmgr.parse(export.files["queues.qmgr"]):
        server.apply(statement)
    return server, export


def test_express_queues_have_the_ranks_of_the_tiers_and_name_whom_they_preempt():
    server, export = loaded(FCFS)
    found = {name: server.queues[name] for name in ("urgent", "express", "kept", "normal")}
    assert {name: int(each["Priority"]) for name, each in found.items()} == {
        "urgent": 151,
        "express": 150,
        "kept": 1,
        "normal": 2,
    }
    assert {name: each.get("resources_default.preempt_targets") for name, each in found.items()} == {
        "urgent": "queue=express,queue=normal",
        "express": "queue=normal",
        "kept": None,
        "normal": None,
    }
    assert server.scheduler == {"preempt_order": "R"}
    assert "preemptive_sched: true\tALL" in export.files["sched_config.changes"]
    assert any("`-r n` are not preempted" in note for note in export.notes)


def test_jobs_that_wait_in_an_express_queue_have_its_former_targets():
    former = (
        FRESH + "create queue express\nset queue express queue_type = Execution\nset queue express Priority = 160\n"
    )
    _, export = loaded(FCFS, former)
    assert any(note.startswith("Jobs that wait in express now preempt what they did before") for note in export.notes)
    again = former + export.files["queues.qmgr"]
    assert not any("preempt what they did before" in note for note in pbs(parse(FCFS), current=again).notes)
    assert not any("preempt what they did before" in note for note in pbs(parse(FCFS), current=FRESH).notes)


def test_a_queue_whose_jobs_preempt_none_says_so():
    text = re.sub(", preempted: requeue", "", FCFS)
    server, _ = loaded(text)
    assert {each.get("resources_default.preempt_targets") for each in server.queues.values()} == {None, "NONE"}
    assert {queue.preempted for queue in derive(server, cores=16).config.queues} == {"off"}


@pytest.mark.parametrize("order", ["fcfs", "sjf", "lxf", "wfp3", SUM, "-walltime"])
def test_what_is_read_back_decides_the_same(order):
    config = parse(TEXT.replace("ORDER", order))
    server, _ = loaded(TEXT.replace("ORDER", order))
    found = derive(server, cores=16, name="tiny").config
    assert found.order == config.order
    alike = ("name", "tier", "preempted", "cores", "walltime")
    assert [[getattr(queue, key) for key in alike] for queue in found.queues] == [
        [getattr(queue, key) for key in alike] for queue in config.queues
    ]
    own = [queue.priority for queue in found.queues]
    assert own[2:] == ([300, 600] if order == SUM else [1, 2])
    again, _ = loaded(TEXT.replace("ORDER", order), server_text(server))
    assert again.queues == server.queues
    assert again.attributes == server.attributes


def server_text(server):
    """What ``print server`` and ``print sched`` print of it."""
    lines = []
    for name, held in server.queues.items():
        lines += [f"create queue {name}", *(f'set queue {name} {key} = "{value}"' for key, value in held.items())]
    lines += [f'set server {key} = "{value}"' for key, value in server.attributes.items()]
    lines += [f'set sched {key} = "{value}"' for key, value in server.scheduler.items()]
    return "\n".join(lines) + "\n"


def test_named_orders_stay_plain_where_no_tier_has_several_priorities():
    text = re.sub(", priority: [0-9]+", "", TEXT).replace("ORDER", "sjf")
    server, export = loaded(text)
    assert server.attributes["job_sort_formula"] == "-walltime"
    assert "by_queue: False" in export.files["sched_config.changes"]
    assert derive(server, cores=16).config.order == "sjf"


def test_what_has_no_form():
    with pytest.raises(ExportError, match="queues express and normal: preempted: requeue of one and suspend of the"):
        pbs(parse(FCFS.replace("requeue, priority: 600", "suspend, priority: 600")))
    with pytest.raises(ExportError, match="queues urgent, other: with one tier and different priorities"):
        pbs(parse(FCFS + "  - {name: other, walltime: [0, 1h], tier: 2}\n"))


def test_the_site_s_own_settings_are_kept_or_come_back():
    former = (
        FRESH + 'set sched preempt_prio = "fairshare, express_queue, normal_jobs"\nset sched preempt_order = "SR"\n'
        "create queue other\nset queue other queue_type=Execution, Priority=160, enabled=True, started=True\n"
    )
    server, export = loaded(FCFS, former)
    assert server.scheduler == {"preempt_prio": "fairshare, express_queue, normal_jobs", "preempt_order": "R"}
    back = export.files["rollback.qmgr"]
    assert "set sched preempt_order = SR" in back
    assert "print_sched.before" in export.files["PLAN.md"]
    assert any("Jobs of other preempt those of every queue" in note for note in export.notes)
    assert "unset sched preempt_order" in pbs(parse(FCFS), current=FRESH).files["rollback.qmgr"]


@pytest.mark.parametrize(
    ("attributes", "settings", "tiers", "preempted"),
    [
        ("", "", [1, 0], "suspend"),
        ("set sched preempt_order = RS", "", [1, 0], "requeue"),
        ("set sched preempt_order = C", "", [1, 0], "checkpoint"),
        ("set queue high resources_default.preempt_targets = NONE", "", [1, 0], "off"),
        ("set queue high resources_default.preempt_targets = 'Queue=low'", "", [1, 0], "suspend"),
        ("set queue high resources_default.preempt_targets = 'queue=high'", "", [1, 0], "off"),
        ("set sched preempt_queue_prio = 301", "", [0, 0], "off"),
        ("", "preemptive_sched: false ALL", [0, 0], "off"),
        ("set queue low Priority = 200", "", [1, 0], "suspend"),
        ("set queue low Priority = 300", "", [0, 0], "off"),
    ],
)
def test_express_queues_of_a_site(scheduler, attributes, settings, tiers, preempted):
    server = Server.parse(listing("high: Priority = 300\nlow: Priority = 10") + attributes)
    derived = derive(server, cores=16, scheduler=scheduler(settings))
    assert [queue.tier for queue in derived.config.queues] == tiers
    assert [queue.preempted for queue in derived.config.queues] == ["off", preempted]


def test_what_no_configuration_has_a_word_for_is_a_warning():
    targets = "resources_default.preempt_targets = 'queue=other,Resource_List.x=1'"
    printed = listing(f"low:\nfirst: Priority = 400\nsecond: Priority = 300; {targets}")
    derived = derive(Server.parse(f"{printed}set sched preempt_order = 'SR 50 S'\n"), cores=16)
    assert {queue.name: queue.preempted for queue in derived.config.queues} == {
        "first": "off",
        "second": "suspend",
        "low": "suspend",
    }
    for said in ("preempt_order = SR 50 S", "Resource_List.x=1 has no place", "low: jobs of second do not preempt it"):
        assert any(said in warning for warning in derived.warnings), said
    odd = derive(Server.parse(printed.replace("Priority = 400", "Priority = high")), cores=16)
    assert [queue.tier for queue in odd.config.queues if queue.name == "first"] == [0]
    deleted = derive(Server.parse(f"{printed}set sched preempt_order = D\n"), cores=16)
    assert {queue.preempted for queue in deleted.config.queues} == {"off"}


@pytest.mark.parametrize(
    ("strict", "depth", "reserve", "said"),
    [
        ("false", 10, "nothing", None),
        ("True", 10, "cores", "backfill_depth = 10: with queues whose jobs preempt those of others one reservation"),
        ("True", 1, "cores", None),
    ],
)
def test_what_express_queues_change_of_reservations_is_said(scheduler, strict, depth, reserve, said):
    server = Server.parse(listing("workq:\nfirst: Priority = 400", f"backfill_depth = {depth}"))
    derived = derive(server, cores=16, scheduler=scheduler(f"strict_ordering: {strict} ALL"))
    assert derived.config.has_tiers
    assert (derived.config.reserve, derived.config.reservation_depth) == (reserve, 1)
    found = [each for each in derived.warnings if "one reservation" in each or "reserves nothing" in each]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_what_is_not_simulated_with_tiers_leaves_them_out():
    server = "low: default_chunk.Qlist = low\nfirst: Priority = 400; default_chunk.Qlist = first"
    derived = derive(Server.parse(listing(server)), cores=16)
    assert not derived.config.has_tiers
    assert any("first: jobs preempt those of others" in each and "divided" in each for each in derived.warnings)
