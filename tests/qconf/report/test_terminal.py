"""What the terminal shows of a recommendation."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from qconf.export import exporter
from qconf.recommend.recommendation import Rung
from qconf.report import layout, terminal
from qconf.report.exported import Exported
from tests.qconf.report import example, small
from tests.qconf.report.snapshots import check_snapshot


@pytest.fixture
def printed(capsys):
    def run(found, *, verbose=True):
        terminal.print_advice(found, Exported.of(found, exporter("pbs")()), "reports/log")
        if verbose:
            terminal.print_recommendation(found)
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("verdict", ["CHANGE", "KEEP"])
def test_as_it_was_reviewed(verdict, printed):
    check_snapshot(f"table-{verdict.lower()}.txt", printed(small.recommendation(verdict)))


@pytest.mark.parametrize("verdict", ["CHANGE", "KEEP"])
def test_the_advice_is_one_screen(verdict, printed):
    """Verdict and gain, losers, best queue configuration, a table of eight rows, the others, where to go on."""
    found = example.recommendation(verdict)
    text = printed(found, verbose=False)
    lines = text.splitlines()
    assert len(lines) <= 24  # the command says what was read above them
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{verdict}: ")
    assert sum(line.startswith("Best queue configuration") for line in lines) == 1  # none gains
    table = [line for line in lines if re.match(r"[>x ] +[\w-]+ +(-|[\d.]+) +(-|[\d.]+) ", line)]
    names = [line[1:].split()[0] for line in table]
    assert names == ["current", "fcfs-easy", "lxf-easy", *["auto"] * (verdict == "CHANGE")]
    others = text[text.index("Gain % of the others") : text.index("In reports/log")]
    assert all(row.name in others for row in found.rows if row.name not in names)
    assert [line.split()[0] for line in lines[-3:]] == ["In", "Load:", "Undo:"]


def test_the_best_queue_configuration_has_a_row_though_it_is_not_its_strategys(printed):
    found = example.recommendation()
    other = replace(found.row, config=found.base.with_partitions([1200, 9600, 5400, 19032, 0], reserve_after=60))
    text = printed(replace(found, queues=Rung("partitions and pool", other)), verbose=False)
    assert re.search(r"\n *queues +1\.26 ", text)


def test_piped_it_is_plain_and_narrow(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = printed(example.recommendation())
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= layout.WIDTH


def test_names_are_no_markup(printed):
    text = printed(small.recommendation(names=("[red]a[/red]", "[/bold]"), text="[link=x]"))
    assert "[link=x]: 95 % wait of queue [/bold]" in " ".join(text.split())


def test_on_a_terminal_verdict_gains_and_losses_have_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = {}
    for name in ("CHANGE", "KEEP"):
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, color_system="standard", width=100, highlight=False)
        monkeypatch.setattr(terminal, "console", lambda console=console: console)
        terminal.print_advice(small.recommendation(name), None, "reports/log")
        shown[name] = out.getvalue()
    assert shown["CHANGE"].startswith("\x1b[1;32mCHANGE:\x1b[0m ")
    assert shown["KEEP"].startswith("\x1b[1;34mKEEP:\x1b[0m ")
    assert re.search(r"\x1b\[[\d;]*32m *\+33\.3", shown["CHANGE"])


def test_the_same_reason_is_said_once(printed):
    text = printed(example.recommendation())
    assert " ".join(text.split()).count(example.INELIGIBLE) == 1
    assert "  pp, dp-nlp  " in text
