"""Configurations out to PBS and Slurm, and in from what those hold."""

from qconf.export.errors import ExportError
from qconf.export.pbs.scripts import export_pbs, prepare_pbs, refusal

__all__ = ["ExportError", "export_pbs", "prepare_pbs", "refusal"]
