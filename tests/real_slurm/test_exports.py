"""Every kind of export: loaded by its plan while jobs run and wait, tried, and undone; no job is lost."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from qconf.config import parse
from qconf.errors import InputError
from tests.real_slurm.conftest import NODES, private, problems
from tests.servers.rehearsal import saved
from tests.servers.slurm import SITE, follow
from tests.servers.slurm_jobs import tasks
from tests.servers.slurm_server import PrivateSlurm

MACHINE = "machine: {name: tiny, cores: 16, cores_per_node: 2}\norder: fcfs\n"


def machine(queues: str) -> str:
    return MACHINE + queues


FCFS = MACHINE + "queues:\n  - {name: work, cores: [1, 16], walltime: [0, 5m]}\n"
SHARED = machine("""\
reserve_after: 1m
queues:
  - {name: short, cores: [1, 16], walltime: [0, 90], priority: 20}
  - {name: work, cores: [1, 16], walltime: [90, 5m], priority: 10}
""")
LIMITED = machine("""\
queues:
  - {name: work, cores: [1, 4], walltime: [0, 5m], max_run: 3, max_user_run: 2}
  - {name: wide, cores: [5, 16], walltime: [0, 5m], max_run_cores: 8, max_user_cores: 6}
""")
GUARDED = machine("""\
queues:
  - {name: work, cores: [1, 4], walltime: [0, 5m], access: {groups: [staff, qconf-lab], accounts: [-shut]}}
  - {name: wide, cores: [5, 16], walltime: [0, 5m], max_run: 3, access: {accounts: [physics], qos: [urgent, normal]}}
  - {name: late, cores: [1, 16], walltime: [5m, 9m], access: {hosts: [login1, login2], qos: [-slow]}}
""")
THROTTLED = (
    FCFS
    + """\
throttles:
  - {max_run: 6, max_run_cores: 14}
  - {each: user, max_run: 5, max_run_core_seconds: 86400, max_queued: 100}
  - {user: carol, max_run: 2}
  - {each: group, max_run_cores: 15}
"""
)
QUALITIES = (
    FCFS.replace("order: fcfs", "order: min(eligible_time, 2592000) + 100 * qos_priority")
    + """\
throttles:
  - {each: qos, max_run: 12}
  - {qos: gold, max_run: 9, max_run_cores: 12}
  - {each: user, qos: silver, max_queued: 40}
qos:
  - {name: gold, priority: 20, users: [alice], accounts: [all]}
  - {name: silver, priority: 5, exempt: [max_user_run], users: [bob]}
"""
)
PARTED = machine("""\
mode: partitioned
queues:
  - {name: narrow, cores: [1, 4], walltime: [0, 5m], partition: 6}
  - {name: work, cores: [5, 10], walltime: [0, 5m], partition: 10}
""")
HYBRID = machine("""\
mode: hybrid
queues:
  - {name: work, cores: [1, 2], walltime: [0, 2m], priority: 10, partition: 4}
  - {name: medium, cores: [3, 6], walltime: [0, 5m], priority: 20, partition: 6}
pool: {cores: 6, threshold: 3, placement: pool, entry: move}
""")
TIERS = machine("""\
queues:
  - {name: express, cores: [1, 4], walltime: [0, 1m], tier: 1}
  - {name: work, cores: [1, 8], walltime: [0, 5m], preempted: suspend}
  - {name: wide, cores: [9, 16], walltime: [0, 5m], preempted: requeue}
""")
BOUND = """\
machine: {name: tiny, cores: 16, cores_per_node: 2}
nodes:
  - {name: plain, count: 4, cores: 2, hosts: "n[1-4]"}
  - {name: gpu, count: 2, cores: 2, gpus: 2, hosts: "n[5-6]"}
  - {name: more, count: 2, cores: 2, gpus: 1, hosts: "n[7-8]"}
