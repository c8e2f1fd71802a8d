"""A log from which run times are predicted, which the exports of orders that read `estimate` are tested with."""

import time
from pathlib import Path

import pandas as pd

#: User, cores, walltime and run time.
JOBS = [("ann", 4, 7200, 600), ("ann", 4, 7200, 900), ("ann", 1, 3600, 60), ("bob", 4, 7200, 7000), ("bob", 8, 90, 80)]


def write_log(path: Path) -> Path:
    """Write these jobs, which ran a day ago."""
    now = int(time.time()) - 86400
    rows = [(i, now + i, now + i, now + i + ran, ran, w, c, user) for i, (user, c, w, ran) in enumerate(JOBS)]
    columns = ["job_id", "submit", "start", "end", "runtime", "walltime", "cores", "user"]
    pd.DataFrame(rows, columns=columns).assign(queue="work").to_csv(path, index=False)
    return path
