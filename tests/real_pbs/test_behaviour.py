"""What loaded exports do: no job is suspended, and routing, limits, placement, reservation and order are as said."""

import re

import numpy as np
import pytest

import parsim
from qconf.config import parse
from tests.qconf.export.sites import HYBRID
from tests.real_pbs.test_exports import ACCESS, FAMILY, PARTED, SHARED

RATIOS = SHARED.replace("ORDER", FAMILY).replace("priority: 100", "priority: 583.2").replace(", max_run: 6", "")


def test_no_job_is_suspended(loading):
    with loading(RATIOS) as pbs:
        running = [pbs.submit(cores=16, seconds=60) for _ in range(6)]
        assert pbs.until(lambda: pbs.states(*running) == ["R"] * 6)
        wide = pbs.submit(cores=96, seconds=1)
        assert pbs.attribute(wide, "queue") == "large"
        pbs.server.run("qmgr -c 'set server scheduling = True'; sleep 3")
        assert pbs.states(*running, wide) == ["R"] * 6 + ["Q"]


def test_an_express_queue_would_suspend_them(loading):
    """The line is where the export says it is: what `test_no_job_is_suspended` sees can fail."""
    with loading(RATIOS) as pbs:
        pbs.server.run("qmgr -c 'set queue large Priority = 150'")
        running = [pbs.submit(cores=16, seconds=60) for _ in range(6)]
        assert pbs.until(lambda: pbs.states(*running) == ["R"] * 6)
        wide = pbs.submit(cores=96, seconds=1)
        assert pbs.until(lambda: "S" in pbs.states(*running), seconds=30), pbs.states(*running, wide)


def test_where_preemption_is_turned_off_it_is_off(loading):
    express = "create queue large\nset queue large queue_type=Execution,Priority=200,enabled=True,started=True\n"
    with loading(RATIOS, printed=f"{express}set server scheduling = True\n") as pbs:
        running = [pbs.submit(cores=16, seconds=60) for _ in range(6)]
        assert pbs.until(lambda: pbs.states(*running) == ["R"] * 6)
        wide = pbs.submit(cores=96, seconds=1)
        pbs.server.run("sleep 3")
        assert int(pbs.server.run("qmgr -c 'list queue large' | sed -n 's/.*Priority = //p'").stdout) >= 150
        assert pbs.states(*running, wide) == ["R"] * 6 + ["Q"]


def test_limits_hold(loading):
    with loading(SHARED.replace("ORDER", "fcfs").replace("max_run: 6", "max_run: 3, max_user_run: 2")) as pbs:
        jobs = [pbs.submit(user=user) for user in ("alice", "alice", "alice", "bob", "bob", "carol")]
        assert pbs.until(lambda: pbs.states(*jobs).count("R") == 3)
        pbs.server.run("qmgr -c 'set server scheduling = True'; sleep 2")
        assert pbs.states(*jobs) == ["R", "R", "Q", "R", "Q", "Q"]


def test_jobs_run_on_the_nodes_of_their_partition(loading):
    with loading(PARTED) as pbs:
        jobs = [pbs.submit(cores=16) for _ in range(3)] + [pbs.submit(cores=32)]
        assert pbs.until(lambda: pbs.states(*jobs) == ["R", "R", "Q", "R"])
        small = re.findall(r"(n\d+):", "".join(pbs.attribute(job, "exec_vnode") for job in jobs[:2]))
        medium = re.findall(r"(n\d+):", pbs.attribute(jobs[3], "exec_vnode"))
        assert set(small) == {"n01", "n02", "n03", "n04"}
        assert not set(medium) & set(small)


