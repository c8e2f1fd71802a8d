"""What loaded exports do: no job is suspended, and routing, limits, placement, reservation and order are as said."""

import re
import time

import numpy as np
import pytest

import parsim
from qconf.config import parse
from qconf.export.estimates import Estimates
from tests.qconf.export.sites import HYBRID
from tests.real_pbs.conftest import NODES
from tests.real_pbs.test_exports import ACCESS, ADVANCE, FAMILY, PARTED, SHARED, TIERS

TWO = """\
machine: {name: tiny, cores: 96, cores_per_node: 8}
order: ORDER
queues:
  - {name: short, walltime: [0, 1h], priority: 233.28}
  - {name: long, walltime: [1h, 24h], priority: 512.7}
"""
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


@pytest.mark.parametrize(("mode", "state"), [("suspend", "S"), ("requeue", "Q")])
def test_jobs_of_a_higher_tier_preempt_those_of_lower_ones(mode, state, loading):
    """The last to begin first, and never those of a queue that is not preempted."""
    with loading(TIERS.replace("MODE", mode)) as pbs:
        kept = pbs.submit(cores=8, walltime=7200, seconds=300)
        normal = []
        for _ in range(2):
            normal.append(pbs.submit(cores=40, walltime=36000, seconds=300))
            assert pbs.until(lambda: pbs.states(kept, *normal) == ["R"] * (1 + len(normal)))
            pbs.server.run("sleep 2")
        assert [pbs.attribute(job, "queue") for job in (kept, *normal)] == ["kept", "normal", "normal"]
        express = pbs.submit(cores=48, walltime=3600, seconds=300)
        assert pbs.until(lambda: pbs.states(express, *normal, kept) == ["R", "R", state, "R"], seconds=40)
        urgent = pbs.submit(cores=8, walltime=600, seconds=3)
        assert pbs.until(lambda: pbs.states(urgent)[0] in ("R", "F"), seconds=40)
        assert pbs.states(kept, express) == ["R", "R"]
        assert pbs.until(lambda: pbs.states(urgent) == ["F"])
        pbs.server.run(f"qdel {express}")
        assert pbs.until(lambda: pbs.states(kept, *normal) == ["R", "R", "R"], seconds=60)


def test_suspended_jobs_go_on_when_the_change_is_undone(loading):
    """Their queues are deleted when they have ended, as the plan says."""
    with loading(TIERS.replace("MODE", "suspend")) as pbs:
        normal = pbs.submit(cores=96, walltime=36000, seconds=300)
        assert pbs.until(lambda: pbs.states(normal) == ["R"])
        express = pbs.submit(cores=96, walltime=3600, seconds=300)
        assert pbs.until(lambda: pbs.states(express, normal) == ["R", "S"], seconds=40)
        pbs.undo()
        (problem,) = pbs.problems  # the last block
        assert "Cannot delete busy object" in problem
        assert f"jobs of normal: {normal}\n" in problem
        pbs.problems.clear()
        pbs.server.run(f"qdel {express}")
        assert pbs.until(lambda: pbs.states(normal) == ["R"], seconds=60)
        pbs.server.run(f"qdel {normal}")
        assert pbs.until(lambda: pbs.states(normal) == ["F"])
        pbs.server.run("qselect -x | xargs qdel -x")
        pbs.undone = False
        pbs.undo()


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


def test_a_partition_may_have_nodes_of_several_hosts(loading_on_two_hosts):
    with loading_on_two_hosts(PARTED) as pbs:
        medium = pbs.submit(cores=64, seconds=5)
        jobs = [pbs.submit(cores=16, seconds=5), pbs.submit(cores=64, seconds=5)]
        assert pbs.until(lambda: pbs.states(*jobs) == ["R", "Q"])
        assert pbs.nodes(medium) == set(list(NODES)[4:])
        assert {"pbshost/", "pbshost2/"} <= set(re.findall(r"pbshost2?/", pbs.attribute(medium, "exec_host")))
        assert pbs.nodes(jobs[0]) < set(list(NODES)[:4])
        assert pbs.until(lambda: pbs.states(medium, *jobs) == ["F"] * 3)
        assert [pbs.attribute(job, "Exit_status") for job in (medium, *jobs)] == ["0"] * 3


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


def test_whole_nodes_have_one_job_each(loading_on_whole_nodes):
    with loading_on_whole_nodes(
        SHARED.replace("ORDER", "fcfs").replace("{name: tiny", "{name: tiny, whole_nodes: true")
    ) as pbs:
        jobs = [
            pbs.submit(cores=cores, user=user) for cores, user in ((1, "alice"), (16, "bob"), (3, "carol"), (64, "bob"))
        ]
        waiting = pbs.submit(cores=1)
        assert pbs.until(lambda: pbs.states(*jobs) == ["R"] * 4)
        pbs.server.run("qmgr -c 'set server scheduling = True'; sleep 2")
        assert pbs.states(waiting) == ["Q"]  # 84 of the 96 cores are asked for, and no node is left
        nodes = [pbs.nodes(job) for job in jobs]
        assert [len(each) for each in nodes] == [1, 2, 1, 8]
        assert len(set().union(*nodes)) == 12


