"""Nodes of several types that are out of service, or kept for some jobs (rules of "windows of several types").

The reference simulator and the verifier are tested here, and the kernel of `reserve: queues`. ``python -m tests.fuzz``
compares the others.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from parsim import UNSTARTED, Queue, State, System, Window, Workload, explain, naive, simulate
from parsim.model.node_types import Chunk, NodeType
from parsim.prepare.state import closed_nodes
from parsim.verify import check_schedule
from tests import fuzz

CPU, GPU = NodeType("cpu", 3, 4), NodeType("gpu", 2, 4, {"gpus": 2})
MACHINE = System(20, node_types=[CPU, GPU])
BY_NODES = replace(MACHINE, reserve="nodes")
ONE_GPU, ALL_GPUS = (Chunk(1, 1, {"gpus": 1}),), (Chunk(2, 1, {"gpus": 2}),)


CLOSED = [name for name in fuzz.DISCIPLINES if "closed" in name and not name.startswith(fuzz.NEEDS)]


@pytest.mark.parametrize("discipline", [name for name in CLOSED if name.endswith("queues")])
def test_random_windows(discipline: str):
    assert not [seed for seed in range(12) if fuzz.differs(discipline, seed)]


@pytest.mark.slow
def test_the_kernel_compiles_for_them():
    subprocess.run([sys.executable, "-m", "tests.fuzz", "--count", "12", "closed-queues"], check=True)


@pytest.mark.parametrize("discipline", CLOSED)
def test_the_verifier_agrees_with_the_reference(discipline: str):
    for seed in range(6):
        case = fuzz.case(discipline, seed)
        assert case.check(case.reference()) == []
        assert not fuzz.unnoticed(discipline, seed)


def jobs(*rows: tuple[int, int, tuple[Chunk, ...] | None]) -> Workload:
    """Return jobs of (cores, seconds, chunks) that are all submitted at 0."""
    cores, seconds, chunks = zip(*rows, strict=True)
    requests = [each for each in chunks if each is not None]
    number = iter(range(len(requests)))
    request = [-1 if each is None else next(number) for each in chunks]
    zeros = [0] * len(rows)
    return Workload(zeros, cores, seconds, seconds, user=range(len(rows)), request=request, requests=requests)


def starts(workload: Workload, *windows: Window, system: System = MACHINE) -> list[int]:
    """Return the starts of the reference simulator, which the verifier finds right, with these windows."""
    state = State(0, [UNSTARTED] * len(workload), windows=windows)
    found = naive.simulate(workload, system, state)
    schedule = fuzz.schedule(workload, system.partition_names, found, system)
    assert check_schedule(workload, system, schedule, state) == []
    if system.reserve == "queues":
        assert simulate(workload, system, state).start.tolist() == found.start
    return found.start


MACHINES = [MACHINE, BY_NODES, replace(MACHINE, reserve="queues")]


@pytest.mark.parametrize("system", MACHINES)
def test_no_job_starts_that_would_run_into_a_window_of_its_nodes(system: System):
    workload = jobs((2, 30, ALL_GPUS), (1, 20, ONE_GPU), (12, 90, None))
    down = Window(20, 50, node_types={"gpu": 1})
    # The first needs both GPU nodes, the second ends in time, the third runs elsewhere.
    assert starts(workload, down, system=system) == [50, 0, 0]


@pytest.mark.parametrize("system", MACHINES)
def test_nodes_that_never_come_back_hold_nothing(system: System):
    workload = jobs((2, 30, ALL_GPUS), (1, 20, ONE_GPU))
    gone = Window(0, 100, nodes=[3], known_end=False)
    assert starts(workload, gone, system=system) == [100, 0]


@pytest.mark.parametrize("system", MACHINES[:2])
def test_nodes_are_kept_for_users(system: System):
    workload = jobs((1, 30, ONE_GPU), (1, 30, ONE_GPU), (4, 30, None))
    kept = Window(0, 50, node_types={"gpu": 2}, users=[1])
    assert starts(workload, kept, system=system) == [50, 0, 0]


def test_a_window_known_later_stops_nothing_that_runs():
    workload = replace(jobs((2, 30, ALL_GPUS), (1, 5, ONE_GPU)), submit=np.array([0, 12]))
    assert starts(workload, Window(10, 40, node_types={"gpu": 2}, known_from=10)) == [0, 40]


def test_totals_count_a_node_twice_that_two_windows_take():
    workload = jobs((1, 30, ONE_GPU))
    both = Window(0, 20, nodes=[4]), Window(0, 30, nodes=[4])
    assert starts(workload, *both) == [20]
    assert starts(workload, *both, system=BY_NODES) == [0]


def test_which_nodes_a_window_takes():
    last = Window(0, 1, node_types={"cpu": 2, "gpu": 9})
    assert closed_nodes(last, MACHINE) == [1, 2, 3, 4]
    assert closed_nodes(Window(0, 1), MACHINE) == [0, 1, 2, 3, 4]
    assert closed_nodes(Window(0, 1, nodes=[4, 0, 4]), MACHINE) == [0, 4]
    queues = [
        Queue("a", partition=8, partition_nodes={"cpu": 2}),
        Queue("b", partition=12, partition_nodes={"cpu": 1, "gpu": 2}),
    ]
    divided = replace(MACHINE, mode="partitioned", queues=queues)
    assert closed_nodes(Window(0, 1, node_types={"cpu": 2, "gpu": 1}), divided) == [0, 1, 4]
    assert closed_nodes(Window(0, 1, partition=1), divided) == [2, 3, 4]


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (Window(0, 9, cores=4), "cores: nodes of several types are taken whole"),
        (Window(0, 9, nodes=[5]), "nodes: 5, of 5"),
        (Window(0, 9, node_types={"big": 1}), "node_types: 'big' is none of cpu, gpu"),
        (Window(0, 9, node_types={"cpu": -1}), "node_types: -1 nodes of cpu are no whole number"),
    ],
)
def test_windows_that_cannot_be_simulated(window: Window, words: str):
    with pytest.raises(ValueError, match=words):
        replace(MACHINE, windows=[window])
    with pytest.raises(ValueError, match=words):
        simulate(jobs((1, 1, None)), MACHINE, State(0, [UNSTARTED], windows=[window]))


@pytest.mark.parametrize("system", MACHINES)
def test_a_reservation_of_a_queue_is_a_machine_of_its_own(system: System):
    two = replace(system, queues=[Queue("all"), Queue("course", node_types=["gpu"])])
    workload = replace(jobs((2, 20, ALL_GPUS), (2, 20, ALL_GPUS), (1, 90, ONE_GPU)), queue=np.array([1, 1, 0]))
    kept = Window(10, 60, nodes=[3], queue=1), Window(10, 51, node_types={"gpu": 1}, queue=1)
    # From 10 to 51 the course has both nodes, which each of its jobs needs. The other job waits for one of them.
    assert starts(workload, *kept, system=two) == [10, 30, 51]
    # On one node its jobs have no place: they come when it is the course's no more, and wait for the other node, too.
    assert starts(workload, kept[0], system=two) == [90, 110, 0]


@pytest.mark.parametrize("system", MACHINES[:2])
def test_on_partitions_it_has_nodes_of_several(system: System):
    queues = [
        Queue("all", partition=12, partition_nodes={"cpu": 2, "gpu": 1}),
        Queue("course", partition=8, partition_nodes={"cpu": 1, "gpu": 1}),
    ]
    two = replace(system, mode="partitioned", queues=queues)
    workload = replace(jobs((2, 20, ALL_GPUS), (4, 20, ONE_GPU * 4), (8, 5, None)), queue=np.array([1, 1, 0]))
    kept = [Window(10, 60, node_types={"gpu": 2}, queue=1)]
    state = State(0, [UNSTARTED] * 3, windows=kept)
    assert starts(workload, *kept, system=two) == [10, 30, 0]
    found = naive.simulate(workload, two, state)
    # Its nodes are one of the partition of all, then its own; the last job spans no parts.
    assert found.placement == [{"all": 2}, {"all": 4}, {"all": 8}]


def test_a_machine_of_one_type_has_no_types_to_close():
    with pytest.raises(ValueError, match="'gpu' is none of the types of nodes, all are alike"):
        System(20, windows=[Window(0, 9, node_types={"gpu": 1})])


@pytest.mark.parametrize("system", MACHINES)
def test_why_a_job_waits_for_nodes_in_service(system: System):
    workload = jobs((2, 30, ALL_GPUS))
    state = State(0, [UNSTARTED], windows=[Window(20, 50, node_types={"gpu": 1})])
    found = fuzz.schedule(workload, system.partition_names, naive.simulate(workload, system, state), system)
    reasons = [reason.text for reason in explain(workload, system, found, 0, state=state)]
    assert any("nodes that it could take are out of service from 20 on" in text for text in reasons), reasons
