"""Weights of queues and of groups of users in means."""

import numpy as np
import pytest

from qconf.config import Target
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.score import WEIGHTED, means, reduction
from tests.qconf.recommend.test_recommend import history
from tests.qconf.small import DAY, period, two

WEIGHTS = (Target(queue="long", weight=3.0), Target(group="physics", users=("u1", "u4"), weight=0.5))


def wanting(*targets):
    return two(targets=targets, mode="shared")


def outcome(base, counted=None, **about):
    here = period(base, **about)
    return Outcome(here, here.simulate(base), counted)


def expected_weight(here):
    grouped = np.isin(here.workload.user, (1, 4))
    return np.where(here.workload.queue == 1, 3.0, 1.0) * np.where(grouped, 0.5, 1.0)


def test_a_job_weighs_as_its_queue_times_its_group():
    here = period(wanting(*WEIGHTS))
    assert here.weight.tolist() == expected_weight(here).tolist()
    assert set(here.weight.tolist()) == {0.5, 1.0, 1.5, 3.0}
    assert here.mean(here.workload.cores) == pytest.approx(
        (here.workload.cores * here.weight).sum() / here.weight.sum()
    )


@pytest.mark.parametrize("targets", [(), (Target(queue="long", p95_wait=60),), (Target(queue="long", weight=1.0),)])
def test_without_weights_all_jobs_are_alike(targets):
    here = outcome(wanting(*targets))
    assert here.period.weight is None
    assert here.means().tolist() == [here.wait.mean(), here.slowdown.mean()]
    assert here.period.mean(here.wait) == here.wait.mean()
    assert not set(WEIGHTED) & set(here.summary.overall)
    assert means(here.summary).tolist() == here.means().tolist()


def test_groups_are_those_of_the_users_that_the_log_names():
    base = wanting(*WEIGHTS)
    here, read = period(base), Period.of(history(base), base)
    assert read.group.tolist() == here.group.tolist()
    assert read.weight.tolist() == here.weight.tolist()
    assert Period.of(history(base), wanting(WEIGHTS[0])).group is None


def test_a_group_without_users_is_the_group_of_that_name_in_the_log():
    base = wanting(Target(group="chem", weight=2.0), WEIGHTS[1], Target(group="bio", p95_wait=60))
    past = history(base, jobs=6)
    past.jobs["user"] = ["u0", "u1", "u0", "u4", "u0", ""]
    past.jobs["group"] = ["chem", "chem", "bio", "physics", "physics", ""]
    here = Period.of(past, base)
    assert here.group.tolist() == [0, 1, 2, 1, -1, -1]
    assert here.weight.tolist() == [2, 0.5, 1, 0.5, 1, 1]


def test_parts_and_resamples_keep_their_weights():
    whole = period(wanting(*WEIGHTS), jobs=700)
    held = Holdout.of(whole, 5 * DAY, 9 * DAY, DAY)
    resampled = held.resample(np.random.default_rng(0))
    parts = [held.period, resampled.period, *(epoch for _, epoch in whole.epochs((1.0, 2.0)))]
    for part in parts:
        assert len(part)
        assert part.weight.tolist() == expected_weight(part).tolist()


def test_means_are_weighted_over_the_counted_jobs_and_their_parts():
    counted = np.arange(1500) >= 100
    here = outcome(wanting(*WEIGHTS), counted, jobs=1500)
    weight = here.period.weight[counted]
    for part in (slice(None), slice(50, None)):
        values = here.wait[part], here.slowdown[part]
        assert here.means(part) == pytest.approx([np.average(each, weights=weight[part]) for each in values])
    assert means(here.summary) == pytest.approx(here.means())
    assert here.summary["mean_wait"] == here.wait.mean() != here.means()[0]


def test_a_gain_is_that_of_the_weighted_means():
    """Short jobs first is a large gain, but not where the long ones count."""
    orders, gains = ("fcfs", "eligible_time + (1e6 if walltime <= 7200 else 0)"), []
    for targets in ((), (Target(queue="long", weight=1e6),)):
        here = period(wanting(*targets), jobs=1500)
        before, after = (Outcome(here, here.simulate(here.base.replace(order=order))) for order in orders)
        gains.append(reduction(after.summary, before.summary, "mean-wait"))
        assert gains[-1] == pytest.approx(1 - after.means()[0] / before.means()[0])
    assert gains[0] > 0.25
    assert gains[1] < 0.1
