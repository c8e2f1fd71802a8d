"""Queues of different tiers in configurations: read, written, checked, kept by searches, refused by exports."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import Workload, simulate
from qconf.config import QueueConfig, SiteConfig, dump, parse
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.report.columns import further_columns
from qconf.strategies import propose

TEXT = """\
machine: {cores: 16}
queues:
  - {name: express, walltime: [0, 1h], tier: 1}
  - {name: normal, preempted: requeue}
"""
CONFIG = parse(TEXT)


def period(config: SiteConfig = CONFIG) -> Period:
    rng = np.random.default_rng(0)
    submit, queue = np.sort(rng.integers(0, 2000, 20)), rng.integers(0, 2, 20)  # few: the loop is interpreted
    walltime = np.where(queue == 0, 600, 7200)
    return Period(Workload(submit, rng.integers(1, 17, 20), walltime // 2, walltime, queue), config)


def test_a_configuration_holds_tiers():
    queues = CONFIG.system().queues
    assert [(queue.tier, queue.preempted) for queue in queues] == [(1, "off"), (0, "requeue")]
    assert parse(dump(CONFIG)) == CONFIG
    assert "{name: express, cores: [1, null], walltime: [0, 1h], tier: 1}" in dump(CONFIG)
    assert CONFIG.warnings() == []


def test_a_queue_that_nothing_preempts():
    highest = parse(TEXT.replace("tier: 1", "tier: 1, preempted: suspend"))
    assert highest.warnings() == ["queues[0].preempted: plays no part: no queue has a higher tier"]


def test_searches_keep_tiers():
    express, normal = CONFIG.queues
    assert fixed_violations(CONFIG, CONFIG.replace(order="sjf")) == []
    other = CONFIG.replace(queues=(express, normal.model_copy(update={"preempted": "suspend"})))
    assert fixed_violations(CONFIG, other) == ["queues.normal.preempted"]
    alike = CONFIG.replace(queues=(express.model_copy(update={"tier": 0}), normal))
    assert fixed_violations(CONFIG, alike) == ["queues.express.tier"]
    narrow = CONFIG.replace(queues=(express.model_copy(update={"walltime": (0, 60)}), normal))
    assert fixed_violations(CONFIG, narrow) == ["queues.express.tier", "queues.express.preempted"]
    renamed = CONFIG.replace(queues=(QueueConfig(name="fast", walltime=(0, 3600), tier=1), normal))
    assert "queues.express.tier" in fixed_violations(CONFIG, renamed)  # jobs of normal's range may be of express


@pytest.mark.parametrize("name", ["pp", "dp-nlp", "hybrid"])
def test_no_machine_is_divided(name: str):
    with pytest.raises(NotApplicableError, match="queues have different tiers"):
        propose(name, TrainingSet(period()))


@pytest.mark.parametrize("name", ["current", "shared", "fcfs-easy", "mqb"])
def test_other_strategies_propose_something(name: str):
    proposal = propose(name, TrainingSet(period()))
    assert proposal.verify(period(), proposal.simulate(period())) == []


def test_auto_keeps_tiers():
    proposal = propose("auto", TrainingSet(period()))
    assert proposal.config.order != CONFIG.order
    assert [(queue.tier, queue.preempted) for queue in proposal.config.queues] == [(1, "off"), (0, "requeue")]


def test_work_lost_is_a_guard_rail():
    outcome = Outcome(period(), simulate(period().workload, CONFIG.system()))
    assert outcome.summary["preempted"] > 0
    shown = [column.key for column in further_columns([outcome.summary.overall])]
    assert shown[-3:] == ["preempted", "suspended", "work_lost"]
    lost = GuardValues.of(outcome.summary).lost
    assert lost == outcome.summary["work_lost"] > 0.01
    found = GuardRails().broken(GuardValues({}, 0.0, 0.8), GuardValues({}, 0.0, 0.8, lost=lost), 30)
    assert list(found) == ["work lost"]
    assert found["work lost"].startswith("work lost to preemption grows from 0.0 to ")
