"""The study: pieces that are stored, a page of tables and conclusions."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from click.testing import CliRunner

from parsim.metrics import Summary
from qconf.backtest import AVERAGED, FoldResult
from qconf.config import load
from qconf.report.columns import columns
from studies.output import ROOT
from studies.paper import by_period, cuts, page, pieces, plan
from studies.paper.__main__ import command
from studies.paper.pieces import Piece, PieceResult, run
from tests.qconf.backtest import walking

SMALL = Piece("small", "log.csv", "kth-sp2.yaml", None, ("lxf-easy", "pp"), {"samples": 20}, "Small")


def made_of(waits, piece=SMALL):
    """The result of a piece: each strategy's mean wait per period."""
    base = load(ROOT / "configs" / "kth-sp2.yaml")
    results = [
        FoldResult(f"2016-0{m + 1}", name, Summary(dict.fromkeys(AVERAGED, float(wait)), {}), base)
        for name, row in waits.items()
        for m, wait in enumerate(row)
    ]
    return PieceResult(piece, results, [], 77)


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    walking.write(folder / "log.csv", walking.table(periods=9, jobs=120))
    return folder


def test_a_finished_piece_is_not_run_again(traces, tmp_path, monkeypatch):
    messages = []
    before = run(SMALL, traces, tmp_path / "work", messages.append)
    assert before.periods == ["2016-02", "2016-03"]
    assert set(before.averages()) == {"fcfs-easy", "lxf-easy", "shared", "pp", "static"}
    assert messages
    monkeypatch.setattr(pieces, "backtest", lambda *_, **__: pytest.fail("run again"))
    after = run(SMALL, traces, tmp_path / "work", messages.append)
    assert [repr(each.summary.overall) for each in after.results] == [
        repr(each.summary.overall) for each in before.results
    ]
    for other in (replace(SMALL, settings={"samples": 21}), replace(SMALL, strategies=("pp",))):
        with pytest.raises(pytest.fail.Exception):
            run(other, traces, tmp_path / "work", messages.append)
    monkeypatch.setattr(pieces, "code", lambda: "changed")
    with pytest.raises(pytest.fail.Exception):
        run(SMALL, traces, tmp_path / "work", messages.append)


def test_only_the_first_periods(traces, tmp_path):
    assert run(replace(SMALL, periods=2), traces, tmp_path, print).periods == ["2016-02"]


def test_periods_that_begin_elsewhere(traces, tmp_path):
    whole = run(replace(SMALL, period="20d"), traces, tmp_path, print)
    later = run(replace(SMALL, period="20d", begin=5), traces, tmp_path, print)
    first, second = (date.fromisoformat(each.periods[0]) for each in (whole, later))
    assert (second - first).days == 5
    assert len(run(replace(SMALL, period="20d", begin=5, periods=2), traces, tmp_path, print).periods) == 1


def test_current_of_a_piece_with_a_formula_is_that_order_without_queues(traces, tmp_path):
    walking.write(traces / "log.csv", walking.table(periods=9, jobs=700))
    same = "eligible_time"  # the job that waits longest goes first, as under fcfs-easy
    found = run(replace(SMALL, strategies=("current",), formula=same), traces, tmp_path, print)
    plain, other = (found.by_period("mean_wait")[name].tolist() for name in ("fcfs-easy", "current"))
    assert plain == other
    assert min(plain) > 0
    fixed = run(replace(SMALL, strategies=("current",), formula=plan.FIXED), traces, tmp_path, print)
    assert fixed.by_period("mean_wait")["current"].tolist() != plain


def test_the_same_log_cut_elsewhere_with_mean_and_deviation():
    found = []
    for begin, waited in ((0, 5), (5, 7)):
        piece = replace(SMALL, what="Site", period="30d", begin=begin)
        found.append(made_of({"fcfs-easy": [10, 10], "lxf-easy": [8, 8], "auto": [waited, 11]}, piece))
        fixed = replace(piece, formula=plan.FIXED)
        found.append(made_of({"fcfs-easy": [10, 10], "current": [9, 9]}, fixed))
    rows = [line for line in cuts.section(found).splitlines() if line.startswith("|")][2:]
    thrice = " / ".join(["{}"] * 3)
    assert (
        rows[0]
        == "| Site | 2 | " + " | ".join(thrice.format(*[each] * 3) for each in ("0.800", "0.900", "0.850")) + " |"
    )
    assert rows[1].startswith("| deviation |  | 0.000 / ")
    assert rows[1].endswith("| 0.071 / 0.071 / 0.071 |")
    assert len(rows) == 2


