import numpy as np
import pytest

from parsim import Workload
from qconf.evaluation.period import Period, UnroutableError
from tests.qconf.small import LONG, SHORT, WIDE, period, site, two


def jobs(base, *rows):
    """Rows of cores, walltime, queue."""
    cores, walltime, queue = np.array(rows).T
    n = len(rows)
    return Period(Workload(np.arange(n), cores, np.maximum(1, walltime // 2), walltime, queue=queue), base)


def test_the_base_routes_as_it_did():
    here = period(two())
    assert here.routed(here.base) is here.workload
    assert here.routed(here.base.with_partitions([20, 44])) is here.workload


def test_a_job_stays_in_the_queue_of_its_name_while_that_admits_it():
    here = jobs(two(), (4, 3600, 1), (4, 7200, 0), (16, 36000, 1))
    base = here.base
    halved = base.queues[0].model_copy(update={"walltime": (0, 3600)})
    routed = here.routed(base.with_queues([halved, base.queues[1]]))
    assert routed.queue.tolist() == [1, 1, 1]  # the first one might enter `short`, but its user chose `long`


def test_others_go_to_the_first_queue_that_admits_them_and_may_start_them():
    here = jobs(site(SHORT, LONG), (8, 3600, 0))
    renamed = [{**SHORT, "name": "a", "max_run_cores": 4}, {**SHORT, "name": "b", "cores": (8, 8)}, LONG]
    config = here.base.with_queues(site(*renamed, mode="shared").queues, mode="shared")
    assert here.routed(config).queue.tolist() == [1]


def test_a_queue_takes_walltimes_above_its_least_and_up_to_its_most():
    here = jobs(two(), (4, 3600, 0), (4, 3601, 0), (4, 7200, 0))
    later = {**SHORT, "name": "later", "walltime": (3600, 7200)}
    sooner = {**SHORT, "name": "sooner", "walltime": (0, 3600), "partition": 0}
    config = here.base.with_queues(site(later, sooner, LONG).queues)
    assert here.routed(config).queue.tolist() == [1, 0, 0]


def test_a_job_that_fits_nowhere_makes_a_configuration_invalid():
    here = jobs(two(), (16, 36000, 1))
    narrow = here.base.queues[1].model_copy(update={"cores": (1, 15)})
    with pytest.raises(UnroutableError, match="1 jobs fit no queue, the first has 16 cores, 36000 s"):
        here.routed(here.base.with_queues([here.base.queues[0], narrow]))


def test_sizes_are_compared_in_whole_nodes():
    base = site({**SHORT, "cores": (1, 5)}, LONG, cores=64)
    base = base.replace(machine=base.machine.model_copy(update={"cores_per_node": 8, "whole_nodes": True}))
    here = jobs(base, (8, 100, 0))
    renamed = base.queues[0].model_copy(update={"name": "other"})
    assert here.routed(base.with_queues([renamed, base.queues[1]])).queue.tolist() == [0]


def test_real_runtimes_route_for_study():
    here = jobs(two(), (4, 1000, 0), (4, 5000, 0))
    twin = here.base.queues[0].model_copy(update={"name": "late", "partition": 0})
    config = here.base.with_queues([here.base.queues[0], twin, here.base.queues[1]])
    routed = here.routed(config, ((0, 600), (600, 7200), (0, 36000)))
    assert routed.queue.tolist() == [0, 1]


def test_epochs_are_equal_spans_the_last_heaviest():
    here = period(two(), jobs=500)
    assert [weight for weight, _ in here.epochs] == pytest.approx([1 / 3, 2 / 3, 1])
    assert sum(len(epoch) for _, epoch in here.epochs) == 500
    spans = [epoch.workload.submit[[0, -1]].tolist() for _, epoch in here.epochs]
    assert spans[0][1] < spans[1][0] <= spans[1][1] < spans[2][0]


@pytest.mark.parametrize(("count", "span", "expected"), [(0, 1, 0), (1, 0, 1), (5, 0, 1)])
def test_epochs_without_jobs_are_left_out(count, span, expected):
    assert len(period(two(), jobs=count, span=span).epochs) == expected


def test_the_weighted_wait_is_the_epochs_own():
    here = period(two(), jobs=200)
    expected = sum(weight * epoch.simulate(here.base).wait.mean() for weight, epoch in here.epochs)
    assert here.weighted_wait(here.base) == pytest.approx(expected)


def test_a_month_remembers_answers():
    here, asked = period(two(), jobs=5), []
    for _ in range(3):
        assert here.remember("x", lambda: asked.append(1) or 7) == 7
    assert asked == [1]


def test_of_a_month_that_is_past_only_what_lasts_is_known():
    here = period(two(), jobs=5)
    here.remember("x", lambda: 1)
    here.remember("y", lambda: 2, lasting=True)
    assert here.past.remember("x", lambda: 3) == 3
    assert here.past.remember("y", lambda: 4, lasting=True) == 2
    assert here.remember("x", lambda: 5) == 1


def test_parts_of_a_month():
    here = period(site(SHORT, LONG, WIDE), jobs=100)
    middle = int(here.workload.submit[50])
    assert len(here.between(0, middle)) + len(here.between(middle, 2**40)) == 100
    assert here.core_seconds.sum() == (here.workload.cores * here.workload.effective_runtime).sum()
