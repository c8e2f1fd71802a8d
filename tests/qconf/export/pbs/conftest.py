"""Fixtures of the tests of exports for PBS."""

import pytest

from qconf.export.pbs.server import Scheduler


@pytest.fixture
def scheduler(tmp_path):
    """Read lines of a sched_config."""

    def read(text):
        (tmp_path / "sched_config").write_text(text)
        return Scheduler.read(tmp_path / "sched_config")

    return read
