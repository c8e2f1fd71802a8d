"""What the terminal shows of a recommendation."""

import io

import pytest
from rich.console import Console

from qconf.report import layout, terminal
from tests.qconf.report import example, small
from tests.qconf.report.snapshots import check_snapshot


@pytest.fixture
def printed(capsys):
    def run(recommendation):
        terminal.print_recommendation(recommendation)
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
    assert max(map(len, text.splitlines())) <= layout.WIDTH


def test_names_are_no_markup(printed):
    text = printed(small.recommendation(names=("[red]a[/red]", "[/bold]"), text="[link=x]"))
    assert "[link=x]: 95 % wait of queue [/bold]" in " ".join(text.split())


def test_on_a_terminal_the_winner_stands_out():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, highlight=False)
    terminal.print_recommendation(small.recommendation(), console)
    assert "\x1b[1m" in out.getvalue()


def test_the_same_reason_is_said_once(printed):
    text = printed(example.recommendation())
    assert " ".join(text.split()).count(example.INELIGIBLE) == 1
    assert "  pp, dp-nlp  " in text
