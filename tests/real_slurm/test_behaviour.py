"""What loaded exports do: order, limits, doors and promotion are as said."""

import pytest

from tests.real_slurm.test_exports import HYBRID, KINDS, LIMITED, MACHINE, SHARED
from tests.servers.slurm_jobs import tasks


def test_jobs_that_waited_before_come_before_those_submitted_afterwards(fresh, loading):
    """Slurm keeps the priorities of multifactor, small numbers, when priority/basic is loaded."""
    fresh.run("sbatch --partition=former --ntasks=16 --time=5 --begin=now+1day --wrap true", user="alice")
    fresh.run("sbatch --partition=former --ntasks=16 --time=5 --dependency=afterok:999999 --wrap true", user="alice")
    (first,) = [job for job, held in tasks(fresh).items() if held["JobState"] == "PENDING" and "T" in held["StartTime"]]
    with loading(SHARED) as slurm:
        later = slurm.submit("--begin=now+1day --time=1")
        earliest, latest = (int(number) for number in slurm.of("Priority", first, later))
        assert slurm.of("Partition", first) == ["work"]
        assert earliest > latest > 4_000_000_000
        jobs = [slurm.submit(f"--begin=now+1day --time={time}") for time in ("1:30", "2", "2:01")]  # in whole minutes
        assert slurm.of("Partition", *jobs) == ["short", "short", "work"]
        assert slurm.of("TimeLimit", *jobs) == ["00:02:00", "00:02:00", "00:03:00"]


def test_limits_bind(loading):
    with loading(LIMITED) as slurm:
        jobs = [slurm.submit(user=user) for user in ("alice", "alice", "alice", "bob", "bob", "carol")]
        slurm.until("[ $(squeue --noheader --states=RUNNING | wc -l) = 3 ]")
        assert slurm.states(*jobs) == ["RUNNING", "RUNNING", "PENDING", "RUNNING", "PENDING", "PENDING"]
        wide = [slurm.submit("--ntasks=6 --time=1", user=user) for user in ("alice", "alice", "bob")]
        slurm.until("[ $(squeue --noheader --states=RUNNING --partition=wide | wc -l) = 1 ]")
        slurm.until("[ $(squeue --noheader --states=PENDING --format=%r | grep -c '^QOS') = 5 ]")
        assert slurm.states(*wide) == ["RUNNING", "PENDING", "PENDING"]


def test_a_shortpool_is_left_to_short_jobs(loading):
    with loading(KINDS["shortpool"]) as slurm:
        wide, narrow = (slurm.submit(f"--ntasks={cores} --time=5") for cores in (12, 10))
        slurm.until("[ $(squeue --noheader --states=RUNNING | wc -l) = 1 ]")
        assert slurm.states(wide, narrow) == ["PENDING", "RUNNING"]
        short, other = (slurm.submit(f"--ntasks=6 --time={minutes}") for minutes in (2, 3))
        slurm.until("[ $(squeue --noheader --states=RUNNING | wc -l) = 2 ]")
        assert slurm.states(short, other) == ["RUNNING", "PENDING"]


def test_users_cannot_go_around_the_routing(loading):
    with loading(HYBRID) as slurm:
        for where in ("pool", "work,pool", "pool,medium", "work,medium"):
            assert "leave -p out" in slurm.submit(f"--ntasks=2 --time=1 --partition={where}"), where
        job = slurm.submit("--ntasks=2 --time=1 --begin=now+1day")
        for change in ("Partition=pool", "Partition=medium", "Partition=work,pool", "NumCPUs=5", "TimeLimit=4"):
            said = slurm.server.run(f"scontrol update JobId={job} {change}; echo exit $?", user="alice").stdout
            assert "exit 1" in said, change
            assert "permission denied" in said, change
        assert slurm.of("Partition", job) == ["work"]
        fine = "NumTasks=4 NumCPUs=4 Partition=medium TimeLimit=4"
        assert slurm.server.run(f"scontrol update JobId={job} {fine}", user="alice").returncode == 0
        assert slurm.of("Partition", job) == ["medium"]


