"""Orders that are sums: Slurm's own priorities are those of the formula, and jobs start by them."""

from parsim.naive.formula import formula_value
from qconf.config import parse
from qconf.config.multifactor import Multifactor
from tests.real_slurm.conftest import NODES
from tests.real_slurm.test_exports import MACHINE
from tests.servers.machine import WORK
from tests.servers.slurm import SITE
from tests.servers.slurm_server import PrivateSlurm
from tests.servers.trial import Rehearsal, run_blocks, saved

ORDER = (
    "50 * queue_priority + min(eligible_time, 2592000) + (7200 if walltime <= 60 else 3600 if walltime <= 180 else 0)"
    " + (900 if ncpus <= 4 else 0)"
)
SUMS = (
    MACHINE.replace("fcfs", ORDER)
    + """\
queues:
  - {name: work, cores: [1, 16], walltime: [0, 5m], priority: 20}
  - {name: long, cores: [1, 16], walltime: [5m, 10m], priority: 10}
"""
)
FORMULA = Multifactor.of(parse(SUMS).order).formula


def expected(limit, nice=0):
    """Return the priority of a job of 16 cores by the formula and its user's nice value, but for what all have."""
    priority = 20 if limit <= 5 else 10
    value = formula_value(FORMULA, walltime=60 * limit, eligible_time=0, ncpus=16, queue_priority=priority)
    return value - nice


def test_short_jobs_start_first_and_the_users_own_nice_value_counts(loading):
    with loading(SUMS) as slurm:
        running = slurm.submit("--ntasks=16 --time=1", seconds=4)
        limits = {"long": "5", "middle": "2", "short": "1", "modest": "1 --nice=5000", "other queue": "6"}
        jobs = {
            name: slurm.submit(f"--ntasks=16 --time={limit}", user="bob", seconds=2) for name, limit in limits.items()
        }
        priorities = dict(zip(jobs, map(int, slurm.of("Priority", *jobs.values())), strict=True))
        values = {"long": expected(5), "middle": expected(2), "short": expected(1), "modest": expected(1, 5000)}
        for name, value in values.items():
            apart = priorities[name] - priorities["other queue"]
            assert abs(apart - (value - expected(6))) <= 60, name  # and seconds of waiting
        slurm.until("! squeue --noheader | grep .")
        order = ("short", "middle", "modest", "long", "other queue")
        begun = slurm.of("StartTime", running, *(jobs[name] for name in order))
        assert begun == sorted(begun)
        assert len(set(begun)) == len(begun)


def test_users_cannot_go_before_others_by_changing_their_jobs(loading):
    """What job_submit.lua takes off stays, whatever a user asks for later, and so does the user's own nice value."""
    with loading(SUMS) as slurm:
        narrow = slurm.submit("--ntasks=4 --time=5 --begin=now+1day")
        modest = slurm.submit("--ntasks=4 --time=5 --begin=now+1day --nice=70")
        assert slurm.of("Nice", narrow, modest) == ["7200", "7270"]
        for change, nice in (("Nice=0", 7200), ("NumCPUs=8 NumTasks=8", 8100), ("TimeLimit=1", 900), ("Nice=30", 930)):
            done = slurm.server.run(f"scontrol update JobId={narrow} {change}; echo exit $?", user="alice")
            assert "exit 0" in done.stdout, change
            assert slurm.of("Nice", narrow) == [str(nice)], change
        slurm.server.run(f"scontrol update JobId={modest} TimeLimit=1", user="alice")
        assert slurm.of("Nice", modest) == ["70"]


def test_a_second_sum_takes_the_place_of_the_points_of_the_first(loading, exported):
    """Jobs that wait have the points of the sum that is loaded, and again the former ones when it comes off."""
    with loading(SUMS) as slurm:
        job = slurm.submit("--ntasks=4 --time=5 --begin=now+1day")
        modest = slurm.submit("--ntasks=4 --time=5 --begin=now+1day --nice=70")
        assert slurm.of("Nice", job, modest) == ["7200", "7270"]
        result, between = Rehearsal(""), saved(slurm.server)
        plan = exported(SUMS.replace("7200", "9000"), "second")
        slurm.server.run("mkdir second")
        for name, text in plan.files.items():
            slurm.server.write(name, text, folder=f"{WORK}/second")
        run_blocks([(title, f"cd second\n{block}") for title, block in plan.steps], slurm.server, result)
        assert slurm.of("Nice", job, modest) == ["9000", "7270"]
        run_blocks([(title, f"cd second\n{block}") for title, block in plan.undo], slurm.server, result)
        assert slurm.of("Nice", job, modest) == ["7200", "7270"]
        assert result.problems == []
        assert saved(slurm.server) == between


def test_a_slurm_without_accounting_ignores_how_long_jobs_wait_and_stops_the_plan(exported):
    plan, result = exported(SUMS), Rehearsal("")
    lines = SITE.replace("KEPT", "work") + "PriorityType=priority/multifactor\nPriorityWeightAge=86400\n"
    with PrivateSlurm(NODES, lines, accounting=False) as server:
        said = server.run("grep -a PriorityWeightAge /srv/log/slurmctld").stdout
        assert "PriorityWeightAge can only be used with SlurmDBD, ignoring" in said
        for name, text in plan.files.items():
            server.write(name, text)
        run_blocks(plan.steps[:2], server, result)
        assert [problem.partition(": exit 1: ")[0] for problem in result.problems] == [
            "2. Look whether Slurm counts how long jobs wait"
        ]
