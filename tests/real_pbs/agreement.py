"""How far the simulator agrees with a real server, pass by pass.

    PBS_EXEC=/opt/pbs python -m tests.real_pbs.agreement --discipline fcfs --jobs 200

Two jobs that end in one second make whole schedules differ. So each scheduling cycle of the real server is compared
on its own: from the state that it saw, one pass of the simulator starts jobs, and so did the cycle.
"""

from __future__ import annotations

import argparse
import math
import pickle
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

import parsim
from parsim import Workload
from parsim.naive.node_types import has_alone
from parsim.naive.simulator import Running, Simulation
from qconf.export.nodes import POOL, Node
from qconf.export.pbs.types import assign
from tests.real_pbs.disciplines import DISCIPLINES, Site
from tests.real_pbs.recording import Cycle, Recording, home, read, record


@dataclass
class Pass:
    """A scheduling cycle, the jobs that it started and those that the simulator's pass starts; rows of jobs."""

    cycle: Cycle
    real: set[int]
    simulated: set[int]


@dataclass
class Agreement:
    """What is equal in a real schedule and the simulator's."""

    jobs: int
    passes: list[Pass]
    kendall: float
    wait: tuple[float, float]  #: mean, real and simulated
    close: float  #: share of jobs that start within 2 s

    @property
    def seconds(self) -> dict[int, bool]:
        """Seconds in which either starts a job, and whether both start the same."""
        same: dict[int, bool] = defaultdict(lambda: True)
        for each in self.passes:
            if each.real or each.simulated:
                same[int(each.cycle.began)] &= each.real == each.simulated
        return dict(same)

    def row(self, discipline: str) -> str:
        """Write it as a row of a table."""
        seconds = self.seconds.values()
        share = 100 * sum(seconds) / max(1, len(seconds))
        return (
            f"| {discipline} | {self.jobs} | {sum(seconds)} of {len(seconds)} | {share:.1f} % | {self.kendall:.2f} "
            f"| {self.wait[0]:.1f} | {self.wait[1]:.1f} | {100 * self.close:.0f} % |"
        )


HEADING = """\
| discipline | jobs | seconds that agree | share | Kendall | mean wait, real | simulated | within 2 s |
|---|---|---|---|---|---|---|---|"""


class OnePass(Simulation):
    """Single passes of the slow simulator, each from a real server's state.

    What a script of the export does is part of the state: a job is eligible for the pool when it was moved, and for
    a reservation when it was altered. The time that limits hold a job is counted from pass to pass. PBS reads the nodes
    before the jobs: a node that was exclusive to a job which has ended since is not free for it.
    """

    def __init__(
        self, workload: Workload, site: Site, recording: Recording, parts: dict[str, int], *, in_steps: bool
    ) -> None:
        super().__init__(workload, site.config.system())
        self.cores_per_node, self.whole_nodes = site.cores_per_node, site.config.machine.whole_nodes
        self.jobs, self.parts = list(recording.jobs.values()), parts
        system = site.config.system()
        self.types = dict(
            zip(site.nodes, [each for each in system.node_types for _ in range(each.nodes)], strict=False)
        )
        self.number = {node: number for number, node in enumerate(site.nodes)}
        self.row = {job.name: j for j, job in enumerate(self.jobs)}
        self.in_steps, self.last_pass = in_steps, min(self.submit)
        self.exiting: set[int] = set()
        self.saw: dict[int, float] = {}  #: when the cycle saw each job

    def starts(self, cycle: Cycle) -> set[int]:
        """Return the rows of the jobs that a pass starts from what a cycle saw."""
        self.now = int(cycle.began)
        self.saw = {j: moment for j, job in enumerate(self.jobs) if (moment := cycle.saw_job(job)) is not None}
        running = [j for j, moment in self.saw.items() if self.jobs[j].run <= moment]
        self.waiting = {*self.saw} - {*running}
        running += [
            j
            for j, job in enumerate(self.jobs)
            if self.has_nodes_alone(j) and job.run <= cycle.saw_nodes < job.gone and j not in self.saw
        ]
        self.exiting = {j for j in running if self.jobs[j].obit <= self.saw.get(j, math.inf)}
        self.nodes_of = {j: self.cores_of_nodes(j) for j in running}
        self.running = [Running(j, self.jobs[j].start, self.cores_taken(j)) for j in running]
        if self.placed:
            for j in running:
                self.put_on_nodes(j, [self.number[node] for node in self.jobs[j].on])
        self.moved = {j for j in self.waiting if self.jobs[j].queue(self.saw[j]) != self.queue(j).name}
        before = set(self.waiting)
        self.one_pass()
        return before - self.waiting

    def has_nodes_alone(self, j: int) -> bool:
        """Whether a job has a node that no other job may have beside it."""
        types = [self.types[node] for node in self.jobs[j].on if node in self.types]
        return self.whole_nodes or any(has_alone(each, self.requests[j]) for each in types)

    def cores_of_nodes(self, j: int) -> list[int]:
        """Return the cores of each node that a running job takes: all of it where nodes are given whole."""
        taken = [self.jobs[j].nodes.get(node, 0) for node in self.parts]
        return [self.cores_per_node if cores and self.whole_nodes else cores for cores in taken]

    def cores_taken(self, j: int) -> dict[int, int]:
        """Return the cores of each partition that a running job takes."""
        taken: dict[int, int] = defaultdict(int)
        for partition, cores in zip(self.parts.values(), self.nodes_of[j], strict=True):
            taken[partition] += cores
        return {partition: cores for partition, cores in taken.items() if cores}

    def expected_end(self, r: Running) -> int:
        """Let a job whose end the server has heard of end within the second, as PBS does."""
        end = r.start + self.walltime[r.job]
        return self.now + 1 if r.job in self.exiting or end <= self.now else end

    def may_start_at(self, instant: int, j: int, places: list[int]) -> bool:
        return (not self.in_steps or instant == self.now or self.ends_step(instant)) and super().may_start_at(
            instant, j, places
        )

    def ends_step(self, instant: int) -> bool:
        """Whether an end is the last of its step: PBS looks at ends of one second and the next together, or more."""
        ends, begin = sorted(self.instants() - {self.now}), -1
        for end, following in pairwise([*ends, math.inf]):
            begin = end if end > begin + 1 else begin
            if end == instant:
                return following > begin + 1
        return False

    def used(self, j: int, others: list[int]) -> list[int]:
        """A job that is exiting counts for no limit, though its cores are not idle yet; its end is taken off still."""
        counted = super().used(j, [k for k in others if k not in self.exiting])
        ended = super().used(j, [k for k in self.exiting if k not in others])
        return [many - few + alone for many, few, alone in zip(counted, ended, super().used(j, []), strict=True)]

    def eligible(self, j: int) -> bool:
        return self.home(j) == self.pool

    def may_be_head_job(self, j: int) -> bool:
        return not self.system.reservation_delay or self.jobs[j].altered <= self.saw[j]


