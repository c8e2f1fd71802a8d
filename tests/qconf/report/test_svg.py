"""Scales, ticks and marks."""

import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qconf.report import svg
from qconf.report.figures import Figure
from tests.qconf.report.drawn import panels


@given(st.floats(0, 1e6), st.floats(0.1, 1e6), st.booleans(), st.floats(0, 1))
def test_a_scale_goes_from_edge_to_edge_and_holds_what_is_beyond(low, span, log, share):
    low = low + 1 if log else low
    scale = svg.Scale(low, low + span, 50, 250, log=log)
    assert scale.at(low) == pytest.approx(50)
    assert scale.at(low + span) == pytest.approx(250)
    assert scale.at(low - 1) == pytest.approx(50)
    assert scale.at(low + 2 * span) == pytest.approx(250)
    assert 50 <= scale.at(low + share * span) <= 250
    assert svg.Scale(low + span, low, 50, 250, log=log).at(low) == pytest.approx(250), "the other way round"


@given(st.floats(-100, 100), st.floats(1e-6, 1e9), st.integers(3, 12))
@example(40.5, 432098766.0, 3)
def test_ticks_are_few_round_and_inside(start, span, most):
    low = start * span
    found = svg.nice(low, low + span, most)
    assert 1 <= len(found) <= most + 1
    assert all(low - 1e-6 * span <= each <= low + span * (1 + 1e-6) for each in found)
    steps = np.diff(found)
    assert np.allclose(steps, steps[:1])
    if steps.size:
        assert float(f"{steps[0]:.6g}") == pytest.approx(float(f"{steps[0]:.1g}"))


@pytest.mark.parametrize(("low", "high"), [(1, 35232), (24, 25), (1, 10_000_000), (300, 900)])
def test_decades(low, high):
    found = svg.decades(low, high)
    assert len(found) <= 8
    assert all(low * 0.99 <= value <= high * 1.01 for value, _ in found)


def test_days_begin_where_the_clocks_of_the_zone_say():
    begin = 1458950400  # 2016-03-26 00:00 UTC: in Stockholm clocks go forward on the 27th
    found = svg.midnights(begin, begin + 4 * svg.DAY, "Europe/Stockholm")
    assert [second - begin for second in found] == [82800, 165600, 252000, 338400][: len(found)]
    _, text = svg.date_ticks(begin, begin + 4 * svg.DAY, "Europe/Stockholm")[0]
    assert text == "Mar 27"
    assert [text for _, text in svg.date_ticks(begin, begin + 6 * 3600, "UTC")][:2] == ["Mar 26", "01:00"]


def test_marks_are_read_back_as_they_were_given():
    drawing = svg.Drawing(200)
    panel = drawing.panel(svg.Scale(0, 10, 50, 650), svg.Scale(1, 1000, 150, 20, log=True), unit="h")
    panel.line([0, 5, 7, 10], [1, 10, math.nan, 1000], "after", "a line")
    panel.steps([0, 4, 8, 10], [5, 5, 50], "before", "stairs")
    panel.dot(2, 100, "dot", "two <b>")
    panel.bar((1, 3), (10, 20), "fill q0", "bar")
    (found,) = panels(Figure("f", drawing.svg("a & b"), ""))
    assert found.unit == "h"
    assert found.line("a line") == [pytest.approx(each, rel=0.01) for each in [(0, 1), (5, 10), (10, 1000)]]
    assert found.stairs("stairs") == [pytest.approx(each, rel=0.01) for each in [(0, 5), (8, 50), (10, 50)]]
    assert found.dots() == [(pytest.approx(2, rel=0.01), pytest.approx(100, rel=0.01), "two <b>")]
    assert [each[:4] for each in found.bars()] == [pytest.approx((1, 3, 10, 20), rel=0.01)]


def test_a_legend_breaks_into_lines_and_says_where_it_ends():
    drawing = svg.Drawing(100)
    one = drawing.legend([("line after", "short")])
    many = drawing.legend([(f"fill q{i}", "a rather long name of a queue") for i in range(8)])
    assert many > one
    drawn = ET.fromstring(Figure("f", drawing.svg("x"), "").file)
    for text in drawn.iter("{http://www.w3.org/2000/svg}text"):
        assert float(text.get("x")) + svg.LETTER * len(text.text) <= drawing.width
