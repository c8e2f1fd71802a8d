"""What the sentences below the table of a backtest say."""

from types import SimpleNamespace

from qconf.backtest import Average
from qconf.backtest.results import Against
from qconf.report import backtest


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


def average(name, here, easy, worse=0.0):
    against = {
        other: Against({}, gain, ("b", gain + 0.1), ("a", gain - 0.1), worse)
        for other, gain in (("current", here), ("fcfs-easy", easy))
    }
    return Average(name, 2, {}, against, 0)


def test_the_headline_names_what_a_batch_system_can_do():
    rows = [average("current", 0.0, -0.1), average("mqb", 0.9, 0.9), average("auto", 0.5, 0.4, 0.5)]
    results = [SimpleNamespace(strategy="mqb", not_exportable="no system can", fixed=())]
    folds = [SimpleNamespace(label=label, jobs=10) for label in "ab"]
    strategies = ("current", "mqb", "auto")
    found = SimpleNamespace(
        averages=rows, results=results, folds=folds, strategies=strategies, objective="mean-wait", settings={}
    )
    first, *rest = backtest.headline(found)
    assert first == "auto would have served you best: mean wait -50 % against current, -40 % against fcfs-easy"
    assert "It is worse than current in 1 of 2 test periods; best b -60 %, worst a -40 %." in rest
    assert rest[-1] == "2 test periods, a to b, 20 jobs."
    assert [backtest.worse_than(found, row) for row in rows] == ["-", "0", "50"]
    found.averages = rows[:2]
    assert backtest.headline(found)[0] == "Keep what you have: no strategy makes mean wait less than current"
