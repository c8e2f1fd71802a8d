"""Whether a gain is more than chance: test days are resampled."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import Schedule, Workload
from qconf.evaluation import score
from qconf.evaluation.bootstrap import FEWEST, NEXT, RESAMPLES, Bootstrap, resamples_of
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.period import NotApplicableError, Period
from qconf.strategies import Proposal
from qconf.strategies.plain import undistinguished
from tests.qconf.small import DAY, compared, period, two

SPAN = 12 * DAY


def holdouts(base, jobs=700):
    whole = period(base, jobs=jobs, span=SPAN)
    return [Holdout.of(whole, start, start + 4 * DAY, 2 * DAY) for start in (4 * DAY, 8 * DAY)]


def bootstrap(base, objective="mean-wait", seed=0, workers=1):
    return Bootstrap(holdouts(base), Proposal(base), objective, seed, workers)


def proposals(config):
    return [Proposal(config)] * 2


GOOD = undistinguished(two(), "fcfs")
BAD = two().with_partitions([8, 56])


def test_a_configuration_gains_nothing_over_itself():
    found = compared(bootstrap(GOOD), proposals(GOOD))
    assert (found.expected, found.low, found.high, found.score, found.spread) == (0, 0, 0, 0, 0)
    assert found.before == found.after
    assert not found.certain


@pytest.mark.parametrize("objective", score.OBJECTIVES)
def test_a_much_better_configuration_gains_with_certainty(objective):
    found = compared(bootstrap(BAD, objective), proposals(GOOD))
    assert 0 < found.low < found.expected < found.high < 1
    assert found.score + 1.5 * found.spread < 0
    assert found.sure == 1.0
    assert found.certain
    assert found.clear
    assert found.after.longest < found.before.longest


def test_a_much_worse_configuration_does_not():
    found = compared(bootstrap(GOOD), proposals(BAD))
    assert found.low < found.expected < found.high < 0
    assert not found.certain


def test_a_shorter_mean_wait_at_the_price_of_long_waits_is_not_certain():
    base = undistinguished(two(), "fcfs")
    narrow_first = Proposal(base.replace(order="ncpus ** -3"))
    found = compared(Bootstrap(holdouts(base, jobs=1200), Proposal(base), "mean-wait", 0, 1), [narrow_first] * 2)
    assert found.sure > 0.95
    assert found.after.longest > 2 * found.before.longest
    assert found.score > 0
    assert not found.certain


def test_every_test_period_counts():
    mixed = compared(bootstrap(BAD), [Proposal(GOOD), Proposal(BAD)])
    every, none = compared(bootstrap(BAD), proposals(GOOD)), compared(bootstrap(BAD), proposals(BAD))
    assert none.expected < mixed.expected < every.expected


def test_test_periods_count_by_their_days():
    whole = period(two(), jobs=900, span=SPAN)
    spans = ((2, 4), (4, 12))  # the second is four times as long
    uneven = [Holdout.of(whole, low * DAY, high * DAY, 0) for low, high in spans]

    known = Bootstrap(uneven, ConstantWait(1.0), "mean-wait", 0, 1)
    first, second = (compared(known, [ConstantWait(a), ConstantWait(b)]) for a, b in ((1.0, 0.0), (0.0, 1.0)))
    assert first.after.longest + second.after.longest == pytest.approx(first.before.longest)
    assert 2.5 < second.after.longest / first.after.longest < 6


def test_an_interval_depends_on_the_seed_and_not_on_the_workers():
    found = [
        compared(bootstrap(BAD, seed=seed, workers=workers), proposals(GOOD))
        for seed, workers in ((0, 1), (0, 2), (1, 1))
    ]
    assert found[0] == found[1]
    assert (found[0].low, found[0].high) != (found[2].low, found[2].high)


class ConstantWait:
    """All jobs of a resample wait for the same time, `scale` times 1000 to 2000 s depending on the resample."""

    def __init__(self, scale):
        self.scale = scale

    def simulate(self, period):
        w = period.workload
        wait = np.full(len(w), int(self.scale * (1000 + w.cores.sum() % 1000)))
        start = w.submit + wait
        part = np.zeros(len(w), dtype=np.int32)
        return Schedule(w.submit, start, start + w.effective_runtime, w.cores, part, {}, ("machine",))


def test_median_interval_and_tails_are_those_of_the_resamples():
    """In every resample the base waits for 1000 to 2000 s and the proposal for half of that."""
    known = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1)
    found = compared(known, [ConstantWait(0.5)] * 2)
    assert found.expected == pytest.approx(0.5, abs=1e-3)
    assert found.high - found.low < 2e-3
    assert found.after.longest == pytest.approx(found.before.longest / 2, abs=1)
    assert found.after.p95["long"] == pytest.approx(found.before.p95["long"] / 2, abs=1)
    waits = known.before[:, 0]
    assert len(set(waits)) > RESAMPLES / 2  # resamples differ
    mixed = compared(known, [ConstantWait(0.5), ConstantWait(1.0)])
    assert mixed.expected == pytest.approx(0.25, abs=0.05)  # the test periods differ in their waits


def test_the_interval_is_that_of_90_per_cent_of_months_to_come():
    """The proposal waits for 900 s in every resample, so a gain is 1 - 900 / (wait of the base)."""
    known = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1)
    after = compared(known, [ConstantWait(0.0)] * 2)
    assert (after.low, after.expected, after.high) == pytest.approx((1.0, 1.0, 1.0), abs=2e-6)

    class Fixed(ConstantWait):
        def simulate(self, period):
            now = super().simulate(period)
            start = now.submit + 900
            return replace(now, start=start, end=start + 1)

    found = compared(known, [Fixed(1.0)] * 2)
    gains = 1 - 900 / known.before[:, 0]
    left = np.log(1 - np.percentile(gains, [5, 50, 95]))
    wider = 1 - np.exp(left[1] + NEXT * (left - left[1]))
    assert (found.low, found.expected, found.high) == pytest.approx(tuple(wider), abs=1e-3)
    fixed = np.array([900, 91, 900]) + score.FLOORS  # mean wait, bounded slowdown of jobs of a second, longest wait
    parts = np.log(fixed / (known.before[:, :3] + score.FLOORS)) * score.weights("mean-wait", score.TAILS)
    assert found.score == pytest.approx(parts.sum(axis=1).mean(), abs=1e-3)
    assert found.spread == pytest.approx(parts[:, :2].sum(axis=1).std(ddof=1), abs=1e-3)


def test_longest_waits_that_the_site_has_seen_count_alike():
    """Base and proposal differ in their longest waits alone."""
    known = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1, tails=3.0)
    before = np.full((len(known.tests), 4 + len(known.names)), 1000.0)
    after = before.copy()
    after[:, 2] = 9000.0
    worse = known.between(before, after)
    assert worse.score == pytest.approx(3 * np.log((9000 + 3600) / (1000 + 3600)))
    assert not worse.certain
    for seen, excess in ((9000.0, 0.0), (5000.0, np.log((9000 + 3600) / (5000 + 3600)))):
        borne = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1, tails=3.0, seen=seen)
        assert borne.between(before, after).score == pytest.approx(3 * excess)


def test_the_percentile_of_a_queue_is_a_mean_over_the_resamples_in_which_it_has_jobs():
    base = two()
    w = period(base, jobs=700, span=SPAN).workload
    day = (w.submit - 8 * DAY) // DAY
    rare = Workload(w.submit, w.cores, w.runtime, w.walltime, queue=np.where((w.queue == 0) & (day == 1), 0, 1))
    whole = Period(rare, base)
    one = [Holdout.of(whole, 8 * DAY, 12 * DAY, 2 * DAY)]
    found = compared(Bootstrap(one, ConstantWait(1.0), "mean-wait", 0, 1), [ConstantWait(0.5)])
    assert found.before.p95["short"] >= 1000
    none = Period(Workload(w.submit, w.cores, w.runtime, w.walltime, queue=np.ones(len(w), dtype=np.int64)), base)
    found = compared(
        Bootstrap([Holdout.of(none, 8 * DAY, 12 * DAY)], ConstantWait(1.0), "mean-wait", 0, 1), [ConstantWait(0.5)]
    )
    assert np.isnan(found.before.p95["short"])
    assert not GuardRails().broken(found.before, found.after, 30)


def test_a_gain_is_the_share_by_which_the_objective_falls():
    before, after = np.array([[200.0, 4.0], [0.0, 1.0], [0.0, 1.0]]), np.array([[150.0, 3.0], [0.0, 1.0], [9.0, 2.0]])
    assert score.gain(after, before, "mean-wait").tolist() == [0.25, 0.0, -1.0]
    assert score.gain(after, before, "bounded-slowdown").tolist() == [0.25, 0.0, -1.0]
    assert score.gain(after, before, "mixed").tolist() == [0.25, 0.0, -1.0]
    assert np.isnan(score.gain(np.full(2, np.nan), np.full(2, np.nan), "mean-wait"))


def test_whole_days_without_jobs_cannot_be_resampled():
    here = period(two(mode="shared"), jobs=300, span=DAY // 4)  # all on the fifth day, which is not whole
    first, last = (int(here.workload.submit[i]) for i in (0, -1))
    with pytest.raises(NotApplicableError, match="no job was submitted on the whole days"):
        Bootstrap([Holdout.of(here, first - 4 * DAY - 1, last + 1)], Proposal(here.base), "mean-wait", 0, 1)


@pytest.mark.parametrize(("jobs", "most"), [(0, 100), (10_000, 100), (10_500, 95), (15_000, 65), (10**6, 50)])
def test_a_million_jobs_are_simulated_of_a_proposal_more_or_less(jobs, most):
    assert resamples_of(jobs) == most


def test_fewer_resamples_are_the_first_of_more(monkeypatch):
    many = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1)
    monkeypatch.setattr("qconf.evaluation.bootstrap.JOBS", 0)
    few = Bootstrap(holdouts(GOOD), ConstantWait(1.0), "mean-wait", 0, 1)
    assert [compared(each, [ConstantWait(0.5)] * 2).resamples for each in (many, few)] == [RESAMPLES, FEWEST]
    assert (len(many.before), len(few.before)) == (RESAMPLES, FEWEST)
    assert np.array_equal(many.before[:FEWEST], few.before)
