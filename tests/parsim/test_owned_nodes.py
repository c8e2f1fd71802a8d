"""Partitions that consist of nodes of several types (rules of "partitions of several types")."""

from __future__ import annotations

from dataclasses import replace

import pytest

from parsim import Queue, State, System, Workload, simulate
from parsim.explain import explain
from parsim.metrics.nodes import node_use
from parsim.model.node_types import Chunk, NodeType
from tests.parsim.schedules import simulated

CPU, GPU = NodeType("cpu", 4, 2), NodeType("gpu", 3, 2, {"gpus": 1})
WORK = Queue("work", partition=12, partition_nodes={"cpu": 4, "gpu": 2})
LEARN = Queue("learn", partition=2, partition_nodes={"gpu": 1}, node_types=["gpu"])
MACHINE = System(14, [WORK, LEARN], "partitioned", node_types=[CPU, GPU])
ON_GPU = ((Chunk(1, 1, {"gpus": 1}),),)
ON_NODE = ((Chunk(1, 2),),)
ON_TWO = ((Chunk(2, 1, {"gpus": 1}),),)


def placed(jobs: Workload, system: System = MACHINE, state: State | None = None) -> list[tuple[int, str]]:
    found = simulated(jobs, system, state)
    return [(int(start), *found.placement(job)) for job, start in enumerate(found.start)]


def test_a_job_waits_for_a_gpu_though_cores_of_its_partition_are_idle():
    jobs = Workload([0, 0, 1], [1] * 3, [9, 9, 9], [9] * 3, request=[0] * 3, requests=ON_GPU)
    assert placed(jobs) == [(0, "work"), (0, "work"), (9, "work")]
    text = [str(reason) for reason in explain(jobs, MACHINE, simulate(jobs, MACHINE), 2)]
    assert text == ["1 to 9: heads the list, waits for 1 gpus of gpu", "9: starts on work, in turn"]


def test_a_job_that_its_partition_cannot_hold_is_refused():
    jobs = Workload([0, 0], [2, 2], [5, 5], [5, 5], queue=[1, 1], request=[0, -1], requests=ON_TWO)
    with pytest.raises(ValueError, match=r"request\[0\]: 0 has no place on the nodes of its queue"):
        simulate(jobs, MACHINE)


def test_a_head_job_holds_nodes_of_its_part_alone():
    # The third waits for the first, and heads its list; what it holds is of no matter to a list beside.
    jobs = Workload([0, 1, 2, 2], [12, 2, 1, 1], [9, 9, 9, 20], [9, 9, 9, 20], queue=[0, 0, 1, 1])
    assert placed(jobs) == [(0, "work"), (9, "work"), (2, "learn"), (2, "learn")]


def test_what_runs_already_is_at_home():
    jobs = Workload([0, 0, 0, 5], [1] * 4, [20] * 4, [20] * 4, request=[0] * 4, requests=ON_GPU)
    # Three run on the two GPUs of the partition, which are idle when all have ended.
    assert placed(jobs, state=State(10, [0, 0, 0, 99])) == [(0, "work")] * 3 + [(20, "work")]


def test_idle_nodes_of_another_partition_are_of_no_use():
    jobs = Workload([0, 0, 0], [2, 2, 2], [10] * 3, [10] * 3, queue=[1, 1, 1])
    found = simulate(jobs, MACHINE)
    assert found.start.tolist() == [0, 10, 20]
    assert node_use(jobs, found, MACHINE)["gpu"].resources["gpus"]["fragmentation"] == 0


def test_each_node_counts_by_itself_on_its_part():
    # Two GPU nodes of one free core each hold no chunk of two cores; those of the partition beside do not count.
    jobs = Workload([0, 0, 1, 1], [1, 3, 2, 2], [9] * 4, [9] * 4, request=[0, -1, 1, 1], requests=[*ON_GPU, *ON_NODE])
    work = replace(WORK, partition=4, partition_nodes={"gpu": 2})
    learn = replace(LEARN, partition=10, partition_nodes={"cpu": 4, "gpu": 1}, node_types=None)
    system = replace(MACHINE, queues=[work, learn], reserve="nodes")
    assert placed(jobs, system) == [(0, "work"), (0, "work"), (9, "work"), (9, "work")]
    assert simulate(jobs, system).node.tolist() == [0, 0, 0, 1]
    running = State(5, [0, 0, 99, 99])
    assert placed(jobs, system, running) == [(0, "work"), (0, "work"), (9, "work"), (9, "work")]
