"""What the whole run of the tests needs."""

from __future__ import annotations

import pytest

from tests.warm import warm


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_setupnodes() -> None:
    """Compile the kernels before the workers start: each of them would compile the same ones."""
    warm()
