"""A configuration as scripts for PBS: to review, to load, to undo. Nothing is run from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from parsim.workload import MAX_CORES, MAX_DURATION
from qconf.config import SiteConfig, format_clock, format_duration, lost_job
from qconf.export.errors import ExportError
from qconf.export.pbs import nodes as node_lists
from qconf.export.pbs.desired import Desired, desired
from qconf.export.pbs.differences import Binding
from qconf.export.pbs.lint import Linter
from qconf.export.pbs.nodes import Node
from qconf.export.pbs.server import Server
from qconf.export.pbs.statements import transition
from qconf.export.templates import render

_SCHED_CONFIG = "$PBS_HOME/sched_priv/sched_config"
_SCHED_BACK = f"cp -p sched_config.before {_SCHED_CONFIG} && kill -HUP $(pgrep -x pbs_sched)"


@dataclass(frozen=True)
class _Script:
    """A script that is run every minute beside PBS, and what the plan says of it."""

    name: str
    does: str
    title: str
    of: str
    restore: tuple[str, ...] = ()

    @property
    def undo(self) -> tuple[str, ...]:
        """What stops it, and takes back what it did."""
        return (f"systemctl disable --now {self.name}.timer; rm -f /etc/cron.d/{self.name}", *self.restore)

    def files(self, template: str, **values: object) -> dict[str, str]:
        """Write the script and what runs it."""
        units = ("service", "timer", "cron")
        return {
            self.name: render(f"pbs/{template}", **values),
            **{f"{self.name}.{unit}": render(f"pbs/minutely.{unit}", name=self.name, does=self.does) for unit in units},
        }

    def step(self) -> dict[str, Any]:
        """Say how to install it."""
        name = self.name
        return {
            "title": self.title,
            "text": f"Read it first. It has to run as a PBS manager; `{name}.cron` is for hosts without systemd.",
            "commands": [
                f"install -m 755 {name} /usr/local/sbin/{name}",
                f"/usr/local/sbin/{name} --dry-run",
                f"install -m 644 {name}.service {name}.timer /etc/systemd/system/",
                f"systemctl daemon-reload && systemctl enable --now {name}.timer",
            ],
            "check": f"the dry run ended with exit 0; `systemctl list-timers` shows {name}.",
            "undo": ", then ".join(f"`{command}`" for command in self.undo) + ".",
        }


_PROMOTE = _Script(
    name="qconf-promote",
    does="Move PBS jobs that have waited long for their walltime into the common pool",
    title="Install the script that moves jobs into the pool",
    of="of the pool",
)
_RESERVE = _Script(
    name="qconf-reserve",
    does="Let PBS jobs wait before they may become top jobs",
    title="Install the script that lets jobs wait before they get a reservation",
    of="of the reservations",
    # of running jobs too: they may be rerun
    restore=("qselect -s BHQRSW | xargs -r -n 1 qalter -W topjob_ineligible=False",),
)


@dataclass
class Export:
    """The files, and what the batch system will do otherwise than the simulator."""

    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def export_pbs(
    config: SiteConfig,
    *,
    current: Server | str | None = None,
    nodes: Sequence[Node] | None = None,
    binding: Binding = "qlist",
    route: str | None = None,
    remove: Sequence[str] = (),
) -> dict[str, str]:
    """Write a configuration as PBS scripts.

    Parameters
    ----------
    config : SiteConfig
    current : Server or str, optional
        What the server holds, or the text that ``print server`` gave; only the difference is written then, with a
        rollback.
    nodes : sequence of Node, optional
        The nodes that the queues may use, from `qconf.export.pbs.nodes.read_nodes`.
    binding : {"qlist", "limits"}
        Partitions by a resource of the nodes, or by limits of running cores (which reserve nothing).
    route : str, optional
        Name of the Route queue.
    remove : sequence of str
        Queues to close that the configuration lacks.

    Returns
    -------
    dict of str to str
        File name to text.

    Raises
    ------
    ExportError
        PBS cannot say it, or a name may not enter a script.
    InputError
        `current` is not the output of ``print server``.
    """
    return prepare_pbs(config, current=current, nodes=nodes, binding=binding, route=route, remove=remove).files


def prepare_pbs(
    config: SiteConfig,
    *,
    current: Server | str | None = None,
    nodes: Sequence[Node] | None = None,
    binding: Binding = "qlist",
    route: str | None = None,
    remove: Sequence[str] = (),
) -> Export:
    """Do what `export_pbs` does, and return its notes too."""
    before = Server.parse(current, "print server") if isinstance(current, str) else (current or Server())
    goal = desired(config, before, binding, route, remove)
    parted = config.mode != "shared" and binding == "qlist"
    node_lines: list[str] = []
    node_back: list[str] = []
    counts: dict[str, int] = {}
    if parted:
        node_lines, node_back, counts = _nodes(config, nodes, goal, before)
    forward, back = transition(before, goal.server), transition(goal.server, before)
    files: dict[str, str] = {
        "queues.qmgr": _script(f"Queues of {comment_name(config)}. Load with: qmgr -a < queues.qmgr", forward)
    }
    if parted:
        title = "Which nodes belong to which queue. Load with: qmgr -a < nodes.qmgr"
        files["nodes.qmgr"] = _script(title, {"nodes": node_lines} if node_lines else {})
    if current is not None:  # else it would delete what it does not know to have been there before
        last = ("queues to delete", "resources to delete")  # nodes let go of a resource before it can be deleted
        rollback = {title: lines for title, lines in back.items() if title not in last}
        if node_back:
            rollback["nodes"] = node_back
        rollback.update({title: back[title] for title in last if title in back})
        files["rollback.qmgr"] = _script(
            "Takes back what queues.qmgr and nodes.qmgr did: qmgr -a < rollback.qmgr", rollback
        )
    if goal.closed:
        files["cleanup.qmgr"] = _script(
            "Deletes the closed queues; when their last job has ended: qmgr -a < cleanup.qmgr",
            {"closed queues": [f"delete queue {name}" for name in goal.closed]},
        )
    for name, start in (("queues.qmgr", before), ("nodes.qmgr", goal.server), ("rollback.qmgr", goal.server)):
        _lint(name, files.get(name, ""), start, before)
    files["sched_config.changes"] = render("pbs/sched_config.changes", backfill=config.backfill, qlist=parted)
    if goal.pool_queues:
        files |= _promotion(config, goal)
    if config.reservation_delay:
        files |= _RESERVE.files("reserve.py", period=config.reservation_delay, queues=config.names)
    files["PLAN.md"] = _plan(config, goal, files, counts, before=before, known=current is not None)
    return Export(files, goal.notes)


def refusal(config: SiteConfig, *, current: Server | None = None, nodes: Sequence[Node] | None = None) -> str:
    """Say why PBS cannot be told a configuration, as `export_pbs` would; empty if it can."""
    try:
        prepare_pbs(config, current=current, nodes=nodes)
    except ExportError as error:
        return str(error)
    return ""


def comment_name(config: SiteConfig) -> str:
    """Write the machine's name as far as a comment may hold it."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in "-_." else "?" for c in config.machine.name)


