"""The verifier of waiting lists: right schedules pass, and every other is found wrong."""

from dataclasses import replace

import numpy as np
import pytest

from parsim.system import Pool, Queue, System
from parsim.throttles import Throttle
from parsim.verify import VerificationError, assert_schedule, check_schedule
from parsim.workload import Workload
from tests.parsim.schedules import jobs, schedule, violations


def partitions(*names):
    """Place each job wholly on the named partition."""
    return [{name: 1} for name in names]


# One list on one set of cores: A runs until 10, H waits for all cores, then S and L could pass it.
MACHINE = System.single(4)
WAITING = jobs((0, 3, 10), (1, 4, 5), (2, 1, 8), (3, 1, 9))


def test_right_schedule():
    assert violations(WAITING, MACHINE, [0, 10, 2, 15]) == []


def test_no_job_at_all():
    assert violations(Workload([], [], [], []), MACHINE, []) == []


def test_job_starts_before_its_submission():
    assert violations(WAITING, MACHINE, [0, 10, 1, 15]) == [("submit", 2, 1)]


def test_end_that_is_not_the_runtime_later():
    right = schedule(WAITING, MACHINE, [0, 10, 2, 15])
    wrong = replace(right, end=right.end + np.array([0, 0, 1, 0]))
    assert [found.rule for found in check_schedule(WAITING, MACHINE, wrong)] == ["end"]


def test_job_runs_past_its_walltime():
    workload = jobs((0, 1, 10, 20))
    right = schedule(workload, MACHINE, [0])
    assert right.end.tolist() == [10]
    assert check_schedule(workload, MACHINE, right) == []
    assert check_schedule(workload, MACHINE, replace(right, end=np.array([20])))[0].rule == "end"


def test_schedule_of_other_jobs():
    right = schedule(WAITING, MACHINE, [0, 10, 2, 15])
    assert check_schedule(WAITING, MACHINE, replace(right, cores=right.cores - 1))[0].rule == "job"
    assert check_schedule(WAITING, System.single(4), replace(right, partition_names=("pool",)))[0].rule == "job"
    assert check_schedule(WAITING.take([0, 1]), MACHINE, right)[0].rule == "job"
    assert check_schedule(replace(WAITING, queue=[0, 0, 1, 0]), MACHINE, right)[0].rule == "job"


def test_late_start():
    assert violations(jobs((0, 1, 5), (2, 1, 5)), MACHINE, [0, 5]) == [("waiting", 1, 2)]


def test_start_at_no_event():
    workload = jobs((0, 4, 5), (2, 4, 5))
    assert violations(workload, MACHINE, [0, 6]) == [("waiting", 1, 5)]
    held = jobs((0, 3, 10), (1, 4, 5), (3, 1, 9))
    assert violations(held, MACHINE, [0, 13, 4]) == [("event", 2, 4)]


def test_overlap():
    assert violations(WAITING, MACHINE, [0, 9, 2, 15]) == [("capacity", 1, 9)]


def test_job_may_start_at_the_second_in_which_another_ends():
    assert violations(jobs((0, 4, 5), (2, 4, 5)), MACHINE, [0, 5]) == []


def test_backfill_that_delays_the_head_job():
    assert violations(WAITING, MACHINE, [0, 12, 2, 3])[0] == ("capacity", 3, 3)
    workload = jobs((0, 3, 10), (1, 4, 5), (3, 1, 9))
    assert violations(workload, MACHINE, [0, 12, 3])[0] == ("head job", 2, 3)


def test_backfilled_job_may_end_at_the_shadow():
    workload = jobs((0, 3, 10), (1, 4, 5), (3, 1, 7))
    assert violations(workload, MACHINE, [0, 10, 3]) == []
    assert violations(workload, MACHINE, [0, 10, 15]) == [("waiting", 2, 3)]


