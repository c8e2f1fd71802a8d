"""qconf policies: the study, the generated job sets, the figures, the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from parsim import Workload
from parsim.planning import ORDERS, bounds, named, plan
from qconf.cli.policies import JOB_SETS as CHOICES
from qconf.cli.policies import command
from qconf.errors import InputError
from studies.dynp import (
    DISCIPLINES,
    FACTORS,
    GRID_LOWER,
    GRID_UPPER,
    JOB_SETS,
    JobSet,
    bounds_grid,
    compare,
    generate_job_set,
    published,
    shrunk,
    sweep,
)
from studies.dynp.figures import grid_figure, response_figure, use_figure

SMALL = JobSet(jobs=300, nodes=6.5, runtime=500, estimate=1500, interarrival=150, machine=24)


@pytest.fixture(scope="module")
def workload() -> Workload:
    return generate_job_set(SMALL, 1)


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


def test_shrinking_multiplies_the_times_between_submissions() -> None:
    jobs = Workload([100, 110, 200], [1, 1, 1], [5, 5, 5], [9, 9, 9])
    assert shrunk(jobs, Decimal("0.7")).submit.tolist() == [0, 7, 70]  # 0.7 as a float would give 6 and 69
    assert shrunk(jobs, Decimal("0.25")).submit.tolist() == [0, 2, 25]
    with pytest.raises(InputError, match="above 0"):
        shrunk(jobs, Decimal(0))


def test_the_papers_factors_and_grid() -> None:
    assert [float(f) for f in FACTORS] == [0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25]
    assert len(GRID_LOWER) * len(GRID_UPPER) == 56
    assert tuple(JOB_SETS) == CHOICES


def test_compare_measures_every_discipline(workload: Workload) -> None:
    rows = compare(workload, 24)
    assert [row.name for row in rows] == ["fcfs-easy", *(policy.name for policy in DISCIPLINES)]
    assert len({row.name for row in rows}) == len(rows)
    for row in rows[1:]:
        assert row.starts is not None
        assert row.seconds is not None
        assert tuple(row.starts) == ORDERS
        assert sum(row.starts.values()) == len(workload)
        assert sum(row.seconds.values()) == row.metrics["makespan"]
    run = plan(workload, 24, "dynp")
    dynp = next(row for row in rows if row.name == run.policy.name)
    area = workload.cores * workload.effective_runtime
    slowdown = (run.schedule.end - run.schedule.submit) / workload.effective_runtime
    assert dynp.metrics["sld_wa"] == pytest.approx((slowdown * area).sum() / area.sum())
    assert dynp.decisions == run.decisions


def test_workers_change_nothing(workload: Workload) -> None:
    assert compare(workload, 24, DISCIPLINES[:6], workers=4) == compare(workload, 24, DISCIPLINES[:6])


def test_queues_of_the_history_play_no_part(workload: Workload) -> None:
    queue = np.arange(len(workload)) % 3
    split = Workload(workload.submit, workload.cores, workload.runtime, workload.walltime, queue=queue)
    assert compare(split, 24, [named("dynp")]) == compare(workload, 24, [named("dynp")])


def test_a_job_wider_than_the_machine_is_refused(workload: Workload) -> None:
    with pytest.raises(InputError, match="wider"):
        compare(workload, 2)


def test_sweep_and_grid(workload: Workload) -> None:
    factors = (Decimal("0.75"), Decimal("0.5"))
    swept = sweep(workload, 24, [named("planned-fcfs"), named("dynp-bounds")], factors)
    assert [factor for factor, _ in swept] == list(factors)
    assert swept[1][1][0].metrics["art"] > swept[0][1][0].metrics["art"]
    assert swept[0][1] == compare(shrunk(workload, factors[0]), 24, [named("planned-fcfs"), bounds()], reference=False)
    grid = bounds_grid(workload, 24, (600, 1200), (900, 1800))
    assert list(grid) == [(600, 900), (600, 1800), (1200, 1800)]
    for figure in (response_figure(swept), use_figure(swept, bounds().name), grid_figure(grid)):
        assert figure.startswith("<?xml")
    assert response_figure(swept) == response_figure(swept)


def test_a_users_matplotlib_settings_change_no_figure(tmp_path: Path) -> None:
    code = (
        "from studies.dynp import Row; from studies.dynp.figures import grid_figure\n"
        "rows = {(600, high): Row('dynp', {'art': 3.0 * high}) for high in (900, 1800)}\n"
        "print(grid_figure(rows), end='')"
    )
    settings = tmp_path / "matplotlibrc"

    def drawn() -> str:
        environment = {**os.environ, "MATPLOTLIBRC": str(settings)}
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, timeout=120
        ).stdout

    settings.write_text("")
    plain = drawn()
    settings.write_text("lines.linewidth: 9\naxes.labelsize: 20\n")
    assert plain.startswith("<?xml")
    assert drawn() == plain


# The command.


def written(path: Path, jobs: Workload) -> Path:
    lines = ["job_id,submit,runtime,walltime,cores,queue"]
    columns = zip(jobs.submit, jobs.runtime, jobs.walltime, jobs.cores, strict=True)
    lines += [f"{i},{s + 10**9},{r},{w},{c},all" for i, (s, r, w, c) in enumerate(columns)]
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(command, [str(x) for x in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_tables(tmp_path: Path, workload: Workload) -> None:
    log = written(tmp_path / "log.csv", workload)
    text = run("--history", log, "--cores", "24")
    for row in compare(workload, 24):
        assert f"{row.name} " in text
        assert f"{row.metrics['sld_wa']:.4f}" in text
    assert "300 jobs on 24 cores " in text
    shrunken = run("--history", log, "--cores", "24", "--shrink", "0.75")
    assert "300 jobs on 24 cores, times between submissions multiplied by 0.75 " in shrunken


def test_json_with_sweep_and_grid(tmp_path: Path, workload: Workload) -> None:
    log = written(tmp_path / "log.csv", workload.take(slice(60)))
    out = tmp_path / "figures"
    arguments = (
        "--history",
        log,
        "--cores",
        "24",
        "--shrink",
        "0.75",
        "--sweep",
        "--grid",
        "--json",
        "-o",
        out,
    )
    answer = json.loads(run(*arguments))
    assert answer["jobs"] == 60
    assert answer["shrink"] == 0.75
    assert len(answer["sweep"]) == 11
    assert len(answer["grid"]) == sum(low <= high for low in GRID_LOWER for high in GRID_UPPER)
    assert sorted(path.name for path in out.iterdir()) == ["bounds.svg", "response.svg", "use.svg"]
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert answer == json.loads(run(*arguments, "--workers", "3"))
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}


def test_usage_errors(tmp_path: Path) -> None:
    for arguments, message in (
        ([], "Missing option '--history'"),
        (["--job-set", "set1", "--cores", "5"], "instead of a history"),
        (["--job-set", "set1", "--shrink", "0"], "no number above 0"),
        (["--job-set", "set1", "--shrink", "much"], "no number above 0"),
        (["--job-set", "set3"], "Invalid value"),
    ):
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 2
        assert message in result.output


# The published tables.


def test_published_tables(workload: Workload) -> None:
    traces = [("small", workload, 24), ("smaller", workload.take(slice(100)), 24)]
    lines = published.beside(published.FIRST, traces).splitlines()
    assert lines[0].startswith("|  | small, published | ours | difference | smaller, published |")
    assert len(lines) == 2 + len(published.FIRST)
    row = [cell.strip() for cell in lines[2].strip("|").split("|")]
    ours = published.sld_wa(plan(workload, 24, "planned-fcfs"))
    assert row[:4] == ["FCFS", "3.1015", f"{ours:.4f}", f"{100 * (ours / 3.1015 - 1):+.1f} %"]
    by_metric = published.beside(published.BY_METRIC, traces).splitlines()
    assert by_metric[4].split("|")[3::3] == by_metric[6].split("|")[3::3]  # ARTwW and SLDwA
    assert "| simple, published | 1.619 | 43.4 | 43.2 |" in published.decisions(workload, 24)
