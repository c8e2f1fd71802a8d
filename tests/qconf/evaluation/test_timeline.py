"""The time axis of an outcome, against a count second by second."""

import numpy as np
import pytest

from parsim import simulate
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.timeline import MOST, timeline
from tests.qconf.report import example


@pytest.fixture(scope="module")
def outcome():
    return example.recommendation().present.outcome


def test_every_bin_is_what_a_count_second_by_second_gives(outcome):
    first = int(outcome.period.workload.submit[0])
    period = outcome.period.between(first, first + 20000)
    found = Outcome(period, simulate(period.workload, period.base.system()))
    line, jobs, schedule = timeline(found), period.workload, found.schedule
    assert len(line.edges) > 4
    for i, (used, queued, waiting) in enumerate(zip(line.used, line.queued, line.waiting, strict=True)):
        seconds = np.arange(line.edges[i], line.edges[i + 1])
        runs = (schedule.start <= seconds[:, None]) & (schedule.end > seconds[:, None])
        waits = (jobs.submit <= seconds[:, None]) & (schedule.start > seconds[:, None])
        assert used == pytest.approx((runs @ jobs.cores).mean() / period.base.machine.cores)
        assert queued == pytest.approx((waits @ (jobs.cores * jobs.effective_runtime)).mean(), abs=1e-6)
        assert waiting == pytest.approx(waits.sum(axis=1).mean(), abs=1e-9)


def test_the_mean_is_the_metric_of_tables(outcome):
    line = timeline(outcome)
    spans = np.diff(line.edges)
    assert (line.used * spans).sum() / spans.sum() == pytest.approx(outcome.utilization, rel=1e-9)
    ended = np.minimum(outcome.schedule.start, line.edges[-1])
    waited = np.maximum(ended - np.maximum(outcome.schedule.submit, line.edges[0]), 0)
    assert (line.waiting * spans).sum() == pytest.approx(waited.sum(), rel=1e-9)


def test_few_bins_however_long(outcome):
    line = timeline(outcome)
    assert line.edges[0] == outcome.jobs.submit[0]
    assert line.edges[-1] == outcome.jobs.submit[-1]
    assert len(line.used) <= MOST
    one = outcome.period.take(np.array([0, 1]))
    assert len(timeline(Outcome(one, simulate(one.workload, one.base.system()))).used) >= 1
    single = Period(one.workload.take(np.array([0])), one.base)
    assert len(timeline(Outcome(single, simulate(single.workload, single.base.system()))).edges) >= 1
