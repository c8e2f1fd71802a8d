"""Likely starts: what is drawn, the days ahead, earlier instants, calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parsim import State, System, Workload, simulate
from qconf.prediction.replays import FEWEST, Calibration, Log, quantile, replay
from qconf.prediction.runtimes import RunTimes
from qconf.prediction.starts import DAY, Present, Sampler, coming, days_ahead, is_weekend, likely_starts, plan

THURSDAY = 0  # 1970 began on one


def test_days_ahead_are_days_of_the_past_at_the_same_hour():
    now = 20 * DAY + 3600
    submit = np.arange(0, now, 600)
    rows, when = days_ahead(np.random.default_rng(0), submit, now, 3)
    assert rows.size == 3 * 144
    assert ((when > now) & (when <= now + 3 * DAY)).all()
    assert ((when - 1 - submit[rows]) % DAY == 0).all()
    was, will_be = (is_weekend(each // DAY * DAY + 3600) for each in (submit[rows], when - 1))
    assert (was == will_be).mean() > 0.9


def test_without_a_day_before_no_job_comes():
    rows, when = days_ahead(np.random.default_rng(0), np.array([100, 200]), 300, 3)
    assert rows.size == when.size == 0


def test_weekends():
    assert [day for day in range(7) if is_weekend(THURSDAY + day * DAY)] == [2, 3]


def present(now=1000):
    w = Workload(submit=[0, 500, 600], cores=[4, 4, 2], runtime=[1, 1, 1], walltime=[2000, 100, 100], user=[0, 0, 1])
    return Present(w, State(now, [0, now, now]), ["ann", "ann", "bob"], ["", "", ""])


def test_a_job_that_runs_goes_on_and_none_runs_longer_than_its_walltime():
    model = RunTimes()
    for _ in range(20):
        model.add("ann", "", 4, 2000, 0.1)
    sampler = Sampler(present(), model)
    for run in range(50):
        drawn = sampler.draw(run)
        assert 1000 < drawn.runtime[0] <= 2000
        assert (drawn.runtime[1:] <= 100).all()
        assert not drawn.again.size


def test_jobs_to_come_are_those_of_the_past_and_those_that_are_there():
    now = 3 * DAY
    past = Workload(submit=[100, DAY + 5], cores=[1, 2], runtime=[7, 8], walltime=[10, 20], user=[5, 6])
    there = present(now)
    w = replace(there.workload, submit=np.array([2 * DAY, 2 * DAY + 9, 2 * DAY + 99]))
    there = Present(w, State(now, [2 * DAY, now, now]), there.user, there.name)
    sampler, seen = Sampler(there, RunTimes(), past), set()
    for run in range(30):
        drawn = sampler.draw(run, days=2)
        later = coming(there, past, drawn)
        for row, ran in zip(drawn.again, later.runtime, strict=True):
            seen.add(int(row))
            assert ran == (past.runtime[row] if row < 2 else drawn.runtime[row - 2])
    assert seen == {1, 2, 3, 4}  # the day of the first is not whole


def test_the_same_seed_is_the_same_whatever_the_workers():
    system = System.single(4)
    first, second = (likely_starts(present(), system, RunTimes(), runs=9, seed=3, workers=n) for n in (1, 2))
    assert (first == second).all()
    assert (plan(present(), system) >= first).all()


def test_calibration_widens_to_what_earlier_starts_would_have_kept():
    rng = np.random.default_rng(0)
    now = np.repeat(np.arange(100), 20)
    middle = now + 1000.0
    true = np.round(middle + rng.normal(0, 300, now.size)).astype(int)
    calibration = Calibration.of(0.8, now, middle - 100, middle, middle + 100, true)
    low, high = calibration.widened(0, np.array([900.0]), np.array([1000.0]), np.array([1100.0]))
    assert 1000 - low[0] == pytest.approx(1.28 * 300, rel=0.1)
    assert high[0] - 1000 == pytest.approx(1.28 * 300, rel=0.1)
    assert calibration.widened(950, np.array([900.0]), np.array([1000.0]), np.array([1100.0]))[0][0] == 950
    few = Calibration.of(0.8, now[: FEWEST - 1], *(each[: FEWEST - 1] for each in (middle, middle, middle, true)))
    assert few.count == 0
    assert few.widened(0, np.array([1.0]), np.array([2.0]), np.array([3.0])) == (np.array([1.0]), np.array([3.0]))


def test_a_weighted_quantile():
    values = np.array([3.0, 1.0, 2.0])
    assert quantile(values, np.ones(3), 0.5) == 2
    assert quantile(values, np.array([10.0, 1.0, 1.0]), 0.5) == 3


def log(n=3000):
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 60 * DAY, n))
    walltime = rng.integers(1, 9, n) * 7200
    w = Workload(submit, rng.integers(1, 9, n), rng.integers(60, walltime), walltime, user=rng.integers(0, 9, n))
    schedule = simulate(w, System.single(16))
    user = np.array([f"u{i}" for i in w.user])
    return Log(w, schedule.start, schedule.end, user, np.full(n, ""))


def test_earlier_instants_are_predicted_by_what_was_known_then():
    of, system, now = log(), System.single(16), 50 * DAY
    model, found = replay(of, system, now, (0.8,), instants=10)
    later = of.workload.submit > now
    changed = replace(of, end=np.where(of.end > now, of.end + 99999, of.end), start=np.where(later, 2**62, of.start))
    again, same = replay(changed, system, now, (0.8,), instants=10)
    assert model.shares == again.shares
    assert found[0.8].count > 0
    assert found == same


def test_past_jobs_have_the_numbers_that_users_have_elsewhere():
    of = log(50)
    now = int(of.end.max())
    recent = of.workload.submit >= now - 28 * DAY
    w = of.past(now, {"u3": 0, "new": 1}, np.arange(50))
    assert w.queue.tolist() == np.flatnonzero(recent).tolist()
    numbers = dict(zip(of.user[recent].tolist(), w.user.tolist(), strict=True))
    assert numbers["u3"] == 0
    assert sorted(numbers.values()) == [0, *range(2, len(numbers) + 1)]
    assert len(of.past(int(of.end.min()))) == 1
