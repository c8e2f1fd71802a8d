import hashlib
import math
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from qconf.report.figures import curves_figure, figures, grouped_bars
from tests.qconf.report import example, small

NAMES = ["mean-wait", "wait-by-size", "utilization-by-size"]


def test_every_figure_is_svg_without_dates():
    drawn = figures(example.recommendation())
    assert list(drawn) == NAMES
    for svg in drawn.values():
        assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
        assert "<dc:date>" not in svg
        assert not any(line != line.rstrip() for line in svg.splitlines())


def test_the_same_bytes_in_another_process():
    code = (
        "import hashlib; from qconf.report.figures import figures\n"
        "from tests.qconf.report.small import recommendation\n"
        "for svg in figures(recommendation()).values(): print(hashlib.sha256(svg.encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "MPLBACKEND": "pdf", "SOURCE_DATE_EPOCH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=120
    )
    expected = [hashlib.sha256(svg.encode()).hexdigest() for svg in figures(small.recommendation()).values()]
    assert done.stdout.split() == expected


def test_a_users_matplotlib_settings_change_nothing():
    import matplotlib as mpl

    before = figures(small.recommendation())
    with mpl.rc_context({"font.size": 20, "axes.grid": True, "lines.linewidth": 9, "axes.spines.top": True}):
        assert figures(small.recommendation()) == before


def test_hostile_names_are_drawn_as_they_are(recwarn):
    names = ("_hidden", "$x^{2$<b>&--></svg>")
    svg = figures(small.recommendation(names=names))["wait-by-size"]
    ET.fromstring(svg)
    assert "_hidden" in svg
    figures(small.recommendation(names=("小", "$")))
    assert not recwarn.list


def test_without_numbers_there_is_no_figure():
    from dataclasses import replace

    found = small.recommendation()
    empty = replace(found, rows=[replace(row, test=None) for row in found.rows], curves=[])
    assert figures(empty) == {}


def test_partition_sizes_are_marked():
    found = small.recommendation()
    plain = curves_figure(found.curves, "waits")
    marked = curves_figure(found.curves, "waits", {"recommended": found.config})
    assert len(marked) > len(plain)
    assert curves_figure(found.curves, "waits", {"current": found.base}) == plain, "a shared machine has no sizes"


def test_grouped_bars():
    series = {"shared": [1.0, 2.0], "auto": [0.5, math.nan]}
    svg = grouped_bars(["2016-01", "2016-02"], series, label="mean wait, hours", line=[1.0, 1.5])
    ET.fromstring(svg)
    assert svg == grouped_bars(["2016-01", "2016-02"], series, label="mean wait, hours", line=[1.0, 1.5])
    with pytest.raises(ValueError, match="auto: 1 values for 2 groups"):
        grouped_bars(["a", "b"], {"auto": [1.0]}, label="x")
