"""Formulas in plain words, which are true of what the formula gives."""

from __future__ import annotations

import pytest

from qconf.config import load
from qconf.history.sample import SAMPLE_CONFIG
from qconf.report.formulas import HOUR, Job, Reading, in_words, order_in_words
from qconf.strategies.auto.families import FAMILIES, General

QUEUES = {"small": 40.0, "large": 100.0}


def words(formula: str, **given: object) -> str:
    return in_words(formula, cores=(24, 4392), **given)  # type: ignore[arg-type]


def reading(formula: str) -> Reading:
    return Reading(formula, (HOUR, 12 * HOUR), (24, 4392), QUEUES)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("sjf", "Of jobs just submitted, short ones go before long ones. Waiting makes no difference"),
        ("ljf", "Of jobs just submitted, long ones go before short ones. Waiting makes no difference"),
        ("lxf", ("Of jobs that have waited 2 h, short ones go before long ones. A job of 12 h on 24 cores comes before "
         "one of 1 h that has waited 2 h when it has waited 24 h.")),
        ("wfp3", "wide ones go before narrow ones"),
        ("ncpus", "Of jobs just submitted, wide ones go before narrow ones."),
        ("eligible_time", "Jobs that have waited as long count the same"),
        ("walltime / ncpus if walltime > 7200 else walltime * ncpus",
         "wide ones go before narrow ones if they are short, narrow ones go before wide ones if they are long"),
        ("eligible_time + 36000 * (walltime < 7200)",
         ("A job of 12 h on 24 cores comes before one of 1 h that is new when it has waited 10 h, and before one that "
         "has waited 2 h when it has waited 12 h.")),
        ("eligible_time + 1e9 * (walltime < 7200)", "that is new never, not in 90 days"),
    ],
)  # fmt: skip
def test_what_goes_first_and_after_which_wait(formula: str, text: str) -> None:
    found = words(formula)
    assert text in found
    assert found.endswith(".")


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("eligible_time", "The priorities of queues make no difference."),
        ("queue_priority * (1 + eligible_time)",
         ("Priority 100 (large) counts 2.5 times as much as priority 40 (small): a job of 12 h on 24 cores of priority "
         "40 comes before a new one of 100 when it has waited 2 s.")),
        ("queue_priority * 1e10 + eligible_time",
         "A job of priority 100 goes before every job of priority 40, however long that has waited."),
        ("-queue_priority + eligible_time / 3600",
         "of priority 100 comes before a new one of 40 when it has waited 2.5 d"),
        ("queue_priority + walltime / 360", "counts 1.4 to 2.2 times"),
    ],
)  # fmt: skip
def test_what_the_priority_of_a_queue_counts(formula: str, text: str) -> None:
    assert text in words(formula, queues=QUEUES)


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("1e9 + eligible_time if eligible_time >= 24 * 3600 else ncpus", "From 24 h of waiting on, a job goes before"),
        ("queue_priority * ncpus + 1e9 * (eligible_time > 86400)",
         "Before that, priority 100 (large) counts 2.5 times as much as priority 40 (small)"),
        ("2e15 + eligible_time if eligible_time >= (86400 if queue_priority == 40 else 259200) else ncpus",
         ("From 24 h of waiting on, a job of small goes before all that do not starve. "
         "From 3 d of waiting on, a job of large goes before all that do not starve. "
         "Before that, the priorities of queues make no difference.")),
        ("1e9 * (eligible_time >= 3600) * (queue_priority == 40) - walltime",
         "From 1 h of waiting on, a job of small goes before all that do not starve."),
    ],
)  # fmt: skip
def test_from_which_wait_a_job_starves(formula: str, text: str) -> None:
    assert text in words(formula, queues=QUEUES)


def test_a_condition_that_puts_no_job_first_is_no_starvation() -> None:
    assert "From " not in words("-walltime + (eligible_time >= 3600)")


@pytest.mark.parametrize("formula", ["fcfs", "5", "0 * eligible_time", "walltime ** 100 * 1e300"])
def test_what_orders_nothing_has_no_words(formula: str) -> None:
    assert words(formula) == ""


@pytest.mark.parametrize(
    "formula", [General().formula(35232), *(each.order.formula(35232, 86400) for each in FAMILIES["formula"][:20:3])]
)
def test_a_job_overtakes_at_the_wait_that_is_said(formula: str) -> None:
    found = reading(formula)
    long, short = Job(12 * HOUR, 24, 40.0), Job(HOUR, 24, 40.0)
    for waited in (0.0, 7200.0):
        wait = found.overtakes(long, short, waited)
        assert wait is not None
        mark = found.value(short, [waited])[0]
        before, after = found.value(long, [wait - 2, wait])
        assert before <= mark < after
    assert "short ones go before long ones" in words(formula)
    with_priority = words(f"queue_priority * ({formula})", queues=QUEUES)
    assert "counts 2.5 times as much as" in with_priority


def test_typical_jobs_are_those_of_the_machine() -> None:
    base = load(SAMPLE_CONFIG)
    assert "on 4392 cores comes before one on 24 cores" in order_in_words(base.replace(order=General().formula(35232)))
    queues = tuple(queue.model_copy(update={"walltime": (0, 7200)}) for queue in base.queues)
    assert "A job of 2 h on 24 cores comes before one of 10 min" in order_in_words(
        base.replace(order=General().formula(35232), queues=queues[:1])
    )
    assert order_in_words(base) == ""


def test_no_job_is_compared_with_one_of_another_tier():
    base = load(SAMPLE_CONFIG).replace(mode="shared", pool=None, order="queue_priority * eligible_time")
    assert "Priority 100 (large) counts" in order_in_words(base)
    low, *others = base.queues
    queues = [low, *(queue.model_copy(update={"tier": 1}) for queue in others)]
    text = order_in_words(base.replace(queues=queues))
    assert text.startswith(f"Jobs of {', '.join(queue.name for queue in others)} go before all others. ")
    assert "riority" not in text
