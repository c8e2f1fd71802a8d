"""Corrections of an order that a site has: what they say, and what they do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim import System, Workload, simulate
from parsim.formula import parse
from qconf.tuning.corrections import Correction, family, meaning
from qconf.tuning.formulas import remoteness


def test_members_differ_and_none_is_among_them():
    assert len({each.formula("eligible_time") for each in family()}) == len(family()) == 15
    assert Correction().formula("eligible_time") == "eligible_time"


@pytest.mark.parametrize(
    ("order", "correction", "text"),
    [
        ("a / b", Correction(0.5, 0.0), "(a / b) * max(walltime, 1) ** -0.5"),
        ("a / b", Correction(0.0, -1.0), "(a / b) * ncpus ** 1"),
        ("(a) / (b)", Correction(-0.5, 1.0), "((a) / (b)) * max(walltime, 1) ** 0.5 * ncpus ** -1"),
        ("(a) * max(walltime, 1) ** -0.5", Correction(0.5, 0.5), "(a) * max(walltime, 1) ** -1 * ncpus ** -0.5"),
        ("(a) * max(walltime, 1) ** -0.5 * ncpus ** 1", Correction(-0.5, 1.0), "a"),
        ("(a) + (b) * ncpus ** 1", Correction(0.0, 1.0), "((a) + (b) * ncpus ** 1) * ncpus ** -1"),
    ],
)
def test_powers_are_written_once_and_add_up(order, correction, text):
    assert correction.formula(order) == text


@given(st.lists(st.sampled_from(family()), max_size=5))
def test_many_corrections_are_one(made):
    order = "eligible_time + queue_priority"
    for each in made:
        order = each.formula(order)
    length, width = (sum(each.point[i] for each in made) for i in (0, 1))
    values = {"eligible_time": 70.0, "queue_priority": 2.0, "walltime": 100.0, "ncpus": 16.0}
    found = eval(order, {"max": max}, values)
    assert found == pytest.approx(72.0 * 100.0**-length * 16.0**-width)
    assert len(order) < 100
    parse(order)


def first(order, cores, walltime):
    jobs = Workload([0, 10, 20], [8, *cores], [5000, *walltime], [5000, *walltime])
    return int(np.argmin(simulate(jobs, System.single(8, order=order)).start[1:]))


def test_shorter_and_narrower_jobs_are_preferred_more():
    assert first("eligible_time", [8, 8], [4000, 40]) == 0
    assert first(Correction(length=0.5).formula("eligible_time"), [8, 8], [4000, 40]) == 1
    assert first("eligible_time", [8, 5], [4000, 4000]) == 0
    assert first(Correction(width=1.0).formula("eligible_time"), [8, 5], [4000, 4000]) == 1


def test_none_is_free():
    away = remoteness(family(), Correction())
    assert away[family().index(Correction())] == 0
    assert away[family().index(Correction(0.0, 1.0))] == pytest.approx(1 / 0.5)  # the widths' variance


def test_what_was_corrected_is_told():
    before = "(eligible_time) * ncpus ** 1"
    assert meaning(before, Correction(0.0, 1.0).formula(before)) == "the present one times ncpus ** -1"
    assert meaning(before, before) == ""
    assert meaning(before, "walltime") == ""