def test_extra_cores_count_all_that_end_at_the_shadow():
    workload = jobs((0, 2, 10), (0, 1, 10), (1, 3, 5), (3, 1, 50))
    assert violations(workload, MACHINE, [0, 0, 10, 3]) == []
    assert violations(workload, MACHINE, [0, 0, 10, 10]) == [("waiting", 3, 3)]


def test_extra_cores_are_taken_once():
    workload = jobs((0, 2, 10), (1, 3, 5), (3, 1, 50), (3, 1, 50))
    assert violations(workload, MACHINE, [0, 10, 3, 15]) == []
    assert violations(workload, MACHINE, [0, 53, 3, 3])[0] == ("head job", 3, 3)


def test_estimates_and_not_runtimes_decide():
    workload = jobs((0, 3, 10), (1, 4, 5), (3, 1, 9, 2))
    assert violations(workload, MACHINE, [0, 10, 15]) == []
    assert violations(workload, MACHINE, [0, 10, 3]) == [("head job", 2, 3)]


def test_no_backfill_without_backfilling():
    system = System.single(4, backfill=False)
    workload = jobs((0, 3, 10), (1, 4, 5), (2, 1, 8))
    assert violations(workload, system, [0, 10, 15]) == []
    assert violations(workload, system, [0, 10, 2]) == [("order", 2, 2)]


def test_wrong_order():
    workload = jobs((0, 4, 5), (1, 4, 9), (2, 4, 3))
    assert violations(workload, MACHINE, [0, 5, 14]) == []
    assert violations(workload, MACHINE, [0, 8, 5])[0] == ("order", 1, 5)
    assert violations(workload, System.single(4, "sjf"), [0, 8, 5]) == []
    assert violations(workload, System.single(4, "ljf"), [0, 5, 14]) == []
    assert violations(workload, System.single(4, "-walltime"), [0, 8, 5]) == []


def test_ratios_that_are_equal_go_by_submission():
    workload = jobs((0, 4, 30), (0, 4, 30), (10, 4, 20))  # at 30: 30 / 30 and 20 / 20
    assert violations(workload, System.single(4, "lxf"), [0, 30, 60]) == []
    wfp3 = jobs((0, 4, 30), (0, 1, 30), (0, 4, 30))
    assert violations(wfp3, System.single(4, "wfp3"), [0, 30, 30])[0][0] == "capacity"
    assert violations(wfp3, System.single(4, "wfp3"), [0, 60, 30]) == []


def test_queue_priority_and_starvation():
    workload = jobs((0, 4, 5), (1, 4, 5, 5, 0), (2, 4, 5, 5, 1))
    system = System(4, [Queue("low", priority=1, starvation=None), Queue("high", priority=2)])
    assert violations(workload, system, [0, 10, 5]) == []
    assert violations(workload, system, [0, 5, 10])[0] == ("order", 2, 5)
    starving = System(4, [Queue("low", priority=1, starvation=4), Queue("high", priority=2)])
    assert violations(workload, starving, [0, 5, 10]) == []
    assert violations(workload, starving, [0, 10, 5])[0] == ("order", 1, 5)


@pytest.mark.parametrize(
    ("limit", "second"),
    [({"max_run": 1}, 9), ({"max_run_cores": 2}, 9), ({"max_user_run": 1}, -1), ({"max_user_cores": 2}, 7)],
)
def test_limit_exceeded(limit, second):
    workload = jobs((0, 2, 5, 5, 0, 7), (1, 1, 5, 5, 0, 7), (1, 1, 5, 5, 1, 7))
    system = System(4, [Queue("a", **limit), Queue("b")])
    assert violations(workload, system, [0, 5, 1]) == []
    assert violations(workload, system, [0, 1, 1]) == [("limit", 1, 1)]
    other = replace(workload, user=[7, second, 7])
    expected = [] if limit.keys() == {"max_user_run"} else [("limit", 1, 1)]
    assert violations(other, system, [0, 1, 1]) == expected


