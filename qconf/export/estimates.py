"""Predicted run times for a batch system: a table made from a log, which the batch system reads at submission."""

from __future__ import annotations

from pathlib import Path

from qconf.config import SiteConfig
from qconf.errors import ExportError
from qconf.history import History, as_configured, clean, read
from qconf.prediction.runtimes import ALL, PRIOR, Means, predictions

VERSION = "qconf-estimates 1"
TABLE = "qconf_estimate.txt"
OLDEST = 62  #: days after its last job when a table becomes stale

#: Constants for the programs that read a table.
OF_TABLES = {"version": VERSION, "oldest": 86400 * OLDEST, "prior": PRIOR, "all": ALL}

NO_LOG = "order reads estimate, predicted run times: give a log of jobs with --estimates, or write walltime instead"


class Estimates:
    """The table of a log (a path, or a history that is already read); it is computed at the first use."""

    def __init__(self, log: str | Path | History) -> None:
        self.log, self._text = log, ""

    def table(self, config: SiteConfig) -> str:
        """Return the table as text; its first line has the version and the last job's end, Unix seconds."""
        if not self._text:
            log = self.log
            history = log if isinstance(log, History) else clean(read([Path(log)], **as_configured(config)), config)
            predictions(history, model := Means())
            jobs = history.jobs
            last = history.epoch + int(jobs["end"].where(jobs["end"] >= 0, jobs["submit"] + jobs["runtime"]).max())
            self._text = "\n".join([f"{VERSION} {last}", *model.lines(), ""])
        return self._text


def table(config: SiteConfig, estimates: Estimates | None) -> dict[str, str]:
    """Return the file (text by name) if the order reads `estimate`, else {}; ExportError if no log was given for it."""
    if config.reads_estimate and estimates is None:
        raise ExportError(NO_LOG)
    return {TABLE: estimates.table(config)} if config.reads_estimate and estimates is not None else {}
