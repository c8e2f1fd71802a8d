"""An export is loaded and undone among jobs of every kind, and its blocks are run twice, stopped and made to fail.

No job is lost, and all is as it was after the undo: files with their modes, accounting with what is inherited, and jobs
with their partitions and what else they have.
"""

import shlex

import pytest

from tests.real_slurm.conftest import NODES, private, problems
from tests.real_slurm.test_exports import FCFS, HYBRID, LIMITED, SHARED
from tests.servers.rehearsal import saved
from tests.servers.slurm import SITE, started, submitted
from tests.servers.slurm_jobs import lost, tasks
from tests.servers.slurm_server import PrivateSlurm

THROTTLES = "throttles: [{user: carol, max_run: 2}, {each: user, max_queued: 90}]\n"
SUM = LIMITED.replace("order: fcfs", "order: min(eligible_time, 2592000) + (7200 if walltime <= 60 else 0)")
CONFIGS = {"limits": LIMITED + THROTTLES, "sum": SUM, "pool": HYBRID, "plain": FCFS}
PARTITIONS = "PartitionName=hidden Nodes=n[1-4] Hidden=YES\nPartitionName=shut Nodes=ALL State=DOWN Default=NO\n"
SET_UP = """
groupadd cluster; for user in alice bob carol; do usermod -aG cluster $user; done
cd /etc/slurm; mv slurm.conf real.conf; ln -s real.conf slurm.conf; chgrp cluster real.conf; chmod 640 real.conf
"""
ACCOUNTING = """
sacctmgr -i add qos low,high; sacctmgr -i add account deep parent=all; sacctmgr -i add user carol account=deep
sacctmgr -i modify account all set qos=normal,low GrpJobs=70 GrpTRES=cpu=50,node=60
sacctmgr -i modify user bob account=all set qos+=high
sacctmgr -i modify user carol account=deep set qos-=low GrpJobs=7 fairshare=parent
sacctmgr -i modify qos normal set GrpJobs=60 MaxTRESPerUser=node=50 Flags=DenyOnLimit
"""
STATE = {
    "files": "cd /etc/slurm; stat -c '%n %a %U %G %F' *; find /usr/local/sbin /etc/cron.d -name 'qconf*'",
    "associations": "sacctmgr dump rehearsal File=/srv/dump > /dev/null 2>&1 && grep -v ^# /srv/dump",
    "QOS": "sacctmgr -P show qos 2> /dev/null",
}
#: Programs, one of whose calls ends the block that makes it, or fails once: the number in /srv/stop says which.
STOPPING = """\
#!/bin/sh
if [ -e /srv/stop ]; then
  read -r left how < /srv/stop
  if [ "$left" = 0 ]; then
    rm /srv/stop
    [ "$how" = fail ] && exit 1
    read -r _ _ _ _ group _ < /proc/self/stat
    kill -s "$how" -- "-$group"
    sleep 5
  fi
  echo "$((left - 1)) $how" > /srv/stop
fi
exec PROGRAM "$@"
"""
WAYS = {
    "literally": [],
    "twice": [None],
    "interrupted": [(n, "INT") for n in (0, 3, 9)],
    "hung up": [(n, "HUP") for n in (1, 5, 14)],
    "killed": [(n, "KILL") for n in (2, 6, 20)],
    "failing": [(n, "fail") for n in (0, 4, 11)],
}
KEPT = ("Partition", "Nice", "Dependency", "EligibleTime", "Reservation", "Comment")
GIVEN = ("held", "held in a list", "first of all", "last of all", "held by root")
LATER = "--begin=now+1day --time=1"


def by(way, steps):
    """Return blocks with those before each that are stopped on their way, or run once more."""
    for title, block in steps:
        for stop in WAYS[way]:
            if stop is None:
                yield title, block
                continue
            ends = f"(sleep 1; touch /srv/end) > /dev/null 2>&1 & setsid --wait timeout 120 sh -c {shlex.quote(block)}"
            # Not before /srv/end is there: it would end the jobs that come after the last block.
            yield title, f"echo {stop[0]} {stop[1]} > /srv/stop\n{ends}\nrm -f /srv/stop; wait\nexit 0"
        yield title, block


def jobs_of_every_kind(server):
    """Submit jobs that wait until the end, and return what they have; some have a priority of an administrator."""
    submit = "sbatch --parsable --output=/dev/null --ntasks=1"

    def one(words, user="alice"):
        return server.run(f"{submit} {words} --wrap true", user=user).stdout.split()[-1]

    server.run("scontrol create reservation=later StartTime=now+2days Duration=9 Users=bob,alice Nodes=n8")
    first = one(f"--partition=former {LATER}")
    jobs = {
        "first": first,
        "of another user": one(f"--partition=former --time=1 --dependency=afterany:{first}", "bob"),
        "the other's": one(f"--partition=work --time=1 --dependency=afterok:{first}", "carol"),
        "array": one(f"--partition=former {LATER} --array=1-3%2"),
        "held": one("--partition=former --time=1 --hold", "bob"),
        "held in a list": one("--partition=former,work --time=1 --hold"),
        "hidden": one(f"--partition=hidden {LATER}", "bob"),
        "down": one(f"--partition=shut {LATER}"),
        "reservation": one("--partition=former --time=1 --reservation=later"),
        "nice": one(f"--partition=former {LATER} --nice=70"),
        "first of all": one(f"--partition=former {LATER}", "bob"),
        "last of all": one(f"--partition=former {LATER}", "bob"),
        "held by root": one(f"--partition=former {LATER}", "carol"),
    }
    for name, priority in (("first of all", 123456), ("last of all", 70), ("held by root", 0)):
        server.run(f"scontrol update JobId={jobs[name]} Priority={priority}")
    assert all(job.isdigit() for job in jobs.values()), jobs
    return jobs