queues:
  - {name: work, cores: [1, 8], walltime: [0, 5m], nodes: [plain]}
  - {name: gpu, cores: [1, 8], walltime: [0, 5m], nodes: [gpu, more]}
  - {name: every, cores: [1, 16], walltime: [0, 9m]}
"""
KINDS = {
    "fcfs": FCFS,
    "priorities": SHARED,
    "plain": FCFS + "backfill: false\n",
    "limits": LIMITED,
    "tiers": TIERS,
    "bound": BOUND,
    "access": GUARDED,
    "shortpool": FCFS + "shortpools: [{cores: 6, walltime: 2m}]\n",
    "throttles": THROTTLED,
    "qos": QUALITIES,
    "partitioned": PARTED,
    "hybrid": HYBRID,
    "whole nodes": PARTED.replace("cores_per_node: 2", "cores_per_node: 2, whole_nodes: true"),
}


def rehearsed(kind, plan):
    """Follow a plan on a Slurm of its own; limits need accounting, without which the others are loaded sooner."""
    with PrivateSlurm(NODES, SITE.replace("KEPT", "work"), accounting=plan.accounted) as server:
        result = follow(plan, server, kept="work")
        states = Counter(held["JobState"] for held in tasks(server).values())
        print(f"{kind}: {result.summary}; {dict(states)}")
        return result, states


@pytest.mark.parametrize(
    "kinds",
    [
        ["priorities", "qos", "hybrid"],
        pytest.param([kind for kind in KINDS if kind != "tiers"], id="all"),
    ],
    ids=",".join,
)
def test_every_kind_is_loaded_and_undone_and_no_job_is_lost(kinds, exported, record_property):
    """All at once, since a rehearsal mostly waits; but for tiers, since a requeued job waits for two minutes."""
    plans = {kind: exported(KINDS[kind], kind) for kind in kinds}
    with ThreadPoolExecutor(len(plans)) as pool:
        found = dict(zip(plans, pool.map(rehearsed, plans, plans.values()), strict=True))
    assert {kind: result.problems for kind, (result, _) in found.items()} == {kind: [] for kind in kinds}
    for kind, (result, states) in found.items():
        assert result.rolled_back, kind
        assert result.examples == len(plans[kind].queues)
        assert result.jobs > 12, kind
        assert result.moved > 3, kind
        assert not {"NODE_FAIL", "FAILED", "BOOT_FAIL"} & {*states}, kind
    record_property("jobs", sum(result.jobs for result, _ in found.values()))


def test_a_server_that_cannot_be_started_says_at_once_which_step_failed():
    with pytest.raises(InputError, match=r"(?s)Sizes.*slurmctld 2>&1: exit code 1"):
        PrivateSlurm(NODES, "Sizes=none\n", accounting=False).__enter__()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "qos"])
def test_it_is_loaded_and_undone_where_jobs_are_accounted_for(kind, fresh, exported):
    """One after the other on one Slurm, so that every controller restarts soon after another one did.

    But for QOS, whose priorities are of another kind: this Slurm keeps jobs that ended, and theirs would be of both.
    """
    plan = exported(KINDS[kind])
    result = follow(plan, fresh, kept="work")
    print(f"{kind}: {result.summary}")
    assert result.problems == []
    assert result.rolled_back


def test_a_second_export_takes_the_place_of_the_first_and_comes_off_again(loading, exported):
    with loading(HYBRID) as slurm:
        server, between, plan = slurm.server, saved(slurm.server), exported(SHARED, "second")
        assert "Name=pool" in between["partitions"]
        plan.put(server, "second")
        assert problems(server, plan.steps) == []
        assert "Name=pool" not in server.run("scontrol show partition").stdout
        done = server.run("python3 -I load-conf back; echo exit $?").stdout  # that of the first
        assert "Undo a later export first" in done
        assert "exit 1" in done
        assert problems(server, plan.undo) == []
        assert saved(server) == between


def test_a_job_is_suspended_and_goes_on_also_when_the_export_is_undone_meanwhile(loading):
    with loading(TIERS, jobs=[]) as slurm:
        jobs = [slurm.submit("--ntasks=8 --time=2", seconds=9) for _ in range(2)]
        slurm.until("[ $(squeue --noheader --states=R --partition=work | wc -l) = 2 ]", "they do not start")
        slurm.submit("--ntasks=4 --time=1", seconds=20)
        slurm.until("[ $(squeue --noheader --states=S --partition=work | wc -l) = 1 ]", "none is suspended")
        assert {*slurm.states(*jobs)} == {"RUNNING", "SUSPENDED"}
    assert {*slurm.states(*jobs)} == {"COMPLETED"}


def test_a_user_without_an_association_is_named_before_limits_are_enforced(fresh, exported):
    plan = exported(LIMITED)
    plan.put(fresh)
    fresh.run("sacctmgr --immediate delete user carol")
    fresh.run("sbatch --begin=now+1day --time=1 --wrap true", user="carol")
    try:
        found = problems(fresh, plan.steps[:2])
    finally:
        fresh.run("sacctmgr --immediate add user carol account=all")
    assert found == ["2. Look for users without an association: exit 1: carol"]


def test_a_qos_that_does_not_exist_stops_the_plan_before_slurm_conf_names_it(fresh, exported):
    plan = exported(LIMITED)
    plan.put(fresh)
    fresh.write("qos.sacctmgr", "add qos work\nmodify qos wide set GrpJobs=3\n")
    found = problems(fresh, plan.steps[:1] + plan.steps[2:3])
    fresh.run("sacctmgr --immediate delete qos work")
    assert [problem.split(":")[0] for problem in found] == ["3. Create the QOS that hold the running limits"]


def test_limits_of_other_kinds_that_a_qos_has_come_back_alone(loading, fresh):
    fresh.run("sacctmgr --immediate add qos wide")
    fresh.run("sacctmgr --immediate modify qos wide set GrpTRES=node=7 MaxTRESPerUser=node=5")
    try:
        with loading(LIMITED) as slurm:
            assert "wide||cpu=8,node=7||cpu=6,node=5" in saved(slurm.server)["QOS"]
    finally:
        fresh.run("sacctmgr --immediate delete qos wide")


def test_nice_values_and_the_partitions_of_the_parts_of_a_job_are_as_before(fresh, loading):
    """Slurm sets the nice value of a job to 0 when it is released to have its priority computed anew."""
    later = "--time=1 --begin=now+1day"
    for what in (f"--partition=former {later} --nice=50", f"--partition=former {later} : --partition=work {later}"):
        fresh.run(f"sbatch --output=/dev/null {what} --wrap true", user="alice")
    before = {job: (held["Partition"], held["Nice"]) for job, held in tasks(fresh).items()}
    with loading(FCFS, jobs=[]):
        pass
    after = {job: (held["Partition"], held["Nice"]) for job, held in tasks(fresh).items()}
    assert {job: after.get(job) for job in before} == before


def test_a_partition_with_a_reservation_is_not_dropped(fresh, exported):
    """Slurm would drop the reservation with it, and say so in its log only."""
    plan = exported(FCFS)
    plan.put(fresh)
    fresh.run(
        "scontrol create reservation ReservationName=r StartTime=now+1day Duration=9 Users=root Nodes=ALL "
        "PartitionName=former"
    )
    (found,) = problems(fresh, plan.steps)
    assert found.startswith(f"{plan.steps[-1][0]}: exit 1: ")
    assert "ReservationName=r " in found
    assert problems(fresh, plan.undo) == []
    shown = fresh.run("scontrol --oneliner show reservation; scontrol delete reservation=r").stdout
    assert " PartitionName=former " in shown


@pytest.mark.parametrize("own", [True, False], ids=["with the site's own script", "without one"])
def test_no_job_is_submitted_into_what_ends_while_the_former_partitions_come_back(own, fresh, exported):
    """In a list with a partition that stays, it would be killed where that of the list ends."""
    plan = exported(HYBRID)
    script = (
        "function slurm_job_submit(job) job.comment = 'theirs' return slurm.SUCCESS end\n"
        "function slurm_job_modify() return slurm.SUCCESS end\nreturn slurm.SUCCESS\n"
    )
    restart = "systemctl restart slurmctld; sleep 2"
    if own:
        fresh.write("job_submit.lua", script, folder="/etc/slurm")
        fresh.run(f"sed -i '1i JobSubmitPlugins=lua' /etc/slurm/slurm.conf; {restart}")
    before = saved(fresh)
    try:
        plan.put(fresh)
        opened = next(n for n, (_, block) in enumerate(plan.undo) if "load-conf back" in block) + 1
        assert problems(fresh, [*plan.steps, *plan.undo[:opened]]) == []
        submit = "sbatch --parsable --output=/dev/null --begin=now+1day --ntasks=1 --time=1 --wrap true"
        said = fresh.run(f"{submit} --partition=work,medium", user="alice").stdout
        assert "partition medium takes no submissions" in said
        job = fresh.run(f"{submit} --partition=work,former", user="alice").stdout.strip()
        changed = fresh.run(f"scontrol update JobId={job} Partition=work,medium; echo exit $?", user="alice").stdout
        assert "exit 1" in changed
        assert tasks(fresh)[job]["Partition"] == "work,former"
        assert tasks(fresh)[job].get("Comment") == ("theirs" if own else None)
        fresh.run(f"scancel {job}")
        assert problems(fresh, plan.undo[opened:]) == []
        assert saved(fresh) == before
    finally:
        if own:
            fresh.run(f"sed -i 1d /etc/slurm/slurm.conf; rm /etc/slurm/job_submit.lua; {restart}")


def test_throttles_of_another_cluster_of_the_same_accounting_stay(loading, fresh):
    show = "sacctmgr -nP show associations"

    def others():
        found = fresh.run(f"{show} cluster=elsewhere format=Account,User,GrpJobs,GrpTRES").stdout
        return sorted(found.splitlines())

    fresh.run("sacctmgr --immediate add cluster elsewhere; sacctmgr --immediate add account all cluster=elsewhere")
    fresh.run("sacctmgr --immediate add user carol account=all cluster=elsewhere")
    fresh.run("sacctmgr --immediate modify user where name=carol cluster=elsewhere set GrpJobs=7")
    try:
        before = others()
        assert "all|carol|7|" in before
        with loading(THROTTLED):
            assert others() == before
            assert fresh.run(f"{show} cluster=rehearsal user=carol format=GrpJobs").stdout.split() == ["2"]
        assert others() == before
    finally:
        fresh.run("sacctmgr --immediate delete cluster elsewhere")


ONE = "sbatch --parsable --output=/dev/null --ntasks=1"
UNTIL_END = "--wrap 'until [ -e /srv/end ]; do sleep 0.2; done; touch ~/ended-$SLURM_JOB_ID'"
RUN_ON = "rm -f /srv/end; chmod 755 /srv"


def test_jobs_with_gpus_go_to_the_queue_of_their_nodes_and_back(loading, tmp_path):
    """One that waits is moved where GPUs are, also where a queue before takes its size; the undo loses none."""
    with private(gpus={"n5": 2, "n6": 2, "n7": 1, "n8": 1}) as server:

        def submitted(user, *words):
            commands = (f"{ONE} --time=2 {each} {UNTIL_END}" for each in words)
            return [server.run(command, user=user).stdout.strip() for command in commands]

        server.run(RUN_ON)
        jobs = submitted("alice", *(f"--partition=former --gres=gpu:{count}" for count in (2, 2, 2, 1)))
        server.wait("[ $(squeue --noheader --states=R | wc -l) = 3 ]", "GPUs are not counted")
        with loading(BOUND, server, jobs) as slurm:
            assert slurm.of("Partition", *jobs) == ["former", "former", "gpu", "former"]
            server.run("rm -f /srv/end")
            later = submitted("bob", "--partition=gpu --gres=gpu:2", "--partition=gpu --gres=gpu:1", *["--time=1"] * 9)
            jobs += later
            slurm.until("[ $(squeue --noheader --states=R --user=bob | wc -l) = 10 ]", "they do not start")
            assert slurm.of("NodeList", later[0])[0] in ("n5", "n6")
            assert {*slurm.of("Partition", *later[2:])} == {"work"}
            assert {*slurm.of("NodeList", *later[2:])} - {"", "(null)"} == {"n1", "n2", "n3", "n4"}
            found = slurm.derived(tmp_path)
            assert (found.nodes, found.queues) == (parse(BOUND).nodes, parse(BOUND).queues)


KEEPS = """machine: {name: m, cores: 16, cores_per_node: 2}
nodes:
  - {name: cpu, count: 6, cores: 2, hosts: "n[1-6]"}
  - {name: gpu, count: 2, cores: 2, gpus: 1, kept_per_gpu: 1, hosts: "n[7-8]"}