def _script(title: str, sections: dict[str, list[str]]) -> str:
    lines = [f"# {title}"]
    for name, statements in sections.items():
        lines += ["#", f"# {name}", "#", *statements]
    if not sections:
        lines += ["# Nothing to do."]
    return "\n".join(lines) + "\n"


def _lint(name: str, text: str, start: Server, before: Server) -> None:
    findings = Linter(start, trusted=before).script(text)
    if findings:
        raise ExportError(f"{name} would be refused by PBS: " + "; ".join(str(finding) for finding in findings[:5]))


def _nodes(
    config: SiteConfig, nodes: Sequence[Node] | None, goal: Desired, known: Server
) -> tuple[list[str], list[str], dict[str, int]]:
    if nodes is None:
        goal.notes.insert(
            0,
            "**nodes.qmgr is empty: the export was not told the nodes.** Until every node has its Qlist no job "
            "starts in these queues. Export again with `--nodes` (a file of names, `pbsnodes -av` output, or a "
            "pattern like `nid[00001-01468]`), or with `--binding limits`.",
        )
        return [], [], {}
    if any(node.qlist is None for node in nodes) and "Qlist" in known.resources:
        goal.notes.append(
            "The nodes' present Qlist is not known, so rollback.qmgr takes it away instead of giving back what it was; "
            "export with `--nodes` naming a file of `pbsnodes -av` output."
        )
    wanted = node_lists.assign(config, nodes)
    counts: dict[str, int] = {}
    for qlist in wanted.values():
        counts[qlist] = counts.get(qlist, 0) + 1
    forward, back = node_lists.statements(wanted, nodes)
    return forward, back, counts


