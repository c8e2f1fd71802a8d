"""Planning schedulers: equal to the naive planner, right by hand, legal, near the published tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from parsim import UNSTARTED, State, Window, Workload
from parsim.model.schedule import Schedule
from parsim.naive.planning import naive_plan
from parsim.planning import conservative
from parsim.planning.plan import METRICS, NAMED, ORDERS, PlannedRun, Policy, bounds, named, plan, self_tuning
from parsim.verify import check_planned
from tests import fuzz, generate
from tests.beside import REFERENCE

TRACES = {"KTH": ("KTH-SP2", 100), "SDSC": ("SDSC-SP2", 128)}


def same_as_naive(seed: int) -> None:
    workload, cores, policy = generate.planned(Random(seed))
    fast, slow = plan(workload, cores, policy), naive_plan(workload, cores, policy)
    assert fast.schedule.start.tolist() == slow.start, (seed, policy)
    cases = np.zeros((3, 8, 3), dtype=np.int64)
    for before, least, chosen in slow.decisions:
        cases[ORDERS.index(before), sum(1 << ORDERS.index(x) for x in least), ORDERS.index(chosen)] += 1
    assert (fast.cases == cases).all(), (seed, policy)
    assert fast.decisions == len(slow.decisions)
    assert fast.kept == sum(before == chosen for before, _, chosen in slow.decisions)
    assert fast.starts.tolist() == list(slow.started_under.values())
    assert fast.seconds.tolist() == list(slow.seconds.values())
    assert not check_planned(workload, cores, policy, fast.schedule)


@pytest.mark.parametrize("block", range(5))
def test_equal_to_naive(block: int) -> None:
    for seed in range(40 * block, 40 * (block + 1)):
        same_as_naive(seed)


@pytest.mark.slow
def test_equal_to_naive_on_many() -> None:
    for seed in range(200, 6000):
        same_as_naive(seed)


# By hand. Four cores; A runs 0..10 (walltime 10) on three of them.


def by_hand(policy: Policy | str, *, runtime_of_a: int = 10) -> list[int]:
    workload = Workload(
        submit=[0, 1, 2, 3], cores=[3, 4, 1, 1], runtime=[runtime_of_a, 5, 9, 2], walltime=[10, 5, 9, 2]
    )
    return plan(workload, 4, policy).schedule.start.tolist()


def test_fcfs_by_hand() -> None:
    # B needs all cores at 10; C would end at 11 and so waits until 15; D fits in 3..5.
    assert by_hand("planned-fcfs") == [0, 10, 15, 3]


def test_sjf_by_hand() -> None:
    # At 2 the order is B (5), C (9): as above. At 3, D goes first.
    assert by_hand("planned-sjf") == [0, 10, 15, 3]


def test_ljf_by_hand() -> None:
    # At 2, C (9) goes before B and runs 2..11; D (2) then finds no core idle before 10.
    assert by_hand("planned-ljf") == [0, 11, 2, 16]


def test_a_completion_before_its_estimate_is_an_event() -> None:
    assert by_hand("planned-fcfs", runtime_of_a=4) == [0, 5, 10, 3]
    assert by_hand("conservative", runtime_of_a=4) == [0, 5, 10, 3]


def test_conservative_keeps_a_promise_that_replanning_breaks() -> None:
    # A: 0..10 by its estimate, ends at 2. B is promised 10 and C behind it 20. At 2 only B may come nearer...
    workload = Workload(submit=[0, 0, 1], cores=[2, 1, 2], runtime=[2, 9, 5], walltime=[10, 9, 5])
    assert plan(workload, 3, "conservative").promised is not None
    assert plan(workload, 3, "conservative").promised.tolist() == [0, 0, 10]
    assert plan(workload, 3, "conservative").schedule.start.tolist() == [0, 0, 2]


def test_a_promise_at_an_instant_without_another_event() -> None:
    # Found among random workloads: compression leaves a promise whose neighbour has come nearer since.
    for seed in range(4000):
        workload, cores, _ = generate.planned(Random(seed))
        start = plan(workload, cores, "conservative").schedule.start
        ends = start + workload.effective_runtime
        alone = ~np.isin(start, workload.submit) & ~np.isin(start, ends)
        if alone.any():
            assert plan(workload, cores, "conservative").schedule.start.tolist() == (
                naive_plan(workload, cores, named("conservative")).start
            )
            return
    pytest.fail("no such workload")


def test_bounds_by_hand() -> None:
    # Mean walltime of two waiting jobs 6: FCFS within 5..6, SJF from a lower bound of 6 on, LJF above both.
    workload = Workload(submit=[0, 1, 1], cores=[1, 1, 1], runtime=[4, 8, 4], walltime=[4, 8, 4])
    starts = {(5, 6): [0, 4, 12], (6, 6): [0, 8, 4], (1, 5): [0, 4, 12]}
    for (lower, upper), start in starts.items():
        assert plan(workload, 1, bounds(lower, upper, least=2)).schedule.start.tolist() == start
    run = plan(workload, 1, bounds(6, 6, least=2))
    assert (run.decisions, run.switches, run.switched_to.tolist()) == (2, 1, [0, 1, 0])
    assert run.starts.tolist() == [1, 2, 0]  # the first job found no other waiting
    assert run.seconds.tolist() == [1, 15, 0]


def test_deciders_by_hand() -> None:
    # One job waits: all plans tie. simple goes to FCFS, advanced stays, preferred goes to its own.
    workload = Workload(submit=[0], cores=[1], runtime=[5], walltime=[5])
    for decider, chosen in (("simple", 0), ("advanced", 2), ("sjf-preferred", 1)):
        policy = replace(self_tuning(decider), order="ljf")
        cases = plan(workload, 1, policy).cases
        assert cases[2, 0b111, chosen] == cases.sum() == 1


def test_half_decides_on_submissions_only() -> None:
    workload = Workload(submit=[0, 1, 2], cores=[1, 1, 1], runtime=[5, 5, 5], walltime=[5, 6, 7])
    assert plan(workload, 1, self_tuning(when="full")).decisions == 5  # 3 submissions, 2 ends with waiting jobs
    assert plan(workload, 1, self_tuning(when="half")).decisions == 3


def test_art_ww_and_sld_wa_choose_the_same() -> None:
    for seed in range(60):
        workload, cores, _ = generate.planned(Random(seed))
        runs = [plan(workload, cores, self_tuning(metric=metric)) for metric in ("art_ww", "sld_wa")]
        assert (runs[0].schedule.start == runs[1].schedule.start).all()
        assert (runs[0].cases == runs[1].cases).all()


# What holds for every workload.


def test_conservative_never_breaks_a_promise() -> None:
    for seed in range(400):
        workload, cores, _ = generate.planned(Random(seed))
        run = plan(workload, cores, "conservative")
        promises = naive_plan(workload, cores, named("conservative")).promises if seed < 100 else []
        assert (run.schedule.start <= run.promised).all()
        for job, promise in promises:
            assert run.schedule.start[job] <= promise


@pytest.mark.parametrize(
    ("walltimes", "seeds"),
    [
        ((2, 3, 5, 8, 13), range(200)),
        ((1, 2, 3, 5, 8, 13), (1798, 5043, 5662)),  # which need no more than the first second of what became free
    ],
)
def test_jobs_alike_that_move_together_equal_naive(walltimes: tuple[int, ...], seeds: Sequence[int]) -> None:
    """Several bursts of jobs alike wait, many end early, and there is less room than jobs that could move."""
    for seed in seeds:
        rng = Random(seed)
        kinds = [(rng.randint(1, 3), rng.choice(walltimes)) for _ in range(3)]
        cores, walltime = np.array([rng.choice(kinds) for _ in range(10)]).repeat(4, axis=0).T
        submit = np.sort([rng.randint(0, 25) for _ in range(40)])
        workload = Workload(submit, cores, [rng.randint(1, longest) for longest in walltime], walltime)
        run, slow = plan(workload, 6, "conservative"), naive_plan(workload, 6, named("conservative"))
        assert run.schedule.start.tolist() == slow.start, seed
        assert not check_planned(workload, 6, named("conservative"), run.schedule), seed


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("deep", [1, 3, 8])
def test_jobs_that_all_differ_equal_naive(deep: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is held against the places that others leave, and searched for only where it may go into one."""
    monkeypatch.setattr(conservative, "DEEP", deep)
    for seed in range(25):
        rng = Random(seed)
        cores, last, longest = rng.choice((3, 5, 8, 16)), rng.choice((5, 30, 100)), rng.choice((6, 20, 100))
        submit = np.sort([rng.randint(0, last) for _ in range(30)])
        walltime = [rng.randint(1, longest) for _ in submit]
        width = [rng.randint(1, rng.choice((cores, max(1, cores // 4)))) for _ in submit]
        workload = Workload(submit, width, [rng.randint(1, most) for most in walltime], walltime)
        run, slow = plan(workload, cores, "conservative"), naive_plan(workload, cores, named("conservative"))
        assert run.schedule.start.tolist() == slow.start, seed
        assert run.promised is not None
        assert run.promised.tolist() == [dict(reversed(slow.promises))[job] for job in range(len(workload))], seed


def test_exact_estimates_make_conservative_planned_fcfs() -> None:
    for seed in range(200):
        workload, cores, _ = generate.planned(Random(seed))
        exact = Workload(workload.submit, workload.cores, workload.walltime, workload.walltime)
        fcfs, kept = plan(exact, cores, "planned-fcfs"), plan(exact, cores, "conservative")
        assert (fcfs.schedule.start == kept.schedule.start).all()
        assert (kept.schedule.start == kept.promised).all()


@pytest.mark.parametrize("name", NAMED)
def test_row_order_and_clock_do_not_matter(name: str) -> None:
    for seed in range(40):
        workload, cores, _ = generate.planned(Random(seed))
        rows = np.lexsort((np.arange(len(workload)), workload.submit))
        shifted = Workload(
            workload.submit[rows] + 12345, workload.cores[rows], workload.runtime[rows], workload.walltime[rows]
        )
        start = plan(workload, cores, name).schedule.start
        assert (plan(shifted, cores, name).schedule.start == start[rows] + 12345).all()


@pytest.mark.parametrize("name", NAMED)
def test_units_and_what_is_out_of_service_do_not_matter(name: str) -> None:
    for seed in range(20):
        jobs, cores, _ = generate.planned(Random(seed))
        found = plan(jobs, cores, name).schedule
        begin, unstarted = int(jobs.submit.min()), np.full(len(jobs), UNSTARTED)
        closed = State(begin, unstarted, windows=[Window(begin, begin + 2**40, 3)])
        assert (plan(replace(jobs, cores=2 * jobs.cores), 2 * cores, name).schedule.start == found.start).all()
        if name != "dynp":  # which plans of all jobs score best, also those of none that go round the window
            assert (plan(jobs, cores + 3, name, closed).schedule.start == found.start).all()
        if name != "dynp-bounds":
            slow = replace(jobs, submit=7 * jobs.submit, runtime=7 * jobs.runtime, walltime=7 * jobs.walltime)
            assert (plan(slow, cores, name).schedule.start == 7 * found.start).all()
        if name.startswith("planned"):  # others remember promises, or the order in use
            again = plan(jobs, cores, name, State.at(found, int(jobs.submit.max())))
            assert (again.schedule.start == found.start).all()


def test_no_jobs() -> None:
    for name in NAMED:
        run = plan(Workload([], [], [], []), 3, name)
        assert len(run.schedule) == run.decisions == run.starts.sum() == run.seconds.sum() == 0
        assert check_planned(Workload([], [], [], []), 3, named(name), run.schedule) == []


def test_huge_values_stay_exact() -> None:
    most = 2**31 - 1
    workload = Workload([0, 1, most], [most, most, 1], [most, most, 1], [most, most, most])
    for name in NAMED:
        assert plan(workload, most, name).schedule.start.tolist() == [0, most, 2 * most]


# What is refused.


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"cores\[1\]: 9 is wider than the machine's 8"):
        plan(Workload([0, 0], [1, 9], [1, 1], [1, 1]), 8, "dynp")
    with pytest.raises(ValueError, match="cores: 0 is outside"):
        plan(Workload([], [], [], []), 0, "dynp")
    with pytest.raises(ValueError, match="'easy' is no planning discipline: planned-fcfs, planned-sjf"):
        named("easy")
    with pytest.raises(ValueError, match="metric: 'slowdown' is none of art"):
        self_tuning(metric="slowdown")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="decider: 'eager' is none of"):
        self_tuning("eager")
    with pytest.raises(ValueError, match="preferred: 'lifo' is none of"):
        self_tuning("lifo-preferred")
    with pytest.raises(ValueError, match="two ascending bounds"):
        bounds(9000, 7200)
    with pytest.raises(ValueError, match="least: 0"):
        bounds(least=0)
    with pytest.raises(ValueError, match="conservative backfilling is fcfs"):
        Policy("conservative", "sjf")


# The check.


def moved(run: PlannedRun, job: int, start: int) -> Schedule:
    schedule = run.schedule
    begin, end = schedule.start.copy(), schedule.end.copy()
    end[job] += start - begin[job]
    begin[job] = start
    return replace(schedule, start=begin, end=end)


def test_the_check_finds_violations() -> None:
    workload = Workload([0, 1, 2, 3], [3, 4, 1, 1], [10, 5, 9, 2], [10, 5, 9, 2])
    run = plan(workload, 4, "planned-fcfs")
    for job, start, rule in (
        (0, -1, "submit"),
        (1, 9, "capacity"),
        (3, 4, "event"),
        (3, 15, "waiting"),
        (2, 16, "event"),
    ):
        found = check_planned(workload, 4, named("planned-fcfs"), moved(run, job, start))
        assert found, (job, start)
        assert found[0].rule in {rule, "waiting"}
    assert check_planned(workload, 4, named("planned-ljf"), run.schedule)[0].rule == "waiting"
    late = plan(workload, 4, "conservative")
    assert check_planned(workload, 4, named("conservative"), moved(late, 2, 17))


# Published: Streit, JSSPP 2004, Tables 2 to 4, of 28 490 and 67 667 jobs; the cleaned traces here have fewer.

ADVANCED = {
    "art": (3.1459, 14.6495),
    "art_ww": (2.5754, 10.1598),
    "sld": (2.6939, 12.6742),
    "sld_wa": (2.5754, 10.1598),
    "sld_ww": (2.5594, 11.8321),
}
PUBLISHED = {
    "FCFS": (named("planned-fcfs"), (3.1015, 6.8260)),
    "SJF": (named("planned-sjf"), (2.5488, 12.5662)),
    "LJF": (named("planned-ljf"), (5.8118, 26.8207)),
    "SJF-preferred": (self_tuning("sjf-preferred"), (2.5578, 10.5198)),
    "advanced/half": (self_tuning(when="half"), (2.5812, 10.0953)),
} | {f"advanced {metric}": (self_tuning(metric=metric), both) for metric, both in ADVANCED.items()}


def reference_workload(trace: str) -> tuple[Workload, int]:
    name, cores = TRACES[trace]
    path = REFERENCE / f"{name}_easy.csv.gz"
    if not path.exists():
        pytest.skip(f"needs the cleaned jobs of {name} at ../shared/reference")
    return fuzz.trace(name), cores


@pytest.fixture(scope="module", params=["KTH", pytest.param("SDSC", marks=pytest.mark.slow)])
def trace(request: pytest.FixtureRequest) -> tuple[int, Workload, int]:
    return list(TRACES).index(request.param), *reference_workload(request.param)


def sld_wa(schedule: Schedule) -> float:
    area = schedule.cores * (schedule.end - schedule.start)
    return float((schedule.cores * (schedule.end - schedule.submit)).sum() / area.sum())


@pytest.mark.parametrize("column", PUBLISHED)
def test_published_table(trace: tuple[int, Workload, int], column: str) -> None:
    index, workload, cores = trace
    policy, published = PUBLISHED[column]
    assert sld_wa(plan(workload, cores, policy).schedule) == pytest.approx(published[index], rel=0.06)


def test_art_ww_and_sld_wa_are_equal_to_the_last_digit(trace: tuple[int, Workload, int]) -> None:
    _, workload, cores = trace
    runs = [plan(workload, cores, self_tuning(metric=metric)) for metric in ("art_ww", "sld_wa")]
    assert (runs[0].schedule.start == runs[1].schedule.start).all()


@pytest.mark.parametrize("seed", [406, 947])
def test_jobs_without_a_start_in_a_plan_that_is_not_made_count(seed: int) -> None:
    assert not fuzz.differs("state:planned", seed)


def test_utilization_of_kth_is_that_of_the_paper() -> None:
    workload, cores = reference_workload("KTH")
    for metric in METRICS:
        schedule = plan(workload, cores, self_tuning(metric=metric)).schedule
        span = schedule.end.max() - schedule.submit.min()
        used = (schedule.cores * (schedule.end - schedule.start)).sum() / (cores * span)
        assert 0.6855 <= used < 0.6875


def test_whole_trace_keeps_its_promises(trace: tuple[int, Workload, int]) -> None:
    _, workload, cores = trace
    run = plan(workload, cores, "conservative")
    assert (run.schedule.start <= run.promised).all()


@pytest.mark.parametrize("name", NAMED)
def test_start_of_a_trace_is_legal(name: str) -> None:
    workload, cores = reference_workload("KTH")
    workload = workload.take(slice(500))
    assert not check_planned(workload, cores, named(name), plan(workload, cores, name).schedule)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_whole_trace_is_legal(trace: tuple[int, Workload, int], name: str) -> None:
    _, workload, cores = trace
    assert not check_planned(workload, cores, named(name), plan(workload, cores, name).schedule)
