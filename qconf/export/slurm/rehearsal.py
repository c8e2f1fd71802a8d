"""A rehearsal: an export is loaded into a private Slurm by its own plan, with jobs in it, tried, and undone."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from qconf.errors import InputError
from qconf.export.nodes import Node, read_nodes, read_text
from qconf.export.plan import blocks
from qconf.export.private import USERS
from qconf.export.slurm.partitions import ACCESS
from qconf.export.slurm.private_server import PrivateSlurm
from qconf.hosts import expand

#: What is there before: two partitions, the second of the name of a queue, and another order.
SITE = """\
SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,bf_resolution=1,bf_window_linear=1
PartitionName=former Nodes=ALL Default=YES State=UP
PartitionName=KEPT Nodes=ALL MaxTime=7-0 State=UP
"""
_QUEUE = re.compile(r'\{ name = "([\w-]+)", least = (\S+), most = (\S+), above = (\S+), upto = ([^,\s]+)\b')
_SAVED = {
    "partitions": "scontrol --oneliner show partition",
    "configuration": "scontrol show config | grep -E '^(Sched|Priority|Preempt|JobSubmit|AccountingStorageEnf)'",
    "QOS": "sacctmgr --noheader --parsable2 show qos "
    "format=Name,GrpJobs,GrpTRES,MaxJobsPU,MaxTRESPU,Priority,Flags 2> /dev/null",
    "associations": "sacctmgr --noheader --parsable2 show associations "
    "format=Account,User,GrpJobs,GrpTRES,GrpTRESRunMins,GrpSubmit,QOS,DefaultQOS 2> /dev/null",
    "/etc/slurm": "cd /etc/slurm && sha256sum *",
}
RUN = "rm -f /srv/end; chmod 755 /srv"  #: jobs that `UNTIL` then run until a plan waits for their end
_ENDED = "touch ~/ended-$SLURM_JOB_ID"  #: what a job does last: one that was killed has not
UNTIL = f"--wrap 'until [ -e /srv/end ]; do sleep 0.2; done; {_ENDED}'"
_LATER = UNTIL.replace("done;", "done; sleep 3;")
LONGEST_BLOCK = 300  #: seconds that a block of a plan may take here, where no job runs for long
_FINE = {"PENDING", "RUNNING", "COMPLETING", "COMPLETED"}


@dataclass
class Rehearsal:
    """What was done, and what went otherwise than the plan says."""

    version: str
    blocks: int = 0  #: blocks of the plan, each run in a shell of its own
    examples: int = 0  #: jobs that landed in the queue that the configuration has for them
    jobs: int = 0  #: that ran or waited when the plan or its undo began
    moved: int = 0  #: of those, in another partition when it was loaded
    rolled_back: bool = False
    refused: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One line for a person."""
        return (
            f"Slurm {self.version}: {self.blocks} blocks of the plan, {self.examples} examples in their queue, "
            f"{self.jobs} jobs ran or waited, {self.moved} of them were moved, "
            + ("rolled back" if self.rolled_back else "not rolled back")
        )