def test_a_queue_mate_may_not_use_up_the_limit_of_a_head_job():
    system = System(4, [Queue("a", max_run=2), Queue("b")])
    workload = jobs((0, 1, 9), (1, 4, 5), (2, 1, 3), (2, 1, 3, 3, 1))
    assert violations(workload, system, [0, 9, 14, 2]) == []
    assert violations(workload, system, [0, 9, 2, 2]) == [("limit", 2, 2)]


def test_job_held_by_a_limit_is_no_head_job():
    system = System(4, [Queue("a", max_run=1), Queue("b")])
    workload = jobs((0, 1, 9), (1, 4, 5), (2, 3, 30, 30, 1))
    assert violations(workload, system, [0, 32, 2]) == []


def test_eligible_time_stops_while_a_limit_holds():
    system = System(4, [Queue("a", max_run=1), Queue("b")], order="eligible_time")
    # At 6 the first of a ends. Its second was held from 0 on: b, submitted at 1, has waited for longer.
    workload = jobs((0, 2, 6, 6, 0), (0, 4, 5, 5, 0), (1, 4, 5, 5, 1))
    assert violations(workload, system, [0, 11, 6]) == []
    assert violations(workload, system, [0, 6, 11])[0] == ("order", 2, 6)


SPLIT = System(6, [Queue("a", partition=4), Queue("b", partition=2), Queue("wide", reservation=True)], "partitioned")


def test_illegal_placement():
    workload = jobs((0, 1, 5, 5, 0), (0, 1, 5, 5, 1))
    assert violations(workload, SPLIT, [0, 0], partitions("a", "b")) == []
    assert violations(workload, SPLIT, [0, 0], partitions("a", "a")) == [("placement", 1, 0)]
    assert violations(workload, SPLIT, [0, 0], partitions("a", "wide"))[0] == ("capacity", 1, 0)


def test_shares_that_are_none():
    workload = jobs((0, 6, 5, 5, 2))
    assert violations(workload, SPLIT, [0], [{"a": 4, "b": 2}]) == []
    assert violations(workload, SPLIT, [0], [{"a": 4, "b": 1}]) == [("placement", 0, 0)]
    lost = replace(schedule(workload, SPLIT, [0], [{"a": 4, "b": 2}]), shares={})
    assert check_schedule(workload, SPLIT, lost)[0].rule == "placement"
    nowhere = replace(lost, partition=np.array([7], dtype=np.int32))
    assert check_schedule(workload, SPLIT, nowhere)[0].rule == "placement"


def test_partition_over_capacity():
    workload = jobs((0, 4, 5, 5, 0), (1, 1, 5, 5, 0))
    assert violations(workload, SPLIT, [0, 5], partitions("a", "a")) == []
    assert violations(workload, SPLIT, [0, 1], partitions("a", "a")) == [("capacity", 1, 1)]


def test_reserved_shares():
    workload = jobs((0, 5, 5, 5, 2))  # floor(5 * 4 / 6) = 3, floor(5 * 2 / 6) = 1, one more where most is free
    assert violations(workload, SPLIT, [0], [{"a": 4, "b": 1}]) == []
    assert violations(workload, SPLIT, [0], [{"a": 3, "b": 2}]) == [("shares", 0, 0)]


def test_reservation_delayed():
    workload = jobs((0, 4, 10, 10, 0), (1, 6, 5, 5, 2), (2, 1, 8, 8, 1), (2, 1, 9, 9, 1))
    both = {"a": 4, "b": 2}
    assert violations(workload, SPLIT, [0, 10, 2, 15], [{"a": 4}, both, {"b": 1}, {"b": 1}]) == []
    placements = [{"a": 4}, both, {"b": 1}, {"b": 1}]
    assert violations(workload, SPLIT, [0, 11, 2, 2], placements)[0] == ("reservation", 3, 2)
    assert violations(workload, SPLIT, [0, 10, 15, 15], placements)[0] == ("waiting", 2, 2)


