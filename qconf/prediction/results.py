"""A prediction: for each waiting job its start, intervals, and why it waits; and the cores that are idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.evaluation.shortpools import dedicated
from qconf.history import History
from qconf.prediction.present import Ahead, Gap, ahead, gaps
from qconf.prediction.reasons import reasons
from qconf.prediction.replays import INSTANTS, Log, replay
from qconf.prediction.starts import DAY, DAYS, interval, likely_starts, plan
from qconf.snapshot import Job, Snapshot

LEVELS = (0.8, 0.95)
OLD = 7 * DAY  #: after the last job of a history its users may do something else


@dataclass(frozen=True)
class Start:
    """When a waiting job will start; Unix seconds."""

    job: Job
    planned: int | None  #: by the walltimes; None: not before nodes are back whose return is unknown
    expected: int | None  #: median of the simulations with likely run times; as planned without a history
    intervals: dict[float, tuple[int, int]]  #: by level; empty without a history
    why: str


@dataclass(frozen=True)
class Prediction:
    """All that is known of the time ahead."""

    ahead: Ahead
    planned: NDArray[np.int64]  #: start of each job of `ahead`
    starts: tuple[Start, ...]  #: of the waiting jobs, by their planned starts
    gaps: tuple[Gap, ...]
    runs: int
    checked: int = 0  #: earlier predictions that the intervals rest on; 0: they are as simulated

    @property
    def running(self) -> int:
        """How many jobs run."""
        return int((~self.ahead.present.waiting).sum())

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
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
    """Predict the starts of the jobs that wait, `extra` ones among them; intervals need a history.

    They are widened by how far off predictions of so many earlier `instants` of the history were.
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
            # Each level is widened by itself: of few predictions the larger share may need less.
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
    """Say that a history has no job of the days before a snapshot."""
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
