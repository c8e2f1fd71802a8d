"""The verdict: CHANGE where something is clearly better, KEEP where the base is best or too little is known."""

import re
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from qconf.config import Target
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.evaluation.guard_rails import GuardValues
from qconf.evaluation.holdout import Holdout, splits_of
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.recommend import GuardRails, recommend
from qconf.recommend.decide import decide
from qconf.recommend.evaluator import Evaluator
from qconf.recommend.ladder import RUNGS, best_queues, choose, ladder, rung_of
from qconf.recommend.recommendation import BOUNDARIES, in_scope
from qconf.strategies import Proposal, propose, settings, variants
from qconf.strategies.base import Recorded
from tests.qconf.fidelity import logs
from tests.qconf.report import small
from tests.qconf.small import DAY, LONG, SHORT, period, site, three, two

pytestmark = pytest.mark.usefixtures("few_resamples")
FEW = {"samples": 20}


def history(base, **about):
    """The jobs of a small period as a cleaned history in which no start is known."""
    w = period(base, **about).workload
    return logs.history(w, np.full(len(w), -1), base)


def recommended_of(past, base=None, strategies=("pp",), **given):
    """A recommendation made anew."""
    return recommend(past, base or STARVED, strategies=strategies, settings=FEW, **given)


def row_of(found, name="pp"):
    (row,) = (row for row in found.rows if row.name == name)
    return row


def proposing(monkeypatch, function):
    """Let strategies of one proposal make it by `function(name, training, settings)`."""
    several = {"auto", "auto-guarded"}

    def found(name, training, settings, **_):
        return variants(name, training, settings) if name in several else {"": function(name, training, settings)}

    monkeypatch.setattr("qconf.recommend.training.variants", found)


@cache
def recommended(base, strategies=("pp", "dp-nlp"), guards=None, least_gain=0.02, **about):
    return recommended_of(history(base, **about), base, strategies, guards=guards, least_gain=least_gain)


#: Nine tenths of the work on a quarter of the cores.
STARVED = site({**SHORT, "partition": 48}, {**LONG, "partition": 16})


def test_change_where_something_is_clearly_better():
    found = recommended(STARVED, jobs=600)
    assert found.proposes
    assert found.verdict == "CHECK"  # the queue starves: no site would bear it
    assert found.doubts[0].what == "queue long waits longer than the log: up to 10.2 days, in a log of 10.0 days"
    row = row_of(found, found.winner)
    assert not row.ineligible
    assert row.gain > 0
    assert row.bootstrap.low > 0
    assert found.config == row.config
    eligible = {r.name: r.bootstrap for r in found.rows if r.bootstrap is not None and not r.ineligible}
    best = max(eligible.values(), key=lambda each: each.expected)
    equals = [name for name, each in eligible.items() if each.expected > best.expected - 0.01]
    assert found.winner == next(name for name in equals if eligible[name].after.longest <= best.after.longest)
    assert found.lead.startswith(f"{found.winner} is expected to lower mean wait by ")


def test_with_weights_the_verdict_gives_the_weighted_means():
    wanted = STARVED.replace(targets=(Target(queue="long", weight=5.0), Target(group="g", users=("u1",), weight=2.0)))
    found = recommended(wanted, jobs=600)
    current, row = found.rows[0], row_of(found, found.winner)
    before, after = (each.test["weighted_mean_wait"] for each in (current, row))
    assert row.gain == pytest.approx(1 - after / before)
    assert row.config.targets == wanted.targets
    assert found.lead.startswith(f"{found.winner} is expected to lower mean wait (weighted) by ")
    assert f"mean wait {before / 3600:.2f} -> {after / 3600:.2f} h ({-100 * row.gain:.1f} %)" in found.reason
    assert before != current.test["mean_wait"]


def test_keep_where_the_base_is_the_best():
    base = two(mode="shared", order="lxf")  # no partition can be better than one list for all jobs
    found = recommended(base, jobs=600)
    assert (found.verdict, found.winner) == ("KEEP", "current")
    assert found.config == base
    assert found.lead == "no strategy does better than what you have"


