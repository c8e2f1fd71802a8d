"""The answer, and what stands beside it: the whole history, needs, losers, targets and other months."""

import math
import re
from dataclasses import replace

import pytest

from qconf.evaluation.impact import GROWTH, Group, Impact
from qconf.evaluation.robustness import Scenario
from qconf.evaluation.targets import TargetResult
from qconf.export import Export, exporter
from qconf.fidelity.grade import Grade, with_grade
from qconf.recommend.doubts import Doubt
from qconf.recommend.fidelity import Fidelity
from qconf.recommend.recommendation import Rung
from qconf.report import terminal, verdict
from qconf.report.exported import Exported
from tests.qconf.report import small

HOUR = 3600
NEAR = Fidelity(100, HOUR, HOUR, HOUR, HOUR, 0.9, grade=Grade("B", 0.8, 3.0, 90, 12))
DOUBTS = (Doubt("queue small never drains", "a larger machine", "qconf inspect LOG"), Doubt("x", "y", "z"))


def changed(**changes):
    return replace(small.recommendation(), **changes)


def shown(exported=None, **changes):
    return {title: list(lines) for title, lines in verdict.sections(changed(**changes), exported)}


def test_the_advice_leads_with_what_is_expected():
    found = small.recommendation()
    first = verdict.advise(found)
    assert first.headline == f"CHANGE: {found.lead}."
    (fact,) = first.facts
    assert fact == (
        "On the last third of the history, which it was not trained on: mean wait 1.50 -> 1.00 h (-33.3 %), longest "
        "13.50 -> 9.00 h."
    )
    assert first.losers == ("no queue, size or user class",)
    kept = verdict.advise(small.recommendation("KEEP"))
    assert (kept.verdict, kept.facts, kept.losers) == ("KEEP", ("A plain reason.",), ())
    assert (kept.load, kept.undo) == ("nothing: keep what you have", "nothing is loaded")


def test_three_losers_are_named_those_with_the_most_hours_lost():
    waits = dict.fromkeys(GROWTH, 41.0 * HOUR)
    groups = [
        Group("queue", f"q{jobs}", jobs, 1.0, 0.2, waits, waits | {"max_wait": 118.0 * HOUR}) for jobs in (1, 2, 526, 9)
    ]
    first = verdict.advise(changed(impact=Impact(tuple(groups))))
    assert first.losers[0] == "queue q526, 526 jobs: longest wait 41.0 -> 118.0 h"
    assert [each.split(",")[0] for each in first.losers] == ["queue q526", "queue q9", "queue q2"]


def test_a_doubt_is_the_advice_with_its_cause_the_command_and_what_would_be_expected():
    first = verdict.advise(changed(verdict="CHECK", doubts=DOUBTS), Exported.of(changed(), exporter("pbs")()))
    assert first.headline == "CHECK: queue small never drains."
    assert first.facts[:3] == (
        "Likeliest cause: a larger machine. To settle it: qconf inspect LOG",
        "Also: x.",
        f"If it fits after all, {small.recommendation().lead}.",
    )
    assert first.load == "not before that is settled; then pbs/PLAN.md, step by step"


@pytest.mark.parametrize("current", [False, True])
def test_undo_is_the_snapshot_first_where_there_is_none(current):
    found, pbs = changed(), exporter("pbs")()
    exported = Exported.of(found, pbs)
    if current:
        exported = replace(exported, export=replace(exported.export, rollback="rollback.qmgr"))
    undo = verdict.advise(found, exported).undo
    needs = shown(exported).get("What it needs", [])
    if current:
        assert undo == "pbs/rollback.qmgr; pbs/PLAN.md has the steps back"
        assert needs == []
    else:
        assert undo == "qmgr -c 'print server' > now.txt, then tune with --current now.txt"
        assert needs == [f"{undo}: without it nothing can be undone"]
    slurm = Exported(exporter("slurm")(), Export({}))
    assert verdict.advise(found, slurm).undo == "slurm/PLAN.md has the steps back"


def test_how_sure_it_is_has_the_grades():
    found = changed(near=NEAR)
    grade = "Fidelity grade B: simulated from what ran at the begin of 12 windows, 80 %"
    assert grade in list(verdict.certainty(found))[-1]
    graded = replace(found, graded=with_grade(found.base, Grade("D", 0.4, 3.0, 90, 12)).fidelity)
    assert "The configuration carries fidelity grade D: 40 %" in list(verdict.certainty(graded))[-1]
    assert list(verdict.certainty(changed())) == [
        "Over 100 resamples of the test days the gain is +31.0 (+21.0 to +41.0) %: 100 % of the resamples gain."
    ]


@pytest.mark.parametrize(("factor", "said"), [(1.9, False), (2.1, True)])
def test_the_whole_history_is_shown_where_it_is_far_from_the_test_period(factor, said):
    found = small.recommendation()
    row = found.rows[0]
    overall = row.test.overall | {"mean_wait": factor * (row.test["mean_wait"] + 60) - 60}
    rows = [replace(row, in_sample=replace(row.test, overall=overall)), *found.rows[1:]]
    lines = shown(rows=rows).get("The whole history", [])
    assert [line.split(":")[0] for line in lines] == ["current", "hybrid"] * said  # the one never without the other
    assert all(re.search(r"longest [\d.]+ h; in the test period mean wait [\d.]+ h, longest", line) for line in lines)


