"""Grades: by the agreement, carried by a configuration as long as it stays the same."""

import math
from dataclasses import replace

import pytest

from qconf.config import ConfigError, Target, dump, parse
from qconf.fidelity.errors import Errors, Figures
from qconf.fidelity.grade import FEWEST, Grade, carried, grade, grade_warnings, with_grade
from qconf.fidelity.verify import verify
from tests.qconf.fidelity.logs import limited, site, written

NONE = Errors(*[0] * 9)


def figures(agreement, jobs=100):
    return Figures(replace(NONE, jobs=jobs - 3), NONE, 2, 1, agreement)


@pytest.mark.parametrize(
    ("agreement", "letter"),
    [(1.0, "A"), (0.9, "A"), (0.899, "B"), (0.7, "B"), (0.5, "C"), (0.499, "D"), (0.3, "D"), (0.29, "E"), (0.0, "E")],
)
def test_the_grade_goes_by_the_agreement(agreement, letter):
    found = grade(figures(agreement), 9)
    assert (found.letter, found.agreement, found.jobs, found.windows) == (letter, agreement, 100, 9)
    assert found.doubtful == (letter in "DE")


def test_where_no_job_waits_there_is_nothing_to_disagree_on():
    assert grade(figures(math.nan), 9).letter == "A"


def test_too_few_jobs_have_no_grade():
    assert grade(figures(0.2, FEWEST), 9) is not None
    assert grade(figures(0.2, FEWEST - 1), 9) is None


def test_a_configuration_carries_its_grade_until_it_is_changed():
    graded = with_grade(site(), Grade("C", 0.61234, 3.0, 80, 12))
    assert parse(dump(graded)) == graded
    assert "fidelity: {grade: C, agreement: 0.6123, jobs: 80, windows: 12, of: " in dump(graded)
    assert carried(graded).grade == "C"
    assert grade_warnings(graded) == []
    wanted = graded.replace(targets=(Target(queue="short", p95_wait=3600),), fixed=("order",), policy=("limits",))
    assert carried(wanted) is not None  # what is wanted is not simulated
    for changed in (graded.replace(order="sjf"), limited(graded, max_run=3), graded.replace(backfill=False)):
        assert carried(changed) is None
        (text,) = grade_warnings(changed)
        assert "grade C is of another configuration" in text
    assert with_grade(graded, None) == site()
    assert carried(site()) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("fidelity: {grade: F, agreement: 0.5, jobs: 1, windows: 1, of: 0123456789ab}", "A, B, C, D or E"),
        ("fidelity: {grade: B, agreement: 1.5, jobs: 1, windows: 1, of: 0123456789ab}", "a number from 0 to 1"),
        ("fidelity: {grade: B}", "missing"),
        ("fidelity: B", "qconf fidelity"),
        ("fidelity: {grade: B, agreement: 0.5, jobs: 1, windows: 1, of: 0123456789ab, by: me}", "no such key"),
    ],
)
def test_a_grade_that_is_none_is_refused(line, says):
    with pytest.raises(ConfigError, match=says):
        parse(dump(site()) + line + "\n")


def test_the_grade_of_a_verification_is_that_of_its_figures():
    found = verify(written(site(order="sjf")), site(), count=20)
    assert found.grade == grade(found.total, len(found.windows))
