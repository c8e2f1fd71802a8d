"""No exported queue suspends running jobs: priorities below PBS's line, or preemption turned off and said so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.config import parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.pbs.init import derive
from qconf.export.pbs.order import formula
from qconf.export.pbs.preemption import preemption
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.pbs.test_order import site, value
from tests.qconf.export.sites import FRESH, HYBRID, pbs

SAMPLE = [1.0, 5.832]  # of the recommendation for the sample: 125 and 729 as whole numbers
ORDER = "queue_priority * eligible_time / max(walltime, 1)"


def priorities_of(export, current=FRESH):
    server = PbsServer(current)
    server.load(export.files["queues.qmgr"])
    return {name: int(held["Priority"]) for name, held in server.queues.items() if "Priority" in held}


def settings_of(export):
    return [line.split("\t")[0] for line in export.files.get("sched_config.changes", "").splitlines() if line[0] != "#"]


def test_exported_priorities_lie_below_the_line_and_the_formula_sees_their_own_values():
    export = pbs(site(SAMPLE, order=ORDER))
    assert max(priorities_of(export, "").values()) < 150
    assert "preemptive_sched: false" not in settings_of(export)
    assert "(1 if queue_priority == 26 else 5.832) * eligible_time / max(walltime, 1)" in export.files["queues.qmgr"]


@settings(max_examples=50)
@given(st.lists(st.floats(1e-3, 1e6) | st.integers(1, 1023).map(float), min_size=1, max_size=8, unique=True))
def test_whatever_the_priorities_the_formula_compares_and_multiplies_those_of_the_configuration(priorities):
    order = f"queue_priority * 7 + (86400 if queue_priority == {priorities[0]!r} else eligible_time)"
    config = site(priorities, order=order)
    found = preemption(config)
    text, notes = formula(config, found.priorities)
    assert notes == []
    for queue in config.queues:
        job = {"eligible_time": 5, "walltime": 60, "ncpus": 1}
        exported = value(text, queue_priority=found.priorities.values[queue.name], **job)
        assert exported == value(order, queue_priority=queue.priority, **job)
        assert 1 <= found.priorities.values[queue.name] < 150


def test_the_pool_sees_the_very_ratios():
    config = parse(HYBRID.replace("priority: 40", "priority: 1").replace("priority: 80", "priority: 5.832"))
    text, notes = formula(config, found := preemption(config).priorities)
    factors = [
        value(text, queue_priority=-found.values[name], eligible_time=600, walltime=60, ncpus=1)
        for name in ("small", "medium")
    ]
    assert factors == pytest.approx([10, 58.32], rel=1e-6)
    assert not any("priorit" in note for note in notes)


@pytest.mark.parametrize("mode", ["shared", "hybrid"])
def test_init_reads_the_priorities_of_the_configuration_back(mode):
    config = site(SAMPLE, order=ORDER, mode=mode, **({"entry": "move"} if mode == "hybrid" else {}))
    server = PbsServer(FRESH)
    server.load(pbs(config, current=FRESH).files["queues.qmgr"])
    again = derive(Server.parse(server.printed())).config
    assert [queue.priority for queue in again.queues] == SAMPLE
    assert again.order == ORDER


def test_a_site_whose_queues_are_above_the_line_loads_without_preemption():
    current = FRESH + listing("q1: Priority = 200\nurgent: Priority = 900")
    export = pbs(site([100.0, 200.0]), current=current)
    assert "preemptive_sched: false" in settings_of(export)
    assert priorities_of(export, current) == {"q0": 100, "q1": 200, "urgent": 900}
    (note,) = [note for note in export.notes if "Preemption is turned off" in note]
    assert "q1 (200)" in note
    assert "urgent (900)" in note
    assert note in export.files["PLAN.md"]
    assert note in exporter("pbs")(current=Server.parse(current)).notes(site([100.0, 200.0]))


def test_queues_that_are_no_part_of_the_change_go_on_suspending():
    current = FRESH + listing("urgent: Priority = 900")
    export = pbs(site([100.0, 200.0]), current=current)
    assert "preemptive_sched: false" not in settings_of(export)
    assert priorities_of(export, current) == {"q0": 1, "q1": 2, "urgent": 900}
    assert any("Jobs of urgent suspend running ones, as they do now" in note for note in export.notes)


def test_where_nothing_fits_below_the_line_preemption_is_turned_off():
    current = f"{FRESH}set sched default preempt_queue_prio = 2\n"
    export = pbs(site([1.0, 2.0]), current=current)
    assert "preemptive_sched: false" in settings_of(export)
    assert any("2 different priorities do not fit below it" in note for note in export.notes)
    assert "preemptive_sched: false" not in settings_of(pbs(site([2.0, 2.0]), current=current))


@pytest.mark.parametrize(
    ("lines", "attributes", "highest"),
    [
        ("preemptive_sched: true ALL", "", 2),
        ("preemptive_sched: false ALL", "", 1000),
        ("preemptive_sched: false prime\npreemptive_sched: true non_prime", "", 2),
        ("preempt_queue_prio: 1001", "", 1000),
        ('preempt_prio: "normal_jobs"', "", 1000),
        ("# nothing", "set sched preempt_queue_prio = 1001", 1000),
        ("# nothing", 'set sched default preempt_prio = "fairshare, normal_jobs"', 1000),
        ("# nothing", "set sched night preempt_queue_prio = 1001", 2),
    ],
)
def test_the_line_is_read_where_the_files_are_given(scheduler, lines, attributes, highest):
    export = pbs(site([500.0, 1000.0]), current=f"{FRESH}{attributes}\n", scheduler=scheduler(lines))
    assert max(priorities_of(export).values()) == highest
    assert "preemptive_sched: false" not in settings_of(export)


def test_a_file_that_is_no_sched_config_is_refused(scheduler):
    with pytest.raises(InputError, match="line 2"):
        scheduler("by_queue: True prime\nset server scheduling = True\n")
