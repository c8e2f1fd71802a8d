"""Write a configuration as scripts for PBS, to be reviewed, loaded and undone; runs no command."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from qconf.config import KEPT, SiteConfig, format_clock, lost_job
from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.base import Export, only
from qconf.export.estimates import NO_LOG
from qconf.export.pbs import beside, fairshare, throttles, types
from qconf.export.pbs.beside import NOTHING, changes, ended
from qconf.export.pbs.desired import Desired, of_nodes
from qconf.export.pbs.merging import transition
from qconf.export.pbs.server import Server, admission, is_true
from qconf.export.rendering import comment_name, notes, render
from qconf.export.rendering import plan as filled
from qconf.export.types import with_own_types

if TYPE_CHECKING:
    from qconf.export.pbs import PbsExporter


JOBS = "qconf-pbs"  #: the script that loads statements and moves jobs


def export(config: SiteConfig, options: PbsExporter) -> Export:
    """Return a configuration as PBS scripts, only the changes if the server's state is known. Raises ExportError."""
    before = options.current or Server()
    base = options.present(config)
    config, kept_limits = _completed(only(config, base, options.only), base)
    config = with_own_types(config, options.nodes)
    if config.reads_estimate and options.estimates is None:
        raise ExportError(NO_LOG)
    goal = Desired(config, before, options, base)
    if kept_limits:
        goal.notes.append(
            f"Limits that the configuration lacks stay, and were not simulated: {', '.join(kept_limits)}."
        )
    if base is not None and not options.nodes and (config.nodes or config.mode != "shared"):
        goal.note("nodes_not_given")
    files, counts, scheduled = _files(goal)
    there = {} if base is None else files if config == base else _present(base, goal)
    left_over = KEPT in before.resources and not config.keeps_cores
    gone = left_over and bool(config.nodes) and (not options.nodes or base is None or base.keeps_cores)
    if config.is_fair and files["resource_group"] == there.get("resource_group"):
        del files["resource_group"]
    added = {name: text for name, text in files.items() if there.get(name) != text}
    table = changes(goal, added, counts, [types.KEPT_HOOK] if gone else [])
    if left_over and table and not gone:  # every plan removes the hook
        gone, table = True, changes(goal, added, counts, [types.KEPT_HOOK])
    if base is not None and not (goal.settings or scheduled or "resource_group" in files or gone):
        del files["sched_config.changes"]
    if base is not None and not table:
        plan = render("pbs", "nothing.md", machine=comment_name(config), said=NOTHING, lines=goal.notes)
        return Export({"queues.qmgr": files["queues.qmgr"], "PLAN.md": plan}, (NOTHING, *goal.notes))
    goal.notes[:0] = ended(table, goal)
    files["PLAN.md"] = filled(
        "pbs",
        machine=comment_name(config),
        config=config,
        goal=goal,
        examples={name: _example(goal, name) for name in config.names},
        sched=before.scheduler != goal.server.scheduler,
        **_switches(before),
        table=table,
        files=files,
        scheduled=scheduled,
        rebound=_rebound(goal),
        created=[name for name in goal.server.resources if name not in before.resources],
        counts=counts,
        keeps=beside.reservations(config),
        kept_gone=gone,
        hourly=hours.taken_back(config, partial(throttles.commands, goal.server)),
    )
    loaded = tuple(name for name in ("queues.qmgr", "nodes.qmgr", "sched_config.changes") if name in files)
    return Export(files, tuple(goal.notes), loaded, "rollback.qmgr" if "rollback.qmgr" in files else "")


