"""The families of orders that are sums, Slurm's, which its exporter can write, and Maui's, searched where wanted."""

import re

import pytest

from qconf.config.multifactor import TIER, Multifactor
from qconf.strategies import propose
from qconf.strategies.auto.families import CLASSES, FAMILIES, Classes, Weights
from qconf.strategies.auto.frame import Frame
from tests.qconf.strategies.auto.test_search import DAY, busy, first_come

HOUR = 3600


def test_a_halving_of_the_walltime_is_worth_a_share_of_the_longest_wait():
    order = Multifactor.of(Classes(0.25).formula(longest=32 * HOUR))
    assert [longest for longest, _ in order.classes] == [900 * 2**i for i in range(CLASSES)]
    assert [points for _, points in order.classes] == [8 * HOUR * (CLASSES - i) for i in range(CLASSES)]
    assert Classes(0.2).formula() == Classes(0.2).formula(longest=DAY)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_members_of_a_family_differ(family):
    members = FAMILIES[family]
    assert len({(each.order.formula(1000, 10 * DAY), each.delay) for each in members}) == len(members)
    assert {each.delay for each in members} == {0, DAY}


@pytest.mark.parametrize("kind", ["auto", "auto-guarded"])
def test_auto_proposes_a_sum_where_that_is_wanted(kind):
    here = busy(first_come())
    plain = propose(kind, here, {"orders": "multifactor"})
    assert Multifactor.of(plain.config.order) is not None
    assert Multifactor.of(propose(kind, here).config.order) is None


def test_queues_of_higher_priority_go_first_and_starvation_is_said_to_end():
    base = first_come()
    base = base.with_queues(
        [queue.model_copy(update={"priority": 1.0 + i, "starvation": DAY}) for i, queue in enumerate(base.queues)]
    )
    order = Classes().formula(longest=DAY)
    kept = Multifactor.of(Frame(sums=True).formula(base, order))
    assert kept.tiers == base.uses_priority
    assert not Multifactor.of(Frame(frozenset({"priorities"}), sums=True).formula(base, order)).tiers
    (said,) = Frame(sums=True).differences(base)
    assert said.startswith("the starvation periods of ")
    assert Frame(frozenset({"starvation"}), sums=True).differences(base) == []
    assert not Frame(sums=True).bounds_waits(base)


def test_mauis_weights_are_shares_of_the_longest_wait():
    assert Weights(0.01, 0.25).formula(longest=32 * HOUR) == (
        "1 * (eligible_time / 60) + 19.2 * ((eligible_time + walltime) / max(walltime, 1)) - 0.00555556 * walltime"
    )


def test_auto_proposes_mauis_weights_where_they_are_wanted():
    found = propose("auto", busy(first_come()), {"orders": "maui"}).config.order
    assert re.fullmatch(r"1 \* \(eligible_time / 60\) \+ .* - .* \* walltime", found)


@pytest.mark.parametrize("prioritised", [True, False])
def test_what_a_site_has_decided_stays_a_term_of_a_sum(prioritised):
    base = first_come()
    base = base.with_queues(
        [queue.model_copy(update={"priority": 1.0 + i * prioritised}) for i, queue in enumerate(base.queues)]
    )
    order = Weights().formula(longest=DAY)
    assert Frame(sums=True).formula(base, order) == (f"{TIER} * queue_priority + " if prioritised else "") + order
    shared = base.replace(order="fairshare")
    assert Frame(frozenset({"priorities"}), sums=True).formula(shared, order) == f"{order} + 1440 * fair_share"


def test_an_order_of_the_sites_own_has_its_policy_in_it_already():
    base = first_come()
    base = base.with_queues([queue.model_copy(update={"priority": 1.0 + i}) for i, queue in enumerate(base.queues)])
    own = "1 * (eligible_time / 60) - 5 * queue_priority"
    assert Frame().formula(base.replace(order=own), own) == own
    assert Frame().formula(base, "ncpus").startswith("queue_priority * ")
