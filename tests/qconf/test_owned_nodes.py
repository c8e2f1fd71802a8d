"""Partitions that consist of nodes of several types, in a configuration."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from parsim import State, System, Workload
from qconf.config import ConfigError, load, parse
from qconf.config.writing import dump
from qconf.evaluation.calendar import outages, windows
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.feasibility import fixed_violations
from qconf.evaluation.period import Period, TrainingSet
from qconf.export import exporter
from qconf.history import clean, read
from qconf.recommend.ladder import RUNGS, rung_of
from qconf.report.wording import queue_facts
from qconf.strategies.plain import unpartitioned as whole_machine

SITE = """
machine: {name: m, cores: 192}
nodes:
  - {name: cpu, count: 4, cores: 32}
  - {name: gpu, count: 2, cores: 32, gpus: 4}
mode: partitioned
queues:
  - {name: a, partition: {cpu: 4, gpu: 1}}
  - {name: b, partition: {gpu: 1}, nodes: [gpu]}
"""
DOWN = "downtime: [{{begin: 1970-01-01T00:30, end: 1970-01-01T05:00, partition: {}, types: {{{}: 2}}}}]"


def test_partitions_of_nodes_are_read_and_written():
    site = parse(SITE)
    assert parse(dump(site)) == site
    assert site.system().partition_cores == (160, 32, 0)
    assert site.system().owned_nodes == ({"cpu": 4, "gpu": 1}, {"gpu": 1}, {})
    assert queue_facts(site.queues[0], site)["runs on (cores)"] == "160 (4 cpu, 1 gpu)"
    assert site.with_all_alike().system().partition_cores == (160, 32, 0)


@pytest.mark.parametrize(
    "pool", ["{nodes: {cpu: 2}}", "{nodes: {cpu: 2}, cores: 64}", "{nodes: 2}", "{cores: 64}", "{threshold: 40}"]
)
def test_a_pool_of_several_types_is_refused_once(pool: str):
    text = SITE.replace("mode: partitioned", "mode: hybrid") + f"pool: {pool}\n"
    with pytest.raises(ConfigError) as caught:
        parse(text)
    (problem,) = caught.value.problems
    what = "pool.nodes" if "nodes" in pool else "mode"
    assert problem.path == what
    assert problem.line == (10 if "nodes" in pool else 6)
    assert "nodes of several types have no common pool: write mode: partitioned or shared" in problem.message


@pytest.mark.parametrize("hosts", ["n[2-1]", "n[1-4", "n1-4]", "a,,b", "n[1-2]]", "n[a-b]", ","])
def test_a_host_list_that_cannot_be_read_is_a_mistake(hosts: str, tmp_path: Path):
    path = tmp_path / "site.yaml"
    path.write_text(SITE.replace("count: 4, cores: 32", f"count: 4, cores: 32, hosts: '{hosts}'"))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert f"line 4: nodes[0].hosts = {hosts!r}: is no list of hosts like cpu[01-04],login1" in str(caught.value)


def test_as_many_hosts_are_named_as_there_are():
    with pytest.raises(ConfigError, match=r"line 4: nodes\[0\].hosts = .*: names 3 hosts, and count says 4"):
        parse(SITE.replace("count: 4, cores: 32", "count: 4, cores: 32, hosts: 'n[1-3]'"))
    assert parse(SITE.replace("count: 4, cores: 32", "count: 4, cores: 32, hosts: 'n[1-3],m'")).nodes[0].hosts


@pytest.mark.parametrize("hosts", ["n[01-04]", "a,b,c-1.x,d", "r[0-1]n[0-1]", "n[1,3],n[2,4]"])
def test_host_lists(hosts: str):
    assert parse(SITE.replace("count: 4, cores: 32", f"count: 4, cores: 32, hosts: '{hosts}'")).nodes[0].hosts == hosts


HEADER = "job_id,submit,runtime,walltime,cores,queue,chunks\n"
JOBS = """1,0,3600,3600,32,a,1:ncpus=32
2,0,3600,3600,64,a,2:ncpus=32
3,0,7200,7200,8,b,1:ncpus=8:ngpus=4
4,0,3600,3600,8,b,1:ncpus=8:ngpus=2
5,100,3600,3600,16,b,1:ncpus=16
"""


def training(tmp_path: Path, text: str, jobs: str = JOBS) -> TrainingSet:
    config = parse(text)
    (tmp_path / "log.csv").write_text(HEADER + jobs)
    return TrainingSet(Period.of(clean(read([tmp_path / "log.csv"]), config), config))


SHARED = SITE.replace("mode: partitioned\n", "")
UNBOUND = SHARED.replace("partition: {cpu: 4, gpu: 1}", "").replace("partition: {gpu: 1}, nodes: [gpu]", "")


def test_a_downtime_of_a_partition_that_loses_the_nodes_is_of_the_machine(tmp_path: Path):
    here = training(
        tmp_path,
        SITE.replace(", nodes: [gpu]", "").replace(
            "mode: partitioned", f"mode: partitioned\n{DOWN.format('a', 'cpu')}"
        ),
    )
    assert here.base.with_owned([{"cpu": 4}, {"gpu": 2}]).downtime == here.base.downtime
    lost = here.base.with_owned([{"gpu": 1}, {"cpu": 4, "gpu": 1}])
    assert [each.partition for each in (*here.base.downtime, *lost.downtime)] == ["a", None]
    (window,) = here.period.begun(lost.system()).windows
    assert (window.partition, dict(window.node_types)) == (None, {"cpu": 2})


def test_a_downtime_of_a_whole_partition_is_as_large_on_another_division(tmp_path: Path):
    whole = DOWN.format("a", "cpu").replace(", types: {cpu: 2}", "")
    assert "types" not in whole
    text = SITE.replace(", nodes: [gpu]", "").replace("mode: partitioned", f"mode: partitioned\n{whole}")
    here = training(tmp_path, text)
    for config in (here.base, here.base.with_owned([{"cpu": 1}, {"cpu": 3, "gpu": 2}]), whole_machine(here.base)):
        (window,) = here.period.begun(config.system()).windows
        part = None if config is not here.base else 0
        assert (window.partition, dict(window.node_types)) == (part, {"cpu": 4, "gpu": 1})


def test_a_downtime_of_a_partition_of_cores_is_as_large_on_another_division():
    site = parse("""
