"""Files compared with those that were reviewed once; UPDATE_SNAPSHOTS=1 writes them anew, for review."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def check_snapshot(case, files):
    folder = FOLDER / case
    if os.environ.get("UPDATE_SNAPSHOTS"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert sorted(files) == sorted(path.name for path in folder.iterdir())
    for name, text in files.items():
        assert text == (folder / name).read_text(encoding="utf-8"), f"{case}/{name}"
