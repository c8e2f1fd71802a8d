import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim import metrics
from parsim.model.system import Queue, System
from parsim.model.workload import Workload
from tests.parsim.schedules import schedule


@pytest.fixture
def case():
    """Four cores, two queues: A and B run together, C waits for both, D has a wide hole before it."""
    workload = Workload(
        submit=[0, 0, 10, 20],
        cores=[2, 1, 4, 1],
        runtime=[20, 30, 10, 5],
        walltime=[20, 30, 10, 99],
        queue=[0, 1, 0, 1],
        user=[7, 7, 3, -1],
    )
    system = System(cores=4, queues=(Queue("large"), Queue("small")))
    return workload, system, schedule(workload, system, [0, 0, 30, 40])


def test_numbers_computed_by_hand(case):
    workload, system, schedule = case
    got = metrics.summary(workload, schedule, system).overall
    # responses 20 30 30 25, runtimes 20 30 10 5, slowdowns 1 1 3 5, waits 0 0 20 20, areas 40 30 40 5
    assert got == pytest.approx(
        {
            "jobs": 4,
            "art": 105 / 4,
            "sld": 10 / 4,
            "art_wa": (800 + 900 + 1200 + 125) / 115,
            "art_ww": (40 + 30 + 120 + 25) / 8,
            "sld_wa": (40 + 30 + 120 + 25) / 115,
            "sld_ww": (2 + 1 + 12 + 5) / 8,
            "mean_wait": 10,
            "median_wait": 10,
            "p90_wait": 20,
            "p95_wait": 20,
            "p99_wait": 20,
            "max_wait": 20,
            "mean_bounded_slowdown": (1 + 1 + 3 + 3) / 4,  # D counts as 10 s
            "bsld": (1 + 1 + 3 + 2.5) / 4,  # D responds after 25 s
            "makespan": 45,
            "utilization": 115 / 180,
            "utilization_window": 60 / 80,
            "throughput": 4 / 45,
            "loss_of_capacity": 30 / 180,  # D would fit in the 3 cores idle during [20, 30)
            "jain_users": (1 + 3) ** 2 / (2 * (1 + 9)),
            "spread_users": (1 + 0.9 * 2) / (1 + 0.1 * 2),  # percentiles lie on the line between both users
            "share_distance": np.nan,  # no order reads shares
            "preempted": 0,
            "suspended": 0,
            "work_lost": 0,
        },
        nan_ok=True,
    )
    assert list(got) == list(metrics.METRICS)


def test_queues_add_up_to_the_machine(case):
    workload, system, schedule = case
    got = metrics.summary(workload, schedule, system)
    assert list(got.queues) == ["large", "small"]
    assert got["art"] == got.overall["art"]
    for name in ("jobs", "utilization", "utilization_window", "throughput"):
        assert sum(row[name] for row in got.queues.values()) == pytest.approx(got[name])
    large, small = got.queues.values()
    assert large["makespan"] == 40
    assert large["mean_wait"] == 10
    assert large["loss_of_capacity"] == 0
    assert small["loss_of_capacity"] == got["loss_of_capacity"]
    assert small["jain_users"] == 1


def test_warm_up_jobs_hold_the_machine_but_not_the_averages(case):
    workload, system, schedule = case
    got = metrics.summary(workload, schedule, system, counted=[False, False, True, True]).overall
    assert got["jobs"] == 2
    assert got["mean_wait"] == 20
    assert got["makespan"] == 35
    assert got["utilization"] == pytest.approx((20 + 20 + 40 + 5) / (4 * 35))
    assert got["utilization_window"] == pytest.approx(30 / 40)
    assert got["throughput"] == pytest.approx(2 / 35)
    assert got["loss_of_capacity"] == pytest.approx(30 / (4 * 35))


def test_single_functions_agree_with_the_summary(case):
    workload, system, schedule = case
    got = metrics.summary(workload, schedule, system, threshold=25)
    assert metrics.bounded_slowdown(schedule, threshold=25).mean() == got["mean_bounded_slowdown"]
    assert metrics.bsld(schedule, threshold=25).mean() == got["bsld"]
    assert metrics.p95(schedule.wait) == got["p95_wait"]
    assert metrics.utilization(schedule, system.cores) == got["utilization"]
    assert metrics.loss_of_capacity(schedule, system.cores) == got["loss_of_capacity"]


def test_every_metric_has_a_unit_and_a_description():
    for name, metric in metrics.METRICS.items():
        assert metric.name == name
        assert metric.unit in {"", "s", "jobs", "jobs/s"}
        assert metric.description


