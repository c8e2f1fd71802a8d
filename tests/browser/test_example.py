"""reports/example is a run of the sample as this version makes it."""

import hashlib
import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from qconf import __version__
from qconf.cli import qconf
from tests.browser.chromium import Browser, available

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "reports" / "example"


def record(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def test_it_is_whole_and_of_this_version():
    found = record(EXAMPLE)
    assert found["versions"]["qconf"] == __version__
    for name, digest in found["files"].items():
        assert hashlib.sha256((EXAMPLE / name).read_bytes()).hexdigest() == digest, f"make example: {name}"
    assert (EXAMPLE / "report.html").stat().st_size < 2_000_000
    for name in ("report.png", "report-dark.png"):
        assert (ROOT / "docs" / "manual" / name).stat().st_size > 30_000


@pytest.mark.skipif(available() is None, reason="no chromium here")
@pytest.mark.parametrize("width", [360, 1440])
def test_a_browser_shows_it(width):
    with Browser() as browser:
        browser.open(EXAMPLE / "report.html", width=width)
        assert (browser.errors, browser.requests) == ([], [(EXAMPLE / "report.html").as_uri()])
        browser.run("ready")
        found = browser.run((Path(__file__).parent / "seen.js").read_text(encoding="utf-8"))
        assert found["wide"] <= width
        assert (found["small"], found["crossing"], found["clipped"], found["texts"]) == ([], [], [], [])


def test_the_same_comes_out_again(tmp_path):
    done = CliRunner().invoke(qconf, ["tune", "-q", "-o", str(tmp_path / "run")], catch_exceptions=False)
    assert done.exit_code == 0
    known, again = record(EXAMPLE), record(tmp_path / "run")
    assert (again["verdict"], again["winner"], again["base"]) == (known["verdict"], known["winner"], known["base"])
    for mine, theirs in zip(again["strategies"], known["strategies"], strict=True):
        assert (mine["name"], mine["config"]) == (theirs["name"], theirs["config"])
        assert math.isclose(mine["test"]["overall"]["mean_wait"], theirs["test"]["overall"]["mean_wait"])