def held_of(server, jobs):
    found = tasks(server)
    numbers = {name: [key for key in found if key.partition("_")[0] == job] for name, job in jobs.items()}
    of = {name: [[found[key].get(word) for word in KEPT] for key in sorted(keys)] for name, keys in numbers.items()}
    of["priorities"] = [found[jobs[name]]["Priority"] for name in GIVEN]
    return of


def followed(way, plan):
    """Load and undo a plan in a way; return what went wrong, and what it was all about."""
    lines = SITE.replace("KEPT", "work") + PARTITIONS
    with PrivateSlurm(NODES, lines, accounting=plan.accounted) as server:
        server.run(SET_UP + (ACCOUNTING if plan.accounted else ""))
        server.run("".join(f"chmod 755 {place}\n" for place in ("/srv", "/srv/home")))
        plan.put(server)
        before, state = saved(server), {name: server.run(command).stdout for name, command in STATE.items()}
        jobs = submitted(plan, server, "work")
        waiting = jobs_of_every_kind(server)
        held = held_of(server, waiting)
        jobs |= {job: of["Partition"] for job, of in tasks(server).items()}
        for program in ("scontrol", "sacctmgr", "squeue"):
            server.write(program, STOPPING.replace("PROGRAM", f"/usr/bin/{program}"), folder="/srv/sbin")
        server.run("mv /srv/sbin/systemctl /srv/restart; chmod 755 /srv/sbin/*; ls /srv/sbin")
        server.write("systemctl", STOPPING.replace("PROGRAM", "/srv/restart"), folder="/srv/sbin")
        server.run("chmod 755 /srv/sbin/*")
        if found := problems(server, [*by(way, plan.steps)]):
            return found, len(jobs)
        jobs |= started(plan, server)
        found = problems(server, [*by(way, plan.undo)])
        server.run("rm -f /srv/stop")
        changed = [name for name, of in before.items() if of != saved(server)[name]]
        changed += [name for name, command in STATE.items() if server.run(command).stdout != state[name]]
        found += [f"not as before: {name}" for name in changed]
        after = held_of(server, waiting)
        found += [f"{name}: {held[name]} is {after[name]}" for name in held if held[name] != after[name]]
        return [*found, *lost(server, [*jobs])], len(jobs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("config", CONFIGS)
def test_no_job_is_lost_and_all_is_as_before(config, way, exported):
    found, jobs = followed(way, exported(CONFIGS[config]))
    assert found == []
    assert jobs > 20


def test_it_is_loaded_while_jobs_come_all_the_time(exported):
    """Faster than slurmdbd hears of them: they wait and are tried again, and lua is loaded for that where it is not."""
    plan = exported(FCFS)
    with PrivateSlurm(NODES, SITE.replace("KEPT", "work"), accounting=True) as server:
        plan.put(server)
        comes = "while [ ! -e /srv/stop ]; do sbatch --time=1 --output=/dev/null --wrap true; sleep 0.05; done"
        start = f"rm -f /srv/stop; nohup sh -c '{comes}' > /srv/said 2>&1 &"
        loaded = next(n for n, (_, block) in enumerate(plan.steps) if "load-conf beside" in block)
        server.run("chmod 755 /srv")
        assert problems(server, plan.steps[:loaded]) == []
        for name in ("beside", "back"):
            server.run(start)
            done = server.run(f"sleep 2; python3 load-conf {name}; touch /srv/stop; cat /srv/said", timeout=200)
            assert "they wait and are tried again for some seconds" in done.stdout
            assert "temporarily unable to accept job, sleeping and retrying" in done.stdout
            assert "submission failed" not in done.stdout.replace("Unable to contact", "")
            server.run("squeue --all --noheader --format=%A | xargs -r scancel")
        assert problems(server, plan.undo) == []


SITES_LUA = """
function slurm_job_submit(job, parts, uid)
   if job.name == "refused" then slurm.log_user("not here") return slurm.ERROR end
   job.comment = "seen"
   return slurm.SUCCESS
end
function slurm_job_modify(job, record, parts, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""


def test_a_job_submit_lua_of_the_site_goes_before_the_routing(exported):
    """With the plan, with a second export above it, and while each is undone."""
    plans = {"first": exported(FCFS), "second": exported(SHARED, "second")}
    submit = "sbatch --parsable --begin=now+1day --time=1 --output=/dev/null --wrap true"
    with private() as server:
        server.write("job_submit.lua", SITES_LUA, folder="/etc/slurm")
        server.run("echo JobSubmitPlugins=lua >> /etc/slurm/slurm.conf; systemctl restart slurmctld")
        before, there = saved(server), []

        def look():
            assert "not here" in server.run(f"{submit} --job-name=refused", user="alice").stdout
            job = server.run(submit, user="alice").stdout.strip()
            assert tasks(server)[job]["Comment"] == "seen"
            there.append(tasks(server)[job]["Partition"])

        for name, plan in plans.items():
            plan.put(server, name)
            assert problems(server, plan.steps) == []
            look()
        for plan in reversed(plans.values()):
            at = next(n for n, (_, block) in enumerate(plan.undo) if "load-conf back" in block) + 1
            for steps in (plan.undo[:at], plan.undo[at:]):
                assert problems(server, steps) == []
                look()
        assert there == ["work", "short", "work", "work", "former", "former"]
        server.run("squeue --noheader --format=%A | xargs -r scancel")
        assert saved(server) == before
