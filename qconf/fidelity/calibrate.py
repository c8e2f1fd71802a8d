"""What a site probably runs: the configuration of a small family whose simulated starts are nearest to the log.

It is searched on every other window and evaluated on those between, which no choice was made on.
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

TRIALS = 400  #: configurations that are simulated, unless told
LEAST = 0.005  #: by which the agreement has to rise for a change
FEWEST = 8  #: windows, two of each quarter


@dataclass(frozen=True)
class Step:
    """A change that was kept, with the agreement on the windows that are trained on."""

    part: str
    text: str
    agreement: float


@dataclass(frozen=True)
class Calibration:
    """What was found, and what it is worth on windows that it was not chosen on."""

    given: Verification  #: on the windows that are evaluated
    found: Verification  #: the same of what is proposed: of `given` where nothing better was found
    steps: tuple[Step, ...]  #: that lead to it; empty if nothing was
    trained: tuple[Figures, Figures]  #: before and after, on the windows that were trained on
    tried: int  #: configurations
    rejected: str = ""  #: why what was found on the training windows is not proposed; empty if it is

    @property
    def config(self) -> SiteConfig:
        """The configuration that is proposed."""
        return self.found.config

    @property
    def verification(self) -> Verification:
        """That of the configuration that is proposed."""
        return self.found

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "tried": self.tried,
            "steps": [asdict(step) for step in self.steps],
            "rejected": self.rejected,
            "training": {"given": asdict(self.trained[0]), "found": asdict(self.trained[1])},
            "given": self.given.document(),
            "found": self.found.document(),
        }

    def comment(self) -> str:
        """Say what a configuration file holds, for its header."""
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
    """Search on every other window `within` these seconds, by the change that raises the agreement most.

    It goes on until none does by `LEAST`, and in both halves of these windows. Raises `InputError` where the log tells
    no starts or is too short.
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
        """Whether it is better beyond chance."""
        gains = [_number(mine) - _number(its) for mine, its in zip(self.halves, other.halves, strict=True)]
        return min(gains) > 0 and _number(self.figures.agreement) >= _number(other.figures.agreement) + LEAST


def _number(agreement: float) -> float:
    """Where no job waits, in the log or the simulation, all agrees."""
    return 1.0 if np.isnan(agreement) else agreement


def _score(windows: Shared[Sequence[LogWindow]], config: SiteConfig) -> _Score:
    """Simulate windows; one worker's call."""
    found = windows.value
    starts = Starts.of(found, config)
    first = starts.window % 2 == 0
    return _Score(
        Figures.of(starts), (Figures.of(starts.take(first)).agreement, Figures.of(starts.take(~first)).agreement)
    )


class _Search:
    """Steepest ascent within the family, on the windows that are trained on."""

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
        """Return the best configuration, and the steps to it."""
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
        """Score what is not scored yet, up to the number of trials."""
        new = [each for each in dict.fromkeys(configs) if each not in self.scores]
        new = new[: max(0, self.trials - len(self.scores))]
        done = iter(range(1, len(new) + 1))

        def step(*_: object) -> None:
            tried = len(self.scores) + next(done)
            self.progress(f"{tried} configurations", min(0.95, tried / self.trials))

        found = parallel_map(self.workers, _score, [(self.windows, each) for each in new], processes=True, done=step)
        self.scores |= dict(zip(new, found, strict=True))
