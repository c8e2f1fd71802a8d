"""List scheduling and PBS's first FIFO scheduler, worked by hand."""

from __future__ import annotations

import pytest

from parsim import System, Workload, explain, simulate
from parsim.verify import check_schedule

# On four cores a wide job waits behind one of three; of two narrow ones the second comes when it has waited long.
JOBS = Workload([0, 1, 2, 30], [3, 4, 1, 1], [100, 10, 50, 100], [100, 10, 50, 100])


@pytest.mark.parametrize(
    ("after", "starts"),
    [
        (0, [0, 100, 110, 110]),  # the first that does not fit stops the list at once, as without backfilling
        (20, [0, 100, 2, 110]),  # it has been the first for 51 seconds when the second narrow job could start
        (51, [0, 100, 2, 110]),
        (52, [0, 152, 2, 52]),
        (10**6, [0, 152, 2, 52]),  # nothing ever stops it
    ],
)
def test_what_fits_starts_until_a_job_starves(after: int, starts: list[int]):
    system = System(4, reserve="nothing", reserve_after=after)
    schedule = simulate(JOBS, system)
    assert schedule.start.tolist() == starts
    assert check_schedule(JOBS, system, schedule) == []


def test_a_job_is_the_first_from_when_the_one_before_it_has_started():
    # The job of four cores is the first of the list from second 10 on, not from its submission in second 2.
    jobs = Workload([0, 0, 1, 2, 25], [1, 3, 3, 4, 1], [60, 10, 10, 5, 50], [60, 10, 10, 5, 50])
    passed = simulate(jobs, System(4, reserve="nothing", reserve_after=16)).start.tolist()
    assert passed == [0, 0, 10, 75, 25]
    assert simulate(jobs, System(4, reserve="nothing", reserve_after=15)).start.tolist() == [0, 0, 10, 60, 65]


def test_it_has_no_effect_without_backfilling_or_on_a_divided_machine():
    plain = simulate(JOBS, System(4, backfill=False)).start
    assert (simulate(JOBS, System(4, backfill=False, reserve="nothing", reserve_after=99)).start == plain).all()


def test_why_jobs_wait_is_said():
    system = System(4, reserve="nothing", reserve_after=20)
    schedule = simulate(JOBS, system)
    first = [reason.text for reason in explain(JOBS, system, schedule, 1)]
    assert first[0] == "the first of the list since 1, waits for 4 cores"
    behind = [reason.text for reason in explain(JOBS, system, schedule, 3)]
    assert behind[0] == "behind job 1, the first of the list since 1"
