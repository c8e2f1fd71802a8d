import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import qmc

from qconf.strategies.partitioning.bounds import (
    Bounds,
    least_slack,
    lower_bounds,
    outermost,
    proportional_matrix,
    utilization,
)
from qconf.strategies.partitioning.samples import feasible_samples
from qconf.strategies.partitioning.sizes import partition_space
from qconf.strategies.partitioning.sobol import DIRECTIONS, sobol
from tests.qconf.small import DAY, LONG, SHORT, site, training, two


def unbound(least):
    """Bounds with the least sizes and no other constraint."""
    return Bounds(least, least, 0.0, np.zeros(least.size), ())


def least_fraction(goal, low, total, matrix, limit):
    """Return the least of `goal` over fractions above `low` with ``matrix @ fractions <= limit``; None without any."""
    found = linprog(
        goal,
        A_ub=matrix if len(matrix) else None,
        b_ub=limit if len(matrix) else None,
        A_eq=np.ones((1, low.size)),
        b_eq=[1.0],
        bounds=[(value / total, 1.0) for value in low],
    )
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("dimensions", range(1, len(DIRECTIONS) + 1))
def test_points_are_those_of_scipy(dimensions):
    for seed in (0, 5):
        points = qmc.Sobol(dimensions, scramble=True, rng=np.random.default_rng(seed)).random_base2(7)
        assert (sobol(128, dimensions, seed) == points).all()
        assert (sobol(100, dimensions, seed) == points[:100]).all()


def test_dimensions_with_the_same_directions_have_nothing_to_do_with_each_other():
    points = sobol(1024, 40, 0)
    correlated = np.abs(np.corrcoef(points.T) - np.eye(40))
    assert correlated.max() < 0.2
    assert np.abs(np.sort(points, axis=0) - (np.arange(1024) + 0.5)[:, None] / 1024).max() <= 0.5 / 1024


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(1, 200), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_samples_are_divisions_above_the_least_sizes(least, free, seed):
    least = np.array(least, dtype=np.int64)
    samples = feasible_samples(17, int(least.sum()) + free, unbound(least), seed)
    assert samples.shape == (17, least.size)
    assert (samples.sum(axis=1) == least.sum() + free).all()
    assert (samples >= least).all()


def test_samples_spread_evenly_over_the_simplex():
    samples = feasible_samples(1024, 3000, unbound(np.zeros(3, dtype=np.int64)), 1)
    assert np.abs(samples.mean(axis=0) - 1000).max() < 30
    assert np.abs((samples < 500).mean(axis=0) - (1 - (5 / 6) ** 2)).max() < 0.03


def test_the_same_seed_gives_the_same_samples_and_another_gives_others():
    one, same, other = (feasible_samples(8, 100, unbound(np.array([1, 2, 3])), seed) for seed in (5, 5, 6))
    assert (one == same).all()
    assert (one != other).any()


def test_feasible_samples_keep_the_proportional_constraint():
    share = np.array([0.2, 0.3, 0.5])
    bounds = Bounds(np.array([5, 5, 5]), np.array([5, 5, 5]), 0.4, share, ())
    samples = feasible_samples(50, 200, bounds, 0)
    assert samples.shape == (50, 3)
    assert all(bounds.proportional(each) for each in samples)


def test_samples_keep_a_narrow_constraint_to_a_node():
    share = np.array([0.005, 0.495, 0.5])  # the least size of the first is twice its share
    low = np.array([10, 0, 0])
    bounds = Bounds(low, low, least_slack(low, share, 1000), share, ())
    samples = feasible_samples(50, 1000, bounds, 0)
    assert all(bounds.proportional(each) for each in samples)
    assert len(np.unique(samples, axis=0)) > 30


def test_mixtures_of_corners_are_sampled_where_the_simplex_has_few_feasible_divisions():
    share = np.array([0.1, 0.2, 0.3, 0.4])
    least = np.zeros(4, dtype=np.int64)
    bounds = Bounds(least, least, 0.02, share, ())
    samples = feasible_samples(40, 10_000, bounds, 0)
    assert sum(bounds.proportional(each) for each in samples) == 40
    assert len(np.unique(samples, axis=0)) > 30


def test_the_tolerance_is_that_of_whole_nodes():
    rng = np.random.default_rng(0)
    share = np.array([0.02, 0.38, 0.6])
    bounds = Bounds(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), 0.2, share, ())
    matrix, limit = proportional_matrix(share, 0.2, 1 / 100)
    kept = []
    for _ in range(300):
        nodes = rng.multinomial(100, share)
        kept.append(bounds.proportional(nodes))
        assert kept[-1] == bool((matrix @ (nodes / 100) <= limit + 1e-12).all())
    assert 0 < sum(kept) < 300


def test_the_proportional_constraint_binds_every_pair_that_has_a_share():
    matrix, limit = proportional_matrix(np.array([0.5, 0.5, 0.0]), 0.3)
    assert matrix.shape == (2, 3)
    assert not limit.any()
    assert (matrix @ np.array([0.5, 0.4, 0.1]) <= 0).all()
    assert (matrix @ np.array([0.6, 0.3, 0.1]) > 0).any()