queues:
  - {name: work, cores: [1, 16], walltime: [0, 24h]}
"""


def test_jobs_without_gpus_leave_cores_to_those_with_gpus(loading, tmp_path):
    jobs = []
    with private(gpus={"n7": 1, "n8": 1}) as server, loading(KEEPS, server, jobs) as slurm:
        server.run(RUN_ON)
        jobs += [server.run(f"{ONE} --time=2 {UNTIL_END}", user="alice").stdout.strip() for _ in range(16)]
        slurm.until("[ $(squeue --noheader --states=R | wc -l) = 14 ]", "they do not start")
        assert {*slurm.of("Partition", *jobs)} <= {"work-plain", "work-1", "work-plain,work-1"}
        on = slurm.of("NodeList", *jobs)
        assert (on.count("n7"), on.count("n8")) == (1, 1)
        # A node on which Slurm plans a waiting job is closed to jobs that run past that instant.
        jobs += [server.run(f"{ONE} --time=1 --gres=gpu:1 {UNTIL_END}", user="bob").stdout.strip() for _ in range(2)]
        slurm.until("[ $(squeue --noheader --states=R --user=bob | wc -l) = 2 ]", "jobs with GPUs do not start")
        found = slurm.derived(tmp_path)
        assert (found.nodes, found.queues) == (parse(KEEPS).nodes, parse(KEEPS).queues)


def test_what_an_earlier_export_keeps_for_short_jobs_ends(loading, exported):
    """Also where the new one keeps nothing; a job that waits for it waits on without."""
    earlier = exported(KINDS["shortpool"], "earlier")
    with private() as server:
        server.write("earlier", earlier.files["shortpool"])
        server.run("sh earlier; rm earlier")
        (name,) = server.run("scontrol --oneliner show reservation | cut -d' ' -f1 | cut -d= -f2").stdout.split()
        assert name.startswith("shortpool_")
        submit = f"sbatch --parsable --output=/dev/null --partition=work --time=1 --reservation={name}"
        jobs = [
            server.run(f"{submit} {words}", user="alice").stdout.strip()
            for words in ("--begin=now+1day --wrap true", "--wrap 'sleep 8'")
        ]
        server.wait("[ $(squeue --noheader --states=R | wc -l) = 1 ]", "it does not start")
        with loading(FCFS, server, jobs=[]) as slurm:
            assert name not in server.run("scontrol show reservation").stdout
            assert slurm.states(*jobs) == ["PENDING", "COMPLETED"]
            assert name not in tasks(server)[jobs[0]].get("Reservation", "")
