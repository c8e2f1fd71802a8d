"""No job is lost by a plan: loaded, repeated, interrupted, broken off half way and undone, with every kind of job."""

import re
import time
from dataclasses import dataclass, field, replace

import pytest

from qconf.config import parse
from qconf.export import exporter
from tests.qconf.export.sites import HYBRID
from tests.real_pbs.conftest import AS_NODES, NODES, become
from tests.real_pbs.test_exports import BOUND, SHARED, SITE
from tests.servers.pbs import held, install

STATE = """
qmgr -c 'print server'; qmgr -c 'print node @default'; qmgr -c 'list hook' | grep ^Hook
cat /srv/pbs/sched_priv/sched_config; stat -c '%a %U' /srv/pbs/sched_priv/sched_config
ls /usr/local/sbin /etc/cron.d
"""
#: Attributes of a job that no plan may change.
KEPT = ("job_state", "queue", "Hold_Types", "Priority", "depend", "Resource_List.select", "Resource_List.walltime")


@dataclass
class Scenario:
    """What the server holds before, the configuration that is loaded, and the jobs that wait."""

    config: str
    printed: str = ""
    jobs: dict[str, str] = field(default_factory=dict)  #: name to user and words of qsub; {name} is an earlier one's id
    more: str = ""  #: commands of root after the submissions; $name is an id
    stay: tuple[str, ...] = ()  #: jobs that a plan may not move, and names


WAITING = {
    "plain": "alice -q old -l ncpus=2",
    "held": "alice -q old -h -l ncpus=2",
    "later": "alice -q old -l ncpus=2 -a {tomorrow}",
    "array": "alice -q old -J 1-4 -l ncpus=2",
    "given": "alice -q old -p 7 -l ncpus=2",
    "first": "alice -q old -l ncpus=2",
    "second": "alice -q old -l ncpus=2 -W depend=afterok:{first}",
    "awaited": "alice -q old -l ncpus=2",
    "other": "bob -q old -l ncpus=2 -W depend=afterany:{awaited}",
    "once": "alice -q old -l ncpus=2",
    "again": "alice -q old -l ncpus=2 -W depend=runone:{once}",
    "new": "bob -q small -l ncpus=2",
    "routed": "bob -q route -h -l ncpus=2",
}
OPEN = SITE.replace("set queue old resources_min.ncpus = 17\n", "")
SCENARIOS = {
    "closed": Scenario(
        SHARED.replace("ORDER", "lxf"),
        OPEN,
        WAITING,
        "qhold -h s $given; qalter -p 9 $given",
        ("awaited",),
    ),
    "stopped": Scenario(
        SHARED.replace("ORDER", "fcfs"),
        OPEN.replace("set queue old started = True", "set queue old started = False")
        + "create queue site queue_type=r,enabled=t,started=t\nset queue site route_destinations = route\n",
        {**WAITING, "nested": "carol -q site -h -l ncpus=3"},
        "",
        ("awaited",),
    ),
    "limited": Scenario(  # routes within routes, lists of hosts, limits that moves exceed, a reservation's queue
        SHARED.replace("ORDER", "lxf").replace("priority:", "access: {hosts: [pbshost]}, priority:"),
        OPEN.replace("[u:PBS_GENERIC=50]", "[u:PBS_GENERIC=1]").replace(
            "acl_hosts = pbshost", "acl_hosts = pbshost\nset queue small acl_host_enable = True"
        )
        + "set queue small max_array_size = 4\nset queue old max_array_size = 9\n"
        "set queue old acl_hosts = pbshost\nset queue old acl_host_enable = True\n"
        "create queue site queue_type=r,enabled=t,started=t\nset queue site route_destinations = route\n"
        "create queue top queue_type=r,enabled=t,started=f\nset queue top route_destinations = site\n"
        "set server default_queue = top\nset server acl_hosts = pbshost\nset server acl_host_enable = True\n",
        {
            **{name: words for name, words in WAITING.items() if name != "new"},
            "nested": "carol -q site -h -l ncpus=3",
            "default": "carol -l ncpus=3",
            "kept": "alice -q {reservation} -l ncpus=1",
            "behind": "alice -q old -l ncpus=1 -W depend=afterok:{kept}",
            "before": "alice -q {reservation} -l ncpus=1 -W depend=afterany:{behind}",
        },
        "",
        ("awaited", "kept", "before", "nested", "default", "routed"),
    ),
    "bound": Scenario(
        BOUND,
        "create resource ngpus type = long, flag = nh\ncreate queue work queue_type = e, enabled = t, started = t\n",
        {name: words.replace("-q old", "-q work") for name, words in WAITING.items() if name not in ("new", "routed")},
        "",
        ("awaited",),
    ),
    "pool": Scenario(
        HYBRID.replace("entry: move", "entry: move, threshold: 1"),
        "",
        {name: words.replace("-q old", "-q workq") for name, words in WAITING.items() if name not in ("new", "routed")},
    ),
}


