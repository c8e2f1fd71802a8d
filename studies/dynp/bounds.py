"""dynP with bounds on the generated job sets: the tables and the figure of the 2001 paper, next to ours.

References
----------
Streit, "On Job Scheduling for HPC-Clusters and the dynP Scheduler", HiPC 2001, Tables 2 to 4 and Figure 5.
"""

from __future__ import annotations

from decimal import Decimal

from parsim.planning.plan import named
from qconf.evaluation.planning import compare, shrink
from qconf.text import markdown_table
from studies.dynp.jobsets import JOB_SETS, generate_job_set
from studies.dynp.sweeps import GRID_LOWER, GRID_UPPER, bounds_grid, sweep

NAMES = ("planned-sjf", "planned-fcfs", "planned-ljf", "dynp-bounds")
LABELS = ("SJF", "FCFS", "LJF", "dynP")
#: Shrinking factors at which the job sets have the two medium utilizations of the paper.
MEDIUM = (Decimal("0.75"), Decimal("0.6"))
#: Utilization in %, and mean response times of `NAMES` in seconds, at each of `MEDIUM`: Tables 3 and 4.
RESPONSE = {
    "set1": ((63, (8335, 16587, 26459, 11454)), (78, (34840, 45292, 93641, 36324))),
    "set2": ((58, (18388, 17182, 13883, 12769)), (73, (45080, 37998, 26673, 24214))),
}
SEEDS = (0, 1, 2)


def response(name: str, seed: int, workers: int = 1) -> list[list[str]]:
    """Return a table row per medium utilization: mean response times of the three policies and dynP, seconds."""
    job_set = JOB_SETS[name]
    workload = generate_job_set(job_set, seed)
    rows = []
    for factor in MEDIUM:
        found = compare(
            shrink(workload, factor),
            job_set.machine,
            [named(each) for each in NAMES],
            workers=workers,
            reference=False,
        )
        used = max(each.metrics["utilization"] for each in found)
        arts = [each.metrics["art"] for each in found]
        rows.append([f"seed {seed}", f"{100 * used:.1f}", *(f"{art:.0f}" for art in arts)])
    return rows


def bounds_tables(name: str, workers: int = 1) -> tuple[str, str, str]:
    """Return Tables 3 and 4 next to ours, the grid of Table 2, and the shares of Figure 5, on a job set."""
    ours = [response(name, seed, workers) for seed in SEEDS]
    rows = []
    for i, (used, published) in enumerate(RESPONSE[name]):
        rows.append([f"{name}, published", f"~{used}", *map(str, published)])
        columns = zip(*(each[i][1:] for each in ours), strict=True)
        rows.append([f"seeds {SEEDS[0]} to {SEEDS[-1]}", *map(", ".join, columns)])
    table = markdown_table(["", "utilization %", *LABELS], rows) + "\n"
    return table, _grid(name, workers), _use(name, workers)


def _grid(name: str, workers: int) -> str:
    """Return mean response times at the second medium utilization per pair of bounds, the least one marked."""
    job_set = JOB_SETS[name]
    grid = bounds_grid(shrink(generate_job_set(job_set), MEDIUM[1]), job_set.machine, workers=workers)
    least = min(grid, key=lambda pair: grid[pair].metrics["art"])
    rows = []
    for low in GRID_LOWER:
        cells = []
        for high in GRID_UPPER:
            found = grid.get((low, high))
            art = "" if found is None else f"{found.metrics['art']:.0f}"
            cells.append(f"**{art}**" if (low, high) == least else art)
        rows.append((str(low), *cells))
    return markdown_table(("lower \\ upper", *map(str, GRID_UPPER)), rows) + "\n"


def _use(name: str, workers: int) -> str:
    """Return the share of time that each policy is in use, with growing load."""
    job_set, rows = JOB_SETS[name], []
    for factor, (row,) in sweep(generate_job_set(job_set), job_set.machine, [named("dynp-bounds")], workers=workers):
        seconds = row.seconds or {}
        shares = [f"{100 * value / sum(seconds.values()):.1f}" for value in seconds.values()]
        rows.append((f"{factor:.2f}", f"{100 * row.metrics['utilization']:.1f}", *shares))
    return markdown_table(("shrinking factor", "utilization %", "FCFS %", "SJF %", "LJF %"), rows) + "\n"
