"""The published figures of dynP next to ours: ``python -m studies.dynp.published FOLDER`` prints the tables.

The page on dynP has these tables; FOLDER holds the logs of the Parallel Workloads Archive that `TRACES` names.

References
----------
Streit, "Enhancements to the Decision Process of the Self-Tuning dynP Scheduler", JSSPP 2004, Tables 2 to 6;
"On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, Tables 2 to 4 and Figure 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from parsim import Workload
from parsim.planning.plan import PlannedRun, Policy, named, plan, self_tuning
from qconf.history import clean, derive_config, read
from qconf.text import markdown_table
from studies.dynp.bounds import bounds_tables
from studies.dynp.jobsets import JOB_SETS

#: File and cores of each trace.
TRACES = {
    "KTH": ("KTH-SP2-1996-2.1-cln.swf.gz", 100),
    "SDSC SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128),
}

#: Our reading of the published simple decider, and of the one that prefers FCFS.
STANDING = Policy("self-tuning", decider="simple", what_if="standing", least=2)
PREFERRED = replace(STANDING, decider="preferred", preferred="fcfs")

#: SLDwA of whole traces, KTH and SDSC SP2: Tables 2 and 4.
FIRST: tuple[tuple[str, Policy, tuple[str, str]], ...] = (
    ("FCFS", named("planned-fcfs"), ("3.1015", "6.8260")),
    ("SJF", named("planned-sjf"), ("2.5488", "12.5662")),
    ("LJF", named("planned-ljf"), ("5.8118", "26.8207")),
    ("advanced, half", self_tuning(when="half"), ("2.5812", "10.0953")),
    ("advanced, full", self_tuning(), ("2.5754", "10.1598")),
    ("SJF-preferred, half", self_tuning("sjf-preferred", "half"), ("2.5734", "10.2896")),
    ("SJF-preferred, full", self_tuning("sjf-preferred"), ("2.5578", "10.5198")),
    ("FCFS-preferred, half", self_tuning("fcfs-preferred", "half"), ("4.9281", "16.1766")),
    ("FCFS-preferred, full", self_tuning("fcfs-preferred"), ("5.7492", "32.6965")),
    ("simple, half", self_tuning("simple", "half"), ("4.7256", "13.3353")),
    ("simple, full", self_tuning("simple"), ("5.7433", "32.6934")),
    ("simple, half, standing", replace(STANDING, when="half"), ("4.7256", "13.3353")),
    ("simple, full, standing", STANDING, ("5.7433", "32.6934")),
    ("FCFS-preferred, half, standing", replace(PREFERRED, when="half"), ("4.9281", "16.1766")),
    ("FCFS-preferred, full, standing", PREFERRED, ("5.7492", "32.6965")),
)
#: SLDwA of the advanced decider on the full logs, by its metric, and below that the utilization of SDSC SP2 in per
#: cent: Table 3.
BY_METRIC: tuple[tuple[str, Policy, tuple[str, str]], ...] = (
    ("ART", self_tuning(metric="art"), ("3.1459", "14.6495")),
    ("ARTwA", self_tuning(metric="art_wa"), ("5.6542", "20.5247")),
    ("ARTwW", self_tuning(metric="art_ww"), ("2.5754", "10.1598")),
    ("SLD", self_tuning(metric="sld"), ("2.6939", "12.6742")),
    ("SLDwA", self_tuning(metric="sld_wa"), ("2.5754", "10.1598")),
    ("SLDwW", self_tuning(metric="sld_ww"), ("2.5594", "11.8321")),
    ("makespan", self_tuning(metric="makespan"), ("5.3823", "24.8958")),
)
UTILIZATION = (81.787, 81.812, 81.633, 81.762, 81.633, 81.309, 82.473)
#: Decisions on the full SDSC SP2, shares in % that switch to each policy or stay, the share in case 6b (SJF in use,
#: FCFS as good, LJF worse), and jobs in % started under each policy: Tables 5 and 6.
DECISIONS = {
    "simple": (109521, (43.37, 43.17, 0.36, 13.09), 42.56, (59.06, 39.54, 1.40)),
    "advanced": (107066, (1.01, 0.90, 1.01, 97.07), 75.11, (6.09, 79.32, 14.59)),
}
JOBS = 67620  #: jobs scheduled in the paper (section 5.3.1); the trace has 67 667 (4.2)


def sld_wa(run: PlannedRun) -> float:
    """Return the slowdown weighted by core-seconds: sum of cores times response over sum of cores times run time."""
    schedule = run.schedule
    response = int((schedule.cores * (schedule.end - schedule.submit)).sum())
    return response / int((schedule.cores * (schedule.end - schedule.start)).sum())


def comparison(
    published: Sequence[tuple[str, Policy, tuple[str, str]]], traces: Sequence[tuple[str, Workload, int]]
) -> str:
    """Return the table of published SLDwA and ours."""
    titles = [""]
    for name, _, _ in traces:
        titles += [f"{name}, published", "ours", "difference"]
    rows = []
    for label, policy, figures in published:
        row = [label]
        for known, (_, workload, cores) in zip(figures, traces, strict=True):
            ours = sld_wa(plan(workload, cores, policy))
            row += [known, f"{ours:.4f}", f"{100 * (ours / float(known) - 1):+.1f} %"]
        rows.append(row)
    return markdown_table(titles, rows) + "\n"


def utilization(workload: Workload, cores: int) -> str:
    """Return the table of the published utilization of SDSC SP2 and ours, by the advanced decider's metric."""
    rows = []
    for (label, policy, _), known in zip(BY_METRIC, UTILIZATION, strict=True):
        schedule = plan(workload, cores, policy).schedule
        span = int(schedule.end.max() - schedule.submit.min())
        used = 100 * int((schedule.cores * (schedule.end - schedule.start)).sum()) / (cores * span)
        rows.append([label, f"{known:.3f}", f"{used:.3f}", f"{used - known:+.3f}"])
    return markdown_table(["", "published %", "ours", "difference"], rows) + "\n"


def decisions(workload: Workload, cores: int) -> str:
    """Return the table of decisions and started jobs by policy on SDSC SP2, published and ours."""
    rows: list[list[str]] = []
    for label, (decided, moves, tied, starts) in DECISIONS.items():
        known = (*moves, tied, *starts)
        rows.append([f"{label}, published", f"{decided / JOBS:.3f}", *(f"{share:.2f}" for share in known)])
    standing = Policy("self-tuning", what_if="standing", least=2)
    for label, policy in (
        ("simple", self_tuning("simple")),
        ("advanced", self_tuning()),
        ("simple, standing", STANDING),
        ("advanced, standing", standing),
    ):
        run = plan(workload, cores, policy)
        total = run.decisions
        counts = (*run.switched_to.tolist(), run.kept, int(run.cases[1, 0b011].sum()))
        shares = [f"{100 * n / total:.2f}" for n in counts]
        shares += [f"{100 * n / len(workload):.2f}" for n in run.starts.tolist()]
        rows.append([label, f"{total / len(workload):.3f}", *shares])
    titles = ["", "decisions a job", "to FCFS %", "to SJF %", "to LJF %", "kept %", "case 6b %"]
    return markdown_table([*titles, "started by FCFS %", "SJF %", "LJF %"], rows) + "\n"


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
        utilization(*traces[1][1:]),
        decisions(*traces[1][1:]),
        *(text for name in JOB_SETS for text in bounds_tables(name, workers)),
    ):
        click.echo(text)


if __name__ == "__main__":
    main()
