"""The verifier of multiple-queue backfilling: right schedules pass, and every other is found wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest

from parsim import System, Workload, simulate
from parsim.verify import check_schedule
from tests import fuzz, generate
from tests.beside import REFERENCE
from tests.parsim.schedules import jobs, schedule, violations


def machine(*class_limits: int, cores: int = 4) -> System:
    return System(cores, mode="multiqueue", class_limits=class_limits)


# Job 0 leaves one core idle until 10. Then job 1, the pivot of the long class, takes all; job 2, that of the short
# class, comes after it at 20. Of the last two, job 4 ends before 10 and may pass; job 3 would delay job 1.
CROWD = jobs((0, 3, 10), (1, 4, 10), (2, 4, 5), (3, 1, 8), (3, 1, 4))
TWO = machine(5)


def test_right_schedule() -> None:
    assert violations(CROWD, TWO, [0, 10, 20, 25, 3]) == []


def test_no_job_at_all() -> None:
    assert violations(Workload([], [], [], []), TWO, []) == []


def test_job_left_waiting_that_fits_beside_the_pivots() -> None:
    assert violations(CROWD, TWO, [0, 10, 20, 25, 25])[0] == ("waiting", 4, 3)


def test_backfilled_job_that_delays_the_pivot_of_its_class() -> None:
    assert violations(CROWD, TWO, [0, 11, 21, 3, 26])[0] == ("order", 4, 3)
    alone = jobs((0, 3, 10), (1, 4, 10), (3, 1, 8))
    assert violations(alone, TWO, [0, 11, 3]) == [("head job", 2, 3)]


def test_backfilled_job_that_delays_the_pivot_of_another_class() -> None:
    # Jobs 2 and 3 are of the short class, job 1 of the long. One of the short could end after the long was to begin.
    workload = jobs((0, 3, 10), (1, 4, 20), (8, 4, 4), (8, 1, 4))
    assert violations(workload, TWO, [0, 10, 30, 34]) == []
    assert violations(workload, TWO, [0, 12, 32, 8])[0] == ("head job", 3, 8)


def test_pivot_that_delays_a_pivot_before_it() -> None:
    workload = jobs((0, 3, 10), (1, 4, 20), (8, 1, 4))
    assert violations(workload, TWO, [0, 10, 30]) == []
    assert violations(workload, TWO, [0, 12, 8])[0] == ("head job", 2, 8)


def test_idle_cores_of_one_class_serve_another() -> None:
    workload = jobs((0, 2, 3), (0, 2, 3))
    assert violations(workload, TWO, [0, 0]) == []
    assert violations(workload, TWO, [0, 3]) == [("waiting", 1, 0)]


def test_shortest_class_is_backfilled_first() -> None:
    # Behind a pivot in each class, job 3 (long) and job 4 (short) want the one idle core until 10.
    workload = jobs((0, 3, 20), (1, 4, 20), (1, 4, 5), (2, 1, 6), (2, 1, 5))
    assert violations(workload, TWO, [0, 20, 40, 7, 2]) == []
    assert violations(workload, TWO, [0, 20, 40, 2, 8])[0] == ("order", 4, 2)


def test_walltime_at_a_limit_is_of_the_class_below() -> None:
    # The other job of 5 s is the pivot of its class, unless the limit is 4 and both have the same class.
    workload = jobs((0, 3, 10), (1, 4, 9), (2, 4, 5), (3, 1, 7), (3, 1, 5))
    assert violations(workload, machine(5), [0, 10, 19, 3, 24])[0] == ("order", 4, 3)
    assert violations(workload, machine(4), [0, 10, 19, 3, 24]) == []


def test_estimates_and_not_runtimes_decide() -> None:
    workload = jobs((0, 3, 10), (1, 4, 9), (3, 1, 8, 2))
    assert violations(workload, TWO, [0, 10, 19]) == []
    assert violations(workload, TWO, [0, 10, 3]) == [("head job", 2, 3)]


def test_start_at_no_event() -> None:
    assert violations(jobs((0, 4, 5), (2, 4, 5)), TWO, [0, 6]) == [("waiting", 1, 5)]


def test_columns_are_checked_first() -> None:
    assert violations(CROWD, TWO, [0, 9, 20, 25, 3]) == [("capacity", 1, 9)]
    assert violations(CROWD, TWO, [0, 10, 20, 25, 2]) == [("submit", 4, 2)]


def test_schedules_of_the_reference_simulator_are_right() -> None:
    for seed in range(500):
        case = fuzz.case("multiqueue", seed)
        assert case.check(case.reference()) == [], seed


def test_broken_schedules_are_wrong() -> None:
    assert [seed for seed in range(600) if fuzz.unnoticed("multiqueue", seed)] == []


def test_other_classes_make_another_schedule() -> None:
    """Unless both give the same, the schedule of one set of classes is wrong under another."""
    differing = 0
    for seed in range(150):
        workload, cores, own = generate.multiqueue(Random(seed))
        system, right = machine(*own, cores=cores), fuzz.case("multiqueue", seed).reference()
        for limits in ((), (3,), (2, 5, 20)):
            other = replace(system, class_limits=limits)
            same = (simulate(workload, other).start == right.start).all()
            assert bool(check_schedule(workload, other, right)) != same, (seed, limits)
            differing += not same
    assert differing > 20


@pytest.mark.parametrize(("name", "cores"), [("KTH-SP2", 100), ("SDSC-SP2", 128)])
def test_start_of_a_trace_is_right(name: str, cores: int) -> None:
    path = REFERENCE / f"{name}_easy.csv.gz"
    if not path.exists():
        pytest.skip(f"no cleaned jobs beside the project: {path.name}")
    table = pd.read_csv(path).head(4000)
    workload = Workload(table["submit"], table["cores"], table["runtime"], table["walltime"])
    system = machine(100, 1000, 10_000, cores=cores)
    right = simulate(workload, system)
    assert check_schedule(workload, system, right) == []
    for job in np.flatnonzero(right.wait > 0)[::50].tolist():
        start = right.start.copy()
        start[job] -= 1
        assert check_schedule(workload, system, schedule(workload, system, start)), job
