"""The prior of auto, and what its advice is worth on logs that did not choose it."""

import numpy as np
import pytest

from parsim import metrics
from qconf.evaluation.score import log_ratios
from qconf.strategies.auto.estimator import COLUMNS
from qconf.strategies.auto.families import FAMILIES, AutoOptions, General
from qconf.strategies.plain import undistinguished
from studies.advice import LOGS, PRESETS, Log, Measured, advice, advice_row, curve, looked_up, prior_from, rows_of
from tests.qconf.backtest import walking

FAMILY = "multifactor"
MEMBERS = FAMILIES[FAMILY]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    jobs = walking.table(periods=9, jobs=400)
    site = walking.site()
    base = site.with_queues([queue.model_copy(update={"priority": 1.0}) for queue in site.queues])
    return Log("small", "small", walking.history(tmp_path_factory.mktemp("log"), jobs, base), base)


def test_members_are_measured_on_each_month_aged_by_the_months_before(log):
    months = log.months
    rows = rows_of(months, FAMILIES["formula"][:2], 1)
    assert rows.shape == (len(months) - 1, 2, len(COLUMNS))
    base = log.base
    first = [each.simulate(undistinguished(base, "fcfs")) for each in months]
    longest = float(max(first[0].wait.max(), first[1].wait.max()))
    order = FAMILIES["formula"][0].order.formula(48, longest)
    found = months[2].simulate(undistinguished(base, order))
    now, then = ([s.wait.mean(), metrics.bounded_slowdown(s).mean(), s.wait.max()] for s in (found, first[2]))
    assert rows[1, 0, :3] == pytest.approx(log_ratios(np.array(now), np.array(then)))
    assert (rows[..., 3] >= 0).all()


def test_a_machine_has_no_part_in_its_own_prior():
    shape = (2, len(MEMBERS), 4)
    logs = [
        Measured("a", "a", [3000, 3000], {FAMILY: np.full(shape, -1.0)}),
        Measured("b-own", "b", [3000, 3000], {FAMILY: np.full(shape, -2.0)}),
        Measured("b-0.9", "b", [3000, 3000], {FAMILY: np.full(shape, -4.0)}),
    ]
    assert prior_from(logs, FAMILY) == pytest.approx(-2.0)  # the mean of -1 and -3
    assert prior_from(logs, FAMILY, without="b") == pytest.approx(-1.0)
    assert prior_from(logs, FAMILY, without="a") == pytest.approx(-3.0)


def test_the_row_of_a_log_has_auto_and_the_best_order_that_stays(log):
    prior = np.zeros((len(FAMILIES["formula"]), 4))
    prior[[each.order == General() and not each.delay for each in FAMILIES["formula"]]] = -9.0
    found = advice(log, looked_up("formula", prior), AutoOptions())
    row = advice_row("small", found, AutoOptions())
    assert row[0] == "small"
    assert int(row[1]) == len(found["auto"]) == len(found["fcfs"]) == len(log.months) - 1
    assert row[6] in found
    assert row[7].endswith(" %")


def test_the_curve_chooses_by_the_months_before():
    rows = np.zeros((3, len(MEMBERS), 4))
    rows[:, 1] = -1.0, -1.0, 0.5, 0.5
    cells = curve(Measured("a", "a", [2500] * 3, {FAMILY: rows}), np.zeros((len(MEMBERS), 4)), FAMILY, "mean-wait")
    assert cells[0] == "0.51 / 0.51 / 1.40"  # from the second month on
    assert cells[-1] == "1.00 / 1.00 / 1.00"


def test_three_machines_are_generated_at_five_loads():
    assert len(LOGS) == 6
    assert [len(loads) for _, loads in PRESETS.values()].count(5) == 3
