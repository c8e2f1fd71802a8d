"""Simulated waits compared with the actual ones."""

import math
from dataclasses import replace

import numpy as np
import pytest

from parsim import simulate
from qconf.recommend.fidelity import FEWEST, fidelity
from qconf.report.wording import fidelity_text
from tests.qconf.recommend.test_recommend import STARVED, history

PAST = history(STARVED, jobs=200)
WAITS = simulate(PAST.workload(STARVED), STARVED.system()).wait


def fidelity_of(waits, span=PAST.span):
    """Fidelity for the same history in a log with the starts after these waits; -1 for an unknown start."""
    submit = PAST.jobs["submit"].to_numpy()
    start = np.where(np.asarray(waits) < 0, -1, submit + waits)
    return fidelity(replace(PAST, jobs=PAST.jobs.assign(start=start)), STARVED, span)


def test_waits_that_are_simulated_exactly_are_near():
    found = fidelity_of(WAITS)
    assert found.jobs == 200
    assert found.real_mean == found.mean == WAITS.mean()
    assert found.real_median == found.median == np.median(WAITS)
    assert found.correlation == pytest.approx(1.0)
    assert not found.far
    assert "far apart" not in fidelity_text(found)


def test_waits_under_another_configuration_are_far_apart():
    found = fidelity_of(3 * WAITS + 3600)
    assert found.far
    assert "These are far apart" in fidelity_text(found)
    assert f"waited {(3 * WAITS + 3600).mean() / 3600:.2f} h on average" in fidelity_text(found)


def test_only_jobs_whose_start_is_known_count():
    some = np.where(np.arange(200) < FEWEST, WAITS, -1)
    assert fidelity_of(some).jobs == FEWEST
    assert fidelity_of(some).mean == WAITS[:FEWEST].mean()
    assert fidelity_of(np.where(np.arange(200) < FEWEST - 1, WAITS, -1)) is None
    assert fidelity(PAST, STARVED, PAST.span) is None  # no start is known
    late = (int(PAST.jobs["submit"].iloc[150]), PAST.span[1])
    assert (fidelity_of(WAITS, late).jobs, fidelity_of(WAITS, late).mean) == (50, WAITS[150:].mean())


def test_without_waits_there_is_no_correlation():
    found = fidelity_of(np.zeros(200, dtype=np.int64))
    assert math.isnan(found.correlation)
    assert "correlation" not in fidelity_text(found)
