"""Simulated waits compared with the actual ones."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from parsim import simulate
from qconf.recommend.fidelity import FEWEST, Fidelity, fidelity, rank_correlation
from qconf.report.wording import fidelity_text, fidelity_warning
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
    assert fidelity_warning(found) == ""


def test_the_waits_of_each_queue_and_day():
    found = fidelity_of(WAITS + 600)
    jobs = PAST.jobs.assign(real=WAITS + 600, mean=WAITS)
    dates = [PAST.date(second)[:10] for second in jobs["submit"]]
    assert len(found.days) == len({*zip(jobs["queue"], dates, strict=True)}) > 1
    assert [day.queue for day in found.days] == sorted((d.queue for d in found.days), key=STARVED.names.index)
    for day in found.days:
        own = jobs[(jobs["queue"] == day.queue) & (np.array(dates) == day.date)]
        assert (day.jobs, day.real_mean, day.mean) == (len(own), own["real"].mean(), own["mean"].mean())


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
    assert not found.others_wait
    assert "correlation" not in fidelity_text(found)


@pytest.mark.parametrize(
    ("real", "mean", "correlation", "means_differ", "others_wait"),
    [
        (7200.0, 7200.0, 0.5, False, False),
        (7200.0, 7200.0, 0.49, False, True),
        (7200.0, 7200.0, math.nan, False, False),
        (7200.0, 3600.0, 0.9, False, False),
        (7200.0, 3500.0, 0.9, True, False),
        (128880.0, 24120.0, 0.12, True, True),
        (50.0, 10.0, 0.1, False, False),  # no jobs to speak of wait
    ],
)
def test_far_is_by_the_means_or_by_the_ranks(real, mean, correlation, means_differ, others_wait):
    found = Fidelity(100, real, real, mean, mean, correlation)
    assert (found.means_differ, found.others_wait) == (means_differ, others_wait)
    assert found.far == (means_differ or others_wait)
    assert ("Gains are measured against the simulation" in fidelity_text(found)) == found.far
    assert bool(fidelity_warning(found)) == found.far


def test_the_same_waits_of_other_jobs_are_far():
    rng = np.random.default_rng(0)
    found = fidelity_of(rng.permutation(WAITS))
    assert found.mean == found.real_mean
    assert found.far
    assert "Other jobs wait than did: the site may have had another configuration" in fidelity_text(found)


def test_the_headline_has_the_figures():
    found = Fidelity(100, 128880.0, 0.0, 24120.0, 0.0, 0.12)
    assert fidelity_warning(found) == (
        "The simulation is far from what the log recorded (mean wait 35.80 h recorded, 6.70 h simulated, rank "
        "correlation 0.12): trust the gain less."
    )


def test_the_rank_correlation_of_scipy() -> None:
    rng = np.random.default_rng(0)
    for most in (3, 10**6):
        first, second = rng.integers(0, most, (2, 500))
        assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-12)
