"""Texts and tables within the columns that there are."""

import io

import pytest
from rich.console import Console

from qconf.report import layout


def printed(capsys, table):
    layout.print_table(layout.console(), table)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def table(name):
    found = layout.new_table(("strategy",), ("wait h", "max h"))
    found.add_row(name, "1.25", "100.00")
    return found


def test_a_text_breaks_neither_words_nor_before_units():
    text = "the wait of /a/path/that/is/longer/than/a/line grows by 12 % in 3 h"
    assert layout.filled(text, 22, "  ").splitlines() == [
        "the wait of",
        "  /a/path/that/is/longer/than/a/line",
        "  grows by 12 % in 3 h",
    ]


def test_a_list_has_its_names_on_the_left():
    items = [("pp", "a b c d e f"), ("exact", "other"), ("dp-nlp", "a b c d e f")]
    assert layout.listed(items, 22) == ["  pp, dp-nlp  a b c d\n              e f", "  exact       other"]
    assert layout.listed([]) == []


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        (80, ["strategy           wait h   max h", "exact-and-longest    1.25  100.00"]),
        (32, ["strategy          wait h  max h", "exact-and-longest   1.25 100.00"]),
        (29, ["strategy        wait h  max h", "exact-and-longe   1.25 100.00", "st"]),
        (9, ["strategy     wait h  max h", "exact-and-lo   1.25 100.00", "ngest"]),
    ],
)
def test_a_table_comes_closer_then_breaks_its_texts_and_cuts_nothing_off(columns, lines, capsys, monkeypatch):
    monkeypatch.setattr(layout, "WIDTH", columns)
    assert printed(capsys, table("exact-and-longest")) == lines


def test_where_there_is_no_terminal_there_are_80_columns():
    assert (layout.width(), layout.console().width) == (80, 80)


def test_on_a_narrow_terminal_each_row_is_a_paragraph():
    out = io.StringIO()
    found = layout.new_table(("", "strategy"), ("wait h", "gain %"))
    found.add_row("", "current", "12.50", "-")
    found.add_row(">", "a-long-name-of-one", "1.25", "+90.0")
    layout.print_table(Console(file=out, force_terminal=True, color_system=None, width=24), found)
    lines = out.getvalue().splitlines()
    assert lines == ["current: wait h 12.50", "> a-long-name-of-one:", "    wait h 1.25, gain %", "    +90.0"]
