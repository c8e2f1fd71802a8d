"""The bottleneck of a machine and its jobs, and what goes by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim import Queue, System, Workload, metrics, simulate
from parsim.metrics.bottleneck import bottleneck, by_run, uses
from parsim.metrics.nodes import ALL_NODES
from parsim.model.node_types import NodeType
from tests.parsim.test_node_metrics import CPU, GPU, MACHINE, of


def test_cores_where_all_nodes_are_alike_or_are_used_as_much() -> None:
    workload = Workload([0, 5], [3, 1], [10, 10], [10, 10])
    found = bottleneck(workload, System(4))
    assert (found.resource, found.there, found.amount.tolist()) == ("cores", 4, [3, 1])
    assert bottleneck(of([(0, 10, 4, 50)]), System(10, node_types=[GPU])).resource == "cores"
    assert bottleneck(Workload([], [], [], []), MACHINE).resource == "cores"


def test_gpus_where_jobs_use_more_of_them() -> None:
    workload = of([(0, 1, 4, 50), (0, 10, 0, 50), (10, 2, 3, 30)])
    part = {each.resource: each.work(workload).sum() / each.there for each in uses(workload, MACHINE)}
    assert part == pytest.approx({"cores": 610 / 30, "gpus": 290 / 4, "nodes": (5 + 50 + 6) / 3})
    assert bottleneck(workload, MACHINE).amount.tolist() == [4, 0, 3]
    found = metrics.summary(workload, simulate(workload, MACHINE), MACHINE, resource="gpus")
    assert found.resource == "gpus"
    assert found["utilization"] == 290 / (4 * 80)
    assert found["utilization_window"] == 1  # until 10
    assert found["loss_of_capacity"] == 0  # while the third waits no GPU is idle, and cores do not matter
    assert metrics.summary(workload, simulate(workload, MACHINE), MACHINE)["loss_of_capacity"] > 0


def test_memory_and_nodes() -> None:
    fat = NodeType("fat", 2, 10, {"memory": 100})
    workload = of([(0, 1, 0, 50)])
    wants = replace(workload, requests=[[replace(workload.requests[0][0], resources={"memory": 60})]])
    assert bottleneck(wants, System(20, node_types=[fat])).resource == "memory"
    alone = replace(fat, exclusive=True)
    found = bottleneck(workload, System(20, node_types=[alone]))
    assert (found.resource, found.there, found.amount.tolist()) == ("memory", 200, [100])  # with all that its node has
    plain = bottleneck(workload, System(20, node_types=[replace(CPU, exclusive=True)]))
    assert (plain.resource, plain.there, plain.amount.tolist()) == ("nodes", 2, [1])
    own = System(20, [Queue(exclusive=True)], node_types=[CPU])
    assert bottleneck(workload, own).resource == "nodes"


JOBS = st.tuples(st.integers(0, 50), st.integers(1, 10), st.integers(0, 4), st.integers(1, 50))


@given(st.lists(JOBS, min_size=1, max_size=8))
def test_every_schedule_uses_what_jobs_take(rows: list[tuple[int, int, int, int]]) -> None:
    workload = of(rows)
    found = simulate(workload, MACHINE)
    _, begin, end = found.runs
    measured = metrics.summary(workload, found, MACHINE).nodes[ALL_NODES].resources
    for use in uses(workload, MACHINE):
        amount, there = by_run(found, MACHINE, use.resource)
        assert there == use.there
        assert (amount * (end - begin)).sum() == pytest.approx(use.work(workload).sum())
        if use.resource in measured:
            summary = metrics.summary(workload, found, MACHINE, resource=use.resource)
            assert summary["utilization_window"] == pytest.approx(measured[use.resource]["utilization"])
            assert np.isnan(summary["loss_of_capacity"]) or summary["loss_of_capacity"] <= 1
