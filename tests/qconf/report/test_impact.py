"""Who wins and who loses, in words."""

import math
from dataclasses import replace

import pytest

from parsim.metrics import METRICS, Summary
from qconf.evaluation.impact import Group, Impact
from qconf.report import impact as words
from qconf.report.layout import filled

HOUR = 3600.0
BEFORE = {"mean_wait": 3.2 * HOUR, "median_wait": HOUR, "p95_wait": 9 * HOUR, "max_wait": 20 * HOUR}
BEFORE |= {"mean_bounded_slowdown": 12.0}


def group(kind="queue", name="medium", jobs=63, share=0.123, before=BEFORE, **changes):
    return Group(kind, name, jobs, 1e6, share, before, before | changes)


def test_a_line_has_every_figure_before_and_after():
    after = {"mean_wait": 3.53 * HOUR, "p95_wait": 12.3 * HOUR, "mean_bounded_slowdown": 13.5}
    assert words.line(group(**after)) == (
        "queue medium has a 95 % wait 37 % longer: mean 3.20 -> 3.53 h, median 1.00 -> 1.00 h, 95 % 9.00 -> 12.3 h, "
        "longest 20.0 -> 20.0 h, slowdown 12.0 -> 13.5 (63 jobs, 12 % of the core-hours)"
    )


@pytest.mark.parametrize(
    ("kind", "name", "changes", "lead"),
    [
        ("queue", "a", {"mean_wait": 4 * HOUR}, "queue a waits 25 % longer:"),
        ("queue", "a", {"mean_wait": 9.6 * HOUR}, "queue a waits 3.0 times as long:"),
        ("queue", "a", {"median_wait": 2.5 * HOUR}, "queue a has a median wait 2.5 times as long:"),
        ("queue", "a", {"mean_wait": 0.0, "p95_wait": 12 * HOUR}, "queue a has a 95 % wait 33 % longer:"),
        ("queue", "a", {"max_wait": 35 * HOUR}, "queue a has a longest wait 75 % longer:"),
        ("queue", "a", {"mean_bounded_slowdown": 15.0}, "queue a has a slowdown 25 % larger:"),
        ("queue", "a", {"mean_bounded_slowdown": 36.0}, "queue a has a slowdown 3.0 times as large:"),
        ("size", "jobs of 1 core", {"max_wait": 90 * HOUR}, "jobs of 1 core have a longest wait 4.5 times as long:"),
        ("user", "2 users with X", {"mean_wait": 4 * HOUR}, "2 users with X wait 25 % longer:"),
        ("user", "1 user with X", {"mean_wait": 4 * HOUR}, "1 user with X waits 25 % longer:"),
        ("queue", "a", {}, "queue a is not worse:"),
        ("size", "jobs of 1 core", {}, "jobs of 1 core are not worse:"),
    ],
)
def test_it_begins_with_what_grows(kind, name, changes, lead):
    assert words.line(group(kind, name, **changes)).startswith(lead)


def test_where_there_was_no_wait_there_is_no_ratio():
    before = dict.fromkeys(BEFORE, 0.0) | {"mean_bounded_slowdown": 1.0}
    text = words.line(group(jobs=1, share=0.001, before=before, mean_wait=HOUR))
    assert text.startswith("queue medium waits longer: mean 0.00 -> 1.00 h")
    assert text.endswith("(1 job, under 1 % of the core-hours)")


def test_losers_are_those_that_are_worse_and_fit_a_terminal():
    found = Impact((group(name="same"), group(mean_wait=4 * HOUR), group("size", "jobs of 1 core", mean_wait=9 * HOUR)))
    lines = words.losers(found)
    assert [text.split(" wait")[0] for text in lines] == ["jobs of 1 core", "queue medium"]
    for text in lines:
        shown = filled(text, 80, "    ")
        assert max(map(len, shown.splitlines())) <= 80
        assert " ".join(shown.split()) == text


@pytest.mark.parametrize(("after", "how"), [(2.0, "more alike"), (20.0, "less alike"), (7.5, "as alike as before")])
def test_fairness_is_one_figure_with_a_sentence(after, how):
    values = dict.fromkeys(METRICS, 0.5) | {"spread_users": 7.0}
    before, changed = Summary(values, {}), Summary(values | {"jain_users": 0.61, "spread_users": after}, {})
    assert words.fairness(before, changed) == (
        f"users are served {how}: the slowdown that one in ten exceeds is {after:.1f} times that which one in ten "
        "stays below, 7.0 times before"
    )
    assert words.fairness(replace(before, overall=values | {"spread_users": math.nan}), changed) == ""


def test_in_short_a_loser_is_named_with_the_wait_that_grows_most():
    text = words.short(group(jobs=526, mean_wait=3.53 * HOUR, max_wait=118 * HOUR))
    assert text == "queue medium, 526 jobs: longest wait 20.0 -> 118.0 h"
    assert words.short(group(jobs=1, mean_bounded_slowdown=36.0)) == "queue medium, 1 job: slowdown 12.0 -> 36.0"