def test_a_moved_job_uses_nodes_of_the_pool_and_of_its_partition_together(loading):
    text = HYBRID.replace("entry: move", "entry: move, threshold: 1, placement: combined").replace(", max_run: 6", "")
    with loading(text) as pbs:
        ends = pbs.submit(cores=8, seconds=12)
        partition = [ends, *(pbs.submit(cores=8) for _ in range(3))]
        pooled = [pbs.submit(cores=8) for _ in range(2)]
        assert pbs.until(lambda: pbs.states(*partition, *pooled) == ["R"] * 4 + ["Q"] * 2)
        pbs.server.run("sleep 3; qconf-promote")
        assert pbs.until(lambda: pbs.states(*pooled) == ["R"] * 2)
        assert set().union(*map(pbs.nodes, pooled)) == {"n10", "n11"}
        assert pbs.until(lambda: pbs.states(ends) == ["F"])
        both = pbs.submit(cores=16)  # one node of the partition is idle, and one of the pool
        pbs.server.run("sleep 3")
        assert pbs.states(both) == ["Q"]
        pbs.server.run("qconf-promote")
        assert pbs.until(lambda: pbs.states(both) == ["R"])
        assert pbs.nodes(both) == {"n01", "n12"}


def test_a_job_of_all_partitions_has_a_reservation_on_their_nodes(loading):
    with loading(ADVANCE) as pbs:
        running = [pbs.submit(cores=16, walltime=600, seconds=12), pbs.submit(cores=40, walltime=600, seconds=12)]
        assert pbs.until(lambda: pbs.states(*running) == ["R"] * 2)
        wide = pbs.submit(cores=96, walltime=600, seconds=5)
        longer = pbs.submit(cores=16, walltime=7200)
        shorter = pbs.submit(cores=16, walltime=120, seconds=1)
        assert [pbs.attribute(job, "queue") for job in (wide, longer, shorter)] == ["large", "small", "small"]
        assert pbs.until(lambda: pbs.states(shorter)[0] in "RF")
        assert pbs.states(wide, longer) == ["Q", "Q"]  # though two nodes of small's partition are idle
        assert pbs.until(lambda: pbs.states(wide) == ["R"], seconds=30)
        assert len(pbs.nodes(wide)) == 12
        assert pbs.states(longer) == ["Q"]


def test_time_that_limits_of_users_hold_a_job_is_no_eligible_time(loading):
    text = SHARED.replace("ORDER", "lxf").replace("max_run: 6", "max_user_run: 1")
    text = text.replace("max_user_run: 2, max_run_cores: 48", "max_run: 1")
    with loading(text) as pbs:
        running = [pbs.submit(), pbs.submit(walltime=10000, user="bob")]
        assert pbs.until(lambda: pbs.states(*running) == ["R"] * 2)
        of_user, of_queue, of_cores = pbs.submit(), pbs.submit(walltime=10000), pbs.submit(cores=96, walltime=600)
        pbs.server.run("sleep 8")
        waited = [
            sum(map(int, pbs.attribute(job, "eligible_time").split(":"))) for job in (of_user, of_queue, of_cores)
        ]
        assert waited[0] <= 2
        assert min(waited[1:]) >= 6


@pytest.mark.parametrize("prime", [True, False])
def test_one_order_in_and_out_of_prime_time(loading, fresh, prime):
    days = "".join(f"{day} {'all none' if prime else 'none all'}\n" for day in ("weekday", "saturday", "sunday"))
    home = "/srv/pbs/sched_priv"
    fresh.run(f"cp -p {home}/holidays {home}/holidays.before; cp -p {home}/sched_config {home}/sched_config.own")
    fresh.write("holidays", f"YEAR 2026\n{days}", folder=home)
    fresh.run(f"sed -i 's/^YEAR.*/YEAR '$(date +%Y)/ {home}/holidays")
    fresh.run(f"echo 'job_sort_key: \"walltime HIGH\" ALL' >> {home}/sched_config; kill -HUP $(cat {home}/sched.lock)")
    try:
        with loading(TWO.replace("ORDER", "ncpus")) as pbs:
            lines = pbs.server.run(f"grep -E '^(by_queue|job_sort_key)' {home}/sched_config").stdout
            assert lines == "by_queue: False\tALL\n"
            assert pbs.started([3590, 3700, 3580, 3605]) == [0, 1, 2, 3]
        with loading(TWO.replace("ORDER", "fcfs").replace("short", "p_day").replace("long", "np_night")) as pbs:
            jobs = pbs.submit(), pbs.submit(walltime=4000)
            assert pbs.until(lambda: "R" in pbs.states(*jobs))
            assert pbs.states(*jobs) == (["R", "Q"] if prime else ["Q", "R"])  # as the plan says of such names
        assert "job_sort_key" in fresh.run(f"cat {home}/sched_config").stdout
    finally:
        fresh.run(f"mv {home}/holidays.before {home}/holidays; mv {home}/sched_config.own {home}/sched_config")
        fresh.run(f"kill -HUP $(cat {home}/sched.lock)")


