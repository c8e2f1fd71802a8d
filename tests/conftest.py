"""What the whole run of the tests needs."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from qconf.cli import one_blas_thread

one_blas_thread()
# Every run tries the same examples, so that what lands is decided by the change. RANDOM=1 looks for others.
settings.register_profile("repeatable", derandomize=not os.environ.get("RANDOM"))
settings.load_profile("repeatable")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile every module again

from tests.warm import warm  # noqa: E402 - numpy comes later


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_setupnodes() -> None:
    """Compile the kernels before the workers start: each of them would compile the same ones."""
    warm()
