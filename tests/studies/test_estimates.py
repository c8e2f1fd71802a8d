"""Predictions of run times: how good they are, and what they bring in an order."""

import numpy as np

from studies.advice import Log
from studies.estimates import ORDERS, models, quality, worth
from tests.qconf.backtest import walking


def test_every_model_is_measured_on_the_same_jobs_and_the_true_run_times_have_no_error(tmp_path):
    base = walking.site()
    log = Log("small", "small", walking.history(tmp_path, walking.table(periods=9, jobs=200), base), base)
    found = models(log)
    walltime = log.history.jobs["walltime"].to_numpy()
    assert list(found) == ["walltime", "mean", "median", "boosting", "true"]
    assert all(((each >= 1) & (each <= walltime)).all() for each in found.values())
    error = np.abs(found["mean"] - found["true"]).mean() / 3600
    assert quality(log, found)[3] == f"{error:.2f} / {100 * (found['mean'] < found['true']).mean():.0f} %"
    rows = worth(log, {name: found[name] for name in ("walltime", "true")} | {"mean": found["walltime"]}, 1)
    assert [row[1:3] for row in rows] == [[order, name] for order in ORDERS for name in ("walltime", "true", "mean")]
    assert [rows[i][4] for i in (2, 5)] == ["+0.00 ± 0.00"] * 2
    assert rows[0][3] == rows[2][3]
