"""Histories: logs of batch systems read, cleaned and cut into periods."""

from qconf.history.cleaning import barriers, clean, keep_barriers, release
from qconf.history.deriving import derive_config, remarks
from qconf.history.history import History
from qconf.history.reading import read
from qconf.history.records import Records

__all__ = ["History", "Records", "barriers", "clean", "derive_config", "keep_barriers", "read", "release", "remarks"]
