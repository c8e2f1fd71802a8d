"""Write a configuration as files for Slurm: partitions, QOS, a routing plugin and the plan; runs no command."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qconf.config import SiteConfig
from qconf.config.multifactor import Multifactor
from qconf.errors import ExportError
from qconf.export import hours
from qconf.export.base import Export, only
from qconf.export.estimates import OF_TABLES, TABLE, table
from qconf.export.nodes import Node
from qconf.export.rendering import comment_name, plan, render
from qconf.export.slurm import merging, qos, queues, shortpools, throttles
from qconf.export.slurm.changes import Changes, Difference, everything
from qconf.export.slurm.conf import Conf
from qconf.export.slurm.desired import Desired, differences, set_limits
from qconf.export.slurm.settings import most_points, places, weights_of_tres

if TYPE_CHECKING:
    from qconf.export.slurm import SlurmExporter

RENEWED = (
    f"Of predicted run times it has a new table, which counts once it is there: `install -m 644 {TABLE} /etc/slurm`."
)


def export(config: SiteConfig, exporter: SlurmExporter) -> Export:
    """Return a configuration as files for Slurm, only the changes with ``exporter.current``. Raises ExportError."""
    if exporter.current is None:
        wanted = Desired.of(config, exporter.nodes)
        if reasons := wanted.reasons():
            raise ExportError(reasons[0])
        return Files(exporter, wanted, everything(wanted)).export()
    conf, base = Conf(exporter.current), exporter.present(config)
    config = only(config, base, exporter.only)
    if config == base:
        return _nothing(config, exporter)
    nodes = exporter.nodes or _nodes(conf, config)
    wanted = Desired.of(config, nodes)
    changes = Difference(conf, Desired.of(base, nodes), wanted).changes()
    return Files(exporter, wanted, changes).export() if changes else _nothing(config, exporter)


def _nothing(config: SiteConfig, exporter: SlurmExporter) -> Export:
    """Return an export without changes, except a new table of predicted run times if a log is given."""
    same = f"Your cluster is this configuration already: {comment_name(config)} has nothing to load."
    files = {} if exporter.estimates is None else table(config, exporter.estimates)
    same += f" {RENEWED}" if files else ""
    return Export({**files, "PLAN.md": f"# Plan: {comment_name(config)}, Slurm\n\n{same}\n"}, (same,))


def _nodes(conf: Conf, config: SiteConfig) -> list[Node] | None:
    """Return the nodes of a slurm.conf for a divided machine without types, else None."""
    if config.mode == "shared" or config.nodes or not conf.nodes:
        return None
    return [Node(name, cores) for name, cores in conf.nodes.items()]


def scripts_of(config: SiteConfig) -> tuple[str, ...]:
    """Return the scripts that cron must run every minute for Slurm to do what was simulated."""
    return ("qconf-promote",) if config.pool_cores else ()


class Files:
    """The files for some changes, and the plan to load and undo them."""

    def __init__(self, exporter: SlurmExporter, wanted: Desired, changes: Changes) -> None:
        self.estimates, self.wanted, self.changes = exporter.estimates, wanted, changes
        config = self.config = wanted.config
        order = Multifactor.of(config.order)
        self.values: dict[str, Any] = {  # for all templates
            "config": config,
            "machine": comment_name(config),
            "changes": changes,
            "queues": [(queue, queues.whole_minutes(queue)) for queue in config.queues],
            "pool": queues.POOL if config.pool_cores else None,
            "rooms": queues.rooms(config),
            "order": order,
            "places": {} if order is None else places(config, order),
            "most": most_points(config, order),
        }

    def export(self) -> Export:
        """Return all files, with the notes."""
        files = {**self._of_conf(), **self._beside()}
        notes = tuple(differences(self.config))
        files["PLAN.md"] = plan("slurm", **self.values, **self._plan(files), files=files, lines=notes)
        return Export(files, notes, loaded=("partitions.conf",) if self.changes.lines else ())

    def _render(self, name: str, **own: object) -> str:
        return render("slurm", name, **self.values, **own)

    def _of_conf(self) -> dict[str, str]:
        """Return the script for slurm.conf, the files next to it, and the script that moves jobs."""
        changes, config, files = self.changes, self.config, {}
        if changes.lines:
            files["partitions.conf"] = self._render("partitions.conf", types=queues.types_named(config))
        if changes.lua:
            short = shortpools.kept(config, queues.POOL)
            files["job_submit.lua"] = self._render("job_submit.lua", kept=short, **OF_TABLES)
            files |= table(config, self.estimates)
            files["job_submit.back.lua"] = self._render("job_submit.back.lua", partitions=[*self.wanted["partitions"]])
        if changes.conf:
            files["new-conf"] = self._render("new-conf", neutral=queues.NEUTRAL, merging=_source(merging.__file__))
            files["load-conf"] = self._render("load-conf")
        if changes.conf and changes.moves:
            lists = {queue.name: dict(queues.access(queue)) for queue in config.queues}
            files["move-jobs"] = self._render("move-jobs", lists=lists, held=queues.held(config))
        return files

    def _beside(self) -> dict[str, str]:
        """Return the files of sacctmgr lines, the script that loads and undoes them, and the files for cron."""
        changes = self.changes
        files = {name: "".join(f"{line}\n" for line in lines) for name, lines in changes.statements.items()}
        if files:
            files["accounts"] = self._render("accounts", shown=qos.SHOWN)
        files |= {name: self.wanted[name] for name in (hours.FILE, shortpools.FILE) if name in changes.parts}
        for name in scripts_of(self.config) if changes.lua or changes.lines else ():
            files[name] = self._render("promote.py")
        return {name: text for name, text in files.items() if text}

    def _plan(self, files: Collection[str]) -> dict[str, Any]:
        """Return the template values that only the plan uses."""
        config, order, queue = self.config, self.values["order"], self.config.queues[0]
        limited = [throttles.tres(name) for name in throttles.limited(config)]
        weighed = [] if order is None else weights_of_tres(config, order).split(",")
        walltime = queues.whole_minutes(queue)[0] + 60
        behind = 0 if order is None else self.values["places"][queue.name] + order.nice(walltime, queue.cores[0])
        reservations = shortpools.reservations(config, queues.POOL) if shortpools.FILE in files else []
        of_qos = [line.split()[2] for line in self.changes.statements.get(qos.FILE, ()) if line.split()[1] == "qos"]
        return {
            "classes": [*dict.fromkeys([*(each.name for each in config.qos), *of_qos])],
            "limited": [queues.qos_of(each.name) for each in config.queues if queues.is_limited(config, each)],
            "keeps": [each.name for each in reservations],
            "hourly": hours.taken_back(config, set_limits) if hours.FILE in files else [],
            "suspended": queues.preempted(config, "suspend"),
            "counted_tres": sorted({*limited, *(each.partition("=")[0] for each in weighed if each)}),
            "job": f"--ntasks={queue.cores[0]} --time={walltime // 60}",
            "priority": None if order is None else self.values["most"] - behind,
        }


def _source(file: str | None) -> str:
    """Return the source of a module after its imports, for use in a script."""
    text = Path(str(file)).read_text(encoding="utf-8")
    return text.partition("import NEUTRAL\n")[2].strip()