def test_promotion_moves_what_is_due_and_leaves_what_is_held(loading):
    with loading(HYBRID) as slurm:
        running = [slurm.submit("--ntasks=2 --time=1", seconds=40) for _ in range(2)]
        slurm.until("[ $(squeue --noheader --states=RUNNING | wc -l) = 2 ]")
        slurm.server.run("sbatch --quiet --array=1-3 --ntasks=2 --time=1 --wrap 'sleep 30'", user="bob")
        held = slurm.submit("--hold --ntasks=2 --time=1")
        array = next(job for job in tasks(slurm.server) if job.endswith("_1")).partition("_")[0]
        tau = "sed -i 's/^THRESHOLD = .*/THRESHOLD = Fraction(0)/' /usr/local/sbin/qconf-promote"
        slurm.server.run(f"{tau}; scancel {running[0]}")
        slurm.until(f"squeue --noheader --states=RUNNING --jobs={array} | grep -q .")
        done = slurm.server.run("SLURM_TIME_FORMAT=relative /usr/local/sbin/qconf-promote; echo exit $?")
        assert done.stdout.splitlines()[-1] == "exit 0", done.stdout
        assert slurm.of("Partition", f"{array}_1", f"{array}_2", f"{array}_3", held) == ["work", "pool", "pool", "work"]
        slurm.until(f"[ $(squeue --noheader --states=RUNNING --jobs={array} | wc -l) = 3 ]")


def test_the_pool_starts_first_what_waited_long_beside_its_walltime(loading):
    """By submission it would be the other way round."""
    with loading(HYBRID) as slurm:
        blocker = slurm.submit("--ntasks=6 --time=5", seconds=60)
        slurm.server.run(f"scontrol update JobId={blocker} Partition=pool")
        slurm.until(f"squeue --noheader --states=RUNNING --partition=pool --jobs={blocker} | grep -q .")
        busy = slurm.submit("--ntasks=6 --time=5", seconds=60)
        long, short = slurm.submit("--ntasks=6 --time=5", user="bob"), slurm.submit("--ntasks=6 --time=2", user="carol")
        slurm.server.run("sed -i 's/^THRESHOLD = .*/THRESHOLD = Fraction(0)/' /usr/local/sbin/qconf-promote")
        slurm.server.run("sleep 2; /usr/local/sbin/qconf-promote")
        assert slurm.of("Partition", long, short) == ["pool", "pool"]
        priorities = [int(value) for value in slurm.of("Priority", long, short)]
        assert priorities == sorted(priorities)
        slurm.server.run(f"scancel {blocker}")
        slurm.until(f"squeue --noheader --states=RUNNING --jobs={short} | grep -q .")
        assert slurm.states(busy, long, short) == ["RUNNING", "PENDING", "RUNNING"]


def test_a_restart_waits_until_accounting_has_every_job(loading):
    """A controller that ends while slurmdbd has yet to answer keeps the job without an index, and never changes it."""
    with loading(SHARED) as slurm:
        slurm.server.run("kill -STOP $(cat /run/slurmdbd.pid)")
        job = slurm.submit("--begin=now+1day --time=1")
        slurm.server.run("sleep 6")  # the controller asks every 5 seconds
        slurm.server.run("(sleep 3; kill -CONT $(cat /run/slurmdbd.pid)) > /dev/null 2>&1 &")
        done = slurm.server.run("python3 -I load-conf after; echo exit $?")
        assert done.stdout.splitlines()[-1:] == ["exit 0"], done.stdout
        assert slurm.server.run(f"scontrol update JobId={job} Nice=5").stdout == ""


@pytest.mark.parametrize("mode", ["suspend", "requeue"])
def test_a_plan_counts_no_job_that_might_be_preempted(mode, loading):
    """Unlike PBS, and rule "jobs to preempt": the wide job is planned where those of its own tier end."""
    queues = """\
queues:
  - {name: express, cores: [1, 16], walltime: [0, 9m], tier: 1}
  - {name: work, cores: [1, 16], walltime: [9m, 60m], preempted: MODE}
"""
    with loading(MACHINE + queues.replace("MODE", mode)) as slurm:
        low = slurm.submit("--ntasks=2 --time=50", seconds=300)
        express = slurm.submit("--ntasks=14 --time=2", seconds=300)
        slurm.until(f"[ $(squeue --noheader --states=R --jobs={low},{express} | wc -l) = 2 ]")
        wide, between = slurm.submit("--ntasks=16 --time=5"), slurm.submit("--ntasks=2 --time=4")
        slurm.until(f"scontrol show job {wide} | grep -q 'StartTime=2'")
        assert slurm.of("StartTime", wide) == slurm.of("EndTime", express)
        assert slurm.states(low, wide, between) == ["RUNNING", "PENDING", "PENDING"]
        slurm.server.run(f"scancel {low} {express} {wide} {between}")
