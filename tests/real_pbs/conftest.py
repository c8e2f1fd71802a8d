"""One private server for all of these tests; each brings it to its own state and back."""

import contextlib
import re
import time
from dataclasses import dataclass, field

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.nodes import Node
from qconf.export.pbs.private_server import PrivateServer, unavailable
from qconf.export.pbs.rehearsal import Plan, Rehearsal, resemble, run_blocks
from qconf.export.pbs.server import Server

NODES = {f"n{number:02}": 8 for number in range(1, 13)}


def pytest_collection_modifyitems(items):
    """Skip these tests, with the reason, where no installation is named or it cannot run here: CI has none."""
    why = unavailable()
    here = [item for item in items if "real_pbs" in item.nodeid]
    for item in here if why else ():
        item.add_marker(pytest.mark.skip(reason=why))


@dataclass
class Loaded:
    """A server on which an export was loaded by its plan, and short ways to use it."""

    server: PrivateServer
    plan: Plan
    problems: list[str] = field(default_factory=list)

    def submit(self, *, user="alice", queue=None, cores=1, walltime=60, seconds=30, extra=""):
        """Submit a job as an ordinary user and return its id, or what qsub said."""
        where = queue or self.plan.route
        resources = f"-l ncpus={cores} -l walltime={walltime} {extra}"
        if cores > 8:
            resources = f"-l select={cores // 8}:ncpus=8 -l walltime={walltime} {extra}"
        return self.server.run(f"qsub -q {where} {resources} -- /bin/sleep {seconds}", user=user).stdout.strip()

    def attribute(self, job, name):
        text = self.server.run(f"qstat -xf {job} | sed -e ':a;N;$!ba;s/\\n\\t//g'").stdout
        found = re.search(rf"^\s+{re.escape(name)} = (.*)$", text, re.MULTILINE)
        return found[1] if found else None

    def states(self, *jobs):
        return [self.attribute(job, "job_state") for job in jobs]

    def until(self, condition, seconds=20):
        """Wait until a condition holds and return whether it does."""
        end = time.monotonic() + seconds
        while not (held := condition()) and time.monotonic() < end:
            time.sleep(0.3)
        return held


@pytest.fixture(scope="session")
def private_server():
    with PrivateServer(NODES) as server:
        server.run("qmgr -c 'set server job_history_enable = True'")
        yield server


@pytest.fixture
def fresh(private_server):
    """The server as it was after its start, whatever the test leaves."""
    before = Server.parse(private_server.run("qmgr -c 'print server'").stdout)
    yield private_server
    private_server.run("qmgr -c 'set server scheduling = False'; qselect -x | xargs -r qdel -x -W force; sleep 0.5")
    resemble(private_server, before)
    private_server.run("qmgr -c 'set server scheduling = True'")


@pytest.fixture
def loading(fresh, tmp_path):
    """Load a configuration by its plan; afterwards its undo has to leave the server as it was."""

    @contextlib.contextmanager
    def load(text, *, printed="", **options):
        assert resemble(fresh, Server.parse(fresh.run("qmgr -c 'print server'").stdout + printed)) == []
        before = fresh.run("qmgr -c 'print server'").stdout
        nodes = [Node(name, cores) for name, cores in NODES.items()]
        config = parse(text) if isinstance(text, str) else text
        export = exporter("pbs")(current=Server.parse(before), nodes=nodes, **options).export(config)
        folder = tmp_path / f"export{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        for name, content in export.files.items():
            (folder / name).write_text(content)
            fresh.write(name, content)
        plan, result = Plan(folder), Rehearsal("")
        run_blocks(plan.steps, fresh, result)
        try:
            yield Loaded(fresh, plan, result.problems)
        finally:
            fresh.run("qmgr -c 'set server scheduling = False'; qselect -x | xargs -r qdel -x -W force; sleep 0.5")
            run_blocks(plan.undo, fresh, result)
        assert result.problems == []
        assert fresh.run("qmgr -c 'print server'").stdout == before

    return load
