"""Partitions and a pool that consist of nodes of several types, in a configuration."""

from __future__ import annotations

import pytest

from qconf.config import ConfigError, parse
from qconf.config.writing import dump
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.report.wording import queue_facts

SITE = """
machine: {name: m, cores: 192}
nodes:
  - {name: cpu, count: 4, cores: 32}
  - {name: gpu, count: 2, cores: 32, gpus: 4}
mode: hybrid
queues:
  - {name: a, partition: {cpu: 2, gpu: 1}}
  - {name: b, partition: {gpu: 1}, nodes: [gpu]}
pool: {nodes: {cpu: 2}, threshold: 1}
"""


def test_partitions_of_nodes_are_read_and_written():
    site = parse(SITE)
    assert parse(dump(site)) == site
    assert site.system().partition_cores == (96, 32, 64)
    assert site.system().owned_nodes == ({"cpu": 2, "gpu": 1}, {"gpu": 1}, {"cpu": 2})
    assert queue_facts(site.queues[0], site)["runs on (cores)"] == "96 (2 cpu, 1 gpu)"
    assert site.with_all_alike().system().partition_cores == (96, 32, 64)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "{gpu: 1}, nodes",
            "{gpu: 5}, nodes",
            r"queues\[1\].partition = {gpu: 5}: 5 nodes of gpu, of which there are 2",
        ),
        ("{gpu: 1}, nodes", "{gpus: 1}, nodes", "gpus: no nodes have this name, did you mean gpu"),
        ("{cpu: 2}, thr", "{cpu: 1}, thr", "partitions and pool have 3 nodes of cpu, of 4: 1 missing"),
        ("nodes: [gpu]", "nodes: [cpu]", "has gpu, which its jobs may not use: they are bound to cpu"),
        ("{gpu: 1}, nodes", "2, nodes", "write how many of each, like {cpu: 1}"),
        ("{gpu: 1}, nodes", "{gpu: x}, nodes", "not allowed here: a whole number of cores"),
        ("{nodes: {cpu: 2}", "{cores: 64", "write pool.nodes, how many of each"),
        ("{nodes: {cpu: 2}", "{cores: 64, nodes: {cpu: 2}", "leave one of the two out"),
        ("threshold: 1", "placement: combined", "placement = combined: is pool where nodes are of several types"),
        ("partition: {gpu: 1}", "reservation: true", "no job spans partitions where nodes are of several types"),
        ("gpus: 4}", "gpus: 4, kept_per_gpu: 1}", "kept_per_gpu = 1: goes with mode: shared"),
        ("partition: {gpu: 1}", "partition_nodes: {gpu: 1}", "no such key: partition takes them"),
    ],
)
def test_mistakes(old: str, new: str, words: str):
    with pytest.raises(ConfigError, match=words):
        parse(SITE.replace(old, new))


@pytest.mark.parametrize("system", ["pbs", "slurm"])
def test_they_are_not_exported(system: str):
    with pytest.raises(ExportError, match="partitions of several types of nodes are simulated, and not exported"):
        exporter(system)().export(parse(SITE))


def test_types_are_needed():
    alike = SITE.replace(SITE[SITE.index("nodes:\n") : SITE.index("mode:")], "")
    with pytest.raises(ConfigError, match=r"pool\.nodes = {cpu: 2}: the site has no types of nodes"):
        parse(alike)
