"""The published figures of dynP and ours: ``python -m studies.dynp.published FOLDER`` makes the tables.

They are those of the page on dynP; FOLDER holds the logs of the Parallel Workloads Archive named in `TRACES`.

References
----------
Streit, "Enhancements to the Decision Process of the Self-Tuning dynP Scheduler", JSSPP 2004, Tables 2 to 6;
"On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, Tables 2 to 4 and Figure 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from parsim import Workload
from parsim.planning import PlannedRun, Policy, named, plan, self_tuning
from qconf.history import clean, derive_config, read
from qconf.text import markdown_table
from studies.dynp.jobsets import JOB_SETS, generate_job_set
from studies.dynp.sweeps import GRID_LOWER, GRID_UPPER, bounds_grid, sweep

#: File and cores of each trace.
TRACES = {
    "KTH": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
}

#: Our reading of the simple decider as it was published.
STANDING = Policy("self-tuning", decider="simple", what_if="standing", least=2)

#: SLDwA of whole traces: published for KTH and SDSC SP2; the range of KTH under `simple` is the paper's.
FIRST: tuple[tuple[str, Policy, tuple[str, str]], ...] = (
    ("FCFS", named("planned-fcfs"), ("3.1015", "6.8260")),
    ("SJF", named("planned-sjf"), ("2.5488", "12.5662")),
    ("LJF", named("planned-ljf"), ("5.8118", "26.8207")),
    ("advanced, full", self_tuning(), ("2.5754", "10.1598")),
    ("advanced, half", self_tuning(when="half"), ("2.5812", "10.0953")),
    ("SJF-preferred, full", self_tuning("sjf-preferred"), ("2.5578", "10.5198")),
    ("simple, full", self_tuning("simple"), ("4.7-5.7", "32.69")),
    ("simple, full, standing", STANDING, ("4.7-5.7", "32.69")),
)
#: SLDwA of the advanced decider, full, by the metric that it is tuned by.
BY_METRIC: tuple[tuple[str, Policy, tuple[str, str]], ...] = (
    ("ART", self_tuning(metric="art"), ("3.1459", "14.6495")),
    ("ARTwA", self_tuning(metric="art_wa"), ("5.6542", "20.5247")),
    ("ARTwW", self_tuning(metric="art_ww"), ("2.5754", "10.1598")),
    ("SLD", self_tuning(metric="sld"), ("2.6939", "12.6742")),
    ("SLDwA", self_tuning(metric="sld_wa"), ("2.5754", "10.1598")),
    ("SLDwW", self_tuning(metric="sld_ww"), ("2.5594", "11.8321")),
    ("makespan", self_tuning(metric="makespan"), ("5.3823", "24.8958")),
)


def sld_wa(run: PlannedRun) -> float:
    """Return the slowdown weighted by core-seconds: whole sums of cores times response and times runtime."""
    schedule = run.schedule
    response = int((schedule.cores * (schedule.end - schedule.submit)).sum())
    return response / int((schedule.cores * (schedule.end - schedule.start)).sum())


def comparison(
    published: Sequence[tuple[str, Policy, tuple[str, str]]], traces: Sequence[tuple[str, Workload, int]]
) -> str:
    """Return published SLDwA and ours, row by row."""
    titles = [""]
    for name, _, _ in traces:
        titles += [f"{name}, published", "ours", "difference"]
    rows = []
    for label, policy, figures in published:
        row = [label]
        for known, (_, workload, cores) in zip(figures, traces, strict=True):
            ours = sld_wa(plan(workload, cores, policy))
            apart = "" if "-" in known else f"{100 * (ours / float(known) - 1):+.1f} %"
            row += [known, f"{ours:.4f}", apart]
        rows.append(row)
    return markdown_table(titles, rows) + "\n"


def decisions(workload: Workload, cores: int) -> str:
    """Return how deciders switch on SDSC SP2, published and here."""
    rows: list[tuple[str, ...]] = [
        ("simple, published", "1.619", "43.4", "43.2", "", "13.1", ""),
        ("advanced, published", "", "", "", "", "97", "75"),
    ]
    for label, policy in (
        ("simple", self_tuning("simple")),
        ("advanced", self_tuning()),
        ("simple, standing", STANDING),
        ("advanced, standing", Policy("self-tuning", what_if="standing", least=2)),
    ):
        run = plan(workload, cores, policy)
        total = run.decisions
        moves = [f"{100 * n / total:.1f}" for n in (*run.switched_to.tolist(), run.kept)]
        tied = f"{100 * int(run.cases[1, 0b011].sum()) / total:.1f}"
        rows.append((label, f"{total / len(workload):.3f}", *moves, tied))
    titles = (
        "",
        "decisions a job",
        "to FCFS %",
        "to SJF %",
        "to LJF %",
        "kept %",
        "SJF in use and FCFS = SJF < LJF %",
    )
    return markdown_table(titles, rows) + "\n"


def bounds_tables(name: str, workers: int = 1) -> str:
    """Return the grid of bounds and the share of time each policy is in use, on a generated job set."""
    job_set = JOB_SETS[name]
    workload = generate_job_set(job_set)
    grid = bounds_grid(workload, job_set.machine, workers=workers)
    rows = []
    for low in GRID_LOWER:
        found = [grid.get((low, high)) for high in GRID_UPPER]
        cells = ["" if row is None else f"{row.metrics['art']:.0f}" for row in found]
        rows.append((str(low), *cells))
    out = markdown_table(("lower \\ upper", *map(str, GRID_UPPER)), rows) + "\n"
    use = []
    for factor, (row,) in sweep(workload, job_set.machine, [named("dynp-bounds")], workers=workers):
        seconds = row.seconds or {}
        shares = [f"{100 * value / sum(seconds.values()):.1f}" for value in seconds.values()]
        use.append((f"{factor:.2f}", f"{100 * row.metrics['utilization']:.1f}", *shares))
    return out + "\n" + markdown_table(("shrinking factor", "utilization %", "FCFS %", "SJF %", "LJF %"), use) + "\n"


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--workers", type=click.IntRange(1), default=1)
def main(folder: Path, workers: int) -> None:
    """Print the tables of the page on dynP from the logs in FOLDER."""
    traces = []
    for name, (file, cores) in TRACES.items():
        records = read(folder / file)
        config = derive_config(records, cores)
        traces.append((name, clean(records, config).workload(config), cores))
    for text in (
        comparison(FIRST, traces),
        comparison(BY_METRIC, traces),
        decisions(*traces[1][1:]),
        *(bounds_tables(name, workers) for name in JOB_SETS),
    ):
        click.echo(text)


if __name__ == "__main__":
    main()
