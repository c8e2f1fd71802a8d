"""Where the shared samples lie, and small builders."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.beside import SHARED


@pytest.fixture
def shared():
    """Give the path of a shared sample, or skip."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"the shared sample {name} is not beside the project")
        return path

    return find


@pytest.fixture
def write(tmp_path):
    """Write a file below the test's own folder, gzip where the name says so."""

    def save(content: str | bytes, name: str = "history.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return save
