"""Predictions of jobs that wait for others, for licences, and for hours at which a limit does not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from parsim.prepare.chunks import has_place
from qconf.config import MachineConfig, QueueConfig, SiteConfig, dump, parse
from qconf.history.times import zone
from qconf.prediction.nodes import in_service
from qconf.prediction.present import ahead, gaps
from qconf.prediction.results import predict
from qconf.report.prediction import idle
from qconf.snapshot import Closure, Job, Snapshot
from qconf.snapshot.pbs import read_pbs
from qconf.snapshot.slurm import read_slurm

SITE = SiteConfig.build(machine=MachineConfig(cores=8), queues=(QueueConfig(name="all"),), licences={"matlab": 1})
MONDAY = 1_772_409_600  # 2 March 2026, 00:00 UTC
NOW = MONDAY + 9 * 3600


def job(job_id, needs="", *, start=None, held="", cores=1, walltime=100):
    return Job(job_id, "ann", "", "all", cores, walltime, NOW - 50, start, held, needs=needs)


def starts(*jobs, site=SITE):
    found = predict(Snapshot(NOW, jobs), site)
    planned = {each.job.job_id: (each.planned - NOW, each.why) for each in found.starts}
    return planned, [(each.job_id, why) for each, why in found.ahead.left_out]


def test_jobs_wait_for_others_and_licences():
    planned, left_out = starts(
        job("1", "licence:matlab:1", start=NOW - 10),
        job("2", "after:1"),
        job("3", "licence:matlab:1"),
        job("4", "after:2 after:gone"),
    )
    assert planned == {
        "2": (90, "waits for job 1 to end"),
        "3": (90, "limit: 1 licences matlab"),
        "4": (190, "waits for job 2 to end"),
    }
    assert left_out == []


def test_what_waits_for_a_held_job_is_not_predicted():
    _, left_out = starts(job("0"), job("1", held="on hold (u)"), job("2", "after:1"), job("3", "after:2"))
    assert left_out == [("1", "on hold (u)"), ("2", "waits for job 1"), ("3", "waits for job 2")]


def test_more_licences_than_there_are():
    _, left_out = starts(job("0"), job("1", "licence:matlab:2"))
    assert left_out == [("1", "asks for more licences matlab than the 1 of the site")]


def test_limits_by_the_hour():
    site = SITE.replace(hours=({"queue": "all", "begin": "08:00", "end": "09:30", "max_run": 1},))
    planned, _ = starts(job("1", start=NOW - 10, walltime=9000), job("2"), site=site)
    assert planned["2"][0] == 1800


def test_of_pbs():
    def attributes(state, **more):
        return {
            "job_state": state, "queue": "all", "euser": "ann", "ctime": "Mon Mar  2 08:00:00 2026",
            "Resource_List": {"ncpus": 2, "walltime": "01:00:00", "matlab": 1, "mem": "4gb"}, **more,
        }  # fmt: skip

    jobs = {
        "1.s": attributes("R", stime="Mon Mar  2 08:30:00 2026"),
        "2.s": attributes("H", depend="afterok:1.s@s", Hold_Types="s"),
        "3.s": attributes("H", depend="afterok:1.s@s", Hold_Types="us"),
        "4[].s": attributes("Q", array_indices_remaining="3-4", max_run_subjobs=1),
    }
    found = read_pbs([{"timestamp": NOW, "Jobs": jobs}], "", zone("UTC"))
    assert [(each.job_id, each.needs, each.held) for each in found.jobs] == [
        ("1", "licence:matlab:1", ""),
        ("2", "after:1 licence:matlab:1", ""),
        ("3", "after:1 licence:matlab:1", "waits for afterok:1.s@s"),
        ("4[3]", "licence:matlab:1 array:4[]:1", ""),
        ("4[4]", "licence:matlab:1 array:4[]:1", ""),
    ]


def test_of_slurm():
    def attributes(number, state="PENDING", **more):
        return {
            "job_id": number, "job_state": [state], "cpus": 2, "submit_time": NOW - 60, "time_limit": 10,
            "start_time": NOW - 30, "user_name": "ann", "partition": "all", **more,
        }  # fmt: skip

    document = {
        "last_update": NOW,
        "jobs": [
            attributes(1, "RUNNING", licenses="matlab:1,ansys"),
            attributes(2, state_reason="Dependency", dependency="afterok:1(unfulfilled)"),
            attributes(3, state_reason="DependencyNeverSatisfied", dependency="afterok:9(failed)"),
            attributes(5, array_job_id=5, array_task_string="0-1%1", array_max_tasks=1),
        ],
    }
    found = read_slurm([document], "", zone("UTC"), None)
    assert [(each.job_id, each.needs, each.held) for each in found.jobs] == [
        ("1", "licence:matlab:1 licence:ansys:1", ""),
        ("2", "after:1", ""),
        ("3", "after:9", "DependencyNeverSatisfied"),
        ("5_0", "array:5:1", ""),
        ("5_1", "array:5:1", ""),
    ]
    assert found.warnings == Counter()


def test_a_configuration_reads_back():
    hours = "hours: [{queue: all, days: [mon, tue], begin: 08:00, end: 18:00, max_run: 0}]"
    config = parse(f"machine: {{cores: 8}}\nqueues: [{{name: all}}]\n{hours}\nlicences: {{m: 3}}\n")
    assert parse(dump(config)) == config
    assert config.licences == {"m": 3}
    assert config.hours[0].max_run == 0


MIXED = parse(
    "machine: {name: m, cores: 8}\n"
    "nodes: [{name: cpu, count: 1, cores: 4}, {name: gpu, count: 1, cores: 4, gpus: 2}]\n"
    "queues: [{name: all, cores: [1, 8]}]\n"
)


def test_gpus_are_waited_for_though_cores_are_idle():
    planned, left_out = starts(
        job("1", "chunk:1:cores=1,gpus=2", start=NOW - 10),
        job("2", "chunk:1:cores=1,gpus=1"),
        job("3"),
        job("4", "chunk:1:cores=1,gpus=3"),
        site=MIXED,
    )
    assert {name: begin for name, (begin, _) in planned.items()} == {"2": 90, "3": 0}
    idle_now = idle(predict(Snapshot(NOW, (job("1", start=NOW - 10), job("2"))), MIXED))
    assert idle_now.startswith("idle now, on nodes of whatever type: up to 6 cores for as long as it likes")
    assert planned["2"][1] == "needs nodes that have what it asks for, or would delay a job before it"
    assert left_out == [("4", "fits no nodes of its queue")]


@pytest.mark.slow  # it compiles a version of its own
def test_a_chunk_waits_for_a_node_with_room():
    nodes = "machine: {name: m, cores: 8}\nnodes: [{name: cpu, count: 2, cores: 4}]\nqueues: [{name: all}]\n"
    jobs = (job("1", "chunk:2:cores=3", start=NOW - 10, cores=6), job("2", "chunk:1:cores=2", cores=2))
    for reserve, begin in (("cores", 0), ("nodes", 90)):
        planned, _ = starts(*jobs, site=parse(f"{nodes}reserve: {reserve}\n"))
        assert planned["2"][0] == begin


@pytest.mark.parametrize("reserve", ["cores", pytest.param("nodes", marks=pytest.mark.slow)])
def test_jobs_run_that_their_nodes_cannot_hold(reserve):
    site = MIXED.replace(reserve=reserve, queues=[MIXED.queues[0].model_copy(update={"nodes": ("gpu",)})])
    jobs = (
        job("1", "licence:a:1 chunk:1:cores=2,gpus=3", start=NOW - 10, cores=2),
        job("2", start=NOW - 20, cores=5),
        job("3", cores=3),
    )
    found = predict(Snapshot(NOW, jobs), site)
    assert {each.job.job_id: each.planned - NOW for each in found.starts} == {"3": 90}
    assert found.ahead.warnings == (
        "a job runs that the nodes of its queue cannot hold: it is left out",
        "a job runs that the nodes of its queue cannot hold: its cores alone count",
    )


def test_types_of_nodes_are_left_out_where_a_node_is_down():
    jobs = (job("1", "chunk:1:cores=1,gpus=2", start=NOW - 10), job("2", "chunk:1:cores=1,gpus=1"))
    found = predict(Snapshot(NOW, jobs, closures=(Closure("node", NOW - 5, None, 2),)), MIXED)
    assert [each.planned - NOW for each in found.starts] == [0]
    assert any(text.startswith("types of nodes are left out") for text in found.ahead.warnings)


NAMED = parse(
    "machine: {name: m, cores: 12}\n"
    "nodes: [{name: cpu, count: 2, cores: 4, hosts: 'c[1-2]'}, {name: gpu, count: 1, cores: 4, gpus: 2, hosts: g1}]\n"
    "queues: [{name: all, cores: [1, 12]}]\n"
)


def closed(name: str, end: int | None = None) -> Closure:
    return Closure(f"node {name}", NOW - 5, end, 4, node=name)


def test_nodes_that_are_down_are_simulated_without():
    jobs = (
        job("1", "chunk:1:cores=1,gpus=2", start=NOW - 10),
        job("2", "chunk:1:cores=1,gpus=1"),
        job("3", cores=8),
        job("4", "chunk:2:cores=4", cores=8),
    )
    found = predict(Snapshot(NOW, jobs, closures=(closed("c2"),), nodes=("c1", "c2", "g1")), NAMED)
    assert found.ahead.warnings == ("1 of the nodes cpu is down: simulated without",)
    assert {each.job.job_id: each.planned - NOW for each in found.starts} == {"2": 90, "3": 190}
    assert [(each.job_id, why) for each, why in found.ahead.left_out] == [("4", "needs nodes that are down")]
    missing = predict(Snapshot(NOW, jobs, cores=8, nodes=("c1", "g1")), NAMED)
    assert missing.starts == found.starts
    down = predict(Snapshot(NOW, jobs, closures=(closed("g1"),)), NAMED)
    assert [(each.job_id, why) for each, why in down.ahead.left_out] == [("2", "needs nodes that are down")]


@pytest.mark.parametrize(
    "closure",
    [closed("x9"), Closure("reservation r", NOW, NOW + 9, 4), Closure("reservation r", NOW, NOW + 9, 4, nodes=("x9",))],
)
def test_closed_cores_that_are_not_simulated_by_type(closure):
    found = ahead(Snapshot(NOW, (job("2", "chunk:1:cores=1,gpus=1"),), closures=(closure,)), NAMED)
    assert any(text.startswith("types of nodes are left out") for text in found.warnings)


def test_nodes_that_are_reserved_or_come_back_are_windows():
    kept = Closure("reservation r", NOW + 30, NOW + 60, 8, "R1", nodes=("c1", "g1"))
    jobs = (job("1", "chunk:1:cores=1,gpus=1"), job("2", cores=4))
    closures = (kept, closed("c2", NOW + 50), closed("c1"))
    found = predict(Snapshot(NOW, jobs, closures=closures), NAMED.replace(reserve="queues"))
    assert found.ahead.warnings == ("1 of the nodes cpu is down: simulated without",)
    windows = found.ahead.present.state.windows
    assert [(each.begin - NOW, each.end - NOW, each.nodes) for each in windows] == [(30, 60, [1]), (-5, 50, [0])]
    assert {each.job.job_id: each.planned - NOW for each in found.starts} == {"1": 60, "2": 50}
    assert [found.ahead.idle(NOW + after) for after in (0, 40, 55)] == [4, 0, 4]
    assert [(gap.cores, gap.seconds) for gap in gaps(found.ahead, np.array([NOW + 60, NOW + 50]))] == [(4, 30)]


@pytest.mark.parametrize(
    ("cores", "nodes", "queue", "taken"),
    [
        (3, ("c1",), "", [[0]]),
        (1, ("c1",), "", []),
        (1, ("c1",), "R1", [[0]]),  # or its jobs would have no place
        (5, ("g1", "c1", "c2"), "", [[2]]),
        (6, ("g1", "c1", "c2"), "", [[2, 0]]),
    ],
)
def test_parts_of_nodes_that_are_reserved_are_whole_ones(cores, nodes, queue, taken):
    kept = Closure("reservation r", NOW, NOW + 9, cores, queue, nodes=nodes)
    found = ahead(Snapshot(NOW, (replace(job("1"), queue=queue or "all"),), closures=(kept,)), NAMED)
    (warning,) = found.warnings
    assert warning.startswith("parts of nodes are reserved: about as many cores")
    assert [list(each.nodes) for each in found.present.state.windows] == taken
    assert found.system.node_types


def test_jobs_of_a_reservation_have_its_nodes():
    kept = Closure("reservation r", NOW + 30, NOW + 200, 4, "R1", nodes=("g1",))
    jobs = (replace(job("1", "chunk:1:cores=1,gpus=1"), queue="R1"), job("2", "chunk:1:cores=1,gpus=2"))
    found = predict(Snapshot(NOW, jobs, closures=(kept,)), NAMED.replace(reserve="queues"))
    assert found.ahead.warnings == ()
    assert {each.job.job_id: each.planned - NOW for each in found.starts} == {"1": 30, "2": 200}


def test_jobs_of_a_reservation_that_no_nodes_hold_are_left_out():
    kept = Closure("reservation r", NOW - 30, NOW + 200, 4, "R1", nodes=("g1",))
    jobs = (job("1", "chunk:1:cores=1,gpus=3"), job("2", "chunk:1:cores=1,gpus=3", start=NOW - 10))
    found = ahead(Snapshot(NOW, tuple(replace(each, queue="R1") for each in jobs), closures=(kept,)), NAMED)
    assert [(each.job_id, why) for each, why in found.left_out] == [("1", "fits no nodes of its queue")]
    assert [each.needs for each in found.jobs] == [""]
    assert has_place(found.system, found.present.workload).all()


def test_downtimes_of_types_of_the_configuration():
    begin, end = (datetime.fromtimestamp(NOW + after, UTC).isoformat() for after in (30, 60))
    planned = [{"types": {"gpu": 1}}, {"nodes": [0, 2]}, {"nodes": [1]}]
    site = NAMED.replace(downtime=[{"begin": begin, "end": end, **each} for each in planned])
    found = ahead(Snapshot(NOW, (job("1"),), closures=(closed("c2"),)), site)
    windows = found.present.state.windows
    assert [(dict(each.node_types), list(each.nodes)) for each in windows] == [({"gpu": 1}, []), ({}, [0, 1])]
    assert [each.cores for each in site.with_all_alike().downtime] == [4, 8, 4]


LIMITS = "throttles: [{each: user, max_run_cores: 9, max_run_resources: {gpus: 1}}, {max_run_resources: {gpus: 1}}]\n"


@pytest.mark.parametrize(("more", "down", "name"), [(LIMITS, "g1", "2"), ("", "c1", "3")])
def test_limits_and_queues_that_only_nodes_that_are_down_meet(more, down, name):
    text = dump(NAMED).replace("cores: [1, 12]", "cores: [1, 8]")
    text = text.replace("queues:", "queues:\n  - {name: wide, cores: [9, 12]}")
    jobs = (job("1"), job("2", "chunk:1:cores=1,gpus=1"), replace(job("3", cores=12), queue="wide"))
    found = ahead(Snapshot(NOW, jobs, closures=(closed(down),)), parse(text + more))
    assert name in [each.job_id for each, why in found.left_out if why == "needs nodes that are down"]
    assert [throttle.limits for throttle in found.system.throttles] == ([{"max_run_cores": 9}] if more else [])


def test_nodes_of_the_snapshot_that_the_configuration_does_not_name():
    nodes = ("c1", "c2", "g1", "x1", "x2", "x3", "x4")
    found = ahead(Snapshot(NOW, (job("1"),), cores=28, nodes=nodes), NAMED)
    assert found.warnings == ("nodes that no hosts of the configuration name are left out: x1, x2, x3, ...",)


def test_nodes_of_a_queue_that_has_them_alone_are_left_out_too():
    queue = NAMED.queues[0].model_copy(update={"exclusive": True})
    jobs = (job("1", start=NOW - 10), job("2"))
    found = ahead(Snapshot(NOW, jobs, closures=(closed("x9"),)), NAMED.replace(queues=(queue,)))
    assert not found.system.queues[0].exclusive


def test_nodes_that_two_types_name_are_not_known():
    twice = parse(dump(NAMED).replace("c[1-2]", "c1,g1"))
    assert twice.nodes[0].hosts == "c1,g1"
    assert in_service(Snapshot(NOW, (), cores=12, nodes=("c1", "g1", "x")), twice, ()).number == {}


def test_running_jobs_have_the_nodes_that_the_snapshot_names():
    site = NAMED.replace(reserve="nodes")
    running = replace(job("1", "chunk:2:cores=1", start=NOW - 10, cores=2), on=(("c2", 1), ("g1", 1)))
    found = ahead(Snapshot(NOW, (running, job("2", cores=1))), site)
    assert found.present.state.nodes == {0: {1: 1, 2: 1}}
    found = ahead(Snapshot(NOW, (running,), closures=(closed("g1"),)), site)
    assert found.present.state.nodes == {}
    assert "a job runs on a node that is out of service: it is taken to be on others" in found.warnings


def test_nodes_of_jobs_in_snapshots():
    vnodes = "(c1[0]:ncpus=2:mem=1048576kb+c1[1]:ncpus=1)+(g1:ncpus=1:ngpus=1)+(c1[0]:mem=1kb)"
    running = {"job_state": "R", "queue": "all", "ctime": "Mon Mar  2 08:00:00 2026", "exec_vnode": vnodes,
        "stime": "Mon Mar  2 08:30:00 2026",
        "Resource_List": {"ncpus": 4, "select": "2:ncpus=2", "place": "scatter:excl"}}  # fmt: skip
    nodes = {
        "c1[0]": {"resources_available": {"ncpus": 4}},
        "c2": {"resources_available": {"ncpus": 4}, "state": "down"},
        "host": {"resources_available": {"ncpus": 0}},
        "c3": {"resources_available": {}, "state": "down"},
    }
    documents = [{"timestamp": NOW, "Jobs": {"1.s": running}}, {"timestamp": NOW, "nodes": nodes}]
    found = read_pbs(documents, "", zone("UTC"))
    assert found.jobs[0].on == (("c1[0]", 2), ("c1[1]", 1), ("g1", 1))
    assert found.jobs[0].needs == "chunk:2:cores=2 place:scatter,excl"
    assert (found.nodes, [each.node for each in found.closures]) == (("c1[0]", "c2"), ["c2"])
    one = {"job_id": 1, "job_state": "RUNNING", "cpus": 4, "submit_time": NOW - 9, "start_time": NOW - 5,
        "partition": "all", "nodes": "n[1-2]"}  # fmt: skip
    assert read_slurm([{"jobs": [one]}], "", zone("UTC"), NOW).jobs[0].on == (("n1", 0), ("n2", 0))
    odd = read_slurm([{"jobs": [one | {"nodes": "n[1-"}]}], "", zone("UTC"), NOW)
    assert (odd.jobs[0].on, odd.warnings["names of nodes that cannot be read are left out"]) == ((), 1)


def test_chunks_of_snapshots_that_cannot_be_read():
    waiting = {"job_state": "Q", "queue": "all", "ctime": "Mon Mar  2 08:00:00 2026",
        "Resource_List": {"ncpus": 1, "select": "1:ncpus=1", "place": "pack:aside"}}  # fmt: skip
    found = read_pbs([{"timestamp": NOW, "Jobs": {"1.s": waiting}}], "", zone("UTC"))
    assert found.warnings == {"chunks that cannot be read: cores alone are simulated": 1}
    waiting = {"job_id": 1, "job_state": "PENDING", "cpus": 1, "submit_time": NOW - 9, "tres_req_str": "mem=much"}
    found = read_slurm([{"jobs": [waiting]}], "", zone("UTC"), NOW)
    assert found.warnings == {"chunks that cannot be read: cores alone are simulated": 1}


def test_chunks_of_snapshots():
    resources = {"ncpus": 2, "walltime": "01:00:00", "select": "2:ncpus=1:ngpus=1"}
    running = {"job_state": "R", "queue": "all", "euser": "a", "ctime": "Mon Mar  2 08:00:00 2026",
        "stime": "Mon Mar  2 08:30:00 2026", "Resource_List": resources}  # fmt: skip
    found = read_pbs([{"timestamp": NOW, "Jobs": {"1.s": running}}], "", zone("UTC"))
    assert [each.needs for each in found.jobs] == ["chunk:2:cores=1,gpus=1"]
    waiting = {"job_id": 1, "job_state": "PENDING", "cpus": 4, "submit_time": NOW - 9, "partition": "all",
        "tres_req_str": "cpu=4,mem=8G,node=2,billing=4,gres/gpu=2", "features": "ib"}  # fmt: skip
    found = read_slurm([{"jobs": [waiting]}], "", zone("UTC"), NOW)
    assert [each.needs for each in found.jobs] == ["chunk:2:cores=2,gpus=1,memory=4096,ib"]
