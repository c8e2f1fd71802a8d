"""Strategies that divide cores say so where nodes are of several types."""

from __future__ import annotations

import numpy as np
import pytest

from parsim import Workload
from parsim.model.node_types import Chunk
from qconf.config import parse
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.strategies import propose

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
BOUND = SITE.replace("name: gpu, wall", "name: gpu, nodes: [gpu], wall")


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


@pytest.mark.parametrize(
    "owned",
    [
        [{"cpu": 5}, {"cpu": 3, "gpu": 1}, {"gpu": 3}],
        [{"cpu": 4, "gpu": 1}, {"cpu": 4, "gpu": 1}, {"gpu": 2}],
        [{"gpu": 3}, {"cpu": 8}, {"gpu": 1}],
    ],
)
def test_partitions_of_types_do_not_interact(owned):
    here = training()
    config = here.base.with_owned(owned)
    evaluator = CachedEvaluator(here)
    assert evaluator.measure(config).overall == pytest.approx(here.weighted_wait(config))
    means = [epoch.simulate(config).wait.mean() for _, epoch in here.epochs]
    assert evaluator.by_epoch(config).sum(axis=1) == pytest.approx(means)


@pytest.mark.parametrize("name", ["pp", "static", "dp-nlp", "dqr", "hybrid", "exact", "mqb"])
def test_what_divides_cores_alone_says_so(name):
    with pytest.raises(NotApplicableError, match=f"nodes are of several types, and {name} goes by numbers of cores"):
        propose(name, training())
