import numpy as np
import pytest

from parsim.model.system import Pool
from qconf.evaluation.evaluator import CachedEvaluator, MeanWaits
from qconf.strategies.partitioning.carving import CarvingSequence, carve, measurement
from tests.qconf.small import three, training, two


def chunks(sequence):
    out = []
    while (queue := sequence.next()) is not None:
        out.append((queue, sequence.sizes.tolist()))
    return out


def array(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("sizes", "widest", "pooled", "order", "last"),
    [
        ((40, 0, 24), (1, 1, 1), True, [2, 0, 2, 0], [0, 0, 0]),  # rounds go over the queues by increasing size
        ((12,), (1,), True, [0, 0, 0], [0]),  # the last chunk is what is left
        ((10, 40), (8, 4), True, [1, 0, 1], [0, 0]),  # at first a job of 8 would find 5 cores here and 5 there
        ((10, 40), (8, 4), False, [1] * 7, [10, 5]),  # without a pool in use the widest jobs keep their partition
    ],
)
def test_chunks_come_in_rounds_from_queues_whose_widest_jobs_still_fit(sizes, widest, pooled, order, last):
    steps = chunks(CarvingSequence(array(*sizes), array(*widest), 5, pooled=pooled))
    assert [queue for queue, _ in steps][: len(order)] == order
    assert steps[-1][1] == last


def test_a_copy_is_independent():
    sequence = CarvingSequence(array(20, 20), array(1, 1), 5, pooled=True)
    sequence.next()
    assert chunks(sequence.copy()) == chunks(sequence.copy()) == chunks(sequence)


def carved(waits, ahead=1, widest=1):
    """Carve partitions of 10 and 20, where divisions have the waits of a table, others the original ones."""

    def measured(divisions):
        return [waits.get(tuple(each.tolist()), MeanWaits(10.0, np.array([10.0, 10.0]))) for each in divisions]

    sequence = CarvingSequence(array(10, 20), array(widest, widest), 5, pooled=True)
    return carve(sequence, MeanWaits(10.0, array(10, 10) * 1.0), 0.3, measured, ahead)


@pytest.mark.parametrize("ahead", [1, 3, 8])
def test_a_queue_stops_or_all_do_where_the_overall_wait_grows_too_much(ahead):
    done = carved({(5, 20): MeanWaits(10.0, np.array([14.0, 10.0]))}, ahead)
    assert done.sizes.tolist() == [10, 0]
    assert [(stop.part, stop.step, stop.wait) for stop in done.stops] == [(0, 1, 14.0)]
    assert done.steps == 4
    done = carved({(5, 10): MeanWaits(13.1, np.array([10.0, 10.0]))}, ahead, widest=8)
    assert (done.stops[-1].part, done.stops[-1].wait, done.waits.overall) == (None, 13.1, 10.0)


@pytest.mark.parametrize("waits", [MeanWaits(10.0, np.array([13.0, 10.0])), MeanWaits(13.0, np.array([10.0, 10.0]))])
def test_waits_may_grow_by_exactly_the_degradation(waits):
    done = carved({(5, 20): waits})
    assert (done.sizes.tolist(), len(done.stops)) == ([0, 0], 0)


def simulated(here, pooled):
    evaluator, config = CachedEvaluator(here), here.base
    pool = Pool(threshold=0.5, entry="move") if pooled else None
    return evaluator.measure(config), measurement(evaluator, evaluator.workloads(config), config.system(), pool)


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.parametrize("make", [two, three])
def test_the_result_does_not_depend_on_the_steps_simulated_ahead(make, pooled):
    here = training(make(), jobs=400, seed=2)
    sizes = array(*(queue.partition for queue in here.base.queues))
    found = []
    for ahead in (1, 2, 7):
        sequence = CarvingSequence(sizes, here.period.widest, 2, pooled=pooled)
        original, measured = simulated(here, pooled)
        done = carve(sequence, original, 0.3, measured, ahead)
        found.append((done.sizes.tolist(), done.stops, done.trace, done.steps))
    assert found[1:] == found[:1] * 2


def test_the_overall_wait_grows_by_the_degradation_at_most():
    here = training(two(), jobs=500, seed=1)
    original, measured = simulated(here, pooled=True)
    sizes = array(24, 40)
    done = carve(CarvingSequence(sizes, here.period.widest, 1, pooled=True), original, 0.3, measured, 4)
    assert done.waits.overall <= 1.3 * original.overall
    assert measured([done.sizes])[0].overall == done.waits.overall
    assert done.stops or not done.sizes.any()


def test_the_idle_pool_is_no_part_of_the_machine():
    here = training(three(), jobs=200)
    _, measured = simulated(here, pooled=False)
    assert np.isfinite(measured([array(24, 40, 0)])[0].overall)
    widest = int(here.workload.cores.max())
    assert measured([array(8, widest - 9, 0)])[0].overall == np.inf