def test_every_log_is_cut_in_several_ways_each_with_the_fixed_order():
    found = plan.cuts({}, quick=False)
    assert len({piece.name for piece in found}) == len(found) == 2 * len(plan.TRACES) * (1 + len(plan.BEGINNINGS))
    assert {piece.formula for piece in found[1::2]} == {plan.FIXED}
    assert not any(piece.formula for piece in found[::2])


def test_a_missing_log_is_left_out_with_a_message(tmp_path):
    messages = []
    assert run(SMALL, tmp_path, tmp_path, messages.append) is None
    assert "log.csv is not there" in messages[0]


def test_every_metric_is_shown_period_by_period():
    names = ("fcfs-easy", "shared", "static", "pp", "dp-nlp", "dqr", "hybrid", "mqb")
    found = made_of({name: [100 + i, 100, 200] for i, name in enumerate(names)})
    shown = by_period.shown()
    assert all(f"![{column.caption}, period by period]" in shown for column in columns(*by_period.METRICS))
    figures = by_period.figures(found)
    assert all(f"(figures/{name})" in shown and svg.startswith("<svg") for name, svg in figures.items())


@pytest.mark.parametrize(("kept", "expected"), [(False, "kept 0 of the 2 splits"), (True, "kept 1 of the 2 splits")])
def test_the_page_reports_what_dqr_does_to_the_queues(kept, expected):
    found = made_of({"dp-nlp": [1], "dqr": [1]})
    assert page._queues(found) == []
    found.results[1].decisions[:] = [
        {"step": "split", "kept": kept},
        {"step": "split", "kept": False, "why": "a job would fit no queue"},
        {"step": "merge", "kept": True},
    ]
    (text,) = page._queues(found)
    assert expected in text
    assert "1 of 1 merges" in text
    assert ("does not matter" in text) is not kept


def test_the_page_names_the_best_strategy_and_the_best_with_partitions():
    names = ("fcfs-easy", "shared", "static", "pp", "lxf-easy")
    bad = made_of(dict(zip(names, ([10], [9], [50], [40], [8]), strict=True)))
    text = " ".join(page._conclusions([bad]).split())
    assert "lxf-easy has the shortest mean wait, 0.800" in text
    assert "the best with partitions, pp, 4.00, strict `pp` 4.0." in text


def test_settings_that_change_little_are_named_below_the_table():
    waits = {"static": [100], "shared": [80], "dp-nlp": [90], "dqr": [50]}
    found = [
        made_of({**waits, "hybrid": [hybrid]}, replace(SMALL, what=what))
        for what, hybrid in (("as it is", 60), ("more", 65.9), ("much more", 68), ("less", 54.1))
    ]
    rows, _, others = page._sensitivity(found).partition("| as it is |")[2].partition("\n\n")
    assert rows == " 0.900 | 0.500 | 0.600 | 0.750 |\n| much more | 0.900 | 0.500 | 0.680 | 0.850 |"
    assert others == "Settings that move none of these by 10 %: more; less.\n"
    assert page._sensitivity(found[:1]).endswith(" 0.750 |\n")


def test_the_plan_has_every_setting_once():
    found = plan.sensitivity(plan.PAPER, quick=False)
    assert (
        len({piece.what for piece in found})
        == len({repr(sorted(piece.settings.items())) for piece in found})
        == len(found)
    )
    assert len({piece.name for piece in found}) == len(found)
    assert all((ROOT / "configs" / piece.config).is_file() for piece in plan.logs({}, quick=True))


def test_the_whole_page(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "generated", lambda *_, **__: SMALL)
    monkeypatch.setattr(plan, "logs", lambda *_, **__: [SMALL])
    elsewhere = [
        replace(SMALL, name=f"cut-{begin}-{len(names)}", strategies=names, period="20d", begin=begin, formula=formula)
        for begin in (0, 5)
        for names, formula in ((plan.CHOSEN, ""), (("current",), plan.FIXED))
    ]
    monkeypatch.setattr(plan, "cuts", lambda *_, **__: elsewhere)
    hybrid = replace(SMALL, name="s", strategies=("dp-nlp", "dqr", "hybrid"), what="as it is", periods=2)
    monkeypatch.setattr(plan, "sensitivity", lambda *_, **__: [hybrid])
    arguments = ["--quick", "--out", tmp_path / "docs", "--traces", traces, "--work", tmp_path / "work"]
    for _ in range(2):
        result = CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)
        assert result.exit_code == 0
    text = (tmp_path / "docs" / "study.md").read_text()
    assert "This is the quick study" in text
    assert "python -m studies.paper --quick" in text
    assert "| as it is |" in text
    assert text.partition("## In plain words")[2].count("has the shortest mean wait") == 2  # generated, and a log
    assert text.count("### Period by period") == 1  # of the generated months
    assert text.count("\n| deviation |") == 1
    for line in text.splitlines():
        assert line.endswith("|") if line.startswith("|") else len(line) <= 100
