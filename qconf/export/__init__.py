"""Configurations as files for a batch system, and back; `Exporter` is the contract, one folder each implements it."""

from qconf.errors import ExportError
from qconf.export.base import DEFAULT_TARGET, Derived, Export, Exporter, exporter, targets

__all__ = ["DEFAULT_TARGET", "Derived", "Export", "ExportError", "Exporter", "exporter", "targets"]
