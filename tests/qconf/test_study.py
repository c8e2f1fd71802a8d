"""The study: pieces that are kept, the paper's claims beside ours, a page that says plainly what came out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from parsim.metrics import Summary
from qconf.backtest import AVERAGED, Verdict
from qconf.config import load
from qconf.strategies import Options
from qconf.study import monthly, page, pieces, plan
from qconf.study.__main__ import command
from qconf.study.pieces import ROOT, Outcome, Piece, run
from qconf.study.plan import Claim
from tests.qconf import walking

SMALL = Piece("small", "log.csv", "kth-sp2.yaml", None, ("lxf-easy", "pp"), Options(samples=20), "Small")


def outcome(waits):
    """Made of mean waits: strategy to one per month."""
    base = load(ROOT / "configs" / "kth-sp2.yaml")
    verdicts = [
        Verdict(f"2016-0{m + 1}", name, Summary(dict.fromkeys(AVERAGED, float(wait)), {}), base)
        for name, row in waits.items()
        for m, wait in enumerate(row)
    ]
    return Outcome(SMALL, verdicts, [], 77)


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    walking.write(folder / "log.csv", walking.table(periods=9, jobs=120))
    return folder


def test_a_finished_piece_is_not_made_again(traces, tmp_path, monkeypatch):
    told = []
    before = run(SMALL, traces, tmp_path / "work", told.append)
    assert before.periods == ["2016-02", "2016-03"]
    assert set(before.averages()) == {"fcfs-easy", "lxf-easy", "shared", "pp", "static"}
    assert told
    monkeypatch.setattr(pieces, "backtest", lambda *_, **__: pytest.fail("made again"))
    after = run(SMALL, traces, tmp_path / "work", told.append)
    assert json.dumps([repr(v.summary.overall) for v in after.verdicts]) == json.dumps(
        [repr(v.summary.overall) for v in before.verdicts]
    )
    with pytest.raises(pytest.fail.Exception):
        run(replace(SMALL, options=Options(samples=21)), traces, tmp_path / "work", told.append)
    monkeypatch.setattr(pieces, "code", lambda: "changed")
    with pytest.raises(pytest.fail.Exception):
        run(SMALL, traces, tmp_path / "work", told.append)


def test_only_the_first_months(traces, tmp_path):
    assert run(replace(SMALL, periods=2), traces, tmp_path, print).periods == ["2016-02"]


def test_a_log_that_is_not_there_is_left_out_and_said(tmp_path):
    told = []
    assert run(SMALL, tmp_path, tmp_path, told.append) is None
    assert "log.csv is not there" in told[0]


def test_claims_are_means_of_monthly_changes_with_the_best_and_the_worst():
    found = outcome({"dqr": [50, 90, 300], "static": [100, 100, 200]})
    row = page._claim(Claim("dqr", "static", "mean_wait", -24, -50, without=("2016-03",)), found)
    assert row == (
        "| dqr against static, without 2016-03 | mean wait | -24 | -50 | -30 | -50 (2016-01) | -10 (2016-02) |"
    )
    more = outcome({"dqr": [50, 130, 150], "static": [100, 100, 100]})
    row = page._claim(Claim("dqr", "static", "utilization_window", 12), more)
    assert row.endswith("| +10 | +50 (2016-03) | -50 (2016-01) |")
    assert "not measured" in page._claim(Claim("hybrid", "mqb", "mean_wait", -50), found)


def test_every_pair_of_the_paper_is_shown_month_by_month():
    names = ("fcfs-easy", "shared", "static", "pp", "dp-nlp", "dqr", "hybrid", "mqb")
    found = outcome({name: [100 + i, 100, 200] for i, name in enumerate(names)})
    text = monthly.pairs(found, page._changes)
    assert all(f"| {claim.strategy} against {claim.reference} |" in text for claim in plan.CLAIMS)
    assert "| dqr against static | mean wait | +3 | +0 | +0 |" in text
    assert "| dp-nlp against static | mean wait |  | +0 | +0 |" in text  # the paper leaves 2016-01 out
    assert text.count("\n|") == 2 + len(plan.CLAIMS)
    shown = monthly.tables(found)
    for measure in monthly.MEASURES:
        assert f"### Month by month: {measure.title}" in shown
    assert "| 2016-03 | 0.06 |" in shown
    drawn = monthly.figures(found)
    assert all(f"(figures/{name})" in shown and svg.startswith("<?xml") for name, svg in drawn.items())
    assert "| degPercent | 30 % | 10 % |" in monthly.parameters(Options(degradation=0.1))


def test_says_plainly_when_partitioning_is_a_bad_idea():
    names = ("fcfs-easy", "shared", "static", "pp", "lxf-easy")
    bad = outcome(dict(zip(names, ([10], [9], [50], [40], [8]), strict=True)))
    text = page._plainly([bad])
    assert "the least mean wait has lxf-easy, 0.800" in text
    assert "Partitioning is a bad idea: the best of the partitioned strategies, pp, makes jobs wait 4.00 times" in text
    good = outcome(dict(zip(names, ([10], [9], [5], [4], [8]), strict=True)))
    assert "bad idea" not in page._plainly([good])


def test_the_plan_has_every_setting_once():
    found = plan.sensitivity(Options(), quick=False)
    assert len({piece.what for piece in found}) == len({piece.options for piece in found}) == len(found)
    assert len({piece.name for piece in found}) == len(found)
    assert all((ROOT / "configs" / piece.config).is_file() for piece in plan.logs(Options(), quick=True))


def test_writes_the_page(traces, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "generated", lambda *_, **__: SMALL)
    monkeypatch.setattr(plan, "logs", lambda *_, **__: [SMALL])
    hybrid = replace(SMALL, name="s", strategies=("dp-nlp", "dqr", "hybrid"), what="as it is", periods=2)
    monkeypatch.setattr(plan, "sensitivity", lambda *_, **__: [hybrid])
    arguments = ["--quick", "--out", tmp_path / "docs", "--traces", traces, "--work", tmp_path / "work"]
    for _ in range(2):
        answer = CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)
        assert answer.exit_code == 0
    text = (tmp_path / "docs" / "study.md").read_text()
    assert "This is the quick study" in text
    assert "python -m qconf.study --quick" in text
    assert "| as it is |" in text
    assert "## In plain words" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")
