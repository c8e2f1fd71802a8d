"""Whether jobs without GPUs may use GPU nodes, and whether jobs have nodes alone: the plain answers, and the search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parsim import Workload
from parsim.model.formula import parse as parse_formula
from parsim.model.node_types import Chunk
from qconf.config import KEPT, ConfigError, SiteConfig, dump, parse
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import NotApplicableError, Period, TrainingSet, UnroutableError
from qconf.evaluation.timeline import timeline
from qconf.export.base import exporter
from qconf.history.chunks import with_kept_cores
from qconf.recommend.ladder import RUNGS, given_up, rung_of
from qconf.report.nodes import tables_of
from qconf.report.wording import queue_facts, site_facts
from qconf.strategies import Proposal, baselines, propose
from qconf.strategies.auto.candidates import REQUEST_EXPONENTS, by_requests, keeping_cores, limited, on_gpu_nodes
from qconf.strategies.auto.families import AutoOptions
from qconf.strategies.auto.frame import Frame, policy_of
from qconf.strategies.auto.search import climb
from qconf.strategies.nodes import without_gpus
from tests.qconf.report.test_nodes import BASE, PERIOD, SITE, jobs

TWO = parse(SITE.replace("{name: work}", "{name: work, cores: [1, 64]}") + "  - {name: gpu}\n")
BOUND = TWO.replace(queues=(TWO.queues[0].model_copy(update={"nodes": ("cpu",)}), TWO.queues[1]))


def training(config: SiteConfig = TWO) -> TrainingSet:
    return TrainingSet(Period(replace(jobs(), queue=np.where(np.arange(400) % 3, 0, 1)), config))


def nodes_of(config: SiteConfig) -> dict[str, tuple[str, ...] | None]:
    return {queue.name: queue.nodes for queue in config.queues}


def test_baselines_are_compared_where_there_are_gpu_nodes() -> None:
    assert baselines(TWO)[-2:] == ("gpu-nodes-open", "gpu-nodes-closed")
    assert baselines(TWO.with_all_alike()) == baselines()
    assert propose("gpu-nodes-open", training()).config == TWO
    assert nodes_of(propose("gpu-nodes-closed", training()).config) == {"work": ("cpu",), "gpu": None}
    assert nodes_of(propose("gpu-nodes-open", training(BOUND)).config) == {"work": None, "gpu": None}
    assert propose("gpu-nodes-closed", training(BOUND)).config == BOUND


@pytest.mark.parametrize("name", ["gpu-nodes-open", "gpu-nodes-closed"])
def test_sites_without_gpu_nodes_have_none(name: str) -> None:
    alike = training(TWO.with_all_alike())
    with pytest.raises(NotApplicableError, match="no queue may use GPU nodes and others"):
        propose(name, alike)
    assert list(on_gpu_nodes(alike, alike.base)) == []


def test_queues_whose_jobs_take_gpus_keep_their_nodes() -> None:
    assert without_gpus(training()).tolist() == [True, False]
    assert without_gpus(TrainingSet(Period(jobs(), BASE))).tolist() == [False]
    silent = Period(replace(jobs(), request=None, requests=()), BASE)  # the log tells nothing of GPUs
    assert without_gpus(TrainingSet(silent)).tolist() == [False]


def test_a_job_that_other_nodes_cannot_hold_keeps_them_open() -> None:
    wide = training()
    workload = wide.workload
    cores = np.where(np.arange(400) == 1, 65, workload.cores)
    request = np.where(np.arange(400) == 1, -1, workload.request)
    wide = TrainingSet(Period(replace(workload, cores=cores, request=request), TWO))
    with pytest.raises(NotApplicableError, match="1 jobs fit on no other nodes"):
        propose("gpu-nodes-closed", wide)
    assert all("no GPU nodes" not in what for what, _ in on_gpu_nodes(wide, TWO))
    assert wide.period.routed(BOUND).queue[1] == 1  # the other queue has nodes for it
    every = BOUND.replace(queues=tuple(queue.model_copy(update={"nodes": ("cpu",)}) for queue in BOUND.queues))
    with pytest.raises(UnroutableError, match="jobs fit no queue"):
        wide.period.routed(every)


def test_the_short_part_of_a_queue_may_use_gpu_nodes() -> None:
    found = dict(on_gpu_nodes(training(), TWO))
    assert list(found) == ["work on no GPU nodes", *(f"work on GPU nodes up to {h}h" for h in (1, 2, 4, 8))]
    config = found["work on GPU nodes up to 4h"]
    assert nodes_of(config) == {"work-2": None, "work": ("cpu",), "gpu": None}
    workload = training().period.routed(config)
    short = (np.arange(400) % 3 > 0) & (workload.walltime <= 4 * 3600)
    assert (np.array(config.names, dtype=object)[workload.queue] == "work-2").tolist() == short.tolist()
    places = training().period.simulate(config).place
    assert set(places[~short & (workload.queue == 1)].tolist()) == {0}
    assert next(iter(dict(on_gpu_nodes(training(BOUND), BOUND)))) == "work on GPU nodes too"


def test_a_queue_with_limits_is_not_split() -> None:
    queues = (TWO.queues[0].model_copy(update={"max_run": 9}), TWO.queues[1])
    assert len(list(on_gpu_nodes(training(), TWO.replace(queues=queues)))) == 1


KEEPS = parse(
    SITE.replace("gpus: 4}", "gpus: 4, kept_per_gpu: 3}").replace("{name: work}", "{name: work, nodes: [gpu]}")
)


def test_jobs_without_gpus_leave_cores_for_them() -> None:
    assert dump(KEEPS).splitlines()[3].endswith("gpus: 4, kept_per_gpu: 3}")
    assert parse(dump(KEEPS)) == KEEPS
    (cpu, gpu) = KEEPS.system().node_types
    assert (cpu.amount(KEPT), gpu.amount(KEPT)) == (16, 4)
    assert KEPT not in dict(BASE.system().node_types[1].resources)
    # Of each kind eight jobs at once, of 4 cores: with GPUs two on a node, without them one.
    requests = [(Chunk(1, 4, {"gpus": 2}),), (Chunk(1, 4),)]
    for request, expected in ((0, 4), (1, 2), (-1, 2)):
        at_once = Workload([0] * 8, [4] * 8, [9] * 8, [9] * 8, request=[request] * 8, requests=requests)
        base = KEEPS.replace(nodes=BASE.nodes)
        found = Period(at_once, base).simulate(KEEPS)
        assert (found.start == 0).sum() == expected
        assert Proposal(KEEPS).verify(Period(at_once, base), found) == []
        assert (Period(at_once, base).simulate(base).start == 0).sum() == (4 if request == 0 else 8)


def test_what_a_job_leaves_is_taken_back() -> None:
    requests = [(Chunk(1, 4, {"gpus": 2}),), (Chunk(1, 4), Chunk(1, 2, {"gpus": 1})), (Chunk(2, 4, {"memory": 5}),)]
    request, cores = np.array([0, 1, 2, -1, -1]), np.array([4, 6, 8, 3, 96])
    number, found = with_kept_cores(request, cores, requests, KEEPS)
    assert found == [*requests[:2], (Chunk(2, 4, {"memory": 5, KEPT: 4}),), (Chunk(3, 1, {KEPT: 1}),)]
    assert number.tolist() == [0, 1, 2, 3, -1]
    number, back = with_kept_cores(number, cores, found, BASE)
    assert back[:3] == requests
    assert back[3] == (Chunk(3, 1),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SITE.replace("gpus: 4}", "gpus: 4, kept_per_gpu: 5}"), "5 cores for each of 4 GPUs, on nodes of 16 cores"),
        (SITE.replace("gpus: 4}", "kept_per_gpu: 1}"), "1 cores for each of 0 GPUs"),
        (SITE.replace("gpus: 4}", f"gpus: 4, resources: {{{KEPT}: 1}}}}"), "is what kept_per_gpu makes"),
        (
            SITE.replace("gpus: 4}", "gpus: 4, kept_per_gpu: 1, exclusive: true}"),
            "keeps cores for other jobs on nodes that a job has alone",
        ),
        (SITE.replace("gpus: 4}", "gpus: 4, kept_per_gpu: some}"), "the cores that jobs without GPUs leave for each"),
    ],
)
def test_cores_that_cannot_be_kept(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


def test_kept_cores_are_tried_and_exported() -> None:
    found = dict(keeping_cores(training(), TWO))
    assert list(found) == [f"jobs without GPUs leave {n} cores for each GPU" for n in (1, 2, 3)]
    assert list(keeping_cores(training(BOUND), BOUND)) == []
    leaves = found["jobs without GPUs leave 2 cores for each GPU"]
    assert RUNGS[rung_of(TWO, leaves)] == "boundaries"
    assert fixed_violations(TWO.replace(fixed=("nodes",)), leaves) == ["nodes"]
    outcomes = [Outcome(training().period, training().period.simulate(config)) for config in (TWO, leaves)]
    kept = outcomes[1].summary.nodes["gpu"].resources[KEPT]
    assert kept["there"] == 16
    for before, after in (outcomes, outcomes[::-1]):
        assert len(next(tables_of(before.summary.nodes, after.summary.nodes)).rows) == 10
    assert timeline(outcomes[1]).by_type.keys() == timeline(outcomes[0]).by_type.keys()
    names = {"cpu": "c[1-9]", "gpu": "g[1-9]"}
    named = [each.model_copy(update={"hosts": names[each.name].replace("9", str(each.count))}) for each in leaves.nodes]
    assert "qconf_kept.py" in exporter("pbs")().export(leaves.replace(nodes=tuple(named))).files


def test_bindings_are_boundaries_and_may_be_fixed() -> None:
    assert RUNGS[rung_of(TWO, BOUND)] == "boundaries"
    assert fixed_violations(TWO.replace(fixed=("queues.*.nodes",)), BOUND) == ["queues.work.nodes"]
    assert queue_facts(BOUND.queues[0], BOUND)["nodes"] == "cpu"
    assert "nodes" not in queue_facts(TWO.queues[0], TWO.with_all_alike())
    assert BOUND.reach(BOUND.queues[0]) == 64


def test_the_search_tries_them() -> None:
    found = climb(TrainingSet(training().period.between(0, 3 * 86400)), AutoOptions())
    assert found["nodes"].config.queues != TWO.queues
    assert found["nodes"].title.startswith("work on ")


def test_wide_jobs_that_the_queue_admits_keep_them_open() -> None:
    wide = TWO.replace(queues=(TWO.queues[0].model_copy(update={"cores": (1, 96)}), TWO.queues[1]))
    found = climb(TrainingSet(training(wide).period.between(0, 3 * 86400)), AutoOptions())
    assert "nodes" not in found
    why = {each["with"]: each["why"] for each in found[""].decisions if each["step"] == "not tried"}
    assert why["work on no GPU nodes"] == "jobs of work wider than 64 cores would never start"


def test_gpus_of_a_queue_are_limited_where_several_take_them() -> None:
    here = training()
    assert [what for what, _ in limited(here, TWO) if "GPUs" in what] == []  # the jobs of one queue alone take them
    several = TrainingSet(Period(replace(jobs(), queue=np.arange(400) % 2), TWO))
    tried = {what: config for what, config in limited(several, TWO) if "GPUs" in what}
    gpus = sum(each.count * each.gpus for each in TWO.nodes)
    assert tried
    for what, config in tried.items():
        (throttle,) = config.throttles
        share = 0.6 if "60 %" in what else 0.8
        assert throttle.max_run_resources == {"gpus": int(share * gpus)}
        assert what.startswith(f"{throttle.queue} on at most")
        assert fixed_violations(TWO, config) == []
        fixed = TWO.replace(fixed=(f"queues.{throttle.queue}.max_run_resources",))
        assert fixed_violations(fixed, config) == [f"queues.{throttle.queue}.max_run_resources"]
        assert fixed_violations(config, TWO) == ["throttles"]  # none is taken away
        assert f"{int(share * gpus)} GPUs" in queue_facts(config.queue(throttle.queue or ""), config)["running at most"]
        assert (several.period.simulate(config).start >= several.workload.submit).all()


ALONE = parse(SITE.replace("gpus: 4}", "gpus: 4, exclusive: true}"))
OF_QUEUE = parse(SITE.replace("{name: work}", "{name: work, exclusive: true}"))


@pytest.mark.parametrize("base", [ALONE, OF_QUEUE])
def test_shared_or_alone(base: SiteConfig) -> None:
    training = TrainingSet(Period(jobs(), base))
    assert {"nodes-shared", "nodes-exclusive"} <= {*baselines(base)}
    shared = propose("nodes-shared", training).config
    assert shared == BASE
    alone = propose("nodes-exclusive", training).config
    assert all(each.exclusive for each in alone.nodes)
    waits = [training.period.simulate(each).wait.mean() for each in (shared, base, alone)]
    assert waits[0] < waits[1] <= waits[2]
    assert (RUNGS[rung_of(base, shared)], given_up(base, shared)) == ("policy", ["sharing"])
    assert given_up(base.replace(policy=("sharing",)), shared) == []


def test_sites_whose_nodes_are_shared_or_alike_have_no_such_baseline() -> None:
    assert not {"nodes-shared", "nodes-exclusive"} & {*baselines(BASE)}
    alike = BASE.with_all_alike()
    with pytest.raises(NotApplicableError, match="the site has no types of nodes"):
        propose("nodes-shared", TrainingSet(Period(jobs(), alike)))


@pytest.mark.parametrize("base", [ALONE, OF_QUEUE])
def test_the_search_tries_to_share_what_is_not_fixed(base: SiteConfig) -> None:
    period = Period(jobs(), base)
    assert policy_of(period) == ("sharing",)
    assert Frame(frozenset({"sharing"})).config(period, "fcfs") == BASE
    fixed = base.replace(fixed=("nodes", "queues.work.exclusive"))
    assert policy_of(Period(jobs(), fixed)) == ()


def test_what_the_report_says() -> None:
    assert site_facts(ALONE)["nodes that each job has alone"] == "gpu"
    assert queue_facts(OF_QUEUE.queues[0], OF_QUEUE)["nodes"] == "all, each job alone"
    assert "nodes that each job has alone" not in site_facts(BASE)


def test_factors_are_of_what_the_machine_has_and_jobs_ask_for() -> None:
    found = dict(by_requests(TrainingSet(PERIOD)))
    assert len(found) == 2 * len(REQUEST_EXPONENTS)
    assert found["jobs with GPUs earlier, by power 1"] == "(1 + ngpus) ** 1"
    assert found["jobs with memory later, by power 0.5"] == f"(1 + mem / {64 * 1024**2}) ** -0.5"
    alike = Period(PERIOD.workload, BASE.with_all_alike())
    assert list(by_requests(TrainingSet(alike))) == []
    without = Period(replace(jobs(), request=None, requests=()), BASE)
    assert list(by_requests(TrainingSet(without))) == []


def test_the_search_tries_factors_behind_its_order() -> None:
    training = TrainingSet(PERIOD.between(0, 3 * 86400))
    found = climb(training, AutoOptions())
    assert {"order", "requests"} <= found.keys()
    formula = parse_formula(found["requests"].config.order)
    assert formula.uses_requests
    assert found["requests"].config.order.endswith(found["order"].config.order)
    assert climb(training, AutoOptions(orders="multifactor")).keys().isdisjoint({"requests"})