def test_the_least_slack_just_allows_bounds_and_proportions_together():
    share, low = np.array([0.5, 0.5]), np.array([75, 0])
    assert least_slack(low, share, 100) == pytest.approx(1 - 25 / 75, abs=1e-4)
    assert least_slack(np.array([50, 0]), share, 100) == 0
    assert least_slack(low, np.array([1.0, 0.0]), 100) == 0


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), min_size=2, max_size=6),
    st.integers(0, 300),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_the_least_slack_is_that_of_linear_programs(queues, free, one_sided):
    low, weight = np.array(queues).T
    assume(weight.sum() > 0 and low.sum() + free > 0)
    share, total = weight / weight.sum(), int(low.sum()) + free

    def feasible(slack):
        matrix = proportional_matrix(share, slack, one_sided=one_sided)
        return least_fraction(np.zeros(low.size), low, total, *matrix) is not None

    slack = least_slack(low, share, total, one_sided=one_sided)
    assert feasible(min(slack + 1e-4, 1.0))
    assert slack < 1e-4 or not feasible(slack - 1e-4)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 50)), min_size=1, max_size=6),
    st.integers(0, 300),
    st.sampled_from([0.0, 0.1, 0.3, 0.9, 1.0]),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_outermost_divisions_are_feasible_and_go_as_far_as_linear_programs(queues, free, slack, one_sided):
    low, weight = np.array(queues).T
    total = int(low.sum()) + free
    assume(total > 0)
    bounds = Bounds(low, low, slack, weight / max(weight.sum(), 1), (), one_sided)
    found = outermost(total, bounds) / total
    matrix, limit = proportional_matrix(bounds.share, slack, 0.5 / total, one_sided=one_sided)
    for k, goal in enumerate(np.eye(low.size)):
        least, most = (least_fraction(sign * goal, low, total, matrix, limit) for sign in (1, -1))
        assert (least is None) == (len(found) == 0)
        if least is not None:
            assert found[:, k].min() == pytest.approx(least, abs=1e-6)
            assert found[:, k].max() == pytest.approx(-most, abs=1e-6)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(found)))
    assert (found >= low / total - 1e-9).all()
    assert (found @ matrix.T <= limit + 1e-9).all()


def test_utilization_falls_with_the_size_of_a_large_partition():
    here = training(two(), jobs=800, span=4 * DAY)
    curve = utilization(here, partition_space(here), 1)
    assert curve.shares[-1] < curve.shares.max()
    assert (curve.shares <= 1 + 1e-9).all()
    assert curve.waits[-1] <= curve.waits[0]


def test_bounds_fit_the_machine_and_hold_the_widest_jobs():
    here = training(two(), jobs=3000, span=5 * DAY)  # overload: the bounds may exceed the machine
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.3, 0.9)
    assert bounds.low.sum() <= space.total
    assert (bounds.low >= space.widest).all()
    assert least_slack(bounds.low, bounds.share, space.total) <= bounds.slack + 1e-6
    if bounds.wanted.sum() > space.total:
        assert "moved" in bounds.notes[0]


def test_bounds_that_contradict_the_proportions_raise_the_slack_with_a_note():
    base = site({**SHORT, "cores": (8, 8), "walltime": (0, 600)}, LONG)
    here = training(base, jobs=400)
    bounds = lower_bounds(here, partition_space(here), 0.0, 0.9)
    assert bounds.slack > 0
    assert "slack raised" in bounds.notes[-1]


def test_a_queue_without_jobs_is_bound_by_the_narrowest_job_it_admits_alone():
    here = training(two(), only=[1])
    bounds = lower_bounds(here, partition_space(here), 0.3, 0.9)
    assert bounds.low[0] == 1
    assert bounds.share[0] == 0
    assert bounds.proportional(np.array([1, 63]))


def test_one_sided_proportions_bind_a_queue_to_those_before_it_alone():
    share = np.array([0.5, 0.3, 0.2])
    bounds = Bounds(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), 0.0, share, (), one_sided=True)
    assert bounds.proportional(np.array([70, 20, 10]))  # the first has more than its share
    assert not bounds.proportional(np.array([30, 30, 40]))
    matrix, _ = proportional_matrix(share, 0.0, one_sided=True)
    assert len(matrix) == 3
    assert (matrix @ np.array([0.7, 0.2, 0.1]) <= 0).all()
    assert (matrix @ np.array([0.3, 0.3, 0.4]) > 0).any()
    samples = feasible_samples(40, 200, bounds, 0)
    assert all(bounds.proportional(each) for each in samples)
    assert len(np.unique(samples, axis=0)) > 30  # with both sides the exact proportions alone are left
    assert least_slack(np.array([50, 0, 0]), share, 100, one_sided=True) == 0
    assert least_slack(np.array([0, 0, 50]), share, 100, one_sided=True) > 0


@pytest.mark.parametrize("excess", ["toward-widest", "proportional", "dropped"])
def test_bounds_that_exceed_the_machine_are_made_to_fit(excess):
    here = training(two(), jobs=3000, span=5 * DAY)
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.3, 0.1, excess=excess)  # as large as the machine, each
    assert bounds.wanted.sum() > space.total
    assert (bounds.low >= space.widest).all()
    assert bounds.low.sum() <= space.total
    assert (bounds.low == space.widest).all() == (excess == "dropped")
    assert ("dropped" in bounds.notes[0], "in proportion" in bounds.notes[0]) == (
        excess == "dropped",
        excess == "proportional",
    )
