"""Exporter for PBS (OpenPBS, PBS Professional): qmgr scripts with a plan; reads ``print server`` back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from qconf.errors import InputError
from qconf.export.base import PARTS, Derived, Export, Exporter, Given, later, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qconf.config import ShareConfig, SiteConfig
    from qconf.export.pbs.server import Scheduler, Server

Binding = Literal["qlist", "limits"]


@dataclass(frozen=True)
class PbsExporter(Exporter):
    """Writes a configuration for PBS; with the server's state, `current`, only the difference and a rollback."""

    target = "pbs"
    name = "PBS"
    source, also = "output of qmgr -c 'print server'", ", or of qstat -Bf and qstat -Qf in one file"
    current_for_rollback = True

    current: Server | None = option(  # noqa: RUF009 - a field
        "qmgr -c 'print server', to write what differs.", read=later("pbs.server", "read_current"), metavar="FILE"
    )
    scheduler: Scheduler | None = option(  # noqa: RUF009 - a field
        "The scheduler's settings: its sched_config.", read=later("pbs.server", "Scheduler.read"), metavar="FILE"
    )
    binding: Binding = option(  # noqa: RUF009 - a field
        "Partitions by a resource of the nodes, or by limits of running cores, which reserve nothing.",
        "qlist",
        choices=("qlist", "limits"),
    )
    route: str | None = option(
        "The Route queue; default `routing` of the configuration, else the one that is there.", metavar="NAME"
    )
    remove: tuple[str, ...] = option("Close this queue too, which the configuration lacks.", (), metavar="NAME")
    only: tuple[str, ...] = option("Change this part alone.", (), choices=tuple(PARTS))
    shares: Sequence[ShareConfig] | None = option(
        "The scheduler's resource_group, to leave it where shares are the same.",
        read=later("pbs.fairshare", "read_shares"),
        metavar="FILE",
    )

    @property
    def missing(self) -> str:
        """A request for the scheduler's sched_config, if the server was given without it, else ""."""
        from qconf.export.pbs.init import ASK_FOR_SCHEDULER

        return ASK_FOR_SCHEDULER if self.current is not None and self.scheduler is None else ""

    def export(self, config: SiteConfig) -> Export:
        """Return the qmgr scripts, the lines of sched_config, the scripts that run beside PBS, and PLAN.md."""
        from qconf.export.pbs.scripts import export

        return export(config, self)

    def present(self, config: SiteConfig) -> SiteConfig | None:
        """Return the server's present configuration, None without `current`; unknown parts are taken from `config`."""
        from qconf.export.pbs.init import present

        return None if self.current is None else present(config, self.current, self)

    def _scripts(self, config: SiteConfig) -> tuple[str, ...]:
        from qconf.export.pbs.beside import needs

        return needs(config)

    def notes(self, config: SiteConfig) -> tuple[str, ...]:
        """Return the differences between PBS and the simulator."""
        from qconf.export.pbs.differences import notes, sorting
        from qconf.export.pbs.order import formula
        from qconf.export.pbs.preemption import preemption

        base = self.present(config)
        found = preemption(config, self.current, self.scheduler, base)
        ended: list[str] = []
        if self.scheduler is not None or self.current is not None:
            text, _ = formula(config, found.priorities)
            ended = sorting(text, self.current, self.scheduler, changed=base is None or base.order != config.order)
        others = notes(config, self.binding, found.priorities, self.current, self.scheduler)
        return (*found.notes, *ended, *others)

    def read(self, path: str | Path, **given: Unpack[Given]) -> Derived:
        """Derive a configuration from ``print server`` or qstat's listings; partitions from the nodes, if given."""
        from qconf.export.nodes import of_statements, read_text
        from qconf.export.pbs import qos
        from qconf.export.pbs.fairshare import read_shares
        from qconf.export.pbs.init import ASK_FOR_SERVER, derive
        from qconf.export.pbs.server import Server
        from qconf.snapshot.listing import printed

        if given.get("qos") is not None:
            raise InputError(
                "is of Slurm: PBS has qualities of service on its server", field="--qos", fix="leave it out"
            )
        text, shares = read_text(path), given.get("shares")
        shown = printed(text)
        server = Server.parse(shown or text, path)
        server.file = Path(path)
        nodes = of_statements(text, server.file) if self.nodes is None else self.nodes
        lost = () if not shown or server.attributes else (ASK_FOR_SERVER,)
        found = derive(
            server,
            nodes=nodes,
            scheduler=self.scheduler,
            cores=given.get("cores"),
            name=given.get("name") or "pbs",
            shares=() if shares is None else read_shares(shares),
            qos=qos.read(server.file.parent),
            records=given.get("records"),
        )
        return Derived(found.config, (*lost, *found.warnings))


exporter = PbsExporter
