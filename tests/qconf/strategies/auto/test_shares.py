"""Fairshare as policy: kept inside the orders that a search tries, given up only as a change of its own."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import Workload
from qconf.config import QueueConfig, SiteConfig, parse
from qconf.config.multifactor import Multifactor
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.period import Period
from qconf.recommend.ladder import rung_of
from qconf.strategies.auto.frame import Frame, policy_of

ORDER = "(eligible_time + walltime) / max(walltime, 1) ** 2"


def base(order: str, **fields: object) -> SiteConfig:
    config = parse("machine: {cores: 8}\nqueues:\n  - {name: a}\n")
    return config.replace(order=order, queues=(QueueConfig(name="a"),), **fields)


def period(config: SiteConfig) -> Period:
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(0, 5000, 40))
    return Period(Workload(submit, [1] * 40, [100] * 40, [200] * 40, user=rng.integers(0, 3, 40)), config)


@pytest.mark.parametrize(
    ("order", "name"),
    [("fairshare", "fairshare_factor"), ("fairshare_factor * ncpus", "fairshare_factor"), ("fair_share", "fair_share")],
)
def test_an_order_is_multiplied_by_what_a_user_should_have(order: str, name: str):
    jobs = period(base(order))
    assert policy_of(jobs) == ("fairshare",)
    assert Frame().config(jobs, ORDER).order == f"(0.01 + {name}) * {ORDER}"
    assert Frame(frozenset(("fairshare",))).config(jobs, ORDER).order == ORDER


def test_an_order_that_reads_no_shares_gets_none():
    jobs = period(base("lxf"))
    assert policy_of(jobs) == ()
    assert Frame().config(jobs, ORDER).order == ORDER


@pytest.mark.parametrize(("own", "points"), [("min(eligible_time, 600) + 77 * fair_share", 77), ("fairshare", 86400)])
def test_a_sum_gets_points_of_fairshare(own: str, points: int):
    jobs = period(base(own))
    found = Multifactor.of(Frame(sums=True).config(jobs, "min(eligible_time, 2592000)").order)
    assert found == Multifactor((), 2592000, fair_share=points)


def test_to_give_it_up_is_a_change_of_policy():
    config = base("fairshare")
    assert rung_of(config, config.replace(order="(0.01 + fairshare_factor) * eligible_time")) == 2
    assert rung_of(config, config.replace(order="eligible_time")) == 4
    assert rung_of(config.replace(policy=("fairshare",)), config.replace(order="eligible_time", policy=())) == 1


def test_use_beyond_shares_is_a_guard_rail():
    def values(distance: float) -> GuardValues:
        return GuardValues({}, 0.0, 0.8, distance=distance)

    rails = GuardRails()
    assert rails.broken(values(0.2), values(0.24), 30) == {}
    assert list(rails.broken(values(0.2), values(0.26), 30)) == ["shares"]
    assert rails.broken(GuardValues({}, 0.0, 0.8), GuardValues({}, 0.0, 0.8), 30) == {}
