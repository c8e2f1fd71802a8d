"""What is a gain and what is chance: the judged days drawn anew."""

import numpy as np
import pytest

from qconf.strategies import Proposal
from qconf.strategies.fcfs_easy import undistinguished
from qconf.tuning import rating
from qconf.tuning.evidence import DRAWS, Draws
from qconf.tuning.judging import Trial
from tests.qconf.tuning.small import DAY, month, two

SPAN = 12 * DAY


def trials(base, jobs=700):
    whole = month(base, jobs=jobs, span=SPAN)
    return [Trial.of(whole, start, start + 4 * DAY, 2 * DAY) for start in (4 * DAY, 8 * DAY)]


def draws(base, objective="mean-wait", seed=0, workers=1):
    return Draws(trials(base), Proposal(base), objective, seed, workers)


def stages(config):
    return [Proposal(config)] * 2


GOOD = undistinguished(two(), "fcfs")
BAD = two().with_partitions([8, 56])


def test_against_itself_nothing_is_gained_nor_certain():
    found = draws(GOOD).weigh(stages(GOOD))
    assert (found.expected, found.low, found.high, found.worse) == (0, 0, 0, 0)
    assert found.before == found.after
    assert not found.certain


@pytest.mark.parametrize("objective", rating.OBJECTIVES)
def test_what_is_much_better_is_certain(objective):
    found = draws(BAD, objective).weigh(stages(GOOD))
    assert 0 < found.low < found.expected < found.high < 1
    assert found.worse < 0
    assert found.certain
    assert found.after.longest < found.before.longest


def test_what_is_much_worse_is_not():
    found = draws(GOOD).weigh(stages(BAD))
    assert found.low < found.expected < found.high < 0
    assert not found.certain


def test_a_mean_that_falls_at_the_price_of_long_waits_is_not_certain():
    base = undistinguished(two(), "fcfs")
    narrow_first = Proposal(base.replace(order="ncpus ** -3"))
    found = Draws(trials(base, jobs=1200), Proposal(base), "mean-wait", 0, 1).weigh([narrow_first] * 2)
    assert found.low > 0
    assert found.after.longest > 2 * found.before.longest
    assert found.worse > 0
    assert not found.certain


def test_both_stages_count():
    mixed = draws(BAD).weigh([Proposal(GOOD), Proposal(BAD)])
    every, none = draws(BAD).weigh(stages(GOOD)), draws(BAD).weigh(stages(BAD))
    assert none.expected < mixed.expected < every.expected


def test_only_the_seed_changes_an_interval():
    found = [draws(BAD, seed=seed, workers=workers).weigh(stages(GOOD)) for seed, workers in ((0, 1), (0, 2), (1, 1))]
    assert found[0] == found[1]
    assert (found[0].low, found[0].high) != (found[2].low, found[2].high)


def test_every_draw_is_a_month_of_its_own():
    drawn = draws(GOOD).drawn
    assert len(drawn) == DRAWS
    assert len({tuple(first.month.workload.submit) for first, _ in drawn}) > DRAWS / 2


def test_a_gain_is_the_share_by_which_the_objective_falls():
    before, after = np.array([[200.0, 4.0], [0.0, 1.0], [0.0, 1.0]]), np.array([[150.0, 3.0], [0.0, 1.0], [9.0, 2.0]])
    assert rating.gain(after, before, "mean-wait").tolist() == [0.25, 0.0, -1.0]
    assert rating.gain(after, before, "bounded-slowdown").tolist() == [0.25, 0.0, -1.0]
    assert rating.gain(after, before, "mixed").tolist() == [0.25, 0.0, -1.0]
