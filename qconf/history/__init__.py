"""Histories: read logs of batch systems, clean them and cut them into periods."""

from qconf.history.cleaning import binding_limits, clean
from qconf.history.deriving import derive_config, remarks
from qconf.history.history import History
from qconf.history.readers import as_configured, read
from qconf.history.records import Records

__all__ = ["History", "Records", "as_configured", "binding_limits", "clean", "derive_config", "read", "remarks"]
