"""What a recommendation changes, in lines that a person reads."""

from dataclasses import replace

from qconf.config import Target
from qconf.report.changes import changes
from tests.qconf.report import small


def recommended(base, config):
    found = small.recommendation()
    row = replace(found.rows[3], config=config)
    return replace(found, base=base, config=config, rows=[*found.rows[:3], row, *found.rows[4:]])


def for_all(base, config):
    return [line for queue, line in changes(recommended(base, config)) if queue == "all queues"]


def test_a_formula_is_shown_in_words_too():
    base = small.site()
    first, words = for_all(base, base.replace(order="eligible_time / 2"))
    assert first == "order of waiting jobs: fcfs -> eligible_time / 2"
    assert words.startswith("the order in words: Jobs that have waited as long count the same")


def test_the_same_configuration_changes_nothing():
    assert list(changes(recommended(small.site(), small.site()))) == []


def test_a_target_that_goes_with_its_queue_is_shown():
    base = small.site()
    base = base.replace(targets=[Target(queue=name, weight=2.0) for name in base.names])
    renamed = base.queues[0].model_copy(update={"name": "other"})
    found = list(changes(recommended(base, base.with_queues([renamed, *base.queues[1:]]))))
    gone = "what targets want for it is left out: there is no such queue any more"
    assert [queue for queue, text in found if text == gone] == [base.names[0]]


def test_a_reservation_delay_is_shown():
    base = small.site()
    late = base.replace(mode="shared", pool=None, reserve_after=86400)
    lines = for_all(late.replace(reserve_after=0), late)
    assert lines[0] == "backfill: EASY -> EASY, a reservation after 24h"
    assert lines[1].startswith("cores are reserved for a job that does not fit only when it has waited 24h")
    assert for_all(late, late.replace(reserve_after=0))[1].startswith("cores are reserved at once")


def test_shortpools_that_go_or_change_are_shown():
    base = small.site().replace(shortpools=({"cores": 24, "walltime": 7200, "days": ("mon",), "begin": "08:00"},))
    cores = "24 cores for jobs up to 2h, mon 08:00 to 00:00"
    assert for_all(base, base.replace(shortpools=())) == [f"shortpools: {cores} -> -"]
    always = base.replace(shortpools=({"cores": 24, "walltime": 1800},))
    assert for_all(base, always) == [f"shortpools: {cores} -> 24 cores for jobs up to 30m, always"]
