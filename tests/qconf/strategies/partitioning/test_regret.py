from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from qconf.config import Target
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.regret import (
    FINER,
    GEOMETRIC,
    MOST_SIZES,
    WINDOW,
    Regret,
    estimated,
    optimum,
    regret,
    tabulate,
)
from qconf.strategies.partitioning.sizes import partition_space
from tests.qconf.small import DAY, site, three, training

TINY = (
    {"name": "a", "cores": (1, 3), "walltime": (0, 3600), "partition": 6},
    {"name": "b", "cores": (1, 4), "walltime": (0, 7200), "partition": 10},
    {"name": "c", "cores": (2, 5), "walltime": (0, 9000), "partition": 8},
)


def every(here, space):
    k = space.queues.size
    for sizes in product(range(1, space.total + 1), repeat=k - 1):
        nodes = np.array([*sizes, space.total - sum(sizes)])
        if (nodes >= space.widest).all():
            yield nodes, here.weighted_wait(here.base.with_partitions(nodes.tolist()))


@pytest.mark.parametrize("seed", range(3))
def test_the_free_optimum_is_the_best_division_of_all(seed):
    here = training(site(*TINY, cores=24), jobs=250, seed=seed, span=3 * 86400)
    space = partition_space(here)
    found = optimum(here, space, None)
    assert not found.doubts
    assert found.wait == pytest.approx(min(wait for _, wait in every(here, space)))
    assert here.weighted_wait(here.base.with_partitions(found.nodes.tolist())) == pytest.approx(found.wait)


@pytest.mark.parametrize("seed", range(3))
def test_the_constrained_optimum_is_the_best_division_that_keeps_the_constraints(seed):
    here = training(site(*TINY, cores=24), jobs=250, seed=seed, span=3 * 86400)
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.5, 0.9)
    found = optimum(here, space, bounds)
    assert bounds.keeps(found.nodes)
    waits = [wait for nodes, wait in every(here, space) if bounds.keeps(nodes)]
    assert found.wait == pytest.approx(min(waits))


def test_with_reservations_a_local_search_continues_from_the_table():
    here = training(three(), jobs=200)
    found = optimum(here, partition_space(here), None)
    assert found.doubts == "jobs start by advance reservation"
    tabulated = here.weighted_wait(here.base.with_partitions([*found.tabulated_nodes.tolist(), 0]))
    assert found.wait <= tabulated
    assert 0 < found.simulations <= 60


def test_doubts_are_named():
    limited = site(*({**queue, "max_run": 2} for queue in TINY), cores=24, order="lxf")
    assert estimated(training(limited, jobs=20)) == "limits hold jobs, the order is lxf"
    fixed = site(*TINY, cores=24, fixed=("queues.a.partition",))
    assert estimated(training(fixed, jobs=20)) == "some partitions are fixed"
    assert estimated(training(site(*TINY, cores=24), jobs=20)) == ""
    weighted = [Target(queue="a", weight=2.0), Target(group="g", users=("u1",), p95_wait=60)]
    assert estimated(training(site(*TINY, cores=24, targets=weighted), jobs=20)) == ""
    weighted[1] = weighted[1].model_copy(update={"weight": 3.0})
    assert estimated(training(site(*TINY, cores=24, targets=weighted), jobs=20)) == "groups of users have weights"


@pytest.mark.parametrize("targets", [[Target(queue="a", weight=9.0)], [Target(group="g", users=("u1",), weight=9.0)]])
def test_the_optimum_is_that_of_the_weighted_wait(targets):
    here = training(site(*TINY, cores=24, targets=targets), jobs=250, span=3 * 86400)
    found = optimum(here, partition_space(here), None)
    assert found.wait == pytest.approx(here.weighted_wait(here.base.with_partitions(found.nodes.tolist())))
    best = min(wait for _, wait in every(here, partition_space(here)))
    assert found.wait == pytest.approx(best, rel=0.01 if found.doubts else 1e-6)


@pytest.mark.parametrize("make", [lambda: site(*TINY, cores=24), three])
def test_a_regret_is_the_distance_to_the_best(make):
    here = training(make(), jobs=200)
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.3, 0.9)
    tight = optimum(here, space, bounds)
    at_best = regret(here, space, bounds, tight.nodes)
    assert at_best.to_constrained == pytest.approx(0)
    assert at_best.free <= at_best.constrained + 1e-9
    worse = space.widest.copy()
    worse[0] += space.total - worse.sum()
    other = regret(here, space, bounds, worse)
    assert other.proven == (estimated(here) == "")
    if other.proven:
        assert other.free == pytest.approx(min(wait for _, wait in every(here, space)))
        assert other.to_free > 0