def test_no_threshold_keeps_jobs_from_starting(loading):
    printed = "set server job_sort_formula = ncpus\nset sched job_sort_formula_threshold = 1000\n"
    with loading(TWO.replace("ORDER", "-walltime"), printed=printed) as pbs:
        assert pbs.started([3590, 3700, 3580, 3605]) == [2, 0, 3, 1]


def test_lxf_starts_first_whose_wait_is_long_beside_its_walltime(loading):
    with loading(TWO.replace("ORDER", "lxf").replace("priority: 512.7", "priority: 233.28")) as pbs:
        # by submission 0, 1, 2 and shortest first 2, 1, 0; of the last job the factor grows least before its start
        assert pbs.started([2000, 100, 60], pauses=[0, 14, 6]) == [1, 2, 0]


@pytest.mark.parametrize("order", ["fcfs", "sjf", "ljf", "queue_priority * ncpus / walltime ** 2"])
def test_jobs_start_in_the_simulators_order(loading, order):
    walltime = np.random.default_rng(7).permutation(8) * 17 + 3540  # of both queues
    config = parse(TWO.replace("ORDER", order))
    with loading(config) as pbs:
        started = pbs.started(walltime)
    workload = parsim.Workload(
        submit=np.arange(8) // 8,
        cores=np.full(8, 96),
        runtime=np.ones(8, dtype=np.int64),
        walltime=walltime,
        queue=(walltime > 3600).astype(np.int64),
    )
    expected = np.argsort(parsim.simulate(workload, config.system()).start)
    assert started == expected.tolist()


def test_the_default_place_is_that_of_the_queue_and_of_jobs_with_a_select(fresh):
    """As a note of exports and a warning of `init` say; and a job has one word of each kind."""
    for statement in (
        "create queue own queue_type = e, enabled = t, started = f, resources_default.place = excl",
        "create queue plain queue_type = e, enabled = t, started = f",
        "create queue way queue_type = r, enabled = t, started = t, route_destinations = plain",
        "set queue way resources_default.place = scatter",
    ):
        fresh.run(f"qmgr -c '{statement}'")

    def place(words):
        job = fresh.run(f"qsub {words} -- /bin/sleep 1", user="alice").stdout.strip()
        found = re.search(r"Resource_List.place = (\S+)", fresh.run(f"qstat -f {job}").stdout)
        return found[1] if found else job

    assert [place(f"-q {queue} -l select=2:ncpus=4") for queue in ("own", "way")] == ["excl", "free"]
    assert place("-q own -l ncpus=4") == "pack"
    for words in ("pack:scatter", "free:scatter", "excl:shared"):
        assert "Illegal attribute or resource value" in place(f"-q own -l select=2 -l place={words}")


