"""Export configurations to the files of a batch system, and read them back; one folder per batch system."""

from qconf.errors import ExportError
from qconf.export.base import DEFAULT_TARGET, Derived, Export, Exporter, exporter, targets

__all__ = ["DEFAULT_TARGET", "Derived", "Export", "ExportError", "Exporter", "exporter", "targets"]
