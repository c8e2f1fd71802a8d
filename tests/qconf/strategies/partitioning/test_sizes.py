import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.evaluation.feasibility import never_start
from qconf.evaluation.period import NotApplicableError, UnroutableError
from qconf.strategies import propose
from qconf.strategies.partitioning.sizes import apportion, data_warnings, partition_space, proportional
from tests.qconf.small import LONG, SHORT, WIDE, period, site, three, training, two

#: A shared machine, which a job of the first queue may fill.
UNDIVIDED = site(*({**each, "partition": 0} for each in ({**SHORT, "cores": (1, 64)}, LONG)), mode="shared")


@st.composite
def divisions(draw):
    k = draw(st.integers(1, 6))
    least = np.array(draw(st.lists(st.integers(0, 40), min_size=k, max_size=k)), dtype=np.int64)
    shares = np.array(draw(st.lists(st.floats(0, 1e12), min_size=k, max_size=k)))
    return shares, int(least.sum()) + draw(st.integers(0, 500)), least


@given(divisions())
@settings(max_examples=300)
def test_shares_become_whole_sizes_of_the_given_sum_not_below_the_least(case):
    shares, total, least = case
    sizes = apportion(shares, total, least)
    assert sizes.dtype == np.int64
    assert sizes.sum() == total
    assert (sizes >= least).all()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6), st.integers(1, 5000))
def test_without_least_sizes_every_size_is_less_than_a_node_from_its_share(shares, total):
    shares = np.array(shares, dtype=np.float64)
    sizes = apportion(shares, total, np.zeros(shares.size, dtype=np.int64))
    assert np.abs(sizes - total * shares / shares.sum()).max() < 1 + 1e-6


@given(divisions(), st.floats(0.01, 100))
def test_only_the_ratio_of_shares_matters(case, factor):
    shares, total, least = case
    shares = np.round(shares)  # a product of fractions may round across a remainder
    assert np.abs(apportion(shares, total, least) - apportion(shares * factor, total, least)).max() <= 1


@pytest.mark.parametrize(
    ("shares", "total", "least", "rounding", "sizes"),
    [
        ([-1.0, 0.0], 10, [0, 0], (), [5, 5]),
        ([1.0, 30.0, 60.0], 100, [10, 0, 0], (), [10, 30, 60]),  # the others have the rest in proportion
        ([1.0, 2.0, 4.0], 10, [0, 0, 0], (), [1, 3, 6]),
        ([1.0, 2.0, 4.0], 10, [0, 0, 0], ("down",), [1, 2, 7]),  # what is left goes to the largest
    ],
)
def test_sizes_of_shares(shares, total, least, rounding, sizes):
    assert apportion(np.array(shares), total, np.array(least), *rounding).tolist() == sizes


def test_the_partition_space_has_no_reserved_queues_and_holds_the_widest_jobs():
    here = training(three())
    space = partition_space(here)
    assert space.queues.tolist() == [0, 1]
    assert space.widest.tolist() == here.period.widest[:2].tolist()
    assert space.cores(np.array([20, 44]), 3) == [20, 44, 0]
    nodes = proportional(space)
    assert nodes.sum() == 64
    assert (nodes >= space.widest).all()


def test_a_queue_without_jobs_has_the_least_size_of_its_narrowest_job_or_holds_what_it_admits():
    here = training(site({**SHORT, "cores": (4, 20)}, LONG), only=[1])
    assert partition_space(here).widest[0] == 4
    assert partition_space(here, "queue").widest.tolist() == [20, 16]


def test_sizes_are_in_whole_nodes():
    space = partition_space(training(two().replace(machine={"cores": 64, "cores_per_node": 8, "whole_nodes": True})))
    assert (space.node, space.total, space.widest.tolist()) == (8, 8, [1, 2])


@pytest.mark.parametrize(
    ("base", "jobs", "why"),
    [
        (site({**WIDE, "cores": (1, 64)}, mode="shared"), 10, "every queue starts by advance reservation"),
        (site({**SHORT, "cores": (1, 40)}, {**LONG, "cores": (33, 40)}), 200, "no partitions can hold them"),
        (two(), 0, "no job to train on"),
    ],
)
def test_a_machine_that_cannot_be_divided_is_refused_with_the_reason(base, jobs, why):
    with pytest.raises(NotApplicableError, match=why):
        partition_space(training(base, jobs))


def test_where_what_queues_admit_does_not_fit_partitions_hold_the_widest_jobs():
    here = training(UNDIVIDED, only=[1])
    space = partition_space(here, "queue")
    assert space.widest.tolist() == [1, 16]
    assert "do not fit the machine at once" in " ".join(data_warnings(here, space))
    with pytest.raises(NotApplicableError, match=r"need 80 of 64 cores together \(short 64, long 16\)"):
        partition_space(training(UNDIVIDED.replace(fixed=("queues.short.cores",)), only=[1]))


@pytest.mark.parametrize("name", ["pp", "static", "dp-nlp", "dqr", "hybrid", "exact"])
def test_no_queue_admits_what_its_partition_does_not_hold(name):
    here = training(UNDIVIDED, only=[1])
    found = propose(name, here, {"samples": 24})
    assert never_start(UNDIVIDED, found.config) == []
    assert all(queue.cores[1] <= found.config.reach(queue) for queue in found.config.queues)
    assert not found.refused(here.period, here.period.counted(0))


def test_jobs_above_a_lowered_limit_are_counted_and_simulated_all_the_same():
    here = training(UNDIVIDED, only=[1])
    found = propose("pp", here)
    most = found.config.queue("short").cores[1]
    later = period(UNDIVIDED)  # in short, too
    wide = (later.workload.queue == 0) & (later.workload.cores > most)
    to_long = wide & (later.workload.cores <= 16)  # which admits them
    assert wide.sum() > to_long.sum() > 0
    assert (found.routed(later).queue[to_long] == 1).all()
    assert (found.routed(later).queue[wide & ~to_long] == 0).all()
    assert found.verify(later, found.simulate(later)) == []
    (said,) = found.refused(later, later.counted(0))
    assert (said["refused"], said["jobs"]) == ((wide & ~to_long).sum(), len(later))
    with pytest.raises(UnroutableError):
        later.routed(found.config)
