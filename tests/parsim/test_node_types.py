"""Nodes of several types: chunks, GPUs and memory as totals (rules 58 to 61)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from parsim import Queue, State, System, Workload, simulate
from parsim.node_types import Chunk, NodeType
from parsim.places import places
from parsim.verify import check_schedule
from tests import fuzz, generate

CPU = NodeType("cpu", 4, 16, {"memory": 64})
GPU = NodeType("gpu", 2, 16, {"gpus": 4, "memory": 256}, frozenset({"a100"}))
MACHINE = System(96, node_types=[CPU, GPU])


def jobs(*rows: tuple[int, int, int, tuple[Chunk, ...] | None], walltime: list[int] | None = None) -> Workload:
    """Return jobs of (submit, cores, seconds, chunks)."""
    submit, cores, seconds, chunks = zip(*rows, strict=True)
    requests = [each for each in chunks if each is not None]
    number = iter(range(len(requests)))
    request = [-1 if each is None else next(number) for each in chunks]
    return Workload(submit, cores, seconds, walltime or seconds, request=request, requests=requests)


def starts(workload: Workload, system: System = MACHINE) -> list[int]:
    found = simulate(workload, system)
    assert check_schedule(workload, system, found) == []
    return found.start.tolist()


def on(chunk: Chunk, *types: NodeType) -> list[dict[str, int]]:
    """Name the cores of each type at each place of a job of these chunks."""
    found = places(types, [True] * len(types), (chunk,), chunk.count * chunk.cores)
    return [{each.name: int(n) for each, n in zip(types, place[:, 0], strict=True) if n} for place in found]


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (Chunk(2, 8), [{"cpu": 16}, {"gpu": 16}]),
        (Chunk(1, 8, {"gpus": 1}), [{"gpu": 8}]),
        (Chunk(1, 8, {"memory": 65}), [{"gpu": 8}]),
        (Chunk(1, 8, {}, frozenset({"a100"})), [{"gpu": 8}]),
        (Chunk(8, 8), [{"cpu": 64}]),  # two on each of four nodes
        (Chunk(5, 9), []),  # one on each node, and no type has five nodes
        (Chunk(1, 17), []),
        (Chunk(9, 1, {"gpus": 1}), []),
        (Chunk(1, 1, {"gpus": 1}, frozenset({"h100"})), []),
    ],
)
def test_places_of_chunks(chunk: Chunk, expected: list[dict[str, int]]):
    assert on(chunk, CPU, GPU) == expected


def test_kinds_of_chunks_that_no_type_holds_go_to_several():
    request = (Chunk(1, 16, {"gpus": 4}), Chunk(4, 16))
    (place,) = places([CPU, GPU], [True, True], request, 80)
    assert place[:, 0].tolist() == [64, 16]
    assert len(places([CPU, GPU], [False, True], request, 80)) == 0


def test_cores_alone_fill_one_type_after_the_other():
    assert places([CPU, GPU], [True, True], None, 80)[:, :, 0].tolist() == [[64, 16]]
    assert places([CPU, GPU], [True, True], None, 32)[:, :, 0].tolist() == [[32, 0], [0, 32]]
    assert len(places([CPU, GPU], [True, False], None, 65)) == 0


def test_a_job_waits_for_gpus_though_cores_are_idle():
    one = (Chunk(1, 1, {"gpus": 4}),)
    assert starts(jobs((0, 1, 50, one), (0, 1, 50, one), (1, 1, 50, one), (2, 60, 9, None))) == [0, 0, 50, 2]


def test_a_job_that_runs_past_the_head_job_leaves_its_gpus():
    two, one = (Chunk(2, 1, {"gpus": 4}),), (Chunk(1, 1, {"gpus": 1}),)
    # The head job needs all GPUs at 50: a GPU job that ends by then passes it, a longer one does not.
    workload = jobs((0, 1, 50, (Chunk(1, 1, {"gpus": 4}),)), (1, 2, 50, two), (2, 1, 48, one), (3, 1, 60, one))
    assert starts(workload) == [0, 50, 2, 100]


def test_what_jobs_behind_the_head_job_take_is_taken_once():
    half, one = (Chunk(1, 1, {"gpus": 3}),), (Chunk(1, 1, {"gpus": 1}),)
    # At 50 the head job leaves three of eight GPUs to jobs that run longer: the fourth has to wait.
    rows = [(0, 2, 50, (Chunk(2, 1, {"gpus": 2}),)), (1, 5, 50, (Chunk(5, 1, {"gpus": 1}),))]
    rows += [(2, 1, 90, one)] * 4
    assert starts(jobs(*rows, (2, 1, 90, half))) == [0, 50, 2, 2, 2, 92, 100]


def test_queues_are_bound_to_types():
    bound = System(96, [Queue(name="a", node_types=["cpu"]), Queue(name="b")], node_types=[CPU, GPU])
    workload = Workload([0, 0, 0], [64, 16, 16], [50, 50, 50], [50, 50, 50], queue=[0, 0, 1])
    assert starts(workload, bound) == [0, 50, 0]


def test_the_place_of_each_job():
    workload = jobs((0, 64, 50, None), (0, 16, 50, None), (1, 1, 50, (Chunk(1, 1, {"gpus": 1}),)))
    assert simulate(workload, MACHINE).place.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("ngpus", [0, 100, 50, 150]),
        ("-ngpus", [0, 100, 150, 50]),
        ("mem", [0, 150, 100, 50]),
        ("-mem", [0, 50, 100, 150]),
        ("mem == 1024", [0, 100, 50, 150]),
    ],
)
def test_formulas_read_what_jobs_ask_for(order: str, expected: list[int]):
    one = System(16, order=order, node_types=[NodeType("all", 1, 16, {"gpus": 4, "memory": 64})])
    wants = [None, {"gpus": 1}, {"gpus": 2, "memory": 1}, {"memory": 2}]
    rows = [(0, 16, 50, None) if each is None else (1, 16, 50, (Chunk(1, 16, each),)) for each in wants]
    workload = jobs(*rows)
    assert starts(workload, one) == expected


def test_one_type_without_chunks_is_a_plain_machine():
    for seed in range(30):
        workload, system = generate.disciplines()["shared-all"](Random(seed))
        one = System(
            system.cores,
            system.queues,
            order=system.order,
            backfill=system.backfill,
            node_types=[NodeType("all", 1, system.cores)],
        )
        assert simulate(workload, one).start.tolist() == simulate(workload, system).start.tolist()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cores": 95}, "nodes of 96 cores, on a machine of 95"),
        ({"mode": "partitioned"}, "go with mode shared"),
        ({"reserve": "nodes"}, "go with mode shared"),
        ({"reservation_depth": 2}, "go with mode shared"),
        ({"node_types": [CPU, CPU]}, "also that of another type"),
        ({"queues": [Queue(node_types=["big"])]}, "'big' is none of cpu, gpu"),
        ({"node_types": [NodeType("a", 0, 96)]}, "0 is no whole number from 1"),
        ({"node_types": [NodeType("a", 1, 96, {"cores": 3})]}, "a place of their own"),
    ],
)
def test_what_cannot_be_simulated(changed: dict[str, object], words: str):
    with pytest.raises(ValueError, match=words):
        System(**{"cores": 96, "node_types": [CPU, GPU], **changed})


def test_a_job_without_a_place_is_refused():
    with pytest.raises(ValueError, match=r"request\[1\]: 0 has no place on the nodes of its queue"):
        simulate(jobs((0, 1, 1, None), (0, 1, 1, (Chunk(1, 1, {"gpus": 5}),))), MACHINE)
    with pytest.raises(ValueError, match="chunks of 4 cores, of a job of 3"):
        jobs((0, 3, 1, (Chunk(2, 2),)))
    with pytest.raises(ValueError, match="no part of a node"):
        Chunk(1, 0)


def test_windows_are_refused():
    workload = jobs((0, 1, 1, None))
    state = generate.state(Random(1), workload, MACHINE)
    state = State(state.begin, state.start, windows=[generate.window(Random(1), 0, MACHINE)])
    with pytest.raises(ValueError, match="not simulated where nodes are of several types"):
        simulate(workload, MACHINE, state)


def test_what_runs_already_has_its_first_idle_place():
    workload = Workload([0, 0, 5], [64, 16, 16], [50, 50, 9], [50, 50, 9])
    found = simulate(workload, MACHINE, State(5, [0, 1, 9]))
    assert found.start.tolist() == [0, 1, 5]
    assert found.place.tolist() == [0, 1, 1]


@pytest.mark.parametrize("broken", [0, 2])
def test_the_verifier_sees_a_wrong_place(broken: int):
    workload = jobs((0, 16, 50, None), (0, 60, 50, None), (1, 1, 50, (Chunk(1, 1, {"gpus": 1}),)))
    right = simulate(workload, MACHINE)
    assert check_schedule(workload, MACHINE, right) == []
    wrong = np.array(right.place)
    wrong[broken] += 1
    found = check_schedule(workload, MACHINE, fuzz.replace(right, place=wrong))
    assert found[0].rule == "placement"
