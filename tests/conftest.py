"""Settings, hooks and fixtures of all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from qconf.cli import one_blas_thread

one_blas_thread()
# Every run tries the same examples, so that a failure is due to the change. RANDOM=1 tries others.
about = {"derandomize": not os.environ.get("RANDOM"), "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", deadline=None, **about)
settings.load_profile("repeatable")
with suppress(ImportError):  # before 6.122; later ones try constants of the modules that happen to be imported
    from hypothesis.internal.conjecture import providers

    providers._get_local_constants = lambda: providers._local_constants
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else hundreds of processes compile every module again

from parsim.compiling import collect_seldom  # noqa: E402 - after it, since they import numpy
from tests.interpreted import interpret_seldom, interpreting  # noqa: E402
from tests.warm import warm  # noqa: E402

TESTS = Path(__file__).parent
BY_COMMAND = ("tests/browser/", "tests/real_pbs/", "tests/real_slurm/")  #: slow, run by `make test-all`
#: Tests of these folders that `make test` runs: they need no server, or are the main tests of the pages.
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
    """Interpret the versions of kernels that few tests use; take interrupts, which jobs in the background ignore."""
    interpret_seldom()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # inherited by what tests start


def pytest_collection() -> None:
    """Import the tests from the last one on in every second worker: pytest then rewrites each module only once."""
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579":
        for path in sorted(TESTS.rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # the collection reports it
                import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and not among what was imported."""
    collect_seldom()


@pytest.hookimpl(tryfirst=True)  # before tests are selected by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of `BY_COMMAND` as slow, except `SMOKE`."""
    for item in items:
        if item.nodeid.startswith(BY_COMMAND) and item.name not in SMOKE:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_setupnodes() -> None:
    """Compile the kernels before the workers start; else each worker compiles all of them."""
    warm()


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Fixture: run kernels as plain Python."""
    with interpreting():
        yield


@pytest.fixture(scope="module")
def few_resamples() -> Iterator[None]:
    """Fixture: make 10 resamples instead of 100, in modules that do not test how wide the intervals are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qconf.evaluation.bootstrap.RESAMPLES", 10)
        yield
