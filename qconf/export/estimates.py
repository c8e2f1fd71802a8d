"""Predicted run times for a batch system: a table that is read at submission, made of a log of its jobs."""

from __future__ import annotations

from pathlib import Path

from qconf.config import SiteConfig
from qconf.history import clean, read
from qconf.prediction.runtimes import PRIOR, Means, predictions

VERSION = "qconf-estimates 1"
OLDEST = 62  #: days after its last job, from which on a table is stale

#: What the programs that read a table have of it.
OF_TABLES = {"version": VERSION, "oldest": 86400 * OLDEST, "prior": PRIOR}


NO_LOG = "order reads estimate, predicted run times: give a log of jobs with --estimates, or write walltime instead"


def table(config: SiteConfig, log: Path) -> str:
    """Write the table; its first line has the version and when the last job ended."""
    history, model = clean(read([log]), config), Means()
    predictions(history, model)
    last = history.epoch + int(history.jobs["end"].max())
    return "\n".join([f"{VERSION} {last}", *model.lines(), ""])
