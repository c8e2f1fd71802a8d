"""Tables of every metric of every strategy in long form: comparison.csv and backtest.csv."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from parsim.metrics import Summary
from parsim.metrics.nodes import ALL_NODES
from qconf.backtest import Backtest
from qconf.recommend import Recommendation, Row
from qconf.report.columns import COLUMNS
from qconf.report.wording import queue_label


def comparison_frame(recommendation: Recommendation) -> pd.DataFrame:
    """Return every metric of every strategy in the test period: strategy, queue, metric, value.

    Queue ``all`` stands for all jobs; a queue of that name is ``all (queue)``. In addition to the metrics of `COLUMNS`,
    ``all`` has the ``gain`` of the objective and, if the test days were resampled, ``resampled_gain_expected``,
    ``_low`` and ``_high``. With nodes of several types, ``nodes gpu`` has the metrics of `parsim.metrics.nodes`,
    prefixed with the resource's name, and the waits of jobs that ran there; ``jobs for nodes gpu`` has the waits of
    jobs meant for them, and ``all nodes`` the metrics of all nodes. Seconds, fractions in 0..1; NaN if there is no
    value. Strategies without numbers have no rows.
    """
    found = [(row.name, *cells) for row in recommendation.rows if row.test for cells in _cells(row.test, _gains(row))]
    return pd.DataFrame(found, columns=["strategy", "queue", "metric", "value"])


def backtest_frame(found: Backtest) -> pd.DataFrame:
    """Return every metric of every strategy in every period: period, strategy, queue, metric, value.

    The last three columns are as in `comparison_frame`.
    """
    rows = [(each.period, each.strategy, *cells) for each in found.results for cells in _cells(each.summary)]
    return pd.DataFrame(rows, columns=["period", "strategy", "queue", "metric", "value"])


def period_frame(found: Backtest, metric: str) -> pd.DataFrame:
    """Return one metric over all jobs: a row per test period, a column per strategy, both in their order."""
    values = [(each.period, each.strategy, each.summary[metric]) for each in found.results]
    long = pd.DataFrame(values, columns=["period", "strategy", "value"])
    wide = long.pivot(index="period", columns="strategy", values="value")
    return wide.loc[[fold.label for fold in found.folds], list(found.strategies)]


def _cells(summary: Summary, whole: Mapping[str, float] | None = None) -> list[tuple[str, str, float]]:
    """Return (queue, metric, value) triples; `whole` has further metrics for ``all``."""
    found = {"all": {key: summary[key] for key in COLUMNS} | dict(whole or {})}
    found |= {queue_label(name): {key: row[key] for key in COLUMNS} for name, row in summary.queues.items()}
    for name, each in summary.nodes.items():
        every = name == ALL_NODES
        found[name if every else f"nodes {name}"] = {} if every else each.ran | {"node_seconds": each.node_seconds}
        for resource, values in each.resources.items():
            own = {f"{resource}_{metric}": value for metric, value in values.items()}
            found[name if every else f"nodes {name}"] |= own
        if not every:
            found[f"jobs for nodes {name}"] = each.meant
    return [(queue, metric, value) for queue, values in found.items() for metric, value in values.items()]


def _gains(row: Row) -> dict[str, float]:
    gains = {} if row.gain is None else {"gain": row.gain}
    if row.bootstrap is not None:
        gains |= {f"resampled_gain_{which}": getattr(row.bootstrap, which) for which in ("expected", "low", "high")}
    return gains
