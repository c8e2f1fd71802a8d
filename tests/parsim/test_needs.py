"""Jobs that wait for others to end, and for parts of quotas."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import UNSTARTED, Queue, Quota, State, System, Window, Workload, explain, plan, simulate, verify
from parsim.model.needs import MOST
from tests.parsim.schedules import simulated


def jobs(submit, cores, walltime, **more):
    return Workload(submit, cores, walltime, walltime, **more)


ONE = System(10)


def starts(workload, system=ONE, state=None):
    return simulated(workload, system, state).start.tolist()


def test_a_job_comes_when_the_last_that_it_waits_for_has_ended():
    chain = jobs([0, 0, 1, 2], [4, 4, 1, 1], [10, 30, 5, 5], after=[[2, 0], [2, 1], [3, 2]])
    assert starts(chain) == [0, 0, 30, 35]
    schedule = simulate(chain, ONE)
    assert schedule.submit.tolist() == [0, 0, 30, 35]
    assert schedule.wait.tolist() == [0, 0, 0, 0]


def test_it_keeps_its_place_among_those_that_wait():
    # Job 1 comes at 10, when job 2 waits already; it was submitted before.
    assert starts(jobs([0, 1, 2], [10, 10, 10], [10, 5, 5], after=[[1, 0]])) == [0, 10, 15]


def test_its_starvation_counts_from_when_it_comes():
    queues = [Queue("a", priority=1, starvation=20), Queue("b", priority=9)]
    waits = jobs([0, 0, 1, 11], [10, 10, 10, 10], [10, 15, 5, 5], queue=[1, 1, 0, 1], after=[[2, 0]])
    # Job 2 would starve at 21 by its submission, and at 30 since it came at 10.
    assert starts(waits, System(10, queues)) == [0, 10, 30, 25]


def test_a_held_back_job_is_passed():
    assert starts(jobs([0, 0, 0], [6, 6, 4], [10, 10, 40], after=[[1, 0]])) == [0, 10, 0]


def test_licences_are_of_the_whole_site():
    queues = [Queue("a", partition=5), Queue("b", partition=5)]
    licensed = jobs([0, 0, 0], [2, 2, 2], [10, 20, 5], queue=[0, 1, 1], quotas=[Quota("matlab", 1, [0, 1], [1, 1])])
    assert starts(licensed, System(10, queues, "partitioned")) == [0, 10, 0]


@pytest.mark.parametrize("reserve", ["cores", "nodes"])
def test_a_head_job_may_wait_for_licences(reserve):
    wanted = Quota("matlab", 2, [0, 1, 2], [2, 2, 1])
    licensed = jobs([0, 1, 2], [2, 2, 2], [10, 20, 5], quotas=[wanted])
    assert starts(licensed, System(10, reserve=reserve)) == [0, 10, 30]
    # Reserved from 10 on: job 2 would be in its way, and there are none before.
    assert starts(licensed, System(10, held_jobs="reserve", reserve=reserve)) == [0, 10, 30]


def test_a_quota_changes_and_stops_no_job_that_runs():
    by_day = Quota("day", 1, [0, 1, 2], [1, 1, 1], [(5, 0), (50, 1)])
    assert starts(jobs([0, 1, 2], [1, 1, 1], [10, 10, 10], quotas=[by_day])) == [0, 50, 60]


def test_a_quota_that_nothing_exceeds_changes_nothing():
    plain = jobs([0, 1, 2], [4, 8, 1], [50, 50, 9])
    full = jobs([0, 1, 2], [4, 8, 1], [50, 50, 9], quotas=[Quota("x", MOST, [0, 1, 2], [1, 1, 1])])
    assert starts(plain) == starts(full)


def test_a_state_of_jobs_that_wait_for_what_runs_and_for_what_has_ended():
    chain = jobs([0, 0, 1, 1], [4, 4, 1, 1], [10, 30, 5, 5], after=[[2, 0], [3, 1]])
    begun = State(20, [0, 5, UNSTARTED, UNSTARTED])
    assert starts(chain, state=begun) == [0, 5, 20, 35]
    assert simulate(chain, ONE, begun).submit.tolist() == [0, 0, 10, 35]


def test_a_reservation_counts_for_itself():
    queues = [Queue("all"), Queue("course")]
    shared = jobs([0, 0], [4, 4], [10, 10], queue=[0, 1], quotas=[Quota("matlab", 1, [0, 1], [1, 1])])
    state = State(0, [UNSTARTED] * 2, windows=[Window(0, 20, 4, queue=1)])
    assert starts(shared, System(10, queues), state) == [0, 0]


def test_rows_in_any_order_and_taken():
    shuffled = jobs([2, 0, 1], [1, 10, 10], [5, 10, 10], after=[[0, 2], [2, 1]], quotas=[Quota("x", 1, [0], [1])])
    assert starts(shuffled) == [20, 0, 10]
    part = shuffled.take(np.array([2, 0]))
    assert part.after.tolist() == [[1, 0]]
    assert part.quotas[0].rows.tolist() == [1]
    assert not shuffled.without_needs().has_needs
    assert shuffled.take(np.array([1])).after.size == 0


def test_it_is_explained():
    chain = jobs([0, 1, 2, 2], [4, 1, 1, 1], [10, 5, 9, 5], after=[[1, 0]], quotas=[Quota("matlab", 1, [2, 3], [1, 1])])
    schedule = simulate(chain, ONE)
    assert "; ".join(map(str, explain(chain, ONE, schedule, 1))).startswith("1 to 10: waits for job 0 to end; 10:")
    assert "held by matlab" in str(explain(chain, ONE, schedule, 3)[0])


def test_the_verifier_sees_a_start_before_what_it_waits_for():
    chain = jobs([0, 1], [1, 1], [10, 5], after=[[1, 0]])
    wrong = simulate(chain.without_needs(), ONE)
    assert [violation.rule for violation in verify.check_schedule(chain, ONE, wrong)] == ["submit"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"after": [[0, 1], [1, 0]]}, "after: job 0 waits for itself, or for jobs that wait for it"),
        ({"after": [[0, 0]]}, "after: job 0 waits for itself"),
        ({"after": [[0, 2]]}, "after: row 2, of 2 jobs"),
        ({"after": [0, 1]}, "after: expected whole numbers of shape"),
        ({"quotas": [Quota("x", 1, [2], [1])]}, "quota x: row 2 or 2, of 2 jobs"),
    ],
)
def test_needs_that_make_no_sense(more, message):
    with pytest.raises(ValueError, match=message):
        jobs([0, 0], [1, 1], [5, 5], **more)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, [0], [3]), "job 0 asks for 3, of 2: it could never start"),
        ((2, [0], [1], [(5, 0)]), "of 0: it could never start"),
        ((2, [0], [0]), "asks for 0, at least 1"),
        ((2, [0, 0], [1, 1]), "a job is named twice"),
        ((2, [0, 1], [1]), "1 amounts for 2 jobs"),
        ((-1, [0], [1]), "is not from 0"),
        ((2, [0], [1], [(5, 1), (5, 2)]), "do not ascend"),
    ],
)
def test_quotas_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        Quota("x", *arguments)


def test_disciplines_that_know_of_cores_only_refuse():
    chain = jobs([0, 1], [1, 1], [10, 5], after=[[1, 0]])
    with pytest.raises(ValueError, match="jobs wait for others to end, which a planning discipline does not plan"):
        plan(chain, 10, "conservative")
    with pytest.raises(ValueError, match="which multiple-queue backfilling does not plan"):
        simulate(chain, System(10, mode="multiqueue"))
