"""Agents: users who react to the machine, so that the next job of a log depends on when the last one ended.

Every ten minutes each agent looks at the machine and submits the jobs of its kind. The scheduler continues from that
state to the next look, so another scheduler gets another log. The kinds are those that the authors of the comparison of
PBS and Maui planned for their next paper; the numbers are ours.

References
----------
Bode, Halstead, Kendall, Lei and Jackson, "The Portable Batch Scheduler and the Maui Scheduler on Linux Clusters",
ALS 2000, section 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim import UNSTARTED, Schedule, State, System, Workload, simulate
from parsim.model.workload import Column
from qconf.config import SiteConfig, route, throttled, too_wide

MINUTE, HOUR, DAY = 60, 3600, 86400
LOOK = 10 * MINUTE  #: seconds between looks
MONDAY = 1_577_836_800 + 5 * DAY  #: epoch second of a Monday's begin, 2020-01-06 UTC
WORK = (8 * HOUR, 18 * HOUR)  #: begin and end of work on a working day
GIVES_UP = HOUR  #: a developer submits no more that day after a job has waited this long
KEPT = 3  #: jobs that a heavy user keeps waiting or running
AT_ONCE = 20  #: most jobs that a greedy user submits at one look
SHORTEST_GAP = 10 * MINUTE  #: least time of idle cores that a greedy user uses

Route = Callable[[Column, Column, list[str]], Column]  #: from cores, walltimes and users to queues, -1 for none


@dataclass(frozen=True)
class Request:
    """A job that an agent submits."""

    cores: int
    runtime: int
    walltime: int


@dataclass(frozen=True)
class View:
    """The machine as an agent sees it at a look; times are seconds."""

    now: int  #: epoch seconds
    cores: int  #: cores of the machine
    longest: int  #: longest walltime that a queue admits
    waits: Column  #: current wait of each of the agent's waiting jobs
    running: int  #: number of the agent's running jobs
    idle: int  #: idle cores
    gap: int  #: time for which a job submitted now may have the idle cores


@dataclass(frozen=True)
class Lived:
    """The log of the agents' jobs."""

    log: pd.DataFrame  #: columns of a history, by submission; `start` is -1 if a job had not started
    refused: int  #: number of requests that no queue admits


