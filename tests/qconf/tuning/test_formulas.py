"""The family of orders: what its members say, and how a noisy month is smoothed."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from parsim import System, Workload, simulate
from qconf.tuning.formulas import GENERAL, Order, costs, family, lead, meaning, remoteness, smooth


def test_members_differ_and_the_general_one_is_among_them():
    orders = family()
    assert len({order.formula(64) for order in orders}) == len(orders) == 8
    away = remoteness(orders, GENERAL)
    assert away[orders.index(GENERAL)] == 0
    assert (np.delete(away, orders.index(GENERAL)) > 0).all()
    halfway = replace(GENERAL, patience=(7.5 * 15) ** 0.5)  # no member: as far from both that it lies between
    assert remoteness(orders, halfway).min() == pytest.approx(1)
    assert np.isclose(remoteness(orders, halfway), 1).sum() == 2


def test_what_distance_costs_falls_as_more_jobs_are_watched():
    orders = family()
    few, many = (costs(orders, GENERAL, 0.1, jobs) for jobs in (2500, 10_000))
    np.testing.assert_allclose(few, 0.1 * remoteness(orders, GENERAL))
    np.testing.assert_allclose(many, few / 4)


PLAIN = "(1 + (eligible_time / (1 * max(walltime, 1))) ** 2.5 * (ncpus / 8) ** 0.4) / max(walltime, 1)"
NARROW = (
    "(1 + (eligible_time / (144000 * (max(walltime, 1) / 36000) ** 0.7)) ** 2.5 * (ncpus / 12.5) ** 1.2)"
    " / (max(walltime, 1) ** 0.2 * ncpus ** 0.7)"
)


@pytest.mark.parametrize(
    ("order", "cores", "text"),
    [(Order(1.0, 0.0, 10, 1.0, 0.4), 64, PLAIN), (Order(0.2, 0.7, 40, 0.7, 1.2), 100, NARROW)],
)
def test_formulas_read_as_written(order, cores, text):
    assert order.formula(cores) == text
    assert order.formula(cores, weighted=True) == f"queue_priority * {text}"


def first(order, *, submit, cores, walltime):
    """Which of the jobs that wait for one on the whole machine starts first; all are as wide as lets one run."""
    jobs = Workload([0, *submit], [8, *cores], [400_100, *walltime], [400_100, *walltime])
    start = simulate(jobs, System.single(8, order=order.formula(8))).start
    return int(np.argmin(start[1:]))


SLOW = {"length": 0.0, "width": 0.0, "patience": 1000, "growth": 0.0, "urgency": 0.0}


@pytest.mark.parametrize(
    ("parameter", "before", "after", "jobs"),
    [
        ("length", 0.0, 1.0, {"submit": [10, 20], "cores": [8, 8], "walltime": [5000, 500]}),
        ("width", 0.0, 0.7, {"submit": [10, 20], "cores": [8, 5], "walltime": [5000, 5000]}),
        ("urgency", 0.0, 1.0, {"submit": [10, 20], "cores": [5, 8], "walltime": [5000, 5000]}),
    ],
)
def test_parameters_prefer_what_they_are_called_after(parameter, before, after, jobs):
    assert first(Order(**{**SLOW, parameter: before}), **jobs) == 0
    assert first(Order(**{**SLOW, parameter: after}), **jobs) == 1


def test_who_has_waited_many_times_his_walltime_goes_ahead_and_the_shorter_the_sooner():
    waiting = {"submit": [10, 400_000], "cores": [8, 8], "walltime": [50_000, 500]}
    assert first(Order(**{**SLOW, "length": 1.0}), **waiting) == 1
    assert first(Order(**{**SLOW, "length": 1.0, "patience": 1}), **waiting) == 0
    together = {"submit": [10, 20], "cores": [8, 8], "walltime": [50_000, 5000]}
    assert first(Order(**SLOW), **together) == 0
    assert first(Order(**{**SLOW, "growth": 1.0}), **together) == 1


def test_smoothing_keeps_a_surface_and_takes_noise_away():
    orders = [Order(*each) for each in product((0.2, 0.6, 1.0, 1.4), (0, 0.35, 0.7, 1.05), (7.5, 15, 30, 60))]
    truth = np.array([[order.length**2 - order.width, np.log(order.patience) * order.length] for order in orders])
    np.testing.assert_allclose(smooth(orders, truth), truth, atol=1e-3)
    noise = np.random.default_rng(0).normal(0, 0.1, truth.shape)
    assert np.abs(smooth(orders, truth + noise) - truth).std() < 0.5 * np.abs(noise).std()


def test_smoothing_the_family_keeps_what_two_parameters_do_together():
    orders = family()
    truth = np.array([[order.length * order.width, order.width * np.log(order.patience)] for order in orders])
    np.testing.assert_allclose(smooth(orders, truth), truth, atol=1e-3)
    alone = np.eye(len(orders))[3]  # what all three would have to do together is noise
    assert smooth(orders, alone[:, None]).max() < 0.9


def test_lead_is_what_all_months_foretold_better_than_the_last_alone():
    free = np.zeros(2)
    steady, odd = np.array([-0.3, 0.0]), np.array([0.0, -0.1])  # the first member is better, but for an odd month
    assert lead([steady], free) == 0
    assert lead([steady, steady, steady], free) == 0  # both foretell the same
    assert lead([steady, odd, steady], free) == pytest.approx(0.3)  # the odd one alone would have chosen the second
    assert lead([steady, odd, odd], free) == pytest.approx(-0.1)  # where all still choose the first
    # What costs 0.5 is not chosen after one month, but after two: the more months there are, the less it counts.
    assert lead([steady, steady, steady], np.array([0.5, 0.0])) == pytest.approx(0.3)


def test_every_member_says_what_it_does_and_no_other_formula_is_taken_for_one():
    order = Order(patience=15, growth=0.8)
    words = meaning(order.formula(128), 128)
    assert words.startswith(
        "short and narrow jobs first; a job of 10 h counts twice when it has waited 15 h, one of 1 h after 2.4 h"
    )
    assert meaning(order.formula(128, weighted=True), 128) == words
    told = {order: meaning(order.formula(100), 100) for order in family()}
    assert all(told.values())
    assert len(set(told.values())) == 2  # patience is told
    assert meaning("eligible_time", 100) == ""
    assert meaning(order.formula(128), 100) == ""
