"""95 % waits that the site wants: which of them a schedule meets."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import metrics
from qconf.config import Target
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.targets import absent_members, missed, target_results
from qconf.strategies import Proposal
from tests.qconf.evaluation.test_weights import WEIGHTS, outcome, wanting
from tests.qconf.recommend.test_recommend import history
from tests.qconf.small import DAY, period

PHYSICS = {"group": "physics", "users": ("u1", "u4")}


def test_targets_are_measured_by_queue_and_by_group():
    wanted = (Target(queue="long", p95_wait=60), Target(queue="short", weight=2.0), Target(**PHYSICS, p95_wait=9 * DAY))
    here = outcome(wanting(*wanted), np.arange(900) >= 100, jobs=900)
    waits = here.queue_waits[1], here.wait[np.isin(here.period.workload.user[100:], (1, 4))]
    long, physics = target_results(here)
    assert [long.what, physics.what] == ["queue long", "group physics"]
    assert [long.wanted, physics.wanted] == [60, 9 * DAY]
    assert [long.jobs, physics.jobs] == [wait.size for wait in waits]
    assert [long.p95_wait, physics.p95_wait] == [metrics.p95(wait) for wait in waits]
    assert [long.met, physics.met] == [False, True]
    assert missed(here) == pytest.approx(np.log((long.p95_wait + 60) / 120))


def test_a_target_without_jobs_is_met():
    here = outcome(wanting(Target(queue="long", p95_wait=0), Target(group="none", users=("x",), p95_wait=0)), only=[0])
    assert [(each.jobs, each.met) for each in target_results(here)] == [(0, True), (0, True)]
    assert missed(here) == 0
    alone = replace(here, period=replace(here.period, group=None))
    assert target_results(alone)[1].jobs == 0


def test_targets_are_measured_by_the_base_whatever_queues_a_proposal_has():
    base = wanting(Target(queue="long", p95_wait=60))
    one = base.queues[1].model_copy(update={"name": "all", "walltime": (0, 36000)})
    here = period(base)
    found = Outcome(here, Proposal(base.with_queues([one])).simulate(here))
    assert target_results(found)[0].jobs == (here.workload.queue == 1).sum()


def test_absent_users_and_groups_are_counted():
    base = wanting(Target(queue="long", weight=2.0), Target(group="g", users=("u1", *"abcdef"), weight=2.0))
    assert absent_members(history(base), base) == [
        "targets[1].users: 6 of the 7 users of group g have no job in this history: a, b, c, d, e, ..."
    ]
    assert absent_members(history(base), wanting(*WEIGHTS)) == []
    of_the_log = wanting(Target(group="chem", weight=2.0))
    warning = "targets[0].group: no job in this history is of group chem; "
    assert absent_members(history(base), of_the_log) == [f"{warning}it names no groups, so list the users"]
    past = history(base)
    past.jobs["group"] = ["bio", *["math"] * (len(past) - 1)]
    assert absent_members(past, of_the_log) == [f"{warning}its groups are bio, math"]
    past.jobs["group"] = "chem"
    assert absent_members(past, of_the_log) == []
