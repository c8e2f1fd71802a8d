"""Predicted run times for a batch system: a table that is read at submission, made of a log of its jobs."""

from __future__ import annotations

from pathlib import Path

from qconf.config import SiteConfig
from qconf.errors import ExportError
from qconf.history import History, clean, read
from qconf.prediction.runtimes import ALL, PRIOR, Means, predictions

VERSION = "qconf-estimates 1"
TABLE = "qconf_estimate.txt"
OLDEST = 62  #: days after its last job, from which on a table is stale

#: What the programs that read a table have of it.
OF_TABLES = {"version": VERSION, "oldest": 86400 * OLDEST, "prior": PRIOR, "all": ALL}

NO_LOG = "order reads estimate, predicted run times: give a log of jobs with --estimates, or write walltime instead"


class Estimates:
    """The table that a log of jobs makes, or one that is read already; it is made when it is first asked for."""

    def __init__(self, log: str | Path | History) -> None:
        self.log, self._text = log, ""

    def table(self, config: SiteConfig) -> str:
        """Write the table; its first line has the version and when the last job ended."""
        if not self._text:
            history = self.log if isinstance(self.log, History) else clean(read([Path(self.log)]), config)
            predictions(history, model := Means())
            last = history.epoch + int(history.jobs["end"].max())
            self._text = "\n".join([f"{VERSION} {last}", *model.lines(), ""])
        return self._text


def table(config: SiteConfig, estimates: Estimates | None) -> dict[str, str]:
    """Write the file that the order of a configuration needs. Raises ExportError where there is no log for it."""
    if config.reads_estimate and estimates is None:
        raise ExportError(NO_LOG)
    return {TABLE: estimates.table(config)} if config.reads_estimate and estimates is not None else {}
