"""Time of a prediction for many jobs: ``python -m tests.benchmarks.prediction``.

Start-up is excluded: the second prediction in the process is measured, with compiled kernels.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from parsim import UNSTARTED, State, System, Workload
from qconf.prediction.replays import Log, replay
from qconf.prediction.starts import DAY, Present, likely_starts, plan

USERS = 200
NOW = 60 * DAY


def jobs(rng, n, first, last):
    """Return n random jobs submitted in [first, last); sizes and walltimes span over two orders of magnitude."""
    submit = np.sort(rng.integers(first, last, n))
    walltime = (600 * 10 ** rng.uniform(0, 2.4, n)).astype(int) // 300 * 300
    ran = np.maximum(1, (walltime * rng.beta(0.6, 1.2, n)).astype(int))
    cores = 2 ** rng.integers(0, 9, n)
    return Workload(submit, cores, ran, walltime, user=rng.integers(0, USERS, n))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--cores", type=int, default=300_000, help="About half of the jobs run; of 20 000 a thirtieth.")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    past = jobs(rng, 20_000, 0, NOW - DAY)
    there = jobs(rng, given.jobs, NOW - 7 * DAY, NOW)
    start = np.full(given.jobs, UNSTARTED)
    idle = given.cores
    for row in np.argsort(rng.random(given.jobs)):
        if there.cores[row] <= idle:
            idle -= there.cores[row]
            start[row] = max(there.submit[row], NOW - there.walltime[row] // 2)
    users = [f"u{i}" for i in there.user]
    present = Present(there, State(NOW, start), users, [""] * given.jobs)
    print(f"{(start < NOW).sum()} jobs run, {(start >= NOW).sum()} wait")
    log = Log(
        past, past.submit, past.submit + past.runtime, np.array([f"u{i}" for i in past.user]), np.full(20_000, "")
    )
    model, _ = replay(log, System.single(given.cores), NOW, (0.8,), instants=1)
    for name, order in (("fcfs-easy", "fcfs"), ("formula", "(eligible_time + walltime) / walltime")):
        system = System.single(given.cores, order)
        plan(present, system)
        begin = time.perf_counter()
        plan(present, system)
        planned = time.perf_counter()
        found = likely_starts(present, system, model, past=log.past(NOW), runs=given.runs, workers=given.workers)
        np.quantile(found, (0.025, 0.1, 0.5, 0.9, 0.975), axis=0)
        end = time.perf_counter()
        print(f"{name}: plan {planned - begin:.2f} s, {given.runs} simulations {end - planned:.1f} s", flush=True)


if __name__ == "__main__":
    main()
