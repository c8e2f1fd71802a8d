"""Use, waits and fragmentation of nodes of several types."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parsim import Queue, State, System, Workload, metrics, simulate
from parsim.metrics.nodes import ALL_NODES, first_types, node_use, unusable
from parsim.model.node_types import Chunk, NodeType, exclusively
from parsim.naive.node_types import places
from parsim.prepare.node_types import resources_of
from tests import generate

CPU = NodeType("cpu", 2, 10)
GPU = NodeType("gpu", 1, 10, {"gpus": 4})
MACHINE = System(30, node_types=[CPU, GPU])


def of(rows: list[tuple[int, int, int, int]], queue: list[int] | None = None) -> Workload:
    """Return jobs of (submit, cores, GPUs, seconds) in one chunk each."""
    requests = [(Chunk(1, cores, {"gpus": gpus}),) for _, cores, gpus, _ in rows]
    submit, cores, _, seconds = zip(*rows, strict=True)
    return Workload(submit, cores, seconds, seconds, queue=queue, request=[*range(len(requests))], requests=requests)


def test_numbers_computed_by_hand() -> None:
    # A takes all cores of gpu, one GPU; B, for a GPU, waits for cores: three GPUs are of no use until 50.
    workload = of([(0, 10, 1, 50), (10, 1, 1, 30), (20, 10, 0, 60), (100, 1, 0, 1)])
    found = metrics.summary(workload, simulate(workload, MACHINE), MACHINE).nodes
    assert list(found) == ["cpu", "gpu", ALL_NODES]
    assert found["gpu"].resources == {
        "cores": {"there": 10, "used": 530, "utilization": 0.53, "fragmentation": 0},
        "gpus": {"there": 4, "used": 80, "utilization": 0.2, "fragmentation": 3 * 40 / 400},
    }
    assert found["cpu"].resources == {"cores": {"there": 20, "used": 600, "utilization": 0.3, "fragmentation": 0}}
    assert found[ALL_NODES].resources["cores"]["utilization"] == pytest.approx(1130 / 3000)
    assert found[ALL_NODES].resources["gpus"] == found["gpu"].resources["gpus"]
    # A has a whole node, B a quarter of one (of its GPUs), C a whole one of cpu.
    assert (found["gpu"].node_seconds, found["cpu"].node_seconds) == (50 + 30 / 4, 60)
    waits = {"jobs": 2, "mean_wait": 20, "median_wait": 20, "p95_wait": 38, "max_wait": 40}
    assert found["gpu"].ran == found["gpu"].meant == pytest.approx(waits)
    assert found["cpu"].ran["jobs"] == 2


def test_what_a_job_could_have_is_not_fragmented() -> None:
    # The job for a GPU is held by the head job, which waits for cores of cpu: that is loss of capacity.
    queues = [Queue(name="all"), Queue(name="one", node_types=["cpu"])]
    bound = System(30, queues, node_types=[CPU, GPU])
    workload = of([(0, 10, 0, 50), (0, 10, 0, 50), (10, 10, 0, 50), (20, 1, 1, 90), (60, 1, 0, 1)], [1, 1, 1, 0, 0])
    held = System(30, queues, node_types=[CPU, GPU], backfill=False)
    found = simulate(workload, held)
    assert found.start.tolist()[:4] == [0, 0, 50, 50]
    assert not unusable(found, (0, 60)).any()
    assert node_use(workload, found, held)["gpu"].resources["gpus"]["fragmentation"] == 0
    assert simulate(workload, bound).start.tolist()[3] == 20


def test_jobs_of_a_type_are_the_same_wherever_they_ran() -> None:
    workload = of([(0, 10, 0, 50), (0, 10, 0, 50), (1, 10, 0, 50), (2, 1, 4, 50)])
    found = node_use(workload, simulate(workload, MACHINE), MACHINE)
    assert first_types(workload, MACHINE).tolist() == [0, 0, 0, 1]
    assert [found[name].ran["jobs"] for name in found] == [2, 2, 4]
    assert [found[name].meant["jobs"] for name in found] == [3, 1, 4]
    assert found["gpu"].meant["mean_wait"] == 49


def test_nothing_is_said_of_nodes_that_are_all_alike() -> None:
    workload = Workload([0], [1], [1], [1])
    assert metrics.summary(workload, simulate(workload, System.single(2)), System.single(2)).nodes == {}


def test_one_job_has_no_time_and_none_no_waits() -> None:
    workload = of([(0, 1, 1, 10)])
    found = node_use(workload, simulate(workload, MACHINE), MACHINE)
    assert found["gpu"].resources["gpus"] == {"there": 4, "used": 0, "utilization": 0, "fragmentation": 0}
    assert np.isnan(found["cpu"].ran["mean_wait"])
    assert found["cpu"].ran["jobs"] == 0
    none = node_use(workload, simulate(workload, MACHINE), MACHINE, counted=np.array([False]))
    assert none[ALL_NODES].ran["jobs"] == 0


def by_the_second(workload: Workload, system: System, found, window: tuple[int, int]) -> dict:
    """Measure use and fragmentation second by second, of names of types and resources."""
    at = []
    for q, r, c in zip(workload.queue.tolist(), workload.request.tolist(), workload.cores.tolist(), strict=True):
        request = workload.requests[r] if r >= 0 else None
        at.append(places(system, q, exclusively(request, c) if system.queues[q].exclusive else request, c))
    there = {}
    for each in system.node_types:
        for resource in resources_of(system.node_types):
            there[each.name, resource] = each.nodes * each.amount(resource)
    used, lost = dict.fromkeys(there, 0), dict.fromkeys(there, 0)
    for now in range(*window):
        idle = dict(there)
        waiting = []
        for job in range(len(workload)):
            if found.start[job] <= now < found.end[job]:
                for what, amount in at[job][found.place[job]].items():
                    idle[what] -= amount
                    used[what] += amount
            if found.submit[job] <= now < found.start[job]:
                waiting += at[job]
        for what in there:
            takers = [place for place in waiting if place.get(what, 0)]
            enough = any(place[what] <= idle[what] for place in takers)
            fitting = any(all(amount <= idle[each] for each, amount in place.items()) for place in takers)
            if enough and not fitting:
                lost[what] += idle[what]
    return {"used": used, "lost": lost}


CASES = generate.DISCIPLINES


def agree(workload: Workload, system: System, found) -> None:
    window = int(workload.submit.min()), int(workload.submit.max())
    if len(range(*window)) > 2000 or window[0] == window[1]:
        return
    slow = by_the_second(workload, system, found, window)
    fast = node_use(workload, found, system)
    for each in system.node_types:
        for resource, values in fast[each.name].resources.items():
            of_all = values["there"] * (window[1] - window[0])
            assert values["used"] == slow["used"][each.name, resource]
            assert values["fragmentation"] == pytest.approx(slow["lost"][each.name, resource] / of_all)


@given(st.integers(0, 2**32))
def test_against_counting_every_second(seed: int) -> None:
    rng = Random(seed)
    workload, system = CASES[rng.choice([name for name in CASES if name.startswith("typed") and "queues" not in name])](
        rng
    )
    agree(workload, system, simulate(workload, system))


def test_from_a_state_on() -> None:
    workload = of([(0, 10, 1, 50), (0, 10, 4, 5), (60, 1, 1, 30), (62, 10, 0, 60), (100, 1, 0, 1)])
    found = simulate(workload, MACHINE, State(55, [0, 40, 60, 60, 60]))
    assert found.demands is not None
    assert found.demands.amounts[found.demands.taken].sum(axis=(1, 2)).tolist() == [
        *(0, 0),  # which had ended
        *(2, 10, 1),
    ]
    assert node_use(workload, found, MACHINE)["gpu"].resources["gpus"]["utilization"] == pytest.approx(30 / 400)
