"""The simulated present beside what really happened."""

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


def told(waits, span=PAST.span):
    """The same history in a log that tells starts; -1 where it does not."""
    submit = PAST.jobs["submit"].to_numpy()
    start = np.where(np.asarray(waits) < 0, -1, submit + waits)
    return fidelity(replace(PAST, jobs=PAST.jobs.assign(start=start)), STARVED, span)


def test_what_was_simulated_rightly_is_near():
    found = told(WAITS)
    assert found.jobs == 200
    assert found.real_mean == found.mean == WAITS.mean()
    assert found.real_median == found.median == np.median(WAITS)
    assert found.correlation == pytest.approx(1.0)
    assert not found.far
    assert "far apart" not in fidelity_text(found)


def test_what_is_not_the_configuration_of_the_log_is_far():
    found = told(3 * WAITS + 3600)
    assert found.far
    assert "These are far apart" in fidelity_text(found)
    assert f"waited {(3 * WAITS + 3600).mean() / 3600:.2f} h on average" in fidelity_text(found)


def test_only_jobs_whose_start_is_known_count():
    some = np.where(np.arange(200) < FEWEST, WAITS, -1)
    assert told(some).jobs == FEWEST
    assert told(some).mean == WAITS[:FEWEST].mean()
    assert told(np.where(np.arange(200) < FEWEST - 1, WAITS, -1)) is None
    assert fidelity(PAST, STARVED, PAST.span) is None  # it tells none
    late = (int(PAST.jobs["submit"].iloc[150]), PAST.span[1])
    assert (told(WAITS, late).jobs, told(WAITS, late).mean) == (50, WAITS[150:].mean())


def test_nobody_who_waits_is_correlated_with_nothing():
    found = told(np.zeros(200, dtype=np.int64))
    assert math.isnan(found.correlation)
    assert "correlation" not in fidelity_text(found)
