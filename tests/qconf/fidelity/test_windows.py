"""Windows of a log: what they hold, and that the log of the simulator itself is simulated without an error."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from parsim import UNSTARTED, Workload, simulate
from qconf.errors import InputError
from qconf.fidelity.errors import Figures, Starts
from qconf.fidelity.verify import verify
from qconf.fidelity.windows import LEAD, LogWindow, Recorded, cut, spans
from tests.qconf.fidelity.logs import DAY, HOUR, history, limited, site, workload, written

SITES = {
    "fcfs": site(),
    "sjf": site(order="sjf"),
    "without backfilling": site(backfill=False),
    "a limit of users": limited(site(), max_user_run=2),
    "a limit of queues": limited(site(), max_run_cores=48),
    "priorities and starvation": limited(site(), starvation=DAY).replace(
        queues=(
            site().queues[0].model_copy(update={"priority": 9.0, "starvation": DAY}),
            site().queues[1].model_copy(update={"starvation": DAY}),
        )
    ),
    "partitions": site().with_partitions((32, 32)),
}


@pytest.mark.parametrize("name", SITES)
def test_what_the_simulator_wrote_has_no_error(name):
    found = verify(written(SITES[name]), SITES[name], count=20)
    total = found.total
    assert total.counted.jobs > 50
    assert (total.counted.least, total.counted.most, total.counted.deviation) == (0, 0, 0)
    assert (total.only_recorded, total.only_simulated, total.agreement) == (0, 0, 1.0)
    assert found.grade.letter == "A"
    assert found.farthest == ()


def test_another_configuration_has_errors():
    found = verify(written(site(order="sjf")), site(), count=20)
    assert found.total.counted.deviation > 60
    assert found.total.agreement < 0.9
    assert found.grade.letter != "A"


def test_windows_do_not_overlap_and_lie_in_the_log():
    recorded = Recorded.of(written(site()), site())
    found = spans(recorded, (HOUR, 6 * HOUR), 30, seed=3)
    assert len(found) == 30
    assert all(HOUR <= end - begin <= 6 * HOUR for begin, end in found)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(found))
    submit = recorded.period.workload.submit
    assert found[0][0] >= submit[0] + min(LEAD, (submit[-1] - submit[0]) // 10)
    assert found[-1][1] <= submit[-1]
    assert found == spans(recorded, (HOUR, 6 * HOUR), 30, seed=3)
    assert found != spans(recorded, (HOUR, 6 * HOUR), 30, seed=4)
    inside = spans(recorded, (HOUR, 2 * HOUR), 30, within=(5 * DAY, 6 * DAY))
    assert len(inside) == 12
    assert all(5 * DAY <= begin < end <= 6 * DAY for begin, end in inside)


def test_a_log_shorter_than_a_window_is_one():
    recorded = Recorded.of(written(site()), site())
    ((begin, end),) = spans(recorded, (2 * HOUR, 400 * DAY))
    assert begin == recorded.period.workload.submit[0]
    assert end == recorded.start.max() + 1


def test_a_window_begins_with_what_ran_and_waited_and_has_the_submissions_known():
    w = workload()
    recorded = Recorded.of(written(site(), w), site())
    start, end_of_job = recorded.start, recorded.start + w.runtime
    (window,) = cut(recorded, [(4 * DAY, 4 * DAY + 6 * HOUR)])
    expected = (w.submit < window.end) & (end_of_job > window.begin)
    assert window.rows.tolist() == np.flatnonzero(expected).tolist()
    state = window.period.state
    runs = window.start < window.begin
    assert runs.any()
    assert state.start[runs].tolist() == start[window.rows][runs].tolist()
    assert (state.start[~runs] >= window.begin).all()


def test_jobs_without_a_start_are_left_out_and_counted():
    log = written(site())
    start = log.jobs["start"].to_numpy().copy()
    start[::50] = -1
    found = Recorded.of(replace(log, jobs=log.jobs.assign(start=start)), site())
    assert found.unknown == len(start[::50])
    assert len(found.period) == len(log) - found.unknown
    with pytest.raises(InputError, match="tells no start"):
        verify(replace(log, jobs=log.jobs.assign(start=-1)), site())


def test_a_job_holds_its_reservation_until_it_is_deleted():
    w = Workload([0, 5, 10, 20], [32, 64, 32, 64], [100, 600, 200, 600], [100, 600, 200, 600], [0] * 4, [0, 1, 2, 3])
    log = history(w, np.array([0, -1, 50, -1]), site())
    gone = log.jobs.iloc[[1, 3]].assign(end=[50, 260])
    log = replace(log, jobs=log.jobs.iloc[[0, 2]], read=2, deleted=gone)
    recorded = Recorded.of(log, site())
    assert recorded.jobs["job_id"].tolist() == ["0", "1", "2", "3"]
    assert recorded.gone.tolist() == [UNSTARTED, 50, UNSTARTED, 260]
    (window,) = cut(recorded, [(0, 300)])
    assert window.simulate(site()).tolist() == [0, UNSTARTED, 50, 250]  # 3 would run until it is deleted
    found = Figures.of(Starts.of([window], site()))
    assert (found.counted.jobs, found.only_recorded, found.only_simulated, found.every.jobs) == (2, 0, 1, 2)
    # 0 and 2 wait 0 and 40 s in both, 3 waits 240 s by the log and 230 s in the simulation.
    assert found.agreement == 1.0
    (early,) = cut(recorded, [(0, 40)])
    assert early.simulate(site()).tolist() == [0, UNSTARTED, 700, UNSTARTED]  # it ends before the deletion
    (later,) = cut(recorded, [(100, 300)])
    assert later.rows.tolist() == [2, 3]
    assert verify(log, site()).warnings[0].startswith("2 jobs wait in windows until they are deleted; 0 of them")


@pytest.mark.parametrize("name", SITES)
def test_a_log_with_deletions_of_the_simulator_has_no_error(name):
    """Of every third job: it runs until it is deleted, or waits until then."""
    w, config = workload(900), SITES[name]
    end = np.full(len(w), UNSTARTED)
    end[::3] = w.submit[::3] + np.random.default_rng(1).integers(0, DAY // 2, end[::3].size)
    period = replace(Recorded.of(written(config, w), config).period, state=None)
    whole = LogWindow(0, 400 * DAY, period, np.zeros(len(w)), end, np.arange(len(w)))
    start = whole.simulate(config)
    waited = start == UNSTARTED
    assert 20 < waited.sum() < 280
    ran = replace(w, runtime=np.where(waited, w.runtime, np.clip(end - start, 1, w.runtime)))
    log = history(ran, np.where(waited, -1, start), config)
    gone = log.jobs.iloc[np.flatnonzero(waited)].assign(end=end[waited], runtime=w.walltime[waited])
    log = replace(log, jobs=log.jobs[~waited].reset_index(drop=True), read=int((~waited).sum()), deleted=gone)
    found = verify(log, config, count=20)
    assert found.total.counted.jobs > 50
    assert (found.total.only_recorded, found.total.only_simulated, found.total.agreement) == (0, 0, 1.0)
    assert found.total.counted.deviation == 0
    blind = verify(replace(log, deleted=log.deleted.iloc[:0]), config, count=20)
    assert blind.total.every.deviation > 0


def test_a_job_that_outran_its_walltime_runs_as_long_as_it_did():
    w = workload()
    log = written(site(), w)
    end = log.jobs["end"].to_numpy().copy()
    end[5] += 3 * DAY
    found = Recorded.of(replace(log, jobs=log.jobs.assign(end=end)), site()).period.workload
    assert found.effective_runtime[5] == w.runtime[5] + 3 * DAY
    assert np.delete(found.effective_runtime, 5).tolist() == np.delete(w.effective_runtime, 5).tolist()


def test_more_that_runs_than_the_machine_holds_is_counted():
    w = workload()
    log = history(w, w.submit.copy(), site())  # all start at once
    found = verify(log, site(), count=20)
    assert any("more cores ran at the begin of a window than the machine has" in each for each in found.warnings)


def test_the_clock_and_the_names_make_no_difference():
    w = workload()
    start = simulate(w, site(order="sjf").system()).start
    one = verify(history(w, start, site()), site(), count=20)
    shifted = replace(w, submit=w.submit + 10**7)
    other = verify(history(shifted, start + 10**7, site(), epoch=10**9), site(), count=20)
    assert one.total == other.total
    assert [each.figures for each in one.windows] == [each.figures for each in other.windows]
    assert other.windows[0].begin == one.windows[0].begin + 10**7 + 10**9


def test_errors_are_recorded_minus_simulated_of_jobs_inside_by_both():
    columns = (
        np.arange(5),
        np.zeros(5, dtype=np.int64),
        np.zeros(5, dtype=np.int64),
        np.full(5, 1000),
        np.full(5, UNSTARTED),
        np.array([100, 300, 900, 1500, 5000]),  # recorded
        np.array([130, 100, 1200, 800, 9000]),  # simulated
    )
    starts = Starts(*columns)
    found = Figures.of(starts)
    assert (found.counted.jobs, found.only_recorded, found.only_simulated) == (2, 1, 1)
    assert (found.counted.least, found.counted.most, found.counted.mean) == (-30, 200, 85)
    assert found.counted.deviation == pytest.approx(np.std([-30, 200], ddof=1))
    assert (found.counted.within_minute, found.counted.within_ten_minutes) == (0.5, 1.0)
    assert (found.every.jobs, found.every.least) == (5, -4000)
    # Inside the waits are 100, 300, 900, 1000 s recorded and 130, 100, 1000, 800 s simulated; 30 s are the same.
    assert found.agreement == pytest.approx(1 - (200 + 100 + 200) / (130 + 300 + 1000 + 1000))


def test_without_windows_there_is_nothing_to_measure():
    found = Figures.of(Starts.of((), site()))
    assert (found.inside, found.counted.jobs, found.every.jobs) == (0, 0, 0)
    assert np.isnan(found.agreement)