def _files(goal: Desired) -> tuple[dict[str, str], Counter[str], list[str]]:
    """Return all files except the plan, the number of nodes by what they get, and new names for ``resources:``."""
    config, before, options = goal.config, goal.before, goal.options
    given = _given(goal)
    rows = [*chain(*given)]
    counts = Counter(value if name == "Qlist" else f"{name} = {value}" for _, name, value in rows if value)
    node_lines, node_back = types.statements(rows, options.nodes or ())
    if node_lines and (parts := [name for node in options.nodes or () for name in node.vnodes]):
        raise ExportError(
            f"--nodes has hosts of several vnodes ({parts[0]}), to which an export binds no queue: choose what "
            "leaves the nodes of queues as they are, or --binding limits"
        )
    forward, back = transition(before, goal.server), transition(goal.server, before)
    files = {"queues.qmgr": _script(f"Queues of {comment_name(config)}. Load with: qmgr -a < queues.qmgr", forward)}
    if given:
        title = "Which nodes belong to which queue. Load with: qmgr -a < nodes.qmgr"
        files["nodes.qmgr"] = _script(title, {"nodes": node_lines} if node_lines else {})
    if options.current is not None:  # else it could delete objects that existed before
        last = ("queues to delete", "resources to delete")  # a resource can be deleted only if no node has it
        first = {title: lines for title, lines in back.items() if title not in last}
        rollback = first | ({"nodes": node_back} if node_back else {}) | {t: back[t] for t in last if t in back}
        title = "Takes back what queues.qmgr and nodes.qmgr did: qmgr -a < rollback.qmgr"
        files["rollback.qmgr"] = _script(title, rollback)
    if goal.closed:
        title = "Deletes the closed queues; when their last job has ended: qmgr -a < cleanup.qmgr"
        files["cleanup.qmgr"] = _script(title, {"closed queues": [f"delete queue {name}" for name in goal.closed]})
    scheduled = types.scheduled(config, goal.bound, options)
    if goal.base is not None and {*scheduled} <= {*types.scheduled(goal.base, (), options)}:
        scheduled = []
    files["sched_config.changes"] = render(
        "pbs",
        "sched_config.changes",
        settings=goal.settings,
        scheduled=scheduled,
        use=list(fairshare.settings(config)),
        starving=options.scheduler.on("help_starving_jobs") if options.scheduler else None,
    )
    files |= beside.files(goal)
    files["step"] = render("", "step")
    files[JOBS] = render(
        "pbs",
        "jobs.py",
        route=goal.route or before.default or "workq",
        default=before.default or "workq",
        closed=goal.closed,
        pools={pool: name for name, pool in goal.pool_queues.items()},
        scripts=beside.SCRIPTS,
        hooks=beside.HOOKS,
        old=admission(before),
        new=admission(goal.server),
    )
    return files, counts, scheduled


def _present(base: SiteConfig, goal: Desired) -> dict[str, str]:
    """Return the files of the present configuration, {} if it cannot be exported."""
    try:
        return _files(Desired(base, goal.before, goal.options, base))[0]
    except ExportError:
        return {}


def _script(title: str, sections: dict[str, list[str]]) -> str:
    lines = [f"# {title}"]
    for name, section in sections.items():
        lines += ["#", f"# {name}", "#", *section]
    if not sections:
        lines += ["# Nothing to do."]
    return "\n".join(lines) + "\n"


Rows = list[tuple[str, str, str]]  #: resources to set on nodes: node, resource, value


def _given(goal: Desired) -> list[Rows]:
    """Return the changed resources of nodes: bindings of queues, and cores kept for jobs with GPUs."""
    config, options, base = goal.config, goal.options, goal.base
    same = base is not None and _nodes_of(base) == _nodes_of(config)
    found = []
    if goal.bound:
        found.append(_bound(goal))
    elif types.by_qlist(config, options.binding) and not same:
        found.append(_with_qlists(goal))
    left = types.kept(config, options.nodes)
    if left and not same:
        found.append([(name, KEPT, str(amount)) for name, amount in left.items()])
    return found


def _with_qlists(goal: Desired) -> Rows:
    nodes, current = goal.options.nodes, goal.options.current
    if nodes is None:
        goal.notes[:0] = notes("pbs", "no_nodes")
        return []
    if any(node.qlist is None for node in nodes) and current and "Qlist" in current.resources:
        goal.note("before_unknown", what="The nodes' present Qlist")
    wanted = types.qlists(goal.config, nodes)
    return [(node.name, "Qlist", wanted[node.name]) for node in nodes]


