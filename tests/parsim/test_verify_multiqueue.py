"""The judge of multiple-queue backfilling: right schedules pass, and every other is found wrong."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest

from parsim import System, Workload, simulate
from parsim.schedule import Schedule
from parsim.verify import RULES, check_schedule
from tests import generate, naive
from tests.beside import REFERENCE


def machine(*class_limits: int, cores: int = 4) -> System:
    return System(cores, mode="multiqueue", class_limits=class_limits)


def jobs(*rows: tuple[int, ...]) -> Workload:
    """Return a workload of (submit, cores, walltime[, runtime])."""
    submit, cores, walltime, runtime = zip(*((*row, row[2])[:4] for row in rows), strict=True)
    return Workload(submit, cores, runtime, walltime)


def schedule(workload: Workload, start: list[int]) -> Schedule:
    begin = np.array(start, dtype=np.int64)
    part = np.zeros(len(workload), dtype=np.int32)
    end = begin + workload.effective_runtime
    return Schedule(workload.submit, begin, end, workload.cores, part, {}, ("machine",))


def judge(workload: Workload, system: System, start: list[int]) -> list[tuple[str, int, int]]:
    found = check_schedule(workload, system, schedule(workload, start))
    assert all(violation.rule in RULES for violation in found)
    return [(violation.rule, violation.job, violation.time) for violation in found]


# Job 0 leaves one core idle until 10. Then job 1, the pivot of the long class, takes all; job 2, that of the short
# class, comes after it at 20. Of the last two, job 4 ends before 10 and may pass; job 3 would delay job 1.
CROWD = jobs((0, 3, 10), (1, 4, 10), (2, 4, 5), (3, 1, 8), (3, 1, 4))
TWO = machine(5)


def test_right_schedule() -> None:
    assert judge(CROWD, TWO, [0, 10, 20, 25, 3]) == []


def test_nothing_to_judge() -> None:
    assert judge(Workload([], [], [], []), TWO, []) == []


def test_job_left_waiting_that_fits_beside_the_pivots() -> None:
    assert judge(CROWD, TWO, [0, 10, 20, 25, 25])[0] == ("waiting", 4, 3)


def test_backfilled_job_that_delays_the_pivot_of_its_class() -> None:
    assert judge(CROWD, TWO, [0, 11, 21, 3, 26])[0] == ("order", 4, 3)
    alone = jobs((0, 3, 10), (1, 4, 10), (3, 1, 8))
    assert judge(alone, TWO, [0, 11, 3]) == [("head", 2, 3)]


def test_backfilled_job_that_delays_the_pivot_of_another_class() -> None:
    # Jobs 2 and 3 are of the short class, job 1 of the long. One of the short could end after the long was to begin.
    workload = jobs((0, 3, 10), (1, 4, 20), (8, 4, 4), (8, 1, 4))
    assert judge(workload, TWO, [0, 10, 30, 34]) == []
    assert judge(workload, TWO, [0, 12, 32, 8])[0] == ("head", 3, 8)


def test_pivot_that_delays_a_pivot_before_it() -> None:
    workload = jobs((0, 3, 10), (1, 4, 20), (8, 1, 4))
    assert judge(workload, TWO, [0, 10, 30]) == []
    assert judge(workload, TWO, [0, 12, 8])[0] == ("head", 2, 8)


def test_idle_cores_of_one_class_serve_another() -> None:
    workload = jobs((0, 2, 3), (0, 2, 3))
    assert judge(workload, TWO, [0, 0]) == []
    assert judge(workload, TWO, [0, 3]) == [("waiting", 1, 0)]


def test_shortest_class_is_backfilled_first() -> None:
    # Behind a pivot in each class, job 3 (long) and job 4 (short) want the one idle core until 10.
    workload = jobs((0, 3, 20), (1, 4, 20), (1, 4, 5), (2, 1, 6), (2, 1, 5))
    assert judge(workload, TWO, [0, 20, 40, 7, 2]) == []
    assert judge(workload, TWO, [0, 20, 40, 2, 8])[0] == ("order", 4, 2)


def test_walltime_at_a_limit_is_of_the_class_below() -> None:
    # The other job of 5 s is the pivot of its class, unless the limit is 4 and both have the same class.
    workload = jobs((0, 3, 10), (1, 4, 9), (2, 4, 5), (3, 1, 7), (3, 1, 5))
    assert judge(workload, machine(5), [0, 10, 19, 3, 24])[0] == ("order", 4, 3)
    assert judge(workload, machine(4), [0, 10, 19, 3, 24]) == []


def test_estimates_and_not_runtimes_decide() -> None:
    workload = jobs((0, 3, 10), (1, 4, 9), (3, 1, 8, 2))
    assert judge(workload, TWO, [0, 10, 19]) == []
    assert judge(workload, TWO, [0, 10, 3]) == [("head", 2, 3)]


def test_start_at_no_event() -> None:
    assert judge(jobs((0, 4, 5), (2, 4, 5)), TWO, [0, 6]) == [("waiting", 1, 5), ("event", 1, 6)]


def test_columns_are_judged_first() -> None:
    assert judge(CROWD, TWO, [0, 9, 20, 25, 3]) == [("capacity", 1, 9)]
    assert judge(CROWD, TWO, [0, 10, 20, 25, 2]) == [("submit", 4, 2)]


def drawn(seed: int) -> tuple[Workload, System, Schedule]:
    workload, cores, limits = generate.multiqueue(Random(seed))
    right = schedule(workload, naive.simulate_multiqueue(workload, cores, limits).start)
    return workload, machine(*limits, cores=cores), right


def test_schedules_of_the_slow_simulator_are_right() -> None:
    for seed in range(500):
        assert check_schedule(*drawn(seed)) == [], seed


def test_any_other_schedule_is_wrong() -> None:
    for seed in range(100, 250):
        workload, system, right = drawn(seed)
        rng = Random(seed)
        instants = sorted({*right.end.tolist(), *right.submit.tolist()})
        for _ in range(4):
            start = right.start.copy()
            job, other = rng.randrange(len(right)), rng.randrange(len(right))
            if rng.random() < 0.5:
                start[job] = rng.choice((start[job] - 1, start[job] + 1, rng.choice(instants)))
            else:
                start[[job, other]] = start[[other, job]]
            if (start != right.start).any():
                assert check_schedule(workload, system, schedule(workload, start)), (seed, job, other)


def test_other_classes_make_another_schedule() -> None:
    """Unless both give the same, the schedule of one set of classes is wrong under another."""
    differing = 0
    for seed in range(150):
        workload, system, right = drawn(seed)
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
        assert check_schedule(workload, system, schedule(workload, start)), job
