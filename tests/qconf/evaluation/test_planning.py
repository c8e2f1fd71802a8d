"""Planning disciplines on a workload: every one on the same jobs, and the same jobs at another load."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from parsim import Workload
from parsim.planning.plan import ORDERS, named, plan
from qconf.errors import InputError
from qconf.evaluation.planning import DISCIPLINES, compare, shrink

CORES = 24


def busy(jobs: int = 300, seed: int = 1) -> Workload:
    """Jobs that keep a machine of `CORES` busy, so that many wait."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(150, jobs)).astype(np.int64)
    runtime = 1 + rng.lognormal(5.2, 1.5, jobs).astype(np.int64)
    walltime = runtime + rng.lognormal(6, 1, jobs).astype(np.int64)
    return Workload(submit - submit[0], rng.integers(1, 13, jobs), runtime, walltime)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return busy()


def test_shrinking_multiplies_the_times_between_submissions() -> None:
    jobs = Workload([100, 110, 200], [1, 1, 1], [5, 5, 5], [9, 9, 9])
    assert shrink(jobs, Decimal("0.7")).submit.tolist() == [0, 7, 70]  # 0.7 as a float would give 6 and 69
    assert shrink(jobs, Decimal("0.25")).submit.tolist() == [0, 2, 25]


@pytest.mark.parametrize("factor", ["0", "-1", "100.1"])
def test_a_factor_out_of_range_is_refused(workload: Workload, factor: str) -> None:
    with pytest.raises(InputError, match="above 0"):
        shrink(workload, Decimal(factor))


def test_every_discipline_is_measured(workload: Workload) -> None:
    results = compare(workload, CORES)
    assert [result.name for result in results] == ["fcfs-easy", *(policy.name for policy in DISCIPLINES)]
    assert len({result.name for result in results}) == len(results)
    for result in results[1:]:
        assert result.starts is not None
        assert result.seconds is not None
        assert tuple(result.starts) == ORDERS
        assert sum(result.starts.values()) == len(workload)
        assert sum(result.seconds.values()) == result.metrics["makespan"]


def test_metrics_are_those_of_the_plan(workload: Workload) -> None:
    planned = plan(workload, CORES, "dynp")
    _, dynp = compare(workload, CORES, [named("dynp")])
    area = workload.cores * workload.effective_runtime
    slowdown = (planned.schedule.end - planned.schedule.submit) / workload.effective_runtime
    assert dynp.metrics["sld_wa"] == pytest.approx((slowdown * area).sum() / area.sum())
    assert dynp.decisions == planned.decisions
    assert dynp.metrics["mean_wait"] > 0


def test_the_number_of_workers_does_not_matter(workload: Workload) -> None:
    assert compare(workload, CORES, DISCIPLINES[:6], workers=4) == compare(workload, CORES, DISCIPLINES[:6])


def test_queues_of_the_history_are_ignored(workload: Workload) -> None:
    queue = np.arange(len(workload)) % 3
    split = Workload(workload.submit, workload.cores, workload.runtime, workload.walltime, queue=queue)
    assert compare(split, CORES, [named("dynp")]) == compare(workload, CORES, [named("dynp")])


def test_a_job_wider_than_the_machine_is_refused(workload: Workload) -> None:
    with pytest.raises(InputError, match="wider"):
        compare(workload, 2)
