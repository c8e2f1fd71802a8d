"""A small log of three periods of ten days, three queues on 48 cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from qconf.config import SiteConfig, parse
from qconf.history import History, clean, read

EPOCH = 1_451_606_400  # 2016-01-01
DAY = 86400
CONFIG = """
machine: {name: small, cores: 48}
mode: shared
queues:
  - {name: short, cores: [1, 8], walltime: [0, 2h], priority: 40}
  - {name: long, cores: [1, 8], walltime: [2h, 24h], priority: 60}
  - {name: wide, cores: [9, 16], walltime: [0, 24h], priority: 80}
"""


def site() -> SiteConfig:
    return parse(CONFIG, "small.yaml")


def table(periods: int = 3, jobs: int = 240, seed: int = 1, first: int = 0) -> pd.DataFrame:
    """Jobs of `periods` times ten days; those of a period do not depend on the number of periods."""
    parts = []
    for p in range(first, first + periods):
        rng = np.random.default_rng([seed, p])
        submit = np.sort(rng.integers(0, 10 * DAY, jobs))
        submit[0] = 0
        walltime = rng.choice([1800, 7200, 14400, 43200], jobs, p=[0.3, 0.3, 0.2, 0.2])
        parts.append(
            pd.DataFrame(
                {
                    "job_id": [f"{p}.{i}" for i in range(jobs)],
                    "submit": EPOCH + p * 10 * DAY + submit,
                    "runtime": (walltime * rng.uniform(0.2, 1.0, jobs)).astype(int) + 1,
                    "walltime": walltime,
                    "cores": rng.choice([1, 2, 4, 8, 12, 16], jobs),
                    "queue": "",
                    "user": rng.choice(["ann", "bob", "eve"], jobs),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def write(path: Path, jobs: pd.DataFrame) -> Path:
    jobs.to_csv(path, index=False)
    return path


def history(folder: Path, jobs: pd.DataFrame | None = None, config: SiteConfig | None = None) -> History:
    return clean(read([write(folder / "log.csv", table() if jobs is None else jobs)]), config or site())
