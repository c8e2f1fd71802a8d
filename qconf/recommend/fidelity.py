"""How near the simulated present is to what really happened, where a log says when its jobs started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from parsim import simulate
from qconf.config import SiteConfig
from qconf.history import History

FEWEST = 20  # jobs whose start is known, below which nothing can be said
FAR = 2.0  # mean waits that differ by more than this factor are told as a warning


@dataclass(frozen=True)
class Fidelity:
    """MeanWaits as they were and as they are simulated, of the jobs whose start is known.

    Attributes
    ----------
    jobs : int
    real_mean, real_median, mean, median : float
        Seconds; the first two really, the others simulated.
    correlation : float
        Spearman's, of both waits over the jobs; NaN where either is the same for all.
    """

    jobs: int
    real_mean: float
    real_median: float
    mean: float
    median: float
    correlation: float

    @property
    def far(self) -> bool:
        """Whether the means differ by more than `FAR`, a minute aside."""
        low, high = sorted((self.real_mean, self.mean))
        return high + 60 > FAR * (low + 60)


def fidelity(history: History, config: SiteConfig, span: tuple[int, int]) -> Fidelity | None:
    """Simulate jobs under the configuration they ran under; None where too few starts are known.

    Counted are those submitted from the first to the last of `span`; the others fill the machine.
    """
    submit, start = (history.jobs[name].to_numpy() for name in ("submit", "start"))
    known = (start >= 0) & (start >= submit) & (submit >= span[0]) & (submit <= span[1])
    if known.sum() < FEWEST:
        return None
    real, simulated = (start - submit)[known], simulate(history.workload(config), config.system()).wait[known]
    alike = np.ptp(real) == 0 or np.ptp(simulated) == 0
    return Fidelity(
        jobs=int(known.sum()),
        real_mean=float(real.mean()),
        real_median=float(np.median(real)),
        mean=float(simulated.mean()),
        median=float(np.median(simulated)),
        correlation=float("nan") if alike else float(spearmanr(real, simulated).statistic),
    )
