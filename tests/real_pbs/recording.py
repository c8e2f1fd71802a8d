"""A real schedule: jobs submitted as ordinary users to a private server with an export, and what its logs say of it."""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from qconf.config import POOL_SUFFIX
from qconf.export import exporter
from qconf.export.nodes import Node
from qconf.export.pbs.server import Server
from tests.real_pbs.disciplines import SHAPES, Site
from tests.servers.pbs import Plan, install
from tests.servers.pbs_server import USERS, PrivateServer
from tests.servers.rehearsal import Rehearsal, run_blocks
from tests.submissions import submit

_LINE = re.compile(r"^(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d\.\d+);\w+;[^;]*;\w+;([^;]*);(.*)$")
MOST_CHUNKS = 8  #: of a job on nodes of several types: that many have a place whatever their shape
_SCHEDULER = ("Starting Scheduling Cycle", "Job run", "Leaving Scheduling Cycle", "Job is a top job")


@dataclass
class Job:
    """A job of the real schedule; seconds since 1970, with their fractions where the logs have them."""

    name: str
    user: int
    cores: int  #: that it asked for
    walltime: int
    shape: int = -1  #: of its chunks, where nodes are of several types; `cores` are their number then
    enqueued: list[tuple[float, str]] = field(default_factory=list)  #: when it entered an Execution queue
    run: float = np.inf  #: when the server sent it off
    obit: float = np.inf  #: when the server heard of its end
    gone: float = np.inf  #: when its cores were free
    altered: float = np.inf  #: when it got the right to a reservation
    start: int = 0
    nodes: dict[str, int] = field(default_factory=dict)  #: cores on each
    on: list[str] = field(default_factory=list)  #: the node of each of its chunks

    @property
    def submitted(self) -> float:
        """When it first could start."""
        return self.enqueued[0][0]

    def is_in(self, queue: str, moment: float) -> bool:
        """Whether it waits or runs in a queue at a moment."""
        return self.submitted <= moment < self.gone and self.queue(moment) == queue

    def queue(self, moment: float = np.inf) -> str:
        """Return the queue in which it is at a moment."""
        return [name for at, name in self.enqueued if at <= moment][-1]


@dataclass
class Cycle:
    """A scheduling cycle: when it saw the nodes and then the jobs of each queue, and the jobs that it started."""

    began: float
    saw_nodes: float
    saw: dict[str, float]  #: by queue
    started: list[str] = field(default_factory=list)
    top: list[str] = field(default_factory=list)  #: jobs for which it reserved
    said: dict[str, str] = field(default_factory=dict)  #: what its log says of a job last

    def saw_job(self, job: Job) -> float | None:
        """Return when it saw a job, None if it did not: in the queue in which the job was then."""
        moments = (moment for name, moment in self.saw.items() if job.is_in(name, moment))
        return next(moments, None)


@dataclass
class Recording:
    """The jobs and the cycles of a whole run."""

    version: str
    jobs: dict[str, Job]
    cycles: list[Cycle]
    logs: dict[str, str]


class Kept(NamedTuple):
    """What is kept of a run."""

    version: str
    wanted: dict[str, tuple[int, ...]]  #: user, cores and walltime of each job, by name, and the shape of its chunks
    logs: dict[str, str]


def record(site: Site, *, jobs: int, seed: int, between: float, scale: int = 1) -> Kept:
    """Load the export of a site into a new server, submit `jobs` jobs, and return what became of them.

    They are of seconds, times `scale`, and so are the times between their submissions.
    """
    sharing = "default_excl" if site.config.machine.whole_nodes else "default_shared"
    started = PrivateServer(site.nodes, sharing=sharing, attributes=site.attributes)
    with started as server, TemporaryDirectory() as folder:
        plan = _load(site, server, Path(folder))
        scripts = [name for name in ("qconf-promote", "qconf-reserve") if name in plan.files]
        done = threading.Event()
        every_second = threading.Thread(target=_every_second, args=(server, scripts, done))
        every_second.start()
        try:
            wanted = _submit(site, server, plan.route, jobs, np.random.default_rng(seed), between, scale)
            until = time.monotonic() + 240 * scale
            while server.run("qselect -s EQRT").stdout.strip() and time.monotonic() < until:
                time.sleep(1)
        finally:
            done.set()
            every_second.join()
        version = re.search(r"pbs_version = (\S+)", server.run("qstat -Bf").stdout)
        paths = {"scheduler": "sched_logs", "server": "server_logs", "accounting": "server_priv/accounting"}
        logs = {name: server.run(f"cat /srv/pbs/{path}/*").stdout for name, path in paths.items()}
    return Kept(version[1] if version else "unknown", wanted, logs)


_GPUS = """\
qmgr -c 'create resource ngpus type = long, flag = nh'
sed -i 's/^resources: "/resources: "ngpus, /' /srv/pbs/sched_priv/sched_config
"""


def _load(site: Site, server: PrivateServer, folder: Path) -> Plan:
    if site.types:
        gpus = {name: each.gpus for name, each in site.types.items() if each.gpus}
        server.run(
            _GPUS + "".join(f"qmgr -c 'set node {n} resources_available.ngpus = {g}'\n" for n, g in gpus.items())
        )
    nodes = [Node(name, cores) for name, cores in site.nodes.items()]
    current = Server.parse(server.run("qmgr -c 'print server'").stdout)
    export = exporter("pbs")(current=current, nodes=nodes).export(site.config)
    plan, result = install(export.files, server, folder), Rehearsal("")
    run_blocks(plan.steps, server, result)
    # Cycles in full detail; ends that seconds separate are not grouped; all that the plan leaves to the site.
    server.run("qmgr -c 'set sched log_events = 1023'; qmgr -c 'set sched opt_backfill_fuzzy = 1'")
    server.run("qmgr -c 'set server log_events = 511'; qmgr -c 'set server scheduling = True'")
    if result.problems:
        raise RuntimeError(f"{site.discipline}: {result.problems}")
    return plan


