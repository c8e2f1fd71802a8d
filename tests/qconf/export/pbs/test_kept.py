"""Cores that jobs without GPUs leave to others, as a resource of nodes that a hook has them ask for, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qconf.config import parse
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Scheduler, Server
from tests.qconf.export.pbs.model import PbsServer, commands
from tests.qconf.export.pbs.running import asking, run_hook
from tests.qconf.export.pbs.test_types import PLAIN, around, held_by
from tests.qconf.export.sites import FRESH, pbs_files

SITE = """machine: {name: pbs, cores: 192, cores_per_node: 32}
reserve: nodes
nodes:
  - {name: c, count: 4, cores: 32, memory: 192gb, hosts: "c[1-4]"}
  - {name: g, count: 2, cores: 32, memory: 192gb, gpus: 4, kept_per_gpu: 2, hosts: "g[1-2]"}
queues:
  - {name: work, cores: [1, 192], walltime: [0, 48h]}
"""
PARTED = """mode: partitioned
queues:
  - {name: work, cores: [1, 160], walltime: [0, 48h], partition: {c: 4, g: 1}}
  - {name: learn, cores: [1, 32], walltime: [0, 48h], partition: {g: 1}}
"""
GROUPS = {"c": (4, PLAIN), "g": (2, {**PLAIN, "ngpus": "4"})}


def test_nodes_of_partitions_have_what_is_left():
    server = PbsServer(FRESH)
    server.load("create resource ngpus type = long, flag = nh")
    config = parse(SITE.partition("queues:")[0] + PARTED)
    files = pbs_files(config, current=server.printed(), nodes=held_by(server, GROUPS))
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3,c4,g1 resources_available.q_work = True",
        "set node g2 resources_available.q_learn = True",
        "set node c1,c2,c3,c4 resources_available.cores_without_gpus = 32",
        "set node g1,g2 resources_available.cores_without_gpus = 24",
    ]
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    again = pbs_files(config, current=server.printed(), nodes=held_by(server, GROUPS))
    assert [commands(again[name]) for name in ("queues.qmgr", "nodes.qmgr")] == [[], []]


def test_nodes_have_what_is_left_and_it_comes_back_and_goes_with_the_undo():
    server = PbsServer(FRESH)
    server.load("create resource ngpus type = long, flag = nh")
    config = parse(SITE)
    files, found, _ = around(server, config, GROUPS)
    assert commands(files["nodes.qmgr"]) == [
        "set node c1,c2,c3,c4 resources_available.cores_without_gpus = 32",
        "set node g1,g2 resources_available.cores_without_gpus = 24",
    ]
    assert "create resource cores_without_gpus type=long, flag=nh" in commands(files["queues.qmgr"])
    assert 'vnode, aoe, eoe, cores_without_gpus, ngpus"' in files["sched_config.changes"]
    assert "python3 -I qconf-pbs ask\n" in files["PLAN.md"]
    assert "python3 -I qconf-pbs ask --without cores_without_gpus\n" in files["PLAN.md"].partition("\n## Undo\n")[2]
    assert "pbsnodes -av | grep 'cores_without_gpus'" in files["PLAN.md"]
    assert found.config == config
    assert not any("cores_without_gpus" in warning for warning in found.warnings)
    for name in ("queues.qmgr", "nodes.qmgr"):
        server.load(files[name])
    nodes = held_by(server, GROUPS)
    more = [replace(node, resources={**node.resources, "cores_without_gpus": "40"}) for node in nodes]
    assert not derive(Server.parse(server.printed()), nodes=more).config.keeps_cores
    unread = Scheduler({"resources": {"non_prime": "ncpus, mem, ngpus"}})
    of_line = derive(Server.parse(server.printed()), nodes=nodes, scheduler=unread)
    assert not of_line.config.keeps_cores
    second = pbs_files(config, current=server.printed(), nodes=nodes)
    none = SITE.replace(", kept_per_gpu: 2", "")
    gone = exporter("pbs")(current=Server.parse(server.printed())).export(parse(none))
    assert any(note.startswith("An earlier export keeps cores") for note in gone.notes)
    steps, undo = gone.files["PLAN.md"].split("\n## Undo\n")
    assert "qconf-pbs uninstall\npython3 -I qconf-pbs ask --without cores_without_gpus\n" in steps
    assert r"s/, *cores_without_gpus//' sched_config.before" in steps
    assert "qconf-pbs reinstall\npython3 -I qconf-pbs ask\n" in undo
    assert "reinstall\npython3 -I qconf-pbs ask" not in second["PLAN.md"]


def test_what_has_no_form_is_refused():
    with pytest.raises(ExportError, match="nodes g: queues are bound to nodes, and these have no names"):
        pbs_files(parse(SITE.replace(', hosts: "g[1-2]"', "")))
    with pytest.raises(ExportError, match="has a resource cores_without_gpus already that is no whole number"):
        pbs_files(parse(SITE), current=FRESH + "create resource cores_without_gpus type = string\n")


def after_hook(monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], before: dict[str, Any] | None = None):
    names = ("select", "nodes", "ncpus", "ngpus", "cores_without_gpus")
    job, was = asking(names, wanted), None if before is None else asking(names, before)
    run_hook(monkeypatch, pbs_files(parse(SITE))["qconf_kept.py"], job, was)
    return {name: value for name, value in job.Resource_List.items() if value is not None}


@pytest.mark.parametrize(
    ("select", "changed"),
    [
        ("2:ncpus=16:mem=4gb+ncpus=2", "2:ncpus=16:mem=4gb:cores_without_gpus=16+1:ncpus=2:cores_without_gpus=2"),
        ("3", "3:cores_without_gpus=1"),
        ("1:ncpus=4:cores_without_gpus=0", "1:ncpus=4:cores_without_gpus=4"),  # of the user's own
        ("1:ncpus=4:ngpus=1:cores_without_gpus=4+2:ncpus=8", "1:ncpus=4:ngpus=1+2:ncpus=8"),
        ("1:ncpus=4:ngpus=0", "1:ncpus=4:ngpus=0:cores_without_gpus=4"),
        ("1:ncpus=4:ngpus=00", "1:ncpus=4:ngpus=00:cores_without_gpus=4"),
        ("128:ncpus=1", "128:ncpus=1:cores_without_gpus=1"),
        ("129:ncpus=1", "129:ncpus=1"),  # wider than each type: as wide jobs of the simulator take no account
    ],
)
def test_the_hook_has_chunks_ask_for_what_is_left(monkeypatch: pytest.MonkeyPatch, select: str, changed: str):
    assert after_hook(monkeypatch, {"select": select}) == {"select": changed}
    assert after_hook(monkeypatch, {"select": select}, {}) == {"select": changed}


@pytest.mark.parametrize(
    ("wanted", "before", "left"),
    [
        ({}, None, 1),
        ({"ncpus": 4}, None, 4),
        ({"ncpus": 4, "ngpus": 2}, None, 0),
        ({"nodes": "2:ppn=4"}, None, None),
        ({"ncpus": 8}, {"ncpus": 4}, 8),
        ({"ncpus": 8}, {"ncpus": 4, "ngpus": 1}, 0),
        ({"cores_without_gpus": 0}, {"ncpus": 4}, 4),
        ({}, {"ncpus": 4}, None),  # it changes something else
    ],
)
def test_the_hook_on_jobs_without_a_select(monkeypatch: pytest.MonkeyPatch, wanted: dict, before: dict, left: int):
    assert after_hook(monkeypatch, wanted, before).get("cores_without_gpus") == left
