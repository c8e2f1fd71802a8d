"""Speed with fairshare, in alternating runs beside the same log by other orders.

python -m tests.benchmarks.fairshare LOG.swf.gz --cores 128
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from parsim import System, simulate
from studies.shares import ORDERS, read
from tests.benchmarks import alternating


def main() -> None:
    """Print a row for each order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    jobs = read(chosen.log, chosen.cores)
    seconds = alternating(
        {name: partial(simulate, jobs, System(chosen.cores, order=order)) for name, order in ORDERS.items()},
        chosen.repeat,
    )
    print("| order | seconds | jobs/s | times |\n|---|---|---|---|")
    for name, best in seconds.items():
        print(f"| {name} | {best:.3f} | {len(jobs) / best:,.0f} | {best / seconds['fcfs']:.1f} |")


if __name__ == "__main__":
    main()
