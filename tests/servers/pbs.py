"""Rehearse an export for PBS: load it into a private OpenPBS by its plan, compare, try examples, roll back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import ndiff
from pathlib import Path

from qconf.errors import InputError
from qconf.export.nodes import Node
from qconf.export.pbs import qmgr
from qconf.export.pbs.merging import transition
from qconf.export.pbs.server import Server
from tests.servers import rehearsal
from tests.servers.pbs_server import PrivateServer
from tests.servers.rehearsal import Rehearsal, run_blocks, saved

_EXAMPLE = re.compile(r"^\| ([\w-]+) \|.*`-l ncpus=(\d+) -l walltime=([\d:]+)` \|$", re.MULTILINE)
#: Commands that print the server's state, and that of its scheduler.
PRINTED = f"{PrivateServer.saved['print server']}; {PrivateServer.saved['print sched']}"
SHOWN = 4  #: at most so many differing lines in a message
_SCHEDULER = (
    "job_sort_formula",
    "job_sort_formula_threshold",
    "preempt_queue_prio",
    "preempt_prio",
    "preempt_order",
    "preempt_sort",
)


class Plan(rehearsal.Plan):
    """A plan for PBS, without the steps for later, when jobs have ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if not {"PLAN.md", "queues.qmgr"} <= set(self.files):
            raise InputError("holds no PLAN.md and queues.qmgr of a PBS export", file=folder, fix="name its directory")
        self.steps = [step for step in self.steps if ". Later: delete" not in step[0]]
        self.undo = self.undo if "rollback.qmgr" in self.files else []

    @property
    def route(self) -> str:
        """The name of the routing queue, "" without one."""
        found = re.search(r"sent to it from (\S+) \|", self.text)
        return found[1] if found else ""

    @property
    def examples(self) -> list[tuple[str, int, str]]:
        """The plan's example jobs: queue, cores, walltime."""
        return [(queue, int(cores), walltime) for queue, cores, walltime in _EXAMPLE.findall(self.text)]

    def statements(self, *names: str) -> list[qmgr.Statement]:
        """Return the qmgr statements of some of the export's scripts."""
        return [each for name in names for each in qmgr.parse(self.files.get(name, ""))]

    def presumed(self) -> list[str]:
        """Return the queues that the plan changes without creating them, so that a server must have them."""
        statements = [each for each in self.statements("queues.qmgr") if each.kind == "queue"]
        created = {name for each in statements if each.command == "create" for name in each.names}
        changed = [name for each in statements for name in each.names]
        changed += [name for _, block in [*self.steps, *self.undo] for name in re.findall(r"set queue (\S+) ", block)]
        return list(dict.fromkeys(name for name in changed if name not in {*created, "workq"}))

    def nodes(self) -> dict[str, int]:
        """Return the export's nodes, or four others, with one core each."""
        names = [name for each in self.statements("nodes.qmgr") if each.kind == "node" for name in each.names]
        return dict.fromkeys(names or ["n1", "n2", "n3", "n4"], 1)


def rehearse(folder: Path, *, current: Path | None = None, nodes: list[Node] | None = None) -> Rehearsal:
    """Load the export in `folder` into a private server, try it, and roll it back.

    `current` is the ``print server`` output that the export was made for, `nodes` its nodes; by default a new server
    with the nodes that the export names. Raises InputError if OpenPBS is not available.
    """
    plan = Plan(folder)
    if current is None and (changed := plan.presumed()):
        raise InputError(
            f"changes queues that the server has already ({', '.join(changed)}), and a new one lacks them",
            file=folder,
            fix="give --current, the file that the export was given",
        )
    sizes = {node.name: node.cores or 1 for node in nodes} if nodes else plan.nodes()
    whole = bool(nodes) and all(node.exclusive for node in nodes or ())
    with PrivateServer(sizes, sharing="default_excl" if whole else "default_shared") as server:
        return follow(plan, server, Server.read(current) if current else None)


