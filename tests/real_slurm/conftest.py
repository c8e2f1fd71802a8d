"""One private Slurm for all of these tests; each leaves it as it was."""

import contextlib
from dataclasses import dataclass

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.nodes import Node
from tests.servers.machine import WORK
from tests.servers.slurm import SITE, Plan
from tests.servers.slurm_jobs import lost, tasks
from tests.servers.slurm_server import PrivateSlurm, unavailable
from tests.servers.trial import Rehearsal, run_blocks, saved

NODES = {f"n{number}": 2 for number in range(1, 9)}


def pytest_collection_modifyitems(items):
    """Skip these tests, with the reason, where Slurm is not installed or cannot run."""
    here = [item for item in items if item.nodeid.startswith("tests/real_slurm/")]
    why = unavailable() if here else None
    for item in here if why else ():
        item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def slurm():
    with PrivateSlurm(NODES, SITE.replace("KEPT", "work")) as server:
        yield server


@pytest.fixture
def exported(tmp_path):
    """Export a configuration into a folder, and read its plan."""

    def export(text, name="export", **options):
        folder = tmp_path / name
        folder.mkdir()
        nodes = [Node(name, cores) for name, cores in NODES.items()]
        for file, content in exporter("slurm")(nodes=nodes, **options).export(parse(text)).files.items():
            (folder / file).write_text(content)
        return Plan(folder)

    return export


@pytest.fixture
def fresh(slurm):
    """The server without files of another export."""
    slurm.run(f"rm -rf {WORK}/*")
    yield slurm
    slurm.run("squeue --all --noheader --format=%A | sort -u | xargs -r scancel; sleep 1")


@dataclass
class Loaded:
    """A server on which an export was loaded by its plan, and short ways to use it."""

    server: PrivateSlurm
    plan: Plan

    def submit(self, what="--time=1", *, user="alice", seconds=30):
        """Submit a job as an ordinary user and return its id, or what sbatch said."""
        command = f"sbatch --parsable --output=/dev/null {what} --wrap 'sleep {seconds}'"
        return self.server.run(command, user=user).stdout.strip()

    def of(self, key, *jobs):
        held = tasks(self.server)
        return [held[job][key] for job in jobs]

    def states(self, *jobs):
        return self.of("JobState", *jobs)

    def until(self, condition, otherwise="it does not happen"):
        self.server.wait(condition, otherwise, seconds=20)


@pytest.fixture
def loading(fresh, exported):
    """Load a configuration by its plan; afterwards its undo has to leave the server as it was."""

    @contextlib.contextmanager
    def load(text):
        plan, result, before = exported(text), Rehearsal(""), saved(fresh)
        for name, content in plan.files.items():
            fresh.write(name, content)
        run_blocks(plan.steps, fresh, result)
        assert result.problems == []
        try:
            yield Loaded(fresh, plan)
        finally:
            problems = lost(fresh, [])
            run_blocks(plan.undo, fresh, result)
        assert [*result.problems, *problems] == []
        assert saved(fresh) == before

    return load