FAILING = """#!/bin/sh
folder=$(dirname "$0"); left=$(cat $folder/left); echo $((left - 1)) > $folder/left
[ $left = 1 ] && { echo "no more" >&2; exit 1; }
PATH=${PATH#$folder:}; exec $(basename $0) "$@"
"""


class Loading:
    """A scenario on a server, and the blocks of its plan."""

    def __init__(self, server, scenario, folder):
        self.server, self.scenario = server, scenario
        become(server, scenario.printed)
        self.ids = {"tomorrow": time.strftime("%m%d%H%M", time.localtime(time.time() + 86400))}
        if any("{reservation}" in words for words in scenario.jobs.values()):
            self.ids["reservation"] = self.reserve()
        server.run("rm -rf steps.* jobs.* *.before*; qmgr -c 'set server scheduling = False'")
        if "memory" in scenario.config:
            server.run(f"qmgr -c 'set node {','.join(NODES)} resources_available.mem = 256gb'")
        for name, words in scenario.jobs.items():
            user, _, wanted = words.format(**self.ids).partition(" ")
            self.ids[name] = self.submit(user, wanted)
        names = "; ".join(f"{name}={job}" for name, job in self.ids.items())
        server.run(f"{names}; {scenario.more}")
        files = exporter("pbs")(current=held(server), nodes=AS_NODES).export(parse(scenario.config)).files
        self.plan = install(files, server, folder)
        self.before, self.jobs = server.run(STATE).stdout, self.known()

    def reserve(self):
        """Return the queue of a reservation of alice's that begins tomorrow."""
        made = self.server.run(f"pbs_rsub -R {self.ids['tomorrow']} -D 3600 -l select=1:ncpus=2", user="alice").stdout
        queue = made.split(".")[0]
        self.server.wait(f"pbs_rstat {queue} | grep CO", f"not confirmed: {made}")
        return queue

    def submit(self, user, words, seconds=2):
        walltime = "" if "walltime" in words else "-l walltime=60"
        found = self.server.qsub(f"{words} {walltime}", user=user, seconds=seconds)
        assert re.fullmatch(r"\d+(\[\])?\.\S+", found), found
        return found

    def known(self):
        """What the server knows of each job: its attributes; nothing of one that is no more."""
        text = self.server.run("qstat -xf | sed -e ':a;N;$!ba;s/\\n\\t//g'").stdout
        blocks = {block.split("\n", 1)[0]: block for block in text.split("Job Id: ")[1:]}
        found = {job: dict(re.findall(r"(?m)^\s+(\S+) = (.*)$", block)) for job, block in blocks.items()}
        return {job: {key: about.get(key) for key in (*KEPT, "stime")} for job, about in found.items()}

    def lost(self):
        """Jobs that were there and are neither known to the server nor have run."""
        now = self.known()
        return [
            name
            for name, job in self.ids.items()
            if name not in ("tomorrow", "reservation")
            and (job not in now or (now[job]["job_state"] == "F" and not now[job]["stime"]))
        ]

    def run(self, block):
        return self.server.run(block, timeout=300)

    def interrupted(self, block, signal):
        """Run a block that is ended by a signal after some time, with all that it has begun."""
        for after in (0.15, 0.4, 0.9):
            command = f"setsid timeout --signal={signal} {after} bash <<'BLOCK'\n{block}BLOCK\n"
            self.server.run(f"{command}sleep 0.1")

    def failing(self, block):
        """Run a block of which the first command fails that changes anything, the third, or the seventh."""
        for name in ("qmgr", "qmove", "qalter"):
            self.server.write(name, FAILING)
        self.server.run("mkdir -p failing; mv qmgr qmove qalter failing; chmod 755 failing/*")
        for number in (1, 3, 7):
            self.server.run(f"echo {number} > failing/left; PATH=$PWD/failing:$PATH\n{block}", timeout=300)