def test_three_days_of_warm_up_before_a_test_period_fill_the_machine(monkeypatch):
    given = []
    real = Holdout.of

    def spy(here, start, end, warmup=0):
        given.append((end - start, warmup))
        return real(here, start, end, warmup)

    monkeypatch.setattr(Holdout, "of", spy)
    recommended.__wrapped__(STARVED, ("pp",), jobs=300)
    assert [warmup for _, warmup in given] == [3 * DAY, 3 * DAY, 0]  # two test periods, and the whole history


def test_the_objective_is_an_option():
    past = history(STARVED, jobs=300)
    other = {**FEW, "objective": "bounded-slowdown"}
    assert recommend(past, STARVED, strategies=(), settings=other).objective == "bounded-slowdown"
    assert recommend(past, STARVED, strategies=(), settings=FEW).objective == "mean-wait"


def test_a_limit_above_a_partition_is_lowered_and_makes_nothing_ineligible():
    base = site({**SHORT, "cores": (1, 64), "partition": 0}, {**LONG, "partition": 0}, mode="shared", order="ljf")
    jobs = history(site({**SHORT, "partition": 0}, {**LONG, "partition": 0}, mode="shared"), jobs=600)
    row = row_of(recommended_of(jobs, base))
    assert "never start" not in row.ineligible
    assert row.config.queue("short").cores[1] == row.config.queue("short").partition < 64
    assert any(step["step"] == "lowered limits" for step in row.decisions)


def test_a_configuration_that_is_not_exportable_is_ineligible_unless_the_base_is_not_exportable_either():
    def result(check):
        found = recommended_of(history(STARVED, jobs=600), check=check)
        return found.winner, {row.name for row in found.rows if row.ineligible == "not exportable: no lists"}

    winner, ineligible = result(lambda config: ["no lists"] if config.mode == "shared" else [])
    assert ineligible == {"fcfs-easy", "lxf-easy", "shared"}
    assert winner not in ineligible
    winner, others = result(lambda config: ["no lists" if config.mode == "shared" else "no names"])
    assert not others
    assert winner in ineligible


@pytest.mark.parametrize("jobs", [25, 40])
def test_keep_where_the_history_is_too_short(jobs):
    found = recommended(STARVED, jobs=jobs)
    assert found.verdict == "KEEP"
    assert "too short" in found.lead
    assert "At least 20 jobs are needed in each" in found.reason
    assert all(row.test is None for row in found.rows)


def test_keep_where_every_better_configuration_breaks_a_guard_rail():
    found = recommended(STARVED, jobs=600, guards=GuardRails(utilization=-1.0))
    assert not found.proposes
    assert "but utilization falls" in found.lead
    assert all(row.ineligible for row in found.rows if row.name != "current")


def test_keep_where_the_gain_is_not_worth_a_change():
    found = recommended(STARVED, jobs=600, least_gain=1.0)
    assert not found.proposes
    assert found.lead.endswith(", but a gain below 100 % is not worth a change")


def test_keep_where_every_better_configuration_violates_fixed():
    base = STARVED.replace(fixed=("mode", "queues.*.partition"))
    found = recommended(base, jobs=600)
    assert not found.proposes
    ineligible = {row.name: row.ineligible for row in found.rows}
    assert "changes mode, queues.*.partition, which are fixed" in ineligible["fcfs-easy"]
    assert ineligible["pp"] == ineligible["dp-nlp"] == "every partition is marked as fixed: there is none to size"


def test_a_divided_machine_is_eligible_where_nodes_are_held_for_top_jobs():
    for changes in ({}, {"held_jobs": "reserve"}, {"reserve": "nodes"}, {"reserve": "queues"}):
        found = recommended(two(mode="shared").replace(**changes), ("pp",), jobs=200)
        row = row_of(found)
        assert row.test is not None
        assert "top job" not in row.ineligible
        assert (row.config.held_jobs, row.config.reserve) == (found.base.held_jobs, found.base.reserve)


