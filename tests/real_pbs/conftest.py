"""One private server for all of these tests; each brings it to its own state and back."""

import contextlib
import re
import time
from dataclasses import dataclass, field

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.nodes import Node
from qconf.export.pbs.server import Server
from qconf.hosts import expand
from tests.servers.pbs import PRINTED, Plan, held, install, resemble
from tests.servers.pbs_server import PrivateServer, unavailable
from tests.servers.rehearsal import Rehearsal, run_blocks

NODES = {f"n{number:02}": 8 for number in range(1, 13)}
AS_NODES = [Node(name, cores) for name, cores in NODES.items()]


def pytest_collection_modifyitems(items):
    """Skip these tests, with the reason, where no installation is named or it cannot run here: CI has none."""
    why = unavailable()
    here = [item for item in items if item.nodeid.startswith("tests/real_pbs/")]
    for item in here if why else ():
        item.add_marker(pytest.mark.skip(reason=why))


@dataclass
class Loaded:
    """A server on which an export was loaded by its plan, and short ways to use it."""

    server: PrivateServer
    plan: Plan
    problems: list[str] = field(default_factory=list)
    undone: bool = False

    def undo(self):
        """Undo the change by its plan, once; then jobs start."""
        if self.undone:
            self.server.run("qmgr -c 'set server scheduling = True'")
            return
        self.undone, result = True, Rehearsal("", problems=self.problems)
        run_blocks(self.plan.undo, self.server, result)

    def submit(self, *, user="alice", queue=None, cores=1, walltime=60, seconds=30, extra=""):
        """Submit a job as an ordinary user and return its id, or what qsub said."""
        where = queue or self.plan.route
        resources = f"-l ncpus={cores} -l walltime={walltime} {extra}"
        if cores > 8:
            resources = f"-l select={cores // 8}:ncpus=8 -l walltime={walltime} {extra}"
        return self.server.qsub(f"-q {where} {resources}", user=user, seconds=seconds)

    def attribute(self, job, name):
        text = self.server.run(f"qstat -xf {job} | sed -e ':a;N;$!ba;s/\\n\\t//g'").stdout
        found = re.search(rf"^\s+{re.escape(name)} = (.*)$", text, re.MULTILINE)
        return found[1] if found else None

    def states(self, *jobs):
        return [self.attribute(job, "job_state") for job in jobs]

    def nodes(self, job):
        return set(re.findall(r"(n\d+):", self.attribute(job, "exec_vnode")))

    def started(self, walltimes, pauses=()):
        """Submit jobs of all cores, sleep the seconds of `pauses` after each, and return the order of their starts."""
        self.server.run("qmgr -c 'set server scheduling = False'")
        jobs = []
        for number, walltime in enumerate(walltimes):
            jobs.append(self.submit(cores=96, walltime=int(walltime), seconds=1))
            time.sleep(pauses[number] if pauses else 0)
        self.server.run("qmgr -c 'set server scheduling = True'")
        assert self.until(lambda: self.states(*jobs) == ["F"] * len(jobs), seconds=90), self.states(*jobs)
        record = self.server.run("cat /srv/pbs/server_priv/accounting/*").stdout
        at = {job: int(start) for job, start in re.findall(r";S;(\S+?);.* start=(\d+)", record)}
        return sorted(range(len(jobs)), key=lambda number: at[jobs[number]])

    def until(self, condition, seconds=20):
        """Wait until a condition holds and return whether it does."""
        end = time.monotonic() + seconds
        while not (held := condition()) and time.monotonic() < end:
            time.sleep(0.3)
        return held


def become(server, printed):
    """Have a server hold more, what ``print server`` prints of it, and nothing of that be refused."""
    assert resemble(server, Server.parse(server.run(PRINTED).stdout + printed)) == []


def give(server, config):
    """Give nodes the memory and the GPUs that they have in a configuration; the resource has to be there."""
    for each in config.nodes:
        more = f", resources_available.ngpus = {each.gpus}" if each.gpus else ""
        names = ",".join(expand(each.hosts))
        server.run(f"qmgr -c 'set node {names} resources_available.mem = {each.memory}mb{more}'")