class Plan:
    """An export's folder: its files, and the blocks of its PLAN.md in their order."""

    def __init__(self, folder: Path) -> None:
        self.files = {path.name: read_text(path) for path in sorted(folder.iterdir()) if path.is_file()}
        if not {"PLAN.md", "partitions.conf", "job_submit.lua"} <= set(self.files):
            fix = "of an export made with --current give --current here, too: the slurm.conf that it was made from"
            raise InputError("holds no PLAN.md and partitions.conf of a whole Slurm export", file=folder, fix=fix)
        steps, _, undo = self.files["PLAN.md"].partition("\n## Undo\n")
        self.steps, self.undo = list(blocks(steps)), list(blocks(undo))

    @property
    def queues(self) -> list[tuple[str, int, int]]:
        """The queues that jobs are routed to, in that order: name, cores and minutes of a small job that each takes."""
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
        """Cores of a node where jobs are given whole nodes, else 1."""
        whole = re.search(r"local NODE = (\d+)", self.files["job_submit.lua"])
        return int(whole[1]) if whole else 1

    @property
    def partitions(self) -> dict[str, str]:
        """The hosts of each partition, as partitions.conf names them."""
        return dict(re.findall(r"^PartitionName=(\S+) Nodes=(\S+)", self.files["partitions.conf"], re.MULTILINE))

    @property
    def access(self) -> dict[str, dict[str, str]]:
        """Who may use each partition, in the words of partitions.conf."""
        words = [word for pair in ACCESS.values() for word in pair if word]
        lines = re.findall(r"^PartitionName=(\S+)(.*)$", self.files["partitions.conf"], re.MULTILINE)
        return {name: dict(re.findall(rf" ({'|'.join(words)})=(\S+)", line)) for name, line in lines}

    def credentials(self, queue: str) -> tuple[str, str]:
        """Return what sbatch is told for a job that a queue lets in, and the host to submit it on, empty for any."""
        lists = self.access[queue]
        words = [
            f" --{word}={lists[allowed].split(',')[0]}"
            for word, allowed in (("account", "AllowAccounts"), ("qos", "AllowQos"))
            if allowed in lists
        ]
        return "".join(words), next(expand(lists["AllocNodes"])) if "AllocNodes" in lists else ""

    def listed(self, kind: str) -> list[str]:
        """Name the groups, accounts or QOS that are let in somewhere."""
        names = (lists.get(f"Allow{kind}", "") for lists in self.access.values())
        return [*dict.fromkeys(name for each in names for name in each.split(",") if name)]

    @property
    def accounted(self) -> bool:
        """Whether accounting is needed: for limits, for sums, and for accounts and QOS that are let in."""
        return "priority/multifactor" in self.files["new-conf"] or bool(
            {"qos.sacctmgr", "throttles.sacctmgr", "classes.sacctmgr"} & {*self.files}
            or self.listed("Accounts")
            or self.listed("Qos")
        )

    def nodes(self, given: list[Node] | None = None) -> dict[str, int]:
        """Name the nodes with their cores, those first that are to have a daemon: some of each partition."""
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
    """Load the export in `folder` into a private Slurm in which jobs run and wait, try it, and undo it.

    Raises InputError where there is no Slurm to try it on.
    """
    if current is not None:
        from qconf.export.slurm import alone  # noqa: PLC0415 - it imports this module

        return alone.rehearse(folder, current)
    plan = Plan(folder)
    with PrivateSlurm(plan.nodes(nodes), SITE.replace("KEPT", plan.queues[0][0]), accounting=plan.accounted) as server:
        return follow(plan, server)


def follow(plan: Plan, server: PrivateSlurm, kept: str | None = None) -> Rehearsal:
    """Follow a plan on a server that was just started with `SITE`, or that another undo brought back to it."""
    result = Rehearsal(server.run("slurmctld -V").stdout.split()[-1])
    for name, text in plan.files.items():
        server.write(name, text)
    let_in(plan, server)
    before = saved(server)
    jobs = submitted(plan, server, kept or plan.queues[0][0])
    run_blocks(plan.steps, server, result)
    moved = tasks(server)
    result.moved = sum(moved[job]["Partition"] != jobs[job] for job in jobs if job in moved)
    names = re.findall(r"^PartitionName=(\S+)", server.run(_SAVED["partitions"]).stdout, re.MULTILINE)
    if sorted(names) != sorted(plan.partitions):
        result.problems.append(f"partitions {', '.join(names)} instead of {', '.join(plan.partitions)}")
    result.problems += _examples(plan, server, result)
    jobs |= started(plan, server)
    result.jobs = len(jobs)
    run_blocks(plan.undo, server, result)
    after = saved(server)
    changed = [name for name in _SAVED if before[name] != after[name]]
    result.problems += [f"not what it was after the undo: {name}" for name in changed]
    result.problems += lost(server, list(jobs))
    result.rolled_back = not changed
    return result


def let_in(plan: Plan, server: PrivateSlurm) -> None:
    """Put the users into all groups, accounts and QOS that the export names."""
    lines = [f"groupadd -f {name}; usermod -aG {name} {user}" for name in plan.listed("Groups") for user in USERS]
    users = ",".join(USERS)
    add = "sacctmgr --immediate add"
    lines += [f"{add} account {name}; {add} user {users} account={name}" for name in plan.listed("Accounts")]
    given = f"sacctmgr --immediate modify user {users} set"
    lines += [f"{add} qos {name}; {given} qos+={name}" for name in plan.listed("Qos")]
    server.run("\n".join(lines))


def saved(server: PrivateSlurm) -> dict[str, str]:
    """Return what an undo has to bring back."""
    return {name: server.run(command).stdout for name, command in _SAVED.items()}


