"""Rehearse an export for Slurm: load it into a private Slurm with jobs by its plan, try examples, undo it."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

from qconf.errors import InputError
from qconf.export.nodes import Node, read_nodes
from qconf.export.slurm.queues import ACCESS
from qconf.hosts import expand
from tests.servers import rehearsal, slurm_changes
from tests.servers.machine import USERS
from tests.servers.rehearsal import Rehearsal, run_blocks, saved
from tests.servers.slurm_jobs import ENDED, RUN, UNTIL, lost, tasks
from tests.servers.slurm_server import PrivateSlurm

#: The settings before: another order, and two partitions, the second with the name of a queue (KEPT).
SITE = """\
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1,bf_window_linear=1
PartitionName=former Nodes=ALL Default=YES State=UP
PartitionName=KEPT Nodes=ALL MaxTime=7-0 State=UP
"""
_QUEUE = re.compile(r'\{ name = "([\w-]+)", least = (\S+), most = (\S+), above = (\S+), upto = ([^,\s]+)\b')
_LATER = UNTIL.replace("done;", "done; sleep 3;")


class Plan(rehearsal.Plan):
    """A plan for Slurm that loads a whole configuration."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if not {"PLAN.md", "partitions.conf", "job_submit.lua"} <= set(self.files):
            fix = "of an export made with --current give --current here, too: the slurm.conf that it was made from"
            raise InputError("holds no PLAN.md and partitions.conf of a whole Slurm export", file=folder, fix=fix)

    @property
    def queues(self) -> list[tuple[str, int, int]]:
        """The queues in routing order: name, and cores and minutes of the smallest job that is routed to it."""
        rows = [
            (name, *(math.inf if bound == "math.huge" else int(bound) for bound in bounds))
            for name, *bounds in _QUEUE.findall(self.files["job_submit.lua"])
        ]

        def takes(row: tuple[str, float, float, float, float], cores: float, minutes: float) -> bool:
            _, least, most, above, upto = row
            return least <= self._whole(cores) <= self._whole(most) and above < 60 * minutes <= upto

        found = []
        for number, row in enumerate(rows):
            before = rows[:number]
            sizes = sorted({row[1], *(self._whole(other[2]) + 1 for other in before)})
            times = sorted({time // 60 + 1 for time in (row[3], *(other[4] for other in before))})
            jobs = [job for job in itertools.product(sizes, times) if takes(row, *job)]
            jobs = [job for job in jobs if not any(takes(other, *job) for other in before)]
            found += [(row[0], int(cores), int(minutes)) for cores, minutes in jobs[:1]]
        return found

    def _whole(self, cores: float) -> float:
        return cores if math.isinf(cores) else -(-cores // self.node) * self.node

    @property
    def node(self) -> int:
        """Cores per node if jobs get whole nodes, else 1."""
        whole = re.search(r"local NODE = (\d+)", self.files["job_submit.lua"])
        return int(whole[1]) if whole else 1

    @property
    def partitions(self) -> dict[str, str]:
        """The hosts of each partition, as in partitions.conf."""
        return dict(re.findall(r"^PartitionName=(\S+) Nodes=(\S+)", self.files["partitions.conf"], re.MULTILINE))

    @property
    def access(self) -> dict[str, dict[str, str]]:
        """The access lists of each partition, by the keys of partitions.conf."""
        words = [word for pair in ACCESS.values() for word in pair if word]
        lines = re.findall(r"^PartitionName=(\S+)(.*)$", self.files["partitions.conf"], re.MULTILINE)
        return {name: dict(re.findall(rf" ({'|'.join(words)})=(\S+)", line)) for name, line in lines}

    def credentials(self, queue: str) -> tuple[str, str]:
        """Return the options of sbatch for a job that a queue admits, and the host to submit it on ("" for any)."""
        lists = self.access[queue]
        words = [
            f" --{word}={lists[allowed].split(',')[0]}"
            for word, allowed in (("account", "AllowAccounts"), ("qos", "AllowQos"))
            if allowed in lists
        ]
        return "".join(words), next(expand(lists["AllocNodes"])) if "AllocNodes" in lists else ""

    def listed(self, kind: str) -> list[str]:
        """Return the names in all access lists of a kind: Groups, Accounts or Qos."""
        names = (lists.get(f"Allow{kind}", "") for lists in self.access.values())
        return [*dict.fromkeys(name for each in names for name in each.split(",") if name)]

    @property
    def accounted(self) -> bool:
        """Whether accounting is needed: for priorities, limits, or access by account or QOS."""
        return "priority/multifactor" in self.files["new-conf"] or bool(
            {"qos.sacctmgr", "throttles.sacctmgr", "classes.sacctmgr"} & {*self.files}
            or self.listed("Accounts")
            or self.listed("Qos")
        )

    def nodes(self, given: list[Node] | None = None) -> dict[str, int]:
        """Return the nodes with their cores, in turn from each partition, since only the first ones get a daemon."""
        most = max(4, -(-max(cores for _, cores, _ in self.queues) // self.node) if self.node > 1 else 0)
        every = [node.name for node in given or ()] or [f"n{number}" for number in range(1, most + 1)]
        hosts = {name: _names(hosts, every) for name, hosts in self.partitions.items()}
        names = [name for each in itertools.zip_longest(*hosts.values()) for name in each if name]
        known = {node.name: node.cores for node in given or () if node.cores}
        least = max(math.ceil(cores / max(1, len(hosts[queue]))) for queue, cores, _ in self.queues)
        cores = self.node if self.node > 1 else max(2, least)
        return {name: known.get(name, cores) for name in dict.fromkeys(names)}


def _names(hosts: str, every: list[str]) -> list[str]:
    if hosts == "ALL":
        return every
    return [] if hosts == '""' else [node.name for node in read_nodes(hosts)]


def rehearse(folder: Path, *, current: Path | None = None, nodes: list[Node] | None = None) -> Rehearsal:
    """Load the export in `folder` into a private Slurm with running and waiting jobs, try it, and undo it.

    Raises InputError if Slurm is not available.
    """
    if current is not None:
        return slurm_changes.rehearse(folder, current)
    plan = Plan(folder)
    with PrivateSlurm(plan.nodes(nodes), SITE.replace("KEPT", plan.queues[0][0]), accounting=plan.accounted) as server:
        return follow(plan, server)


def follow(plan: Plan, server: PrivateSlurm, kept: str | None = None) -> Rehearsal:
    """Follow a plan on a server in the state `SITE`; `kept` is the queue in place of KEPT."""
    result = Rehearsal(f"Slurm {server.run('slurmctld -V').stdout.split()[-1]}")
    plan.put(server)
    let_in(plan, server)
    before = saved(server)
    jobs = submitted(plan, server, kept or plan.queues[0][0])
    run_blocks(plan.steps, server, result)
    moved = tasks(server)
    result.moved = sum(moved[job]["Partition"] != jobs[job] for job in jobs if job in moved)
    names = re.findall(r"^PartitionName=(\S+)", server.run(server.saved["partitions"]).stdout, re.MULTILINE)
    if sorted(names) != sorted(plan.partitions):
        result.problems.append(f"partitions {', '.join(names)} instead of {', '.join(plan.partitions)}")
    result.problems += _examples(plan, server, result)
    jobs |= started(plan, server)
    result.jobs = len(jobs)
    run_blocks(plan.undo, server, result)
    changed = result.is_undone(before, saved(server))
    result.problems += [f"not what it was after the undo: {name}" for name in changed]
    result.problems += lost(server, list(jobs))
    return result


def let_in(plan: Plan, server: PrivateSlurm) -> None:
    """Add the users to all groups, accounts and QOS that the export names."""
    lines = [f"groupadd -f {name}; usermod -aG {name} {user}" for name in plan.listed("Groups") for user in USERS]
    users = ",".join(USERS)
    add = "sacctmgr --immediate add"
    lines += [f"{add} account {name}; {add} user {users} account={name}" for name in plan.listed("Accounts")]
    given = f"sacctmgr --immediate modify user {users} set"
    lines += [f"{add} qos {name}; {given} qos+={name}" for name in plan.listed("Qos")]
    server.run("\n".join(lines))


def submitted(plan: Plan, server: PrivateSlurm, kept: str) -> dict[str, str]:
    """Fill the machine, and submit waiting jobs: one per queue, an array, a held one; return partitions by job."""
    sbatch = "sbatch --quiet --output=/dev/null"
    nodes = server.awake
    hosts: dict[str, list[str]] = {}  # jobs to submit on a host of its own
    lines = [f"{sbatch} --partition=former --ntasks=1 --time=2 --array=1-4%2 {UNTIL}"]
    for number, name in enumerate(nodes):
        where = f"{kept},former" if number % 2 else "former"  # a job of several partitions ends with each of them
        free = server.nodes[name] - (2 if number == 0 else 0)
        size = f"--nodelist={name} --ntasks={free} --time=2"
        lines += [f"{sbatch} --partition={where} {size} {_LATER if number % 2 else UNTIL}"] if free > 0 else []
    for queue, cores, minutes in plan.queues:
        where = "former,KEPT".replace("KEPT", kept) if queue == kept else "former"
        words, host = plan.credentials(queue)
        size = f"--ntasks={cores} --time={minutes}{words}"
        on_host = hosts.setdefault(host, []) if host else lines
        on_host.append(f"{sbatch} --partition={where} {size} --wrap 'sleep 1; {ENDED}'")
    queue, cores, minutes = plan.queues[0]
    lines.append(f"{sbatch} --partition=former --hold --ntasks={cores} --time={minutes} --wrap true")
    server.run(RUN)
    server.run(lines[0], user="bob")
    server.wait("squeue --noheader --states=RUNNING | grep -q .", "no job starts")
    for host, there in {"": lines[1:], **hosts}.items():
        server.run("\n".join(there), user="alice", host=host)
    server.run("sleep 1")
    return {
        job: values["Partition"]
        for job, values in tasks(server).items()
        if values["JobState"] in {"PENDING", "RUNNING"}
    }


def started(plan: Plan, server: PrivateSlurm) -> dict[str, str]:
    """Submit to each queue a job that runs until the plan waits for it; return partitions by job."""
    server.run(RUN)
    before = tasks(server)
    for queue, cores, minutes in plan.queues:
        words, host = plan.credentials(queue)
        size = f"--ntasks={cores} --time={minutes}{words}"
        server.run(f"sbatch --quiet --output=/dev/null {size} {UNTIL}", user="carol", host=host)
    server.wait("squeue --noheader --states=RUNNING --user=carol | grep -q .", "no job starts")
    return {job: values["Partition"] for job, values in tasks(server).items() if job not in before}


def _examples(plan: Plan, server: PrivateSlurm, result: Rehearsal) -> list[str]:
    """Submit a job for each queue as an ordinary user; return messages for those that land elsewhere."""
    wrong = []
    for queue, cores, minutes in plan.queues:
        words, host = plan.credentials(queue)
        wanted = f"--ntasks={cores} --time={minutes}{words}"
        command = f"sbatch --parsable --begin=now+1day {wanted} --output=/dev/null --wrap true"
        job = server.run(command, user="alice", host=host).stdout.strip()
        landed = server.run(f"squeue --noheader --jobs={job} --format=%P; scancel {job}").stdout.strip()
        result.examples += landed == queue
        if landed != queue:
            wrong.append(f"{cores} cores for {minutes} minutes land in {landed} ({job}), not in {queue}")
    return wrong
