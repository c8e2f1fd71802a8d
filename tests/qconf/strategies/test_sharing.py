"""Nodes that jobs have alone: the plain answers, and that they are policy."""

from __future__ import annotations

import numpy as np
import pytest

from qconf.config import SiteConfig, parse
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.recommend.ladder import RUNGS, given_up, rung_of
from qconf.report.wording import queue_facts, site_facts
from qconf.strategies import baselines, propose
from qconf.strategies.auto.frame import Frame, policy_of
from tests.qconf.report.test_nodes import SITE, jobs

ALONE = parse(SITE.replace("gpus: 4}", "gpus: 4, exclusive: true}"))
OF_QUEUE = parse(SITE.replace("{name: work}", "{name: work, exclusive: true}"))
SHARED = parse(SITE)


@pytest.mark.parametrize("base", [ALONE, OF_QUEUE])
def test_shared_or_alone(base: SiteConfig) -> None:
    training = TrainingSet(Period(jobs(), base))
    assert {"nodes-shared", "nodes-exclusive"} <= {*baselines(base)}
    shared = propose("nodes-shared", training).config
    assert shared == SHARED
    alone = propose("nodes-exclusive", training).config
    assert all(each.exclusive for each in alone.nodes)
    waits = [training.period.simulate(each).wait.mean() for each in (shared, base, alone)]
    assert waits[0] < waits[1] <= waits[2]
    assert (RUNGS[rung_of(base, shared)], given_up(base, shared)) == ("policy", ["sharing"])
    assert given_up(base.replace(policy=("sharing",)), shared) == []


def test_sites_whose_nodes_are_shared_or_alike_have_no_such_baseline() -> None:
    assert not {"nodes-shared", "nodes-exclusive"} & {*baselines(SHARED)}
    alike = SHARED.with_all_alike()
    with pytest.raises(NotApplicableError, match="the site has no types of nodes"):
        propose("nodes-shared", TrainingSet(Period(jobs(), alike)))


@pytest.mark.parametrize("base", [ALONE, OF_QUEUE])
def test_the_search_tries_to_share_what_is_not_fixed(base: SiteConfig) -> None:
    period = Period(jobs(), base)
    assert policy_of(period) == ("sharing",)
    assert Frame(frozenset({"sharing"})).config(period, "fcfs") == SHARED
    fixed = base.replace(fixed=("nodes", "queues.work.exclusive"))
    assert policy_of(Period(jobs(), fixed)) == ()


def test_what_the_report_says() -> None:
    assert site_facts(ALONE)["nodes that each job has alone"] == "gpu"
    assert queue_facts(OF_QUEUE.queues[0], OF_QUEUE)["nodes"] == "all, each job alone"
    assert np.isin(["nodes that each job has alone"], list(site_facts(SHARED))).sum() == 0
