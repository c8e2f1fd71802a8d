"""A gain at more load and with longer run times."""

import numpy as np
import pytest

from parsim import Workload, simulate
from qconf.config import Target
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.robustness import SCENARIOS, denser, longer, robustness
from qconf.strategies import Proposal
from tests.qconf.small import DAY, period, two

SHARED, SJF = two(mode="shared"), two(mode="shared", order="sjf")


def test_more_load_divides_the_times_between_submissions():
    jobs = Workload([50, 160, 270, 1050], [1] * 4, [5] * 4, [9] * 4, queue=[0, 1, 0, 1], user=[3, 2, 1, 0])
    found = denser(jobs, 10)
    assert found.submit.tolist() == [50, 150, 250, 959]  # 1000 / 1.1 = 909.09
    assert (found.queue.tolist(), found.user.tolist()) == ([0, 1, 0, 1], [3, 2, 1, 0])
    assert len(denser(Workload([], [], [], []), 10)) == 0


def test_run_times_grow_up_to_the_walltime():
    jobs = Workload([0] * 4, [1] * 4, [1, 100, 100, 2**31 - 1], [9, 500, 110, 2**31 - 1])
    assert longer(jobs, 20).runtime.tolist() == [2, 120, 110, 2**31 - 1]


@pytest.mark.parametrize("targets", [(), (Target(queue="long", weight=4.0),)])
def test_each_scenario_is_simulated_with_its_warmup(targets):
    base = SHARED.replace(targets=targets)
    whole = period(base, jobs=1200)
    held = Holdout.of(whole, 6 * DAY, 10 * DAY, 2 * DAY)
    found = robustness(held, Proposal(base), Proposal(SJF), "mean-wait")
    assert [each.name for each in found] == list(SCENARIOS)
    for each in found:
        workload = SCENARIOS[each.name](held.period.workload)
        weight = np.where(workload.queue == 1, 4.0, 1.0)[held.counted] if targets else None
        before, after = (simulate(workload, config.system()).wait[held.counted] for config in (base, SJF))
        assert each.before == pytest.approx(np.average(before, weights=weight))
        assert each.after == pytest.approx(np.average(after, weights=weight))
        assert each.gain == pytest.approx(1 - each.after / each.before)
        assert (each.longest_before, each.longest_after) == (before.max(), after.max())
    assert found == robustness(held, Proposal(base), Proposal(SJF), "mean-wait")


def test_more_load_makes_waits_longer():
    held = Holdout.of(period(SHARED, jobs=1200), 6 * DAY, 10 * DAY, 2 * DAY)
    plain = held.outcome(Proposal(SHARED)).means()[0]
    some, more, longest = (each.before for each in robustness(held, Proposal(SHARED), Proposal(SJF), "mixed"))
    assert plain < some < more
    assert plain < longest
