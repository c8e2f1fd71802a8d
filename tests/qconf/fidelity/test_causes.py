"""What holds jobs shows in a log, and is said of those farthest off."""

from dataclasses import replace

import numpy as np
import pytest

from parsim import Workload, simulate
from qconf.fidelity.verify import verify
from qconf.fidelity.windows import HELD, Recorded, Timeline, held
from tests.qconf.fidelity.logs import DAY, HOUR, history, later, site, workload


def held_log(w, row, seconds):
    """A log in which something holds one job for so long after its submission."""
    start = simulate(later(w, row, seconds), site().system()).start
    return history(w, start, site())


def test_a_held_job_is_found_and_the_others_are_right_without_it():
    w = workload(jobs=300)
    row = int(np.flatnonzero((w.cores == 1) & (w.submit > 6 * DAY))[0])
    log = held_log(w, row, 2 * DAY)
    found = verify(log, site(), lengths=(DAY, DAY), count=14)
    recorded = Recorded.of(log, site())
    assert np.flatnonzero(held(recorded, Timeline.of(recorded), np.arange(len(w)))).tolist() == [row]
    assert found.held == 1
    assert found.total.only_simulated >= 1
    first = found.farthest[0]
    assert first.job_id == str(row)
    assert first.recorded - first.simulated > DAY
    assert any(cause.startswith("held: fits on idle cores from ") for cause in first.causes)
    assert any(cause.startswith("order: ") for cause in first.causes)
    others = found.without_held
    assert (others.counted.least, others.counted.most, others.agreement) == (0, 0, 1.0)


def test_no_job_of_a_log_that_the_simulator_wrote_is_held():
    for order in ("fcfs", "sjf"):
        config = site(order=order)
        w = workload()
        recorded = Recorded.of(history(w, simulate(w, config.system()).start, config), config)
        assert not held(recorded, Timeline.of(recorded), np.arange(len(w))).any(), order


def test_idle_cores_by_the_log():
    w = Workload(submit=[0, 0, 10], cores=[40, 20, 60], runtime=[100, 50, 30], walltime=[100, 50, 30])
    recorded = Recorded.of(history(w, np.array([0, 20, 100]), site()), site())
    found = Timeline.of(recorded)
    assert dict(zip(found.instants.tolist(), found.idle.tolist(), strict=True)) == {
        0: 24,
        20: 4,
        70: 24,
        100: 4,
        130: 64,
    }
    least = found.least_between(np.array([0, 0, 75, 130]), np.array([20, 21, 101, 200]))
    assert least.tolist() == [24, 4, 4, 64]
    rng = np.random.default_rng(0)
    recorded = Recorded.of(held_log(workload(), 50, DAY), site())
    found = Timeline.of(recorded)
    begin = rng.integers(0, 14 * DAY, 200)
    end = begin + rng.integers(1, 3 * DAY, 200)
    slow = []
    for low, high in zip(begin.tolist(), end.tolist(), strict=True):
        during = found.idle[(found.instants >= low) & (found.instants < high)].tolist()
        before = found.idle[found.instants <= low]
        slow.append(min([*during, *(before[-1:].tolist() or [int(found.idle[0])])]))
    assert found.least_between(begin, end).tolist() == slow


def test_a_dependency_shows_by_the_end_of_another_job_of_the_user():
    # A machine that is never full; job 1 waits for job 0 of its user, others come and go.
    submit = np.concatenate(([0, 60], np.arange(1, 40) * 1800))
    cores, runtime = np.full(41, 4), np.concatenate(([8 * HOUR, 600], np.full(39, 900)))
    user = np.concatenate(([0, 0], np.full(39, 1)))
    w = Workload(submit, cores, runtime, runtime + 60, user=user)
    order = np.argsort(w.submit, kind="stable")
    start = w.submit.copy()
    start[1] = 8 * HOUR + 20
    log = history(w.take(order), start[order], site())
    found = verify(log, site(), lengths=(DAY, DAY))
    assert found.farthest[0].job_id == "1"
    kinds = [cause.partition(":")[0] for cause in found.farthest[0].causes]
    assert kinds == ["held", "dependency", "limit", "order"]
    assert "20 s after job 0 of the same user ends" in found.farthest[0].causes[1]
    assert "1 jobs running" in found.farthest[0].causes[2]


def test_a_downtime_shows_by_starts_that_are_missing():
    w = workload(jobs=200)
    start = w.submit.copy()
    down = (w.submit >= 5 * DAY) & (w.submit < 5 * DAY + 9 * HOUR)
    start[down] = 5 * DAY + 9 * HOUR
    quiet = replace(w, cores=np.ones_like(w.cores))
    found = verify(history(quiet, start, site()), site(), lengths=(DAY, DAY), count=14)
    assert found.farthest
    assert all(any(cause.startswith("downtime: ") for cause in job.causes) for job in found.farthest)


def test_a_job_that_is_simulated_too_late_has_what_it_waits_for():
    w = workload()
    found = verify(history(w, simulate(w, site(order="sjf").system()).start, site()), site(), count=20)
    late = [job for job in found.farthest if job.simulated > job.recorded]
    assert late
    for job in late:
        assert any(cause.startswith(("simulation: ", "limit: ")) for cause in job.causes), job


@pytest.mark.parametrize("shown", [0, 1, 3])
def test_so_many_jobs_are_shown_each_of_another_user(shown):
    w = workload()
    log = history(w, simulate(w, site(order="sjf").system()).start, site())
    found = verify(log, site(), count=20, shown=shown).farthest
    assert len(found) == shown
    assert len({job.user for job in found}) == shown
    assert HELD == HOUR
