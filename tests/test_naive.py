"""Oracle and simulator against schedules computed by hand, and the oracle against another simulator on real traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import parsim
from parsim.model.system import Pool, Queue, System
from parsim.model.throttles import Throttle
from parsim.model.workload import Workload
from parsim.naive.formula import formula_value
from parsim.naive.multiqueue import simulate_multiqueue
from parsim.naive.simulator import NaiveSchedule, simulate
from tests.beside import REFERENCE


def jobs(*rows: tuple[int, ...]) -> Workload:
    """Return a workload of rows (submit, cores, runtime, walltime[, queue = 0[, user = -1]])."""
    full = [(*row, *(0, -1)[len(row) - 4 :]) for row in rows]
    return Workload(*zip(*full, strict=True))


def run(system: System, *rows: tuple[int, ...]) -> NaiveSchedule:
    """Simulate by the oracle, the simulator and, through limits that no job reaches, its general event loop."""
    workload, found = jobs(*rows), simulate(jobs(*rows), system)
    fast = parsim.simulate(workload, system)
    assert [fast.placement(job) for job in range(len(workload))] == found.placement
    alike = [system, replace(system, throttles=[Throttle(max_run=10**9)])]
    if system.mode == "shared" and len(system.queues) == 1 and system.reserve == "cores" and not system.reserve_after:
        queue = replace(system.queues[0], partition=system.cores, max_run=system.queues[0].max_run or 10**9)
        alike.append(replace(system, mode="partitioned", queues=[queue]))
    assert [parsim.simulate(workload, each).start.tolist() for each in alike] == [found.start] * len(alike)
    return found


def starts(system: System, *rows: tuple[int, ...]) -> list[int]:
    return run(system, *rows).start


# --- EASY and FCFS


def test_backfill_may_end_exactly_at_the_shadow() -> None:
    # One core is idle beside the first job until 10, when the second needs all four: shadow 10, extra 0.
    ahead = ((0, 3, 10, 10), (1, 4, 10, 10))
    assert starts(System.single(4), *ahead, (2, 1, 8, 8)) == [0, 10, 2]
    assert starts(System.single(4), *ahead, (2, 1, 9, 9)) == [0, 10, 20]
    assert starts(System.single(4, backfill=False), *ahead, (2, 1, 8, 8)) == [0, 10, 20]


def test_nothing_is_reserved_for_a_job_that_has_not_waited_long_enough() -> None:
    # Until 6 the second job blocks no job: the third may take for long the core that it would need at 10.
    ahead = ((0, 3, 10, 10), (1, 4, 10, 10))
    assert starts(System(4, reserve_after=5), *ahead, (2, 1, 50, 50)) == [0, 52, 2]
    assert starts(System(4, reserve_after=5), *ahead, (5, 1, 50, 50)) == [0, 55, 5]
    assert starts(System(4, reserve_after=5), *ahead, (6, 1, 50, 50)) == [0, 10, 20]
    # Of two that do not fit at 6 the one that has waited is the head job, though the other goes before it in the order.
    rows = ((0, 3, 10, 10), (1, 4, 9, 9), (6, 2, 2, 2), (6, 1, 20, 20))
    assert starts(System(4, order="sjf"), *rows) == [0, 26, 10, 6]
    assert starts(System(4, order="sjf", reserve_after=5), *rows) == [0, 12, 10, 21]
    assert starts(System(4, [Queue(partition=4)], "partitioned", reserve_after=5), *ahead, (2, 1, 50, 50)) == [
        0,
        10,
        20,
    ]


def test_extra_cores_are_used_up() -> None:
    # At 10 five cores are there, four for the head job: one extra, for the first long job and not for the second.
    rows = ((0, 3, 10, 10), (1, 4, 5, 5), (2, 1, 100, 100), (2, 1, 100, 100))
    assert starts(System.single(5), *rows) == [0, 10, 2, 15]
    # The long jobs may start when the first ends at 5: one core is extra for the head job of five at 10.
    rows = ((0, 2, 5, 5), (0, 4, 10, 10), (1, 5, 5, 5), (2, 1, 100, 100), (2, 1, 100, 100))
    assert starts(System.single(6), *rows) == [0, 0, 10, 5, 15]


def test_every_job_that_ends_at_the_shadow_counts() -> None:
    # Both first jobs end at 10 and leave six cores: three extra, although one end would do for the head job.
    rows = ((0, 2, 10, 10), (0, 2, 10, 10), (1, 3, 5, 5), (1, 2, 50, 50))
    assert starts(System.single(6), *rows) == [0, 0, 10, 1]


def test_the_scheduler_plans_with_walltimes_and_kills_at_them() -> None:
    # The first job requested 10 and ends at 2; until then 10 is the shadow, and the third job fills it.
    assert starts(System.single(4), (0, 3, 2, 10), (1, 4, 5, 5), (1, 1, 9, 9)) == [0, 10, 1]
    assert starts(System.single(1), (0, 1, 100, 10), (0, 1, 1, 1)) == [0, 10]


def test_one_pass_after_all_completions_and_submissions_of_an_instant() -> None:
    # At 5 the machine empties and a shorter job arrives: it is there when the only pass of the instant looks.
    assert starts(System.single(2, "sjf"), (0, 2, 5, 5), (1, 2, 5, 5), (5, 2, 1, 1)) == [0, 6, 5]


# --- a shared machine: orders, starvation, limits


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("fcfs", [0, 10, 21, 13]),
        ("sjf", [0, 12, 10, 15]),
        ("ljf", [0, 18, 21, 10]),
        # At 10 the slowdowns are 12/3, 5/2 and 16/8; at 13 those of the last two are 8/2 and 19/8.
        ("lxf", [0, 10, 13, 15]),
        ("-walltime", [0, 12, 10, 15]),
    ],
)
def test_orders(order: str, expected: list[int]) -> None:
    rows = ((0, 1, 10, 10), (1, 1, 3, 3), (7, 1, 2, 2), (2, 1, 8, 8))
    assert starts(System.single(1, order), *rows) == expected


def test_wfp3_weighs_cores() -> None:
    # At 10: (7/4)^3 * 8 = 42.9 against (2/1)^3 * 5 = 40, where the slowdowns are 11/4 against 3/1.
    rows = ((0, 8, 10, 10), (3, 8, 4, 4), (8, 5, 1, 1))
    assert starts(System.single(8, "wfp3"), *rows) == [0, 10, 14]
    assert starts(System.single(8, "lxf"), *rows) == [0, 11, 10]


def test_equal_ratios_go_by_submit() -> None:
    # At 10 both have waited a third of their walltimes, 3 of 9 and 1 of 3.
    rows = ((0, 1, 10, 10), (9, 1, 3, 3), (7, 1, 9, 9))
    assert starts(System.single(1, "lxf"), *rows) == [0, 19, 10]
    assert starts(System.single(1, "wfp3"), *rows) == [0, 19, 10]


@pytest.mark.parametrize(
    ("starvation", "expected"),
    [
        (None, [0, 24, 8, 16]),
        (10, [0, 16, 8, 24]),
        (15, [0, 16, 8, 24]),  # from 1 + 15 = 16 on, that instant included
        (16, [0, 24, 8, 16]),
        (7, [0, 8, 16, 24]),
    ],
)
def test_starving_jobs_go_before_higher_priorities(starvation: int | None, expected: list[int]) -> None:
    queues = (Queue("low", starvation=starvation), Queue("high", priority=2))
    rows = ((0, 1, 8, 8), (1, 1, 8, 8), (2, 1, 8, 8, 1), (3, 1, 8, 8, 1))
    assert starts(System(1, queues), *rows) == expected


def test_a_job_wakes_up_when_it_starves() -> None:
    # The last job would hold up the wide head job before it, until it starves at 2 + 5 and goes first.
    queues = (Queue("low", starvation=5), Queue("high", priority=2))
    rows = ((0, 3, 20, 20, 1), (1, 4, 5, 5, 1), (2, 1, 30, 30))
    assert starts(System(4, queues), *rows) == [0, 37, 7]


def limited(**limits: int) -> System:
    return System(10, (Queue("a", **limits), Queue("b")))


def test_running_jobs_and_running_cores_are_limited() -> None:
    assert starts(limited(max_run=1), (0, 1, 10, 10), (1, 1, 5, 5), (2, 1, 5, 5, 1)) == [0, 10, 2]
    assert starts(limited(max_run_cores=4), (0, 3, 10, 10), (1, 2, 5, 5), (2, 1, 5, 5)) == [0, 10, 2]


def test_users_are_limited_in_their_queue_unless_unknown() -> None:
    first, same_user, other, elsewhere = (
        (0, 3, 10, 10, 0, 7),
        (1, 2, 5, 5, 0, 7),
        (2, 2, 5, 5, 0, 8),
        (2, 2, 5, 5, 1, 7),
    )
    unknown = ((3, 1, 5, 5), (3, 1, 5, 5))
    for limits in ({"max_user_run": 1}, {"max_user_cores": 4}):
        assert starts(limited(**limits), first, same_user, other, elsewhere, *unknown) == [0, 10, 2, 2, 3, 3]


def test_a_held_job_blocks_no_other() -> None:
    # The second job is wide and held: no head job, so the long third one starts. From 10 on it is the head job.
    system = System(4, (Queue("a", max_run=1), Queue("b")))
    assert starts(system, (0, 2, 10, 10), (1, 4, 5, 5), (2, 2, 20, 20, 1)) == [0, 22, 2]


def test_a_head_job_counts_against_the_limits_of_its_queue() -> None:
    rows = ((0, 8, 10, 10, 1), (1, 5, 5, 5), (2, 1, 3, 3))
    assert starts(limited(), *rows) == [0, 10, 2]
    assert starts(limited(max_run=1), *rows) == [0, 10, 15]


def test_a_start_before_the_head_job_takes_of_what_it_left() -> None:
    # Of five cores the second needs four at 10, too many are missing for the third, and one is extra: for the fourth,
    # which goes before the second, and not for the last.
    rows = ((0, 3, 10, 10), (1, 4, 50, 50), (1, 2, 60, 60), (2, 1, 20, 20), (2, 1, 55, 55))
    assert starts(System(5, order="sjf"), *rows) == [0, 10, 60, 2, 22]


# --- a shared machine: the top job


def planned(**limits: int) -> System:
    return replace(limited(**limits), held_jobs="reserve")


def test_a_held_job_may_have_the_only_reservation() -> None:
    # As in the test of a held job that blocks no other. Now the second job is the head job, and 10 its shadow time.
    system = System(4, (Queue("a", max_run=1), Queue("b")), held_jobs="reserve")
    ahead = ((0, 2, 10, 10), (1, 4, 5, 5))
    assert starts(system, *ahead, (2, 2, 20, 20, 1)) == [0, 10, 15]
    assert starts(system, *ahead, (2, 2, 8, 8, 1)) == [0, 10, 2]
    assert starts(replace(system, backfill=False), *ahead, (2, 2, 8, 8, 1)) == [0, 10, 15]
    assert starts(replace(system, reserve_after=5), *ahead, (2, 2, 20, 20, 1)) == [0, 22, 2]


def test_wider_jobs_behind_a_held_head_job_have_no_reservation() -> None:
    # One core is reserved for the held job, none for the wide third one: the last job passes it for long.
    rows = ((0, 2, 10, 10), (1, 1, 5, 5), (2, 3, 5, 5, 1), (3, 2, 30, 30, 1))
    system = System(4, (Queue("a", max_run=1), Queue("b")))
    assert starts(system, *rows) == [0, 10, 10, 15]
    assert starts(replace(system, held_jobs="reserve"), *rows) == [0, 10, 33, 3]


def test_each_queue_may_have_a_head_job() -> None:
    # The third job needs the machine, from 10 on; the fourth, of another queue, three cores, which are idle from 4 on.
    rows = ((0, 2, 4, 4), (0, 1, 10, 10), (1, 4, 5, 5), (2, 3, 5, 5, 1), (2, 1, 8, 8, 1))
    system = System(4, (Queue("a", priority=2), Queue("b")))
    assert starts(system, *rows) == [0, 0, 10, 15, 2]
    assert starts(replace(system, reserve="queues"), *rows) == [0, 0, 10, 4, 15]
    assert starts(replace(system, reserve="queues", backfill=False), *rows) == [0, 0, 10, 15, 15]
    assert starts(replace(system, reserve="queues", reserve_after=9), *rows) == [0, 0, 10, 15, 2]


def test_a_node_stays_idle_for_a_head_job_unless_a_job_that_ends_before_takes_it() -> None:
    # The second job waits until 10, when two cores more than it needs will be idle.
    system = System(4, (Queue(),))
    rows = ((0, 3, 10, 10), (1, 2, 5, 5), (2, 1, 20, 20))
    assert starts(system, *rows) == [0, 10, 2]
    assert starts(replace(system, reserve="queues"), *rows) == [0, 10, 10]
    rows = ((0, 2, 10, 10), (1, 3, 5, 5), (2, 1, 4, 4), (2, 1, 20, 20))
    assert starts(replace(system, reserve="queues"), *rows) == [0, 10, 2, 2]
    wider = replace(system, reserve="queues", cores=8, cores_per_node=2)
    assert starts(wider, (0, 5, 10, 10), (1, 4, 5, 5), (2, 1, 20, 20), (2, 2, 20, 20)) == [0, 10, 2, 10]


def test_limits_do_not_count_the_head_jobs_of_queues() -> None:
    rows = ((0, 4, 10, 10, 1), (1, 5, 5, 5), (2, 1, 7, 7))
    system = System(5, (Queue("a", max_run=1), Queue("b")))
    assert starts(system, *rows) == [0, 10, 15]
    assert starts(replace(system, reserve="queues"), *rows) == [0, 10, 2]


def test_limits_are_planned_for_the_head_job_from_its_shadow_time_on() -> None:
    # The second job waits for cores until 10. A queue mate may run until then, and no longer.
    rows = ((0, 8, 10, 10, 1), (1, 5, 5, 5))
    assert starts(limited(max_run=1), *rows, (2, 1, 8, 8)) == [0, 10, 15]
    assert starts(planned(max_run=1), *rows, (2, 1, 8, 8)) == [0, 10, 2]
    assert starts(planned(max_run=1), *rows, (2, 1, 9, 9)) == [0, 10, 15]
    assert starts(planned(max_run_cores=5), *rows, (2, 1, 9, 9)) == [0, 10, 15]
    assert starts(planned(max_run_cores=6), *rows, (2, 1, 9, 9)) == [0, 10, 2]
    users = ((0, 8, 10, 10, 1), (1, 5, 5, 5, 0, 7))
    assert starts(planned(max_user_run=1), *users, (2, 1, 9, 9, 0, 7), (2, 1, 9, 9, 0, 8)) == [0, 10, 15, 2]


def test_the_shadow_time_is_when_limits_and_cores_allow() -> None:
    # Cores are there at 5, and the limit lets the third job start at 20: the last one may run until then.
    rows = ((0, 3, 20, 20), (0, 7, 5, 5, 1), (1, 7, 5, 5))
    assert starts(planned(max_run=1), *rows, (2, 7, 15, 15, 1)) == [0, 0, 20, 5]
    assert starts(planned(max_run=1), *rows, (2, 7, 16, 16, 1)) == [0, 0, 20, 25]


def test_nodes_of_the_head_job_are_kept_for_it() -> None:
    # From 2 on one core of the first node is idle, which the third job, two cores at 10, holds. One more is to spare
    # at 10, on another node.
    rows = ((0, 1, 2, 2), (0, 3, 10, 10), (3, 2, 5, 5))
    for size in (1, 2):
        system = System(4, reserve="nodes", cores_per_node=size)
        assert starts(system, *rows, (4, 1, 50, 50)) == [0, 0, 10, 10]
        assert starts(system, *rows, (4, 1, 6, 6)) == [0, 0, 10, 4]
    for system in (System(4), System(4, cores_per_node=2), System(4, reserve="nodes", cores_per_node=4)):
        assert starts(system, *rows, (4, 1, 50, 50)) == [0, 0, 10, 4]


def test_the_last_node_has_what_is_left() -> None:
    # Nodes of 3 and 1 core: at 10 the head job holds 2 of the first, where a core is left beside it.
    rows = ((0, 1, 2, 2), (0, 3, 10, 10), (3, 2, 5, 5), (4, 1, 50, 50))
    assert starts(System(4, reserve="nodes", cores_per_node=3), *rows) == [0, 0, 10, 4]


# --- formulas


def test_eligible_time_stands_still_while_a_limit_holds_the_job() -> None:
    # At 10 one core is free. The second job has waited 9 s, held by the first throughout; the fourth 4 s,
    # free.
    system = System(2, (Queue("a", max_run=1), Queue("b")), order="eligible_time")
    rows = ((0, 1, 10, 10), (1, 1, 4, 4), (0, 1, 50, 50, 1), (6, 1, 4, 4, 1))
    assert starts(system, *rows) == [0, 14, 0, 10]


@pytest.mark.parametrize("formula", ["__import__('os')", "ncpus.real", "[ncpus]", "True", "'a'", "max(ncpus, *[1])"])
def test_formula_refuses_what_is_none(formula: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        formula_value(formula, ncpus=4)


# --- partitions and advance reservations


def test_partitions_are_lists_of_their_own() -> None:
    system = System(8, (Queue("a", partition=4), Queue("b", partition=4)), mode="partitioned")
    schedule = run(system, (0, 4, 10, 10), (1, 1, 5, 5), (1, 4, 5, 5, 1))
    assert schedule.start == [0, 10, 1]
    assert schedule.placement == [{"a": 4}, {"a": 1}, {"b": 4}]


def reserving(**small: int) -> System:
    queues = (Queue("small", partition=4, **small), Queue("medium", partition=6), Queue("large", reservation=True))
    return System(10, queues, mode="partitioned")


def test_what_starts_in_a_pass_is_active_from_the_next_one_on() -> None:
    # At 5 the reserved job of the second user has started before his other job is compared with that of the third.
    queues = (Queue("a", partition=4), Queue("wide", reservation=True), Queue("b", partition=4))
    rows = ((0, 4, 5, 5, 0, 0), (1, 3, 5, 5, 0, 1), (2, 3, 5, 5, 0, 2), (5, 2, 9, 9, 1, 1))
    assert starts(System(8, queues, mode="partitioned", order="-active_jobs"), *rows) == [0, 5, 10, 5]


@pytest.mark.parametrize(
    ("cores", "shares"),
    [
        (5, {"small": 2, "medium": 3}),
        (4, {"small": 1, "medium": 3}),  # 1.6 and 2.4: the core left over goes where most are free
        (1, {"medium": 1}),
        (10, {"small": 4, "medium": 6}),
    ],
)
def test_shares_are_proportional_to_what_is_free(cores: int, shares: dict[str, int]) -> None:
    schedule = run(reserving(), (0, cores, 5, 5, 2))
    assert schedule.start == [0]
    assert schedule.placement == [shares]


def test_a_core_left_over_goes_to_the_first_of_equal_parts() -> None:
    queues = (Queue("a", partition=4), Queue("large", reservation=True), Queue("b", partition=4))
    system = System(12, queues, mode="hybrid", pool=Pool(4))
    # 5/3 each: two cores left over, one each for the first two partitions and none for the pool, which is last.
    assert run(system, (0, 5, 5, 5, 1)).placement == [{"a": 2, "b": 2, "pool": 1}]


FULL = ((0, 4, 10, 10, 0), (0, 6, 20, 20, 1))  # both partitions, until 10 and until 20
WIDE = (1, 8, 5, 5, 2)  # at 20, on 3 and 5 cores


def test_a_job_that_ends_at_the_reservation_may_start() -> None:
    schedule = run(reserving(), *FULL, WIDE, (2, 4, 10, 10), (3, 1, 30, 30))
    # The last job finds its partition full until 20, and there the one core that the reservation leaves.
    assert schedule.start == [0, 0, 20, 10, 20]
    assert schedule.placement[2] == {"small": 3, "medium": 5}
    assert starts(reserving(), *FULL, WIDE, (2, 4, 11, 11)) == [0, 0, 20, 25]


def test_a_standing_reservation_holds_back_partition_jobs() -> None:
    schedule = run(reserving(), *FULL, WIDE, (3, 2, 30, 30), (4, 1, 30, 30))
    # At 10 small is idle. Two cores for 30 s would leave 2 at 20, where the share is 3: that job is a head job,
    # and 25 is its instant. One core for 30 s leaves 3 at 20, and enough for the head job at 25. At 20 small
    # has 3 cores and medium 6: the shares are now 8 * 3 / 9 and 8 * 6 / 9, 2 and 5 and one left over.
    assert schedule.start == [0, 0, 20, 25, 10]
    assert schedule.placement[2] == {"small": 2, "medium": 6}


def test_a_head_job_needs_its_whole_walltime_before_the_reservation_or_after_it() -> None:
    # At 10 the head job, 2 cores for 11 s, would run into the reservation of 3 of the 4 cores in [20, 25): its
    # instant is 25, and the last job, 2 cores for 10 s, fills the gap. One second shorter, the head job starts
    # at 10 itself.
    gap = (4, 2, 10, 10)
    assert starts(reserving(), *FULL, WIDE, (3, 2, 11, 11), gap) == [0, 0, 20, 25, 10]
    assert starts(reserving(), *FULL, WIDE, (3, 2, 10, 10), gap) == [0, 0, 20, 10, 10]


def test_a_starving_job_keeps_its_part_from_later_reservations() -> None:
    rows = ((0, 3, 20, 20, 0), (1, 2, 10, 10, 0), (2, 7, 5, 5, 2), (0, 6, 8, 8, 1), (3, 6, 4, 4, 1), (4, 1, 1, 1, 2))
    # Without starvation 1 + 6 cores are reserved at 8. When they end at 13 the other reserved job comes
    # first and takes one of the 6 in medium, so that the job of medium starts a second later.
    without = run(reserving(), *rows)
    assert without.start == [0, 20, 8, 0, 14, 13]
    assert without.placement[2] == {"small": 1, "medium": 6}
    # The second job starves from 6 on: medium alone cannot hold 7, so nothing is reserved and the whole
    # reserved list waits. At 20 it is visited before the starving job starts: its next chance is at 30.
    starved = run(reserving(starvation=5), *rows)
    assert starved.start == [0, 20, 30, 0, 8, 30]
    assert starved.placement[2] == {"small": 2, "medium": 5}
    assert starved.placement[5] == {"small": 1}


# --- the pool


def half_pool(placement: str = "pool", entry: str = "either", **more: object) -> System:
    """4 cores for `own`, 4 in the pool, home of `guest` and `vip`: open to `own` after half a walltime."""
    queues = (Queue("own", partition=4), Queue("guest", starvation=6), Queue("vip", priority=4))
    pool = Pool(4, placement=placement, entry=entry, **more)
    return System(8, queues, mode="hybrid", pool=pool)


@pytest.mark.parametrize(
    ("threshold", "priority", "longest", "walltime", "wait"),
    [
        (40, 60, 1000, 9, 7),  # above 6 s
        (40, 60, 6, 9, 5),  # the queue's maximum counts where it is less
        (40, 60, 1000, 10, 7),  # above 6.67 s
        (1.1, 0.1, 1000, 10, 111),  # above 110 s, 110.00000000000001 in floating point
        (0, 60, 1000, 9, 0),
    ],
)
def test_the_pool_opens_at_an_exact_instant(
    threshold: float, priority: float, longest: int, walltime: int, wait: int
) -> None:
    queue = Queue("own", partition=4, priority=priority, walltime=(0, longest))
    system = System(8, (queue,), mode="hybrid", pool=Pool(4, threshold=threshold))
    schedule = run(system, (0, 4, 200, 200), (1, 2, 5, walltime))
    assert schedule.start == [0, 1 + wait]
    assert schedule.placement == [{"own": 4}, {"pool": 2}]


def test_homes() -> None:
    queues = (Queue("own", partition=2), Queue("guest"))
    system = System(8, queues, mode="hybrid", pool=Pool(6))
    # In its partition, in the pool as it is wider, in the pool for lack of a partition, over both as it is
    # wider.
    schedule = run(system, (0, 2, 5, 5), (0, 3, 5, 5), (0, 3, 5, 5, 1), (5, 7, 5, 5), (20, 2, 1, 1, 1))
    assert schedule.start == [0, 0, 0, 5, 20]
    assert schedule.placement == [{"own": 2}, {"pool": 3}, {"pool": 3}, {"own": 1, "pool": 6}, {"pool": 2}]


def test_an_eligible_job_starts_where_it_first_can_or_has_moved_for_good() -> None:
    # The second job is eligible after 3. Its partition is free at 10, the pool at 20.
    rows = ((0, 4, 10, 10), (1, 2, 4, 4), (0, 4, 20, 20, 1))
    either, move = run(half_pool(), *rows), run(half_pool(entry="move"), *rows)
    assert (either.start, either.placement[1]) == ([0, 10, 0], {"own": 2})
    assert (move.start, move.placement[1]) == ([0, 20, 0], {"pool": 2})


def test_the_pool_goes_by_priority_factor() -> None:
    # At 10 the factors are 9/10 * 1 and 5/10 * 4; the guest has starved since 1 + 6.
    rows = ((0, 4, 10, 10, 1), (1, 4, 10, 10, 1), (5, 4, 10, 10, 2))
    assert starts(half_pool(), *rows) == [0, 20, 10]
    assert starts(half_pool(starving_first=True), *rows) == [0, 10, 20]


def test_a_head_job_that_left_through_the_pool_frees_its_partition_at_the_next_event() -> None:
    # The second job is a head job until it is eligible after 1 + 2. The third may pass then, but its list had its
    # visit.
    rows = ((0, 3, 10, 10), (1, 4, 4, 4), (2, 1, 50, 50))
    schedule = run(half_pool(), *rows)
    assert schedule.start == [0, 4, 8]
    assert schedule.placement[1:] == [{"pool": 4}, {"own": 1}]


def test_a_head_job_that_left_through_the_pool_is_a_head_job_no_longer() -> None:
    # The pool opens at 6 and takes the head job of `own` (4 cores, factor 5/4), whose instant there was 10.
    ahead = ((0, 2, 10, 10), (0, 6, 6, 6, 1), (1, 4, 4, 4))
    queues = (Queue("own", partition=4, max_run=3), Queue("guest"))
    system = System(10, queues, mode="hybrid", pool=Pool(6, placement="combined"))
    # The last is the third of its queue to run, for the former head job, running, counts once.
    assert starts(system, *ahead, (1, 2, 10, 10)) == [0, 0, 6, 7]
    # It may stay on the two idle cores of the partition beyond 10, with two of the pool.
    schedule = run(system, *ahead, (2, 4, 8, 8))
    assert (schedule.start, schedule.placement[3]) == ([0, 0, 6, 7], {"own": 2, "pool": 2})


def test_a_job_on_partition_and_pool_together() -> None:
    # One core is free in the partition and two in the pool, and the last job is eligible after 1 + 2.
    rows = ((0, 3, 10, 10), (0, 2, 10, 10, 1), (1, 3, 4, 4))
    combined = run(half_pool("combined"), *rows)
    assert (combined.start, combined.placement[2]) == ([0, 0, 4], {"own": 1, "pool": 2})
    whole = run(half_pool(), *rows)
    assert (whole.start, whole.placement[2]) == ([0, 0, 10], {"own": 3})


def test_a_combined_job_keeps_off_the_head_job_of_its_partition() -> None:
    # Two cores are free in the partition, whose head job wants all four at 10, and one in the pool.
    ahead = ((0, 2, 10, 10), (1, 4, 20, 20), (0, 3, 50, 50, 1))
    short = run(half_pool("combined"), *ahead, (2, 3, 4, 4))
    assert (short.start, short.placement[3]) == ([0, 10, 0, 5], {"own": 2, "pool": 1})  # until 9
    assert starts(half_pool("combined"), *ahead, (2, 3, 8, 8)) == [0, 10, 0, 30]  # from 7 until 15


def test_a_job_wider_than_the_pool_is_eligible_if_combined_and_never_its_head_job() -> None:
    queues = (Queue("own", partition=6), Queue("guest"))
    pool, combined = (
        System(8, queues, mode="hybrid", pool=Pool(2, placement=placement, entry="move"))
        for placement in ("pool", "combined")
    )
    rows = ((0, 4, 10, 10), (1, 4, 4, 4))  # eligible after 1 + 2
    assert starts(pool, *rows) == [0, 10]
    schedule = run(combined, *rows)
    assert (schedule.start, schedule.placement[1]) == ([0, 4], {"own": 2, "pool": 2})
    # One free core of its own and three of the pool: passed over there, it waits for its partition.
    rows = ((0, 5, 10, 10), (1, 4, 4, 4), (0, 1, 6, 6, 1), (4, 1, 30, 30, 1))
    assert starts(combined, *rows) == [0, 10, 0, 4]


def test_reservations_span_the_pool() -> None:
    schedule = run(half_pool(), (0, 2, 10, 10), (0, 1, 4, 4, 1), (1, 8, 5, 5), (2, 2, 9, 9, 1), (3, 1, 7, 7, 1))
    # T = 10 takes the whole machine: a guest may start only if its walltime ends by then.
    assert schedule.start == [0, 0, 10, 15, 3]
    assert schedule.placement[2] == {"own": 4, "pool": 4}


def test_a_reserved_head_job_counts_against_the_limits_of_its_queue_only_while_its_reservation_stands() -> None:
    rows = ((0, 4, 5, 5, 1), (1, 4, 10, 10, 2), (2, 8, 5, 5, 2))
    for starvation, expected in ((None, [0, 10, 5]), (2, [0, 5, 15])):
        queues = (Queue("own", partition=4), Queue("guest"), Queue("one", max_run=1, starvation=starvation))
        # The second job, at home in the pool, is held by the reservation of the other. When it starves at 3 it
        # closes the pool to the other, which then has no reservation and holds no job.
        assert starts(System(8, queues, mode="hybrid", pool=Pool(4)), *rows) == expected


# --- multiple-queue backfilling


def test_pivots_are_protected_and_others_go_shortest_class_first() -> None:
    # Pivots: the second job at 10, the third, at most 5 s and so of the short class, at 20.
    ahead = ((0, 3, 10, 10), (1, 3, 10, 10), (2, 4, 5, 5))
    # EASY protects its head job alone: the last job runs on the extra core and delays the third to 33.
    assert starts(System.single(4), *ahead, (3, 1, 30, 30)) == [0, 10, 33, 3]
    assert simulate_multiqueue(jobs(*ahead, (3, 1, 30, 30)), 4, (5,)).start == [0, 10, 20, 25]
    # One core is left until the second job, now of all four, at 10: for 6 s or, of a shorter class, for 4 s.
    ahead = ((0, 3, 10, 10), (1, 4, 10, 10), (2, 4, 5, 5))
    both = ((3, 1, 6, 6), (3, 1, 4, 4))
    assert simulate_multiqueue(jobs(*ahead, *both), 4, (5,)).start == [0, 10, 20, 25, 3]
    assert simulate_multiqueue(jobs(*ahead, *both), 4, ()).start == [0, 10, 20, 3, 25]


# --- real traces


@pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no reference schedules in {REFERENCE}")
@pytest.mark.parametrize(
    ("trace", "cores", "backfill"),
    [("KTH-SP2_fcfs", 100, False), ("KTH-SP2_easy", 100, True), ("SDSC-SP2_easy", 128, True)],
)
def test_the_beginning_of_a_reference_schedule(trace: str, cores: int, backfill: bool) -> None:
    n = 1000
    rows = np.genfromtxt(REFERENCE / f"{trace}.csv.gz", delimiter=",", names=True, dtype=np.int64, max_rows=n + 1)
    # Under EASY a later job can change the starts that follow its submission; under FCFS it cannot.
    comparable = (rows["start"] < rows["submit"][n])[:n] | (not backfill)
    rows = rows[:n]
    workload = Workload(rows["submit"], rows["cores"], rows["runtime"], rows["walltime"])
    found = np.array(simulate(workload, System.single(cores, backfill=backfill)).start)
    assert comparable.sum() > 0.9 * n
    np.testing.assert_array_equal(found[comparable], rows["start"][comparable])
