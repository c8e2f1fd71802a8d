"""What the sentences below the table of a backtest say."""

from types import SimpleNamespace

from qconf.report import backtest


def result(period, strategy, *notes):
    return SimpleNamespace(period=period, strategy=strategy, decisions=[{"step": "bounds", "notes": list(notes)}])


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
