"""No kernel reads or writes past its arrays: the fuzz command once more, with numba's checks compiled in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import DISCIPLINES

ROOT = Path(__file__).resolve().parents[2]
#: Disciplines of the kernels that compile in seconds; the general event loop takes more than a minute with checks.
SMALL = ("easy", "single-formula", "formula-limits", "multiqueue", "alike-planned")

CARELESS = """
import numpy as np
from parsim.engine import simulation as state
@state.step
def read(array, i):
    return array[i]
@state.kernel
def careless(array, i):
    return read(array, i)
careless(np.zeros(3), 3)
"""


def checked(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with bounds checked, with a cache of its own: others must not find kernels compiled so."""
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=os.environ | settings)


def test_bounds_are_checked_in_what_is_inlined(tmp_path: Path) -> None:
    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    done = checked(tmp_path, str(script))
    assert done.returncode == 1
    assert "IndexError" in done.stderr


@pytest.mark.slow
def test_small_kernels_keep_to_their_arrays(tmp_path: Path) -> None:
    done = checked(tmp_path, "-m", "tests.fuzz", "--count", "150", *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 of 150 differ") == len(SMALL)
    # Random cases are small: where hundreds of jobs run, they stand in several blocks, and many segments move at once.
    files = ("tests/parsim/test_blocks.py", "tests/parsim/test_profile.py")
    done = checked(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_all_kernels_keep_to_their_arrays(tmp_path: Path) -> None:
    done = checked(tmp_path, "-m", "tests.fuzz", "--count", "150")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 of 150 differ") == len(DISCIPLINES)
