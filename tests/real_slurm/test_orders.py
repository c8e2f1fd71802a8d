"""Orders that are sums: Slurm's own priorities are those of the formula, and jobs start by them."""

import time

from parsim.naive.formula import formula_value
from qconf.config import parse
from qconf.config.multifactor import Multifactor
from qconf.export.estimates import Estimates
from tests.real_slurm.conftest import NODES, problems
from tests.real_slurm.test_exports import MACHINE
from tests.servers.rehearsal import saved
from tests.servers.slurm import SITE
from tests.servers.slurm_server import PrivateSlurm

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
        between, plan = saved(slurm.server), exported(SUMS.replace("7200", "9000"), "second")
        plan.put(slurm.server, "second")
        assert problems(slurm.server, plan.steps) == []
        assert slurm.of("Nice", job, modest) == ["9000", "7270"]
        assert problems(slurm.server, plan.undo) == []
        assert slurm.of("Nice", job, modest) == ["7200", "7270"]
        assert saved(slurm.server) == between


def test_run_times_are_predicted_at_submission_and_order_jobs(loading, exported, tmp_path):
    """Of jobs of all cores that of the longer walltime goes first, as its user's jobs end early."""
    now = int(time.time()) - 86400
    rows = [
        f"{i},{now},{now},{now + ran},{ran},{60 * walltime},16,{user},work"
        for i, (user, walltime, ran) in enumerate([("alice", 5, 9), ("bob", 2, 119)] * 20)
    ]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["job_id,submit,start,end,runtime,walltime,cores,user,queue", *rows, ""]))
    order = "min(eligible_time, 2592000) + (7200 if estimate <= 60 else 3600 if estimate <= 180 else 0)"
    with loading(SUMS) as slurm:
        run = slurm.server.run
        running = slurm.submit("--ntasks=16 --time=5", seconds=300)
        slurm.until("squeue --noheader --states=RUNNING | grep .")
        waits, held = (slurm.submit(f"--ntasks=16 --time={time} --nice=7", seconds=1) for time in ("3", "1 --hold"))

        def factors(*jobs):
            for job in jobs:  # Slurm weighs a job when it has looked whether it may start
                slurm.until(f"sprio --noheader --format=%i | grep -qw {job}")
            listed = dict(map(str.split, run("sprio --noheader --format='%i %S'").stdout.splitlines()))
            return [int(listed[job]) for job in jobs]

        between = saved(slurm.server)
        plan = exported(SUMS.replace(ORDER, order), "second", estimates=Estimates(log))
        plan.put(slurm.server, "second")
        assert problems(slurm.server, plan.steps) == []
        bob = slurm.submit("--ntasks=16 --time=2", user="bob", seconds=1)
        alice = slurm.submit("--ntasks=16 --time=5", seconds=1)
        assert factors(waits, bob, alice) == [3600, 3600, 7200]  # that of the walltime, and of what is expected
        run("cd second && python3 -I move-jobs")  # once more, which changes nothing
        assert factors(waits, bob, alice) == [3600, 3600, 7200]
        # Users set it neither at submission nor later; a change of the walltime is predicted anew.
        for change in (f"JobId={bob} SiteFactor=99999", f"JobId={bob} Nice=-5"):
            assert "exit 0" not in run(f"scontrol update {change}; echo exit $?", user="bob").stdout
        assert "nvalid" in run("sbatch --nice=-5 --wrap true 2>&1", user="bob").stdout
        assert factors(bob) == [3600]
        run(f"scontrol update JobId={bob} TimeLimit=1", user="bob")
        assert factors(bob) == [7200]
        run(f"scontrol update JobId={bob} TimeLimit=2; scontrol update JobId={bob} Nice=3")
        run(
            f"scontrol update JobId={bob} TimeLimit=1 Nice=0; scontrol update JobId={bob} TimeLimit=2 Nice=4",
            user="bob",
        )
        assert (factors(bob), slurm.of("Nice", bob)) == ([3600], ["4"])
        first, then = (f"$(squeue --noheader --jobs={job} --format=%Q)" for job in (alice, bob))
        slurm.until(f"[ {first} -gt $(({then} + 3000)) ]")
        # A table of another version, and none: a line in the log each, and the walltime is taken.
        table = "/etc/slurm/qconf_estimate.txt"
        run(f"cp -p {table} kept; sed -i '1s/.*/qconf-estimates 0 0/' {table}")
        other = slurm.submit("--ntasks=16 --time=5", seconds=1)
        run(f"rm {table}")
        none = slurm.submit("--ntasks=16 --time=3", seconds=1)
        said = run("grep -h 'no prediction' /srv/log/slurmctld").stdout
        assert (said.count("another version"), said.count("No such file"), said.count("\n")) == (1, 1, 2)
        assert factors(other, none) == [0, 3600]
        run(f"cp -p kept {table}; scontrol release {held}")
        assert factors(held) == [7200]
        run(f"scancel {running}")
        slurm.until("! squeue --noheader --states=PENDING | grep .")
        begun = slurm.of("StartTime", alice, bob, other)
        assert begun == sorted(set(begun))
        slurm.until("! squeue --noheader | grep .")
        last = [slurm.submit("--ntasks=16 --time=5", seconds=300)]
        slurm.until("squeue --noheader --states=RUNNING | grep .")
        last.insert(0, slurm.submit("--ntasks=16 --time=5 --begin=now+1day", seconds=1))
        behind = slurm.submit("--ntasks=16 --time=4", seconds=1)
        assert factors(behind) == [7200]
        assert problems(slurm.server, plan.undo) == []
        assert factors(behind) == [0]
        run(f"scontrol update JobId={last[0]} StartTime=now")
        assert factors(last[0]) == [0]
        run("scancel " + " ".join(last))
        slurm.until("! squeue --noheader | grep .")
        assert saved(slurm.server) == between


def test_a_slurm_without_accounting_ignores_how_long_jobs_wait_and_stops_the_plan(exported):
    plan = exported(SUMS)
    lines = SITE.replace("KEPT", "work") + "PriorityType=priority/multifactor\nPriorityWeightAge=86400\n"
    with PrivateSlurm(NODES, lines, accounting=False) as server:
        said = server.run("grep -a PriorityWeightAge /srv/log/slurmctld").stdout
        assert "PriorityWeightAge can only be used with SlurmDBD, ignoring" in said
        plan.put(server)
        (found,) = problems(server, plan.steps[:2])
        assert found.startswith("2. Look whether Slurm counts how long jobs wait: exit 1: ")