def test_keep_where_everything_is_fixed_says_so():
    fixed = ("mode", "order", "backfill", "reserve_after", "pool", "queues.*")
    found = recommended(STARVED.replace(fixed=fixed), ("auto", "pp"), jobs=600)
    assert not found.proposes
    assert "everything that could be changed is fixed" in found.lead
    assert row_of(found, "auto").config == found.base
    assert found.ladder == ()
    assert "is fixed" not in recommended(two(mode="shared"), jobs=600).lead


def test_a_strategy_that_does_not_apply_is_ineligible_with_the_reason():
    base = site({**SHORT, "cores": (1, 40)}, {**LONG, "cores": (33, 40)}, mode="shared")
    row = row_of(recommended(base, jobs=300), "dp-nlp")
    assert row.config is None
    assert "no partitions can hold them" in row.ineligible


class CheckpointInMemory(dict):
    def put(self, key, finished):
        self[key] = finished

    def kept(self, key, work):
        if key not in self:
            self[key] = work()
        return self[key]


def test_a_strategy_with_a_gain_is_evaluated_on_two_splits():
    kept = CheckpointInMemory()
    found = recommended_of(history(STARVED, jobs=600), strategies=("pp", "static"), checkpoint=kept)
    for row in found.rows:
        promising = row.gain is not None and row.gain > 0 and row.name != "current"
        assert (row.bootstrap is not None) == promising == (f"{row.name}-early" in kept)
        assert {f"{row.name}-last", f"{row.name}-whole"} <= set(kept)
    assert any(row.bootstrap for row in found.rows)


def test_each_split_is_trained_on_the_jobs_before_its_test_period(monkeypatch):
    calls = []

    def spy(name, training, options):
        calls.append((name, int(training.workload.submit[0]), int(training.workload.submit[-1])))
        return propose(name, training, options)

    proposing(monkeypatch, spy)
    found = recommended_of(history(STARVED, jobs=600))
    trained = [(low, high) for name, low, high in calls if name == "pp"]
    spans = {name: (low, high) for name, (_, low, high) in found.spans.items()}
    assert trained == [spans["history"], spans["training"], spans["earlier training"]]  # each once
    assert spans["earlier training"][1] < spans["earlier test"][0] <= spans["earlier test"][1] <= spans["training"][1]
    assert spans["training"][1] < spans["test"][0] < spans["test"][1]
    assert found.spans["training"][0] + found.spans["test"][0] == found.spans["history"][0] == 600


@pytest.mark.parametrize(("days", "splits"), [(59, 2), (61, 3)])
def test_long_histories_have_three_splits(days, splits):
    kept = CheckpointInMemory()
    found = recommended_of(history(STARVED, jobs=20 * days, span=days * DAY), checkpoint=kept)
    assert ("pp-first" in kept) == (splits == 3)
    assert {"pp-early", "pp-last", "pp-whole"} <= set(kept)
    training = [name for name in found.spans if name.endswith("training")]
    assert training == ["training", "earlier training", "earliest training"][:splits]
    for part in training:
        _, low, high = found.spans[part]
        _, after, last = found.spans[part.replace("training", "test")]
        assert low < high < after < last
    if splits == 3:
        assert found.spans["earliest test"][2] < found.spans["earlier test"][1]
        assert found.spans["earliest training"][2] < days * DAY / 6


def test_earlier_periods_are_used_by_auto_and_reported():
    base = two(mode="shared")
    whole = history(base, jobs=450, span=90 * DAY)
    last = whole.between(59 * DAY, None)
    earlier = whole.months_before(last.span[0])
    found = recommended_of(last, base, ("auto",), earlier=earlier)
    assert {"months", "prior_score"} <= set(row_of(found, "auto").decisions[0])
    assert found.spans["earlier periods"] == (sum(map(len, earlier)), earlier[0].span[0], earlier[1].span[1])
    assert earlier[1].span[1] < 59 * DAY <= found.spans["history"][1]
    alone = recommended_of(last, base, ("auto",))
    assert "earlier periods" not in alone.spans
    assert "months" not in row_of(alone, "auto").decisions[0]