def test_a_held_head_job_delayed():
    system = System(4, [Queue("a", max_run=1), Queue("b")], held_jobs="reserve")
    workload = jobs((0, 2, 10, 10, 0), (1, 1, 5, 5, 0), (2, 2, 20, 20, 1), (3, 2, 5, 5, 1))
    assert violations(workload, system, [0, 10, 2, 15]) == []
    assert violations(workload, system, [0, 10, 11, 3])[0] == ("waiting", 2, 2)
    wide = jobs((0, 2, 10, 10, 0), (1, 3, 5, 5, 0), (2, 2, 20, 20, 1))
    assert violations(wide, system, [0, 10, 15]) == []
    assert violations(wide, system, [0, 22, 2]) == [("head job", 2, 2)]


def test_nodes_of_the_head_job_taken():
    workload = jobs((0, 1, 2, 2), (0, 3, 10, 10), (3, 2, 5, 5), (4, 1, 50, 50))
    assert violations(workload, System(4, reserve="nodes"), [0, 0, 10, 10]) == []
    assert violations(workload, System(4, reserve="nodes"), [0, 0, 10, 4]) == [("head job", 3, 4)]
    assert violations(workload, System(4), [0, 0, 10, 4]) == []


def test_the_head_job_of_another_queue_delayed():
    system = System(4, [Queue("a", priority=2), Queue("b")], reserve="queues")
    workload = jobs((0, 2, 4, 4), (0, 1, 10, 10), (1, 4, 5, 5), (2, 3, 5, 5, 1), (2, 1, 8, 8, 1))
    assert violations(workload, system, [0, 0, 10, 4, 15]) == []
    assert violations(workload, system, [0, 0, 10, 15, 2])[0] == ("head job", 4, 2)
    assert violations(workload, system, [0, 0, 11, 5, 16])[0] == ("waiting", 3, 4)


def test_backfill_leaves_enough_for_head_job_and_reservation_together():
    queues = [Queue("a", partition=4), Queue("b", partition=6), Queue("wide", reservation=True)]
    system = System(10, queues, "partitioned")
    # At 3 the last would leave either enough: the head job from 5 to 15, the reservation from 10 on.
    workload = jobs((0, 2, 5, 5, 0), (0, 1, 10, 10, 0), (0, 6, 10, 10, 1), (1, 5, 5, 5, 2), (2, 2, 10), (3, 1, 20))
    placements = [*partitions("a", "a", "b"), {"a": 1, "b": 4}, *partitions("a", "a")]
    assert violations(workload, system, [0, 0, 0, 10, 5, 10], placements) == []
    assert violations(workload, system, [0, 0, 0, 10, 5, 3], placements)[0] == ("head job", 5, 3)


def test_reserved_job_waits_for_one_that_starves_before_it():
    queues = (Queue("a", partition=4, starvation=3), *SPLIT.queues[1:])
    system = System(6, queues, "partitioned")
    workload = jobs((0, 3, 10, 10, 0), (1, 4, 5, 5, 0), (2, 6, 5, 5, 2))
    both = {"a": 4, "b": 2}
    assert violations(workload, system, [0, 10, 15], [{"a": 3}, {"a": 4}, both]) == []
    found = violations(workload, system, [0, 15, 10], [{"a": 3}, {"a": 4}, both])
    assert found[0] == ("reservation", 2, 10)


def hybrid(pool=2, **settings):
    queues = [Queue("a", partition=2, walltime=(0, 100)), Queue("b", partition=2)]
    return System(4 + pool, queues, "hybrid", pool=Pool(pool, **settings))