class Developer:
    """Tries one small job after another in working hours, and goes home if a job waits for long."""

    def __init__(self) -> None:
        self.home = -1  #: day on which the developer submits no more

    def submits(self, view: View, rng: np.random.Generator) -> Iterator[Request]:
        """Yield the jobs to submit at this look."""
        day, second = divmod(view.now - MONDAY, DAY)
        if view.waits.size and view.waits.max() > GIVES_UP:
            self.home = day
        if day % 7 > 4 or not WORK[0] <= second < WORK[1] or day == self.home:
            return
        if view.running or view.waits.size or rng.random() < 0.5:  # the developer is thinking
            return
        cores = int(rng.integers(1, max(1, view.cores // 16) + 1))
        walltime = min(30 * MINUTE, view.longest)
        yield Request(cores, int(rng.integers(1, max(2, 2 * walltime // 3))), walltime)


class Heavy:
    """Always keeps some long wide jobs in the queue, each with the longest walltime."""

    def submits(self, view: View, rng: np.random.Generator) -> Iterator[Request]:
        """Yield the jobs to submit at this look."""
        for _ in range(KEPT - view.running - view.waits.size):
            cores = int(rng.integers(max(1, view.cores // 8), max(1, view.cores // 2) + 1))
            walltime = min(DAY, view.longest)
            runtime = int(np.clip(rng.lognormal(np.log(walltime / 3), 0.7), max(1, walltime // 24), walltime))
            yield Request(cores, runtime, walltime)


class Greedy:
    """Looks for idle cores, and submits jobs that fit on them while they are idle."""

    def submits(self, view: View, rng: np.random.Generator) -> Iterator[Request]:
        """Yield the jobs to submit at this look."""
        if view.waits.size or view.gap < SHORTEST_GAP:
            return
        left = view.idle
        for _ in range(AT_ONCE):
            if left < 1:
                return
            cores = int(rng.integers(1, max(1, view.cores // 32) + 1))
            cores = min(cores, left)
            walltime = min(view.gap - MINUTE, 4 * HOUR, view.longest)  # the submission is within the next minute
            left -= cores
            yield Request(cores, int(rng.integers(max(1, walltime // 2), walltime + 1)), walltime)


KINDS: Mapping[str, Callable[[], Developer | Heavy | Greedy]] = {
    "developer": Developer,
    "heavy": Heavy,
    "greedy": Greedy,
}
USUAL = {"developer": 6, "heavy": 4, "greedy": 2}


def anywhere(cores: Column, walltime: Column, users: list[str]) -> Column:
    """Return queue 0 for all jobs."""
    del walltime, users
    return np.zeros(cores.size, dtype=np.int64)


def routing(config: SiteConfig) -> Route:
    """Return the routing of a configuration; a queue whose limits would never let a job start does not admit it."""

    def routed(cores: Column, walltime: Column, users: list[str]) -> Column:
        has_user, names = np.ones(cores.size, dtype=np.bool_), {"user": np.array(users, dtype=object)}
        admitted = [
            queue.admits(cores, walltime)
            & ~too_wide(config, queue, cores, has_user)
            & ~throttled(config, queue.name, cores, walltime, names)
            for queue in config.queues
        ]
        return route(np.full(cores.size, -1), admitted)

    return routed


def live(
    system: System,
    days: int,
    seed: int = 0,
    agents: Mapping[str, int] = USUAL,
    to_queue: Route = anywhere,
    grid: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Lived:
    """Simulate agents, so many of each of `KINDS`, on a machine with its scheduler for some days from a Monday on.

    A job without a queue (`to_queue`) is not submitted. Cores are rounded up to multiples of `grid`. `progress` is
    called with the number of each finished day.
    """
    rng = np.random.default_rng(seed)
    users = [(f"{kind}{i + 1}", KINDS[kind]()) for kind, count in agents.items() for i in range(count)]
    table = _Table(system, [name for name, _ in users], to_queue, grid)
    longest = max(queue.walltime[1] for queue in system.queues)
    for now in range(MONDAY, MONDAY + days * DAY, LOOK):
        table.go_on(now)
        idle, gap = table.gap()
        requests: list[tuple[int, int, Request]] = []
        for user, (_, agent) in enumerate(users):
            own = table.open[:, _USER] == user
            waiting = own & (table.start >= now)
            waits = now - table.open[waiting, _SUBMIT]
            ends = table.start + table.open[:, _RUNTIME]
            running = int((own & (table.start < now) & (ends > now)).sum())
            view = View(now, system.cores, longest, waits, running, idle, gap)
            requests += [(now + int(rng.integers(0, MINUTE)), user, each) for each in agent.submits(view, rng)]
        table.add(sorted(requests, key=lambda each: each[:2]))
        if progress is not None and (now - MONDAY) % DAY == DAY - LOOK:
            progress((now - MONDAY) // DAY + 1)
    table.go_on(MONDAY + days * DAY)
    return Lived(table.history(), table.refused)


_SUBMIT, _CORES, _RUNTIME, _WALLTIME, _QUEUE, _USER, _START, _NUMBER = range(8)


def _remembers(system: System) -> bool:
    """Whether each simulation has to begin with the first job: a `State` lacks something, or a look starts jobs."""
    by_past = system.is_fair or system.reserve in ("nodes", "queue_nodes", "nothing")
    held = system.has_limits and system.formula is not None  # the order depends on how long limits held a job
    by_past |= system.has_tiers
    return by_past or held or system.pool is not None or bool(system.throttles)


class _Table:
    """The open jobs, which are still to be simulated, and the ended ones."""

    def __init__(self, system: System, users: list[str], to_queue: Route, grid: int) -> None:
        self.system, self.users, self.to_queue, self.grid = system, users, to_queue, grid
        self.remembers = _remembers(system)
        self.open = np.empty((0, 8), dtype=np.int64)
        self.ended: list[NDArray[np.int64]] = []
        self.placement: dict[int, Mapping[int, int]] = {}
        self.begin = MONDAY
        self.jobs = self.refused = 0  #: numbers of admitted and of refused requests

    @property
    def start(self) -> Column:
        """Start of each open job if no more jobs are submitted."""
        return self.open[:, _START]

    def simulated(self, runtime: Column) -> Schedule:
        """Simulate the open jobs with these run times, from the last look, or from the first if `remembers`."""
        submit, cores, _, walltime, queue, user = self.open.T[:_START]
        state = None if self.remembers else State(self.begin, self.start, self.placement)
        return simulate(Workload(submit, cores, runtime, walltime, queue, user, self.users), self.system, state)

    def go_on(self, now: int) -> None:
        """Simulate from the last look until `now`."""
        if len(self.open):
            schedule = self.simulated(self.open[:, _RUNTIME])
            self.open[:, _START] = schedule.start
            stays = (schedule.end > now) | (schedule.start >= now) | self.remembers
            self.ended.append(self.open[~stays])
            places = np.cumsum(stays) - 1
            running = {} if self.remembers else State.at(schedule, now).placement
            self.placement = {int(places[row]): cores for row, cores in running.items()}
            self.open = self.open[stays]
        self.begin = now

    def gap(self) -> tuple[int, int]:
        """Return the idle cores, and the seconds until the next job is to start on them, by walltimes."""
        started = self.start < self.begin
        over = started & (self.start + self.open[:, _RUNTIME] <= self.begin)
        idle = self.system.cores - int(self.open[started & ~over, _CORES].sum())
        if started.all():
            return idle, DAY
        planned = self.simulated(np.where(over, self.open[:, _RUNTIME], self.open[:, _WALLTIME]))
        first = int(planned.start[~started].min()) - self.begin
        return (idle, first) if first > 0 else (0, 0)

    def add(self, requests: list[tuple[int, int, Request]]) -> None:
        """Submit requests (instant, user, request), which ascend."""
        if not requests:
            return
        cells = [
            (at, job.cores, job.runtime, job.walltime, 0, user, UNSTARTED, self.jobs + self.refused + i)
            for i, (at, user, job) in enumerate(requests)
        ]
        rows = np.array(cells, dtype=np.int64)
        rows[:, _CORES] = -(-rows[:, _CORES] // self.grid) * self.grid
        names = [self.users[user] for user in rows[:, _USER]]
        rows[:, _QUEUE] = self.to_queue(rows[:, _CORES], rows[:, _WALLTIME], names)
        taken = rows[:, _QUEUE] >= 0
        self.open = np.concatenate([self.open, rows[taken]])
        self.jobs, self.refused = self.jobs + int(taken.sum()), self.refused + int((~taken).sum())

    def history(self) -> pd.DataFrame:
        """Return the log of all jobs."""
        rows = np.concatenate([*self.ended, self.open])
        rows = rows[np.lexsort((rows[:, _NUMBER], rows[:, _SUBMIT]))]
        started = rows[:, _START] < self.begin
        return pd.DataFrame(
            {
                "job_id": np.arange(1, len(rows) + 1),
                "submit": rows[:, _SUBMIT],
                "start": np.where(started, rows[:, _START], -1),
                "runtime": rows[:, _RUNTIME],
                "walltime": rows[:, _WALLTIME],
                "cores": rows[:, _CORES],
                "queue": [self.system.queues[queue].name for queue in rows[:, _QUEUE]],
                "user": [self.users[user] for user in rows[:, _USER]],
            }
        )
