"""The next month: months in pairs, what is measured on the next one, the page, and stored results."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from qconf.history import clean, derive_config, read
from studies import next_month
from studies.next_month import Followed, command, month_of, months_of, page

DAY = 86400
FEBRUARY = 1_485_907_200  # 2017-02-01
SHORT_FIRST = "-walltime"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """February, April and May: each day a job of two hours on the whole machine, then three long and three short."""
    monkeypatch.setattr(next_month, "FEWEST", 20)
    day = [(7200, 4), (7200, 4), (7200, 4), (7200, 4), (600, 4), (600, 4), (600, 4)]
    days = [*range(28), *range(59, 89), *range(89, 120)]
    rows = [
        f"{d * 10 + i},{FEBRUARY + d * DAY + i},{length},{length},{cores},"
        for d in days
        for i, (length, cores) in enumerate(day)
    ]
    path = tmp_path / "log.csv"
    path.write_text("job_id,submit,runtime,walltime,cores,queue\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def cleaned(log):
    records = read([log])
    base = derive_config(records, 4)
    return clean(records, base), base


def recommended(base, verdict="CHANGE", interval=(0.5, 0.4, 0.6)):
    """Return a recommendation of the shortest job first."""
    expected, low, high = interval
    row = SimpleNamespace(
        name="auto",
        bootstrap=SimpleNamespace(
            expected=expected, low=low, high=high, certain=True, after=SimpleNamespace(longest=0.0)
        ),
        config=base.replace(order=SHORT_FIRST),
        unmet=(),
    )
    current = SimpleNamespace(name="current", bootstrap=None, config=base)
    winner = "auto" if verdict == "CHANGE" else "current"
    config = base.replace(order=SHORT_FIRST)
    return lambda *_, **__: SimpleNamespace(rows=[current, row], verdict=verdict, winner=winner, config=config)


def test_only_months_that_follow_each_other_are_paired(cleaned):
    ((month, following, earlier),) = months_of(cleaned[0])
    assert [each.date(each.span[0])[:7] for each in (*earlier, month, following)] == ["2017-02", "2017-04", "2017-05"]


def test_a_change_is_simulated_on_the_next_month(cleaned, monkeypatch):
    history, base = cleaned
    monkeypatch.setattr(next_month, "recommend", recommended(base))
    found = month_of(*months_of(history)[0], base)
    # First come: waits of 0, 2, 4, 6 h for the long ones; the short ones last, 8 h and more.
    present = [0, 7200, 14400, 21600, 28800, 29400, 30000]
    then = [0, 9000, 16200, 23400, 7200, 7800, 8400]
    assert (found.label, found.winner, found.order) == ("2017-04", "auto", SHORT_FIRST)
    assert found.gain == pytest.approx(1 - sum(then) / sum(present), abs=1e-3)
    assert found.longest == pytest.approx(max(then) / max(present), abs=1e-3)
    assert found.waited == pytest.approx(max(present) / 3600, abs=0.01)
    assert found.known == found.waited, "the months are alike"
    assert found.inside
    assert not found.below


def test_what_is_kept_costs_the_gain_that_the_next_month_would_have_had(cleaned, monkeypatch):
    history, base = cleaned
    change, keep = (
        monkeypatch.setattr(next_month, "recommend", recommended(base, verdict=each))
        or month_of(*months_of(history)[0], base)
        for each in ("CHANGE", "KEEP")
    )
    assert (keep.changed, keep.gain, keep.inside) == (False, change.gain, False)
    assert keep.gain > 0


def test_the_page_counts_losses_intervals_and_longest_waits():
    promised = (0.3, 0.2, 0.4)
    months = [
        Followed("2017-01", "auto", "lxf", promised, 0.25, 0.5, 1.0, 10.0),
        Followed("2017-02", "auto", "lxf", promised, -0.1, 0.5, 2.0, 10.0),
        Followed("2017-03", "auto", "lxf", promised, 0.45, 0.5, 0.5, 10.0),
        Followed("2017-04", "current"),
    ]
    text = page({"one": months, "other": months[3:]}, "command")
    assert "| one | 4 | 3 | 0.300 | 0.200 | 0.500 | 1 | 1 | 1 | 1.00 | 2.00 | 1 | 1 |  |" in text
    assert "| other | 1 | 0 |" in text
    assert "| all | 5 | 3 |" in text
    assert text.endswith(
        "\nGains below the interval: one 2017-02 (-0.10). Longest waits above 1.5: one 2017-02 (2.00).\n"
    )
    text = page({"one": months, "other": months[1:2]}, "command")
    assert "above 1.5: one 2017-02 (2.00); other 2017-02 (2.00)." in " ".join(text.split())
    assert "below the interval: none. Longest waits above 1.5: none." in page({"one": months[:1]}, "command")


def test_finished_logs_are_not_run_again(log, cleaned, tmp_path, monkeypatch):
    monkeypatch.setattr(next_month, "recommend", recommended(cleaned[1]))
    monkeypatch.setattr(next_month, "derive_config", lambda records: derive_config(records, 4))
    log.rename(tmp_path / "log.swf.csv")

    def run():
        given = ["--logs", "log", "--traces", tmp_path, "--out", tmp_path, "--work", tmp_path / "work", "--workers", 1]
        found = CliRunner().invoke(command, list(map(str, given)))
        assert found.exit_code == 0, found.output
        return Path(tmp_path, "next_month.md").read_text()

    text = run()
    assert "| log | 1 | 1 | 0.500 | 0.452 |" in text
    monkeypatch.setattr(next_month, "recommend", None)
    assert run() == text