def _bound(goal: Desired) -> Rows:
    """Return the resources of nodes that bind queues."""
    nodes, current = goal.options.nodes or (), goal.options.current
    resources = types.own_resources(goal.config, goal.bound)
    every = {types.resource_of(name): names for name, names in goal.bound.items()}
    wanted = {resource: every[resource] for resource in resources}
    names = [node.name for node in nodes] or dict.fromkeys(chain(*wanted.values()))
    named = ", ".join(resources)
    unknown = not any(node.resources for node in nodes)
    if unknown and current and {*resources} & {*current.resources}:
        goal.note("before_unknown", what=f"What the nodes have of {named} now")
    if resources:
        goal.note("bound", named=named)
    return [(name, resource, "True" if name in of else "") for resource, of in wanted.items() for name in names]


def _nodes_of(config: SiteConfig) -> tuple[object, ...]:
    """Return the fields that decide the nodes of each partition."""
    return of_nodes(config), config.machine.cores, config.machine.cores_per_node


def _rebound(goal: Desired) -> list[str]:
    """Return the existing queues whose default_chunk changes."""
    chunks = [
        {name: {key: of[key] for key in of if key.startswith("default_chunk.")} for name, of in server.queues.items()}
        for server in (goal.before, goal.server)
    ]
    return [name for name in goal.names if name in goal.before.queues and chunks[0][name] != chunks[1][name]]


def _switches(before: Server) -> dict[str, list[str]]:
    """Return the commands that stop starting and routing of jobs, and those that resume what was on before."""
    routes = [name for name in before.of_type("route") if is_true(before.queues[name].get("started"))]
    starts = before.attributes.get("scheduling") != "False"

    def started(state: bool) -> list[str]:
        return [f"qmgr -a -c 'set queue {name} started = {state}'" for name in routes]

    return {
        "stop": ["qmgr -a -c 'set server scheduling = False'", *started(False)],
        "start": [*started(True), f"qmgr -a -c 'set server scheduling = {starts}'"],
    }


def _example(goal: Desired, name: str) -> str:
    """Return qsub options of an example job that routing sends to this queue, or a text if there is none."""
    config, queue = goal.config, goal.config.queue(name)
    longest = min(queue.walltime[1], 100 * 86400)
    if name not in goal.server.reached(goal.route):
        there = f"-q {name} " if goal.route else ""
        return f"`{there}-l ncpus={queue.cores[0]} -l walltime={format_clock(longest)}`"
    for cores in (queue.cores[0], config.widest(queue)):
        for walltime in (longest, queue.walltime[0] + 1):
            if next((other.name for other in config.queues if other.admits(cores, walltime)), None) == name:
                return f"`-l ncpus={cores} -l walltime={format_clock(walltime)}`"
    found = lost_job([queue], config.queues[: config.queues.index(queue)])
    if found is None:
        return "none: the queues before it take every job that it admits"
    return f"`-l ncpus={found[0]} -l walltime={format_clock(found[1])}`"


def _completed(config: SiteConfig, base: SiteConfig | None) -> tuple[SiteConfig, tuple[str, ...]]:
    """Return `config` completed with throttles and access lists of `base`, and the scopes of the added throttles.

    Throttles are added if `config` has none (of QOS, or at all), access lists to each queue without `access`.
    """
    if base is None:
        return config, ()
    without, of_qos = not config.throttles, config.qos or any(each.is_of_qos for each in config.throttles)
    kept = [
        each
        for each in base.throttles
        if (without or (each.is_of_qos and not of_qos)) and each.queue in (None, *config.names)
    ]
    lists = {queue.name: queue.access for queue in base.queues}
    changes: dict[str, object] = {"throttles": (*config.throttles, *kept)}
    if not config.qos and any(each.is_of_qos for each in kept):
        changes["qos"] = base.qos
    found = config.with_each(lambda queue: {"access": queue.access or lists.get(queue.name)}, **changes)
    return found, tuple(each.what for each in kept)
