"""Whole runs of a real Slurm that were recorded elsewhere: the simulator's starts beside theirs.

Nothing kept events apart there, as `tests.real_slurm.recording` does: schedules part for good where two lie closer
together than Slurm takes to act.
"""

import numpy as np
import pytest

import parsim
from parsim import Workload
from qconf.config import load
from qconf.history.readers import read
from tests.beside import SHARED

RUNS = SHARED / "slurm" / "real"

pytestmark = pytest.mark.skipif(not RUNS.is_dir(), reason=f"no {RUNS}")


@pytest.mark.parametrize(
    ("name", "site", "order", "wait"), [("H2", "H-fcfs", 0.94, 0.03), ("A2", "A-shared", 0.98, 0.02)]
)
def test_with_one_reservation_and_quick_intervals_starts_are_those_of_easy(name, site, order, wait):
    """Jobs are sent to queues by their size, as the export did."""
    config = load(RUNS / f"{site}.yaml").replace(reserve="cores")
    table = read(RUNS / f"{name}.sacct", format="sacct").table.sort_values("submit", kind="stable")
    jobs = {key: table[key].to_numpy() for key in ("submit", "cores", "runtime", "walltime")}
    admitted = [queue.admits(jobs["cores"], jobs["walltime"], config.grid) for queue in config.queues]
    workload = Workload(**jobs, queue=np.argmax(admitted, axis=0))
    real, simulated = table["start"].to_numpy(), parsim.simulate(workload, config.system()).start
    assert real.size == 40
    pairs = np.triu_indices(real.size, 1)
    one, other = (np.sign(np.subtract.outer(start, start))[pairs] for start in (real, simulated))
    assert np.mean(one * other >= 0) >= order
    assert np.mean(simulated - workload.submit) == pytest.approx(np.mean(real - workload.submit), rel=wait)
