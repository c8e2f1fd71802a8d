"""Walk-forward: causality, warm-up, averages, fallbacks, and the same result with any number of workers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from parsim import metrics, simulate
from parsim.planning.plan import plan
from qconf.backtest import AVERAGED, FoldResult, averages, backtest, compare, prepare_periods
from qconf.backtest.results import FIXED
from qconf.config import dump, parse
from qconf.errors import InputError
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import in_epochs
from qconf.evaluation.score import TAILS, log_ratios, weights
from qconf.history import clean, read
from qconf.recommend.checkpoint import Checkpoint
from qconf.report.backtest import mark, sentences
from qconf.strategies import Proposal, propose
from qconf.strategies.plain import undistinguished
from tests.qconf.backtest import walking

TRAINED = ("pp", "dp-nlp", "dqr", "hybrid", "exact")
QUICK = {"samples": 20}


def proposals(found, period):
    return {
        result.strategy: (dump(result.config), json.dumps(result.decisions), result.fallback)
        for result in found.results
        if result.period == period
    }


def small_backtest(history, **settings):
    settings = {"strategies": ("lxf-easy", "pp"), "period": "10d", "settings": QUICK} | settings
    return backtest(history, walking.site(), **settings)


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    return walking.history(tmp_path_factory.mktemp("log"))


@pytest.fixture(scope="module")
def found(history):
    return small_backtest(history)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def trained(history, kept):
    checkpoint = Checkpoint(kept, {"a": 1}, resume=True)
    return small_backtest(history, strategies=(*TRAINED, "auto"), checkpoint=checkpoint)


@pytest.fixture
def trainings(monkeypatch):
    """What strategies are trained on, as (name, training set, settings)."""
    calls = []

    def spy(*given):
        calls.append(given)
        return propose(*given)

    monkeypatch.setattr("qconf.backtest.walk_forward.propose", spy)
    return calls


def row(found, period, name):
    """The result of a strategy on a test period."""
    return next(each for each in found.results if (each.period, each.strategy) == (period, name))


def test_nothing_of_a_test_period_reaches_the_training(tmp_path, trained):
    jobs = walking.table()
    later = walking.table(seed=99)
    boundary = walking.EPOCH + 20 * walking.DAY
    later["user"] = "a-new-one"
    later["cores"] = later["cores"].clip(upper=3)
    changed = walking.pd.concat([jobs[jobs["submit"] < boundary], later[later["submit"] >= boundary].iloc[:120]])
    after = small_backtest(walking.history(tmp_path, changed), strategies=(*TRAINED, "auto"))
    last = trained.folds[-1].label
    assert proposals(trained, last) == proposals(after, last)
    assert trained.results[-1].summary.overall != after.results[-1].summary.overall


def test_strategies_other_than_auto_are_trained_on_the_period_before_alone(tmp_path, trained):
    jobs = walking.table()
    boundary = walking.EPOCH + 10 * walking.DAY
    other = walking.table(seed=5)
    other["runtime"] = other["runtime"].where(other["cores"] <= 8, other["runtime"] // 3 + 1)
    changed = walking.pd.concat([other[other["submit"] < boundary], jobs[jobs["submit"] >= boundary]])
    after = small_backtest(walking.history(tmp_path, changed), strategies=TRAINED)
    last = trained.folds[-1].label
    old, new = proposals(trained, last), proposals(after, last)
    assert old.pop("auto")
    assert old.pop("static") != new.pop("static")  # static is trained on the first period
    assert old == new


def test_the_training_set_of_auto_has_every_earlier_period(history, trainings):
    found = small_backtest(history, strategies=("auto",), period="6d", fewest=20)
    earlier = [len(training.earlier) for name, training, _ in trainings if name == "auto"]
    assert len(earlier) > 2
    assert earlier == list(range(len(earlier)))
    orders = [result.decisions[0] for result in found.results if result.strategy == "auto"]
    assert ["months" in each for each in orders] == [False] + [True] * (len(orders) - 1)


def test_epochs_of_so_many_days_have_the_jobs_before_the_period_and_none_after(history, trainings):
    settings = {**QUICK, "epoch_days": 5}
    found = small_backtest(history, strategies=("dp-nlp",), settings=settings, period="10d")
    within = [in_epochs(training, given["weights"], given["epoch_days"]) for _, training, given in trainings]
    spans = {each.workload.submit[-1]: [len(epoch) for _, epoch in each.epochs] for each in within}
    first, last = (history.between(None, fold.start).jobs["submit"].to_numpy() for fold in found.folds)
    five = 5 * walking.DAY
    assert list(spans) == [first[-1], last[-1]]
    assert spans[last[-1]] == [((last[-1] - last) // five == back).sum() for back in (2, 1, 0)]
    assert spans[first[-1]] == [len(first) - ((first[-1] - first) // five == 0).sum(), spans[first[-1]][-1]]


def test_static_is_trained_once_and_pp_on_every_period(found):
    partitions = {
        (result.period, result.strategy): [queue.partition for queue in result.config.queues]
        for result in found.results
    }
    first, last = (fold.label for fold in found.folds)
    assert partitions[first, "static"] == partitions[last, "static"] == partitions[first, "pp"]
    assert partitions[last, "pp"] != partitions[last, "static"]


def test_a_test_period_follows_three_days_of_warm_up_that_are_not_counted(history, found):
    fold = found.folds[-1]
    around = history.between(fold.start - 3 * walking.DAY, fold.end).workload(walking.site())
    system = walking.site().replace(queues=tuple(q.model_copy(update={"priority": 1.0}) for q in walking.site().queues))
    schedule = simulate(around, system.system())
    counted = around.submit >= fold.start
    wanted = metrics.summary(around, schedule, system.system(), counted=counted)
    got = row(found, fold.label, "fcfs-easy").summary
    np.testing.assert_equal(got.overall, wanted.overall)
    assert got["jobs"] == fold.jobs == counted.sum()
    assert fold.warmup_jobs == len(around) - fold.jobs > 0
    cold = small_backtest(history, warmup_days=0)
    assert {s.warmup_jobs for s in cold.folds} == {0}
    assert [v.summary["mean_wait"] for v in cold.results] != [v.summary["mean_wait"] for v in found.results]


def test_averages_have_ratios_of_means_and_means_of_reductions(found):
    waits = {
        name: np.array([v.summary["mean_wait"] for v in found.results if v.strategy == name])
        for name in found.strategies
    }
    for average in found.averages:
        mine = waits[average.strategy]
        assert average.means["mean_wait"] == pytest.approx(mine.mean())
        for name, comparison in average.against.items():
            assert comparison.ratios["mean_wait"] == pytest.approx(mine.mean() / waits[name].mean())
            reductions = 1 - mine / waits[name]
            assert comparison.reduction == pytest.approx(reductions.mean())
            assert comparison.best[1] == pytest.approx(reductions.max())
            assert comparison.worst == (found.folds[int(np.argmin(reductions))].label, pytest.approx(reductions.min()))
            assert comparison.worse == np.mean(mine > waits[name])
    first, last = (fold.label for fold in found.folds)
    without = averages([v for v in found.results if v.period != first], "mean-wait")
    assert {average.periods for average in without} == {1}
    assert without[0].means["mean_wait"] == waits["fcfs-easy"][-1]
    assert without[0].against["shared"].best[0] == last


def test_regret_is_against_the_best_order_that_stays_known_in_hindsight(history, found):
    """The scores are computed anew from schedules of one list."""
    base, rows = walking.site(), {}
    every = prepare_periods(history, base, strategies=("pp",), period="10d", settings=QUICK).every
    for order in FIXED:
        alike = Proposal(undistinguished(base, order))
        rows[order] = [
            Outcome(test, alike.simulate(test), test.counted(fold.start))
            for fold, test in zip(every.folds, every.test, strict=True)
        ]
    seen, scores = 0.0, dict.fromkeys(rows, 0.0)
    for i, first in enumerate(rows["fcfs"]):
        seen = max(seen, first.wait.max())
        for order, each in rows.items():
            now, then = ([*one[i].means(), 0.0] for one in (each, rows["fcfs"]))
            beyond = max(np.log((each[i].wait.max() + 3600) / (seen + 3600)), 0)
            ratios = log_ratios(np.array(now), np.array(then))
            ratios[2] = beyond
            scores[order] += float(ratios @ weights("mean-wait", TAILS)) / len(rows["fcfs"])
    best = min(scores, key=scores.__getitem__)
    by_name = {average.strategy: average for average in found.averages}
    assert {each.best_fixed for each in found.averages} == {best}
    for name, order in (("fcfs-easy", "fcfs"), ("lxf-easy", "lxf")):
        assert by_name[name].regret == pytest.approx(np.expm1(scores[order] - scores[best]))
    assert by_name["pp"].regret > 0
    assert averages(found.results, "mean-wait")[0].regret is None


def test_any_wait_is_a_ratio_of_two_to_a_reference_without_waits():
    waits = {"fcfs-easy": 0.0, "pp": 5.0, "lxf-easy": 0.0}
    results = [
        FoldResult("2016-01", name, metrics.Summary(dict.fromkeys(AVERAGED, wait), {}), walking.site())
        for name, wait in waits.items()
    ]
    ratios = [each.against["fcfs-easy"].ratios["mean_wait"] for each in averages(results, "mean-wait")]
    assert ratios == [1.0, 2.0, 1.0]


@pytest.mark.parametrize("objective", ["bounded-slowdown", "mixed"])
def test_reductions_are_in_the_objective(history, found, objective):
    other = small_backtest(history, settings={**QUICK, "objective": objective})
    assert [v.summary.overall for v in other.results] == [v.summary.overall for v in found.results]
    name, easy = (next(a for a in other.averages if a.strategy == s) for s in ("lxf-easy", "fcfs-easy"))
    table = {(v.period, v.strategy): v.summary for v in found.results}
    parts = []
    for fold in found.folds:
        mine, theirs = table[fold.label, name.strategy], table[fold.label, easy.strategy]
        slowdown = mine["mean_bounded_slowdown"] / theirs["mean_bounded_slowdown"]
        wait = mine["mean_wait"] / theirs["mean_wait"]
        parts.append(1 - (slowdown if objective == "bounded-slowdown" else (slowdown + wait) / 2))
    assert name.against["fcfs-easy"].reduction == pytest.approx(np.mean(parts))


def test_planning_disciplines_are_strategies_by_name(history):
    found = small_backtest(history, strategies=("planned-sjf", "dynp"))
    fold = found.folds[0]
    around = history.between(fold.start - 3 * walking.DAY, fold.end).workload(walking.site())
    schedule = plan(around, 48, "dynp").schedule
    got = row(found, fold.label, "dynp")
    assert got.summary["mean_wait"] == schedule.wait[around.submit >= fold.start].mean()
    assert got.not_exportable
    assert not row(found, fold.label, "shared").not_exportable


def test_violations_of_fixed_are_marked_and_explained(tmp_path, history):
    base = walking.site().replace(fixed=("mode", "queues.wide.priority"))
    found = backtest(history, base, period="10d", strategies=("current", "pp", "planned-sjf"), settings=QUICK)
    fixed = {v.strategy: v.fixed for v in found.results}
    assert fixed == {
        "current": (),
        "shared": (),
        "pp": ("mode",),
        "static": ("mode",),
        **dict.fromkeys(("fcfs-easy", "planned-sjf"), ("queues.wide.priority",)),
    }
    marks = {average.strategy: mark(found, average) for average in found.averages}
    assert marks["current"] == "current"
    assert (marks["pp"], marks["fcfs-easy"], marks["planned-sjf"]) == ("pp#", "fcfs-easy#", "planned-sjf*#")
    explained = [text for text in sentences(found) if text.startswith("#")]
    assert explained == [
        "# fcfs-easy, planned-sjf change what is fixed, and are ineligible: queues.wide.priority",
        "# pp, static change what is fixed, and are ineligible: mode",
    ]
    free = backtest(history, walking.site(), period="10d", strategies=("pp",), settings=QUICK)
    assert not any("#" in text for text in [*sentences(free), *(mark(free, each) for each in free.averages)])


def test_a_strategy_without_a_proposal_falls_back_to_the_current_configuration(tmp_path):
    crowded = parse(walking.CONFIG.replace("cores: 48", "cores: 20"), "crowded.yaml")  # 8 + 8 + 16 do not fit
    history = walking.history(tmp_path, config=crowded)
    found = backtest(history, crowded, period="10d", strategies=("pp", "current"), settings=QUICK)
    for fold in found.folds:
        pp = row(found, fold.label, "pp")
        assert pp.fallback
        assert (pp.config, pp.summary) == (crowded, row(found, fold.label, "current").summary)
    assert {a.strategy: a.fallbacks for a in found.averages} == {
        **dict.fromkeys(("current", "fcfs-easy", "shared"), 0),
        **dict.fromkeys(("pp", "static"), 2),
    }
    assert any(note.startswith("pp: the current configuration instead in") for note in found.notes)


def test_periods_with_too_few_jobs_are_skipped_with_the_reason(tmp_path):
    jobs = walking.table(periods=4)
    middle = jobs["submit"].between(walking.EPOCH + 10 * walking.DAY, walking.EPOCH + 20 * walking.DAY - 1)
    thin = walking.pd.concat([jobs[~middle], jobs[middle].iloc[:50]])
    found = small_backtest(walking.history(tmp_path, thin))
    assert found.skipped == [("2016-01-11", "50 jobs, at least 100 are needed")]
    assert [(fold.training, fold.label) for fold in found.folds] == [
        ("2016-01-01", "2016-01-21"),
        ("2016-01-21", "2016-01-31"),
    ]


def test_finished_proposals_are_taken_from_the_checkpoint(history, trained, kept, monkeypatch):
    def refuse(name, *_):
        raise AssertionError(name)

    monkeypatch.setattr("qconf.backtest.walk_forward.propose", refuse)
    checkpoint = Checkpoint(kept, {"a": 1}, resume=True)
    after = small_backtest(history, strategies=(*TRAINED, "auto"), checkpoint=checkpoint)
    assert [proposals(trained, s.label) for s in trained.folds] == [proposals(after, s.label) for s in after.folds]
    assert trained.averages == after.averages


def test_unknown_strategies_objectives_and_periods_are_refused(history):
    for given, message in (
        ({"strategies": ("magic",)}, "magic"),
        ({"settings": {**QUICK, "objective": "wait"}}, "wait"),
        ({"period": "400d"}, "1 of 1 periods"),
        ({"period": "fortnight"}, "fortnight"),
    ):
        with pytest.raises(InputError, match=message):
            small_backtest(history, **given)


def test_compare_is_a_backtest_with_one_test_period(tmp_path, history):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    one = walking.history(folders[0], walking.table(periods=1))
    two = walking.history(folders[1], walking.table(periods=1, first=1))
    found = compare(one, two, walking.site(), strategies=("pp", "exact"), settings=QUICK)
    whole = backtest(history, walking.site(), period="10d", strategies=("pp", "exact"), settings=QUICK)
    first = whole.folds[0].label
    assert [v.summary.overall for v in found.results] == [v.summary.overall for v in whole.results if v.period == first]
    assert proposals(found, "next") == proposals(whole, first)


def test_joined_histories_count_from_one_epoch(tmp_path):
    one = walking.history(tmp_path, walking.table(periods=1))
    later = clean(read([walking.write(tmp_path / "b.csv", walking.table(periods=1, first=1))]), walking.site())
    later = replace(later, jobs=later.jobs.assign(start=later.jobs["submit"] + 60, end=-1))
    sooner = {name: later.jobs[name] - 1000 for name in ("submit", "start")}
    moved = replace(later, jobs=later.jobs.assign(**sooner), epoch=later.epoch + 1000)
    both, same = one.joined(moved), one.joined(later)
    walking.pd.testing.assert_frame_equal(both.jobs, same.jobs)
    assert (both.jobs["end"] == -1).all()  # unknown
    assert both.jobs["row"].tolist() == list(range(both.read))
    assert both.read == one.read + later.read
    assert len(both.sources) == 2
    with pytest.raises(InputError, match="begins at"):
        later.joined(one)
    with pytest.raises(InputError, match="begins at"):
        one.joined(one)


def test_a_chain_begins_each_period_with_the_result_of_the_one_before(history, trainings):
    plain = small_backtest(history, strategies=("pp", "dqr"))
    assert {training.base.names for _, training, _ in trainings} == {walking.site().names}
    trainings.clear()
    found = small_backtest(history, strategies=("pp", "dqr"), chain=True)
    bases = [(name, training.base, training.workload.queue.max()) for name, training, _ in trainings]
    configs = [each.config for each in found.results if each.strategy == "dqr"]
    of_dqr = [(base, most) for name, base, most in bases if name == "dqr"]
    assert [base for base, _ in of_dqr] == [walking.site(), *configs[:-1]]
    assert all(most < len(base.queues) for base, most in of_dqr)  # jobs are in the queues of that base
    assert all(base == walking.site() for name, base, _ in bases if name in ("shared", "fcfs-easy", "static"))
    assert found.settings["chain"]
    assert not plain.settings["chain"]
    first = [each for each in plain.results if each.period == plain.folds[0].label]
    assert [each.summary.overall for each in first] == [
        each.summary.overall for each in found.results if each.period == found.folds[0].label
    ]
    with pytest.raises(InputError, match="actual run times"):
        small_backtest(history, chain=True, settings={**QUICK, "split_on": "runtime"})
