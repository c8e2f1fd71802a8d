"""One private Slurm for all of these tests; each leaves it as it was."""

import contextlib
from dataclasses import dataclass

import pytest

from qconf.config import parse
from qconf.export import exporter
from qconf.export.directory import RECORD, write_export
from qconf.export.nodes import Node
from qconf.export.slurm.init import derive
from tests.servers.machine import WORK
from tests.servers.rehearsal import Rehearsal, run_blocks, saved
from tests.servers.slurm import SITE, Plan
from tests.servers.slurm_jobs import lost, tasks
from tests.servers.slurm_server import PrivateSlurm, unavailable

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
        nodes = [Node(name, cores) for name, cores in NODES.items()]
        write_export(tmp_path / name, exporter("slurm")(nodes=nodes, **options).export(parse(text)).files)
        (tmp_path / name / RECORD).unlink()
        return Plan(tmp_path / name)

    return export


@pytest.fixture
def fresh(slurm):
    """The server without files of another export."""
    slurm.run(f"rm -rf {WORK}/*")
    yield slurm
    slurm.run("squeue --all --noheader --format=%A | sort -u | xargs -r scancel; sleep 1")


def private(**options):
    """Return a server for one test, without accounting."""
    return PrivateSlurm(NODES, SITE.replace("KEPT", "work"), accounting=False, **options)


def problems(server, steps):
    """Run blocks of a plan, and return what went wrong."""
    result = Rehearsal("")
    run_blocks(steps, server, result)
    return result.problems


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
        self.server.wait(condition, otherwise)

    def derived(self, folder):
        """Return what init reads of the slurm.conf that is loaded."""
        for name in ("slurm.conf", "partitions.conf", "job_submit.lua"):
            (folder / name).write_text(self.server.run(f"cat /etc/slurm/{name}").stdout)
        return derive(folder / "slurm.conf").config


@pytest.fixture
def loading(fresh, exported):
    """Load a configuration by its plan; afterwards its undo has to leave the server as it was.

    Jobs end before the undo; or `jobs` are named, which it must not lose.
    """

    @contextlib.contextmanager
    def load(text, server=fresh, jobs=None):
        plan, before = exported(text), saved(server)
        plan.put(server)
        assert problems(server, plan.steps) == []
        gone = []
        try:
            yield Loaded(server, plan)
        finally:
            gone += lost(server, []) if jobs is None else []
            gone += problems(server, plan.undo)
        assert gone == []
        assert saved(server) == before
        assert lost(server, jobs or []) == []

    return load
