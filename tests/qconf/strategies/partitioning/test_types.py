"""Strategies that divide nodes of several types: what they propose is whole, and jobs have places on it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from parsim import Workload
from parsim.node_types import Chunk
from parsim.placing import has_place
from qconf.config import parse
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.strategies import propose
from qconf.strategies.partitioning.carving import TypedSequence, by_queue

SITE = """
machine: {name: m, cores: 384}
nodes:
  - {name: cpu, count: 8, cores: 32}
  - {name: gpu, count: 4, cores: 32, gpus: 4}
queues:
  - {name: long, walltime: [0, 24h]}
  - {name: short, walltime: [0, 2h]}
  - {name: gpu, walltime: [0, 24h]}
"""


@cache
def training(jobs: int = 150, text: str = SITE) -> TrainingSet:
    """Jobs of one to three nodes in long and short, of one to four GPUs in gpu, in six days."""
    base, rng = parse(text), np.random.default_rng(3)
    queue = rng.integers(0, 3, jobs)
    walltime = np.where(queue == 1, rng.integers(60, 7201, jobs), rng.integers(60, 86401, jobs))
    gpus = rng.integers(1, 5, jobs)
    nodes = rng.integers(1, 4, jobs)
    workload = Workload(
        np.sort(rng.integers(0, 6 * 86400, jobs)),
        np.where(queue == 2, 8, 32 * nodes),
        np.maximum(1, (walltime * rng.random(jobs)).astype(np.int64)),
        walltime,
        queue=queue,
        request=np.where(queue == 2, gpus, 4 + nodes) - 1,
        requests=[
            *((Chunk(1, 8, {"gpus": count}),) for count in range(1, 5)),
            *((Chunk(count, 32),) for count in range(1, 4)),
        ],
    )
    return TrainingSet(Period(workload, base))


def steps(proposal, step):
    return [each for each in proposal.decisions if each["step"] == step]


def assert_valid(proposal, here: TrainingSet) -> None:
    """All nodes belong to a partition or the pool, each job has a place, and the rules are kept."""
    system = proposal.config.system()
    for each in here.base.nodes:
        assert sum(its.get(each.name, 0) for its in system.owned_nodes) == each.count
    assert has_place(system, here.period.routed(proposal.config)).all()
    schedule = proposal.simulate(here.period)
    assert not proposal.verify(here.period, schedule)


def test_parts_give_nodes_of_their_type_by_their_cores():
    here = training()
    system = here.base.with_owned([{"cpu": 5}, {"cpu": 3, "gpu": 1}, {"gpu": 3}]).system()
    movable, chunks = np.ones(6, dtype=bool), np.array([2, 1])

    def given(*, pooled):
        sequence = TypedSequence(system, [here.workload], chunks, movable, pooled=pooled)
        while (part := sequence.next()) is not None:
            yield sequence.queue(part), by_queue(["cpu", "gpu"], sequence.sizes), sequence.pool(sequence.sizes)

    with_pool = list(given(pooled=True))
    # The smallest first. Of short some jobs have three nodes: its own stay until these have a place in the pool.
    assert with_pool[:4] == [
        (1, [{"cpu": 5}, {"cpu": 3}, {"gpu": 3}], 32),
        (2, [{"cpu": 5}, {"cpu": 3}, {"gpu": 2}], 64),
        (0, [{"cpu": 3}, {"cpu": 3}, {"gpu": 2}], 128),
        (2, [{"cpu": 3}, {"cpu": 3}, {"gpu": 1}], 160),
    ]
    assert with_pool[5][:2] == (1, [{"cpu": 1}, {"cpu": 1}, {"gpu": 1}])
    assert with_pool[-1][1:] == ([{}, {}, {}], 384)
    assert list(given(pooled=False))[-1][1] == [{"cpu": 3}, {"cpu": 3}, {"gpu": 1}]


@pytest.mark.parametrize(("carve", "degradation"), [("search", 1e6), ("live", 1.0), ("partitions", 1.0)])
def test_hybrid_has_a_pool_of_nodes(carve, degradation):
    here, options = training(), {"carve": carve, "degradation": degradation}
    found, same = (propose("hybrid", here, {**options, "workers": workers}) for workers in (1, 2))
    assert found == same
    assert_valid(found, here)
    (end,) = steps(found, "pool")
    assert end["nodes"] == dict(found.config.pool.nodes)
    assert end["cores"] == found.config.pool.cores == 32 * sum(end["nodes"].values()) > 0
    assert found.config.pool.placement == "pool"
    assert here.weighted_wait(found.config) == pytest.approx(end["weighted_wait"], abs=0.1)


def test_the_pool_of_several_types_holds_jobs_wholly():
    with pytest.raises(NotApplicableError, match="jobs start wholly in the pool"):
        propose("hybrid", training(), {"pool_placement": "combined"})
