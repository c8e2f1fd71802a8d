"""Slurm: partitions, QOS, a routing plugin and the plan to load and undo them; and back from slurm.conf."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qconf.errors import InputError
from qconf.export.base import Derived, Export, Exporter

if TYPE_CHECKING:
    from qconf.config import SiteConfig
    from qconf.history import Records


@dataclass(frozen=True)
class SlurmExporter(Exporter):
    """Writes a configuration for Slurm; a machine that is shared needs no nodes."""

    target = "slurm"
    name = "Slurm"
    orders = "multifactor"
    source = "slurm.conf, or what scontrol show config, node and partition print"

    def export(self, config: SiteConfig) -> Export:
        """Write partitions.conf, job_submit.lua, the QOS, the script of the pool, and PLAN.md."""
        from qconf.export.slurm.scripts import export

        return export(config, self.nodes)

    def _scripts(self, config: SiteConfig) -> tuple[str, ...]:
        from qconf.export.slurm.scripts import scripts_of

        return tuple(f"a cron job every minute, of user slurm: {name}" for name in scripts_of(config))

    def notes(self, config: SiteConfig) -> tuple[str, ...]:
        """Name what Slurm does otherwise than the simulator."""
        from qconf.export.slurm.differences import differences

        return tuple(differences(config))

    def read(
        self,
        path: str | Path,
        *,
        cores: int | None = None,
        name: str | None = None,
        shares: str | Path | None = None,
        qos: str | Path | None = None,
        records: Records | None = None,
    ) -> Derived:
        """Derive a configuration from the partitions and nodes of a slurm.conf."""
        from qconf.export.slurm.init import derive

        if self.nodes is not None:
            raise InputError("a slurm.conf names its nodes itself", field="--nodes", fix="leave it out")
        return derive(path, cores=cores, name=name, shares=shares, qos=qos, records=records)


exporter = SlurmExporter
