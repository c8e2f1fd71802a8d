"""Orders that are sums: Slurm's own priorities are those of the formula, and jobs start by them."""

import pytest

from qconf.config import parse
from qconf.config.multifactor import Multifactor
from tests.naive import formula_value
from tests.real_slurm.test_exports import MACHINE

ORDER = "min(eligible_time, 2592000) + (7200 if walltime <= 60 else 3600 if walltime <= 180 else 0)"
SUMS = MACHINE.replace("fcfs", ORDER) + "queues:\n  - {name: work, cores: [1, 16], walltime: [0, 10m]}\n"

pytestmark = pytest.mark.slow


def test_short_jobs_start_first_and_the_users_own_nice_value_counts(loading):
    order = Multifactor.of(parse(SUMS).order)
    with loading(SUMS) as slurm:
        running = slurm.submit("--ntasks=16 --time=1", seconds=4)
        limits = {"long": "5", "middle": "2", "short": "1", "modest": "1 --nice=5000"}
        jobs = {
            name: slurm.submit(f"--ntasks=16 --time={limit}", user="bob", seconds=2) for name, limit in limits.items()
        }
        priorities = dict(zip(jobs, map(int, slurm.of("Priority", *jobs.values())), strict=True))
        expected = {
            name: formula_value(order.formula, walltime=60 * int(limit.split()[0]), eligible_time=0)
            for name, limit in limits.items()
        }
        expected["modest"] -= 5000
        for name, value in priorities.items():
            assert 0 <= value - expected[name] <= 60, name  # and seconds of waiting
        slurm.until("! squeue --noheader | grep .")
        begun = slurm.of("StartTime", running, *(jobs[name] for name in ("short", "middle", "modest", "long")))
        assert begun == sorted(begun)
        assert len(set(begun)) == len(begun)
