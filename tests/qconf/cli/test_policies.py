"""qconf policies: its tables, its document, the options that it no longer has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from parsim import Workload
from qconf.cli.policies import METRICS, command
from qconf.evaluation.planning import compare
from qconf.report.columns import COLUMNS
from tests.qconf.evaluation.test_planning import CORES, busy


def write_log(path: Path, jobs: Workload) -> Path:
    lines = ["job_id,submit,runtime,walltime,cores,queue"]
    columns = zip(jobs.submit, jobs.runtime, jobs.walltime, jobs.cores, strict=True)
    lines += [f"{i},{s + 10**9},{r},{w},{c},all" for i, (s, r, w, c) in enumerate(columns)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "log.csv", busy())


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command, [str(x) for x in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_tables_have_every_discipline(log: Path) -> None:
    text = run("--history", log, "--cores", f"{CORES}")
    assert f"300 jobs on {CORES} cores " in text
    metrics, switching = (part.splitlines() for part in text.split("how they switch"))
    for result in compare(busy(), CORES):
        (line,) = (line for line in metrics if line.startswith(f"{result.name} "))
        cells = [COLUMNS[key].write(result.metrics[key], digits) for key, digits in METRICS.items()]
        assert line.split()[-len(cells) :] == cells
        moves = [line for line in switching if line.startswith(f"{result.name} ")]
        assert len(moves) == 2 * (result.decisions > 0)  # a line of decisions, and one of shares
    assert max(map(len, text.splitlines())) <= 80


def test_shrink_is_named_in_the_title(log: Path) -> None:
    text = run("--history", log, "--cores", f"{CORES}", "--shrink", "0.75")
    assert f"300 jobs on {CORES} cores, times between submissions multiplied by 0.75 " in text


def test_the_document_does_not_depend_on_the_workers(log: Path) -> None:
    arguments = ("--history", log, "--cores", f"{CORES}", "--shrink", "0.5", "--json")
    document = json.loads(run(*arguments))
    assert document == json.loads(run(*arguments, "--workers", "3"))
    assert document["shrink"] == 0.5
    assert (document["jobs"], document["read"]) == (300, 300)
    assert document["disciplines"][0]["metrics"]["jain_users"] is None
    assert document["disciplines"][-1]["starts"].keys() == {"fcfs", "sjf", "ljf"}


def test_retired_options_are_not_in_the_help() -> None:
    assert "--sweep" not in run("--help")
