"""A configuration as files for Slurm: partitions, QOS, a routing plugin and the plan. No command is run from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qconf.config import SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.base import Export
from qconf.export.estimates import OF_TABLES, TABLE, table
from qconf.export.nodes import Node
from qconf.export.rendering import comment_name, plan, render
from qconf.export.slurm import kept, merging, preemption, qos, shortpools, throttles
from qconf.export.slurm.changes import Changes, Difference, everything
from qconf.export.slurm.conf import Conf
from qconf.export.slurm.desired import OF_QUEUES, SHARES, Desired, set_limits
from qconf.export.slurm.differences import differences
from qconf.export.slurm.order import weights_of_tres
from qconf.export.slurm.partitions import held, types_named
from qconf.export.slurm.queues import POOL, access, is_limited, qos_of, whole_minutes
from qconf.export.slurm.settings import most_points, places

if TYPE_CHECKING:
    from qconf.export.slurm import SlurmExporter

RENEWED = (
    f"Of predicted run times it has a new table, which counts once it is there: `install -m 644 {TABLE} /etc/slurm`."
)


def export(config: SiteConfig, exporter: SlurmExporter) -> Export:
    """Write a configuration for Slurm. Raises ExportError."""
    if exporter.current is None:
        wanted = Desired.of(config, exporter.nodes)
        if reasons := wanted.reasons():
            raise ExportError(reasons[0])
        return Files(config, exporter, wanted, everything(wanted)).export()
    conf, base = Conf(exporter.current), exporter.present(config)
    config = exporter.partly(config, base)
    if config == base:
        return _nothing(config, exporter)
    nodes = exporter.nodes or _nodes(conf, config)
    wanted = Desired.of(config, nodes)
    changes = Difference(conf, Desired.of(base, nodes), wanted).changes()
    exporter = replace(exporter, nodes=nodes)
    return Files(config, exporter, wanted, changes).export() if changes else _nothing(config, exporter)


def _nothing(config: SiteConfig, exporter: SlurmExporter) -> Export:
    """Return an export that loads nothing but a new table of predicted run times, where it is given their log."""
    same = f"Your cluster is this configuration already: {comment_name(config)} has nothing to load."
    files = {} if exporter.estimates is None else table(config, exporter.estimates)
    same += f" {RENEWED}" if files else ""
    return Export({**files, "PLAN.md": f"# Plan: {comment_name(config)}, Slurm\n\n{same}\n"}, (same,))


def _nodes(conf: Conf, config: SiteConfig) -> list[Node] | None:
    """Return the nodes of a slurm.conf where partitions are made of them."""
    if config.mode == "shared" or config.nodes or not conf.nodes:
        return None
    return [Node(name, cores) for name, cores in conf.nodes.items()]


def scripts_of(config: SiteConfig) -> tuple[str, ...]:
    """Name the scripts that cron runs every minute, without which Slurm does not do what was simulated."""
    return ("qconf-promote",) if config.pool_cores else ()


class Files:
    """The files that make changes, and the plan that loads and undoes them."""

    def __init__(self, given: SiteConfig, exporter: SlurmExporter, wanted: Desired, changes: Changes) -> None:
        self.given, self.nodes, self.wanted, self.changes = given, exporter.nodes, wanted, changes
        self.estimates = exporter.estimates
        config = self.config = wanted.config
        self.order = Multifactor.of(config.order)
        self.keeps = [each.name for each in shortpools.reservations(config, POOL)]
        self.shared: dict[str, Any] = {  # of several files
            "queues": [(queue, whole_minutes(queue)) for queue in config.queues],
            "pool": POOL if config.pool_cores else None,
            "rooms": kept.rooms(config),
        }

    def export(self) -> Export:
        """Return all of them, with the notes."""
        files = {**self._of_conf(), **self._of_accounting(), **self._beside()}
        notes = tuple(differences(self.config))
        files["PLAN.md"] = plan("slurm", **self._plan([*files]), lines=notes)
        return Export(files, notes, loaded=("partitions.conf",) if self.changes.lines else ())

    def _of_conf(self) -> dict[str, str]:
        """Write what makes slurm.conf, what stands beside it, and what moves jobs."""
        changes, config = self.changes, self.config
        if not changes.conf:
            return {}
        files = {}
        if changes.lines:
            types = types_named(config)
            files["partitions.conf"] = render(
                "slurm", "partitions.conf", machine=comment_name(config), lines=changes.lines, types=types
            )
        if changes.lua:
            files["job_submit.lua"] = self._routing()
            ours = [*self.wanted["partitions"]]
            files |= table(config, self.estimates)
            files["job_submit.back.lua"] = render("slurm", "job_submit.back.lua", partitions=ours)
        files["new-conf"] = render(
            "slurm", "new-conf", changes=changes, merging=_source(merging.__file__), lua=changes.lua
        )
        files["load-conf"] = render("slurm", "load-conf")
        if changes.moves:
            lists = {queue.name: dict(access(queue)) for queue in config.queues}
            files["move-jobs"] = render(
                "slurm",
                "move-jobs",
                config=config,
                lists=lists,
                held=held(config),
                moves=bool(changes.lines),
                **self.shared,
            )
        return files

    def _routing(self) -> str:
        config, node = self.config, self.config.machine.cores_per_node
        nice = (
            {} if self.order is None else {"order": self.order, "places": self.places, "most": self.most, **OF_TABLES}
        )
        return render(
            "slurm",
            "job_submit.lua",
            node=node if config.machine.whole_nodes else None,
            short=max((each.walltime for each in config.shortpools), default=0),
            kept=shortpools.kept(config, POOL) if self.keeps else {},
            routes=self.changes.routes,
            **self.shared,
            **nice,
        )

    @property
    def places(self) -> dict[str, int]:
        """The points that jobs of each queue have less than those of the first one."""
        return {} if self.order is None else places(self.config, self.order)

    @property
    def most(self) -> int:
        """The most points that a job has less than others."""
        return most_points(self.config, self.order)

    def _of_accounting(self) -> dict[str, str]:
        """Write the lines of sacctmgr, and what loads them and gives back what was there."""
        files = {name: "".join(f"{line}\n" for line in lines) for name, lines in self.changes.statements.items()}
        return {**files, "accounts": render("slurm", "accounts", shown=qos.SHOWN)} if files else {}

    def _beside(self) -> dict[str, str]:
        """Write what cron runs, and the reservations."""
        files = {name: self.wanted[name] for name in (hours.FILE, shortpools.FILE) if name in self.changes.parts}
        for name in scripts_of(self.config) if self.changes.lua or self.changes.lines else ():
            files[name] = render("slurm", "promote.py", config=self.config, pool_name=POOL, **self.shared)
        return {name: text for name, text in files.items() if text}

    def _plan(self, files: Sequence[str]) -> dict[str, Any]:
        """Return what the plan says."""
        config, order, queue = self.config, self.order, self.config.queues[0]
        limited = [throttles.tres(name) for name in throttles.limited(config)]
        weighed = [] if order is None else weights_of_tres(config, order).split(",")
        walltime = whole_minutes(queue)[0] + 60
        behind = 0 if order is None else self.places[queue.name] + order.behind(walltime, queue.cores[0])
        return {
            "machine": comment_name(config),
            "mode": config.mode,
            "changes": self.changes,
            "files": files,
            "limited": [qos_of(each.name) for each in config.queues if is_limited(config, each)],
            "keeps": self.keeps if shortpools.FILE in files else [],
            "hourly": hours.taken_back(config, set_limits) if hours.FILE in files else [],
            "pool": bool(scripts_of(config)),
            "shares": SHARES in files,
            "throttled": throttles.FILE in files,
            "accounting": "accounts" in files,
            "suspended": preemption.preempted(config, "suspend"),
            "counted_tres": sorted({*limited, *(each.partition("=")[0] for each in weighed if each)}),
            "classes": [each.name for each in config.qos] if qos.FILE in files else [],
            "of_queues": OF_QUEUES in files,
            "job": f"--ntasks={queue.cores[0]} --time={walltime // 60}",
            "estimates": self.changes.lua and config.reads_estimate,
            "ordered": "order" in self.changes.parts,
            "priority": None if order is None else self.most - behind,
            "parameters": self.changes.parameters,
        }


def _source(file: str | None) -> str:
    """Return the text of a module as a script has it: without what belongs to a module alone."""
    text = Path(str(file)).read_text(encoding="utf-8")
    return text.partition("from collections.abc import Iterable, Sequence\n")[2].strip()
