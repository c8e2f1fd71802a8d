"""Trials of KEEP and CHANGE: busy histories of their own months, a base worse by the stated gain, stored results."""

from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from qconf.config import load
from qconf.errors import QconfError
from qconf.evaluation.period import Period
from qconf.recommend import Row
from qconf.strategies import Proposal
from qconf.synth import preset_named
from studies import trials
from studies.output import ROOT
from studies.paper.plan import CRAY
from studies.trials import SEEDS, Tally, Trials, busy, history, page, tally_of, worsened


@pytest.fixture(scope="module")
def start():
    return load(ROOT / "configs" / CRAY)


@pytest.fixture(scope="module")
def preset():
    return busy(preset_named(trials.PRESET))


def periods(preset, start):
    return [Period(history(preset, 2, range(1), start).workload(start), start)]


def test_histories_are_busy_and_differ_with_the_seed(preset, start):
    assert all(month.load >= trials.LEAST_LOAD for month in preset.months)
    one, again, other = (history(preset, seed, range(1, 2), start) for seed in (1, 1, 2))
    assert one.jobs.equals(again.jobs)
    assert not one.jobs.equals(other.jobs)
    work = (one.jobs["cores"] * one.jobs["runtime"]).sum() / start.machine.cores
    assert work / (one.span[1] - one.span[0]) > 0.8


def test_the_base_is_worse_by_the_stated_gain(preset, start):
    best = start.replace(order="(eligible_time + walltime) / max(walltime, 1) ** 2 * ncpus ** -0.5")
    here = periods(preset, start)
    assert worsened(best, 0.0, here, 1) == best
    bad = worsened(best, 0.2, here, 1)
    assert "* min(ncpus, 4404) ** " in bad.order
    before, after = (here[0].simulate(config).wait.mean() for config in (bad, best))
    assert 0.15 < 1 - after / before < 0.3


def test_a_gain_out_of_reach_is_refused(preset, start):
    with pytest.raises(QconfError, match="no base is so much worse that 99% are to be gained"):
        worsened(start.replace(order="-ncpus"), 0.99, periods(preset, start), 1)


def test_verdicts_are_about_months_outside_the_training_set(preset, start, monkeypatch):
    given = []

    def recommended(past, base, **_):
        given.append((past.jobs, base))
        return SimpleNamespace(winner=f"number {len(given)}", verdict="CHANGE", rows=[])

    monkeypatch.setattr(trials, "recommend", recommended)
    tally = tally_of(Trials(0.0, 1, 2), start, preset, 1)
    assert tally == Tally(Trials(0.0, 1, 2), start.order, ["number 1", "number 2"], 0)
    for month, (jobs, base) in enumerate(given):
        training, test = (
            history(preset, SEEDS[name], range(month, month + 1), start).jobs for name in ("training", "test")
        )
        assert jobs.equals(test)
        assert not jobs.equals(training)
        assert base == start


@pytest.mark.parametrize(
    ("verdict", "certain", "ineligible", "alone"),
    [
        ("KEEP", True, "the longest wait grows", True),
        ("KEEP", True, "", False),
        ("KEEP", False, "the longest wait grows", False),
        ("CHANGE", True, "the longest wait grows", False),
    ],
)
def test_guard_rails_alone_keep_what_would_gain_for_certain(start, monkeypatch, verdict, certain, ineligible, alone):
    plain = Row("current", start, None, None, None)
    found = Row("auto", start, None, None, None, bootstrap=SimpleNamespace(certain=certain), ineligible=ineligible)
    recommended = SimpleNamespace(winner="lxf-easy", verdict=verdict, rows=[plain, found])
    monkeypatch.setattr(trials, "recommend", lambda *_, **__: recommended)
    assert trials.verdict(None, start) == ("lxf-easy", alone)


def test_verdicts_are_counted_and_stored(tmp_path, monkeypatch, start):
    computed = []

    def tally(trial, *_):
        computed.append(trial)
        return Tally(trial, "fcfs", ["current"] * (trial.count - 1) + ["auto"], 1)

    monkeypatch.setattr(trials, "tally_of", tally)
    monkeypatch.setattr(trials, "propose", lambda *_, **__: Proposal(start))
    options = ["--count", "4", "--training", "1", "--out", str(tmp_path), "--work", str(tmp_path / "work")]
    for _ in range(2):
        assert CliRunner().invoke(trials.command, options, catch_exceptions=False).exit_code == 0
    assert len(computed) == len(trials.ALL)
    text = (tmp_path / "trials.md").read_text()
    assert "    python -m studies.trials --count 4 --training 1\n" in text
    assert "| 3 | 20 % | 1 of 4 | 3 of 4 | 1 |" in text
    monkeypatch.setattr(trials, "code", lambda: "changed")
    assert CliRunner().invoke(trials.command, options, catch_exceptions=False).exit_code == 0
    assert len(computed) == 2 * len(trials.ALL)


def test_the_page_has_a_row_per_kind_of_trials():
    text = page([Tally(Trials(0.0, 1, 3), "fcfs", ["current"] * 3, 0)], 24, "command")
    assert "| 1 | 0 % | 0 of 3 | 3 of 3 | 0 |" in text
    assert max(map(len, text.splitlines())) <= 100
