"""Every script that a test exports for PBS is one that the server would take."""

from copy import deepcopy

import pytest

from qconf.export.pbs import PbsExporter, qmgr
from qconf.export.pbs.scheduler import Scheduler
from qconf.export.pbs.server import Server
from tests.qconf.export.pbs.lint import Linter


@pytest.fixture
def scheduler(tmp_path):
    """Read lines of a sched_config."""

    def read(text):
        (tmp_path / "sched_config").write_text(text)
        return Scheduler.read(tmp_path / "sched_config")

    return read


@pytest.fixture(autouse=True)
def linted(monkeypatch):
    export = PbsExporter.export

    def checked(self, config):
        found = export(self, config)
        before = self.current or Server()
        after = deepcopy(before)
        for statement in qmgr.parse(found.files["queues.qmgr"]):
            after.apply(statement)
        for name, start in (("queues.qmgr", before), ("nodes.qmgr", after), ("rollback.qmgr", after)):
            assert not Linter(start, trusted=before).script(found.files.get(name, "")), name
        return found

    monkeypatch.setattr(PbsExporter, "export", checked)
