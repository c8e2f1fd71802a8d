"""A prediction, the result of ``qconf predict``: start, intervals and reason of each waiting job; idle windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.evaluation.calendar import dedicated
from qconf.history import History
from qconf.prediction.present import Ahead, Gap, ahead, gaps
from qconf.prediction.reasons import reasons
from qconf.prediction.replays import INSTANTS, Log, replay
from qconf.prediction.starts import DAY, DAYS, interval, likely_starts, plan
from qconf.snapshot import Job, Snapshot

LEVELS = (0.8, 0.95)
OLD = 7 * DAY  #: age of a history's last job from which its users may have changed


@dataclass(frozen=True)
class Start:
    """The predicted start of a waiting job; times in Unix seconds."""

    job: Job
    planned: int | None  #: start if all jobs use their walltimes; None: waits for nodes of unknown return
    expected: int | None  #: median of the simulations with likely run times; `planned` without a history
    intervals: dict[float, tuple[int, int]]  #: by level; empty without a history
    why: str


@dataclass(frozen=True)
class Prediction:
    """Predicted starts, idle windows and warnings."""

    ahead: Ahead
    planned: NDArray[np.int64]  #: planned start of each job of `ahead`
    starts: tuple[Start, ...]  #: the waiting jobs, by planned start
    gaps: tuple[Gap, ...]
    runs: int
    checked: int = 0  #: number of past predictions behind the intervals; 0: not calibrated

    @property
    def running(self) -> int:
        """Number of running jobs."""
        return int((~self.ahead.present.waiting).sum())

    def document(self) -> dict[str, Any]:
        """Return the prediction as JSON values."""
        return {
            "now": self.ahead.now,
            "runs": self.runs,
            "checked": self.checked,
            "warnings": list(self.ahead.warnings),
            "jobs": [
                {
                    **{name: getattr(each.job, name) for name in ("job_id", "queue", "user", "cores", "walltime")},
                    "planned": each.planned,
                    "expected": each.expected,
                    "intervals": {f"{100 * level:g}": list(span) for level, span in each.intervals.items()},
                    "why": each.why,
                }
                for each in self.starts
            ],
            "running": [
                {"job_id": job.job_id, "cores": job.cores, "start": job.start, "latest_end": job.start + job.walltime}
                for job in self.ahead.jobs
                if job.start is not None
            ],
            "not_predicted": [{"job_id": job.job_id, "why": why} for job, why in self.ahead.left_out],
            "idle": [asdict(gap) for gap in self.gaps],
        }


def predict(
    snapshot: Snapshot,
    config: SiteConfig,
    *,
    history: History | None = None,
    extra: Sequence[Job] = (),
    runs: int = 300,
    instants: int = INSTANTS,
    seed: int = 0,
    workers: int = 1,
) -> Prediction:
    """Predict the starts of the waiting jobs, `extra` ones included; intervals need a history.

    The intervals are calibrated by predictions at as many earlier `instants` of the history.
    """
    found = ahead(snapshot, config, extra)
    planned = plan(found.present, found.system)
    expected, spans, checked = planned, {}, 0
    if history is not None:
        log = Log.of(history, config, found.now)
        since = (history.epoch, found.now)
        before = dedicated(config.system(), config.shortpools, since, 0, history.timezone)
        found = replace(found, warnings=(*found.warnings, *_age(log, found.now)))
        model, calibrations = replay(log, before, found.now, LEVELS, instants=instants, seed=seed, workers=workers)
        past = log.past(found.now, found.users)
        likely = likely_starts(found.present, found.system, model, past=past, runs=runs, seed=seed, workers=workers)
        middle = np.median(likely, axis=0)
        expected = middle.astype(np.int64)
        within = middle, middle
        for level in LEVELS:
            low, high = interval(likely, level)
            if level in calibrations:
                low, high = calibrations[level].widened(found.now, low, middle, high)
                checked = calibrations[level].count
            # Levels are widened separately: with few predictions the higher level may get the smaller factor.
            within = low, high = np.minimum(low, within[0]), np.maximum(high, within[1])
            spans[level] = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
    why = list(reasons(found, planned))
    waits = np.flatnonzero(found.present.waiting)
    starts = []
    for row in waits[np.argsort(planned[waits], kind="stable")].tolist():
        far = planned[row] >= found.unknown_from
        starts.append(
            Start(
                found.jobs[row],
                None if far else int(planned[row]),
                None if far else int(expected[row]),
                {} if far else {level: (int(low[row]), int(high[row])) for level, (low, high) in spans.items()},
                why[row],
            )
        )
    runs = runs if history is not None else 0
    return Prediction(found, planned, tuple(starts), tuple(gaps(found, planned)), runs, checked)


def _age(log: Log, now: int) -> Iterator[str]:
    """Warn if a history has no recent job before the snapshot."""
    if not log.end.size:
        yield "the history has no job from before the snapshot: run times are any, and no jobs come"
        return
    age = now - int(log.workload.submit.max())
    if age > OLD:
        come = ", and no jobs come" if age > DAYS * DAY else ""
        yield (
            f"the last job of the history was submitted {age // DAY} days before the snapshot: run times are of "
            f"older days{come}; add the logs since"
        )
