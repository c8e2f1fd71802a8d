"""Rehearse an export of changes: its plan changes a private Slurm that has the partitions of a slurm.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from qconf.errors import InputError
from qconf.export.slurm.conf import Conf
from qconf.export.slurm.merging import Words, partitions_of
from qconf.hosts import expand, fold
from tests.servers.machine import USERS
from tests.servers.rehearsal import Plan, Rehearsal, run_blocks, saved
from tests.servers.slurm_jobs import RUN, UNTIL, lost, tasks
from tests.servers.slurm_server import DAEMONS, PrivateSlurm

#: Prefixes of the settings of a site's slurm.conf that the private Slurm gets.
KEPT = ("scheduler", "priority", "preempt", "accountingstorageenforce", "accountingstoragetres", "enforcepartlimits")
ROW = re.compile(r"^\| (?:partition ([^:|]+)(?:: (\w+))?|(\w+)(?: \w+)?) \|", re.MULTILINE)  #: of the plan's table
OF_ITSELF = {"PriorityCalcPeriod", "PriorityParameters"}  #: settings that Slurm derives from others
SHOWN = "scontrol show config | grep -vE '^(Configuration data|BOOT_TIME|NEXT_JOB_ID|Slurmctld.ping)'"


def rehearse(folder: Path, current: Path) -> Rehearsal:
    """Load the changes into a private Slurm with the partitions of `current`, and undo them. Raises InputError."""
    plan = Plan(folder)
    if not {"new-conf", "accounts"} & {*plan.files} or "PLAN.md" not in plan.files:
        raise InputError("holds no plan for Slurm that loads anything", file=folder, fix="name the folder of an export")
    site = Site(Conf(current))
    first = f"{site.settings}PartitionName=first Nodes=ALL\n"
    with PrivateSlurm(site.nodes, first, gpus=site.gpus, words=site.memory) as server:
        site.open(server, plan.files)
        return follow(plan, site, server)


class Site:
    """The nodes, settings and partitions of a slurm.conf, for a private Slurm."""

    def __init__(self, conf: Conf) -> None:
        if not conf.lines_of_partitions:
            fix = "give the slurm.conf itself, with the files that it includes"
            raise InputError("has no lines of partitions as slurm.conf writes them", file=conf.path, fix=fix)
        self.conf = conf
        self.partitions, _ = partitions_of(conf.lines_of_partitions)
        settings = {key: value for key, value in conf.settings.items() if key.startswith(KEPT)}
        settings.pop("prioritysitefactorplugin", None)
        self.settings = "".join(f"{key}={value}\n" for key, value in settings.items())
        self.settings += "".join(f"NodeName={name} CPUs=1 State=FUTURE\n" for name in sorted(conf.future))
        sets = {name: conf.hosts({"nodes": name, "line": of[0]["line"]}) for name, of in conf.sets.items()}
        self.settings += "".join(f"NodeSet={name} Nodes={fold(sorted(hosts))}\n" for name, hosts in sets.items())
        self.lines = "".join(f"{line.strip()}\n" for line in conf.lines_of_partitions)
        if not conf.nodes:
            raise InputError("names no node", file=conf.path, fix="give the file that has the NodeName lines, too")

    @property
    def nodes(self) -> dict[str, int]:
        """The cores of each node, first some of each partition, since only the first ones get a daemon."""
        of_each = [sorted(hosts) for fields in self.conf.partitions if (hosts := self.conf.hosts(fields))]
        most = max(1, DAEMONS // max(1, len(of_each)))
        first = [name for hosts in of_each for name in hosts[:most]]
        return {name: max(1, self.conf.nodes[name]) for name in dict.fromkeys([*first, *self.conf.nodes])}

    @property
    def gpus(self) -> dict[str, int]:
        """The number of GPUs, of all types, of each node with GPUs."""
        found = {
            name: re.findall(r"gpu(?::[^:,()]+)?:(\d+)", of.get("gres", "")) for name, of in self.conf.lines.items()
        }
        return {name: sum(map(int, counts)) for name, counts in found.items() if counts}

    @property
    def memory(self) -> dict[str, str]:
        """The setting RealMemory of each node."""
        of_each = {name: of.get("realmemory", "1") for name, of in self.conf.lines.items()}
        return {name: f"RealMemory={amount}" for name, amount in of_each.items()}

    def word(self, partition: Words, key: str) -> list[str]:
        """Return the names in a partition's list `key`; empty if it is ALL."""
        value = partition.get(key, ("", ""))[1].strip('"')
        return [] if value.upper() == "ALL" else [name for name in value.split(",") if name]

    def named(self, *keys: str) -> list[str]:
        """Return the names in these lists of all partitions."""
        return [*dict.fromkeys(name for of in self.partitions.values() for key in keys for name in self.word(of, key))]

    def open(self, server: PrivateSlurm, files: dict[str, str]) -> None:
        """Create all users, accounts and QOS that partitions and export name, then add the partitions."""
        text = "".join(text for name, text in files.items() if name.endswith(".sacctmgr"))
        new = re.findall(r"^add qos (\S+)", text, re.MULTILINE)
        others, theirs, qos = (
            re.findall(rf"^modify {kind}(\S+)", text, re.MULTILINE)
            for kind in ("account where name=", "user where name=", "qos ")
        )
        qos += self.named("qos", "allowqos", "denyqos")
        accounts, groups = [*self.named("allowaccounts", "denyaccounts"), *others], self.named("allowgroups")
        add, users = "sacctmgr --immediate add", ",".join(USERS)
        lines = [f"groupadd -f {name}; usermod -aG {name} {user}" for name in groups for user in USERS]
        lines += [f"{add} account {name}; {add} user {users} account={name}" for name in dict.fromkeys(accounts)]
        lines += [f"{add} user {name} account=all" for name in dict.fromkeys(theirs)]
        lines += [f"{add} qos {name}" for name in dict.fromkeys(qos) if name not in new]
        if given := [name for name in self.named("allowqos") if name not in new]:
            lines.append(f"sacctmgr --immediate modify user {users} set {' '.join(f'qos+={name}' for name in given)}")
        server.run("\n".join(lines))
        server.write("slurm.conf", server.conf(self.settings + self.lines), folder="/etc/slurm")
        server.run("systemctl restart slurmctld")
        up = "scontrol ping | grep -q UP || { tail -n 3 /srv/log/slurmctld; false; }"
        server.wait(up, "the controller does not take these partitions")
        server.wait(
            f"sinfo --noheader --Node --states=idle --nodes={fold(server.awake)} | grep -q .", "no node comes up"
        )

    def submitted(self, server: PrivateSlurm) -> dict[str, str]:
        """Submit to each partition a job for now and one for tomorrow; return partitions by job."""
        sbatch = "sbatch --parsable --output=/dev/null --time=1"
        server.run(RUN)
        for name, of in self.partitions.items():
            let_in = {"account": self.word(of, "allowaccounts"), "qos": self.word(of, "allowqos")}
            words = [f"--{key}={names[0]}" for key, names in let_in.items() if names]
            words += [f"--nodes={of['minnodes'][1]}"] if "minnodes" in of else []
            host = next(iter(expand(of["allocnodes"][1])), "") if self.word(of, "allocnodes") else ""
            one = f"{sbatch} --partition={name} {' '.join(words)}"
            server.run(f"{one} {UNTIL}; {one} --begin=now+1day --wrap true", user="alice", host=host)
        return {job: of["Partition"] for job, of in tasks(server).items() if of["JobState"] in {"PENDING", "RUNNING"}}


