"""Fairshare on a log whose users are known: shares reached and waits, with it and without.

``python -m studies.shares LOG.swf.gz --cores 128``
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from parsim import Fairshare, System, Workload, metrics, simulate
from parsim.metrics.usage import share_uses
from parsim.model.fairshare import FAIRSHARE

HEAVY = 0.02  #: share of all core-seconds above which a user is heavy
LXF = "(eligible_time + walltime) / max(walltime, 1)"
#: The orders compared, by name.
ORDERS = {
    "fcfs": "fcfs",
    "fairshare": FAIRSHARE,
    "lxf": LXF,
    "lxf times fairshare": f"(0.01 + fairshare_factor) * {LXF}",
    "age and fairshare, as Slurm": "min(eligible_time, 604800) + 604800 * fair_share",
}


def read(path: Path, cores: int) -> Workload:
    """Return the jobs of an SWF log that ran and fit on the machine."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = (line for line in text.decode().splitlines() if line.strip() and not line.startswith(";"))
    table = np.array([line.split()[:18] for line in lines], dtype=np.float64).astype(np.int64)
    width = np.where(table[:, 7] > 0, table[:, 7], table[:, 4])
    ran = (table[:, 3] > 0) & (width > 0) & (width <= cores)
    kept, width = table[ran], width[ran]
    walltime = np.maximum(np.where(kept[:, 8] > 0, kept[:, 8], kept[:, 3]), 1)
    order = np.argsort(kept[:, 1], kind="stable")
    kept, width, walltime = kept[order], width[order], walltime[order]
    return Workload(kept[:, 1], width, kept[:, 3], walltime, user=kept[:, 11])


def rows(workload: Workload, cores: int) -> Iterator[tuple[str, list[float]]]:
    """Yield name and values of each order: waits in hours, slowdowns, and per cent of the use beyond equal shares.

    Waits are mean, longest, and means of heavy and other users; so are slowdowns. Use decays by half a day.
    """
    work = np.bincount(workload.user, workload.cores * workload.effective_runtime)
    heavy = (work > HEAVY * work.sum())[workload.user]
    equal = System(cores, order=FAIRSHARE, fairshare=Fairshare(decay_time=86400, decay_factor=0.5))
    for name, order in ORDERS.items():
        schedule = simulate(workload, System(cores, order=order, fairshare=equal.fairshare))
        found = share_uses(workload, schedule, equal)
        wait = schedule.wait / 3600
        bounded = metrics.bounded_slowdown(schedule)
        yield (
            name,
            [
                float(wait.mean()),
                float(wait.max()),
                float(wait[heavy].mean()),
                float(wait[~heavy].mean()),
                float(bounded[heavy].mean()),
                float(bounded[~heavy].mean()),
                100 * sum(each.distance for each in found if each.is_user) / 2,
            ],
        )


def main() -> None:
    """Print the table of a log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--cores", type=int, required=True)
    chosen = parser.parse_args()
    report(read(chosen.log, chosen.cores), chosen.cores)


def report(workload: Workload, cores: int, say: Callable[[str], object] = print) -> None:
    """Print the table."""
    say(f"{len(workload)} jobs of {np.unique(workload.user).size} users; hours, slowdowns, % of use beyond shares")
    headings = ("wait", "longest", "heavy", "others", "slowd. heavy", "others", "beyond")
    say(f"{'':28}" + "".join(f"{heading:>13}" for heading in headings))
    for name, values in rows(workload, cores):
        say(f"{name:28}" + "".join(f"{value:13.2f}" for value in values))


if __name__ == "__main__":
    main()
