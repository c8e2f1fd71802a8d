"""What stands beside a verdict: doubts, the whole history, needs, losers, targets and other months."""

import math
from dataclasses import replace

import pytest

from qconf.evaluation.robustness import Scenario
from qconf.evaluation.targets import TargetResult
from qconf.fidelity.grade import Grade, with_grade
from qconf.recommend.fidelity import Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report import terminal, verdict
from tests.qconf.report import small

HOUR = 3600
NEAR = Fidelity(100, HOUR, HOUR, HOUR, HOUR, 0.9, grade=Grade("B", 0.8, 3.0, 90, 12))
FAR = Fidelity(100, 36 * HOUR, HOUR, 6 * HOUR, HOUR, 0.12, grade=Grade("E", 0.2, 3.0, 90, 12))


def shown(near=None, **changes):
    return {title: list(lines) for title, lines in verdict.sections(replace(small.recommendation(), **changes), near)}


def test_a_simulation_far_from_the_record_is_in_the_headline():
    found = small.recommendation()
    assert verdict.headline(found, NEAR) == [f"{found.verdict}: {found.reason}"]
    first, reason = verdict.headline(found, FAR)
    assert first.startswith(f"{found.verdict}, in doubt: The simulation is far from what the log recorded")
    assert "(fidelity grade E, mean wait 36.00 h recorded, 6.00 h simulated)" in first
    assert reason == found.reason


def test_how_sure_it_is_has_the_grades():
    found = small.recommendation()
    assert (
        "Fidelity grade B: simulated from what ran at the begin of 12 windows, 80 %"
        in list(verdict.sure(found, NEAR))[-1]
    )
    carries = with_grade(found.base, Grade("D", 0.4, 3.0, 90, 12)).fidelity
    graded = replace(found, graded=carries)
    assert "The configuration carries fidelity grade D: 40 %" in list(verdict.sure(graded, NEAR))[-1]
    assert verdict.headline(graded, NEAR)[0].startswith(f"{found.verdict}: ")  # that of the log at hand counts
    assert "in doubt" in verdict.headline(graded, None)[0]
    assert not any("grade" in text for text in verdict.sure(found, None))


def test_an_implausible_present_is_a_doubt():
    found = replace(small.recommendation(), implausible=("queue small never drains", "queue big waits"))
    assert verdict.headline(found, NEAR)[0].endswith("in doubt: queue small never drains")
    assert shown(NEAR, implausible=found.implausible)["Also in doubt"] == ["queue big waits"]
    assert shown(FAR, implausible=found.implausible)["Also in doubt"] == list(found.implausible)


@pytest.mark.parametrize(("factor", "said"), [(1.9, False), (2.1, True)])
def test_the_whole_history_is_shown_where_it_is_far_from_the_test_period(factor, said):
    found = small.recommendation()
    row = found.rows[0]
    overall = row.test.overall | {"mean_wait": factor * (row.test["mean_wait"] + 60) - 60}
    rows = [replace(row, in_sample=replace(row.test, overall=overall)), *found.rows[1:]]
    lines = shown(rows=rows).get("The whole history", [])
    assert any(line.startswith("current: mean wait") for line in lines) == said


def test_what_a_change_needs_is_said_with_what_it_would_be_without():
    found = small.recommendation()
    needing = [replace(row, needs=("a root cron job",)) if row.name == found.winner else row for row in found.rows]
    lines = shown(rows=needing)["What it needs to run"]
    assert lines == ["a root cron job", "without it: keep what you have"]
    other = replace(found.rows[1], title="the order alone")
    lines = shown(rows=needing, without_scripts=other)["What it needs to run"]
    assert lines[1].startswith(f"without it: {other.name}: the order alone, gain ")
    assert "What it needs to run" not in shown()


