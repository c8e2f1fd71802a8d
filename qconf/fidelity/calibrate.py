"""Calibration, for ``qconf fidelity --calibrate``: the configuration whose simulated starts are nearest to the log.

The search trains on every other window of the log; the windows between evaluate the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qconf.config import SiteConfig
from qconf.errors import InputError
from qconf.fidelity.errors import Figures, Starts
from qconf.fidelity.family import PARTS, Change, Family
from qconf.fidelity.verify import SHOWN, Verification, verification
from qconf.fidelity.windows import LENGTHS, MOST, LogWindow, Recorded, cut, spans
from qconf.history import History
from qconf.parallel import Shared, parallel_map

TRIALS = 400  #: most simulated configurations, by default
LEAST = 0.005  #: least rise of the agreement that justifies a change
FEWEST = 8  #: windows, two of each quarter


@dataclass(frozen=True)
class Step:
    """A change that the search kept, with the agreement on the training windows."""

    part: str
    text: str
    agreement: float


@dataclass(frozen=True)
class Calibration:
    """The result of a calibration, evaluated on windows that the search did not use."""

    given: Verification  #: of the given configuration, on the test windows
    found: Verification  #: of the proposed configuration, on the test windows; `given` if none is better
    steps: tuple[Step, ...]  #: the changes that lead to the best configuration of the training windows
    trained: tuple[Figures, Figures]  #: of the given and the best configuration, on the training windows
    tried: int  #: number of simulated configurations
    rejected: str = ""  #: why the best configuration of the training windows is not proposed; empty if it is

    @property
    def verification(self) -> Verification:
        """The verification of the proposed configuration."""
        return self.found

    def document(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        return {
            "tried": self.tried,
            "steps": [asdict(step) for step in self.steps],
            "rejected": self.rejected,
            "training": {"given": asdict(self.trained[0]), "found": asdict(self.trained[1])},
            "given": self.given.document(),
            "found": self.found.document(),
        }

    def comment(self) -> str:
        """Return the header comment of the configuration file."""
        if self.found is self.given:
            return "As given: qconf fidelity --calibrate found nothing that is nearer to the log."
        lines = [f"  {step.part}: {step.text}" for step in self.steps]
        return "\n".join(("What the site probably runs, by qconf fidelity --calibrate. Changed:", *lines))


def calibrate(
    history: History,
    config: SiteConfig,
    *,
    lengths: tuple[int, int] = LENGTHS,
    count: int = MOST,
    seed: int = 0,
    trials: int = TRIALS,
    parts: Sequence[str] = PARTS,
    workers: int = 1,
    shown: int = SHOWN,
    within: tuple[int, int] | None = None,
    progress: Callable[[str, float], None] = lambda *_: None,
) -> Calibration:
    """Search on every other window `within` these seconds, each time by the change that raises the agreement most.

    The search ends when no change raises it by `LEAST` and in both halves of these windows. Raises `InputError` if the
    log has no starts or is too short.
    """
    recorded = Recorded.of(history, config)
    windows = cut(recorded, spans(recorded, lengths, count, seed, within))
    if len(windows) < FEWEST:
        raise InputError(
            f"{len(windows)} windows with jobs that wait are too few to train on half of them",
            field="--window",
            fix=f"take shorter windows or a longer log, for {FEWEST} at least",
        )
    training, evaluated = windows[::2], windows[1::2]
    search = _Search(Family.of(config, recorded, training, history), training, trials, workers, progress)
    best, steps = search.run(config, parts)
    before = verification(history, config, recorded, evaluated, shown=shown)
    after = before if best == config else verification(history, best, recorded, evaluated, shown=shown)
    trained = search.scores[config].figures, search.scores[best].figures
    rejected = ""
    if best != config and not after.total.agreement > before.total.agreement:
        rejected = (
            f"on the other windows it has an agreement of {after.total.agreement:.3f}, and what is given "
            f"{before.total.agreement:.3f}"
        )
        after = before
    progress("evaluated", 1.0)
    return Calibration(before, after, steps, trained, len(search.scores), rejected)


@dataclass(frozen=True)
class _Score:
    figures: Figures
    halves: tuple[float, float]  #: agreement in the first half of the windows, and in the second

    def betters(self, other: _Score) -> bool:
        """Whether the agreement is higher by `LEAST`, and higher in both halves."""
        gains = [_number(mine) - _number(its) for mine, its in zip(self.halves, other.halves, strict=True)]
        return min(gains) > 0 and _number(self.figures.agreement) >= _number(other.figures.agreement) + LEAST


def _number(agreement: float) -> float:
    """Return 1 for NaN: if no job waits, in the log or the simulation, everything agrees."""
    return 1.0 if np.isnan(agreement) else agreement


def _score(windows: Shared[Sequence[LogWindow]], config: SiteConfig) -> _Score:
    """Simulate the windows under a configuration; one worker's task."""
    found = windows.value
    starts = Starts.of(found, config)
    first = starts.window % 2 == 0
    return _Score(
        Figures.of(starts), (Figures.of(starts.take(first)).agreement, Figures.of(starts.take(~first)).agreement)
    )


class _Search:
    """Steepest ascent within the family, on the training windows."""

    def __init__(
        self,
        family: Family,
        windows: Sequence[LogWindow],
        trials: int,
        workers: int,
        progress: Callable[[str, float], None],
    ) -> None:
        self.family, self.windows, self.trials = family, Shared(windows), trials
        self.workers, self.progress = workers, progress
        self.scores: dict[SiteConfig, _Score] = {}

    def run(self, config: SiteConfig, parts: Sequence[str]) -> tuple[SiteConfig, tuple[Step, ...]]:
        """Return the best configuration, and the steps that lead to it."""
        self._simulate([config])
        steps: list[Step] = []
        while True:
            changes = list(self.family.changes(config, parts))
            self._simulate([change.config for change in changes])
            known = [change for change in changes if change.config in self.scores]
            better = [change for change in known if self.scores[change.config].betters(self.scores[config])]
            if not better:
                return config, tuple(steps)
            best = max(better, key=self._agreement)
            steps.append(Step(best.part, best.text, self._agreement(best)))
            config = best.config

    def _agreement(self, change: Change) -> float:
        return _number(self.scores[change.config].figures.agreement)

    def _simulate(self, configs: Sequence[SiteConfig]) -> None:
        """Score the configurations without a score, up to the number of trials."""
        new = [each for each in dict.fromkeys(configs) if each not in self.scores]
        new = new[: max(0, self.trials - len(self.scores))]
        done = iter(range(1, len(new) + 1))

        def step(*_: object) -> None:
            tried = len(self.scores) + next(done)
            self.progress(f"{tried} configurations", min(0.95, tried / self.trials))

        found = parallel_map(self.workers, _score, [(self.windows, each) for each in new], processes=True, done=step)
        self.scores |= dict(zip(new, found, strict=True))