def test_pool_entry_too_early():
    # The second may enter the pool when it has waited longer than half of its walltime: at 6, its wake-up.
    workload = jobs((0, 2, 20, 20, 0), (0, 2, 10, 10, 0))
    assert violations(workload, hybrid(), [0, 6], [{"a": 2}, {"pool": 2}]) == []
    assert violations(workload, hybrid(), [0, 5], [{"a": 2}, {"pool": 2}]) == [("pool", 1, 5)]
    assert violations(workload, hybrid(), [0, 20], [{"a": 2}, {"a": 2}]) == [("waiting", 1, 6)]
    assert violations(workload, hybrid(entry="move"), [0, 20], [{"a": 2}, {"a": 2}]) == [("placement", 1, 20)]


def test_job_wider_than_the_pool_never_enters_it():
    workload = jobs((0, 2, 20, 20, 0), (0, 2, 10, 10, 0))
    assert violations(workload, hybrid(pool=1), [0, 20], [{"a": 2}, {"a": 2}]) == []
    combined = hybrid(pool=1, placement="combined")
    assert violations(workload, combined, [0, 20], [{"a": 2}, {"a": 2}]) == []


def test_combined_takes_the_partition_first():
    workload = jobs((0, 1, 20, 20, 0), (0, 2, 10, 10, 0), (0, 1, 20, 20, 1), (0, 2, 20, 20, 1))
    system = hybrid(pool=1, placement="combined", threshold=1)
    both = {"a": 1, "pool": 1}
    assert violations(workload, system, [0, 11, 0, 20], [{"a": 1}, both, {"b": 1}, {"b": 2}]) == []
    separate = hybrid(pool=1, placement="pool", threshold=1)
    found = violations(workload, separate, [0, 11, 0, 20], [{"a": 1}, both, {"b": 1}, {"b": 2}])
    assert found == [("pool", 1, 11)]


def test_pool_goes_by_priority_factor():
    workload = jobs((0, 2, 40, 40, 0), (0, 2, 40, 40, 1), (0, 2, 10, 10, 0), (0, 2, 12, 12, 0), (0, 2, 4, 4, 1))
    where = [{name: 2} for name in ("a", "b", "pool", "pool", "pool")]
    assert violations(workload, hybrid(), [0, 0, 7, 17, 3], where) == []
    assert violations(workload, hybrid(), [0, 0, 19, 7, 3], where)[0] == ("order", 2, 7)


def test_raises_with_the_findings():
    wrong = schedule(WAITING, MACHINE, [0, 10, 1, 15])
    with pytest.raises(VerificationError, match=r"\[submit\] job 2 at 1: .*before") as caught:
        assert_schedule(WAITING, MACHINE, wrong)
    assert [violation.job for violation in caught.value.violations] == [2]
    assert_schedule(WAITING, MACHINE, schedule(WAITING, MACHINE, [0, 10, 2, 15]))
    many = jobs(*[(9, 1, 1)] * 20)
    with pytest.raises(VerificationError, match="and 10 more"):
        assert_schedule(many, MACHINE, schedule(many, MACHINE, [0] * 20))


def test_throttle_exceeded():
    system = System(4, throttles=[Throttle(each="user", max_run_cores=2)])
    workload = jobs((0, 2, 5, 5, 0, 7), (1, 1, 5, 5, 0, 7), (1, 1, 5, 5, 0, 8))
    assert violations(workload, system, [0, 5, 1]) == []
    assert violations(workload, system, [0, 1, 1]) == [("limit", 1, 1)]


def test_the_message_says_what_had_to_be():
    def message(starts):
        (found,) = check_schedule(WAITING, MACHINE, schedule(WAITING, MACHINE, starts))
        return str(found)

    assert message([0, 10, 15, 15]) == "[waiting] job 2 at 2: must start on 1 cores of machine, and waits"
    late = jobs((0, 3, 10), (1, 4, 5), (3, 1, 9))
    (found,) = check_schedule(late, MACHINE, schedule(late, MACHINE, [0, 12, 3]))
    assert str(found) == "[head job] job 2 at 3: starts, and must wait: job 1 is planned at 10"
