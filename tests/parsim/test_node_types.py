"""Nodes of several types: chunks, GPUs and memory (rules of "types of nodes" and "nodes of several types")."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from parsim import Queue, State, System, Workload, naive, simulate
from parsim.explain import explain
from parsim.metrics.nodes import node_use
from parsim.model.node_types import Chunk, NodeType
from parsim.prepare import packing
from parsim.prepare.chunks import can_be_placed, has_place
from parsim.prepare.node_types import places, resources_of
from parsim.verify import check_schedule
from tests import fuzz, generate
from tests.parsim.schedules import simulated

CPU = NodeType("cpu", 4, 16, {"memory": 64})
GPU = NodeType("gpu", 2, 16, {"gpus": 4, "memory": 256}, frozenset({"a100"}))
MACHINE = System(96, node_types=[CPU, GPU])
BY_NODES = replace(MACHINE, reserve="nodes")


def jobs(*rows: tuple[int, int, int, tuple[Chunk, ...] | None], walltime: list[int] | None = None) -> Workload:
    """Return jobs of (submit, cores, seconds, chunks)."""
    submit, cores, seconds, chunks = zip(*rows, strict=True)
    requests = [each for each in chunks if each is not None]
    number = iter(range(len(requests)))
    request = [-1 if each is None else next(number) for each in chunks]
    return Workload(submit, cores, seconds, walltime or seconds, request=request, requests=requests)


def starts(workload: Workload, system: System = MACHINE) -> list[int]:
    return simulated(workload, system).start.tolist()


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
        (Chunk(1, 8, {}, frozenset({"h100|a100"})), [{"gpu": 8}]),
        (Chunk(1, 8, {}, frozenset({"h100|a100", "v100|h100"})), []),
        (Chunk(8, 8), [{"cpu": 64}]),  # two on each of four nodes
        (Chunk(5, 9), []),  # one on each node, and no type has five nodes
        (Chunk(1, 17), []),
        (Chunk(9, 1, {"gpus": 1}), []),
        (Chunk(1, 1, {"gpus": 1}, frozenset({"h100"})), []),
    ],
)
def test_places_of_chunks(chunk: Chunk, expected: list[dict[str, int]]):
    assert on(chunk, CPU, GPU) == expected


def test_what_totals_hold_nodes_may_not():
    """Of five copies of 7 cores two go to a node of 16, which leaves too few nodes for five of 9 that come later."""
    types = [NodeType("cpu", 5, 16), NodeType("gpu", 1, 16, {"gpus": 4})]
    request = (Chunk(5, 7), Chunk(5, 9))
    workload = jobs((0, 80, 60, request), (0, 80, 60, (Chunk(5, 9), Chunk(5, 7))))
    bound = System(96, [Queue("work", node_types=["cpu"])], node_types=types)
    assert has_place(bound, workload).tolist() == [True, True]
    assert has_place(replace(bound, reserve="nodes"), workload).tolist() == [False, True]
    with pytest.raises(ValueError, match="could never"):
        simulate(workload, replace(bound, reserve="nodes"))


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
        workload, system = generate.DISCIPLINES["shared-all"](Random(seed))
        one = System(
            system.cores,
            system.queues,
            order=system.order,
            backfill=system.backfill,
            node_types=[NodeType("all", 1, system.cores)],
        )
        assert simulate(workload, one).start.tolist() == simulate(workload, system).start.tolist()


def test_a_job_without_a_place_is_refused():
    with pytest.raises(ValueError, match=r"request\[1\]: 0 has no place on the nodes of its queue"):
        simulate(jobs((0, 1, 1, None), (0, 1, 1, (Chunk(1, 1, {"gpus": 5}),))), MACHINE)
    with pytest.raises(ValueError, match="chunks of 4 cores, of a job of 3"):
        jobs((0, 3, 1, (Chunk(2, 2),)))
    with pytest.raises(ValueError, match="no part of a node"):
        Chunk(1, 0)


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


# --- node by node


def test_copies_go_to_the_first_node_that_has_room():
    rows = [(0, 12, 50, (Chunk(1, 12),)), (1, 6, 50, (Chunk(1, 6),)), (2, 4, 50, (Chunk(1, 4),))]
    rows += [(3, 2, 50, (Chunk(1, 2, {"gpus": 1}),)), (4, 5, 50, (Chunk(1, 5),))]
    found = simulate(jobs(*rows), BY_NODES)
    assert found.start.tolist() == [0, 1, 2, 3, 4]
    assert found.node.tolist() == [0, 1, 0, 4, 1]


def test_idle_cores_of_several_nodes_are_no_room_for_one_chunk():
    workload = jobs((0, 36, 50, (Chunk(4, 9),)), (1, 12, 9, (Chunk(1, 12),)))
    assert starts(workload, System(64, node_types=[CPU])) == [0, 1]
    assert starts(workload, System(64, node_types=[CPU], reserve="nodes")) == [0, 50]


def test_a_core_whose_memory_is_gone_is_no_room():
    workload = jobs((0, 4, 50, (Chunk(4, 1, {"memory": 64}),)), (1, 1, 9, (Chunk(1, 1, {"memory": 1}),)))
    assert simulate(workload, BY_NODES).node.tolist() == [0, 4]


def test_the_head_job_holds_particular_nodes():
    # The head job gets nodes 0 and 1 at 50. What runs longer may take nodes 2 and 3, of which 2 is idle now.
    system = System(64, node_types=[NodeType("all", 4, 16)], reserve="nodes")
    whole = lambda n: (Chunk(n, 16),)  # noqa: E731
    rows = [(0, 32, 50, whole(2)), (1, 16, 99, whole(1)), (2, 48, 50, whole(3)), (3, 9, 200, (Chunk(1, 9),))]
    rows += [(4, 9, 46, (Chunk(1, 9),))]
    # At 50 nodes 0, 1 and 3 are idle, and the head job takes all of them: the long job would need node 2.
    assert starts(jobs(*rows), system) == [0, 1, 50, 100, 4]


def test_jobs_behind_the_head_job_take_what_it_leaves_of_its_nodes():
    system = System(16, node_types=[NodeType("all", 2, 8)], reserve="nodes")
    rows = [(0, 12, 50, (Chunk(2, 6),)), (1, 14, 50, (Chunk(2, 7),))]  # at 50 it leaves one core of each node
    rows += [(2, 1, 99, (Chunk(1, 1),))] * 3
    assert starts(jobs(*rows), system) == [0, 50, 2, 2, 100]
    rows[-1] = (2, 2, 99, (Chunk(1, 2),))
    assert starts(jobs(*rows), system) == [0, 50, 2, 2, 100]


def test_kinds_of_chunks_are_placed_in_their_order():
    # The small chunk goes to the first node, where the large one needs to be.
    types = [NodeType("big", 1, 8), NodeType("small", 1, 4)]
    system = System(12, node_types=types, reserve="nodes")
    two = (Chunk(1, 2), Chunk(1, 8))
    assert not can_be_placed(types, [True, True], two, 10)
    assert can_be_placed(types, [True, True], two[::-1], 10)
    with pytest.raises(ValueError, match=r"request\[0\]: 0 has no place"):
        simulate(jobs((0, 10, 5, two)), system)


@pytest.mark.parametrize(
    ("chunks", "cores", "expected"),
    [
        (None, 96, True),
        (None, 97, False),
        ((Chunk(6, 16),), 96, True),
        ((Chunk(7, 9),), 63, False),
        ((Chunk(4, 16), Chunk(2, 8, {"gpus": 4}), Chunk(4, 4)), 96, True),
        ((Chunk(4, 16), Chunk(2, 8, {"gpus": 4}), Chunk(3, 5)), 95, False),
        ((Chunk(8, 1, {"gpus": 1}),), 8, True),
        ((Chunk(9, 1, {"gpus": 1}),), 9, False),
        ((Chunk(1, 1, {"boards": 1}),), 1, False),
        ((Chunk(1, 16), Chunk(1, 1, {}, frozenset({"a100"}))), 17, True),
    ],
)
def test_what_idle_nodes_hold(chunks: tuple[Chunk, ...] | None, cores: int, expected: bool):
    assert can_be_placed([CPU, GPU], [True, True], chunks, cores) == expected


@pytest.mark.parametrize("seed", range(30))
def test_nodes_of_one_type_are_those_of_rule_23(seed: int):
    """Of jobs of cores alone; the last node has what is left."""
    workload, system = generate.DISCIPLINES["shared-all"](Random(seed))
    rng = Random(seed)
    alike = replace(system, reserve="nodes", cores_per_node=rng.choice((1, 2, 3, 4)))
    types = [NodeType("all", alike.cores // alike.cores_per_node, alike.cores_per_node)]
    types = [each for each in types if each.nodes]
    rest = alike.cores % alike.cores_per_node
    types += [NodeType("last", 1, rest)] if rest else []
    typed = replace(alike, node_types=types, cores_per_node=1)
    assert simulate(workload, typed).start.tolist() == simulate(workload, alike).start.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_nodes_of_one_core(seed: int):
    """Copies of a core each, of those of one node: as under rule "nodes in order", or without backfilling by totals."""
    rng = Random(seed)
    workload, system = generate.DISCIPLINES["shared-all"](rng)
    of = NodeType("all", system.cores, 1, {"gpus": 1, "memory": 3})
    takes = [{"gpus": rng.randint(0, 1), "memory": rng.randint(0, 3)} for _ in range(len(workload))]
    requests = [(Chunk(n, 1, each),) for n, each in zip(workload.cores.tolist(), takes, strict=True)]
    chunks = replace(workload, request=np.arange(len(workload)), requests=requests)
    alike = replace(system, reserve="nodes", cores_per_node=1)
    by_nodes = replace(alike, node_types=[of])
    assert simulate(chunks, by_nodes).start.tolist() == simulate(workload, alike).start.tolist()
    in_order = replace(by_nodes, backfill=False)
    totals = replace(in_order, reserve="cores")
    assert simulate(chunks, in_order).start.tolist() == simulate(chunks, totals).start.tolist()


def test_what_runs_already_takes_the_first_nodes_with_room():
    bound = replace(BY_NODES, queues=[Queue(node_types=["gpu"])])
    workload = jobs((0, 18, 50, (Chunk(2, 9),)), (1, 9, 50, (Chunk(1, 9),)), (5, 7, 9, (Chunk(1, 7),)))
    found = simulate(workload, bound, State(5, [0, 1, 9]))
    assert found.node.tolist() == [4, -1, 4]  # no node has room for the second
    assert found.start.tolist() == [0, 1, 5]
    assert check_schedule(workload, bound, found, State(5, [0, 1, 9])) == []


def test_why_a_job_waits_for_a_node():
    workload = jobs((0, 54, 50, (Chunk(6, 9),)), (1, 12, 9, (Chunk(1, 12, {"gpus": 1}),)))
    found = explain(workload, BY_NODES, simulate(workload, BY_NODES), 1)
    wanted = "heads the list, waits for 1 times 12 cores with 1 gpus on one node each, of which 0 are idle"
    assert [reason.text for reason in found] == [wanted, "starts on machine, in turn"]


def test_the_verifier_sees_a_wrong_node():
    workload = jobs((0, 12, 50, (Chunk(1, 12),)), (0, 12, 50, (Chunk(1, 12),)))
    right = simulate(workload, BY_NODES)
    found = check_schedule(workload, BY_NODES, replace(right, node=right.node[::-1]))
    assert [wrong.rule for wrong in found][:1] == ["placement"]


def test_what_jobs_took_by_type():
    two = (Chunk(5, 9), Chunk(1, 1, {"gpus": 2}))
    workload = jobs((0, 46, 50, two), (0, 46, 50, two), (1, 3, 9, None), (60, 46, 50, two))
    found = simulate(workload, BY_NODES)
    took = found.demands.amounts[found.demands.taken]
    assert found.start.tolist() == [0, 50, 1, 100]
    assert took[0].tolist() == [[36, 0, 0], [10, 2, 0]]  # cores, gpus and memory of cpu, then of gpu
    assert took[2].tolist() == [[3, 0, 0], [0, 0, 0]]
    use = node_use(workload, found, BY_NODES)
    assert use["gpu"].resources["gpus"]["used"] == 2 * 50 + 2 * 10


def test_jobs_that_want_the_same_may_take_different_types():
    one = (Chunk(1, 12),)
    found = simulate(jobs(*[(0, 12, 50, one)] * 5), BY_NODES)
    took = found.demands.amounts[found.demands.taken]
    assert took[:, :, 0].tolist() == [[12, 0]] * 4 + [[0, 12]]


@pytest.mark.parametrize("seed", range(20))
def test_what_jobs_took_adds_up(seed: int):
    workload, system = generate.DISCIPLINES["placed-all"](Random(seed))
    found = simulate(workload, system)
    took = found.demands.amounts[found.demands.taken]
    assert (took.sum(axis=1)[:, 0] == workload.cores).all()
    there = np.array(
        [[each.nodes * each.amount(name) for name in resources_of(system.node_types)] for each in system.node_types]
    )
    for instant in found.start.tolist():
        runs = (found.start <= instant) & (found.end > instant)
        assert (took[runs].sum(axis=0) <= there).all()


@pytest.mark.parametrize("looks", [packing.LOOKS, -1])
@pytest.mark.parametrize("again", [False, True])
def test_a_job_of_several_kinds_may_start_when_another_has(looks: int, again: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packing, "LOOKS", looks)
    types = [NodeType("a", 1, 5, {"memory": 2}), NodeType("b", 1, 2, {"memory": 2}), NodeType("c", 1, 8)]
    system = System(15, node_types=types, reserve="nodes")
    whole, two = (Chunk(1, 8),), (Chunk(1, 2, {"memory": 2}), Chunk(1, 4))
    small = (Chunk(1, 1, {"memory": 1}),)
    # The small job takes memory of a, so that the first chunk of the wide one goes to b, and leaves a to the other.
    rows = [(0, 8, 50, whole), (1, 8, 50, whole), (2, 6, 50, two), (2, 1, 50, small)]
    if again:  # its turn comes after the small job has started
        rows.append((2, 6, 50, two))
    workload = jobs(*rows, (3, 8, 50, whole))
    workload = replace(workload, request=[0, 0, 1, 2, *([1] if again else []), 0], requests=(whole, two, small))
    found = starts(workload, system)
    assert found == naive.simulate(workload, system).start
    assert found == ([0, 50, 100, 2, 2, 150] if again else [0, 50, 3, 2, 100])


@pytest.mark.parametrize("seed", range(30))
def test_nodes_that_jobs_have_alone_are_as_cores(seed: int):
    """Rule "exclusive nodes as cores", and without backfilling by totals, too."""
    rng = Random(seed)
    workload, system = generate.DISCIPLINES["shared"](rng)
    node = rng.randint(2, 4)
    wider = replace(workload, cores=[n * node - rng.randint(0, node - 1) for n in workload.cores.tolist()])
    of = NodeType("all", system.cores, node, exclusive=True)
    alone = replace(system, cores=system.cores * node, node_types=[of], reserve="nodes")
    alike = replace(system, reserve="nodes", cores_per_node=1)
    found = simulate(wider, alone)
    assert found.start.tolist() == simulate(workload, alike).start.tolist()
    assert found.demands.amounts[found.demands.taken][:, 0, 0].tolist() == (workload.cores * node).tolist()
    in_order, totals = replace(alone, backfill=False), replace(alone, backfill=False, reserve="cores")
    assert simulate(wider, in_order).start.tolist() == simulate(wider, totals).start.tolist()


def test_head_jobs_of_queues_keep_nodes_of_their_types_idle():
    types = [NodeType("cpu", 6, 1), NodeType("gpu", 4, 1, {"gpus": 1})]
    queues = [Queue(node_types=["cpu"]), Queue("b", node_types=["gpu"])]
    system = System(10, queues, node_types=types, reserve="queues")
    rows = [(0, 4, 50, None), (1, 4, 50, None), (2, 1, 90, None), (3, 1, 90, None), (4, 1, 20, None)]
    workload = jobs(*rows, (5, 1, 90, None))
    found = simulate(workload, system)
    assert check_schedule(workload, system, found) == []
    # Two nodes are idle. A job that lasts longer takes one, the next would take that which stays idle; a short one may.
    assert found.start.tolist() == [0, 50, 2, 50, 4, 92]
    other = replace(workload, queue=[0, 0, 0, 1, 0, 1])
    assert simulate(other, system).start.tolist()[3::2] == [3, 5]
    assert check_schedule(other, system, simulate(other, system)) == []
    reasons = [reason.text for reason in explain(workload, system, found, 1)]
    assert reasons[0] == "the first of queue all that waits for nodes, for 4 cores of cpu"


ALONE = (Chunk(1, 2, exclusive=True),)


@pytest.mark.parametrize("machine", [MACHINE, BY_NODES])
def test_a_job_has_its_nodes_alone(machine: System):
    bound = replace(machine, queues=[Queue(node_types=["gpu"])])
    rows = [(0, 2, 50, ALONE), (1, 2, 50, ALONE), (2, 1, 9, None), (3, 18, 20, (Chunk(2, 9, exclusive=True),))]
    assert starts(jobs(*rows), bound) == [0, 1, 50, 59]
    rows[2] = (2, 32, 9, None)
    assert starts(jobs(*rows), bound) == [0, 1, 51, 60]


def test_chunks_of_a_job_share_the_nodes_that_it_has_alone():
    system = System(16, node_types=[NodeType("all", 2, 8, exclusive=True)], reserve="nodes")
    two = (Chunk(1, 2), Chunk(2, 3))
    workload = jobs((0, 8, 50, two), (0, 8, 50, two), (1, 1, 9, None))
    assert starts(workload, system) == [0, 0, 50]
    assert starts(workload, replace(system, reserve="cores")) == [0, 0, 50]


@pytest.mark.parametrize("machine", [MACHINE, BY_NODES])
def test_scattered_chunks_are_on_different_nodes(machine: System):
    apart = (Chunk(1, 1, scattered=True), Chunk(3, 1, scattered=True))
    assert simulate(jobs((0, 4, 50, apart)), BY_NODES).demands.amounts[0, :, 0].tolist() == [4, 0]
    with pytest.raises(ValueError, match=r"request\[0\]: 0 has no place"):
        simulate(jobs((0, 7, 50, (Chunk(7, 1, scattered=True),))), machine)
    rows = [(0, 33, 50, (Chunk(3, 11),)), (1, 24, 9, (Chunk(4, 6, scattered=True),))]
    bound = replace(BY_NODES, queues=[Queue(node_types=["cpu"])])
    assert starts(jobs(*rows), bound) == [0, 50]
    rows = [(0, 4, 50, (Chunk(4, 1, scattered=True),)), (1, 16, 9, (Chunk(1, 16),))]
    assert starts(jobs(*rows), bound) == [0, 50]  # each of the four nodes has one of the first


def test_why_a_job_waits_for_a_node_of_its_own():
    workload = jobs((0, 6, 50, (Chunk(6, 1, scattered=True),)), (1, 2, 9, ALONE))
    found = explain(workload, BY_NODES, simulate(workload, BY_NODES), 1)
    wanted = "heads the list, waits for 1 times 2 cores on one node each, of which 0 are idle"
    assert [reason.text for reason in found] == [wanted, "starts on machine, in turn"]
