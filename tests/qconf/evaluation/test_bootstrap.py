"""What is a gain and what is chance: the judged days drawn anew."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import Schedule, Workload
from qconf.evaluation import score as rating
from qconf.evaluation.bootstrap import RESAMPLES, Bootstrap
from qconf.evaluation.guard_rails import GuardRails
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.period import NotApplicableError, Period
from qconf.strategies import Proposal
from qconf.strategies.fcfs_easy import undistinguished
from tests.qconf.small import DAY, period, two

SPAN = 12 * DAY


def made(base, jobs=700):
    whole = period(base, jobs=jobs, span=SPAN)
    return [Holdout.of(whole, start, start + 4 * DAY, 2 * DAY) for start in (4 * DAY, 8 * DAY)]


def draws(base, objective="mean-wait", seed=0, workers=1):
    return Bootstrap(made(base), Proposal(base), objective, seed, workers)


def holdouts(config):
    return [Proposal(config)] * 2


GOOD = undistinguished(two(), "fcfs")
BAD = two().with_partitions([8, 56])


def test_against_itself_nothing_is_gained_nor_certain():
    found = draws(GOOD).compare(holdouts(GOOD))
    assert (found.expected, found.low, found.high, found.score_high) == (0, 0, 0, 0)
    assert found.before == found.after
    assert not found.certain


@pytest.mark.parametrize("objective", rating.OBJECTIVES)
def test_what_is_much_better_is_certain(objective):
    found = draws(BAD, objective).compare(holdouts(GOOD))
    assert 0 < found.low < found.expected < found.high < 1
    assert found.score_high < 0
    assert found.certain
    assert found.after.longest < found.before.longest


def test_what_is_much_worse_is_not():
    found = draws(GOOD).compare(holdouts(BAD))
    assert found.low < found.expected < found.high < 0
    assert not found.certain


def test_a_mean_that_falls_at_the_price_of_long_waits_is_not_certain():
    base = undistinguished(two(), "fcfs")
    narrow_first = Proposal(base.replace(order="ncpus ** -3"))
    found = Bootstrap(made(base, jobs=1200), Proposal(base), "mean-wait", 0, 1).compare([narrow_first] * 2)
    assert found.low > 0
    assert found.after.longest > 2 * found.before.longest
    assert found.score_high > 0
    assert not found.certain


def test_both_stages_count():
    mixed = draws(BAD).compare([Proposal(GOOD), Proposal(BAD)])
    every, none = draws(BAD).compare(holdouts(GOOD)), draws(BAD).compare(holdouts(BAD))
    assert none.expected < mixed.expected < every.expected


def test_stages_count_by_their_days():
    whole = period(two(), jobs=900, span=SPAN)
    spans = ((2, 4), (4, 12))  # the second is four times as long
    uneven = [Holdout.of(whole, low * DAY, high * DAY, 0) for low, high in spans]

    known = Bootstrap(uneven, Told(1.0), "mean-wait", 0, 1)
    first, second = (known.compare([Told(a), Told(b)]) for a, b in ((1.0, 0.0), (0.0, 1.0)))
    assert first.after.longest + second.after.longest == pytest.approx(first.before.longest)
    assert 2.5 < second.after.longest / first.after.longest < 6


def test_only_the_seed_changes_an_interval():
    found = [
        draws(BAD, seed=seed, workers=workers).compare(holdouts(GOOD)) for seed, workers in ((0, 1), (0, 2), (1, 1))
    ]
    assert found[0] == found[1]
    assert (found[0].low, found[0].high) != (found[2].low, found[2].high)


class Told:
    """Starts every job at once, or keeps all of a draw waiting for a time that the draw decides."""

    def __init__(self, scale, longest=1.0):
        self.scale, self.longest = scale, longest

    def simulate(self, period):
        w = period.workload
        wait = np.full(len(w), int(self.scale * (1000 + w.cores.sum() % 1000)))
        wait[-1] = int(self.longest * wait[-1])
        start = w.submit + wait
        part = np.zeros(len(w), dtype=np.int32)
        return Schedule(w.submit, start, start + w.effective_runtime, w.cores, part, {}, ("machine",))


def test_interval_median_and_tails_are_those_of_the_draws():
    """Against a known number in every draw: the base waits 1000 to 2000 s, the proposal always half of it."""
    known = Bootstrap(made(GOOD), Told(1.0), "mean-wait", 0, 1)
    found = known.compare([Told(0.5)] * 2)
    assert found.expected == pytest.approx(0.5, abs=1e-3)
    assert found.high - found.low < 2e-3
    assert found.after.longest == pytest.approx(found.before.longest / 2, abs=1)
    assert found.after.p95["long"] == pytest.approx(found.before.p95["long"] / 2, abs=1)
    waits = known.before[:, 0]
    assert len(set(waits)) > RESAMPLES / 2  # every draw is a month of its own
    mixed = known.compare([Told(0.5), Told(1.0)])
    assert mixed.expected == pytest.approx(0.25, abs=0.05)  # the holdouts differ in their waits


def test_the_bounds_are_those_of_90_per_cent():
    """The gain of draw i is x_i = 1 - (waits of a fixed second) / (waits of the draw)."""
    known = Bootstrap(made(GOOD), Told(1.0), "mean-wait", 0, 1)
    after = known.compare([Told(0.0)] * 2)
    assert (after.low, after.expected, after.high) == (1.0, 1.0, 1.0)

    class Fixed(Told):
        def simulate(self, period):
            now = super().simulate(period)
            start = now.submit + 900
            return replace(now, start=start, end=start + 1)

    found = known.compare([Fixed(1.0)] * 2)
    gains = 1 - 900 / known.before[:, 0]
    assert (found.low, found.expected, found.high) == pytest.approx(tuple(np.percentile(gains, [5, 50, 95])), abs=1e-3)
    fixed = np.array([900, 91, 900]) + rating.FLOORS  # mean wait, bounded slowdown of jobs of a second, longest wait
    ratings = np.log(fixed / (known.before[:, :3] + rating.FLOORS)) @ rating.weights("mean-wait")
    assert found.score_high == pytest.approx(ratings.mean() + 1.5 * ratings.std(ddof=1), abs=1e-3)


def test_a_queue_without_jobs_on_most_days_is_seen_where_it_has_some():
    base = two()
    w = period(base, jobs=700, span=SPAN).workload
    day = (w.submit - 8 * DAY) // DAY
    rare = Workload(w.submit, w.cores, w.runtime, w.walltime, queue=np.where((w.queue == 0) & (day == 1), 0, 1))
    whole = Period(rare, base)
    one = [Holdout.of(whole, 8 * DAY, 12 * DAY, 2 * DAY)]
    found = Bootstrap(one, Told(1.0), "mean-wait", 0, 1).compare([Told(0.5)])
    assert found.before.p95["short"] >= 1000
    none = Period(Workload(w.submit, w.cores, w.runtime, w.walltime, queue=np.ones(len(w), dtype=np.int64)), base)
    found = Bootstrap([Holdout.of(none, 8 * DAY, 12 * DAY)], Told(1.0), "mean-wait", 0, 1).compare([Told(0.5)])
    assert np.isnan(found.before.p95["short"])
    assert not GuardRails().broken(found.before, found.after, 30)


def test_a_gain_is_the_share_by_which_the_objective_falls():
    before, after = np.array([[200.0, 4.0], [0.0, 1.0], [0.0, 1.0]]), np.array([[150.0, 3.0], [0.0, 1.0], [9.0, 2.0]])
    assert rating.gain(after, before, "mean-wait").tolist() == [0.25, 0.0, -1.0]
    assert rating.gain(after, before, "bounded-slowdown").tolist() == [0.25, 0.0, -1.0]
    assert rating.gain(after, before, "mixed").tolist() == [0.25, 0.0, -1.0]
    assert np.isnan(rating.gain(np.full(2, np.nan), np.full(2, np.nan), "mean-wait"))


def test_days_without_jobs_are_no_draws():
    here = period(two(mode="shared"), jobs=300, span=DAY // 4)  # all on the fifth day, which is not whole
    first, last = (int(here.workload.submit[i]) for i in (0, -1))
    with pytest.raises(NotApplicableError, match="no job was submitted on the whole days"):
        Bootstrap([Holdout.of(here, first - 4 * DAY - 1, last + 1)], Proposal(here.base), "mean-wait", 0, 1)
