"""Which formulas never fall while a job waits, and that the others are simulated job by job."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from parsim import Queue, System, Workload
from parsim.model.formula import parse
from parsim.model.rising import never_falls
from parsim.prepare.columns import prepare
from parsim.prepare.order import is_formula, pack_alike, pack_formula
from tests import generate

BASE = np.array([[1.0, 40, 100], [60, 3600, 86_400], [1, 16, 128], [0, 0, 0], [1, 1, 1]])  # priority, walltime, cores
LONGEST = 1e8

RISING = (
    "eligible_time",
    "-walltime",
    "1 / (walltime - 60)",  # undefined for a job, but always
    "(eligible_time + walltime) / max(walltime, 1) ** 1.3",
    "queue_priority * (eligible_time + walltime) / walltime ** 2 * ncpus ** -0.5 * (1 + (eligible_time / 36000) ** 3)",
    "1e28 * (1 + eligible_time) if eligible_time >= 86400 else queue_priority * (eligible_time + walltime) / walltime",
    "ncpus if 9 > eligible_time else 1000 + eligible_time",
    "min(eligible_time, walltime) + log(1 + eligible_time) - 5 / (eligible_time + 1)",
    "floor(eligible_time / 60) - floor(walltime / 7)",
    "-abs(-3 - eligible_time) / (-7) + sqrt(eligible_time)",
)
FALLING = (
    "-eligible_time",
    "ncpus / (1 + eligible_time)",
    "1 / eligible_time",
    "log(eligible_time)",
    "sqrt(eligible_time - 1)",
    "floor(9 - eligible_time)",
    "(eligible_time - 5) ** 2",
    "abs(eligible_time - 5)",
    "eligible_time * (eligible_time - 10)",
    "1e300 * eligible_time ** 2",  # too large, so 0, in the end
    "(1 + eligible_time) ** (-2)",
    "2 ** (-eligible_time)",
    "1 if eligible_time < 9 else 0",
    "ncpus if eligible_time >= 9 else 100 + eligible_time",
    "eligible_time if eligible_time == 3 else 0",
    "eligible_time / (walltime - 60)",
)


def _never_falls(text: str) -> bool:
    formula = parse(text)
    return never_falls(formula, formula.columns(BASE), LONGEST)


@pytest.mark.parametrize("text", RISING)
def test_rises_or_stays(text: str) -> None:
    assert _never_falls(text)


@pytest.mark.parametrize("text", FALLING)
def test_falls_or_may_fall(text: str) -> None:
    assert not _never_falls(text)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_said_to_rise_rises(seed: int) -> None:
    rng = Random(seed)
    instants = np.unique([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 59, 60, 61, 3600, 86_400, 1e7, LONGEST])
    found = 0
    while found < 15:
        formula = parse(text := generate.formula(rng))
        if not formula.uses_eligible_time or not never_falls(formula, formula.columns(BASE), LONGEST):
            continue
        found += 1
        values = np.array([formula.values(BASE, np.full(3, instant)) for instant in instants])
        assert (np.diff(values, axis=0) >= 0).all(), text


def _lines(order: str, **limits: int) -> int:
    """Count the lines of four jobs in three shapes, two of one shape from two users."""
    workload = Workload([0, 0, 1, 2], [2, 2, 2, 1], [5] * 4, [5] * 4, queue=[0] * 4, user=[0, 1, 0, 0])
    system = System(4, [Queue(name="a", **limits)], order=order)
    of = pack_alike(prepare(workload), system, pack_formula(prepare(workload), system)[0].columns)
    return len(set(of.tolist()))


def test_jobs_are_alike_where_none_can_pass_another() -> None:
    assert _lines("eligible_time / walltime") == 2
    assert _lines("-walltime", max_run=2) == 2
    assert _lines("-walltime", max_user_run=2) == 3
    assert _lines("eligible_time / walltime", max_run=2) == 2  # limits hold the one behind no less
    assert _lines("-eligible_time") == 4


def test_lxf_is_a_formula_where_floats_compare_its_ratios_exactly() -> None:
    exact = prepare(Workload([0, 1], [1, 1], [5, 5], [60, 60]))
    rounded = prepare(Workload([0, 2**31 - 1], [1, 1], [5, 5], [60, 2**31 - 1]))
    queue, other = Queue(name="a"), Queue(name="b", priority=2)
    assert is_formula(exact, System(4, [queue], order="lxf"))
    assert not is_formula(rounded, System(4, [queue], order="lxf"))
    assert not is_formula(exact, System(4, [queue, other], order="lxf"))
    assert not is_formula(exact, System(4, [Queue(name="a", starvation=9)], order="lxf"))
    assert is_formula(exact, System(4, [Queue(name="a", max_run=1)], order="lxf"))
    assert not is_formula(exact, System(4, [queue]))
