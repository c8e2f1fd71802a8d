"""The paper to the letter: its claims beside ours, its readings, its figures."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from click.testing import CliRunner

from qconf.strategies import option_fields
from qconf.strategies.presets import PAPER
from qconf.synth import preset_named
from studies.letter import claims, figures, page, plan
from studies.letter.__main__ import command
from studies.letter.claims import CLAIMS, Claim
from studies.paper.pieces import Generated
from tests.studies.test_paper import made_of

MONTH = 35232 * 31 * 86400  #: core-seconds of a month of 31 days
NAMES = ("fcfs-easy", "shared", "static", "pp", "dp-nlp", "dqr", "hybrid", "mqb")


def all_names(**waits):
    return made_of({name: waits.get(name.replace("-", "_"), [100, 100, 100]) for name in NAMES})


def test_numbers_are_means_of_the_periods_changes_and_the_best():
    found = all_names(dqr=[50, 90, 300], static=[100, 100, 200])
    rows = [line for line in claims.numbers({"seed 0": found}).splitlines() if line.startswith("| dqr against static")]
    assert rows == ["| dqr against static | mean wait | -24 |  | -3 (-50) |"]
    without = claims.changes_of(Claim("dqr", "static", "mean_wait", without=("2016-03",)), found)
    assert without.round(6).tolist() == [-50.0, -10.0]
    assert claims.changes_of(Claim("auto", "static", "mean_wait"), found).empty
    more = all_names(hybrid=[110, 120, 90])
    (row,) = [each for each in claims.numbers({"": more}).splitlines() if each.startswith("| hybrid against dqr")]
    assert row.endswith("| +3 to +4 |  | +7 (+20) |")  # of utilization the most is the best


def test_sentences_are_counted_over_the_periods():
    found = all_names(static=[100, 100, 100], pp=[90, 110, 90], dp_nlp=[95, 80, 80], dqr=[60, 85, 70])
    lines = claims.sentences({"seed 0": found}).splitlines()

    def of(text):
        (line,) = [each for each in lines if text in each]
        return line.split("|")[-2].strip()

    assert of("pp, dp-nlp, dqr wait less than static in almost all") == "2, 3, 3 of 3"
    assert of("dp-nlp waits less than pp") == "2 of 3"
    assert of("dqr waits least of the partitioned") == "2 of 3"
    assert of("splits kept") == of("merges kept") == "0 of 0"
    assert of("hybrid waits less than dqr") == "0 of 3"
    assert of("pp, dp-nlp, dqr have a higher utilization than static") == "1, 0, 0 of 3"
    assert of("the shared machine's utilization is above") == "0 of 3"
    assert of("but in January 2016 pp, dp-nlp, dqr wait more than static") == "0, 0, 0 of 1"
    assert len(lines) == 2 + len(claims.SENTENCES)
    twice = claims.sentences({"seed 0": found, "seed 1": found, "load 0.8": found}).splitlines()
    assert twice[0] == "| where | the paper says | seeds 0 to 1 | load 0.8 |"
    assert next(line for line in twice if "dqr wait less than static" in line).endswith(
        "| 4, 6, 6 of 6 | 2, 3, 3 of 3 |"
    )
    other = all_names(dqr=[50, 90, 100], static=[100, 100, 200])
    (row,) = [
        line for line in claims.numbers({"seed 0": found, "seed 1": other}).splitlines() if "dqr against st" in line
    ]
    assert row.endswith("| -37 to -28 (-50) |")
    assert len(claims.numbers({"seed 0": found}).splitlines()) == 2 + len(CLAIMS)


def test_every_setting_of_the_preset_has_its_place_in_the_text():
    assert {name for name, _, _ in page.TEXT} == set(PAPER.settings) <= set(option_fields())
    table = page._settings()
    assert "| `--merge-cores` | common | adjacent or overlapping;" in table
    assert "| `--weights` | 0.333, 0.667, 1 |" in table


def test_each_reading_switches_something_alone():
    seeds = plan.readings(quick=False)
    assert all([piece.made_by.seed for piece in pieces] == list(plan.SEEDS) for _, pieces in seeds)
    assert len({piece.name for _, pieces in seeds for piece in pieces}) == len(plan.SEEDS) * len(seeds)
    found = [(reading, pieces[0]) for reading, pieces in seeds]
    assert len({repr((sorted(piece.settings.items()), piece.letter, piece.chain)) for _, piece in found}) == len(found)
    for reading, piece in found[1:-1]:
        assert set(reading.settings) <= set(PAPER.settings)
        same = {name for name in PAPER.settings if piece.settings[name] == PAPER.settings[name]}
        assert set(PAPER.settings) - same <= set(reading.settings)


def test_a_generated_log_is_as_loaded_as_its_walltimes_allow(tmp_path):
    log = pd.read_csv(Generated(plan.MONTHS, 0, 0.95).write(1, tmp_path))
    assert (log["cores"] * log["runtime"]).sum() / MONTH == pytest.approx(0.95, abs=0.01)


def test_what_the_page_says_of_the_generated_months_is_so():
    january = Generated(plan.MONTHS, 0, 1.05)._month(6)
    assert f"ends at {(january['cores'] * january['runtime']).sum() / MONTH:.2f})" in page.CLAIMS
    model = preset_named(plan.MONTHS)
    loads = [model.profile(index).load for index in range(9)]
    assert f"({min(loads):.2f} to {max(loads):.2f})" in page.CLAIMS
    july, december = (
        (100 * hours / hours.sum()).to_dict()
        for month in (Generated(plan.MONTHS)._month(0), Generated(plan.MONTHS)._month(5))
        for hours in [(month["cores"] * month["runtime"]).groupby(month["queue"]).sum()]
    )
    said = ", ".join(f"{name} {july[name]:.0f} and {december[name]:.0f} %" for name in ("medium", "small", "small72"))
    assert said in " ".join(page.JANUARY.split())


def test_limits_of_a_site_are_changed_by_a_factor():
    base = plan.months("x").base()
    halved = plan.months("x", site={"order": "ncpus", "max_run": 0.5}).base()
    assert [queue.max_run for queue in halved.queues] == [max(1, round(q.max_run / 2)) for q in base.queues]
    assert halved.order == "ncpus"
    assert not any(queue.limited for queue in plan.months("x", site={"max_run": None}).base().queues)


@pytest.mark.slow
def test_the_whole_page(tmp_path, monkeypatch):
    small = {"periods": 2, "settings": {**PAPER.settings, "chunk": 4800, "samples": 20}}
    months = plan.months

    def cheap(name, *given, **about):
        piece = months(name, *given, **about)
        return replace(piece, periods=2, settings={**piece.settings, **small["settings"]})

    monkeypatch.setattr(plan, "months", cheap)
    monkeypatch.setattr(plan, "FIXED", plan.FIXED[:1])
    monkeypatch.setattr(plan, "OPEN", ())
    arguments = ["--quick", "--out", tmp_path / "docs", "--work", tmp_path / "work"]
    for _ in range(2):
        result = CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)
        assert result.exit_code == 0
    assert "Not run yet" not in (tmp_path / "docs" / "paper.md").read_text()
    (tmp_path / "work" / "reading-1-0.json").unlink()
    result = CliRunner().invoke(command, [*map(str, arguments), "--finished"], catch_exceptions=False)
    assert result.exit_code == 0
    text = " ".join((tmp_path / "docs" / "paper.md").read_text().split())
    assert "Not run yet, so not on this page (1 pieces): the best of what is simulated" in text
    text = (tmp_path / "docs" / "paper.md").read_text()
    drawn = {path.name for path in (tmp_path / "docs" / "figures").iterdir()}
    assert drawn == {f"paper-{n}.svg" for n in ("1", "2", "4", "5", "6a", "6b", *range(7, 14))}
    assert all(f"(figures/{name})" in text for name in drawn)
    assert "This is the quick version" in text
    assert "| to the letter |" in text
    for each in figures.COMPARISONS:
        assert f"![Figure {each.number}: " in text
    for line in text.splitlines():
        assert line.endswith("|") if line.startswith("|") else len(line) <= 100 or line.startswith(("![", "#"))