def _promotion(config: SiteConfig, goal: Desired) -> dict[str, str]:
    pool = config.pool
    assert pool is not None  # noqa: S101 - there are pool queues only where there is a pool
    rows = [
        {
            "name": queue.name,
            "pool": goal.pool_queues[queue.name],
            "priority": exact(queue.priority),
            "partition": queue.partition,
            "longest": queue.walltime[1] if queue.walltime[1] < MAX_DURATION else None,
        }
        for queue in config.queues
        if queue.name in goal.pool_queues
    ]
    return _PROMOTE.files(
        "promote.py",
        threshold=exact(config.threshold),
        pool=pool.cores,
        grid=config.grid,
        wider=pool.placement == "combined",
        queues=rows,
    )


def exact(value: float) -> str:
    """Write a number as the fraction that its decimal digits say."""
    return str(Fraction(repr(value)))


def _plan(
    config: SiteConfig,
    goal: Desired,
    files: dict[str, str],
    counts: dict[str, int],
    *,
    before: Server,
    known: bool,
) -> str:
    route = goal.route
    table = []
    for queue in config.queues:
        above, upto = queue.walltime
        most = "-" if queue.cores[1] == MAX_CORES else str(queue.cores[1])
        table.append(
            [
                queue.name,
                f"{queue.cores[0]} to {most}",
                f"above {format_duration(above)}"
                + ("" if upto == MAX_DURATION else f", up to {format_duration(upto)}"),
                str(goal.priorities.values[queue.name]),
                "reservation" if queue.reservation else (str(queue.partition) if config.mode != "shared" else "-"),
                _example(config, queue.name),
            ]
        )
    script = next((each for each in (_PROMOTE, _RESERVE) if each.name in files), None)
    steps = _steps(goal, files, counts, before, script)
    stop, start = _switches(route, before, undone=True)
    back_to = before.attributes.get("default_queue", "workq")
    moves = [f"qselect -q {name} -s QHW | xargs -r -n 1 qmove {back_to}" for name in goal.new]
    if script is not None:
        stop[:0] = script.undo
    return render(
        "pbs/plan.md",
        machine=comment_name(config),
        mode=config.mode,
        current=known,
        route=route,
        table=table,
        notes=goal.notes,
        steps=steps,
        script=script,
        undo_stop=stop,
        undo_moves=moves or ["# no queue was created"],
        undo_commands=["qmgr -a < rollback.qmgr", _SCHED_BACK],
        undo_start=start,
    )


def _switches(route: str, before: Server, *, undone: bool = False) -> tuple[list[str], list[str]]:
    """Return what stops the starting and routing of jobs, and what starts both again; `undone`, what went before."""
    stop = ["qmgr -a -c 'set server scheduling = False'"]
    start = ["qmgr -a -c 'set server scheduling = True'"]
    known = route in before.queues
    if known or undone:
        stop.append(f"qmgr -a -c 'set queue {route} started = False'")
    if known and not (undone and before.queues[route].get("started") != "True"):
        start.insert(0, f"qmgr -a -c 'set queue {route} started = True'")
    return stop, start


