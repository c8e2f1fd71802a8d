from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from qconf.config import Target
from qconf.strategies.partitioning.bounds import lower_bounds
from qconf.strategies.partitioning.regret import Regret, allowed, estimated, optimum, regret, table_cost
from qconf.strategies.partitioning.sizes import partition_space
from tests.qconf.small import site, three, training

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
    assert allowed(found.nodes, bounds)
    waits = [wait for nodes, wait in every(here, space) if allowed(nodes, bounds)]
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
    assert table_cost(here, space)


def test_a_division_better_than_the_best_found_replaces_it_if_it_keeps_the_constraints(monkeypatch):
    here = training(site(*TINY, cores=24), jobs=250)
    space = partition_space(here)
    bounds = lower_bounds(here, space, 0.5, 0.9)
    best = optimum(here, space, bounds)
    outside = next(nodes for nodes, _ in every(here, space) if not allowed(nodes, bounds))
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


def test_a_regret_in_per_cent():
    entry = Regret(120.0, 100.0, 80.0, proven=True).step().record()
    assert (entry["above_constrained_percent"], entry["above_free_percent"]) == (20.0, 50.0)
    assert Regret(0.0, 0.0, 0.0, proven=True).to_free == 0
    assert Regret(1.0, 0.0, 0.0, proven=True).to_free == np.inf
