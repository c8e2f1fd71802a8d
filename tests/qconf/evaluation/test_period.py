import gc
import weakref
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pytest

from parsim import Workload
from qconf.evaluation.period import Period, TrainingSet, UnroutableError, cached, in_epochs
from qconf.history import clean, read
from tests.qconf.small import LONG, SHORT, WIDE, period, site, training, two


def jobs(base, *rows):
    """Rows of cores, walltime, queue."""
    cores, walltime, queue = np.array(rows).T
    n = len(rows)
    return Period(Workload(np.arange(n), cores, np.maximum(1, walltime // 2), walltime, queue=queue), base)


def test_the_base_routes_jobs_to_their_own_queues():
    here = period(two())
    assert here.routed(here.base) is here.workload
    assert here.routed(here.base.with_partitions([20, 44])) is here.workload


def test_a_job_stays_in_the_queue_of_its_name_while_that_admits_it():
    here = jobs(two(), (4, 3600, 1), (4, 7200, 0), (16, 36000, 1))
    base = here.base
    halved = base.queues[0].model_copy(update={"walltime": (0, 3600)})
    routed = here.routed(base.with_queues([halved, base.queues[1]]))
    assert routed.queue.tolist() == [1, 1, 1]  # the first one might enter `short`, but its user chose `long`


def test_other_jobs_go_to_the_first_queue_that_admits_and_can_start_them():
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


def test_an_unroutable_job_makes_a_configuration_invalid():
    here = jobs(two(), (16, 36000, 1))
    narrow = here.base.queues[1].model_copy(update={"cores": (1, 15)})
    with pytest.raises(UnroutableError, match="1 jobs fit no queue, the first has 16 cores, 36000 s"):
        here.routed(here.base.with_queues([here.base.queues[0], narrow]))


def test_cores_are_compared_in_whole_nodes():
    base = site({**SHORT, "cores": (1, 5)}, LONG, cores=64)
    base = base.replace(machine=base.machine.model_copy(update={"cores_per_node": 8, "whole_nodes": True}))
    here = jobs(base, (8, 100, 0))
    renamed = base.queues[0].model_copy(update={"name": "other"})
    assert here.routed(base.with_queues([renamed, base.queues[1]])).queue.tolist() == [0]


def test_jobs_can_be_routed_by_actual_run_time_for_studies():
    here = jobs(two(), (4, 1000, 0), (4, 5000, 0))
    twin = here.base.queues[0].model_copy(update={"name": "late", "partition": 0})
    config = here.base.with_queues([here.base.queues[0], twin, here.base.queues[1]])
    routed = here.routed(config, ((0, 600), (600, 7200), (0, 36000)))
    assert routed.queue.tolist() == [0, 1]


def test_epochs_are_equal_spans_the_last_heaviest():
    here = training(two(), jobs=500)
    assert [weight for weight, _ in here.epochs] == pytest.approx([1 / 3, 2 / 3, 1])
    assert sum(len(epoch) for _, epoch in here.epochs) == 500
    spans = [epoch.workload.submit[[0, -1]].tolist() for _, epoch in here.epochs]
    assert spans[0][1] < spans[1][0] <= spans[1][1] < spans[2][0]


@pytest.mark.parametrize(("count", "span", "expected"), [(0, 1, 0), (1, 0, 1), (5, 0, 1)])
def test_epochs_without_jobs_are_left_out(count, span, expected):
    assert len(training(two(), jobs=count, span=span).epochs) == expected


def test_epochs_of_so_many_days_end_with_the_training_set_and_begin_before_it():
    day, rng = 86400, np.random.default_rng(3)
    submit = np.sort(rng.integers(0, 40 * day, 400))
    ones = np.ones_like(submit)
    everything = Period(Workload(submit, ones, 60 * ones, 60 * ones, queue=0 * ones), two())
    end = int(submit[-1]) + 1
    month = TrainingSet(everything.between(20 * day, end), known=replace(everything, epoch=-5))

    def submits(found):
        return [epoch.workload.submit.tolist() for _, epoch in found.epochs]

    for here, last in ((month, end), (month.between(20 * day, 30 * day), int(submit[submit < 30 * day][-1]) + 1)):
        found = in_epochs(here, (1.0, 2.0, 3.0), 10)
        edges = [last - 30 * day, last - 20 * day, last - 10 * day, last]
        expected = [submit[(submit >= a) & (submit < b)].tolist() for a, b in pairwise(edges)]
        assert submits(found) == expected
        assert found.workload.submit.tolist() == [*chain(*expected)]  # proportions, bounds and sizes are of these jobs
        assert in_epochs(here, (1.0, 2.0, 3.0), 10) is found
    alone = in_epochs(replace(month, known=None), (1.0, 2.0, 3.0), 10)
    assert submits(alone) == submits(in_epochs(month, (2.0, 3.0), 10))
    assert [weight for weight, _ in alone.epochs] == [2.0, 3.0]
    assert submits(in_epochs(month, (1.0,), 2)) == [submit[submit >= end - 2 * day].tolist()]


def test_the_weighted_wait_is_the_weighted_sum_of_the_mean_waits_of_the_epochs():
    here = training(two(), jobs=200)
    expected = sum(weight * epoch.simulate(here.base).wait.mean() for weight, epoch in here.epochs)
    assert here.weighted_wait(here.base) == pytest.approx(expected)


def test_a_cached_result_is_computed_once_for_each_subject_and_arguments_and_forgotten_with_the_subject():
    calls = []

    @cached
    def jobs_times(subject, factor=1):
        calls.append(factor)
        return len(subject) * factor

    here, other = period(two(), jobs=5), period(two(), jobs=5)
    assert [jobs_times(here), jobs_times(here), jobs_times(here, factor=2), jobs_times(other)] == [5, 5, 10, 5]
    assert calls == [1, 2, 1]
    gone = weakref.ref(here)
    del here
    gc.collect()
    assert gone() is None


def test_limits_that_bind_count_as_fixed_in_a_period():
    here = Period(period(two(), jobs=5).workload, two(fixed=("order",)), ("queues.long.max_run_cores",))
    assert [here.is_fixed(path) for path in ("order", "queues.long.max_run_cores", "mode")] == [True, True, False]
    assert here.between(0, 2**40).binding == here.binding


def test_a_period_can_be_cut_in_two():
    here = period(site(SHORT, LONG, WIDE), jobs=100)
    middle = int(here.workload.submit[50])
    assert len(here.between(0, middle)) + len(here.between(middle, 2**40)) == 100
    assert here.core_seconds.sum() == (here.workload.cores * here.workload.effective_runtime).sum()


def test_jobs_go_round_a_downtime_of_the_configuration(tmp_path):
    log = tmp_path / "log.csv"
    rows = ("1,2026-03-01T00:00:00,600,3600,4,short", "2,2026-03-01T00:05:00,600,1200,4,short")
    log.write_text("\n".join(("job_id,submit,runtime,walltime,cores,queue", *rows)))
    for downtime, waits in (((), [0, 0]), (({"begin": "2026-03-01T00:30", "end": "2026-03-01T02:00"},), [7200, 0])):
        base = two(mode="shared", downtime=downtime)
        here = Period.of(clean(read([log]), base), base)
        assert here.simulate(base).wait.tolist() == waits


def begun(started):
    base = two()
    jobs = Workload([0, 5, 50, 100, 110], [2, 2, 2, 2, 2], [200, 20, 30, 9, 9], [300, 300, 300, 9, 9])
    return Period(jobs, base, started=np.array(started)).beginning(100, 200, 60)


def test_a_test_period_begins_with_what_ran_and_what_waited_comes_as_it_started():
    # Job 1 has ended, job 2 starts at 140 by the log, and job 0, submitted before the warm-up, runs.
    here = begun([3, 10, 140, 100, 110])
    assert here.workload.submit.tolist() == [0, 100, 110, 140]
    assert here.state.begin == 100
    assert (here.state.start < 100).tolist() == [True, False, False, False]
    assert here.counted(100).tolist() == [False, True, True, False]
    assert here.simulate(here.base).start[0] == 3
    assert here.take(np.arange(2)).state is None


def test_what_waited_until_after_the_test_period_plays_no_part():
    assert begun([3, 10, 200, 100, 110]).workload.submit.tolist() == [0, 100, 110]


def test_with_nothing_before_the_machine_is_empty():
    here = begun([3, 10, 60, 100, 110]).beginning(0, 200, 0)
    assert here.state is None


def test_without_starts_a_warm_up_fills_the_machine():
    here = begun([3, 10, -1, 100, 110])
    assert here.state is None
    assert here.workload.submit.tolist() == [50, 100, 110]


def test_more_than_the_machine_holds_waits():
    base = two()
    wide = base.machine.cores
    jobs = Workload([0, 1, 100], [wide, 1, 1], [500, 500, 9], [500, 500, 9])
    here = Period(jobs, base, started=np.array([0, 1, 100])).beginning(100, 200, 60)
    assert (here.state.start < 100).tolist() == [True, False, False]