def test_what_a_change_needs_is_said_with_what_it_would_be_without():
    found = small.recommendation()
    needing = [replace(row, needs=("a root cron job",)) if row.name == found.winner else row for row in found.rows]
    lines = shown(rows=needing)["What it needs"]
    assert lines == ["a root cron job", "without it: keep what you have"]
    other = replace(found.rows[1], title="the order alone")
    lines = shown(rows=needing, without_scripts=other)["What it needs"]
    assert lines[1].startswith(f"without it: {other.name}: the order alone, gain ")
    assert "What it needs" not in shown()


def test_the_best_queue_configuration_is_said_whatever_is_recommended():
    change, keep = small.recommendation(), small.recommendation("KEEP")
    gains = "Best queue configuration: hybrid gains +31.0 (+21.0 to +41.0) % over current, 100 % of the "
    gains += "resamples gain; mean wait 1.50 -> 1.00 h."
    against = "Best queue configuration against the recommendation, "
    assert verdict.best_queues(change) == [gains, "Best queue configuration: it is what is recommended."]
    kept = f"{against}to keep what you have: that gain is not sure, or not worth a change; see queues/PLAN.md."
    assert verdict.best_queues(keep) == [gains, kept]
    order = change.rows[1]
    rung = Rung("", change.row, small.bootstrap(-0.2, -0.3, -0.1))
    other = replace(change, winner=order.name, config=order.config, queues=rung)
    assert verdict.best_queues(other)[1].startswith(
        f"{against}lxf-easy: gain -20.0 (-30.0 to -10.0) %, mean wait 1.00 in place of 1.39 h; see queues/"
    )
    tried = keep.rows[:3]
    (none,) = verdict.best_queues(replace(keep, queues=None, rows=tried))
    assert none.startswith("Best queue configuration: none is better than what you have; of 1 that ")
    assert "pp gains the most, -1570.0 %, and is ineligible: plain" in none
    assert none.endswith("; none is written.")
    tried = [*tried[:2], replace(tried[2], gain=0.0, ineligible="")]
    (none,) = verdict.best_queues(replace(keep, queues=None, rows=tried))
    assert none.endswith("of 1 that were evaluated none gains anything; none is written.")
    (none,) = verdict.best_queues(replace(keep, queues=None, rows=keep.rows[:2]))
    assert none.endswith("none was evaluated, and none is written.")


def test_each_target_is_met_or_missed_now_by_the_change_and_by_rung():
    found = small.recommendation()
    targets = (TargetResult("queue small", 4 * HOUR, 5.0 * HOUR, 9), TargetResult("group a", HOUR, 0.0, 3))
    met = (replace(targets[0], p95_wait=3.0 * HOUR), targets[1])
    low, high = replace(found.row, unmet=("queue small",)), replace(found.row, unmet=())
    ladder = (Rung("order", low), Rung("policy", high))
    lines = shown(targets=targets, targets_met=met, ladder=ladder)["What the site wants"]
    small_ = "queue small, 95 % wait of at most 4.00 h: missed (5.00 h) now"
    group = "group a, 95 % wait of at most 1.00 h"
    assert lines == [
        "met: 1 of 2 now, 2 by the change",
        f"{small_}, met (3.00 h) by the change; met by policy",
        f"{group}: met (0.00 h) now, met (0.00 h) by the change; met by order, policy",
    ]
    low, high = replace(low, unmet=("queue small", "group a")), replace(high, ineligible="x")
    ladder = (Rung("order", low), Rung("policy", high))
    last = shown(targets=targets, targets_met=met, ladder=ladder)["What the site wants"][2]
    assert last.endswith("; met by no rung that is eligible")
    kept = shown(targets=targets, ladder=())["What the site wants"]
    assert kept == ["met: 1 of 2 now", small_, f"{group}: met (0.00 h) now"]
    assert "What the site wants" not in shown()


def test_a_target_without_jobs_is_neither_met_nor_missed():
    targets = (TargetResult("queue small", 4 * HOUR, 5.0 * HOUR, 9), TargetResult("group a", HOUR, math.nan, 0))
    lines = shown(targets=targets, targets_met=targets, ladder=())["What the site wants"]
    assert lines[0] == "met: 0 of 1 now, 0 by the change"
    assert lines[2] == "group a, 95 % wait of at most 1.00 h: no job in the test period"


def test_every_other_month_has_gain_and_longest_wait_and_the_worst_is_in_the_advice():
    scenarios = (
        Scenario("20 % longer run times", 2.0, 2.5, -0.25, 9.0 * HOUR, 8.0 * HOUR),
        Scenario("10 % more load", 2.0, 1.0, 0.5, 59.0 * HOUR, 128.0 * HOUR),
    )
    worst = "At 20 % longer run times: gain -25.0 %, longest wait 9.00 -> 8.00 h."
    assert shown(robustness=scenarios)["In another month"] == [
        "At 10 % more load: gain +50.0 %, longest wait 59.00 -> 128.00 h.",
        worst,
    ]
    assert verdict.advise(changed(robustness=scenarios)).facts[-1] == worst


def test_what_no_batch_system_can_do_is_starred(capsys):
    found = small.recommendation()
    starred = [replace(row, not_exportable="no such list") if row.name == "pp" else row for row in found.rows]
    terminal.print_recommendation(replace(found, rows=starred))
    assert "\nx pp* " in capsys.readouterr().out.replace("x  pp*", "x pp*")
