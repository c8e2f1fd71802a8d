"""Exporter for Slurm: partitions, QOS, a routing plugin, and a plan; reads slurm.conf back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from qconf.errors import InputError
from qconf.export.base import PARTS, Derived, Export, Exporter, Given, later, option

if TYPE_CHECKING:
    from qconf.config import SiteConfig


_READABLE = later("nodes", "readable")


@dataclass(frozen=True)
class SlurmExporter(Exporter):
    """Writes a configuration for Slurm, or with `current` only the changes; a shared machine needs no `nodes`."""

    target = "slurm"
    name = "Slurm"
    orders = "multifactor"
    source = "slurm.conf, or what scontrol show config, node and partition print"

    current: Path | None = option(  # noqa: RUF009 - a field
        "What is there, to write what differs: output of qmgr -c 'print server', or slurm.conf.",
        read=_READABLE,
        metavar="FILE",
    )
    only: tuple[str, ...] = option("Change this part alone.", (), choices=tuple(PARTS))
    qos: Path | None = option(  # noqa: RUF009 - a field
        "With --current: the QOS that init was given.", read=_READABLE, metavar="FILE"
    )
    shares: Path | None = option(  # noqa: RUF009 - a field
        "The shares that init was given.", read=_READABLE, metavar="FILE"
    )

    def export(self, config: SiteConfig) -> Export:
        """Return partitions.conf, job_submit.lua, the QOS, the pool's script, and PLAN.md."""
        from qconf.export.slurm.scripts import export

        return export(config, self)

    def present(self, config: SiteConfig) -> SiteConfig:
        """Return the cluster's present configuration, from `current`; unknown parts are taken from `config`."""
        if self.current is None:
            raise InputError("is not given", field="--current")
        machine = config.machine
        found = self.read(self.current, cores=machine.cores, name=machine.name, shares=self.shares, qos=self.qos).config
        return found.replace(downtime=config.downtime, held_jobs=config.held_jobs)

    def _scripts(self, config: SiteConfig) -> tuple[str, ...]:
        from qconf.export.slurm.scripts import scripts_of

        return tuple(f"a cron job every minute, of user slurm: {name}" for name in scripts_of(config))

    def notes(self, config: SiteConfig) -> tuple[str, ...]:
        """Return the differences between Slurm and the simulator."""
        from qconf.export.slurm.desired import differences

        return tuple(differences(config))

    def read(self, path: str | Path, **given: Unpack[Given]) -> Derived:
        """Derive a configuration from the partitions and nodes of a slurm.conf."""
        from qconf.export.slurm.init import derive

        if self.nodes is not None and self.current is None:
            raise InputError("a slurm.conf names its nodes itself", field="--nodes", fix="leave it out")
        return derive(path, **given)


exporter = SlurmExporter
