"""The registry of metric columns, and the long tables that have every metric."""

import math

import pytest

from parsim.metrics import METRICS
from qconf.report import frames
from qconf.report.columns import COLUMNS, UNITS, further_columns
from tests.qconf.report import small


def test_every_metric_has_a_column():
    assert tuple(COLUMNS) == tuple(METRICS)
    assert all(column.key == key and column.meaning and column.unit in UNITS for key, column in COLUMNS.items())
    for text in ("title", "name"):
        assert len({getattr(column, text) for column in COLUMNS.values()}) == len(METRICS)


@pytest.mark.parametrize(
    ("key", "value", "text", "heading", "caption"),
    [
        ("mean_wait", 5400, "1.50", "wait h", "mean wait, h"),
        ("utilization_window", 0.8125, "81.2", "util %", "utilization, %"),
        ("mean_bounded_slowdown", 3.14159, "3.14", "slowdown", "bounded slowdown"),
        ("jobs", 7282, "7282", "jobs", "jobs"),
        ("max_wait", math.nan, "-", "max h", "max wait, h"),
    ],
)
def test_a_column_writes_its_metric_in_its_unit(key, value, text, heading, caption):
    column = COLUMNS[key]
    assert (column.write(value), column.heading, column.caption) == (text, heading, caption)


def test_a_table_may_choose_the_decimals():
    assert COLUMNS["sld_wa"].write(2.50931, 4) == "2.5093"
    assert COLUMNS["mean_wait"].write(3_600_000, 1) == "1000"


def test_the_other_slowdown_has_a_column_where_it_differs():
    alike, other = ({"mean_bounded_slowdown": 20.0, "bsld": value} for value in (19.99, 19.5))
    assert [each.key for each in further_columns([alike, alike])] == ["spread_users"]
    assert [each.key for each in further_columns([alike, other])] == ["bsld", "spread_users"]


def test_comparison_is_long_and_complete():
    frame = frames.comparison_frame(small.recommendation())
    assert list(frame.columns) == ["strategy", "queue", "metric", "value"]
    assert not frame.duplicated(["strategy", "queue", "metric"]).any()
    assert set(frame["strategy"]) == {"current", "lxf-easy", "pp", "hybrid"}
    assert set(frame["queue"]) == {"all", "short", "long"}
    wide = frame.pivot_table(index=["strategy", "queue"], columns="metric", values="value", dropna=False)
    assert wide.loc[("hybrid", "long"), "mean_wait"] == 14400
    assert wide.loc[("hybrid", "all"), "resampled_gain_low"] == 0.21
    assert set(METRICS) <= set(wide.columns)
    assert math.isnan(wide.loc[("hybrid", "short"), "gain"])


def test_a_queue_called_all_is_not_the_whole():
    frame = frames.comparison_frame(small.recommendation(names=("all", "long")))
    assert set(frame["queue"]) == {"all", "all (queue)", "long"}