@pytest.fixture(scope="session")
def private_server():
    with PrivateServer(NODES) as server:
        server.run("qmgr -c 'set server job_history_enable = True'")
        yield server


@pytest.fixture
def fresh(private_server):
    """The server as it was after its start, whatever the test leaves."""
    before = held(private_server)
    yield private_server
    private_server.run("qmgr -c 'set server scheduling = False'; qselect -x | xargs -r qdel -x -W force; sleep 0.5")
    for resource in ("mem", "ngpus"):
        private_server.run(f"qmgr -c 'unset node {','.join(NODES)} resources_available.{resource}'")
    resemble(private_server, before)
    private_server.run("qmgr -c 'set server scheduling = True'")


@pytest.fixture
def loading(fresh, tmp_path):
    """Load a configuration by its plan; afterwards its undo has to leave the server as it was."""
    return loader(fresh, tmp_path)


@pytest.fixture
def loading_on_whole_nodes(tmp_path):
    """The same on a server whose nodes are given whole."""
    with PrivateServer(NODES, sharing="default_excl") as server:
        server.run("qmgr -c 'set server job_history_enable = True'")
        yield loader(server, tmp_path)


_SECOND_HOST = """
ip address add 192.0.2.2/32 dev lo
echo '192.0.2.2 pbshost2' >> /etc/hosts
mkdir /srv/mom2
cp -a /srv/pbs/{spool,undelivered,aux,checkpoint,mom_priv,pbs_environment} /srv/mom2
mkdir -p /srv/mom2/mom_logs /srv/mom2/mom_priv/config.d
rm -f /srv/mom2/mom_priv/mom.lock /srv/mom2/mom_priv/config.d/*
cp vnodes2 /srv/mom2/mom_priv/config.d/vnodes
sed 's/^PBS_HOME=.*/PBS_HOME=\\/srv\\/mom2/' /etc/pbs.conf > /srv/pbs2.conf
echo PBS_LEAF_NAME=pbshost2 >> /srv/pbs2.conf
export PBS_CONF_FILE=/srv/pbs2.conf PBS_HOME=/srv/mom2
unshare --uts sh -c 'hostname pbshost2; pbs_mom -M 15102 -R 15103 -d /srv/mom2'
unset PBS_CONF_FILE PBS_HOME
qmgr -c 'create node pbshost2 Mom=pbshost2,Port=15102'
"""


@pytest.fixture
def loading_on_two_hosts(tmp_path):
    """The same on nodes of which each of two MoMs has half."""
    own, others = list(NODES)[:6], list(NODES)[6:]
    with PrivateServer({name: NODES[name] for name in own}) as server:
        lines = [f"{name}: resources_available.ncpus = {NODES[name]}" for name in others]
        server.write("vnodes2", "\n".join(["$configversion 2", "pbshost2: resources_available.ncpus = 0", *lines, ""]))
        done = server.run(f"{_SECOND_HOST}qmgr -c 'set server job_history_enable = True'").stdout
        server.wait(f"[ $(pbsnodes -av | grep -c 'state = free') -ge {len(NODES) + 2} ]", f"no second host: {done}")
        yield loader(server, tmp_path)


def loader(server, tmp_path):
    @contextlib.contextmanager
    def load(text, *, printed="", **options):
        become(server, printed)
        before = server.run(PRINTED).stdout
        config = parse(text) if isinstance(text, str) else text
        export = exporter("pbs")(current=Server.parse(before), nodes=AS_NODES, **options).export(config)
        folder = tmp_path / f"export{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        plan, result = install(export.files, server, folder), Rehearsal("")
        server.run("rm -f steps.done")  # of a test that failed
        run_blocks(plan.steps, server, result)
        loaded = Loaded(server, plan, result.problems)
        try:
            yield loaded
        finally:
            server.run("qmgr -c 'set server scheduling = False'; qselect -x | xargs -r qdel -x -W force; sleep 0.5")
            loaded.undo()
        assert result.problems == []
        assert server.run(PRINTED).stdout == before

    return load