def test_run_times_are_predicted_at_submission_and_order_jobs(loading, tmp_path):
    """Of jobs of all cores that of the longer walltime goes first, as its user's jobs end early."""
    now = int(time.time()) - 86400
    rows = [
        f"{i},{now},{now},{now + ran},{ran},{walltime},96,{user},work"
        for i, (user, walltime, ran) in enumerate([("alice", 7200, 60), ("bob", 3600, 3500)] * 20)
    ]
    (tmp_path / "log.csv").write_text(
        "\n".join(["job_id,submit,start,end,runtime,walltime,cores,user,queue", *rows, ""])
    )
    text = "machine: {name: tiny, cores: 96, cores_per_node: 8}\norder: 1e6 - estimate\nqueues: [{name: work}]\n"
    with loading(text, estimates=Estimates(tmp_path / "log.csv")) as pbs:
        pbs.server.run("qmgr -c 'set server scheduling = False'")
        bob, alice = (
            pbs.submit(user="bob", cores=96, walltime=3600, seconds=1),
            pbs.submit(cores=96, walltime=7200, seconds=1),
        )
        expected = [int(pbs.attribute(job, "Resource_List.estimate")) for job in (bob, alice)]
        assert 3000 < expected[0] <= 3600
        assert 60 <= expected[1] < 1200
        # Users set it neither at submission nor later; a change of the walltime is predicted anew.
        assert "ermission" in pbs.server.run("qsub -l estimate=1 -- /bin/sleep 1 2>&1", user="bob").stdout
        pbs.server.run(f"qalter -l estimate=1 {bob}", user="bob")
        assert int(pbs.attribute(bob, "Resource_List.estimate")) == expected[0]
        pbs.server.run(f"qalter -l walltime=1800 {bob}", user="bob")
        assert 1200 < int(pbs.attribute(bob, "Resource_List.estimate")) <= 1800
        pbs.server.run("qmgr -c 'set server scheduling = True'")
        assert pbs.until(lambda: pbs.states(bob, alice) == ["F", "F"], seconds=60), pbs.states(bob, alice)
        record = pbs.server.run("cat /srv/pbs/server_priv/accounting/*").stdout
        started = [int(re.search(rf";S;{re.escape(job)};.* start=(\d+)", record)[1]) for job in (bob, alice)]
        assert started[1] < started[0]
        # A table of another version: one line in the log, and the walltime is taken.
        pbs.server.run("sed -i '1s/.*/qconf-estimates 0 0/' qconf_estimate.txt")
        pbs.server.run("qmgr -c 'import hook qconf_estimate application/x-config default qconf_estimate.txt'")
        job = pbs.submit(cores=96, walltime=7200, seconds=1)
        assert pbs.attribute(job, "Resource_List.estimate") is None
        assert pbs.server.run("grep -h 'no prediction' /srv/pbs/server_logs/*").stdout.count("another version") == 1
    assert "qconf_estimate" not in pbs.server.run("qmgr -c 'list hook'").stdout


def test_two_reservations_of_a_number_of_cores_take_different_ones(fresh):
    """As rule "cores of a window" has it; a third would need more than there are."""
    fresh.run("qmgr -c 'set server acl_roots += root'")
    of_five = "pbs_rsub -R $(date -d '+60 seconds' +%H%M.%S) -D 60 -l select=5:ncpus=8"
    fresh.run(f"{of_five}; {of_five}; {of_five}; sleep 3")
    found = fresh.run("pbs_rstat -F").stdout
    nodes = [set(re.findall(r"\((n\d+):", line)) for line in found.splitlines() if "resv_nodes" in line]
    fresh.run("pbs_rstat -B | sed -n 's/.*: *//p' | xargs -r pbs_rdel")
    assert [len(each) for each in nodes] == [5, 5]
    assert not nodes[0] & nodes[1]


def test_a_job_for_which_there_was_no_room_goes_by_when_it_enters(fresh):
    """As rule "admission to lists" has it: behind a job that was submitted meanwhile."""
    for statement in (
        "create queue full queue_type = e, enabled = t, started = t",
        'set queue full max_queued = "[u:PBS_GENERIC=1]"',
        "create queue way queue_type = r, enabled = t, started = t, route_destinations = full, route_retry_time = 1",
        "set server scheduling = False",
    ):
        fresh.run(f"qmgr -c '{statement}'")

    def submit(queue, user):
        return fresh.run(f"qsub -q {queue} -l select=12:ncpus=8 -- /bin/sleep 1", user=user).stdout.strip()

    first, kept = submit("way", "alice"), submit("way", "alice")
    time.sleep(2)
    between = submit("way", "bob")
    refused = submit("full", "alice")
    fresh.run(f"sleep 2; qdel {first}; sleep 4; qmgr -c 'set server scheduling = True'")
    fresh.wait(f"[ $(qstat -x {kept} {between} | grep -c ' F ') = 2 ]", "they do not end", seconds=60)
    record = fresh.run("cat /srv/pbs/server_priv/accounting/*").stdout
    start = {job: int(instant) for job, instant in re.findall(r";S;(\S+?);.* start=(\d+)", record)}
    assert "would exceed" in refused
    assert start[between] < start[kept]


def test_a_plan_counts_a_job_that_might_be_preempted_to_its_end(loading):
    """As rule "jobs to preempt" has it: so a job of its own tier takes that job's cores, and delays it."""
    with loading(TIERS.replace("MODE", "suspend")) as pbs:
        normal = pbs.submit(cores=16, walltime=5000, seconds=300)
        express = pbs.submit(cores=80, walltime=60, seconds=300)
        assert pbs.until(lambda: pbs.states(normal, express) == ["R", "R"], seconds=40)
        wide = pbs.submit(cores=96, walltime=3600)
        between = pbs.submit(cores=16, walltime=600)
        assert pbs.until(lambda: pbs.states(between, normal, wide) == ["R", "S", "Q"], seconds=40)
