"""Nodes as Slurm chooses them, on schedules that can be followed by hand (rules of "nodes as Slurm chooses them")."""

from dataclasses import replace

import pytest

from parsim import Queue, State, System, Workload, explain, simulate
from parsim.model.node_types import Chunk, NodeType
from parsim.model.state import UNSTARTED
from parsim.prepare.chunks import can_be_placed
from tests import fuzz
from tests.parsim.schedules import simulated

ONE = [Queue(name="a")]


def machine(*nodes, queues=ONE, **keys):
    types = [NodeType(f"t{k}", count, cores, more) for k, (count, cores, more) in enumerate(nodes)]
    cores = sum(count * cores for count, cores, _ in nodes)
    return System(cores, queues, node_types=types, reserve="queue_nodes", **keys)


def jobs(*rows, queue=None):
    """Return jobs of cores, walltime and chunks, all submitted at once."""
    requests = [chunks for *_, chunks in rows if chunks]
    request = [requests.index(chunks) if chunks else -1 for *_, chunks in rows]
    cores, length = ([row[k] for row in rows] for k in (0, 1))
    queue = queue or [0] * len(rows)
    return Workload([0] * len(rows), cores, length, length, queue=queue, request=request, requests=requests)


@pytest.mark.parametrize(
    ("left", "wanted", "expected"),
    [
        ([3, 0, 1, 1, 0, 4], (2, None), 2),  # the smallest row that has room for both, none of its nodes has
        ([3, 0, 4, 2, 0, 4], (2, None), 0),  # the smallest row has one node
        ([0, 3, 4, 2, 3, 0], (2, None), 3),  # the smallest node of the row with room
        ([4, 0, 3, 3, 0, 2], (8, None), 2),  # no row has room for all: first the largest
        ([2, 0, 1, 2, 0, 3], (2, (Chunk(2, 1, scattered=True),)), 2),  # two nodes
        ([2, 2, 0, 4, 0, 0], (2, (Chunk(2, 1, scattered=True),)), 0),  # of equal size the first
        ([1, 2, 0, 4, 0, 0], (2, (Chunk(2, 1, scattered=True),)), 3),  # one without room for all is larger: Slurm
        ([3, 3, 0, 4, 0, 0], (4, (Chunk(2, 2),)), 3),  # a node of two copies, whatever its cores
    ],
)
def test_the_row_that_a_job_fills_best(left, wanted, expected):
    """Jobs that run already leave so many cores of six nodes of four."""
    busy = [k for k in range(6) if left[k] < 4]
    workload = jobs(*((4 - left[k], 100, None) for k in busy), (*wanted[:1], 10, wanted[1]))
    state = State(1, [0] * len(busy) + [UNSTARTED], nodes={row: {k: 4 - left[k]} for row, k in enumerate(busy)})
    schedule = simulated(workload, machine((3, 4, {}), (3, 4, {"gpus": 1})), state)
    assert schedule.start[-1] == 1
    assert schedule.node[-1] == expected


@pytest.mark.parametrize(
    ("weights", "cores", "expected"),
    [
        ((2, 1, 3), 2, 2),  # the lightest, not those that it fills best, nor the first
        ((2, 1, 3), 6, 2),  # more than they have room for, with the next in weight
        ((2, 2, 2), 2, 0),
        ((2, 2, 0), 8, 3),  # six on the lightest, then two on another
        ((1, 1, 1), 7, 0),  # one row, no node of which has room for all
        ((1, 2, 1), 7, 3),  # a node of another weight ends a row; the larger one is filled first
    ],
)
def test_nodes_of_less_weight_are_taken_first(weights, cores, expected):
    system = machine((2, 2, {}), (1, 4, {}), (1, 6, {}))
    types = [replace(each, weight=weight) for each, weight in zip(system.node_types, weights, strict=True)]
    assert simulated(jobs((cores, 10, None)), replace(system, node_types=types)).node.tolist() == [expected]


