"""Files compared with those that were reviewed once; UPDATE_SNAPSHOTS=1 writes them anew, for review.

Of a file that is nearly the same in every case, the first case has all lines and others those that differ. A file that
is a template without a gap is reviewed there, and not kept again.
"""

import difflib
import os
from pathlib import Path

import qconf.export

FOLDER = Path(__file__).parent / "snapshots"
FIRST = "cray-xc40"
TEMPLATES = {path.read_text(encoding="utf-8") for path in Path(qconf.export.__file__).parent.rglob("*.j2")}


def kept(case, files):
    """Return what is kept of the files of a case: the lines that differ where these are less than half of a file."""
    first, found = FOLDER / f"{case.partition('-')[0]}-{FIRST}", {}
    for name, text in files.items():
        if first.name != case and (first / name).exists():
            lines = (first / name).read_text(encoding="utf-8").splitlines(keepends=True)
            differ = "".join(difflib.unified_diff(lines, text.splitlines(keepends=True), n=0))
            less = differ.count("\n") < text.count("\n") / 2
            found |= {f"{name}.diff": differ} if less else {name: text}
        elif text not in TEMPLATES:
            found[name] = text
    return found


def check_snapshot(case, files):
    folder, found = FOLDER / case, kept(case, files)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        for name, text in found.items():
            (folder / name).write_text(text, encoding="utf-8")
    assert sorted(found) == sorted(path.name for path in folder.iterdir())
    for name, text in found.items():
        assert text == (folder / name).read_text(encoding="utf-8"), f"{case}/{name}"