def follow(plan: Plan, server: PrivateServer, current: Server | None = None) -> Rehearsal:
    """Follow a plan on a new server, after giving it the state `current`."""
    version = re.search(r"pbs_version = (\S+)", server.run("qstat -Bf").stdout)
    result = Rehearsal(f"OpenPBS {version[1] if version else 'unknown'}")
    if current is not None:
        result.refused += resemble(server, current)
    for name, text in plan.files.items():
        server.write(name, text)
    before = saved(server)
    run_blocks(plan.steps, server, result)
    scripts = [name for name in ("queues.qmgr", "nodes.qmgr") if name in plan.files]
    result.statements = len(plan.statements(*scripts, "rollback.qmgr"))
    intended = Server.parse(before["print server"])
    for statement in plan.statements("queues.qmgr"):
        intended.apply(statement)
    found = Server.parse(server.run("qmgr -c 'print server'").stdout)
    result.problems += [f"the server does not hold what was intended: {each}" for each in _differences(intended, found)]
    result.problems += submit_examples(plan, server, result)
    if not plan.undo:
        return result
    run_blocks(plan.undo, server, result)
    after = saved(server)
    for name in result.is_undone(before, after):
        lines = "; ".join(_changed_lines(before[name], after[name])[:SHOWN])
        result.problems.append(f"not what it was after the undo: {name}: {lines}")
    return result


def held(server: PrivateServer) -> Server:
    """Read the state of a server and its scheduler."""
    return Server.parse(server.run(PRINTED).stdout)


def install(files: Mapping[str, str], server: PrivateServer, folder: Path) -> Plan:
    """Write the files of an export into `folder` and into the server's working folder; return their plan."""
    for name, text in files.items():
        (folder / name).write_text(text)
        server.write(name, text)
    return Plan(folder)


def resemble(server: PrivateServer, wanted: Server) -> list[str]:
    """Give a new server the state `wanted`; return the refused statements, such as those with host names."""
    present = held(server)
    own = {key: value for key, value in present.scheduler.items() if key not in _SCHEDULER or not wanted.scheduler}
    given = {key: value for key, value in wanted.scheduler.items() if key in _SCHEDULER}
    unless_said = {"scheduling": "True"}
    wanted = replace(wanted, attributes=unless_said | wanted.attributes, scheduler=own | given)
    refused = []
    for lines in transition(present, wanted).values():
        for line in lines:
            server.write("statement.qmgr", line + "\n")
            if server.run("qmgr -a < statement.qmgr").returncode:
                refused.append(line)
    return refused


def submit_examples(plan: Plan, server: PrivateServer, result: Rehearsal) -> list[str]:
    """Submit the plan's examples as an ordinary user; return messages for those that land in another queue."""
    wrong = []
    starts_jobs = "scheduling = True" in server.run("qmgr -c 'list server scheduling'").stdout
    server.run("qmgr -c 'set server scheduling = False'")
    for queue, cores, walltime in plan.examples:
        command = f"qsub -q {plan.route or queue} -l ncpus={cores} -l walltime={walltime} -- /bin/true"
        job = server.run(command, user="alice").stdout.strip()
        landed = _queue_of(job, server, plan.route)
        server.run(f"qdel -x -W force {job}")  # from the history too, where a job would keep its resources
        result.examples += landed == queue
        if landed != queue:
            wrong.append(f"{cores} cores for {walltime} land in {landed}, not in {queue}")
    server.run(f"qmgr -c 'set server scheduling = {starts_jobs}'")
    return wrong


def _queue_of(job: str, server: PrivateServer, route: str) -> str:
    """Return the queue to which a job was routed, or the message of qsub if it was rejected."""
    if not re.fullmatch(r"[0-9]+\.\S+", job):
        return job or "no queue"
    for _ in range(20):
        found = re.search(r"^\s+queue = (\S+)", server.run(f"qstat -f {job}").stdout, re.MULTILINE)
        if found is None:
            return "no queue: it was deleted"
        if found[1] != route:
            return found[1]
        time.sleep(0.2)
    return route


def _changed_lines(before: str, after: str) -> list[str]:
    """Return removed lines prefixed with "-" and new lines with "+", without comments."""
    lines = ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "-+" and line[2:3] != "#"]


def _differences(wanted: Server, there: Server) -> Iterator[str]:
    pairs = [("server", wanted.attributes, there.attributes)]
    for kind, intended, found in (
        ("queue", wanted.queues, there.queues),
        ("resource", wanted.resources, there.resources),
    ):
        pairs += [(f"{kind} {name}", intended.get(name, {}), found.get(name, {})) for name in intended | found]
    for subject, one, other in pairs:
        for key in sorted({*one, *other}):
            if _same(one.get(key)) != _same(other.get(key)):
                yield f"{subject} {key} = {other.get(key)} instead of {one.get(key)}"


def _same(value: str | None) -> list[str]:
    return sorted(part.strip() for part in (value or "").split(","))