ENDED = {"interrupted": "KILL", "hang-up": "HUP"}
WAYS = [(name, way) for name in SCENARIOS for way in ("literal", "twice", "interrupted", "hang-up", "failing", "half")]


def follow(loading, blocks, way):
    for _, block in blocks:
        if way in ENDED:
            loading.interrupted(block, ENDED[way])
        if way == "failing":
            loading.failing(block)
        done = loading.run(block)
        assert done.returncode == 0, done.stdout
        assert loading.lost() == [], (block, done.stdout)
        if way == "twice":
            again = loading.run(block)
            assert again.returncode == 0, again.stdout
            assert re.search("done already|nothing is to be undone", again.stdout), again.stdout


@pytest.fixture
def loading(fresh, tmp_path):
    def load(scenario):
        return Loading(fresh, scenario, tmp_path)

    yield load
    fresh.run("pbs_rstat -B | sed -n 's/.*: *//p' | xargs -r pbs_rdel; rm -rf steps.* jobs.* *.before* failing")


@pytest.mark.parametrize(("name", "way"), WAYS)
def test_no_job_is_lost_and_all_is_as_before_after_the_undo(name, way, loading):
    loaded = loading(SCENARIOS[name])
    steps = loaded.plan.steps
    follow(loaded, steps[: len(steps) // 2] if way == "half" else steps, way)
    now = loaded.known()
    moved = {job: about["queue"] for job, about in now.items() if about["queue"] != loaded.jobs[job]["queue"]}
    assert not {loaded.ids[each] for each in loaded.scenario.stay} & moved.keys()
    if "closed" in loaded.plan.text and way != "half":
        assert {loaded.ids[each] for each in ("held", "array", "second", "other")} <= moved.keys()
    late = loaded.submit("carol", f"-q {loaded.plan.route if way != 'half' else 'workq'} -h -l ncpus=1")
    follow(loaded, loaded.plan.undo, way)
    after = loaded.known()
    assert after.pop(late)["job_state"] == "H"
    assert after == loaded.jobs
    loaded.server.run(f"qdel -x -W force {late}")
    assert loaded.server.run(STATE).stdout == loaded.before


def test_a_job_that_no_queue_takes_stops_the_plan_and_nothing_is_changed(loading):
    loaded = loading(SCENARIOS["closed"])
    long = {"nowhere": "-q route -h", "stays": "-q old"}
    for name, words in long.items():
        loaded.ids[name] = loaded.submit("bob", f"{words} -l ncpus=20 -l walltime=60:00:00")
    jobs = loaded.known()
    (_, first), *others = loaded.plan.steps
    done = loaded.run(first)
    assert done.returncode == 1
    for name, words in long.items():
        queue = words.split()[1]
        assert f"{loaded.ids[name]}: no queue takes it from {queue} (ncpus=20 " in done.stdout
    assert "step 1 comes first" in loaded.run(others[0][1]).stdout
    assert (loaded.server.run(STATE).stdout, loaded.known()) == (loaded.before, jobs)
    loaded.server.run(f"qalter -l walltime=1:00:00 {loaded.ids['nowhere']}; echo {loaded.ids['stays']} > jobs.left")
    follow(loaded, loaded.plan.steps, "literal")
    assert loaded.known()[loaded.ids["stays"]]["queue"] == "old"
    late = loaded.submit("bob", "-q route -h -l ncpus=1")
    follow(loaded, loaded.plan.undo, "literal")
    assert loaded.known()[late]["queue"] == "route"
    assert loaded.server.run(STATE).stdout == loaded.before


def test_jobs_that_run_and_arrays_that_have_begun_go_on(loading):
    """What cannot leave a queue that was created runs there, on any nodes; the last step is run again then."""
    loaded = loading(replace(SCENARIOS["bound"], jobs={}))
    server = loaded.server
    loaded.ids = {"array": loaded.submit("alice", "-q work -J 1-16 -l ncpus=8", 30)}
    loaded.ids["wide"] = loaded.submit("alice", "-q work -l select=12:ncpus=8")
    server.run("qmgr -c 'set server scheduling = True'")
    server.wait(f"qstat -f '{loaded.ids['array']}' | grep 'job_state = B'", "the array does not begin")
    follow(loaded, loaded.plan.steps, "literal")
    server.run("qmgr -c 'set server scheduling = True'")  # which it was not as the export was made
    loaded.ids["gpus"] = loaded.submit("bob", "-q gpu -J 1-16 -l ncpus=8", 20)
    loaded.ids["awaited"] = loaded.submit("bob", "-q gpu -l ncpus=1")
    loaded.ids["other"] = loaded.submit("carol", f"-q work -W depend=afterok:{loaded.ids['awaited']} -l ncpus=1")
    server.wait(f"qstat -f '{loaded.ids['gpus']}' | grep 'job_state = B'", "the array does not begin")
    *undo, (_, last) = loaded.plan.undo
    follow(loaded, undo, "literal")
    done = loaded.run(last)
    assert done.returncode == 1
    assert "jobs of gpu: " in done.stdout
    server.run("qmgr -c 'set server scheduling = True'")
    server.wait("! qselect | grep .", "jobs do not end", seconds=240)
    assert loaded.lost() == []
    server.run("qselect -x | xargs qdel -x")  # in the history they would keep resources
    done = loaded.run(last)
    assert done.returncode == 0, done.stdout
    server.run("qmgr -c 'set server scheduling = False'")
    assert server.run(STATE).stdout == loaded.before


REFUSES = "import pbs\ne = pbs.event()\ne.reject('not now') if e.requestor == 'root' else e.accept()\n"


@pytest.mark.parametrize("way", ["literal", "twice", "interrupted"])
def test_a_hook_that_refuses_moves_stops_the_plan_until_it_is_off(way, loading):
    """The jobs are named and stay; with the hook off the same step goes on, and the undo brings all back."""
    loaded = loading(SCENARIOS["closed"])
    server = loaded.server
    server.write("refuses.py", REFUSES)
    hook = ["create hook refuses", "set hook refuses event = movejob"]
    hook += ["import hook refuses application/x-python default refuses.py"]
    server.run("; ".join(f"qmgr -c '{each}'" for each in hook))
    try:
        at = next(i for i, (title, _) in enumerate(loaded.plan.steps) if "Empty the closed queues" in title)
        follow(loaded, loaded.plan.steps[:at], way)
        if way == "interrupted":
            loaded.interrupted(loaded.plan.steps[at][1], "KILL")
        done = loaded.run(loaded.plan.steps[at][1])
        assert done.returncode == 1
        assert f"{loaded.ids['plain']}: stays in old: " in done.stdout
        assert "not now" in done.stdout
        assert loaded.known()[loaded.ids["plain"]]["queue"] == "old"
        assert "comes first" in loaded.run(loaded.plan.steps[at + 1][1]).stdout
        server.run("qmgr -c 'set hook refuses enabled = False'")
        follow(loaded, loaded.plan.steps[at:], way)
        assert loaded.known()[loaded.ids["plain"]]["queue"] == "small"
        follow(loaded, loaded.plan.undo, way)
        assert loaded.known() == loaded.jobs
    finally:
        server.run("qmgr -c 'delete hook refuses'")
    assert server.run(STATE).stdout == loaded.before
