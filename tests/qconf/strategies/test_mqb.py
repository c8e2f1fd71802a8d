"""Multiple-queue backfilling as a strategy: it is simulated and shown, and never recommended."""

from dataclasses import replace

import numpy as np
import pytest

from parsim.naive.multiqueue import simulate_multiqueue
from qconf.backtest import backtest
from qconf.recommend import recommend
from qconf.strategies import names, propose
from qconf.strategies.mqb import NOT_EXPORTABLE
from tests.qconf.backtest import walking
from tests.qconf.small import DAY, three, training, two

LIMITS = (100, 1000, 10_000)


@pytest.mark.parametrize("base", [two(), three(mode="shared"), two(order="lxf")])
def test_is_multiple_queue_backfilling_on_the_whole_machine(base):
    here = training(base, jobs=400, span=3 * DAY)
    proposal = propose("mqb", here)
    schedule = proposal.simulate(here.period)
    assert schedule.start.tolist() == simulate_multiqueue(here.workload, 64, LIMITS).start
    assert schedule.start.tolist() != propose("fcfs-easy", here).simulate(here.period).start.tolist()
    assert proposal.verify(here.period, schedule) == []
    early = schedule.start.copy()
    early[np.argmax(schedule.wait)] = schedule.submit[np.argmax(schedule.wait)] - 1
    end = early + schedule.end - schedule.start
    moved = replace(schedule, start=early, end=end)
    assert proposal.verify(here.period, moved)


def test_the_log_has_the_classes():
    here = training(two(), jobs=300)
    classes = [each for each in propose("mqb", here).decisions if each["step"] == "class"]
    assert [each["walltime"] for each in classes] == [
        "above 0 up to 1m40s", "above 1m40s up to 16m40s", "above 16m40s up to 2h46m40s", "above 2h46m40s",
    ]  # fmt: skip
    walltime = here.workload.walltime
    counts = [
        ((walltime > low) & (walltime <= high)).sum() for low, high in zip((0, *LIMITS), (*LIMITS, 1e9), strict=True)
    ]
    assert [each["jobs"] for each in classes] == counts
    assert sum(each["core_hours"] for each in classes) == pytest.approx(here.period.core_seconds.sum() / 3600, abs=0.5)


def test_is_shown_and_never_recommended(tmp_path):
    history = walking.history(tmp_path, walking.table(jobs=900))
    recommendation = recommend(history, walking.site(), strategies=("mqb",), settings={"samples": 20})
    (row,) = (row for row in recommendation.rows if row.name == "mqb")
    assert NOT_EXPORTABLE in row.ineligible
    assert row.gain is not None
    assert recommendation.winner != "mqb"
    found = backtest(history, walking.site(), period="10d", strategies=("mqb",))
    assert {v.not_exportable for v in found.results if v.strategy == "mqb"} == {NOT_EXPORTABLE}
    table = {(v.period, v.strategy): v.summary["mean_wait"] for v in found.results}
    assert any(table[fold.label, "mqb"] != table[fold.label, "fcfs-easy"] for fold in found.folds)
    assert names().index("mqb") < names().index("auto")