def shown(server: PrivateSlurm) -> dict[tuple[str, str], str]:
    """Return the controller's values by (partition, key), settings by ("", name)."""
    found: dict[tuple[str, str], str] = {}
    for line in server.run("scontrol --all --oneliner show partition").stdout.splitlines():
        name = line.split()[0].partition("=")[2]
        found |= {(name, word.partition("=")[0]): word.partition("=")[2] for word in line.split()}
    for line in server.run(SHOWN).stdout.splitlines():
        name, _, value = line.partition(" = ")
        found["", name.strip()] = value.strip()
    return found


def beside_table(plan: str, before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> Iterator[str]:
    """Yield a message for each change that is not in the plan's table."""
    rows = ROW.findall(plan)
    named = {(partition, word.lower()) for partition, word, _ in rows if partition}
    named |= {("", setting.lower()) for *_, setting in rows if setting}
    for place in sorted({*before, *after}):
        partition, word = place
        known = {(partition, word.lower()), (partition, "")} & named or word in OF_ITSELF
        made = partition and any(of == partition for of, _ in named)  # Slurm shows derived keys
        if before.get(place) != after.get(place) and not known and not made:
            what = f"partition {partition}: {word}" if partition else word
            yield f"changed, and not in the table: {what}: {before.get(place)} to {after.get(place)}"


def follow(plan: Plan, site: Site, server: PrivateSlurm) -> Rehearsal:
    """Follow a plan on a server with the site's settings and partitions."""
    result = Rehearsal(f"Slurm {server.run('slurmctld -V').stdout.split()[-1]}")
    plan.put(server)
    before, there, jobs = saved(server), shown(server), site.submitted(server)
    result.jobs = len(jobs)
    if not jobs:
        result.problems.append("no partition takes a job of one core")
    run_blocks(plan.steps, server, result)
    held = tasks(server)
    result.moved = sum(held[job]["Partition"] != name for job, name in jobs.items() if job in held)
    if "What is not in this table does not change." in plan.text:
        result.problems += beside_table(plan.text, there, shown(server))
    run_blocks(plan.undo, server, result)
    changed = result.is_undone(before, saved(server))
    if shown(server) != there:
        changed, result.rolled_back = [*changed, "settings"], False
    result.problems += [f"not what it was after the undo: {name}" for name in changed]
    result.problems += lost(server, list(jobs))
    return result