machine: {name: m, cores: 100}
mode: partitioned
queues: [{name: a, cores: [1, 10], partition: 40}, {name: b, partition: 60}]
downtime:
  - {begin: 1970-01-01, end: 1970-01-02, partition: a}
  - {begin: 1970-01-01, end: 1970-01-02, partition: b, cores: 90}
""")
    found = outages(site, 0, "UTC")
    for sizes, of in (((40, 60), (0, 1)), ((50, 50), (0, None)), ((30, 70), (None, 1))):
        taken = windows(found, site.with_partitions(sizes).system(), 0)
        assert [(each.partition, each.cores) for each in taken] == [(of[0], 40), (of[1], 60)]
    shared = windows(found, whole_machine(site).system(), 0)
    assert [(each.partition, each.cores) for each in shared] == [(None, 40), (None, 60)]


def test_a_reservation_for_a_queue_on_partitions_is_one(tmp_path: Path):
    course = "downtime: [{begin: 1970-01-01, end: 1970-01-02, types: {gpu: 1}, queue: b}]"
    here = training(tmp_path, SITE.replace("mode: partitioned", f"mode: partitioned\n{course}"))
    (window,) = here.period.begun(here.base.system()).windows
    assert (window.queue, dict(window.node_types)) == (1, {"gpu": 1})


def test_divisions_are_measured_with_downtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = training(tmp_path, f"{UNBOUND}\n{DOWN.format('a', 'cpu')}")
    begun = []

    def simulated(jobs: Workload, system: System, state: State | None = None) -> SimpleNamespace:
        del system
        begun.append(state)
        return SimpleNamespace(wait=np.zeros(len(jobs), dtype=np.int64))

    monkeypatch.setattr("qconf.evaluation.evaluator.simulate", simulated)  # which would compile a version of its own
    CachedEvaluator(here).measure(here.base.with_owned([{"cpu": 3}, {"cpu": 1, "gpu": 2}]))
    assert [[(each.partition, dict(each.node_types)) for each in state.windows] for state in begun] == [
        [(0, {"cpu": 2})] for _ in here.epochs
    ]


def test_types_are_needed():
    alike = SITE.replace(SITE[SITE.index("nodes:\n") : SITE.index("mode:")], "")
    with pytest.raises(ConfigError, match=r"queues\[0\]\.partition = .*: the site has no types of nodes"):
        parse(alike)


@pytest.mark.parametrize(("first", "queue"), [("x", "a-b"), ("x" * 62, "a")])
def test_partitions_are_exported_whatever_their_names_are(first: str, queue: str):
    text = (
        "machine: {name: m, cores: 96, cores_per_node: 32}\n"
        f"nodes: [{{name: {first}, count: 2, cores: 32, hosts: 'c[1-2]'}}, "
        "{name: x-a, count: 1, cores: 32, hosts: g1}]\n"
        f"mode: partitioned\nqueues: [{{name: {queue}, partition: {{{first}: 1}}}}, "
        f"{{name: b, partition: {{{first}: 1, x-a: 1}}}}]\n"
    )
    lines = dict(exporter("slurm")().export(parse(text)).files)["partitions.conf"].splitlines()
    assert [line.split()[1] for line in lines if line.startswith("Part")] == ["Nodes=c1", "Nodes=c2,g1"]


def test_nodes_that_change_hands_make_other_partitions():
    base = parse(UNBOUND).with_owned([{"cpu": 3, "gpu": 1}, {"cpu": 1, "gpu": 1}], fixed=("queues.a.partition",))
    other = base.with_owned([{"cpu": 2, "gpu": 2}, {"cpu": 2}])
    assert [queue.partition for queue in base.queues] == [queue.partition for queue in other.queues]
    assert RUNGS[rung_of(base, other)] == "partitions and pool"
    assert fixed_violations(base, other) == ["queues.a.partition"]
