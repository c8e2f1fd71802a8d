from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from qconf.strategies.partitioning.bounds import least_slack, lower_bounds, utilization
from qconf.strategies.partitioning.feasible import Feasible, feasible_samples
from qconf.strategies.partitioning.sizes import partition_space
from tests.qconf.small import DAY, LONG, SHORT, site, training, two


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


@given(st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(1, 200), st.integers(0, 3))
@settings(max_examples=30)
def test_samples_are_distinct_divisions_above_the_least_sizes(least, free, seed):
    feasible = Feasible(sum(least) + free, np.array(least, dtype=np.int64))
    samples = feasible_samples(17, feasible, seed)
    assert len({tuple(each) for each in samples}) == len(samples) <= 17
    assert all(feasible.keeps(each) for each in samples)
    assert len(samples) == 17 or free < 17 or len(least) == 1


def test_samples_spread_evenly_over_the_simplex():
    samples = np.array(feasible_samples(1024, Feasible(3000, np.zeros(3, dtype=np.int64)), 1))
    assert np.abs(samples.mean(axis=0) - 1000).max() < 30
    assert np.abs((samples < 500).mean(axis=0) - (1 - (5 / 6) ** 2)).max() < 0.03


def test_the_same_seed_gives_the_same_samples_and_another_gives_others():
    feasible = Feasible(100, np.array([1, 2, 3]))
    one, same, other = (np.array(feasible_samples(8, feasible, seed)) for seed in (5, 5, 6))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    ("low", "share", "slack", "total"),
    [
        ([5, 5, 5], [0.2, 0.3, 0.5], 0.4, 200),
        ([10, 0, 0], [0.005, 0.495, 0.5], None, 1000),  # the least size of the first is twice its share
        ([0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], 0.02, 10_000),  # few of the simplex are feasible: mixtures of corners
    ],
)
def test_as_many_samples_as_wanted_keep_the_constraints(low, share, slack, total):
    low, share = np.array(low), np.array(share)
    slack = least_slack(low, share, total) if slack is None else slack
    feasible = Feasible(total, low, slack, share)
    samples = feasible_samples(40, feasible, 0)
    assert all(feasible.keeps(each) for each in samples)
    assert len(samples) == 40


def spelled_out(feasible, nodes):
    """The constraints in the words of the paper, to a node of each size."""
    share, count = feasible.share, len(feasible.low)
    pairs = [(i, j) for i in range(count) for j in range(count) if i < j or (i > j and not feasible.one_sided)]
    return (
        sum(nodes) == feasible.total
        and all(nodes[i] >= feasible.low[i] for i in range(count))
        and all(
            nodes[i] + 1 >= (1 - feasible.slack) * share[i] / share[j] * (nodes[j] - 1) - 1e-6
            for i, j in pairs
            if share[i] > 0 and share[j] > 0
        )
    )


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9)), min_size=2, max_size=3),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.1, 0.3, 0.9, 1.0]),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=150)
def test_feasible_is_what_the_paper_says_and_rounding_stays_inside(queues, free, slack, one_sided, seed):
    """Of every division of a small machine; where one is feasible, whatever is rounded becomes a feasible one."""
    low, weight = np.array(queues).T
    assume(weight.sum() > 0)
    share, total = weight / weight.sum(), int(low.sum()) + free
    assume(total > 0)
    feasible = Feasible(total, low, max(slack, least_slack(low, share, total, one_sided=one_sided)), share, one_sided)
    every = [np.array([*each, total - sum(each)]) for each in product(range(total + 1), repeat=low.size - 1)]
    kept = [each for each in every if each[-1] >= 0 and feasible.keeps(each)]
    assert [each.tolist() for each in every if spelled_out(feasible, each)] == [each.tolist() for each in kept]
    sizes = np.random.default_rng(seed).dirichlet(np.ones(low.size)) * total
    rounded = feasible.rounded(sizes)
    assert rounded is not None
    assert feasible.keeps(rounded)
    for each in kept[:20]:
        assert feasible.rounded(each.astype(float)).tolist() == each.tolist()


def test_where_no_division_is_feasible_none_is_found():
    full = Feasible(10, np.array([8, 8]))
    assert not len(full.corners)
    assert full.middle is None
    assert feasible_samples(5, full, 0) == []


def proportions(share, slack, *, one_sided=False, total=1, tolerance=0.0):
    """A and b of ``A @ fractions <= b``, every pair."""
    bound = np.flatnonzero(share > 0)
    pairs = [(i, j) for i in bound for j in bound if i < j or (i > j and not one_sided)]
    matrix, limits = np.zeros((len(pairs), share.size)), np.zeros(len(pairs))
    for row, (i, j) in enumerate(pairs):
        ratio = (1 - slack) * share[i] / share[j]
        matrix[row, [i, j]] = -1.0, ratio
        limits[row] = tolerance * (1 + ratio) / total
    return matrix, limits


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
@settings(max_examples=200)
def test_the_least_slack_is_that_of_linear_programs(queues, free, one_sided):
    low, weight = np.array(queues).T
    assume(weight.sum() > 0 and low.sum() + free > 0)
    share, total = weight / weight.sum(), int(low.sum()) + free

    def feasible(slack):
        matrix = proportions(share, slack, one_sided=one_sided)
        return least_fraction(np.zeros(low.size), low, total, *matrix) is not None

    slack = least_slack(low, share, total, one_sided=one_sided)
    assert feasible(min(slack + 1e-4, 1.0))
    assert slack < 1e-4 or not feasible(slack - 1e-4)


def test_the_corners_are_feasible_and_go_as_far_as_linear_programs_without_a_pair_left_out():
    rng = np.random.default_rng(0)
    for slack, one_sided in product((0.1, 0.5), (False, True)):
        low, share = rng.integers(0, 60, 4), rng.dirichlet(np.ones(4))
        total = int(low.sum()) + 100
        wide = max(slack, least_slack(low, share, total, one_sided=one_sided))
        found = Feasible(total, low, wide, share, one_sided).corners / total
        matrix, limit = proportions(share, wide, one_sided=one_sided, total=total, tolerance=0.5)
        for k, goal in enumerate(np.eye(4)):
            least, most = (least_fraction(sign * goal, low, total, matrix, limit) for sign in (1, -1))
            assert found[:, k].min() == pytest.approx(least, abs=1e-6)
            assert found[:, k].max() == pytest.approx(-most, abs=1e-6)
        assert (found @ matrix.T <= limit + 1e-6).all()


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
    assert "the lower bound of short" in bounds.notes[-1]
    assert "and the proportional constraint clash: slack raised from 0.00" in bounds.notes[-1]


def test_a_queue_without_jobs_is_bound_by_the_narrowest_job_it_admits_alone():
    here = training(two(), only=[1])
    bounds = lower_bounds(here, partition_space(here), 0.3, 0.9)
    assert bounds.low[0] == 1
    assert bounds.share[0] == 0
    assert bounds.keeps(np.array([1, 63]))


def test_one_sided_proportions_bind_a_queue_to_those_before_it_alone():
    share = np.array([0.5, 0.3, 0.2])
    bounds = Feasible(100, np.zeros(3, dtype=np.int64), 0.0, share, one_sided=True)
    assert bounds.keeps(np.array([70, 20, 10]))  # the first has more than its share
    assert not bounds.keeps(np.array([30, 30, 40]))
    assert len(feasible_samples(40, bounds, 0)) == 40  # with both sides the exact proportions alone are left
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
