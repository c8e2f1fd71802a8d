"""What else sorts a site's waiting jobs: a threshold, sort keys, the scheduler's own formula, prime time."""

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.listings import listing
from tests.qconf.export.sites import FRESH, pbs

TWO = """\
machine: {name: tiny, cores: 96}
order: ORDER
queues:
  - {name: short, walltime: [0, 1h], priority: PRIORITY}
  - {name: long, walltime: [1h, 24h], priority: 80}
"""
SITE = listing("short: Priority = 40; resources_max.walltime = 01:00:00\nlong: Priority = 80")
THRESHOLD = "set sched default job_sort_formula_threshold = -1.5e3\n"
OWN = "set sched default job_sort_formula = ncpus\n"


def two(order="fcfs", priority=40):
    return parse(TWO.replace("ORDER", order).replace("PRIORITY", str(priority)))


def lines(export, name):
    return [line for line in export.files[name].splitlines() if line.startswith(("set s", "unset s"))]


def test_a_threshold_is_taken_away_with_the_formula_that_it_was_for_and_comes_back():
    current = f"{FRESH}set server job_sort_formula = ncpus\n{THRESHOLD}"
    export = pbs(two("sjf"), current=current)
    assert "unset sched job_sort_formula_threshold" in lines(export, "queues.qmgr")
    assert "set sched job_sort_formula_threshold = -1.5e3" in lines(export, "rollback.qmgr")
    assert "job_sort_formula_threshold = -1.5e3 is taken away" in "".join(export.notes)
    assert "print sched' | grep -v ' state = ' | diff print_sched.before -" in export.files["PLAN.md"]
    assert "print_sched" not in pbs(two("sjf"), current=FRESH).files["PLAN.md"]


def test_the_threshold_of_a_formula_that_stays_is_kept_and_said():
    export = pbs(two("walltime"), current=f"{FRESH}set server job_sort_formula = walltime\n{THRESHOLD}")
    assert "sched" not in export.files["queues.qmgr"]
    assert "job_sort_formula_threshold = -1.5e3 is kept" in "".join(export.notes)


def test_the_schedulers_own_formula_makes_way_for_the_servers_and_comes_back():
    """PBS refuses two formulas that differ (error 15226): each goes before the other comes."""
    export = pbs(two("walltime"), current=f"{FRESH}{OWN}")
    forward, back = (lines(export, name) for name in ("queues.qmgr", "rollback.qmgr"))
    assert forward.index("unset sched job_sort_formula") < forward.index("set server job_sort_formula = walltime")
    assert back.index("unset server job_sort_formula") < back.index("set sched job_sort_formula = ncpus")
    assert derive(Server.parse(SITE + OWN), cores=8).config.order == "ncpus"


def test_sort_keys_are_taken_away(scheduler):
    found = scheduler('job_sort_key: "walltime HIGH" ALL\njob_sort_key: "ncpus LOW" ALL\n')
    export = pbs(two(), current=FRESH, scheduler=found)
    assert "job_sort_key (walltime HIGH, ncpus LOW) is taken away" in "".join(export.notes)
    assert "sed -E '/^[[:space:]]*(job_sort_key|by_queue|" in export.files["PLAN.md"]
    assert "job_sort_key" in "".join(exporter("pbs")(scheduler=found).notes(two()))  # for the verdict


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("", "fcfs"),
        ("by_queue: True prime\nby_queue: True non_prime", "fcfs"),
        ("by_queue: False ALL", "0"),
        ("by_queue: True prime\nby_queue: False non_prime", "0"),
        ('by_queue: True ALL\njob_sort_key: "walltime LOW" ALL', "sjf"),
        ('by_queue: False ALL\njob_sort_key: "walltime LOW" ALL', "-walltime"),
        ('by_queue: False ALL\njob_sort_key: "ncpus HIGH" ALL', "ncpus"),
        ('job_sort_key: "ncpus HIGH" ALL', "queue_priority * 32 + log(ncpus)"),
        ('job_sort_key: "walltime high"\njob_sort_key: "mem LOW" ALL', "ljf"),
        ('job_sort_key: "job_priority HIGH" ALL', "fcfs"),
    ],
)
def test_the_order_of_a_server_without_a_formula(scheduler, text, order):
    found = derive(Server.parse(SITE), cores=8, scheduler=scheduler(text))
    assert found.config.order == order
    assert any("one thing in prime time" in each for each in found.warnings) == (
        text.count("non_prime") and order == "0"
    )
    assert any("job_sort_key" in each for each in found.warnings) == ("mem" in text or "job_priority" in text)