def compare(site: Site, recording: Recording, *, in_steps: bool = False) -> Agreement:
    """Compare a real schedule with the simulator, pass by pass and as a whole."""
    jobs = list(recording.jobs.values())
    names = [queue.name for queue in site.config.queues]
    submit = np.array([int(job.submitted) for job in jobs])
    started = np.array([job.start for job in jobs])
    requests = [site.request(job.cores, job.shape) for job in jobs]
    cores = [sum(chunk.count * chunk.cores for chunk in each) for each in requests]
    workload = Workload(
        submit=submit,
        cores=[own or site.taken(job.cores) for own, job in zip(cores, jobs, strict=True)],
        request=[j if each else -1 for j, each in enumerate(requests)],
        requests=requests if site.types else (),
        runtime=[max(1, int(job.gone) - job.start) for job in jobs],
        walltime=[job.walltime for job in jobs],
        queue=[names.index(home(job.queue())) for job in jobs],
        user=[job.user for job in jobs],
    )
    system = site.config.system()
    owners = (
        assign(site.config, [Node(name, cores) for name, cores in site.nodes.items()]) if not system.is_whole else {}
    )
    numbers = {queue.name: number for number, queue in enumerate(site.config.queues)} | {POOL: len(names)}
    parts = {node: numbers[owners[node]] if owners else 0 for node in site.nodes}
    one_pass = OnePass(workload, site, recording, parts, in_steps=in_steps)
    passes = [
        Pass(cycle, {one_pass.row[name] for name in cycle.started}, one_pass.starts(cycle))
        for cycle in recording.cycles
        if cycle.began >= min(job.submitted for job in jobs)
    ]
    simulated = parsim.simulate(workload, system).start
    return Agreement(
        jobs=len(jobs),
        passes=passes,
        kendall=float(kendalltau(started, simulated).statistic),
        wait=(float(np.mean(started - submit)), float(np.mean(simulated - submit))),
        close=float(np.mean(np.abs(started - simulated) <= 2)),
    )


def differences(recording: Recording, agreement: Agreement) -> list[str]:
    """Describe each pass that differs, and what the log says of the jobs that the simulator starts alone."""
    jobs = list(recording.jobs.values())

    def number(name: str) -> str:
        return name.partition(".")[0]

    def listed(rows: set[int]) -> str:
        return ", ".join(f"{number(jobs[j].name)}({jobs[j].cores})" for j in sorted(rows)) or "none"

    lines = []
    for each in agreement.passes:
        if each.real != each.simulated:
            said = {j: each.cycle.said.get(jobs[j].name, "nothing") for j in sorted(each.simulated - each.real)}
            lines.append(
                f"{each.cycle.began % 100000:.3f}: real {listed(each.real)}; simulated {listed(each.simulated)}; "
                f"top {', '.join(map(number, each.cycle.top)) or 'none'}"
                + "".join(f"; {number(jobs[j].name)}: {text}" for j, text in said.items())
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the row of each discipline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--discipline", action="append", choices=DISCIPLINES, help="all, unless one is named")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--between", type=float, default=1.2, help="mean seconds between submissions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=1, help="how many times as long jobs, and times between, are")
    parser.add_argument("--keep", type=Path, help="folder in which recordings are kept, and found again")
    parser.add_argument("--differences", action="store_true", help="print each pass that differs")
    parser.add_argument("--without-keys", action="store_true", help="without held_jobs: reserve and reserve: nodes")
    parser.add_argument("--steps", action="store_true", help="plan in steps of a second as opt_backfill_fuzzy does")
    options = parser.parse_args(arguments)
    print(HEADING, flush=True)
    for discipline in options.discipline or DISCIPLINES:
        site = Site.of(discipline, keys=not options.without_keys, scale=options.scale)
        scaled = f"-{options.scale}" if options.scale > 1 else ""
        path = options.keep and options.keep / f"{discipline}-{options.jobs}-{options.seed}{scaled}.pickle"
        if path and path.exists():
            kept = pickle.loads(path.read_bytes())
        else:
            more = {"jobs": options.jobs, "seed": options.seed, "between": options.between, "scale": options.scale}
            kept = record(site, **more)
            if path:
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_bytes(pickle.dumps(kept))
        recording = read(kept)
        agreement = compare(site, recording, in_steps=options.steps)
        print(agreement.row(discipline), flush=True)
        if options.differences:
            print(*differences(recording, agreement), sep="\n")


if __name__ == "__main__":
    main()
