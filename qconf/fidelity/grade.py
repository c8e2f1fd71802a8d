"""The fidelity grade of a configuration, A to E, from the agreement of simulated and recorded waits."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from qconf.config import FidelityConfig, SiteConfig, dump
from qconf.fidelity.errors import Figures

GRADES = "ABCDE"
LEAST = (0.9, 0.7, 0.5, 0.3)  #: least agreement of the grades A to D
FEWEST = 20  #: least jobs that start inside windows, to conclude anything
DOUBT = "DE"  #: grades with which a recommendation becomes CHECK


@dataclass(frozen=True)
class Grade:
    """A grade, with the figures that it is based on."""

    letter: str
    agreement: float  #: `Figures.agreement` over all windows; NaN if no job waits
    median: float  #: median of recorded minus simulated starts, seconds
    jobs: int  #: number of jobs whose recorded or simulated start is in a window
    windows: int

    @property
    def doubtful(self) -> bool:
        """Whether gains simulated under the configuration are doubtful."""
        return self.letter in DOUBT


def grade(found: Figures, windows: int) -> Grade | None:
    """Grade figures by their agreement, A if no job waits; None if too few jobs start."""
    if found.inside < FEWEST:
        return None
    value = 1.0 if math.isnan(found.agreement) else found.agreement
    step = next((i for i, least in enumerate(LEAST) if value >= least), len(LEAST))
    return Grade(GRADES[step], found.agreement, found.counted.median, found.inside, windows)


def with_grade(config: SiteConfig, found: Grade | None) -> SiteConfig:
    """Return a configuration that carries this grade in `fidelity`, or none."""
    if found is None:
        return config.replace(fidelity=None)
    agreement = 1.0 if math.isnan(found.agreement) else round(found.agreement, 4)
    about = {"grade": found.letter, "agreement": agreement, "jobs": found.jobs, "windows": found.windows}
    return config.replace(fidelity=about | {"of": digest(config)})


def carried(config: SiteConfig) -> FidelityConfig | None:
    """Return the grade that a configuration carries; None if it has none or was changed since."""
    found = config.fidelity
    return found if found is not None and found.of == digest(config) else None


def digest(config: SiteConfig) -> str:
    """Return a hash of the parts of a configuration that the simulation reads."""
    nodes = tuple(each.model_copy(update={"hosts": None}) for each in config.nodes)
    simulated = config.replace(nodes=nodes, routing=None, fidelity=None, policy=(), fixed=(), targets=(), strategies={})
    return hashlib.sha256(dump(simulated).encode()).hexdigest()[:12]


def grade_warnings(config: SiteConfig) -> list[str]:
    """Warn if the configuration was changed since it got its grade."""
    if config.fidelity is None or carried(config) is not None:
        return []
    text = f"fidelity: grade {config.fidelity.grade} is of another configuration than this one and does not count"
    return [f"{text}: qconf fidelity gives a new one"]
