"""What the whole run of the tests needs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from qconf.cli import one_blas_thread

one_blas_thread()
# Every run tries the same examples, so that what lands is decided by the change. RANDOM=1 looks for others.
settings.register_profile("repeatable", derandomize=not os.environ.get("RANDOM"))
settings.load_profile("repeatable")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes would compile every module again

from tests.interpreted import interpret_seldom, interpreting  # noqa: E402 - numpy comes later
from tests.warm import warm  # noqa: E402

BY_COMMAND = ("tests/browser/", "tests/real_pbs/", "tests/real_slurm/")  #: `make test-all` runs them
#: But for these, which need no server, or show the pages and what they are not to do.
SMOKE = {
    "test_it_is_whole_and_of_this_version",
    "test_a_server_that_cannot_be_started_says_at_once_which_step_failed",
    "test_everything_is_seen_and_nothing_lies_on_another[change-360-False]",
    "test_the_first_screen_says_what_to_do_and_shows_the_waits",
    "test_tables_sort_both_ways_and_keep_what_belongs_together",
    "test_a_control[mouse-number]",
    "test_two_tabs",
    "test_hostile_names_stay_text",
}


def pytest_configure() -> None:
    """Interpret versions of kernels that few tests take."""
    interpret_seldom()


@pytest.hookimpl(tryfirst=True)  # before marks are chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a browser and on real servers are slow, but for a few."""
    for item in items:
        if item.nodeid.startswith(BY_COMMAND) and item.name not in SMOKE:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_setupnodes() -> None:
    """Compile the kernels before the workers start: each of them would compile the same ones."""
    warm()


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Kernels are plain Python in a test that asks for it."""
    with interpreting():
        yield
