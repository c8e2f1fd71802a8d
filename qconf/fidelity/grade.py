"""The grade of a configuration, A to E: how much of the waiting that it simulates is what a log recorded."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from qconf.config import FidelityConfig, SiteConfig, dump
from qconf.fidelity.errors import Figures

GRADES = "ABCDE"
LEAST = (0.9, 0.7, 0.5, 0.3)  #: agreement, from which on a grade is given; the last is given below
FEWEST = 20  #: jobs that start inside windows; with fewer nothing can be concluded
DOUBT = "DE"  #: grades with which a recommendation is in doubt


@dataclass(frozen=True)
class Grade:
    """A grade, and what it goes by."""

    letter: str
    agreement: float  #: share of the waiting in windows, recorded or simulated, that is both; NaN where no job waits
    median: float  #: of recorded minus simulated starts, seconds
    jobs: int  #: that start inside windows, by the log or the simulation
    windows: int

    @property
    def doubtful(self) -> bool:
        """Whether gains under the configuration are to be doubted."""
        return self.letter in DOUBT


def grade(found: Figures, windows: int) -> Grade | None:
    """Grade figures by the agreement, best where no job waits; None where too few jobs start."""
    if found.inside < FEWEST:
        return None
    value = 1.0 if math.isnan(found.agreement) else found.agreement
    step = next((i for i, least in enumerate(LEAST) if value >= least), len(LEAST))
    return Grade(GRADES[step], found.agreement, found.counted.median, found.inside, windows)


def with_grade(config: SiteConfig, found: Grade | None) -> SiteConfig:
    """Return a configuration that carries a grade."""
    if found is None:
        return config.replace(fidelity=None)
    agreement = 1.0 if math.isnan(found.agreement) else round(found.agreement, 4)
    about = {"grade": found.letter, "agreement": agreement, "jobs": found.jobs, "windows": found.windows}
    return config.replace(fidelity=about | {"of": digest(config)})


def carried(config: SiteConfig) -> FidelityConfig | None:
    """Return the grade that a configuration carries; None where it has none, or was changed since."""
    found = config.fidelity
    return found if found is not None and found.of == digest(config) else None


def digest(config: SiteConfig) -> str:
    """Name what is simulated of a configuration."""
    nodes = tuple(each.model_copy(update={"hosts": None}) for each in config.nodes)
    simulated = config.replace(nodes=nodes, routing=None, fidelity=None, policy=(), fixed=(), targets=(), strategies={})
    return hashlib.sha256(dump(simulated).encode()).hexdigest()[:12]


def grade_warnings(config: SiteConfig) -> list[str]:
    """Say that a grade is of what the configuration no longer is."""
    if config.fidelity is None or carried(config) is not None:
        return []
    text = f"fidelity: grade {config.fidelity.grade} is of another configuration than this one and does not count"
    return [f"{text}: qconf fidelity gives a new one"]