def test_a_division_better_than_the_best_found_replaces_it_if_it_keeps_the_constraints(monkeypatch):
    here = training(site(*TINY, cores=24), jobs=250)
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.5, 0.9)
    best = optimum(here, space, bounds)
    outside = next(nodes for nodes, _ in every(here, space) if not bounds.keeps(nodes))
    found = replace(best, wait=1e9, doubts="limits hold jobs")
    monkeypatch.setattr("qconf.strategies.partitioning.regret.optimum", lambda *_: found)
    assert regret(here, space, bounds, best.nodes).constrained == pytest.approx(best.wait)
    assert regret(here, space, bounds, outside).constrained == 1e9
    monkeypatch.setattr("qconf.strategies.partitioning.regret.optimum", lambda *_: replace(found, doubts=""))
    assert regret(here, space, bounds, best.nodes).to_constrained < 0  # a wrong proof is visible


def test_constraints_that_no_division_keeps_are_reported():
    here = training(site(*TINY, cores=24), jobs=200)
    space = partition_space(here)
    bounds = replace(lower_bounds(here, space, 0.3, 0.9), low=space.widest + space.total)
    tight, free = optimum(here, space, bounds), optimum(here, space, None)
    assert tight.doubts == "no division keeps the constraints"
    assert tight.wait == free.wait
    assert not regret(here, space, bounds, free.nodes).proven


def huge(cores, seed=0, jobs=200):
    """Three queues by width on a machine that they fill; their widest jobs need half of it."""
    edges = np.geomspace(1, cores // 3, 4).astype(int).tolist()
    queues = [
        {"name": f"q{i}", "cores": (low, high), "walltime": (0, 36000), "partition": 1}
        for i, (low, high) in enumerate(pairwise(edges))
    ]
    here = training(site(*queues, cores=cores, mode="shared"), jobs=jobs, seed=seed, span=3 * DAY)
    return here, partition_space(here)


@pytest.mark.parametrize("cores", [10**4, 10**6, 10**9])
def test_the_sizes_that_are_tabulated_do_not_grow_with_the_machine(cores):
    here, space = huge(cores)
    bounds = lower_bounds(here, space, 0.3, 0.9)
    free, tight = optimum(here, space, None), optimum(here, space, bounds)
    assert free.doubts.startswith("one size in")
    assert bounds.keeps(tight.nodes)
    assert free.wait <= tight.wait
    rounds = 1 + np.ceil(np.log(cores / MOST_SIZES) / np.log(FINER))
    most = GEOMETRIC + 2 * (MOST_SIZES + rounds * (2 * WINDOW * FINER + 1))  # on two grids
    assert 0 < max(len(known) for known in tabulate(here, space, 1).known) <= most


def test_more_jobs_have_fewer_sizes_tabulated(monkeypatch):
    monkeypatch.setattr("qconf.strategies.partitioning.regret.MOST_WORK", 200 * 150)
    here, space = huge(10**4)
    optimum(here, space, None)
    assert 0 < max(len(known) for known in tabulate(here, space, 1).known) < 400


@pytest.mark.parametrize("seed", range(4))
def test_the_best_division_on_a_grid_comes_near_that_of_all_sizes(monkeypatch, seed):
    here, space = huge(1000, seed)
    bounds = lower_bounds(here, space, 0.5, 0.9)
    best = [optimum(here, space, each) for each in (None, bounds)]
    assert not any(each.doubts for each in best)
    monkeypatch.setattr("qconf.strategies.partitioning.regret.MOST_SIZES", 64)
    again = replace(here)
    coarse = [optimum(again, space, each) for each in (None, bounds)]
    assert 0 < len(tabulate(again, space, 1).known[0]) < len(tabulate(here, space, 1).known[0])
    for all_sizes, some in zip(best, coarse, strict=True):
        assert all_sizes.wait <= some.wait <= 1.05 * all_sizes.wait
        assert here.weighted_wait(space.configured(here.base, some.nodes)) == pytest.approx(some.wait)


def test_a_single_queue_is_settled_without_a_table():
    here = training(site({**TINY[0], "partition": 50_000}, cores=50_000), jobs=300, span=3600)
    space = partition_space(here)
    found = optimum(here, space, None)
    assert (found.nodes.tolist(), found.doubts) == ([50_000], "")
    assert len(tabulate(here, space, 1).known[0]) == 1


def test_a_size_is_simulated_once():
    here, space = huge(1000)
    table = tabulate(here, space)
    first = table.columns([np.array([500, 600])] * 3)
    table.known[0][500] += 1
    again = table.columns([np.array([500, 600, 700])] * 3)
    assert again[0][0] == first[0][0] + 1
    assert (again[1][:2] == first[1]).all()


def test_a_regret_in_per_cent():
    entry = Regret(120.0, 100.0, 80.0, proven=True).step().record()
    assert (entry["above_constrained_percent"], entry["above_free_percent"]) == (20.0, 50.0)
    assert Regret(0.0, 0.0, 0.0, proven=True).to_free == 0
    assert Regret(1.0, 0.0, 0.0, proven=True).to_free == np.inf