def _example(config: SiteConfig, name: str) -> str:
    """Find a job that routing sends to this queue: its narrowest or widest, its longest or shortest."""
    queue = config.queue(name)
    widest = min(queue.cores[1], config.machine.cores)
    longest = min(queue.walltime[1], 100 * 86400)
    for cores in (queue.cores[0], widest):
        for walltime in (longest, queue.walltime[0] + 1):
            first = next((other.name for other in config.queues if other.admits(cores, walltime)), None)
            if first == name:
                return f"`-l ncpus={cores} -l walltime={format_clock(walltime)}`"
    found = lost_job([queue], config.queues[: config.queues.index(queue)])
    if found is None:
        return "none: the queues before it take every job that it admits"
    return f"`-l ncpus={found[0]} -l walltime={format_clock(found[1])}`"


def _steps(
    goal: Desired, files: dict[str, str], counts: dict[str, int], before: Server, script: _Script | None
) -> list[dict[str, Any]]:
    route = goal.route
    stop, start = _switches(route, before)
    steps: list[dict[str, Any]] = [
        {
            "title": "Save what there is",
            "commands": [
                "qmgr -c 'print server' > print_server.before",
                "qmgr -c 'print node @default' > print_node.before",
                f". /etc/pbs.conf; cp -p {_SCHED_CONFIG} sched_config.before",
            ],
            "check": "the three files are not empty; `print_server.before` is what the export was given.",
            "undo": "nothing was changed.",
        },
        {
            "title": "Stop starting and routing jobs",
            "text": "Running jobs go on, users can submit.",
            "commands": stop,
            "check": "`qstat -Bf | grep scheduling` says False.",
            "undo": "; ".join(f"`{command}`" for command in start) + ".",
        },
        {
            "title": "Create and change queues",
            "commands": ["qmgr -a < queues.qmgr; echo exit $?"],
            "check": "it printed `exit 0`; `qstat -Qf` shows the queues of the table above.",
            "undo": '"Undo" below.',
        },
    ]
    if "nodes.qmgr" in files:
        told = "; ".join(f"{count} nodes with `{qlist}`" for qlist, count in counts.items())
        steps.append(
            {
                "title": "Give the nodes to their queues",
                "text": "Jobs that run stay where they are: a partition is whole when the last of them has ended.",
                "commands": ["qmgr -a < nodes.qmgr; echo exit $?"],
                "check": f"`pbsnodes -av | grep 'Qlist = ' | sort | uniq -c` shows {told or 'every node'}.",
                "undo": '"Undo" below.',
            }
        )
    steps.append(
        {
            "title": "Tell the scheduler",
            "text": "Change the lines that `sched_config.changes` names in sched_config, then:",
            "commands": ["kill -HUP $(pgrep -x pbs_sched)"],
            "check": f"`diff sched_config.before {_SCHED_CONFIG}` shows these lines and no other.",
            "undo": f"`{_SCHED_BACK}`.",
        }
    )
    if goal.closed:
        steps.append(
            {
                "title": "Empty the closed queues",
                "text": f"Closed, and no longer a destination of {route}: {', '.join(goal.closed)}.",
                "commands": [f"qselect -q {name} -s QHW | xargs -r -n 1 qmove {route}" for name in goal.closed],
                "check": "`qstat -q` shows running jobs only in these queues.",
                "undo": '`qmove` the jobs back after "Undo" has opened the queues again.',
            }
        )
    if script is not None:
        steps.append(script.step())
    steps.append(
        {
            "title": "Start again",
            "commands": start,
            "check": "jobs like those in the table's last column, submitted with `qsub -q "
            + route
            + "`, land in their queues.",
            "undo": '"Undo" below.',
        }
    )
    if goal.closed:
        steps.append(
            {
                "title": "Later: delete the closed queues",
                "text": "When `qstat -q` shows no job in them. After this, rollback.qmgr can no longer be "
                "run as it is.",
                "commands": ["qmgr -a < cleanup.qmgr; echo exit $?"],
                "check": "it printed `exit 0`.",
                "undo": "create them again from print_server.before.",
            }
        )
    return steps
