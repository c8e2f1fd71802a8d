"""Progress: the estimate of the remaining time, a bar at a terminal, lines elsewhere."""

from __future__ import annotations

import io
import sys
import time
from functools import partial
from threading import Event

import pytest

from qconf.cli.progress import Estimate, clock_text, progress


class Clock:
    """A clock that the test turns."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_at_a_constant_pace_the_estimate_is_exact(clock: Clock) -> None:
    found = Estimate(clock)
    assert (str(found), found.remaining) == ("0:00 elapsed", None)
    for tenth in range(1, 11):
        clock.now += 6
        found.step(f"part {tenth}", tenth / 10)
        assert found.remaining == pytest.approx(60 - 6 * tenth)
    assert str(found) == "100 %, 1:00 elapsed, about 0:00 remaining, part 10"


def test_a_fast_beginning_does_not_promise_a_fast_end(clock: Clock) -> None:
    found = Estimate(clock)
    clock.now += 0.1
    found.step("resumed", 0.5)
    clock.now += 10
    found.step("again", 0.6)
    assert found.remaining == pytest.approx(10.1 / 0.6 * 0.4)
    clock.now += 40
    found.step("and again", 0.9)
    assert found.remaining == pytest.approx(50.1 / 0.9 * 0.1)
    clock.now += 1
    found.step("last", 1.0)
    assert found.remaining == 0


def test_while_a_step_goes_on_the_time_runs_down_and_then_up(clock: Clock) -> None:
    found = Estimate(clock)
    clock.now += 30
    found.step("half", 0.5)
    clock.now += 10
    assert found.remaining == pytest.approx(20)
    clock.now += 20
    assert found.remaining == pytest.approx(15)
    clock.now += 100
    assert found.remaining == pytest.approx(100)


def test_a_share_never_falls_and_may_be_unknown(clock: Clock) -> None:
    found = Estimate(clock)
    found.step("exact")
    clock.now += 5
    assert str(found) == "0:05 elapsed, exact"
    found.step("a", 0.5)
    found.step("b", 0.25)
    found.step("c")
    assert (found.what, found.share) == ("c", 0.5)
    found.step("d", 7.0)
    assert found.share == 1.0


def test_times() -> None:
    assert [clock_text(seconds) for seconds in (0, 65, 3600, 36_610.4)] == ["0:00", "1:05", "1:00:00", "10:10:10"]


@pytest.fixture
def stepped(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Event:
    """Two minutes pass after a step, when this is set, and then no more."""
    over, passed = Event(), iter([False, False])
    about = {"wait": lambda _, seconds: over.wait() and (seconds != 60 or next(passed, True)), "set": lambda _: None}
    monkeypatch.setattr("qconf.cli.progress.Event", type("Minutes", (), about))
    monkeypatch.setattr("qconf.cli.progress.Estimate", partial(Estimate, clock))
    return over


def test_without_a_terminal_there_is_a_line_every_minute(stepped: Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("tuning") as step:
        step("exact", 0.25)
        stepped.set()
    assert capsys.readouterr() == ("", 2 * "tuning: 25 %, 0:00 elapsed, about 0:00 remaining, exact\n")


def test_a_line_is_at_most_80_columns(stepped: Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("backtest") as step:
        step(f"2016-02 {', '.join(f'strategy-{i}' for i in range(20))}", 0.25)
        stepped.set()
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("backtest: 25 %, ")
    assert 40 < len(first) <= 80


@pytest.mark.parametrize("quiet", [True, False])
def test_short_runs_and_quiet_ones_are_silent(quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("tuning", quiet=quiet, interval=0.01 if quiet else 60) as step:
        step("exact", 0.5)
        time.sleep(0.03)
    assert capsys.readouterr() == ("", "")


def test_at_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress("tuning") as step:
        step("exact", 0.5)
        until = time.monotonic() + 10
        while "exact" not in terminal.getvalue() and time.monotonic() < until:
            time.sleep(0.05)
    assert "tuning: 50 %, 0:0" in terminal.getvalue()