def test_where_no_job_waits_one_line_says_so_and_what_earlier_months_would_have_gained():
    base = two(mode="shared")
    idle = history(base, jobs=60, span=30 * DAY, only=[0])
    loud = history(base, jobs=450, span=3 * DAY)
    later = replace(idle, epoch=loud.epoch + 40 * DAY)
    alone = recommend(later, base, strategies=("auto",))
    assert alone.verdict == "KEEP"
    assert re.fullmatch(r"there is nothing to gain this month: jobs wait \d+ s on average", alone.lead)
    month = loud.date(loud.span[0])[:7]
    found = recommend(later, base, earlier=[loud, idle], strategies=("auto",))
    assert found.lead.endswith(f"; the general order of auto costs nothing and would have helped in {month}")
    assert "nothing to gain" not in recommend(loud, base, strategies=("lxf-easy",)).lead


def test_a_gain_of_seconds_is_nothing_to_gain_however_sure():
    base = two(mode="shared")
    every_day = [(DAY // 4 + 300 * i, 1, 60) for i in range(200)] + [(0, 64, 1200), (1, 64, 1200), (2, 64, 60)]
    rows = [(day * DAY + submit, cores, runtime) for day in range(30) for submit, cores, runtime in sorted(every_day)]
    submit, cores, runtime = np.array(rows).T
    given = history(base, jobs=len(rows))
    jobs = given.jobs.assign(submit=submit, cores=cores, runtime=runtime, walltime=runtime, queue=base.names[0])
    found = recommend(replace(given, jobs=jobs), base, strategies=("lxf-easy",))
    sure = next(row for row in found.rows if row.name == "lxf-easy").bootstrap
    assert sure.certain
    assert sure.expected > 0.1
    assert found.verdict == "KEEP"
    assert found.lead.startswith("there is nothing to gain this month: jobs wait ")


def test_guard_rails_know_the_waits_of_all_known_months():
    base = two(mode="shared")
    loud, quiet = history(base, jobs=900, span=20 * DAY), history(base, jobs=100, span=20 * DAY)
    periods = [Period.of(each, base) for each in (loud, quiet)]
    waits = [each.simulate(base).wait for each in periods]
    training = TrainingSet(periods[1], (periods[0],))
    splits = splits_of(training, *quiet.span)
    evaluator = Evaluator(training, splits, settings({}), GuardRails(), None, None, None)
    seen = evaluator.seen
    assert seen.longest == max(wait.max() for wait in waits) == evaluator.bootstrap.seen
    late = [[np.percentile(w[p.workload.queue == q], 95) for q in (0, 1)] for w, p in zip(waits, periods, strict=True)]
    assert list(seen.p95.values()) == pytest.approx(np.max(late, axis=0).tolist(), rel=0.05)


def test_epochs_of_so_many_days_begin_before_the_month_where_jobs_are_known():
    base = two()
    whole = history(base, jobs=600, span=60 * DAY)
    last = whole.between(30 * DAY, None)
    about = {"strategies": ("dp-nlp",), "settings": {**FEW, "epoch_days": 15}}

    def notes(**more):
        return row_of(recommend(last, base, **about, **more), "dp-nlp").decisions[0].get("notes", [])

    few = "only 2 of 3 epochs have jobs"
    assert not any(few in each for each in notes(earlier=[whole.between(None, 30 * DAY)]))
    assert any(few in each for each in notes())


def test_a_strategy_that_fails_on_the_earlier_split_is_shown_and_ineligible(monkeypatch):
    def fails(name, training, options):
        if name == "pp" and len(training) < 300:
            raise NotApplicableError("no jobs of this kind")
        return propose(name, training, options)

    proposing(monkeypatch, fails)
    found = recommended_of(history(STARVED, jobs=600))
    row = row_of(found)
    assert row.test is not None
    assert row.bootstrap is None
    assert "trained on an earlier part cannot be evaluated on the next: no jobs of this kind" in row.ineligible
    assert found.winner != "pp"


def test_one_split_is_enough_where_the_first_third_has_few_jobs():
    past, kept = history(STARVED, jobs=600), CheckpointInMemory()
    late = (past.jobs["submit"] > past.jobs["submit"].iloc[-1] / 3) | (past.jobs.index < 5)
    found = recommended_of(replace(past, jobs=past.jobs[late], read=int(late.sum())), checkpoint=kept)
    assert any(row.bootstrap for row in found.rows)
    assert not [key for key in kept if key.endswith("early")]


NOTHING = GuardValues({}, 0.0, 0.0)


def resampled(expected=0.1, low=0.05, high=0.15, sure=1.0, score=-0.1, longest=0.0):
    return BootstrapResult(expected, low, high, sure, score, 0.05, NOTHING, replace(NOTHING, longest=longest))


def candidate(name, gain=0.12, rung=2, **about):
    """A row that gains 12 % on the test period."""
    return replace(small.recommendation().rows[3], name=name, gain=gain, rung=rung, bootstrap=resampled(**about))


def chosen(*rows, least_gain=0.02, better=(), likely=(), scope="any"):
    """The verdict on these rows; over each other only those named in `better` gain beyond chance."""

    def compare(row, other):
        if other is None:
            return row.bootstrap
        return resampled() if row.name in better else resampled(sure=0.7 if row.name not in likely else 0.9)

    base = small.recommendation()
    best = choose(in_scope(rows, scope), compare, least_gain)
    here = replace(
        base,
        rows=[base.rows[0], *rows],
        verdict="KEEP",
        winner="current",
        ladder=ladder(rows, best, compare),
        queues=best_queues(rows, best, compare, least_gain),
        settings={"answer": scope},
    )
    return decide(here, best, least_gain)


def test_the_best_queue_configuration_is_that_of_the_same_rules():
    order, small_, large = (candidate(*each) for each in (("auto", 0.2, 2), ("dqr", 0.1, 5), ("hybrid", 0.1, 6)))
    order = replace(order, config=small.recommendation().rows[1].config)
    found = chosen(order, small_, large)
    assert (found.winner, found.queues.row.name, found.recommends_queues) == ("auto", "dqr", False)
    assert found.queues.step == resampled(sure=0.7)  # over what is recommended
    assert chosen(order, small_, large, better=["hybrid"]).winner == "hybrid"
    found = chosen(order, small_, large, scope="queues")
    assert (found.winner, found.queues.row.name, found.queues.step) == ("dqr", "dqr", None)
    assert "no queue configuration" not in found.reason  # it is not expected to gain more
    keener = replace(order, bootstrap=resampled(expected=0.3))
    assert "auto would gain 30 %, but it is no queue configuration, as --answer queues wants." in (
        chosen(keener, small_, scope="queues").reason
    )
    assert RUNGS[BOUNDARIES] == "boundaries"


def test_a_queue_configuration_that_may_be_chance_is_shown_and_not_recommended():
    doubtful = candidate("hybrid", 0.1, 6, sure=0.7)
    for scope, winner in (("any", "auto"), ("queues", "current")):
        found = chosen(candidate("auto"), doubtful, scope=scope)
        assert (found.winner, found.queues.row.name) == (winner, "hybrid")
    found = chosen(candidate("auto"), replace(doubtful, ineligible="it breaks a guard rail"), scope="queues")
    assert (found.winner, found.queues) == ("current", None)
    assert "but it is no queue configuration, as --answer queues wants" in found.lead


def test_the_verdict_follows_the_bootstrap():
    found = chosen(candidate("hybrid"))
    assert (found.verdict, found.winner) == ("CHANGE", "hybrid")
    assert found.lead == "hybrid is expected to lower mean wait by 10 % (90 % interval 5.0 to 15 %)"
    assert found.reason.startswith("That is the median over 100 resamples of the test days. On the last third")
    for changes, why in (
        ({"sure": 0.7}, "that may be chance: of the resamples 30 % lose"),
        ({"score": 0.01}, "slowdowns and longest waits may outweigh that"),
        ({"expected": 0.01}, "a gain below 2.0 % is not worth a change"),
        ({"gain": -0.05}, "on the last third of the history it loses 5.0 %"),
    ):
        found = chosen(candidate("hybrid", **changes))
        assert (found.verdict, found.winner) == ("KEEP", "current")
        assert why in found.lead
    assert chosen(candidate("hybrid", gain=-0.001)).verdict == "CHANGE"  # as where no job waits


def test_keep_names_what_would_gain_most_and_what_it_costs():
    rails = "longest wait grows from 41.0 to 118.0 h; 95 % wait of queue long grows from 10.0 to 16.0 h"
    ineligible = replace(candidate("hybrid", expected=0.53, low=0.4, high=0.6), ineligible=rails)
    lead = chosen(ineligible, candidate("dqr", 0.1, expected=0.04, low=-0.02, sure=0.7)).lead
    assert lead == (
        "hybrid would lower mean wait by 53 % (90 % interval 40 to 60 %), but longest wait would be 2.9 times as long "
        "(41.0 -> 118.0 h); 95 % wait of queue long grows from 10.0 to 16.0 h; of what may be loaded dqr gains most, "
        "4.0 % (90 % interval -2.0 to 15 %): that may be chance: of the resamples 30 % lose"
    )
    outweighed = candidate("hybrid", expected=0.3, score=0.01, longest=7200.0)
    before = replace(outweighed.bootstrap.before, longest=3600.0)
    outweighed = replace(outweighed, bootstrap=replace(outweighed.bootstrap, before=before))
    assert "the longest wait would be 2.0 times as long (1.0 -> 2.0 h)" in chosen(outweighed).lead
    unloadable = replace(ineligible, name="mqb", gain=0.9, not_exportable="no list", ineligible="no list")
    assert chosen(unloadable, ineligible).lead.startswith("hybrid would lower")


def test_on_one_rung_the_best_is_the_certain_one_with_the_largest_expected_gain():
    lucky = candidate("lucky", 0.5, expected=0.1)
    found = chosen(lucky, candidate("steady", 0.2, expected=0.3), candidate("unsure", 0.6, expected=0.4, sure=0.7))
    assert found.winner == "steady"
    assert "unsure would gain 40 %, but that may be chance." in found.reason
    assert "lucky" not in found.reason  # what it gained on the test period alone is not expected of it


def test_of_equals_on_one_rung_a_baseline_is_recommended():
    def winner(plain, tuned):
        rows = (candidate("lxf-easy", expected=plain[0], sure=plain[1]), candidate("t", expected=tuned))
        return chosen(*rows).winner

    assert winner(plain=(0.295, 1.0), tuned=0.3) == "lxf-easy"
    assert winner(plain=(0.27, 1.0), tuned=0.3) == "t"
    assert winner(plain=(0.299, 0.7), tuned=0.3) == "t"


def test_of_equals_on_one_rung_the_one_with_the_shortest_longest_waits_is_recommended():
    def winner(**longest):
        rows = [candidate(name, expected=0.3 - 0.01 * i, longest=longest[name]) for i, name in enumerate(longest)]
        return chosen(*rows).winner

    assert winner(steep=30.0, aged=20.0) == "aged"
    assert winner(aged=20.0, lxf=30.0) == "aged"
    assert winner(steep=30.0, aged=25.0, mild=20.0, late=10.0) == "mild"  # what gains .03 less is no equal


def test_the_lowest_rung_is_recommended_from_which_none_gains_beyond_chance():
    low, middle, high = candidate("low"), candidate("middle", rung=4), candidate("high", rung=6)
    assert chosen(low, middle, high).winner == "low"
    assert chosen(low, middle, high, better=["high"]).winner == "high"  # beyond chance over both below
    assert chosen(low, middle, high, better=["middle"]).winner == "middle"
    likely = chosen(low, middle, high, likely=["middle", "high"])
    assert likely.winner == "low"  # a larger change must be clearly better
    assert chosen(candidate("likely", sure=0.9)).winner == "likely"
    assert chosen(replace(low, ineligible="x"), middle, high).winner == "middle"
    unsure = candidate("unsure", sure=0.7)
    assert chosen(unsure, high).winner == "high"  # what may be chance itself is no place to stop
    found = chosen(low, middle, high)
    assert "smallest change that brings this (order): no larger one gains beyond chance over it" in found.reason


def test_the_ladder_has_a_line_for_every_rung_and_every_part_of_the_policy():
    base = logs.limited(three(mode="shared"), max_run=9, starvation=DAY)
    found = recommended(base, ("auto", "pp"), jobs=450)
    names = [(line.name, line.row.title) for line in found.ladder]
    assert ("policy", "without running limits") in names
    assert ("policy", "without starvation periods") in names
    assert {"order", "reservation delay", "partitions and pool"} <= {name for name, _ in names}
    assert [RUNGS.index(name) for name, _ in names] == sorted(RUNGS.index(name) for name, _ in names)
    (dropped,) = [line.row for line in found.ladder if line.row.title == "without running limits"]
    assert "gives up what the site's policy has of limits; what has" in decide(found, dropped, 0.02).reason
    kept = [line.row for line in found.ladder if line.name == "order"]
    assert "gives up" not in decide(found, kept[0], 0.02).reason
    assert found.ladder[0].step is None
    assert all(line.step is not None for line in found.ladder if line.name != found.ladder[0].name)
    assert {row.name for row in found.rows} == {"current", "fcfs-easy", "lxf-easy", "shared", "pp", "auto"}


@pytest.mark.parametrize(
    ("changes", "rung"),
    [
        ({}, "nothing"),
        ({"order": "ncpus * queue_priority"}, "order"),
        ({"order": "ncpus"}, "policy"),  # the queues' priorities differ
        ({"order": "ncpus if queue_priority == 3 else 1"}, "policy"),
        ({"order": "queue_priority", "reserve_after": 60}, "reservation delay"),
        ({"mode": "partitioned"}, "partitions and pool"),
    ],
)
def test_the_rung_of_a_change_is_that_of_its_largest_part(changes, rung):
    base = site({**SHORT, "partition": 32, "priority": 3}, {**LONG, "partition": 32}, mode="shared")
    assert RUNGS[rung_of(base, base.replace(**changes))] == rung
    limited = logs.limited(base, max_run=5)
    assert RUNGS[rung_of(base, limited)] == "policy"
    assert RUNGS[rung_of(base.replace(policy="may-change"), limited)] == "order"
    longer = [q.model_copy(update={"walltime": (0, 10**6)}) for q in base.queues]
    assert RUNGS[rung_of(base, base.with_queues(longer, order="ncpus"))] == "boundaries"


def test_without_scripts_only_rows_that_need_none_are_recommended():
    past = history(STARVED, jobs=600)

    found = recommended_of(past, needs=lambda _: [])
    assert found.proposes
    assert found.without_scripts is None
    needing = recommended_of(past, needs=lambda config: ["a cron job"] if config == found.config else [])
    assert needing.config == found.config
    assert needing.row.needs == ("a cron job",)
    assert needing.without_scripts is not None
    assert not needing.without_scripts.needs
    assert recommended_of(past, needs=lambda _: ["a cron job"]).without_scripts is None  # nothing without


@dataclass(frozen=True)
class BrokenOnTestPeriod(GuardRails):
    """Two guard rails are broken on the test period, and those in `usual` on average over the resamples."""

    usual: tuple[str, ...] = ()

    def broken(self, before, after, days, seen=None):
        if before.utilization == -1:
            return {"longest wait": "longest on the test period", "utilization": "used on the test period"}
        return dict.fromkeys(self.usual, "over the resamples")


@pytest.mark.parametrize(("usual", "ineligible"), [((), ""), (("longest wait", "other"), "longest on the test period")])
def test_a_guard_rail_broken_on_the_test_period_by_chance_is_tolerated(monkeypatch, usual, ineligible):
    """Only what is broken over the resamples too makes a strategy ineligible, in the words of the test period."""
    monkeypatch.setattr("qconf.recommend.evaluator.GuardValues.of", lambda _: GuardValues({}, 0.0, -1.0))
    found = recommended_of(history(STARVED, jobs=600), guards=BrokenOnTestPeriod(usual=usual))
    both = "longest on the test period; used on the test period"
    resampled = [row for row in found.rows if row.bootstrap is not None]
    assert {row.ineligible for row in resampled} == {ineligible}
    assert {row.tolerated for row in resampled} == {"used on the test period" if usual else both}
    assert {row.ineligible for row in found.rows if row.bootstrap is None} == {both}


@pytest.mark.parametrize("fixed", [(), ("mode",)])
def test_the_evaluated_proposal_is_the_fallback_where_that_of_the_whole_history_breaks_a_guard_rail(monkeypatch, fixed):
    """Trained on all jobs the strategy proposes no backfilling; trained on earlier ones, a shared machine."""
    shared, worst = STARVED.replace(mode="shared"), STARVED.replace(backfill=False)

    def propose_by_jobs(name, training, options):
        if name != "pp":
            return propose(name, training, options)
        return Proposal(worst if len(training) == 600 else shared, (Recorded(values={"step": len(training)}),))

    proposing(monkeypatch, propose_by_jobs)
    base = STARVED.replace(fixed=fixed)
    found = recommended_of(history(base, jobs=600), base)
    row = row_of(found)
    assert row.bootstrap is not None
    if fixed:  # the evaluated proposal is ineligible
        assert (row.config, row.fallback) == (worst, "")
        return
    assert row.config == shared
    assert row.decisions[0]["step"] < 600
    assert row.fallback.startswith("utilization falls from")
    assert row.in_sample["mean_wait"] < found.rows[0].in_sample["mean_wait"]
    alone = decide(replace(found, rows=[found.rows[0], row]), row, 0.02)
    assert (alone.verdict, alone.config) == ("CHANGE", shared)
    assert f"trained on the whole history, it would break a guard rail ({row.fallback})." in alone.reason


def test_a_limit_that_binds_counts_as_fixed_in_the_evaluation_and_is_not_written_as_fixed(monkeypatch):
    limited = STARVED.with_queues([STARVED.queues[0].model_copy(update={"max_run_cores": 48}), STARVED.queues[1]])
    base = limited.replace(fixed=("queues.short.max_user_run",))
    jobs = history(base, jobs=600)
    renamed = [queue.model_copy(update={"name": f"new{i}"}) for i, queue in enumerate(base.queues)]
    proposed = {"pp": base.replace(queues=STARVED.queues, mode="shared"), "static": base.with_queues(renamed)}

    def propose_them(name, training, options):
        return Proposal(proposed[name]) if name in proposed else propose(name, training, options)

    proposing(monkeypatch, propose_them)
    found = recommended_of(replace(jobs, excluded={"queues.short.max_run_cores": (7,)}), base, tuple(proposed))
    assert row_of(found).ineligible.startswith("changes queues.short.max_run_cores, which is fixed")
    assert {row.config.fixed for row in found.rows} == {base.fixed, ()}
    assert found.base == base
    assert "fixed" not in row_of(recommended_of(jobs, base)).ineligible


@pytest.mark.parametrize("make", [two, three])
def test_the_same_seed_gives_the_same_recommendation_with_any_number_of_workers(make):
    def found(workers):
        about = {"strategies": ("dp-nlp", "dqr"), "settings": {**FEW, "workers": workers}}
        whole = recommend(history(make(), jobs=200), make(), **about)
        return whole.reason, [(row.name, row.config, row.gain, row.ineligible, row.decisions) for row in whole.rows]

    assert found(1) == found(2)


def test_waits_of_a_queue_fall_with_the_size_of_its_partition():
    (short, long) = recommended(STARVED, jobs=300, span=10 * DAY).curves
    assert (short.queue, long.queue) == ("short", "long")
    assert long.waits[-1] <= long.waits[0]
    assert long.sizes[0] >= 1
    assert long.sizes[-1] == 64
