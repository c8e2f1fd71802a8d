"""``qconf fidelity``: what it prints and writes."""

import json
import signal
import subprocess
import sys
import time

import pytest

from qconf.config import dump, load
from qconf.errors import InputError
from qconf.fidelity.grade import carried
from qconf.history.history import history_lines
from tests.qconf.cli.commands import contents, invoke
from tests.qconf.fidelity.logs import site, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log that a site wrote which runs the shortest job first, and the configuration that was given."""
    where = tmp_path_factory.mktemp("log")
    log = written(site(order="sjf"))
    (where / "log.csv").write_text("".join(history_lines(log.jobs, 1_700_000_000)))
    (where / "site.yaml").write_text(dump(site()))
    (where / "true.yaml").write_text(dump(site(order="sjf")))
    return where


def run(folder, *arguments, config="site.yaml"):
    given = ["--history", folder / "log.csv", "--config", folder / config, "--window", "4h..12h", "--windows", "24"]
    result = invoke("fidelity", *given, *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_the_tables(folder):
    brief, text = run(folder).output, run(folder, "-v").output
    for each in (brief, text):
        assert "Fidelity grade " in each
        assert "Recorded minus simulated start, hours:" in each
        assert "Farthest off:" in each
    assert "By queue:" not in brief
    for title in ("start in both", "are not held", "By queue:", "By user, the farthest off:", "By hour of day"):
        assert title in text
    assert max(map(len, text.splitlines())) <= 90
    right = run(folder, config="true.yaml").output
    assert "Fidelity grade A" in right
    assert "100 % of the waiting there is the same" in " ".join(right.split())
    assert "Farthest off:" not in right


def test_quiet_is_the_grade_and_where_it_is_written(folder, tmp_path):
    result = run(folder, "--quiet")
    assert result.stdout.startswith("Fidelity grade ")
    assert "By queue" not in result.stdout
    assert "start in both" not in result.stdout
    out = tmp_path / "near"
    result = run(folder, "-q", "--calibrate", "--vary", "backfill", "--workers", "1", "--out", str(out))
    lines = result.stdout.splitlines()
    assert "configurations were simulated on" in lines[0]
    assert "Fidelity grade " in result.stdout
    assert " ".join(result.stdout.split()).endswith("report.html, fidelity.csv, fidelity.json, config.yaml")
    assert (out / "config.yaml").exists()
    assert result.stderr == ""


def test_what_is_written(folder, tmp_path):
    out = tmp_path / "near"
    printed = json.loads(run(folder, "--json", "--out", str(out)).stdout)
    assert json.loads((out / "fidelity.json").read_text()) == printed
    assert {path.name for path in out.iterdir()} == {"report.html", "fidelity.csv", "fidelity.json", "config.yaml"}
    rows = (out / "fidelity.csv").read_text().splitlines()
    assert rows[0].startswith("of,name,duration,jobs,mean,median,least,most,deviation,within_minute")
    assert sum(row.startswith("window,") for row in rows) == len(printed["windows"])
    assert rows[-2].startswith("all,,")
    config = load(out / "config.yaml")
    assert config.order == "fcfs"
    assert carried(config).grade == printed["grade"]["letter"]


def test_calibrate_writes_what_wrote_the_log(folder, tmp_path):
    texts = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        result = run(folder, "--calibrate", "--vary", "order,backfill", "--workers", workers, "--out", str(out))
        texts.append(contents(out))
    assert texts[0] == texts[1]
    assert "order: order sjf" in (tmp_path / "1/config.yaml").read_text()
    config = load(tmp_path / "1/config.yaml")
    assert config.replace(fidelity=None) == site(order="sjf")
    assert config.fidelity.grade == "A"
    assert "Changed:" in result.output
    before = json.loads((tmp_path / "1/fidelity.json").read_text())
    assert before["found"]["total"]["agreement"] == 1.0 > before["given"]["total"]["agreement"]


def test_a_part_that_is_none_and_a_log_without_starts_are_refused(folder, tmp_path):
    given = ["--config", folder / "site.yaml", "--history"]
    with pytest.raises(InputError, match="Choose among order"):
        invoke("fidelity", *given, folder / "log.csv", "--vary", "moon")
    blind = tmp_path / "blind.csv"
    blind.write_text("".join(history_lines(written(site()).jobs.assign(start=-1, end=-1), 1_700_000_000)))
    with pytest.raises(InputError, match="tells no start"):
        invoke("fidelity", *given, blind, "--calibrate", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_edited_configuration_has_lost_its_grade(folder, tmp_path):
    out = tmp_path / "near"
    run(folder, "--out", str(out))
    edited = out / "edited.yaml"
    edited.write_text((out / "config.yaml").read_text().replace("order: fcfs", "order: lxf"))
    result = invoke("fidelity", "--history", folder / "log.csv", "--config", edited)
    assert "is of another configuration than this one and does not count" in " ".join(result.output.split())


def test_an_interrupt_leaves_nothing(folder, tmp_path):
    out = tmp_path / "out"
    given = ["fidelity", "--history", str(folder / "log.csv"), "--config", str(folder / "site.yaml"), "--calibrate"]
    script = (
        "import qconf.fidelity.calibrate as c, qconf.cli as cli, time\n"
        "def slow(*given, **named): print('begun', flush=True); time.sleep(600)\n"
        "c._score = slow\n"
        f"cli.main({[*given, '--workers', '1', '--out', str(out)]!r})"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        for line in it.stdout:
            if line == "begun\n":
                break
        time.sleep(0.1)
        it.send_signal(signal.SIGINT)
        _, errors = it.communicate(timeout=60)
    assert it.returncode == 130
    assert errors.strip().splitlines()[-1] == "qconf: interrupted"
    assert "Traceback" not in errors
    assert not out.exists()