def test_keys_of_queues_of_one_priority(scheduler):
    alike = Server.parse(SITE.replace("Priority = 80", "Priority = 40"))
    for text, order in (("by_queue: False ALL", "fcfs"), ('job_sort_key: "walltime LOW" ALL', "sjf")):
        assert derive(alike, cores=8, scheduler=scheduler(text)).config.order == order


def test_by_submission_alone_is_exported_as_no_formula():
    export = pbs(two("'0'"), current=f"{FRESH}set server job_sort_formula = ncpus\n")
    assert "unset server job_sort_formula" in lines(export, "queues.qmgr")


def test_what_init_says_of_a_formula_within_queues_and_of_its_threshold(scheduler):
    server = Server.parse(f"{SITE}set server job_sort_formula = ncpus\n{THRESHOLD}")
    for text, said in (("by_queue: True prime", True), ("by_queue: False ALL", False), ("", False)):
        warnings = derive(server, cores=8, scheduler=scheduler(text)).warnings
        assert any("one queue after the other" in each for each in warnings) is said
        assert any("job_sort_formula_threshold = -1.5e3" in each for each in warnings)


@pytest.mark.parametrize(
    ("text", "name", "when"),
    [
        ("", "np_long", "non-prime time"),
        ("", "p_long", "prime time"),
        ("", "dedi", "dedicated time"),
        ("nonprimetime_prefix: night", "night1", "non-prime time"),
    ],
)
def test_queues_whose_names_bind_them_to_a_time(scheduler, text, name, when):
    config = parse(TWO.replace("ORDER", "fcfs").replace("PRIORITY", "40").replace("name: long", f"name: {name}"))
    said = f"Jobs of {name} start in {when} only"
    assert said in "".join(pbs(config, current=FRESH, scheduler=scheduler(text)).notes)
    found = derive(Server.parse(SITE.replace("queue long", f"queue {name}")), cores=8, scheduler=scheduler(text))
    assert said in "".join(found.warnings)
    assert "time only" not in "".join(pbs(two(), current=FRESH).notes)


def test_borders_of_prime_time(scheduler):
    assert "border of prime time" in "".join(pbs(two(), scheduler=scheduler("backfill_prime: true ALL")).notes)
    assert "border of prime time" not in "".join(pbs(two(), scheduler=scheduler("backfill_prime: false ALL")).notes)


PRINTED_HOOK = """\
create hook sizes
set hook sizes type = site
set hook sizes enabled = ENABLED
set hook sizes event = queuejob
set hook sizes event += modifyjob
import hook sizes application/x-python base64 -
aW1wb3J0IHBicwoKIyBhIGNvbW1lbnQ7IGFuZCAncXVvdGVz
Cg==

"""
LISTED_HOOK = """\
Hook sizes
    type = site
    enabled = ENABLED
    event = queuejob,
	modifyjob
    user = pbsadmin

"""


@pytest.mark.parametrize("hook", [PRINTED_HOOK, LISTED_HOOK])
@pytest.mark.parametrize(("enabled", "name"), [("true", "sizes"), ("false", "sizes"), ("true", "qconf_qos")])
def test_hooks_of_the_sites_own_are_named_where_they_are_on(hook, enabled, name):
    printed = SITE + hook.replace("sizes", name).replace("ENABLED", enabled) + "set server max_run = [o:PBS_ALL=9]\n"
    server = Server.parse(printed)
    assert server.attributes["max_run"] == "[o:PBS_ALL=9]"
    said = "sizes (queuejob, modifyjob): what they change of jobs"
    named = (enabled, name) == ("true", "sizes")
    assert any(said in each for each in derive(server, cores=8).warnings) is named
    assert any(said in each for each in pbs(two(), current=printed).notes) is named