def test_the_pool_takes_what_is_due_whatever_bytes_jobs_have(loading):
    text = HYBRID.replace("entry: move", "entry: move, threshold: 1").replace(", max_run: 6", "")
    with loading(text) as pbs:
        running = [pbs.submit(cores=16) for _ in range(2)]  # all of the partition
        odd = "X=$(printf 'caf\\351') qsub -v X -q route -l ncpus=8 -l walltime=60 -- /bin/sleep 30"
        waiting = [pbs.server.run(odd, user="bob").stdout.strip(), pbs.submit(cores=8)]
        assert pbs.until(lambda: pbs.states(*running, *waiting) == ["R", "R", "Q", "Q"])
        pbs.server.run("sleep 3")  # waited * 40 / 60 reaches 1
        done = pbs.server.run("/usr/local/sbin/qconf-promote; echo exit $?")
        assert done.stdout.rstrip().endswith("exit 0"), done.stdout
        assert [pbs.attribute(job, "queue") for job in waiting] == ["small_p", "small_p"]
        assert pbs.until(lambda: pbs.states(*waiting) == ["R", "R"])
        nodes = {node for job in waiting for node in re.findall(r"(n\d+):", pbs.attribute(job, "exec_vnode"))}
        assert nodes <= {"n10", "n11", "n12"}


def test_a_young_job_gets_no_reservation_from_its_submission_on(loading):
    text = SHARED.replace("ORDER", "lxf") + "reserve_after: 6s\n"
    with loading(text) as pbs:
        running = pbs.submit(cores=88, seconds=60)
        assert pbs.until(lambda: pbs.states(running) == ["R"])
        wide = pbs.submit(cores=96)
        other = pbs.submit(cores=96, queue="workq")
        assert pbs.attribute(wide, "topjob_ineligible") == "True"
        assert pbs.attribute(other, "topjob_ineligible") is None
        assert pbs.server.run("qconf-reserve").stdout == ""
        pbs.server.run("sleep 6")
        assert pbs.server.run("qconf-reserve").stdout == f"{wide}: topjob_ineligible = False\n"
        assert pbs.attribute(wide, "topjob_ineligible") in (None, "False")


def test_a_restricted_queue_stays_restricted(loading):
    text = SHARED.replace("ORDER", "fcfs").replace("max_run: 6", "access: {users: [alice, bob]}")
    text = text.replace("max_user_run: 2", "access: {users: [alice, bob]}")
    with loading(text, printed=ACCESS) as pbs:
        assert [pbs.attribute(pbs.submit(user=user, walltime=10000), "queue") for user in ("alice", "bob")] == [
            "long"
        ] * 2
        assert "Unauthorized Request" in pbs.submit(user="carol", walltime=10000, queue="long")


@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "queue_priority * ncpus / walltime ** 2"])
def test_jobs_start_in_the_simulators_order(loading, order):
    text = f"""\
machine: {{name: tiny, cores: 96, cores_per_node: 8}}
order: {order}
queues:
  - {{name: short, walltime: [0, 1h], priority: 233.28}}
  - {{name: long, walltime: [1h, 24h], priority: 512.7}}
"""
    walltime = np.random.default_rng(7).permutation(8) * 17 + 3540  # of both queues
    config = parse(text)
    with loading(config) as pbs:
        pbs.server.run("qmgr -c 'set server scheduling = False'")
        jobs = [pbs.submit(cores=96, walltime=int(each), seconds=1) for each in walltime]
        pbs.server.run("qmgr -c 'set server scheduling = True'")
        assert pbs.until(lambda: pbs.states(*jobs) == ["F"] * 8, seconds=90)
        record = pbs.server.run("cat /srv/pbs/server_priv/accounting/*").stdout
    started = {job: int(start) for job, start in re.findall(r";S;(\S+?);.* start=(\d+)", record)}
    workload = parsim.Workload(
        submit=np.arange(8) // 8,
        cores=np.full(8, 96),
        runtime=np.ones(8, dtype=np.int64),
        walltime=walltime,
        queue=(walltime > 3600).astype(np.int64),
    )
    expected = np.argsort(parsim.simulate(workload, config.system()).start)
    assert np.argsort([started[job] for job in jobs], kind="stable").tolist() == expected.tolist()
