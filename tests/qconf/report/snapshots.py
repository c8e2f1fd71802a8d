"""Texts compared with those that were reviewed once; UPDATE_SNAPSHOTS=1 writes new ones, for review."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def check_snapshot(name, text):
    path = FOLDER / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), name
