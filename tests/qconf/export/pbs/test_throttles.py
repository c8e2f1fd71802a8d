"""Throttles to PBS and back: limits of the server and of queues by scope, and what other limits become of."""

from __future__ import annotations

from pathlib import Path

import pytest

from qconf.config import SiteConfig, parse
from qconf.errors import ExportError
from qconf.export import exporter
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.listings import exported_for, listing

PBS = exporter("pbs")
SITE = """machine: {name: m, cores: 128}
held_jobs: reserve
queues:
  - {name: work, cores: [1, 16], walltime: [0, 24h], max_run: 20, max_user_cores: 64}
  - {name: wide, cores: [17, 128], walltime: [0, 24h], max_user_run: 3}
throttles:
  - {max_run: 200}
  - {each: user, max_run: 10, max_run_cores: 256}
  - {user: bob, max_run: 12}
  - {each: group, max_run_cores: 100}
  - {each: user, queue: work, max_run: 4}
  - {user: bob, queue: work, max_run: 9, max_queued: 30}
  - {group: physics, queue: work, max_run_cores: 100}
"""
SERVER = listing(
    "work: max_run = [u:ann=7]", "max_run = [o:PBS_ALL=300]", "max_run += [p:atlas=3]", "default_queue = work"
)


def back(folder: Path) -> SiteConfig:
    """Return what is read of a server that has an export."""
    return PBS().read(folder / "queues.qmgr", cores=128, name="m").config


def test_round_trip(tmp_path: Path):
    config = parse(SITE)
    exported_for(tmp_path, config)
    found = back(tmp_path)
    assert {each.what: each for each in found.throttles} == {each.what: each for each in config.throttles}
    limits = [(queue.max_run, queue.max_run_cores, queue.max_user_run, queue.max_user_cores) for queue in found.queues]
    assert limits == [(20, None, None, 64), (None, None, 3, None)]
    # In a queue the lesser of both limits of users counts.
    held = exported_for(tmp_path, parse(SITE.replace("max_user_cores: 64", "max_user_run: 6")))["queues.qmgr"]
    assert 'set queue work max_run = "[o:PBS_ALL=20],[u:PBS_GENERIC=4],[u:bob=6]"' in held


def test_a_server_s_own_limits_go_where_throttles_come_and_return_with_the_undo(tmp_path: Path):
    files = exported_for(tmp_path, parse(SITE), SERVER)
    assert '"[o:PBS_ALL=200],[p:atlas=3],[u:PBS_GENERIC=10],[u:bob=12]"' in files["queues.qmgr"]
    assert "u:ann" not in files["queues.qmgr"]
    server, before = Server.parse(SERVER), Server.parse(SERVER).attributes["max_run"]
    for text in (files["queues.qmgr"], files["rollback.qmgr"]):
        server.attributes |= Server.parse(text, "x").attributes
    assert server.attributes["max_run"] == before
    said = "Limits that the configuration lacks stay, and were not simulated"
    assert f"{said}: qos atlas." in files["PLAN.md"]
    files = exported_for(tmp_path, parse(SITE.partition("throttles")[0]), SERVER)
    assert "set server max_run" not in files["queues.qmgr"]
    assert "[u:ann=7]" in files["queues.qmgr"]
    assert f"{said}: all jobs, qos atlas, user ann in queue work." in files["PLAN.md"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{max_run_core_seconds: 900}", "no form in PBS"),
        ("{max_eligible: 9}", "no form in PBS"),
        ('{user: "a b", max_run: 1}', "cannot write"),
    ],
)
def test_what_has_no_form_is_refused(line: str, words: str):
    with pytest.raises(ExportError, match=words):
        PBS().export(parse(SITE.partition("throttles")[0] + f"throttles: [{line}]\n"))


def test_what_a_queue_may_hold_is_kept_unless_there_are_throttles(tmp_path: Path):
    server = SERVER.replace("[u:ann=7]", "[u:ann=7]\nset queue work max_queued = [o:PBS_ALL=90]")
    files = exported_for(tmp_path, parse(SITE.partition("throttles")[0]), server)
    assert "unset queue work max_queued" not in files["queues.qmgr"]
    (found,) = PBS().read(tmp_path / "server", cores=128).config.throttles[-1:]
    assert (found.what, found.max_queued) == ("all jobs in queue work", 90)
    files = exported_for(tmp_path, parse(SITE), server)
    assert "set queue work max_queued = [u:bob=30]" in files["queues.qmgr"]
    assert "PBS refuses jobs that are submitted beyond it" in files["PLAN.md"]


@pytest.mark.parametrize(("depth", "number"), [("4", "4"), ("null", "100000")])
def test_the_depth_of_reservations_is_backfill_depth(depth: str, number: str, tmp_path: Path):
    config = parse(SITE.partition("throttles")[0].replace("held_jobs: reserve", f"reservation_depth: {depth}"))
    assert f"set server backfill_depth = {number}" in exported_for(tmp_path, config)["queues.qmgr"]
    assert back(tmp_path).reservation_depth == config.reservation_depth
