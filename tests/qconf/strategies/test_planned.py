"""Planning disciplines as strategies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parsim.planning.plan import plan
from qconf.errors import InputError
from qconf.evaluation.period import Period, TrainingSet
from qconf.strategies import names, propose
from qconf.strategies.planned import STRATEGIES
from tests.qconf.backtest import walking


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    history = walking.history(tmp_path_factory.mktemp("log"), walking.table(periods=1))
    return TrainingSet(Period(history.workload(walking.site()), walking.site()))


@pytest.mark.parametrize("name", [each.name for each in STRATEGIES])
def test_a_discipline_plans_the_whole_machine_and_is_verified_by_its_own_rules(training, name):
    proposal = propose(name, training)
    schedule = proposal.simulate(training.period)
    np.testing.assert_array_equal(schedule.start, plan(training.workload, 48, name).schedule.start)
    assert proposal.verify(training.period, schedule) == []
    assert proposal.not_exportable
    late = schedule.start.copy()
    late[5] += 1
    broken = replace(schedule, start=late)
    assert proposal.verify(training.period, broken)


def test_unknown_disciplines_are_refused_with_the_known_names(training):
    assert not {each.name for each in STRATEGIES} & set(names(default=True))
    with pytest.raises(InputError, match="planned-sjf"):
        propose("planned", training)
