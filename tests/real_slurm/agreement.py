"""How far the simulator agrees with a real Slurm that has an export, over whole schedules.

    python -m tests.real_slurm.agreement --discipline fcfs --jobs 100

Submissions and ends lie on a grid (`tests.real_slurm.recording`), so what Slurm takes to start and to end a job changes
no decision: a start counts for the multiple of the step before it, and the seconds in between are said.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import parsim
from parsim import State, System, Workload
from parsim.model.state import UNSTARTED
from qconf.export.slurm.settings import calc_minutes
from tests.real_slurm.disciplines import DISCIPLINES, Site
from tests.real_slurm.recording import STEP, Job, calculated, read, record

Column = NDArray[np.int64]
COLUMNS = ("discipline", "jobs", "backfilled", "same order", "mean wait, real", "simulated", "differs", "starting")
COLUMNS += ("ending", "latest", "passes")
HEADING = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


@dataclass(frozen=True)
class Agreement:
    """A real schedule and the simulator's, in seconds since 1970."""

    jobs: list[Job]
    submit: Column
    real: Column
    simulated: Column
    passes: tuple[int, int]  #: steps in which both start the same from the real state, and in which either does

    @property
    def same_order(self) -> float:
        """Share of the pairs of jobs that start in the same order, or together, in both."""
        pairs = np.triu_indices(self.real.size, 1)
        real, simulated = (np.sign(np.subtract.outer(start, start))[pairs] for start in (self.real, self.simulated))
        return float(np.mean(real == simulated))

    @property
    def waits(self) -> tuple[float, float]:
        """Mean waits, real and simulated."""
        return float(np.mean(self.real - self.submit)), float(np.mean(self.simulated - self.submit))

    @property
    def overheads(self) -> tuple[float, float]:
        """Mean seconds from when a job could start to its start, and from when its command ended to its end."""
        ended = np.array([job.ended for job in self.jobs])
        return float(np.mean([job.started for job in self.jobs] - self.real)), float(np.mean(ended - _before(ended)))

    @property
    def latest(self) -> float:
        """Most seconds after its step that a job was submitted, or its end noted: far beyond `LEAD` is disturbed."""
        moments = np.array([[job.submitted, job.ended] for job in self.jobs])
        return float(np.max(moments - _before(moments)))

    def row(self, discipline: str) -> str:
        """Write it as a row of a table."""
        (real, simulated), (starting, ending) = self.waits, self.overheads
        return (
            f"| {discipline} | {len(self.jobs)} | {sum(job.backfilled for job in self.jobs)} | {self.same_order:.4f} "
            f"| {real:.2f} | {simulated:.2f} | {100 * (simulated / real - 1):+.1f} % | {starting:.2f} | {ending:.2f} "
            f"| {self.latest:.2f} | {self.passes[0]} of {self.passes[1]} |"
        )


def _before(moments: Sequence[float] | NDArray[np.float64]) -> Column:
    """Return the multiple of the step before each moment."""
    return (np.floor(np.asarray(moments) / STEP) * STEP).astype(np.int64)


def compare(site: Site, kept: dict[str, Any]) -> Agreement:
    """Simulate the jobs of a recording."""
    jobs, period = read(kept), 60 * calc_minutes(site.config)
    submit, start, end = (_before([getattr(job, name) for job in jobs]) for name in ("submitted", "started", "ended"))
    config, at = site.config, calculated(kept)
    shift = 0  # the simulator computes priorities at multiples of the period
    if at is not None:
        config, shift = config.replace(priority_calc_period=period), int(at // STEP * STEP) % period
    wanted = [site.request(job.wanted, job.cores) for job in jobs]
    requests = list(dict.fromkeys(each for each in wanted if each is not None))
    workload = Workload(
        request=[-1 if each is None else requests.index(each) for each in wanted],
        requests=requests,
        submit=submit - shift,
        cores=[-(-job.cores // config.grid) * config.grid for job in jobs],
        runtime=end - start,
        walltime=[job.walltime for job in jobs],
        queue=[site.queue(job.cores, job.walltime) for job in jobs],
        user=[job.user for job in jobs],
    )
    simulated = parsim.simulate(workload, config.system()).start + shift
    number = {name: k for k, name in enumerate(site.nodes)}
    nodes = {row: {number[name]: cores for name, cores in job.nodes.items()} for row, job in enumerate(jobs)}
    passes = _passes(workload, config.system(), start - shift, nodes if site.types else {})
    return Agreement(
        jobs, submit, start, _before(simulated), passes
    )  # a job that a start lets in starts a second later


def _passes(workload: Workload, system: System, real: Column, nodes: dict[int, dict[int, int]]) -> tuple[int, int]:
    """Count the steps in which the simulator starts the same jobs from what is there, and those in which any start."""
    same, total = 0, 0
    for now in range(int(workload.submit.min()), int(real.max()) + 1, STEP):
        state = State(now, np.where(real < now, real, UNSTARTED), nodes=nodes)
        simulated = _before(parsim.simulate(workload, system, state=state).start) == now
        same += bool((simulated | (real == now)).any() and (simulated == (real == now)).all())
        total += bool((simulated | (real == now)).any())
    return same, total


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the row of each discipline; servers of several disciplines run beside each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discipline", action="append", choices=DISCIPLINES, help="all, unless one is named")
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder in which recordings are kept, and found again")
    parser.add_argument("--beside", type=int, default=4, help="servers at a time")
    options = parser.parse_args(arguments)

    def measured(discipline: str) -> str:
        site = Site.of(discipline)
        path = options.keep and options.keep / f"{discipline}-{options.jobs}-{options.seed}.json"
        if path and path.exists():
            return compare(site, json.loads(path.read_text())).row(discipline)
        kept = record(site, jobs=options.jobs, seed=options.seed)
        if path:
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(json.dumps(kept))
        return compare(site, kept).row(discipline)

    print(HEADING, flush=True)
    with ThreadPoolExecutor(options.beside) as pool:
        for row in pool.map(measured, options.discipline or DISCIPLINES):
            print(row, flush=True)


if __name__ == "__main__":
    main()
