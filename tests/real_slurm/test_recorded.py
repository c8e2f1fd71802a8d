"""Whole runs of a real Slurm that were recorded elsewhere: the simulator's starts beside theirs."""

import pytest

from tests.real_slurm.recorded import RUNS, Recorded

pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason=f"no {RUNS}")


@pytest.mark.parametrize(("name", "order", "wait"), [("H2", 0.94, 0.03), ("A2", 0.98, 0.02)])
def test_with_one_reservation_and_quick_intervals_starts_are_those_of_easy(name, order, wait):
    run = Recorded.read(name)
    start = run.simulated("cores")
    assert run.start.size == 40
    assert run.same_order(start) >= order
    assert run.wait(start) == pytest.approx(run.wait(run.start), rel=wait)