@pytest.mark.parametrize(
    ("nodes", "chunk", "expected"),
    [
        (((1, 8, {"memory": 8}), (1, 1, {}), (3, 8, {"memory": 2})), Chunk(4, 2, {"memory": 2}), 0),  # not more cores
        (((2, 4, {"gpus": 1}), (1, 1, {}), (1, 4, {"gpus": 3})), Chunk(2, 1, {"gpus": 1}), 3),  # both on one node
        (
            ((2, 4, {"gpus": 2}), (1, 1, {}), (1, 4, {"gpus": 3})),
            Chunk(2, 1, {"gpus": 1}),
            3,
        ),  # a row of three, not four
        (((2, 4, {"gpus": 2}), (1, 4, {"gpus": 3})), Chunk(2, 1, {"gpus": 1}), 0),  # no more than it asks for count
        (((1, 4, {"gpus": 3}), (1, 4, {"gpus": 1})), Chunk(1, 1, {"gpus": 1}), 0),  # a single copy is one on any node
        (((1, 4, {"gpus": 1}), (1, 4, {"gpus": 3})), Chunk(1, 1, {"gpus": 1}, exclusive=True), 1),  # all count
        (((1, 4, {"gpus": 1}), (1, 4, {"gpus": 3})), Chunk(1, 1, {"gpus": 1}, exclusive=True, scattered=True), 1),
    ],
)
def test_memory_and_gpus_of_nodes(nodes, chunk, expected):
    total = chunk.count * chunk.cores
    assert simulated(jobs((total, 10, (chunk,))), machine(*nodes)).node.tolist() == [expected]


def test_a_head_job_holds_nodes_of_the_least_weight():
    """Planned on those that weigh less, where two jobs run, it holds none of the others; of equal ones it holds one."""
    types = [NodeType("heavy", 2, 2, weight=5), NodeType("light", 2, 2)]
    system = System(8, ONE, node_types=types, reserve="queue_nodes")
    workload = jobs((2, 10, None), (2, 10, None), (2, 30, None), (4, 10, (Chunk(2, 2),)), (1, 20, None))
    assert simulated(workload, system).start.tolist() == [0, 0, 0, 10, 0]
    types = [replace(each, weight=1) for each in types]
    assert simulated(workload, replace(system, node_types=types)).start.tolist() == [0, 0, 0, 10, 10]


def test_a_head_job_holds_whole_nodes():
    """Planned on two nodes of the first job, the second holds the idle one, too; two others are busy, or not held."""
    rows = [(6, 10, (Chunk(3, 2),)), (4, 10, (Chunk(2, 2),)), (1, 20, None), (1, 9, None), (1, 10, None)]
    assert simulated(jobs(*rows), machine((4, 2, {}))).start.tolist() == [0, 10, 10, 0, 10]
    rows = [(4, 10, (Chunk(2, 2),)), (8, 10, (Chunk(4, 2),)), (1, 20, None), (2, 20, None)]
    assert simulated(jobs(*rows), machine((5, 2, {}))).start.tolist() == [0, 10, 0, 20]


def test_queues_have_a_head_job_each():
    queues = [Queue(name="a", priority=2), Queue(name="b")]
    workload = jobs((3, 10, None), (4, 5, None), (4, 5, None), (1, 15, None), queue=[0, 0, 1, 1])
    system = machine((4, 1, {}), queues=queues)
    schedule = simulated(workload, system)
    assert schedule.start.tolist() == [0, 10, 15, 20]
    reasons = [reason.text for reason in explain(workload, system, schedule, 1)]
    assert (
        reasons[0]
        == "the first of queue a that waits for nodes, for 4 times 1 cores on one node each, of which 1 are idle"
    )


def test_without_backfilling_jobs_of_cores_start_as_by_cores():
    workload = jobs((3, 10, None), (4, 5, None), (1, 5, None), (2, 7, None))
    system = machine((5, 1, {}), backfill=False)
    by_cores = replace(system, reserve="cores", node_types=())
    assert simulated(workload, system).start.tolist() == simulate(workload, by_cores).start.tolist()


def test_a_kind_goes_to_the_smallest_node_with_room():
    """By rule "chunks on nodes" it goes to the first, where the other kind finds no room any more."""
    types = [NodeType("big", 1, 4, {"gpus": 1}), NodeType("small", 1, 2)]
    request = (Chunk(1, 2), Chunk(1, 4, {"gpus": 1}))
    assert not can_be_placed(types, [True, True], request, 6)
    assert can_be_placed(types, [True, True], request, 6, best=True)
    assert not can_be_placed([types[0], replace(types[1], weight=2)], [True, True], request, 6, best=True)
    assert not can_be_placed(types, [True, True], (Chunk(1, 2), Chunk(1, 0, {"fpgas": 1})), 2, best=True)


@pytest.mark.parametrize("discipline", ["queue-nodes", "queue-nodes-throttled", "state:queue-nodes"])
def test_it_is_what_the_reference_simulator_does(discipline):
    assert [seed for seed in range(25) if fuzz.differs(discipline, seed)] == []
    assert [seed for seed in range(5) if fuzz.unnoticed(discipline, seed)] == []
