import gc
import weakref

import numpy as np
import pytest

from parsim import simulate
from qconf.config import Target
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.strategies.partitioning.regret import tabulate
from qconf.strategies.partitioning.sizes import partition_space
from tests.qconf.small import DAY, three, training, two

WEIGHTS = (Target(queue="short", weight=5.0), Target(group="g", users=("u0", "u3"), weight=0.25))


def total(table, nodes):
    """The weighted mean wait of a division."""
    return sum(column[0] for column in table.columns([np.array([size]) for size in nodes]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("targets", [(), WEIGHTS[:1]])
def test_the_table_adds_up_to_the_simulator(seed, workers, targets):
    here = training(two(targets=targets), jobs=400, seed=seed)
    space = partition_space(here)
    table = tabulate(here, space, workers)
    for nodes in ([20, 44], [8, 56], [48, 16], [9, 55]):
        config = here.base.with_partitions(nodes)
        assert total(table, nodes) == pytest.approx(here.weighted_wait(config))
    assert total(table, [7, 57]) == np.inf


def test_a_table_goes_with_its_training_set():
    here = training(two(), jobs=100)
    known, before = tabulate.known, len(tabulate.known)
    total(tabulate(here, partition_space(here)), [20, 44])
    assert len(known) == before + 1
    gone = weakref.ref(here)
    del here
    gc.collect()
    assert gone() is None
    assert len(known) == before


CHANGES = {
    "plain": {},
    "lxf": {"order": "lxf"},
    "formula": {"order": "queue_priority * eligible_time / walltime"},
    "fcfs alone": {"backfill": False},
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("make", [two, three])
def test_the_evaluator_agrees_with_the_simulator(make, name):
    base = make(**CHANGES[name])
    limited = [queue.model_copy(update={"max_run": 3, "starvation": 7200}) for queue in base.queues]
    for config in (base, base.with_queues(limited)):
        here = training(config, jobs=300)
        evaluator = CachedEvaluator(here, 2)
        sizes = [0 if q.reservation else size for q, size in zip(config.queues, (20, 44, 0), strict=False)]
        for candidate in (config, config.with_partitions(sizes), config):  # the last one is cached
            waits = evaluator.measure(candidate)
            assert waits.overall == pytest.approx(here.weighted_wait(candidate))
            expected = np.zeros(len(candidate.queues))
            for weight, epoch in here.epochs:
                schedule = simulate(epoch.workload, candidate.system())
                for q in range(len(candidate.queues)):
                    expected[q] += weight * schedule.wait[epoch.workload.queue == q].mean()
            assert waits.queues == pytest.approx(expected)


def test_queues_that_share_a_limit_are_simulated_together():
    here = training(
        two(throttles=({"each": "user", "max_run": 1}, {"queue": "long", "each": "user", "max_run": 1})), span=DAY
    )
    assert CachedEvaluator(here).measure(here.base).overall == pytest.approx(here.weighted_wait(here.base))


@pytest.mark.parametrize("make", [two, three])
def test_the_evaluator_weighs_jobs_as_the_site_wants(make):
    base = make(targets=WEIGHTS)
    here = training(base, jobs=900)
    evaluator = CachedEvaluator(here)
    sizes = [0 if q.reservation else size for q, size in zip(base.queues, (20, 44, 0), strict=False)]
    for candidate in (base, base.with_partitions(sizes)):
        waits, expected = evaluator.measure(candidate), 0.0
        for weight, epoch in here.epochs:
            each = np.where(epoch.workload.queue == 0, 5.0, 1.0) * np.where(epoch.workload.user % 3 == 0, 0.25, 1.0)
            expected += weight * np.average(simulate(epoch.workload, candidate.system()).wait, weights=each)
        assert waits.overall == pytest.approx(here.weighted_wait(candidate))
        assert waits.overall == pytest.approx(expected)


def test_queues_that_did_not_change_are_not_simulated_again(monkeypatch):
    here = training(two(), jobs=100)
    evaluator = CachedEvaluator(here)
    evaluator.measure(here.base)
    calls = []
    monkeypatch.setattr("qconf.evaluation.evaluator.simulate", lambda *each: calls.append(each) or simulate(*each))
    evaluator.measure(here.base)
    assert not calls
    evaluator.measure(here.base.with_partitions([23, 41]))
    assert len(calls) == 2 * len(here.epochs)
