"""A real schedule: jobs submitted as ordinary users to a private Slurm with an export, and what its log says of it.

In a cycle of two or three steps jobs end at the first one, are submitted at the second, and may enter the pool, or
have their priorities computed anew, at the third, so that no two events are nearer than Slurm takes to act on one:
schedules would part at the first such pair. A start counts for the step before it. Events of one step come within a
tenth of a second; the steps begin so long before Slurm looks for jobs to backfill that it never sees some of them
only.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qconf.export import exporter
from qconf.export.nodes import Node, expand
from tests.real_slurm.disciplines import BETWEEN, MINUTES, PHASES, Site
from tests.servers.machine import USERS, WORK
from tests.servers.rehearsal import Rehearsal, run_blocks
from tests.servers.slurm import SITE, Plan
from tests.servers.slurm_server import PrivateSlurm
from tests.submissions import submit

STEP = 4  #: seconds
LEAD = 0.2  #: seconds from the begin of a step until Slurm looks for jobs to backfill; a second more 15 minutes later
_RUN = """\
now=$(($(date +%s%3N) - $3))
left=$((now / $2 * $2 + $1 * $2 - now))
sleep $((left / 1000)).$(printf %03d $((left % 1000)))
"""
_COMPUTED = "priority/multifactor: _ft_debug: +root "
_LOGGED = f"submit_batch_job:|Allocate JobId|Started JobId|_job_complete|{_COMPUTED}"
_LINE = re.compile(r"\[(\S+)\] (?:sched: |sched/backfill: _start_job: )?(.*?) JobId=(\d+)\b ?(.*)")


@dataclass
class Job:
    """A job of the real schedule; moments in seconds since 1970."""

    user: int
    cores: int
    walltime: int
    wanted: str = ""  #: of the nodes, in words of sbatch
    submitted: float = np.nan
    started: float = np.nan
    ended: float = np.nan
    backfilled: bool = False
    nodes: dict[str, int] = field(default_factory=dict)  #: cores on each, by name


def record(site: Site, *, jobs: int, seed: int) -> dict[str, Any]:
    """Load the export of a site into a new Slurm, submit `jobs` jobs, and return what became of them."""
    kept = SITE.replace("KEPT", site.config.queues[0].name)
    gpus = {name: each.gpus for name, each in site.types.items() if each.gpus}
    features = {name: each.features for name, each in site.types.items() if each.features}
    words = {name: f"Weight={each.weight}" for name, each in site.types.items()}
    slurm = PrivateSlurm(site.nodes, kept, daemons=len(site.nodes), gpus=gpus, features=features, words=words)
    with slurm as server, TemporaryDirectory() as folder:
        plan = _load(site, server, Path(folder))
        done = threading.Event()
        offset = _offset(server)
        if "eligible_time" in site.config.order:
            offset += (_calculation(server) - offset - 2 * STEP) // 1 % (STEP * PHASES[site.discipline])
        promoting = threading.Thread(target=_promote, args=(server, plan, done, offset))
        promoting.start()
        try:
            wanted = _submit(site, server, jobs, offset, np.random.default_rng(seed))
            server.wait("sleep 2; ! squeue --noheader | grep .", "jobs do not end", seconds=1800)
        finally:
            done.set()
            promoting.join()
        log = server.run(f"grep -E '{_LOGGED}' /srv/log/slurmctld")
        settings = server.run("scontrol show config | grep -E '^(Scheduler|Priority)(Type|Param)'")
        version = server.run("slurmctld -V")
        nodes = server.run("scontrol --details show jobs | grep -E '^JobId=|^ +Nodes='")
    return {
        "version": version.stdout.split()[-1],
        "offset": offset,
        "wanted": wanted,
        "log": log.stdout,
        "settings": settings.stdout,
        "nodes": nodes.stdout,
    }


def _load(site: Site, server: PrivateSlurm, folder: Path) -> Plan:
    nodes = [Node(name, cores) for name, cores in site.nodes.items()]
    for name, content in exporter("slurm")(nodes=nodes).export(site.config).files.items():
        (folder / name).write_text(content)
    plan, result = Plan(folder), Rehearsal("")
    plan.put(server)
    run_blocks(plan.steps, server, result)
    if result.problems:
        raise RuntimeError(f"{site.discipline}: {result.problems}")
    return plan


def _promote(server: PrivateSlurm, plan: Plan, done: threading.Event, offset: float) -> None:
    """Run in each step what runs every minute on a site: jobs are of seconds here.

    It counts in whole seconds, so half a second after the begin of a step a job is due that is due then, and no other.
    """
    while "qconf-promote" in plan.files and not done.wait((offset + 0.5 - time.time()) % STEP):
        server.run("qconf-promote")


def _offset(server: PrivateSlurm) -> float:
    """Return the part of a second at which steps are to begin."""
    look = "grep '_attempt_backfill: beginning' /srv/log/slurmctld | tail -n 1"
    wake = "scontrol setdebug debug; scancel $(sbatch --parsable --begin=now+1day --output=/dev/null --wrap true)"
    began = server.run(f"{wake}; sleep 3; {look}; scontrol setdebug info").stdout
    found = re.search(r"^\[[^.]+(\.[0-9]+)\]", began)
    if found is None:
        raise RuntimeError(f"the controller's log does not say when it backfills: {began}")
    return round((float(found[1]) - LEAD) % 1, 3)


def _calculation(server: PrivateSlurm) -> float:
    """Let the log say from now on when priorities are computed anew, and return the first such moment."""
    look = f"grep -m 1 -E '{_COMPUTED}' /srv/log/slurmctld"
    server.run("scontrol setdebugflags +Priority")
    line = server.wait(look, "the controller's log does not say when it computes priorities", seconds=300)
    return _moment(line[1 : line.index("]")])


def _submit(
    site: Site, server: PrivateSlurm, jobs: int, offset: float, rng: np.random.Generator
) -> dict[str, tuple[int, int, int, str]]:
    """Submit jobs at the second step of cycles; return user, cores, walltime and what else is wanted by id."""
    widest = max(queue.cores[1] for queue in site.config.queues)
    cycle = STEP * PHASES.get(site.discipline, 2)
    first, of = MINUTES.get(site.discipline, (1, 1))
    longest = max(queue.walltime[1] for queue in site.config.queues) // 60
    walltimes = np.arange(first, longest + 1, of)
    at = np.cumsum(rng.exponential(BETWEEN.get(site.discipline, 4.5), jobs)) // cycle * cycle
    width = np.where(rng.random(jobs) < 0.7, rng.integers(1, widest // 4 + 1, jobs), rng.integers(1, widest + 1, jobs))
    # Of two jobs of one walltime the second ends behind the first in Slurm, where it starts a second later; and where
    # it starts half a minute later in another partition, head jobs are planned later than they could start.
    minutes = np.resize(rng.choice(walltimes, min(jobs, walltimes.size), replace=False), jobs)
    cycles = rng.integers(1, 5, jobs)
    users: NDArray[np.int64] = rng.integers(0, len(USERS), jobs)
    server.write("run.sh", _RUN)
    server.run(f"chmod 755 {WORK} && chmod 644 run.sh")
    begin = (int(time.time()) // cycle + 2) * cycle + STEP + offset
    beside = f"{1000 * cycle} {1000 * offset:.0f}"
    sbatch = "sbatch --parsable --output=/dev/null"
    of_types = list(rng.choice([*site.wants], jobs)) if site.types else [""] * jobs
    of_types, width = zip(*(site.words(str(of_types[j]), int(width[j])) for j in range(jobs)), strict=True)
    commands = [
        f"{sbatch} --ntasks={width[j]} --time={minutes[j]} {of_types[j]} --wrap 'sh {WORK}/run.sh {cycles[j]} {beside}'"
        for j in range(jobs)
    ]
    names = submit(server, begin + at, users, commands)
    wanted = {name: (int(users[j]), int(width[j]), 60 * int(minutes[j]), of_types[j]) for j, name in enumerate(names)}
    return dict(sorted(wanted.items(), key=lambda item: int(item[0])))


def read(kept: dict[str, Any]) -> list[Job]:
    """Read the log of a run, whose clock is UTC; jobs are in the order of their ids, moments those since its offset."""
    jobs = {name: Job(*of) for name, of in kept["wanted"].items()}
    for line in kept["log"].splitlines():
        found = _LINE.match(line)
        if not found or found[3] not in jobs:
            continue
        job = jobs[found[3]]
        moment = _moment(found[1]) - kept["offset"]
        if found[2] == "_slurm_rpc_submit_batch_job:":
            job.submitted = moment
        elif found[2] in ("Allocate", "Started"):
            job.started, job.backfilled = moment, found[2] == "Started"
        elif found[4] == "done":
            job.ended = moment
    job = Job(0, 0, 0)
    for line in kept.get("nodes", "").splitlines():
        if line.startswith("JobId="):
            job = jobs.get(line.split()[0][6:], Job(0, 0, 0))
        elif found := re.match(r" +Nodes=(\S+) CPU_IDs=(\S+)", line):
            spans = [span.split("-") for span in found[2].split(",")]
            cores = sum(int(span[-1]) - int(span[0]) + 1 for span in spans)
            job.nodes |= dict.fromkeys(expand(found[1]), cores)
    return list(jobs.values())


def calculated(kept: dict[str, Any]) -> float | None:
    """Read the moment at which priorities were first computed anew; None where the log does not tell."""
    line = next((line for line in kept["log"].splitlines() if re.search(_COMPUTED, line)), None)
    return None if line is None else _moment(line[1 : line.index("]")]) - kept["offset"]


def _moment(stamp: str) -> float:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC).timestamp()
