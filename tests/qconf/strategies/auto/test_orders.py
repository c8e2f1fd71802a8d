"""The general order and the family of others: formulas, penalties, and smoothing of a noisy period."""

import numpy as np
import pytest

from parsim import System, Workload, simulate
from parsim.naive.formula import formula_value
from qconf.strategies.auto.orders import (
    DISTANCE_PENALTY,
    FORMULAS,
    PRIOR_PENALTY,
    Order,
    forecast_skill,
    general,
    usual_longest,
)

HOUR, DAY = 3600, 86400


def test_candidates_differ_and_the_general_order_is_the_first():
    orders = FORMULAS.members
    assert len(orders) == 240
    assert len(set(FORMULAS.candidates(1000, DAY))) == 241
    assert FORMULAS.candidates(1000, DAY) == [general(1000, DAY), *(order.formula(DAY) for order in orders)]
    assert FORMULAS.distance[orders.index(FORMULAS.middle)] == 0
    assert (np.delete(FORMULAS.distance, orders.index(FORMULAS.middle)) > 0).all()


def test_only_the_general_order_has_no_penalty_and_the_prior_penalty_falls_with_the_jobs():
    middle = 1 + FORMULAS.members.index(FORMULAS.middle)
    few, many = FORMULAS.penalties(2500), FORMULAS.penalties(5000)
    assert (few.argmin(), few[0], many[0]) == (0, 0.0, 0.0)
    assert (few[middle], many[middle]) == (pytest.approx(PRIOR_PENALTY), pytest.approx(PRIOR_PENALTY / 2))
    np.testing.assert_allclose(few[1:] - PRIOR_PENALTY, DISTANCE_PENALTY * FORMULAS.distance)
    np.testing.assert_allclose(many[1:] - PRIOR_PENALTY / 2, DISTANCE_PENALTY * FORMULAS.distance)


def test_the_family_is_smoothed_and_the_general_order_left_as_it_is():
    values = np.random.default_rng(0).normal(size=(241, 2))
    found = FORMULAS.smoothed(values)
    assert found[0].tolist() == values[0].tolist()
    np.testing.assert_array_equal(found[1:], FORMULAS.smooth(values[1:]))


def test_in_the_general_order_a_job_of_ten_hours_on_an_eighth_of_the_machine_counts_twice_after_fifteen():
    text = (
        "(1 + (eligible_time / (54000 * (max(walltime, 1) / 36000) ** 0.8)) ** 2.5 * (ncpus / 12.5) ** 1.2)"
        " / (max(walltime, 1) * ncpus ** 0.7)"
    )
    assert general(100, DAY) == f"{text} * (1 + (eligible_time / 43200) ** 3)"

    def value(eligible_time, walltime, ncpus):
        return formula_value(text, eligible_time=eligible_time, walltime=walltime, ncpus=ncpus)

    assert value(54000, 36000, 12.5) == pytest.approx(2 * value(0, 36000, 12.5))
    assert value(54000 * 0.1**0.8, 3600, 12.5) == pytest.approx(2 * value(0, 3600, 12.5))  # the shorter the sooner
    assert value(54000, 36000, 25) > 3 * value(0, 36000, 25)  # the wider the sooner
    assert value(0, 3600, 10) == pytest.approx(10 * value(0, 36000, 10))
    assert value(0, 3600, 20) == pytest.approx(value(0, 3600, 10) / 2**0.7)


def test_a_job_ages_by_a_share_of_the_usual_longest_wait():
    plain, aged = (
        order.removesuffix(")").split(" * (1 + (eligible_time / ") for order in (general(8, DAY), general(8, 2 * DAY))
    )
    assert plain[0] == aged[0]
    assert (plain[1], aged[1]) == ("43200) ** 3", "86400) ** 3")
    waited = {"walltime": 36000, "ncpus": 1}
    text = Order(1, 2, 0, 0.5).formula(DAY)
    young = (43200 + 36000) / 36000**2
    assert formula_value(text, eligible_time=43200, **waited) == pytest.approx(2 * young)


@pytest.mark.parametrize(
    ("hours", "usual"),
    [
        ([12], 11),  # 2 ** 3.5
        ([60], 64),
        ([0, 0.2], 1),  # an hour at least
        ([500, 8, 16, 32], 16),  # of the last three
        ([16, 16, 18], 16),  # a little more is the same
    ],
)
def test_the_usual_longest_wait_is_the_geometric_mean_of_the_last_periods_rounded(hours, usual):
    assert usual_longest([3600.0 * hour for hour in hours]) == 3600 * usual


PLAIN = "(eligible_time + walltime) / max(walltime, 1) ** 1.3 * (1 + (eligible_time / 86400) ** 3)"
STRONG = "(eligible_time + 3 * walltime) / max(walltime, 1) ** 2 * ncpus ** -0.5 * (1 + (eligible_time / 30240) ** 3)"


@pytest.mark.parametrize(("order", "text"), [(Order(1, 1.3, 0, 1), PLAIN), (Order(3, 2, 0.5, 0.35), STRONG)])
def test_formulas_have_readable_numbers(order, text):
    assert order.formula(DAY) == text


def test_parameters_prefer_short_narrow_and_long_waiting_jobs():
    """Three jobs wait for one that has the whole machine."""
    submit, cores, walltime = [0, 10, 10, 10], [8, 8, 8, 4], [1000, 5000, 500, 5000]
    jobs = Workload(submit, cores, walltime, walltime)

    def turns(order):
        return np.argsort(simulate(jobs, System.single(8, order=order.formula(DAY))).start, kind="stable").tolist()

    assert turns(Order(1, 2, 0)) == [0, 2, 1, 3]
    assert turns(Order(1, 2, 0.5)) == [0, 2, 3, 1]
    late = Workload([0, 10, 400_000], [8, 8, 8], [400_100, 50_000, 500], [400_100, 50_000, 500])
    for longest, first in ((100 * DAY, 2), (HOUR, 1)):
        start = simulate(late, System.single(8, order=Order(1, 2, 0).formula(longest))).start
        assert start[first] < start[3 - first]


def test_smoothing_keeps_a_surface_and_removes_noise():
    orders = FORMULAS.members
    truth = np.array([[order.length**2 - order.width, np.log(order.age) * order.length] for order in orders])
    np.testing.assert_allclose(FORMULAS.smooth(truth), truth, atol=1e-3)
    noise = np.random.default_rng(0).normal(0, 0.1, truth.shape)
    assert np.abs(FORMULAS.smooth(truth + noise) - truth).std() < 0.5 * np.abs(noise).std()


def test_forecast_skill_is_the_score_by_which_all_periods_forecast_better_than_the_last_alone():
    free = np.zeros(2)
    steady, odd = np.array([-0.3, 0.0]), np.array([0.0, -0.1])  # the first order is better, except in an odd period
    assert forecast_skill([steady], free) == 0
    assert forecast_skill([steady, steady, steady], free) == 0  # both forecasts are the same
    # The odd period alone chooses the second order, all periods together choose the first.
    assert forecast_skill([steady, odd, steady], free) == pytest.approx(0.3)
    assert forecast_skill([steady, odd, odd], free) == pytest.approx(-0.1)
    # A penalty of 0.5 prevails after one period and not after two: the more periods, the less it weighs.
    assert forecast_skill([steady, steady, steady], np.array([0.5, 0.0])) == pytest.approx(0.3)
