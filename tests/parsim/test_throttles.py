"""Throttles: what they count, of which jobs, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from parsim import Queue, System, Throttle, Workload, explain, naive, simulate
from parsim.model.node_types import Chunk, NodeType
from parsim.model.qos import QOS
from tests.parsim.schedules import simulated


def starts(throttles: list[Throttle], *, queues: int = 1, **columns: Any) -> list[int]:
    n = len(columns["cores"])
    names = {"user_names": ("ann", "bob"), "group_names": ("staff", "guests")}
    jobs = Workload(submit=[0] * n, runtime=[10] * n, walltime=[10] * n, **columns, **names)
    system = System(8, [Queue(f"q{i}") for i in range(queues)], throttles=throttles)
    return simulated(jobs, system).start.tolist()


def test_all_jobs_count_together():
    assert starts([Throttle(max_run=2)], cores=[1, 1, 1], user=[0, 1, -1], queue=[0, 1, 0], queues=2) == [0, 0, 10]


def test_each_user_has_his_own_and_jobs_without_one_have_none():
    found = starts([Throttle("user", max_run=1)], cores=[1] * 5, user=[0, 0, 1, -1, -1])
    assert found == [0, 10, 0, 0, 0]


def test_a_named_user_has_his_own_limit_in_place_of_that_of_each():
    throttles = [Throttle("user", max_run=1, max_run_cores=3), Throttle("user", "ann", max_run=3)]
    assert starts(throttles, cores=[1] * 5, user=[0, 0, 0, 1, 1]) == [0, 0, 0, 0, 10]
    assert starts(throttles, cores=[1, 1, 2], user=[0, 0, 0]) == [0, 0, 10]  # the cores are still those of each


def test_groups_and_queues():
    throttles = [Throttle("group", queue=1, max_run_cores=2)]
    found = starts(throttles, cores=[2, 1, 2, 1], group=[0, 0, 0, 1], queue=[1, 1, 0, 1], queues=2)
    assert found == [0, 10, 0, 0]


def test_core_seconds_are_those_to_the_expected_ends():
    jobs = Workload([0, 0, 5], [4, 2, 2], [10, 3, 10], [10, 3, 10])
    system = System(8, throttles=[Throttle(max_run_core_seconds=46)])
    schedule = simulate(jobs, system)
    assert schedule.start.tolist() == [0, 0, 5]  # 4 * 10 + 2 * 3 at 0, 4 * 5 + 2 * 10 at 5
    tight = System(8, throttles=[Throttle(max_run_core_seconds=45)])
    # 46 would be left at 5, where a job comes; when they are few enough is no event, and the next one is at 8.
    assert simulated(jobs, tight).start.tolist() == [0, 5, 8]


#: Two GPUs of one chunk or of two, six GiB on one node, and no request.
REQUESTS = ((Chunk(1, 1, {"gpus": 2}),), (Chunk(2, 0, {"gpus": 1}), Chunk(1, 1, {})), (Chunk(1, 1, {"memory": 6144}),))
TYPES = [NodeType("gpu", 1, 4, {"gpus": 8, "memory": 16384}), NodeType("cpu", 1, 4)]


@pytest.mark.parametrize("types", [[], TYPES])
def test_a_job_counts_with_what_all_its_chunks_take(types: list[NodeType]):
    jobs = Workload([0] * 5, [1] * 5, [10] * 5, [10] * 5, user=[0] * 5, request=[0, 1, 0, -1, 2], requests=REQUESTS)
    system = System(8, node_types=types, throttles=[Throttle("user", max_run_resources={"gpus": 4, "memory": 6144})])
    schedule = simulated(jobs, system)
    assert schedule.start.tolist() == [0, 0, 10, 0, 0]  # those without GPUs are not concerned
    first, *_ = explain(jobs, system, schedule, 2)
    assert first.text == "held by max_run_resources.gpus = 4 of user 0"


def test_a_named_user_has_his_own_limit_of_a_resource_in_place_of_that_of_each():
    throttles = [
        Throttle("user", max_run_resources={"gpus": 2, "memory": 6144}),
        Throttle("user", "ann", max_run_resources={"gpus": 4}),
    ]
    of = {"request": [0, 0, 0, 0, 2, 2], "requests": REQUESTS}
    found = starts(throttles, cores=[1] * 6, user=[0, 0, 1, 1, 0, 0], **of)
    assert found == [0, 0, 0, 10, 0, 10]


def test_a_qos_is_exempt_from_limits_of_resources_together():
    jobs = Workload([0] * 3, [1] * 3, [10] * 3, [10] * 3, qos=[0, 0, -1], request=[0, 0, 0], requests=REQUESTS)
    classes = [QOS("0", exempt=["max_run_resources"])]
    system = System(8, qos=classes, throttles=[Throttle(max_run_resources={"gpus": 2})])
    assert simulate(jobs, system).start.tolist() == [0, 0, 10]
    of_qos = System(8, qos=classes, throttles=[Throttle("qos", max_run_resources={"gpus": 2})])
    assert simulate(jobs, of_qos).start.tolist() == [0, 10, 0]


def test_a_job_that_takes_more_of_a_resource_than_a_limit_is_refused():
    jobs = Workload([0], [1], [10], [10], request=[1], requests=REQUESTS)
    with pytest.raises(ValueError, match=r"cores\[0\]: 1 with 2 gpus .* max_run_resources.gpus = 1 of throttles"):
        simulate(jobs, System(8, throttles=[Throttle(max_run_resources={"gpus": 1})]))


def test_a_job_that_could_never_start_is_refused():
    jobs = Workload([0, 0], [4, 1], [10, 10], [10, 10], user=[-1, 0])
    simulate(jobs, System(8, throttles=[Throttle("user", max_run_cores=2)]))
    with pytest.raises(ValueError, match=r"cores\[0\]: 4 for 10 s is above max_run_core_seconds = 39"):
        simulate(jobs, System(8, throttles=[Throttle(max_run_core_seconds=39)]))


def test_the_explanation_names_the_throttle():
    jobs = Workload([0, 0], [1, 1], [10, 10], [10, 10], user=[0, 0], user_names=("ann",))
    system = System(8, throttles=[Throttle("user", max_run=1)])
    first, *_ = explain(jobs, system, simulate(jobs, system), 1)
    assert first.text == "held by max_run = 1 of user ann"


def test_more_than_so_many_are_kept_out_until_a_second_after_a_start():
    throttle = [Throttle("user", max_eligible=1)]
    assert starts(throttle, cores=[1, 1, 1, 1], user=[0, 0, 0, 1]) == [0, 1, 2, 0]
    # The third enters at 11, as the second has started at 10, and goes before the job of another user by position.
    assert starts(throttle, cores=[8, 2, 2, 7], user=[0, 0, 0, 1]) == [0, 10, 11, 21]


def test_a_job_for_which_there_was_no_room_goes_by_when_it_enters():
    jobs = Workload([0, 1, 2], [1, 1, 1], [10, 10, 10], [10, 10, 10], user=[0, 0, 1])
    for limit, expected in (("max_queued", [0, 20, 10]), ("max_eligible", [0, 10, 20])):
        system = System(1, throttles=[Throttle("user", **{limit: 1})])
        assert simulated(jobs, system).start.tolist() == expected


def test_of_two_that_come_at_one_instant_the_first_row_goes_first():
    # Job 3 is kept out until 10, when job 0 is submitted.
    jobs = Workload([10, 0, 1, 2], [1] * 4, [5, 10, 5, 5], [5, 10, 5, 5], user=[1, 0, 0, 0])
    system = System(1, throttles=[Throttle("user", max_queued=2)])
    assert simulate(jobs, system).start.tolist() == naive.simulate(jobs, system).start == [15, 0, 10, 20]


def test_those_that_run_are_queued_too():
    assert starts([Throttle(max_queued=2)], cores=[1, 1, 1], user=[0, 0, 0]) == [0, 0, 10]


def test_a_job_that_is_kept_out_has_no_eligible_time():
    jobs = Workload([0, 0, 1], [1, 1, 1], [10, 10, 10], [10, 10, 10], user=[0, 0, 1])
    system = System(1, order="eligible_time", throttles=[Throttle("user", max_eligible=1)])
    schedule = simulate(jobs, system)
    assert schedule.start.tolist() == [0, 10, 20]  # both have been in the list since 1
    keeps = System(1, order="eligible_time", throttles=[Throttle("user", max_queued=1)])
    assert simulated(jobs, keeps).start.tolist() == [0, 20, 10]  # the second enters as the first ends
    assert explain(jobs, keeps, simulate(jobs, keeps), 1)[0].text == "kept out by max_queued = 1 of user 0"
