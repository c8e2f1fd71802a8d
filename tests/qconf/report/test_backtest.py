"""The verdict of a backtest, and what the sentences below its table say."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from parsim.metrics import METRICS, Summary
from qconf.backtest import Backtest
from qconf.backtest.results import Fold, FoldResult, averages, resampled
from qconf.report import backtest
from tests.qconf.report import small

HOUR, DAY = 3600.0, 86400


def result(period, strategy, *notes):
    return SimpleNamespace(
        period=period, strategy=strategy, fallback="", decisions=[{"step": "bounds", "notes": list(notes)}]
    )


def test_a_note_with_another_number_in_each_period_is_one_sentence():
    found = SimpleNamespace(
        folds=[None] * 3,
        results=[
            result("a", "dp-nlp", "slack raised from 0.30 to 0.34"),
            result("a", "dqr", "slack raised from 0.30 to 0.34", "one job"),
            result("b", "dp-nlp", "slack raised from 0.30 to 0.41"),
            result("b", "dqr", "slack raised from 0.30 to 0.41"),
            result("c", "exact", "slack raised from 0.30 to 0.41"),
        ],
    )
    assert list(backtest._noted(found)) == [
        "dp-nlp, dqr noted, in 2 of 3 periods: slack raised from 0.30 to 0.34 ... 0.41",
        "dqr noted, in 1 of 3 periods: one job",
        "exact noted, in 1 of 3 periods: slack raised from 0.30 to 0.41",
    ]


def test_a_fallback_with_another_number_in_each_period_is_one_sentence():
    results = [
        SimpleNamespace(period=p, strategy=s, fallback=f"the widest jobs need {n} of 100 cores at once", decisions=[])
        for s in ("pp", "exact")
        for p, n in (("a", 120), ("b", 140))
    ]
    found = SimpleNamespace(folds=[None] * 3, results=results)
    (text,) = backtest._noted(found)
    assert text.startswith("pp, exact left to the current configuration, in 2 of 3 periods: the widest jobs need 120 ")
    assert text.endswith(" 140 of 100 cores at once")


def row(wait, longest, jobs):
    values = dict.fromkeys(METRICS, 0.0)
    times = {"mean_wait": wait, "median_wait": wait, "p95_wait": 2 * wait, "max_wait": longest}
    return values | times | {"jobs": jobs, "mean_bounded_slowdown": 1 + wait / 600, "utilization_window": 0.8}


def two_periods(waits, *, longest=None, days=10, refused=(), fixed=()):
    """A backtest of two periods by hand: the mean wait of each strategy in each, hours."""
    folds = [Fold(label, i * days * DAY, (i + 1) * days * DAY, 100, 5, "t", 90) for i, label in enumerate("ab")]
    results = []
    for name, hours in waits.items():
        for fold, wait in zip(folds, hours, strict=True):
            most = HOUR * (longest or {}).get(name, 20.0)
            overall = row(wait * HOUR, most, 100.0)
            queues = {"short": row(wait * HOUR / 2, most / 2, 90.0), "long": row(wait * HOUR * 5.5, most, 10.0)}
            daily = np.column_stack([np.full(days, 10.0), np.full(days, 10 * wait * HOUR), np.full(days, 50.0)])
            about = {"not_exportable": "no system can" * (name in refused), "fixed": ("order",) * (name in fixed)}
            results.append(FoldResult(fold.label, name, Summary(overall, queues), small.site(), daily=daily, **about))
    settings = {"period": "month", "warmup_days": 3}
    return Backtest(folds, [], results, averages(results, "mean-wait"), small.site(), "mean-wait", [], settings)


PLAIN = {"current": (2.0, 4.0), "fcfs-easy": (2.5, 4.0), "shared": (2.0, 4.0), "static": (2.0, 4.0)}


def test_one_winner_is_what_a_batch_system_can_do_with_its_interval_and_its_losers():
    longest = {"auto": 29.0}
    found = two_periods(PLAIN | {"mqb": (0.2, 0.2), "auto": (1.0, 3.0)}, longest=longest, refused=("mqb",))
    first = backtest.advise(found)
    assert first.headline == (
        "CHANGE: auto would have lowered mean wait by 38 % (90 % interval 25 to 50 %), against current."
    )
    assert first.facts == (
        "2 test periods, a to b, 200 jobs.",
        "Mean wait 3.00 -> 2.00 h, longest wait 20.00 -> 29.00 h, on average over the periods.",
        "Against current: -38 %, worse in 0 of 2 periods; best a -50 %, worst b -25 %.",
        "Against fcfs-easy: -42 %, worse in 0 of 2 periods; best a -60 %, worst b -25 %.",
    )
    assert first.losers == ("no queue, size or user class",)
    assert [backtest.against(each, "current") for each in found.averages[:1]] == [["-"] * 4]
    text = " ".join(backtest.sentences(found))
    assert "* no system can" in text
    assert "mqb" not in first.headline


def test_keep_says_what_stands_against_the_one_that_gains_most():
    def lead(hours=(1.0, 3.0), **about):
        return backtest.advise(two_periods(PLAIN | {"auto": hours}, **about)).headline

    gains = "KEEP: auto would have lowered mean wait by 38 % (90 % interval 25 to 50 %), against current, but "
    assert lead(longest={"auto": 40.0}) == f"{gains}longest wait grows from 20.0 to 40.0 h."
    assert lead(fixed=("auto",)) == f"{gains}it changes what is fixed: order."
    assert lead((1.0, 4.4)).endswith(" but that may be chance: the interval reaches zero.")
    assert lead((1.98, 3.96)).endswith(" but a gain below 2.0 % is not worth a change.")
    assert lead((2.5, 4.5)) == "KEEP: no strategy makes mean wait less than current."
    easy = backtest.advise(two_periods(PLAIN | {"fcfs-easy": (1.0, 2.0), "auto": (1.5, 3.0)}))
    assert easy.lead.startswith("fcfs-easy would have lowered")  # a baseline may win


def test_losers_are_queues_over_all_periods_the_longest_wait_of_any():
    found = two_periods(PLAIN | {"auto": (1.0, 3.0)})
    results = list(found.results)
    last = results[-1]
    worse = last.summary.queues | {"short": last.summary.queues["short"] | {"max_wait": 17 * HOUR}}
    results[-1] = replace(last, summary=Summary(last.summary.overall, worse))
    changed = replace(found, results=results, averages=averages(results, "mean-wait"))
    assert backtest.advise(changed).losers == ("queue short, 180 jobs: longest wait 10.0 -> 17.0 h",)


def test_the_interval_is_that_of_resampled_periods_and_days():
    found = two_periods(PLAIN | {"auto": (1.0, 3.0)})
    assert resampled(found, "auto", "current") == resampled(found, "auto", "current")
    steady = resampled(two_periods(PLAIN | {"auto": (1.0, 2.0)}), "auto", "current")
    assert (steady.gain, steady.expected, steady.low, steady.high) == (0.5, 0.5, 0.5, 0.5)
    varied = replace(found.results[-1], daily=found.results[-1].daily * np.linspace(0.5, 1.5, 10)[:, None] ** [0, 1, 1])
    wider = resampled(replace(found, results=[*found.results[:-1], varied]), "auto", "current")
    plain = resampled(found, "auto", "current")
    assert wider.low < plain.low
