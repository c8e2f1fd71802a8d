"""Strategies that divide nodes of several types: what they propose is whole, and jobs have places on it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from parsim import Workload
from parsim.node_types import Chunk
from parsim.placing import has_place
from qconf.config import parse
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet
from qconf.report.story import _chapters
from qconf.strategies import propose
from qconf.strategies.partitioning.carving import TypedSequence, by_queue
from qconf.strategies.partitioning.split_merge import Layout, _driven_out

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
APART = BOUND.replace("name: long,", "name: long, nodes: [cpu],").replace("name: short,", "name: short, nodes: [cpu],")


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


@pytest.mark.parametrize("name", ["dp-nlp", "dqr", "hybrid", "exact"])
@pytest.mark.parametrize("text", [SITE, BOUND])
def test_proposals_are_valid_and_the_same_with_more_workers(name, text):
    here = training(text=text)
    found, same = (propose(name, here, {"workers": workers}) for workers in (1, 2))
    assert found == same
    assert_valid(found, here)
    waits = [here.weighted_wait(propose(each, here).config) for each in ("pp", "dp-nlp", "dqr")]
    assert sorted(waits, reverse=True) == waits


@pytest.mark.parametrize("name", ["dp-nlp", "dqr", "hybrid", "exact"])
def test_queues_without_jobs_and_types_of_one_queue(name):
    text = APART.replace("name: short, nodes: [cpu]", "name: short, nodes: [gpu]")
    idle = "".join(f"  - {{name: {each}, nodes: [cpu], cores: [1, 32], walltime: [0, 1h]}}\n" for each in ("x", "y"))
    here = training(text=text.rstrip() + "\n" + idle)
    assert_valid(propose(name, here), here)
    jobs = here.period.take(here.workload.queue != 1).workload
    base = parse(text.replace("  - {name: short, nodes: [gpu], walltime: [0, 2h]}\n", ""))
    both = TrainingSet(Period(replace(jobs, queue=np.minimum(jobs.queue, 1)), base))
    found = propose(name, both)
    assert_valid(found, both)
    assert name == "hybrid" or found.config.system().owned_nodes[:2] == ({"cpu": 8}, {"gpu": 4})


def test_a_type_is_divided_among_the_queues_whose_jobs_have_places_on_it():
    here = training()
    found = propose("dp-nlp", here, {"slack": 0.95, "tau_util": 1.0})
    assert [(each["type"], each["queues"]) for each in steps(found, "one type")] == [
        ("cpu", ["long", "short"]),
        ("gpu", ["long", "short", "gpu"]),
    ]
    # Of gpu nodes only jobs with GPUs have their first place there: the others have no least size.
    assert [each["low"][:2] for each in steps(found, "bounds")][1] == [0, 0]
    owned = found.config.system().owned_nodes
    assert owned[0].get("gpu", 0) + owned[1].get("gpu", 0) > 0
    tried = steps(found, "decide")
    assert tried[1]["weighted_wait"] <= tried[0]["weighted_wait"] <= tried[0]["pp_weighted_wait"]
    assert here.weighted_wait(found.config) <= tried[1]["weighted_wait"] + 0.1


def test_exact_finds_the_best_division():
    here = training()
    waits = {}
    for short, gpus in product(range(3, 6), product(range(4), repeat=2)):
        if sum(gpus) < 4:
            owned = [{"cpu": 8 - short, "gpu": gpus[0]}, {"cpu": short, "gpu": gpus[1]}, {"gpu": 4 - sum(gpus)}]
            waits[short, gpus] = CachedEvaluator(here).measure(here.base.with_owned(owned)).overall
    found = propose("exact", here)
    assert here.weighted_wait(found.config) == pytest.approx(min(waits.values()))
    assert steps(found, "beside dp-nlp")  # the types are divided one after the other: nothing is proven
    (regret,), (constrained,) = steps(propose("dp-nlp", here), "regret"), steps(found, "constrained")
    assert [regret["proven"], constrained["proven"]] == [False, False]
    assert (
        regret["free_optimum"]
        <= regret["constrained_optimum"]
        <= max(regret["weighted_wait"], constrained["weighted_wait"])
    )


def test_exact_is_proven_where_each_queue_uses_one_type():
    here = training(text=APART)
    found = propose("exact", here)
    divisions = [[{"cpu": 8 - short}, {"cpu": short}, {"gpu": 4}] for short in range(3, 6)]
    evaluator = CachedEvaluator(here)
    least = min(evaluator.measure(here.base.with_owned(each)).overall for each in divisions)
    assert evaluator.measure(found.config).overall == pytest.approx(least)
    assert [each["proven"] for each in steps(found, "table")] == [True]
    assert not steps(found, "beside dp-nlp")
    dp_nlp = propose("dp-nlp", here)
    (regret,), (constrained,) = steps(dp_nlp, "regret"), steps(found, "constrained")
    assert regret["proven"]
    assert constrained["proven"]
    assert regret["weighted_wait"] == round(here.weighted_wait(dp_nlp.config), 1)
    assert regret["free_optimum"] == round(least, 1)
    assert regret["constrained_optimum"] == constrained["weighted_wait"]
    assert regret["above_free_percent"] >= 0
    within = here.base.with_owned([*constrained["nodes"].values()])
    assert constrained["weighted_wait"] == round(here.weighted_wait(within), 1)


def test_surrogates_are_fitted_where_a_type_has_many_nodes():
    here = training(text=SITE.replace("384", "1408").replace("count: 8", "count: 40"))
    found = propose("dp-nlp", here, {"slack": 0.95, "tau_util": 1.0, "samples": 60, "decide_by": "program"})
    assert [each["epoch"] for each in steps(found, "surrogate") if "epoch" in each] == [1, 2, 3] * 2
    assert_valid(found, here)


def test_present_partitions_of_types_are_kept_where_they_are_better():
    here = training()
    base = here.base.with_owned([{"cpu": 5, "gpu": 1}, {"cpu": 3}, {"gpu": 3}])
    again = propose("dp-nlp", here.under(base), {"tau_util": 0.01})  # bounds that hold the nodes of gpu together
    assert again.config == base
    assert again.decisions[-1]["step"] == "keep"
    fixed = here.under(base.replace(fixed=("queues.gpu.partition",)))
    for name in ("dp-nlp", "dqr", "hybrid"):
        config = propose(name, fixed).config
        assert config.queue("gpu").partition_nodes == base.queue("gpu").partition_nodes
        assert not fixed_violations(fixed.base, config)


def test_splits_divide_each_type_and_merges_keep_to_queues_of_the_same_nodes():
    found = propose("dqr", training(text=APART))
    into = [each["into"] for each in steps(found, "split") if each["queue"] == "gpu" and "into" in each]
    assert into == [["gpu 1 gpu", "gpu-2 3 gpu"]]
    assert {each["queues"] for each in steps(found, "merge")} == {"long + short"}


def test_a_job_whose_queue_loses_its_nodes_is_named():
    here = training()
    layouts = [
        Layout.of(here.base.with_owned(owned))
        for owned in ([{"cpu": 5}, {"cpu": 3}, {"gpu": 4}], [{"cpu": 7}, {"cpu": 1}, {"gpu": 4}])
    ]
    jobs = [here.period.routed(each.config) for each in layouts]
    assert "would have no place in short" in _driven_out(*layouts, *jobs)
    assert _driven_out(layouts[0], layouts[0], jobs[0], jobs[0]) == ""


@pytest.mark.parametrize(("carve", "degradation"), [("search", 1e6), ("live", 1.0), ("partitions", 1.0)])
def test_hybrid_has_a_pool_of_nodes(carve, degradation):
    here, options = training(text=BOUND), {"carve": carve, "degradation": degradation}
    found, same = (propose("hybrid", here, {**options, "workers": workers}) for workers in (1, 2))
    assert found == same
    assert_valid(found, here)
    (end,) = steps(found, "pool")
    assert end["nodes"] == dict(found.config.pool.nodes)
    assert end["cores"] == found.config.pool.cores == 32 * sum(end["nodes"].values()) > 0
    assert found.config.pool.placement == "pool"
    assert here.weighted_wait(found.config) == pytest.approx(end["weighted_wait"], abs=0.1)


def test_the_stages_name_each_type():
    texts = [each.text for each in _chapters(propose("hybrid", training(text=BOUND)).decisions, 2.0)]
    assert sum("in proportion" in text for text in texts) == 1
    assert [text.split(",")[0] for text in texts if "program" in text] == [
        "The weighted program for nodes of cpu",
        "The weighted program for nodes of gpu",
    ]
    assert any(", into long 8 cpu, 1 gpu: " in text for text in texts)
    assert texts[-1].startswith("A pool of 384 cores (8 cpu, 4 gpu) beside long 0, gpu 0: ")


def test_the_pool_of_several_types_holds_jobs_wholly():
    with pytest.raises(NotApplicableError, match="jobs start wholly in the pool"):
        propose("hybrid", training(), {"pool_placement": "combined"})
