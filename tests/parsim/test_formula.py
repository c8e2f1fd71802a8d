"""Formulas: what is allowed, their values, and that nothing of them is executed."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from parsim import Queue, System, Workload, simulate
from parsim.engine import order as op
from parsim.engine.compile.compiled import kernel
from parsim.model.formula import parse
from parsim.naive.formula import formula_value
from parsim.verify import check_schedule
from tests import generate


@kernel
def interpret(code, constants, columns, jobs, eligible, stack):
    """Only kernels can call what this calls."""
    op.interpret(code, constants, columns, jobs, eligible, stack, 1)


def value(text: str, *, eligible: float = 0.0, priority: float = 1, walltime: float = 1, cores: float = 1) -> float:
    """Evaluate a formula the way the event loop does, for one job."""
    formula = parse(text)
    columns = formula.columns(np.array([[priority], [walltime], [cores], [0.0], [1.0]]))
    stack = np.empty((formula.depth, op.BATCH))
    jobs = np.zeros(1, dtype=np.int32)
    interpret(formula.code, formula.constants, columns, jobs, np.array([eligible]), stack)
    value = float(stack[0, 0])
    return 0.0 if math.isnan(value) else value


def test_values_of_many_jobs_are_those_of_each():
    draw = Random(3)
    for text in (
        "eligible_time",
        "ncpus",
        "queue_priority * eligible_time / walltime - log(ncpus - 1)",
        "2 ** walltime",
    ):
        base = np.array([[draw.randint(1, 5), draw.randint(1, 2000), draw.randint(1, 9), 0, 1] for _ in range(150)]).T
        waits = np.array([float(draw.randint(0, 9)) for _ in range(150)])
        found = parse(text).values(np.array(base, dtype=float, order="C"), waits)  # else it would compile once more
        for job in range(150):
            priority, walltime, cores, *_ = base[:, job].tolist()
            one = value(text, eligible=waits[job], priority=priority, walltime=walltime, cores=cores)
            assert np.nan_to_num(found[job]) == one
    assert np.isnan(parse("log(-ncpus)").values(np.ones((5, 1)), np.zeros(1)))[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("queue_priority * (1 + eligible_time / max(walltime, 1))", 40 * (1 + 30 / 60)),
        ("(eligible_time + walltime) / walltime ** 1.3 * ncpus ** -0.3", 90 / 60**1.3 * 8**-0.3),
        ("5 if eligible_time > 20 else 7", 5),
        ("5 if eligible_time >= 31 else 7", 7),
        ("1 if ncpus <= 3 else 2 if ncpus != 8 else 7", 7),
        ("ncpus + (1e9 if eligible_time > 29 else 0)", 1e9 + 8),
        ("min(ncpus, walltime, eligible_time) + pow(2, 3) - -ncpus", 24),
        ("-ncpus + 2 ** 3 - abs(-1)", -1),
        ("sqrt(abs(-16)) + log(1)", 4),
        ("floor(eligible_time / 4) + floor(-0.5)", 6),
        ("floor(1 / 0)", 0),
        ("job_priority", 0),
        ("(eligible_time == 30) + (ncpus != 8)", 1),
        ("1 / 0", 0),
        ("5 + 1 / (eligible_time - 30)", 0),
        ("log(eligible_time - 30) + 5", 0),
        *((f"5 + {what}", 0) for what in ("log(-1)", "sqrt(-1)", "(-8) ** 0.5", "0 ** -1")),
        *((f"5 + {large}", 0) for large in ("10 ** 400", "1e200 * 1e200", "walltime ** 400")),
        *((f"5 if {large} > 1 else 7", 0) for large in ("1 / 0", "1e200 * 1e200")),
        ("5 if eligible_time > 1 else 1 / 0", 5),
        ("1 / 0 if ncpus != 8 else 6", 6),
    ],
)
def test_values_here_and_of_the_reference(text: str, expected: float) -> None:
    assert value(text, eligible=30, priority=40, walltime=60, cores=8) == pytest.approx(expected, rel=1e-15)
    names = {"queue_priority": 40.0, "eligible_time": 30, "walltime": 60, "ncpus": 8, "job_priority": 0}
    assert formula_value(text, **names) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "queue_priority *",
        "bogus",
        "eligible_time.real",
        "__import__('os')",
        "(lambda: 1)()",
        "[1][0]",
        "'a'",
        "True",
        "ncpus % 2",
        "1 < ncpus < 3",
        "ncpus and 1",
        "max(ncpus)",
        "log(1, 2)",
        "max(ncpus, key=1)",
        "x := 1",
        "1e999",
        "eval('1')",
        "(" * 300 + "1" + ")" * 300,
        "1+" * 1500 + "1",
    ],
)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="formula"):
        parse(text)


def test_random_formulas_are_worth_what_the_obvious_evaluation_says() -> None:
    rng = Random(1)
    for _ in range(2000):
        text = generate.formula(rng)
        names = {"eligible": rng.randrange(20), "walltime": rng.randrange(1, 20), "cores": rng.randrange(1, 9)}
        slow = formula_value(
            text,
            eligible_time=float(names["eligible"]),
            walltime=float(names["walltime"]),
            ncpus=float(names["cores"]),
            queue_priority=2.5,
            job_priority=0.0,
        )
        assert value(text, priority=2.5, **names) == slow, text


def test_a_square_is_a_product_wherever_it_is_evaluated() -> None:
    waits = [float(wait) for wait in range(600, 640)]
    assert any(math.pow(wait / 345600, 2) != (wait / 345600) * (wait / 345600) for wait in waits)
    for square in (
        "(eligible_time / 345600) ** 2",
        "pow(eligible_time / 345600, 2)",
        "(eligible_time / 345600) ** ncpus",
    ):
        for wait in waits:
            product = (wait / 345600) * (wait / 345600)
            assert value(square, eligible=wait, cores=2) == product
            assert formula_value(square, eligible_time=wait, ncpus=2) == product


@pytest.mark.parametrize("power", ["{} ** 2.5", "pow({}, 2.5)", "{} ** (ncpus / 2)"])
def test_the_power_of_what_is_found_is_a_product_wherever_it_is_evaluated(power: str) -> None:
    waits = [float(wait) for wait in (0, *range(600, 640), 1e7)]
    base = "(eligible_time / 5400)"
    products = [(wait / 5400) * (wait / 5400) * math.sqrt(wait / 5400) for wait in waits]
    assert products == pytest.approx([math.pow(wait / 5400, 2.5) for wait in waits], rel=1e-15)
    for wait, product in zip(waits, products, strict=True):
        assert value(power.format(base), eligible=wait, cores=5) == product
        assert formula_value(power.format(base), eligible_time=wait, ncpus=5) == product
    negative = "7 + (-1 - eligible_time) ** 2.5"
    assert value(negative, eligible=3.0) == formula_value(negative, eligible_time=3.0) == 0


def test_only_what_time_changes_is_left_to_the_event_loop() -> None:
    formula = parse("(eligible_time + 3 * walltime) / walltime ** 1.3 * ncpus ** -0.3")
    assert len(formula.column_codes) == 3
    assert formula.uses_eligible_time
    assert not parse("queue_priority / walltime").uses_eligible_time


def test_what_is_written_twice_is_computed_once() -> None:
    assert len(parse("walltime ** 1.3 * eligible_time / walltime ** 1.3").column_codes) == 1
    assert len(parse("walltime ** 1.3 * eligible_time / walltime ** 1.4").column_codes) == 2


@pytest.mark.parametrize(("text", "count"), [("min({})", "2 to 16"), ("pow({})", "2"), ("max(1)", "2 to 16")])
def test_the_message_has_the_right_number_of_arguments(text: str, count: str) -> None:
    with pytest.raises(ValueError, match=f"takes {count} arguments$"):
        parse(text.format(", ".join(["walltime"] * 17)))


def test_other_constants_are_other_numbers_of_the_same_program() -> None:
    one, other = parse("eligible_time / walltime ** 1.3"), parse("eligible_time / walltime ** 2")
    assert one.code.tolist() == other.code.tolist()
    assert one.constants.tolist() != other.constants.tolist()


def test_eligible_time_stands_still_while_limits_hold_a_job() -> None:
    # Jobs 1 and 2 arrive together behind job 0, which has all cores until 10. The limit of queue a (one running job)
    # holds job 1 meanwhile, so its eligible time is 0 at second 10, when job 2 has waited 10 and starts first.
    workload = Workload([0, 0, 0], [4, 4, 4], [10, 5, 5], [10, 5, 5], queue=[0, 0, 1])
    system = System(4, [Queue(name="a", max_run=1), Queue(name="b")], order="eligible_time")
    assert simulate(workload, system).start.tolist() == [0, 15, 10]


def test_estimates_order_jobs_and_plan_nothing() -> None:
    # Job 0 leaves one core until 10. By their estimates the jobs of four cores go 2, 3 (its walltime), 1: it is at most
    # the walltime. Job 4 is expected to end in time, but may run past second 10, so it does not start beside job 0.
    walltime, estimate = [10, 9, 20, 5, 20], [0, 99, 3, 0, 8]
    workload = Workload([0] * 5, [3, 4, 4, 4, 1], [10, 9, 3, 5, 8], walltime, estimate=estimate)
    assert workload.expected_runtime.tolist() == [10, 9, 3, 5, 8]
    system = System(4, order="1000 if ncpus == 3 else -estimate")
    schedule = simulate(workload, system)
    assert schedule.start.tolist() == [0, 26, 10, 13, 18]
    assert check_schedule(workload, system, schedule) == []
    assert check_schedule(replace(workload, estimate=None), system, schedule)
    with pytest.raises(ValueError, match=r"estimate\[0\]: -1 is outside"):
        replace(workload, estimate=[-1] * 5)
