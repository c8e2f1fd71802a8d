"""The dynP study: generated job sets, load sweeps, grids, figures, the command, the published tables."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from parsim import Workload
from parsim.planning.plan import bounds, named, plan
from qconf.evaluation.planning import compare, shrink
from studies.dynp import bounds as studies_bounds
from studies.dynp import published
from studies.dynp.__main__ import command
from studies.dynp.figures import grid_figure, response_figure, use_figure
from studies.dynp.jobsets import JOB_SETS, JobSet, generate_job_set
from studies.dynp.sweeps import FACTORS, GRID_LOWER, GRID_UPPER, bounds_grid, sweep
from tests.qconf.cli.test_policies import write_log

SMALL = JobSet(jobs=300, nodes=6.5, runtime=500, estimate=1500, interarrival=150, machine=24)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate_job_set(SMALL, 1)


# Job sets.


@pytest.mark.parametrize("name", JOB_SETS)
@pytest.mark.parametrize("seed", [0, 1])
def test_job_sets_have_the_published_means(name: str, seed: int) -> None:
    wanted = JOB_SETS[name]
    jobs = generate_job_set(wanted, seed)
    assert len(jobs) == wanted.jobs
    half = 0.5 / wanted.jobs + 1e-9
    assert abs(jobs.cores.mean() - wanted.nodes) <= half
    assert abs(jobs.runtime.mean() - wanted.runtime) <= half
    assert abs(jobs.walltime.mean() - wanted.estimate) <= half
    assert abs(np.diff(jobs.submit).mean() - wanted.interarrival) <= 0.5 / (wanted.jobs - 1) + 1e-9
    assert (jobs.walltime >= jobs.runtime).all()
    assert jobs.cores.max() <= 96
    counts = np.bincount(jobs.cores, minlength=97)
    for power in (4, 8, 16, 32, 64):
        assert counts[power] > 2 * max(counts[power - 1], counts[power + 1])


def test_the_same_seed_gives_the_same_jobs() -> None:
    first, again, other = (generate_job_set(SMALL, seed) for seed in (5, 5, 6))
    assert (first.submit == again.submit).all()
    assert (first.cores == again.cores).all()
    assert (first.submit != other.submit).any()


@pytest.mark.parametrize(("name", "used", "best", "worst"), [("set1", 0.63, 0, 2), ("set2", 0.58, 2, 0)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_job_sets_have_the_published_load_and_order_of_policies(
    name: str, used: float, best: int, worst: int, seed: int
) -> None:
    cells = studies_bounds.response(name, seed)[0]
    assert float(cells[1]) / 100 == pytest.approx(used, abs=0.05)
    times = [float(cell.split()[0]) for cell in cells[2:5]]  # SJF, FCFS, LJF
    assert times.index(min(times)) == best
    assert times.index(max(times)) == worst


def test_the_tables_of_bounds_have_the_published_rows_and_mark_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOB_SETS, "set1", SMALL)
    response, grid, use = studies_bounds.bounds_tables("set1")
    assert response.count("set1, published") == 2
    assert "| set1, published | ~63 | 8335 | 16587 | 26459 | 11454 |" in response
    ours = [row.split(" | ")[1:] for row in response.splitlines() if row.startswith("| seeds 0 to 2 | ")]
    assert [[len(cell.split(", ")) for cell in row] for row in ours] == [[len(studies_bounds.SEEDS)] * 5] * 2
    assert len(response.splitlines()) == 2 + 2 * 2
    assert grid.count("**") == 2
    assert len(use.splitlines()) == 2 + len(FACTORS)


# Sweeps, grids, figures.


def test_the_papers_factors_and_grid() -> None:
    assert [float(f) for f in FACTORS] == [0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25]
    assert len(GRID_LOWER) * len(GRID_UPPER) == 56


def test_sweep_and_grid(workload: Workload) -> None:
    factors = (Decimal("0.75"), Decimal("0.5"))
    swept = sweep(workload, 24, [named("planned-fcfs"), named("dynp-bounds")], factors)
    assert [factor for factor, _ in swept] == list(factors)
    assert swept[1][1][0].metrics["art"] > swept[0][1][0].metrics["art"]
    assert swept[0][1] == compare(shrink(workload, factors[0]), 24, [named("planned-fcfs"), bounds()], reference=False)
    grid = bounds_grid(workload, 24, (600, 1200), (900, 1800))
    assert list(grid) == [(600, 900), (600, 1800), (1200, 1800)]
    for figure in (response_figure(swept), use_figure(swept, bounds().name), grid_figure(grid)):
        assert figure.startswith("<svg")
    assert response_figure(swept) == response_figure(swept)


# The command.


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command, [str(x) for x in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_document_with_sweep_and_grid(tmp_path: Path, workload: Workload) -> None:
    log = write_log(tmp_path / "log.csv", workload.take(slice(60)))
    out = tmp_path / "figures"
    arguments = ("--history", log, "--cores", "24", "--shrink", "0.75", "--sweep", "--grid", "--json", "-o", out)
    document = json.loads(run(*arguments))
    assert document["jobs"] == 60
    assert document["shrink"] == 0.75
    assert len(document["sweep"]) == 11
    assert len(document["grid"]) == sum(low <= high for low in GRID_LOWER for high in GRID_UPPER)
    assert sorted(path.name for path in out.iterdir()) == ["bounds.svg", "response.svg", "use.svg"]
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert document == json.loads(run(*arguments, "--workers", "3"))
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}


def test_tables_of_a_job_set_with_sweep_and_grid(
    tmp_path: Path, workload: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(JOB_SETS, "set1", SMALL)
    text = run("--job-set", "set1", "--seed", "1", "--sweep", "--grid", "-o", tmp_path)
    assert text.startswith("set1, seed 1: 300 jobs on 24 cores ")
    (easy, *_) = compare(workload, 24, ())
    assert f"{easy.metrics['sld_wa']:.4f}" in text
    for title in ("how they switch", "mean response time in hours (utilization in %)", "share of time in use", "lower"):
        assert title in text
    assert text.splitlines()[-3:] == [str(tmp_path / name) for name in ("response.svg", "use.svg", "bounds.svg")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing a log: FILE, or --history FILE"),
        (["--job-set", "set1", "--cores", "5"], "instead of a history"),
        (["--job-set", "set1", "--history", "log.csv"], "instead of a history"),
        (["--job-set", "set3"], "Invalid value"),
    ],
)
def test_wrong_usage_is_named(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert message in result.output


# The published tables.


def test_published_tables(workload: Workload) -> None:
    traces = [("small", workload, 24), ("smaller", workload.take(slice(100)), 24)]
    lines = published.comparison(published.FIRST, traces).splitlines()
    assert lines[0].startswith("|  | small, published | ours | difference | smaller, published |")
    assert len(lines) == 2 + len(published.FIRST)
    row = [cell.strip() for cell in lines[2].strip("|").split("|")]
    ours = published.sld_wa(plan(workload, 24, "planned-fcfs"))
    assert row[:4] == ["FCFS", "3.1015", f"{ours:.4f}", f"{100 * (ours / 3.1015 - 1):+.1f} %"]
    by_metric = published.comparison(published.BY_METRIC, traces).splitlines()
    assert by_metric[4].split("|")[3::3] == by_metric[6].split("|")[3::3]  # ARTwW and SLDwA
    table = published.decisions(workload, 24).splitlines()
    assert "| simple, published | 1.620 | 43.37 | 43.17 | 0.36 | 13.09 | 42.56 | 59.06 | 39.54 | 1.40 |" in table
    assert all(abs(sum(map(float, row.split("|")[-4:-1])) - 100) < 0.02 for row in table[2:])  # jobs by policy
    used = published.utilization(workload, 24).splitlines()
    assert used[2].startswith("| ART | 81.787 |")
    assert len(used) == 2 + len(published.BY_METRIC)


def test_statements_about_generated_sets_are_those_of_their_table():
    page = Path("docs/research/dynp.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (set\d, published|seeds \d to \d) \| ~?([\d., ]+) \| (.+) \|$", page, re.MULTILINE)
    tables, of = {}, ""
    for name, load, cells in rows:
        of = f"{name[:4]} {load}" if name.startswith("set") else of
        columns = [map(int, cell.split(", ")) for cell in cells.split(" | ")]
        tables.setdefault(of, []).extend(list(row) for row in zip(*columns, strict=True))
    assert list(tables) == ["set1 63", "set1 78", "set2 58", "set2 73"]
    in_set2 = [[100 * (1 - dynp / ljf) for _, _, ljf, dynp in tables[of]] for of in ("set2 58", "set2 73")]
    published = [first for first, *_ in in_set2]
    better = [gain for _, *seeds in in_set2 for gain in seeds]
    text = " ".join(page.split())
    assert f"dynP is {min(better):.1f} to {max(better):.1f} % better than LJF" in text
    assert f"(published {min(published):.1f} to {max(published):.1f} %)" in text
    first, *seeds = tables["set1 78"]
    parts = [ours / paper for row in seeds for ours, paper in zip(row, first, strict=True)]
    assert f"{min(parts):.2f} to {max(parts):.2f} of the published ones" in text
