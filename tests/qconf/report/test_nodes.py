"""Nodes of several types: guard rails, who loses, tables, files and figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parsim import Workload
from parsim.metrics.nodes import ALL_NODES
from parsim.model.node_types import Chunk
from qconf.config import SiteConfig, parse
from qconf.evaluation.bootstrap import Bootstrap
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.impact import impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.evaluation.timeline import timeline
from qconf.report.figures.machine import SHARED, parts
from qconf.report.frames import comparison_frame
from qconf.report.impact import losers
from qconf.report.nodes import node_tables, tables_of
from qconf.report.tune_page import render
from qconf.strategies import Proposal
from tests.qconf.report import small
from tests.qconf.small import compared

SITE = """\
machine: {name: mixed, cores: 96}
nodes:
  - {name: cpu, count: 4, cores: 16, memory: 64gb}
  - {name: gpu, count: 2, cores: 16, memory: 64gb, gpus: 4}
queues:
  - {name: work}
"""
BASE = parse(SITE)
DAY = 86400


def jobs(n: int = 400) -> Workload:
    """Return jobs of a week, every third for GPUs."""
    rng = np.random.default_rng(0)
    requests = [(Chunk(1, 8, {"memory": 8192}),), (Chunk(1, 4, {"gpus": 2, "memory": 16384}),)]
    request = np.where(np.arange(n) % 3, 0, 1)
    walltime = rng.integers(600, 40_000, n)
    submit, cores = np.sort(rng.integers(0, 7 * DAY, n)), np.where(request, 4, 8)
    return Workload(submit, cores, walltime, walltime, request=request, requests=requests)


PERIOD = Period(jobs(), BASE)


def outcome(config: SiteConfig) -> Outcome:
    return Outcome(PERIOD, PERIOD.simulate(config))


@pytest.fixture(scope="module")
def outcomes() -> tuple[Outcome, Outcome]:
    return outcome(BASE), outcome(BASE.replace(order="ljf"))


def test_guard_rails_look_at_the_jobs_for_each_type(outcomes: tuple[Outcome, Outcome]) -> None:
    before, after = (GuardValues.of(each.summary) for each in outcomes)
    assert list(before.nodes) == ["cpu", "gpu"]
    assert list(before.nodes.values()) == pytest.approx(outcomes[0].p95_nodes)
    worse = replace(before, nodes=before.nodes | {"gpu": 90_000.0})
    found = GuardRails().broken(replace(before, nodes={"cpu": 0.0, "gpu": 36_000.0}), worse, 30)
    assert found["95 % wait of jobs for nodes gpu"] == "95 % wait of jobs for nodes gpu grows from 10.0 to 25.0 h"
    of_queue = replace(before, p95={"work": 36_000.0}, nodes={"gpu": 36_000.0})
    also = replace(before, p95={"work": 90_000.0}, nodes={"gpu": 90_000.0})
    assert list(GuardRails().broken(of_queue, also, 30)) == ["95 % wait of queue work"]
    assert after.nodes.keys() == before.nodes.keys()


def test_resamples_have_them_too() -> None:
    test = Holdout.of(PERIOD, 0, 7 * DAY)
    found = compared(Bootstrap([test], Proposal(BASE), "mean-wait", 0, 1), [Proposal(BASE.replace(order="sjf"))])
    assert list(found.before.p95) == ["work"]
    assert list(found.before.nodes) == ["cpu", "gpu"]
    assert 0 < found.after.nodes["cpu"] < found.before.nodes["cpu"]


def test_who_loses_by_type(outcomes: tuple[Outcome, Outcome]) -> None:
    found = impact(*outcomes)
    groups = {each.name: each for each in found.of("nodes")}
    assert {name: each.jobs for name, each in groups.items()} == {"jobs for nodes cpu": 266, "jobs for nodes gpu": 134}
    cpu = groups["jobs for nodes cpu"]
    assert cpu.before["mean_wait"] == outcomes[0].wait[np.arange(400) % 3 > 0].mean()
    assert cpu.worse
    assert any(text.startswith("jobs for nodes cpu ") for text in losers(found))


def test_jobs_of_a_type_that_are_those_of_a_queue_are_shown_once() -> None:
    two = parse(SITE + "  - {name: gpu}\n")
    period = Period(replace(jobs(), queue=np.where(np.arange(400) % 3, 0, 1)), two)
    found = impact(*(Outcome(period, period.simulate(two.replace(order=order))) for order in ("fcfs", "ljf")))
    assert found.of("nodes") == ()


def test_tables_have_the_present_beside_the_recommendation(outcomes: tuple[Outcome, Outcome]) -> None:
    use, waits = node_tables(small.evaluated(BASE, outcomes))
    assert [row[:3] for row in use.rows] == [
        *(["cpu", "cores", "64"], ["cpu", "memory, GiB", "256"], ["cpu", "nodes", ""]),
        *(["gpu", "cores", "32"], ["gpu", "gpus", "8"], ["gpu", "memory, GiB", "128"], ["gpu", "nodes", ""]),
        *(["all nodes", "cores", "96"], ["all nodes", "gpus", "8"], ["all nodes", "memory, GiB", "384"]),
    ]
    assert " -> " in use.rows[4][5]
    assert [row[4] for row in waits.rows] == ["266", "134"]
    page = render(small.evaluated(BASE, outcomes), {})
    assert "Nodes by type and resource" in page
    assert "jobs by the nodes that they are meant for" in page
    assert list(tables_of({})) == []
    assert "Nodes by type" not in render(small.recommendation(), {})


def test_comparison_has_every_measure(outcomes: tuple[Outcome, Outcome]) -> None:
    found = comparison_frame(small.evaluated(BASE, outcomes)).set_index(["strategy", "queue", "metric"])["value"]
    now = outcomes[0].summary.nodes
    assert found["current", "nodes gpu", "gpus_fragmentation"] == now["gpu"].resources["gpus"]["fragmentation"]
    assert found["current", "all nodes", "cores_used"] == now[ALL_NODES].resources["cores"]["used"]
    assert found["current", "nodes cpu", "mean_wait"] == now["cpu"].ran["mean_wait"]
    assert found["current", "jobs for nodes cpu", "p95_wait"] == now["cpu"].meant["p95_wait"]
    assert now[ALL_NODES].resources["cores"]["utilization"] == pytest.approx(outcomes[0].summary["utilization_window"])


def test_figures_are_by_type(outcomes: tuple[Outcome, Outcome]) -> None:
    assert list(parts(BASE)) == [("nodes cpu", SHARED, 4), ("nodes gpu", SHARED, 2)]
    found = timeline(outcomes[0])
    assert list(found.by_type) == [("cpu", "cores"), ("gpu", "cores"), ("gpu", "gpus")]
    spans = np.diff(found.edges)
    mean = (found.by_type["gpu", "gpus"] * spans).sum() / spans.sum()
    assert mean == pytest.approx(outcomes[0].summary.nodes["gpu"].resources["gpus"]["utilization"])