def submitted(plan: Plan, server: PrivateSlurm, kept: str) -> dict[str, str]:
    """Fill the machine and have jobs wait, one of each queue, some of an array, one held; return their partitions."""
    sbatch = "sbatch --quiet --output=/dev/null"
    nodes = server.awake
    hosts: dict[str, list[str]] = {}  # what is submitted on hosts that alone are let in
    lines = [f"{sbatch} --partition=former --ntasks=1 --time=2 --array=1-4%2 {UNTIL}"]
    for number, name in enumerate(nodes):
        where = f"{kept},former" if number % 2 else "former"  # a job of several ends with each of them
        free = server.nodes[name] - (2 if number == 0 else 0)
        size = f"--nodelist={name} --ntasks={free} --time=2"
        lines += [f"{sbatch} --partition={where} {size} {_LATER if number % 2 else UNTIL}"] if free > 0 else []
    for queue, cores, minutes in plan.queues:
        where = "former,KEPT".replace("KEPT", kept) if queue == kept else "former"
        words, host = plan.credentials(queue)
        size = f"--ntasks={cores} --time={minutes}{words}"
        on_host = hosts.setdefault(host, []) if host else lines
        on_host.append(f"{sbatch} --partition={where} {size} --wrap 'sleep 1; {_ENDED}'")
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
    """Submit a job to each queue that runs until it is waited for, as far as there is room; return their partitions."""
    server.run(RUN)
    before = tasks(server)
    for queue, cores, minutes in plan.queues:
        words, host = plan.credentials(queue)
        size = f"--ntasks={cores} --time={minutes}{words}"
        server.run(f"sbatch --quiet --output=/dev/null {size} {UNTIL}", user="carol", host=host)
    server.wait("squeue --noheader --states=RUNNING --user=carol | grep -q .", "no job starts")
    return {job: values["Partition"] for job, values in tasks(server).items() if job not in before}


def tasks(server: PrivateSlurm) -> dict[str, dict[str, str]]:
    """Return what Slurm holds of each job, or of each task of an array."""
    found = {}
    for line in server.run("SLURM_BITSTR_LEN=0 scontrol --oneliner show job").stdout.splitlines():
        values = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "JobId" not in values:
            continue
        for task in _tasks(values.get("ArrayTaskId", "")):
            found[f"{values['ArrayJobId']}_{task}"] = values
        if "ArrayTaskId" not in values:
            found[values["JobId"]] = values
    return found


def _tasks(text: str) -> Iterator[int]:
    for each in filter(None, text.partition("%")[0].split(",")):
        first, _, last = each.partition("-")
        yield from range(int(first), int(last or first) + 1)


def lost(server: PrivateSlurm, jobs: list[str]) -> list[str]:
    """Name the jobs that are gone, or in a state that only a loss leads to; all are then taken away."""
    held = tasks(server)
    found = [f"job {job} is lost" for job in jobs if job not in held]
    ended = {job: held[job] for job in jobs if job in held and held[job]["JobState"] not in _FINE}
    done = server.run("ls /srv/home/*").stdout.split()
    for job in (job for job in jobs if job in held and held[job]["JobState"].startswith("COMPLET")):
        found += [] if f"ended-{held[job]['JobId']}" in done else [f"job {job} was killed"]
    anew = (job for job in jobs if job in held and held[job].get("Restarts", "0") != "0")
    found += [f"job {job} was killed and is begun anew" for job in anew]
    found += [f"job {job} ended as {each['JobState']} ({each['Partition']})" for job, each in ended.items()]
    server.run("squeue --all --noheader --format=%A | sort -u | xargs -r scancel")
    server.wait("! squeue --all --noheader | grep .", "jobs do not end")
    return found


def run_blocks(steps: list[tuple[str, str]], server: PrivateSlurm, result: Rehearsal) -> None:
    """Run blocks of a plan, each in a shell of its own that takes no file's mode for granted; note what fails."""
    for title, block in steps:
        if re.search("until jobs=|for name in shortpool_", block):  # some run on until the plan waits for them
            server.run("(sleep 1; touch /srv/end) > /dev/null 2>&1 &")
        quick = re.sub(r"sleep \d", "sleep 0.2", block)  # between two looks
        try:
            done = server.run(f"umask 077\n{quick}", timeout=LONGEST_BLOCK)
        except subprocess.TimeoutExpired:
            result.problems.append(f"{title}: not done after {LONGEST_BLOCK} s")
            return
        result.blocks += 1
        if done.returncode:
            result.problems.append(f"{title}: exit {done.returncode}: {done.stdout.strip()[-500:]}")


def _examples(plan: Plan, server: PrivateSlurm, result: Rehearsal) -> list[str]:
    """Submit a job for each queue as an ordinary user; return those that land elsewhere."""
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
