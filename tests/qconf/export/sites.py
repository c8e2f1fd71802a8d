"""Configurations, servers and nodes that the tests of several exporters use, and short ways to export them."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

from qconf.export import ExportError, exporter
from qconf.export.nodes import Node, read_nodes
from qconf.export.pbs.server import Server
from qconf.export.slurm.init import derive
from tests.beside import SHARED
from tests.qconf.test_config import site_configs

ROOT = Path(__file__).parents[3]
CRAY = ROOT / "configs" / "cray-xc40.yaml"
PRINTED = SHARED / "pbs" / "print_server.txt"
FRESH = """\
create queue workq
set queue workq queue_type = Execution
set queue workq enabled = True
set queue workq started = True
set server scheduling = True
set server default_queue = workq
set server eligible_time_enable = False
"""
HYBRID = """\
machine: {name: tiny, cores: 96, cores_per_node: 8, whole_nodes: true}
mode: hybrid
order: fcfs
queues:
  - {name: small, cores: [1, 16], walltime: [0, 24h], priority: 40, partition: 32,
     starvation: 24h, max_run: 6}
  - {name: medium, cores: [17, 40], walltime: [0, 24h], priority: 80, partition: 40, max_user_run: 2}
  - {name: large, cores: [41, 96], walltime: [0, 48h], priority: 100, reservation: true}
pool: {cores: 24, entry: move}
"""
NODES = read_nodes("nid[001-012]")  #: of HYBRID

QUICK = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking such configurations takes minutes
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

needs_printed = pytest.mark.skipif(not PRINTED.exists(), reason=f"{PRINTED} is not here")


def pbs(config, *, current=None, **options):
    """Export for PBS; `current` is the text of ``print server``."""
    server = None if current is None else Server.parse(current, "print server")
    return exporter("pbs")(current=server, **options).export(config)


def pbs_files(config, **options):
    return pbs(config, **options).files


def slurm_files(config, nodes=None):
    return exporter("slurm")(nodes=nodes).export(config).files


def written(folder, files, *names):
    """Write files of an export into a folder, all or those that are named; return the folder."""
    for name in names or files:
        (folder / name).write_text(files[name])
    return folder


def slurm_read(folder, text, **given):
    """Return what init reads of a slurm.conf of this text, beside the files of a folder."""
    (folder / "slurm.conf").write_text(text)
    return derive(folder / "slurm.conf", **given)


def new_conf(folder, before=None, site="."):
    """Run new-conf of an export for a slurm.conf; return what it prints."""
    if before is not None:
        (folder / "slurm.conf.before").write_text(before)
    command = [sys.executable, "new-conf", "slurm.conf.before", str(site)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@st.composite
def exportable(draw, mode=None):
    """Draw a configuration whose queue names PBS takes."""
    config = draw(site_configs())
    if mode is not None:
        assume(config.mode == mode)
    letters = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,12}", fullmatch=True).filter(lambda name: not name.endswith("_p"))
    names = draw(st.lists(letters, min_size=len(config.queues), max_size=len(config.queues), unique=True))
    queues = [q.model_copy(update={"name": n}) for q, n in zip(config.queues, names, strict=True)]
    return config.with_queues(queues, fixed=())


def nodes_of(config):
    return [Node(f"n{i}") for i in range(config.machine.cores // config.machine.cores_per_node)]


def exported(config, **options):
    """Export, or skip what is refused for a reason that is no defect."""
    try:
        return pbs_files(config, **options)
    except ExportError as error:
        assume("backfill: false" not in str(error) and "narrowest" not in str(error))
        raise
