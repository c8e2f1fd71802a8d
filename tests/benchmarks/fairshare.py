"""Speed with fairshare, in alternating runs beside the same log by other orders.

python -m tests.benchmarks.fairshare LOG.swf.gz --cores 128
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from parsim import System, simulate
from studies.shares import ORDERS, read


def main() -> None:
    """Print a row for each order."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    jobs = read(chosen.log, chosen.cores)
    seconds: dict[str, list[float]] = {name: [] for name in ORDERS}
    for _ in range(1 + chosen.repeat):  # the first compiles
        for name, order in ORDERS.items():
            began = time.perf_counter()
            simulate(jobs, System(chosen.cores, order=order))
            seconds[name].append(time.perf_counter() - began)
    print("| order | seconds | jobs/s | times |\n|---|---|---|---|")
    first = min(seconds["fcfs"][1:])
    for name, found in seconds.items():
        best = min(found[1:])
        print(f"| {name} | {best:.3f} | {len(jobs) / best:,.0f} | {best / first:.1f} |")


if __name__ == "__main__":
    main()