def test_both_bounded_slowdowns_differ_for_short_jobs_that_wait_alone():
    workload = Workload(submit=[0, 0, 0, 0], cores=[1, 1, 1, 1], runtime=[5, 5, 5, 12], walltime=[5, 5, 5, 12])
    found = schedule(workload, System.single(1), [0, 5, 10, 15])
    assert metrics.bounded_slowdown(found).tolist() == [1, 1.5, 2, 27 / 12]
    assert metrics.bsld(found).tolist() == [1, 1, 1.5, 27 / 12]  # a job of 5 s may wait as long for nothing


def test_one_job_has_an_empty_submission_window():
    workload = Workload(submit=[5], cores=[1], runtime=[3], walltime=[3])
    system = System(cores=2, queues=(Queue("a"), Queue("unused")))
    got = metrics.summary(workload, schedule(workload, system, [5]), system)
    assert got["utilization"] == 0.5
    assert got["utilization_window"] == 0
    assert got["loss_of_capacity"] == 0
    assert got["p99_wait"] == 0
    assert np.isnan(got["jain_users"])  # no job has a user
    assert np.isnan(got["spread_users"])
    unused = got.queues["unused"]
    assert (unused["jobs"], unused["utilization"], unused["throughput"], unused["loss_of_capacity"]) == (0, 0, 0, 0)
    assert np.isnan(unused["mean_wait"])


def test_no_job_at_all():
    workload = Workload(submit=[], cores=[], runtime=[], walltime=[])
    empty = schedule(workload, System.single(3), [])
    got = metrics.summary(workload, empty, System.single(3)).overall
    assert got.pop("jobs") == 0
    assert all(np.isnan(value) for value in got.values())
    assert np.isnan(metrics.utilization(empty, 3))
    assert np.isnan(metrics.loss_of_capacity(empty, 3))


def test_lengths_must_agree(case):
    workload, system, schedule = case
    with pytest.raises(ValueError, match="counted"):
        metrics.summary(workload, schedule, system, counted=[True])


def test_jain_where_one_has_all():
    assert metrics.jain(np.array([4.0, 0.0, 0.0, 0.0])) == 0.25
    assert metrics.jain(np.array([2.0, 2.0])) == 1


def test_decile_ratio_leaves_out_the_few_at_both_ends():
    assert metrics.decile_ratio(np.full(7, 3.0)) == 1
    assert metrics.decile_ratio(np.arange(10.0, 21.0)) == pytest.approx(19 / 11)
    assert metrics.decile_ratio(np.array([10.0, *np.arange(11.0, 20.0), 1e9])) == pytest.approx(19 / 11)
    assert np.isnan(metrics.decile_ratio(np.array([])))


def by_the_second(workload, schedule, cores):
    """Used and lost core-seconds, second by second."""
    used = lost = 0
    for now in range(int(schedule.submit.min()), int(schedule.end.max())):
        busy = schedule.cores[(schedule.start <= now) & (now < schedule.end)].sum()
        waiting = schedule.cores[(schedule.submit <= now) & (now < schedule.start)]
        used += busy
        if waiting.size and waiting.min() <= cores - busy:
            lost += cores - busy
    return used, lost


@pytest.mark.parametrize("seed", range(40))
def test_against_counting_every_second(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    workload = Workload(
        submit=rng.integers(0, 40, n),
        cores=rng.integers(1, 9, n),
        runtime=rng.integers(1, 20, n),
        walltime=rng.integers(1, 30, n),
        user=rng.integers(-1, 3, n),
    )
    cores = 8 * n  # any start is possible
    system = System.single(cores)
    late = schedule(workload, system, workload.submit + rng.integers(0, 30, n) * rng.integers(0, 2, n))
    got = metrics.summary(workload, late, system)
    used, lost = by_the_second(workload, late, cores)
    total = cores * got["makespan"]
    assert got["utilization"] == pytest.approx(used / total)
    assert got["loss_of_capacity"] == pytest.approx(lost / total)
    tight = int(max(late.cores[(late.start <= t) & (t < late.end)].sum() for t in late.start))
    lost = by_the_second(workload, late, tight)[1]
    assert metrics.loss_of_capacity(late, tight) == pytest.approx(lost / (tight * got["makespan"]))
    means = [
        np.mean([max(1, (w + max(r, 10)) / max(r, 10)) for w, r, u in rows if u == user])
        for user in range(3)
        for rows in [list(zip(late.wait, late.end - late.start, workload.user, strict=True))]
        if user in workload.user
    ]
    if means:
        assert got["jain_users"] == pytest.approx(sum(means) ** 2 / len(means) / np.dot(means, means))
        assert got["spread_users"] == pytest.approx(np.percentile(means, 90) / np.percentile(means, 10))


@given(st.lists(st.integers(0, 10**9), max_size=60))
def test_p95_is_the_percentile(waits: list[int]) -> None:
    values = np.array(waits, dtype=np.int64)
    assert metrics.p95(values) == pytest.approx(np.percentile(values, 95) if waits else np.nan, nan_ok=True)
