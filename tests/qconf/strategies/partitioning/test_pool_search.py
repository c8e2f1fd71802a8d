"""The search of the pool: against measuring every division anew, and on a score that is known beforehand."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import metrics, simulate
from parsim.model.system import Pool
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.score import FLOORS, WEIGHTS
from qconf.strategies.partitioning.carving import CarvingSequence, with_pool
from qconf.strategies.partitioning.pool_search import TAIL, divisions, measure, search
from tests.qconf.small import DAY, three, training
from tests.qconf.strategies.partitioning.test_carving import array

POOL = Pool(threshold=0.5, entry="move", placement="combined")


def prepared():
    """Jobs, the machine, and the divisions in steps of 8 cores."""
    here = training(three(), jobs=500, span=6 * DAY)
    jobs, system = [epoch.workload for _, epoch in here.epochs], here.base.system()
    return here, jobs, system, divisions(CarvingSequence(array(24, 40, 0), here.period.widest, 8, pooled=True))


def found(degradation, pools=(POOL,), **options):
    here, jobs, system, sizes = prepared()
    settings = {"objective": "mean-wait", "workers": 1, **options}
    return search(here, jobs, system, pools, sizes, degradation=degradation, **settings)


def test_divisions_are_those_along_the_sequence_without_the_first():
    sizes = prepared()[3]
    assert [each.tolist() for each in sizes[:3]] == [[16, 40, 0], [16, 32, 0], [8, 32, 0]]
    assert sizes[-1].tolist() == [0, 0, 0]
    assert divisions(CarvingSequence(array(24), array(1), 8, array(0) > 0, pooled=True)) == []


def test_a_system_is_measured_as_its_epochs_are():
    here, jobs, system, sizes = prepared()
    divided = with_pool(system, sizes[2], POOL)
    assert (divided.mode, divided.pool.cores, [each.partition for each in divided.queues]) == ("hybrid", 24, [8, 32, 0])
    measured = measure(here, jobs, divided)
    schedules = [simulate(each, divided) for each in jobs]
    weights = [weight for weight, _ in here.epochs]
    means = [(each.wait.mean(), metrics.bounded_slowdown(each).mean()) for each in schedules]
    assert measured.sizes.tolist() == [8, 32, 0]
    assert measured.waits.overall == pytest.approx(np.dot(weights, [wait for wait, _ in means]))
    assert measured.scored[:2] == pytest.approx(np.average(means, axis=0, weights=weights))
    assert measured.scored[2] == max(each.wait.max() for each in schedules)
    of_first = [each.wait[jobs.queue == 0].mean() for each, jobs in zip(schedules, jobs, strict=True)]
    assert measured.waits.queues[0] == pytest.approx(np.dot(weights, of_first))


def test_means_are_weighted_as_the_site_wants():
    targets = ({"queue": "short", "weight": 3.0},)
    here = training(three(targets=targets), jobs=300, span=6 * DAY)
    config = with_pool(here.base.system(), array(16, 32, 0), POOL)
    evaluator = CachedEvaluator(here)
    jobs = evaluator.workloads(here.base)
    found, expected = measure(here, jobs, config), evaluator.simulate(jobs, config)
    assert found.waits.overall == pytest.approx(expected.overall)
    assert found.waits.queues == pytest.approx(expected.queues)
    plain = training(three(), jobs=300, span=6 * DAY)
    assert found.waits.overall != pytest.approx(measure(plain, jobs, config).waits.overall)


def test_the_best_score_is_that_of_all_divisions():
    here, jobs, system, sizes = prepared()
    pools = [POOL, replace(POOL, threshold=0.0)]
    results = found(1e9, pools)
    assert [(each.tau, each.divisions, each.left_out) for each in results] == [(0.5, len(sizes), 0), (0, len(sizes), 0)]
    before = measure(here, jobs, system).scored
    factors = np.array([*WEIGHTS["mean-wait"], 0.35]) * TAIL
    for pool, best in zip(pools, results, strict=True):
        scored = np.array([measure(here, jobs, with_pool(system, each, pool)).scored for each in sizes])
        scores = np.log((scored + FLOORS) / (before + FLOORS)) @ factors
        assert best.score == pytest.approx(scores.min())
        assert best.found.sizes.tolist() == sizes[int(scores.argmin())].tolist()


def test_a_division_that_makes_a_queue_wait_too_long_is_left_out():
    here, jobs, system, sizes = prepared()
    before = measure(here, jobs, system).waits.queues
    after = [measure(here, jobs, with_pool(system, each, POOL)).waits.queues for each in sizes]
    growth = np.max([(each + 60) / (before + 60) for each in after], axis=1) - 1
    middle = float(np.sort(growth)[len(sizes) // 2]) + 1e-9
    (best,) = found(middle)
    assert best.left_out == (growth > middle).sum() > 0
    assert ((best.found.waits.queues + 60) <= (1 + middle) * (before + 60) + 1e-6).all()
    (none,) = found(float(growth.min()) - 1e-6)
    assert (none.left_out, none.found, none.score) == (len(sizes), None, 0.0)


def test_the_objective_weighs_the_score():
    scores = {objective: found(1e9, objective=objective)[0].score for objective in WEIGHTS}
    assert len(set(scores.values())) == len(scores)
