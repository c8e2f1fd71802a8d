"""The verdict: CHANGE where something is clearly better, KEEP where the base is best or too little is known."""

import numpy as np
import pandas as pd
import pytest

from qconf.history import History
from qconf.recommend import Guards, recommend
from qconf.strategies import Options
from tests.qconf.tuning.small import DAY, LONG, SHORT, month, site, three, two

FEW = Options(samples=20)


def history(base, **about):
    """The jobs of a small month as a cleaned history."""
    w = month(base, **about).workload
    n = len(w)
    jobs = pd.DataFrame(
        {
            "job_id": [str(i) for i in range(n)],
            "submit": w.submit,
            "runtime": w.runtime,
            "walltime": w.walltime,
            "cores": w.cores,
            "queue": [base.names[q] for q in w.queue],
            "user": [f"u{u}" for u in w.user],
            "start": np.full(n, -1),
            "end": np.full(n, -1),
            "state": [""] * n,
            "row": np.arange(n),
        }
    )
    return History(jobs=jobs, dropped=pd.DataFrame({"reason": []}), changed={}, read=n)


def answer(base, strategies=("pp", "dp-nlp"), guards=None, least_gain=0.02, **about):
    return recommend(
        history(base, **about), base, strategies=strategies, options=FEW, guards=guards, least_gain=least_gain
    )


STARVED = site(
    {**SHORT, "partition": 48}, {**LONG, "partition": 16}
)  # nine tenths of the work on a quarter of the cores


def test_change_where_something_is_clearly_better():
    found = answer(STARVED, jobs=600)
    assert found.verdict == "CHANGE"
    row = next(row for row in found.rows if row.name == found.winner)
    assert not row.barred
    assert row.gain.low > 0
    assert found.config == row.config
    able = [r.gain.gain for r in found.rows if r.gain is not None and not r.barred]
    assert row.gain.gain == max(able)
    assert found.winner in found.reason


def test_keep_where_the_base_is_the_best():
    base = two(mode="shared")  # one list for all, that every partition can only lose against
    found = answer(base, jobs=600)
    assert (found.verdict, found.winner) == ("KEEP", "current")
    assert found.config == base
    assert "Keep what you have." in found.reason


@pytest.mark.parametrize("jobs", [25, 40])
def test_keep_where_the_history_is_too_short(jobs):
    found = answer(STARVED, jobs=jobs)
    assert found.verdict == "KEEP"
    assert "too short" in found.reason
    assert all(row.judged is None for row in found.rows)


def test_keep_where_all_that_is_better_breaks_a_guard():
    found = answer(STARVED, jobs=600, guards=Guards(utilization=-1.0))
    assert found.verdict == "KEEP"
    assert "but utilization falls" in found.reason
    assert all(row.barred for row in found.rows if row.name != "current")


def test_keep_where_the_gain_is_not_worth_it():
    found = answer(STARVED, jobs=600, least_gain=1.0)
    assert found.verdict == "KEEP"
    assert "is not worth a change" in found.reason


def test_keep_where_everything_better_is_fixed():
    base = STARVED.replace(fixed=("mode", "queues.*.partition"))
    found = answer(base, jobs=600)
    assert found.verdict == "KEEP"
    barred = {row.name: row.barred for row in found.rows}
    assert "changes mode, which is fixed" in barred["fcfs-easy"]
    assert barred["pp"] == barred["dp-nlp"] == "every partition is marked as fixed: there is none to size"


def test_a_strategy_that_does_not_apply_says_why_and_stops_nobody():
    base = site({**SHORT, "cores": (1, 40)}, {**LONG, "cores": (33, 40)}, mode="shared")
    found = answer(base, jobs=300)
    row = next(row for row in found.rows if row.name == "dp-nlp")
    assert row.config is None
    assert "no partitions can hold them" in row.barred


class Kept(dict):
    """A store that only remembers."""

    def put(self, key, proposal):
        self[key] = proposal


def test_what_promises_a_gain_is_judged_at_two_stages():
    kept = Kept()
    found = recommend(history(STARVED, jobs=600), STARVED, strategies=("pp", "static"), options=FEW, store=kept)
    for row in found.rows:
        promising = row.gain.gain > 0 and row.name != "current"
        assert (row.evidence is not None) == promising == (f"{row.name}-early" in kept)
        assert {f"{row.name}-learned", f"{row.name}-whole"} <= set(kept)
        assert np.isfinite([row.gain.low, row.gain.high]).all() == promising
    assert any(row.evidence for row in found.rows)


def test_nothing_of_a_judged_part_reaches_what_is_judged_on_it():
    """Whatever the last third holds, what was learned before it and what was judged before it stay as they were."""
    asked = []
    for seed in (0, 1):
        base, kept = STARVED, Kept()
        jobs = history(base, jobs=600).jobs
        later = jobs["submit"] >= jobs["submit"].iloc[0] + (jobs["submit"].iloc[-1] + 1) * 2 / 3
        other = history(base, jobs=600, seed=5).jobs if seed else jobs
        jobs.loc[later, ["cores", "runtime", "walltime", "queue"]] = other.loc[
            later, ["cores", "runtime", "walltime", "queue"]
        ]
        changed = History(jobs=jobs, dropped=pd.DataFrame({"reason": []}), changed={}, read=len(jobs))
        recommend(changed, base, strategies=("pp", "auto"), options=FEW, store=kept)
        asked.append({key: proposal.config for key, proposal in kept.items() if key.endswith(("early", "learned"))})
    both = asked[0].keys() & asked[1].keys()
    assert {"pp-learned", "auto-learned"} <= both
    assert all(asked[0][key] == asked[1][key] for key in both)


def test_it_is_judged_on_jobs_that_it_has_not_learned_from():
    found = answer(STARVED, jobs=600)
    (_, _, learned), (jobs, judged, last) = found.parts["learned"], found.parts["judged"]
    assert learned < judged < last
    assert jobs + found.parts["learned"][0] == found.parts["history"][0] == 600


@pytest.mark.parametrize("make", [two, three])
def test_the_same_seed_gives_the_same_answer_with_any_number_of_workers(make):
    base = make()
    answers = [
        recommend(
            history(base, jobs=200), base, strategies=("dp-nlp", "dqr"), options=Options(samples=20, workers=workers)
        )
        for workers in (1, 2)
    ]
    assert answers[0].reason == answers[1].reason
    for a, b in zip(answers[0].rows, answers[1].rows, strict=True):
        assert (a.name, a.config, a.gain, a.barred, a.decisions) == (b.name, b.config, b.gain, b.barred, b.decisions)


def test_curves_fall_with_size_in_the_end():
    (short, long) = answer(STARVED, jobs=300, span=4 * DAY).curves
    assert (short.queue, long.queue) == ("short", "long")
    assert long.waits[-1] <= long.waits[0]
    assert long.sizes[0] >= 1
    assert long.sizes[-1] == 64
