import numpy as np
import pytest

from parsim import simulate
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.strategies.partitioning.sizes import partition_space
from qconf.strategies.partitioning.wait_table import tabulate
from tests.qconf.small import three, training, two


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [1, 2])
def test_the_table_adds_up_to_the_simulator(seed, workers):
    here = training(two(), jobs=400, seed=seed)
    space = partition_space(here)
    table = tabulate(here, space, workers)
    for nodes in ([20, 44], [8, 56], [48, 16], [9, 55]):
        config = here.base.with_partitions(nodes)
        assert table(np.array(nodes)) == pytest.approx(here.weighted_wait(config))
    assert table(np.array([7, 57])) == np.inf


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