def _every_second(server: PrivateServer, scripts: list[str], done: threading.Event) -> None:
    """Run what runs every minute on a site every second: jobs are of seconds here."""
    while scripts and not done.wait(1):
        server.run("; ".join(scripts), timeout=120)


def _submit(
    site: Site, server: PrivateServer, route: str, jobs: int, rng: np.random.Generator, between: float, scale: int
) -> dict[str, tuple[int, ...]]:
    """Submit jobs at random seconds, each user from a shell of its own; return user, cores, walltime by name."""
    widest = max(queue.cores[1] for queue in site.config.queues)
    at = np.cumsum(rng.exponential(between, jobs)) * scale
    width = np.where(rng.random(jobs) < 0.7, rng.integers(1, widest // 4 + 1, jobs), rng.integers(1, widest + 1, jobs))
    seconds = rng.integers(1, 8, jobs)
    walltime = np.minimum(60, ((seconds + 4) * rng.uniform(1, 5, jobs)).astype(int)) * scale
    seconds *= scale
    users = rng.integers(0, len(USERS), jobs)
    shapes = rng.integers(0, len(SHAPES), jobs) if site.types else np.full(jobs, -1)
    width = np.minimum(width, MOST_CHUNKS) if site.types else width
    selects = [site.select(int(width[j]), int(shapes[j])) for j in range(jobs)]
    commands = [
        f"qsub -q {route} -l select={selects[j]} -l place={site.place(int(shapes[j]))} -l walltime={walltime[j]} "
        f"-- /bin/sleep {seconds[j]}"
        for j in range(jobs)
    ]
    names = submit(server, time.time() + 2 + at, users, commands)
    if wrong := [name for name in names if not re.fullmatch(r"\d+\.\S+", name)]:
        raise RuntimeError(f"qsub says: {wrong[0]}")
    return {name: tuple(int(each[j]) for each in (users, width, walltime, shapes)) for j, name in enumerate(names)}


def _lines(log: str) -> Iterator[tuple[float, str, str]]:
    """Yield second, subject and text of each line of a log."""
    for line in log.splitlines():
        if found := _LINE.match(line):
            moment = datetime.strptime(found[1], "%m/%d/%Y %H:%M:%S.%f").replace(tzinfo=UTC)
            yield moment.timestamp(), found[2], found[3]


def read(kept: Kept) -> Recording:
    """Read the logs of a run, whose clock is UTC."""
    version, wanted, logs = kept
    jobs = {name: Job(name, *of) for name, of in wanted.items()}
    requests: dict[str, list[float]] = {"58": [], "51": []}  # for the states of the nodes, and of a queue's jobs
    for moment, subject, text in _lines(logs["server"]):
        if found := re.match(r"Type (51|58) request received from Scheduler", text):
            requests[found[1]].append(moment)
        if (job := jobs.get(subject)) is None:
            continue
        if found := re.match(r"enqueuing into (\S+), state", text):
            job.enqueued.append((moment, found[1]))
        elif text.startswith("Job Run at request of Scheduler"):
            job.run = moment
        elif text.startswith("Obit received"):
            job.obit = moment
        elif re.match(r"dequeuing from \S+, state [EF]", text):
            job.gone = moment
        elif "Job Modified at request of root" in text:
            job.altered = min(job.altered, moment)
    for job in jobs.values():
        job.enqueued = [(at, name) for at, name in job.enqueued if name != "route"]
    for name, fields in re.findall(r";S;([^;]+);(.*)", logs["accounting"]):
        if name in jobs:
            jobs[name].start = int(re.search(r" start=(\d+)", fields)[1])  # type: ignore[index]
            chunks = re.search(r" exec_vnode=(\S+)", fields)[1]  # type: ignore[index]
            for node, cores in re.findall(r"(\w+):ncpus=(\d+)", chunks):
                jobs[name].nodes[node] = jobs[name].nodes.get(node, 0) + int(cores)
            jobs[name].on = re.findall(r"\((\w+):", chunks)
    # The scheduler reads the queues in which jobs run one after the other, as they were created.
    queues = [name for name in re.findall(r";Que;([^;]+);created at request of", logs["server"]) if name != "route"]
    ordered = dict(sorted(jobs.items(), key=lambda item: int(item[0].partition(".")[0])))
    return Recording(version, ordered, _cycles(logs["scheduler"], requests, queues, jobs), logs)


def _cycles(log: str, requests: dict[str, list[float]], queues: list[str], jobs: dict[str, Job]) -> list[Cycle]:
    cycles: list[Cycle] = []
    for moment, subject, text in _lines(log):
        if text == "Starting Scheduling Cycle":
            nodes, of_jobs = (moments[bisect_left(moments, moment) :] or [moment] for moments in requests.values())
            cycles.append(Cycle(moment, nodes[0], dict(zip(queues, of_jobs, strict=False))))
        elif subject in jobs and cycles:
            cycles[-1].said[subject] = text
            if text == "Job run":
                cycles[-1].started.append(subject)
            elif text.startswith("Job is a top job"):
                cycles[-1].top.append(subject)
    return cycles


def home(queue: str) -> str:
    """Return the queue of the configuration of which a job's present one is, itself or its queue for the pool."""
    return queue.removesuffix(POOL_SUFFIX)