def test_the_best_queue_configuration_is_two_lines_whatever_is_recommended():
    change, keep = small.recommendation(), small.recommendation("KEEP")
    gains = "Best queue configuration: hybrid gains +31.0 (+21.0 to +41.0) % over current, beyond chance; mean wait "
    gains += "1.50 -> 1.00 h."
    against = "Best queue configuration against the recommendation, "
    assert verdict.best_queues(change) == [gains, "Best queue configuration: it is what is recommended."]
    kept = f"{against}to keep what you have: that gain is not sure, or not worth a change. "
    assert verdict.best_queues(keep) == [gains, f"{kept}It is in queues/ (see queues/PLAN.md)."]
    order = change.rows[1]
    other = replace(
        change, winner=order.name, config=order.config, queues=Rung("", change.row, small.bootstrap(-0.2, -0.3, -0.1))
    )
    assert verdict.best_queues(other)[1].startswith(
        f"{against}lxf-easy: gain -20.0 (-30.0 to -10.0) %, mean wait 1.00 in place of 1.39 h. It is in"
    )
    none = verdict.best_queues(replace(keep, queues=None, rows=keep.rows[:3]))
    assert none[0].startswith("Best queue configuration: none is better than what you have; of 1 that ")
    assert "pp gains the most, -1570.0 %, and is ineligible: plain" in none[0]
    assert none[1] == f"{against}to keep what you have: none is written."
    assert verdict.best_queues(replace(keep, queues=None, rows=keep.rows[:2]))[0].endswith("none was evaluated.")


def test_each_target_is_met_or_missed_now_by_the_change_and_by_rung():
    found = small.recommendation()
    targets = (TargetResult("queue small", 4 * HOUR, 5.0 * HOUR, 9), TargetResult("group a", HOUR, 0.0, 3))
    met = (replace(targets[0], p95_wait=3.0 * HOUR), targets[1])
    low, high = replace(found.row, unmet=("queue small",)), replace(found.row, unmet=())
    ladder = (Rung("order", low), Rung("policy", high))
    lines = shown(targets=targets, targets_met=met, ladder=ladder)["What the site wants"]
    small_, group = (
        "queue small, 95 % wait of at most 4.00 h: missed (5.00 h) now",
        "group a, 95 % wait of at most 1.00 h",
    )
    assert lines == [
        "met: 1 of 2 now, 2 by the change",
        f"{small_}, met (3.00 h) by the change; met by policy",
        f"{group}: met (0.00 h) now, met (0.00 h) by the change; met by order, policy",
    ]
    ladder = (
        Rung("order", replace(low, unmet=("queue small", "group a"))),
        Rung("policy", replace(high, ineligible="x")),
    )
    assert shown(targets=targets, targets_met=met, ladder=ladder)["What the site wants"][2].endswith(
        "; met by no rung that is eligible"
    )
    kept = shown(targets=targets, ladder=())["What the site wants"]
    assert kept == ["met: 1 of 2 now", small_, f"{group}: met (0.00 h) now"]
    assert "What the site wants" not in shown()


def test_a_target_without_jobs_is_neither_met_nor_missed():
    targets = (TargetResult("queue small", 4 * HOUR, 5.0 * HOUR, 9), TargetResult("group a", HOUR, math.nan, 0))
    lines = shown(targets=targets, targets_met=targets, ladder=())["What the site wants"]
    assert lines[0] == "met: 0 of 1 now, 0 by the change"
    assert lines[2] == "group a, 95 % wait of at most 1.00 h: no job in the test period"


def test_the_gain_in_other_months_is_one_line():
    scenarios = (
        Scenario("10 % more load", 2.0, 1.0, 0.5, 9.0, 8.0),
        Scenario("20 % longer run times", 2.0, 2.5, -0.25, 9.0, 8.0),
    )
    lines = shown(robustness=scenarios)["In another month"]
    assert lines == ["gain +50.0 % at 10 % more load, -25.0 % at 20 % longer run times"]


def test_what_no_batch_system_can_do_is_starred(capsys):
    found = small.recommendation()
    starred = [replace(row, not_exportable="no such list") if row.name == "pp" else row for row in found.rows]
    terminal.print_recommendation(replace(found, rows=starred))
    assert "\nx pp* " in capsys.readouterr().out.replace("x  pp*", "x pp*")
