import io
import math

import pytest
from rich.console import Console

from parsim.metrics import METRICS
from qconf.report import tables, terminal
from tests.qconf.report import example, small
from tests.qconf.report.snapshots import check_snapshot


@pytest.fixture
def printed(capsys):
    def run(recommendation):
        tables.print_recommendation(recommendation)
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("verdict", ["CHANGE", "KEEP"])
def test_as_it_was_reviewed(verdict, printed):
    check_snapshot(f"table-{verdict.lower()}.txt", printed(small.recommendation(verdict)))


def test_piped_it_is_plain_and_narrow(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = printed(example.recommendation())
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= terminal.WIDTH


def test_names_are_no_markup(printed):
    text = printed(small.recommendation(names=("[red]a[/red]", "[/bold]"), text="[link=x]"))
    assert "[link=x]: 95 % wait of queue [/bold]" in " ".join(text.split())


def test_on_a_terminal_the_winner_stands_out():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=110, highlight=False)
    tables.print_recommendation(small.recommendation(), console)
    assert "\x1b[1m" in out.getvalue()


def test_the_same_reason_is_said_once(printed):
    text = printed(example.recommendation())
    assert text.count(example.BARRED) == 1
    assert "  pp, dp-nlp  " in text


def test_comparison_is_long_and_complete():
    frame = tables.comparison_frame(small.recommendation())
    assert list(frame.columns) == ["strategy", "queue", "metric", "value"]
    assert not frame.duplicated(["strategy", "queue", "metric"]).any()
    assert set(frame["strategy"]) == {"current", "lxf-easy", "pp", "hybrid"}
    assert set(frame["queue"]) == {"all", "short", "long"}
    wide = frame.pivot_table(index=["strategy", "queue"], columns="metric", values="value", dropna=False)
    assert wide.loc[("hybrid", "long"), "mean_wait"] == 14400
    assert wide.loc[("hybrid", "all"), "resampled_gain_low"] == 0.21
    assert set(METRICS) <= set(wide.columns)
    assert math.isnan(wide.loc[("hybrid", "short"), "gain"])


def test_a_queue_called_all_is_told_from_the_whole():
    frame = tables.comparison_frame(small.recommendation(names=("all", "long")))
    assert set(frame["queue"]) == {"all", "all (queue)", "long"}
