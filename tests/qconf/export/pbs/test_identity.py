"""What init reads of a server, exported unedited, changes nothing; and what is edited changes that alone."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qconf.config import dump, parse
from qconf.errors import InputError
from qconf.export.pbs import PbsExporter
from qconf.export.pbs.changes import NOTHING
from qconf.export.pbs.init import derive
from qconf.export.pbs.server import Server
from tests.beside import SHARED
from tests.qconf.export.pbs.listings import sites
from tests.qconf.export.pbs.model import commands
from tests.qconf.export.sites import PRINTED, QUICK

LISTINGS = [
    *(SHARED / "cases" / "pbs" / f"{name}_ps.txt" for name in ("M1", "M2", "depth", "nested", "nodect")),
    PRINTED,
    SHARED / "pbs" / "snapshot" / "print_server.txt",
]


def read(server, **options):
    """The configuration of a server, as it comes back from its file."""
    return parse(dump(derive(server, **options).config, "unedited"))


def is_nothing(export):
    """Whether nothing is loaded, and that is said."""
    said = NOTHING in export.notes and NOTHING in export.files["PLAN.md"]
    return said and sorted(export.files) == ["PLAN.md", "queues.qmgr"] and commands(export.files["queues.qmgr"]) == []


def statements(export):
    return commands(export.files["queues.qmgr"])


@pytest.mark.parametrize("path", LISTINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_site_unedited(path):
    if not path.exists():
        pytest.skip(f"{path} is not here")
    server = Server.read(path)
    assert is_nothing(PbsExporter(current=server).export(read(server)))


@settings(QUICK, max_examples=500)
@given(sites(), st.booleans(), st.booleans(), st.booleans())
def test_any_server_unedited(site, with_nodes, with_scheduler, again):
    """With its nodes and the scheduler's settings, or without; the export may lack the nodes that init was given."""
    server = Server.parse(site.printed())
    nodes = site.nodes() if with_nodes else None
    scheduler = site.scheduler() if with_scheduler else None
    try:
        config = read(server, nodes=nodes, scheduler=scheduler)
    except InputError as error:
        none = ("no queue may use any of the nodes", "that the machine holds", "no queue that a job can enter")
        assume(not any(words in str(error) for words in none))
        raise
    current = PbsExporter(current=server, nodes=nodes if again else None, scheduler=scheduler)
    assert is_nothing(current.export(config))
