"""A slurm.conf as a beginning: what a configuration derived from it holds, and what is warned about."""

import json

import pytest

from parsim.workload import MAX_DURATION
from qconf.config import dump, parse
from qconf.errors import InputError
from qconf.export import exporter
from qconf.export.nodes import read_nodes
from qconf.export.slurm.init import derive
from tests.beside import SHARED
from tests.qconf.export.sites import HYBRID, slurm_files

REAL = SHARED / "slurm" / "slurm.conf.in"


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not here")
def test_a_real_file():
    found = derive(REAL)
    config = found.config
    assert (config.machine.cores, config.machine.cores_per_node, config.mode) == (35232, 24, "partitioned")
    assert [(q.name, q.partition, q.cores, q.walltime[1], q.priority) for q in config.queues] == [
        ("idqueue", 432, (1, 264), 7200, 100),
        ("small", 2400, (1, 1032), 86400, 50),
        ("small72", 1920, (1, 1032), 259200, 40),
        ("medium", 7200, (1033, 8208), 86400, 50),
        ("large", 22800, (8209, 22800), 86400, 50),
        ("common", 480, (1, 480), 259200, 100),
    ]
    assert parse(dump(config)) == config


NODES = "NodeName=DEFAULT CPUs=8 \\\n  RealMemory=1000 # comment\nNodeName=n[1-10,12],m3\n"


def from_text(tmp_path, text):
    (tmp_path / "slurm.conf").write_text(text)
    return derive(tmp_path / "slurm.conf")


def test_shared_and_partitioned_machines(tmp_path):
    found = from_text(
        tmp_path,
        NODES
        + "PartitionName=DEFAULT MaxTime=90 Nodes=ALL\nPartitionName=a\n"
        + "PartitionName=b QOS=x\nPartitionName=c State=DOWN\n",
    )
    assert found.config.mode == "shared"
    assert found.config.names == ("a", "b")
    assert found.config.machine.cores == 96
    assert found.config.queues[0].walltime == (0, 5400)
    assert len(found.warnings) == 2
    found = from_text(
        tmp_path, NODES + "PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n12,m3\nPartitionName=c Nodes=ALL\n"
    )
    assert found.config.mode == "partitioned"
    assert [q.reservation for q in found.config.queues] == [False, False, True]
    found = from_text(tmp_path, NODES + "PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n[9-10]\n")
    assert found.config.mode == "shared"
    assert "share some nodes" in found.warnings[0]


@pytest.mark.parametrize(
    ("text", "seconds", "warning"),
    [
        ("", 0, ""),
        ("SchedulerParameters=bf_continue", 0, ""),
        ("SchedulerParameters=bf_continue,bf_min_age_reserve=600,defer", 600, ""),
        ("schedulerparameters = BF_Min_Age_Reserve=2592000 # a month", 2592000, ""),
        ("SchedulerParameters=bf_continue\nSchedulerParameters+=bf_min_age_reserve=600", 600, ""),
        ("SchedulerParameters=bf_min_age_reserve=600\nSchedulerParameters=defer", 0, ""),
        ("SchedulerParameters=bf_min_age_reserve=2592001", 0, "bf_min_age_reserve=2592001 is no number"),
        ("SchedulerParameters=bf_min_age_reserve=-1", 0, "bf_min_age_reserve=-1 is no number"),
    ],
)
def test_the_reservation_delay_is_read(text, seconds, warning, tmp_path):
    found = from_text(tmp_path, f"{NODES}{text}\nPartitionName=a Nodes=ALL\n")
    assert found.config.reserve_after == seconds
    assert warning in " ".join(found.warnings)
    assert bool(found.warnings) == bool(warning)


def test_a_warning_where_the_reservation_delay_plays_no_part(tmp_path):
    parts = "PartitionName=a Nodes=n[1-10]\nPartitionName=b Nodes=n12,m3\n"
    found = from_text(tmp_path, f"{NODES}SchedulerParameters=bf_min_age_reserve=600\n{parts}")
    assert (found.config.mode, found.config.reserve_after) == ("partitioned", 600)
    assert found.warnings == ("bf_min_age_reserve: as reserve_after it plays no part with mode partitioned",)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:15", 1815),
        ("2:30:15", 9015),
        ("1-2", 93600),
        ("1-2:30", 95400),
        ("1-2:30:15", 95415),
        ("UNLIMITED", MAX_DURATION),
    ],
)
def test_times_are_read_as_slurm_does(text, seconds, tmp_path):
    found = from_text(tmp_path, NODES + f"PartitionName=a Nodes=ALL MaxTime={text}\n")
    assert found.config.queues[0].walltime == (0, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PartitionName=a Nodes=x",
        NODES,
        NODES + "PartitionName=a Nodes=ALL MaxTime=soon",
        NODES + "PartitionName=a Nodes=n[5-1]",
        "NodeName=a CPUs=x",
    ],
)
def test_what_is_refused(text, tmp_path):
    with pytest.raises(InputError, match=r"slurm\.conf"):
        from_text(tmp_path, text)


def test_export_and_back_gives_the_same_partitions(tmp_path):
    nodes = read_nodes("n[1-12]")
    config = parse(HYBRID).with_partitions([40, 56, 0])
    first = slurm_files(config, nodes=nodes)["partitions.conf"]
    again = from_text(tmp_path, "NodeName=n[1-12] CPUs=8\n" + first).config
    assert again.names == config.names
    assert [q.partition for q in again.queues] == [40, 56, 0]
    assert [q.reservation for q in again.queues] == [False, False, True]
    assert json.dumps([q.walltime for q in again.queues]) == json.dumps([q.walltime for q in config.queues])


def test_the_reservation_delay_comes_back(tmp_path):
    config = parse("{machine: {cores: 96, cores_per_node: 8}, reserve_after: 2h, queues: [{name: a, cores: [1, 96]}]}")
    line = "SchedulerParameters=bf_min_age_reserve=7200\n"
    found = from_text(tmp_path, "NodeName=n[1-12] CPUs=8\n" + line + slurm_files(config)["partitions.conf"])
    assert (found.config.mode, found.config.reserve_after, found.warnings) == ("shared", 7200, ())


def test_nodes_are_refused(tmp_path):
    with pytest.raises(InputError, match="names its nodes itself"):
        exporter("slurm").of(nodes="n[1-2]").read(tmp_path / "slurm.conf")
