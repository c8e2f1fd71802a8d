"""A prediction: for each waiting job its start, intervals, and why it waits; and the cores that are idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qconf.config import SiteConfig
from qconf.history import History
from qconf.prediction.present import Ahead, Gap, ahead, gaps
from qconf.prediction.runtimes import Ended, RunTimes
from qconf.prediction.starts import Arrivals, interval, likely_starts, plan
from qconf.snapshot import Job, Snapshot

LEVELS = (0.8, 0.95)


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

    def document(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "now": self.ahead.now,
            "runs": self.runs,
            "warnings": list(self.ahead.warnings),
            "jobs": [
                {
                    "job_id": each.job.job_id,
                    "queue": each.job.queue,
                    "user": each.job.user,
                    "cores": each.job.cores,
                    "walltime": each.job.walltime,
                    "planned": each.planned,
                    "expected": each.expected,
                    "intervals": {f"{100 * level:g}": list(span) for level, span in each.intervals.items()},
                    "why": each.why,
                }
                for each in self.starts
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
    seed: int = 0,
    workers: int = 1,
) -> Prediction:
    """Predict the starts of the jobs that wait, `extra` ones among them; intervals need a history."""
    found = ahead(snapshot, config, extra)
    planned = plan(found.present, found.system)
    expected, spans = planned, {}
    if history is not None:
        model, arrivals = trained(history, config, found.now)
        likely = likely_starts(
            found.present, found.system, model, runs=runs, seed=seed, arrivals=arrivals, workers=workers
        )
        expected = np.median(likely, axis=0).astype(np.int64)
        spans = {level: interval(likely, level) for level in LEVELS}
    why = list(reasons(found, planned))
    starts = []
    for row in np.flatnonzero(found.present.waiting)[
        np.argsort(planned[found.present.waiting], kind="stable")
    ].tolist():
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
    return Prediction(found, planned, tuple(starts), tuple(gaps(found, planned)), runs if history is not None else 0)


def trained(history: History, config: SiteConfig, now: int) -> tuple[RunTimes, Arrivals]:
    """Train on run times, and on which jobs come, by what a log tells that was over by `now`."""
    jobs = history.jobs
    end = jobs["end"].to_numpy() + history.epoch
    known = (jobs["end"].to_numpy() < 0) | (end <= now)
    names = jobs["name"].to_numpy(dtype=str) if "name" in jobs else np.full(len(jobs), "")
    order = np.flatnonzero(known)[np.argsort(end[known], kind="stable")]
    workload = history.workload(config)
    of = workload.take(order)
    user = jobs["user"].to_numpy(dtype=str)
    model = RunTimes.of(Ended(user[order], names[order], of.cores, of.walltime, of.effective_runtime))
    before = np.flatnonzero(known & (jobs["submit"].to_numpy() + history.epoch < now))
    moved = workload.take(before)
    moved = type(moved)(
        moved.submit + history.epoch, moved.cores, moved.runtime, moved.walltime, moved.queue, np.full(before.size, -1)
    )
    return model, Arrivals(moved, moved.effective_runtime)


def reasons(found: Ahead, planned: NDArray[np.int64]) -> Iterator[str]:
    """Say for each job why it waits now, in a few words."""
    w, state, system = found.present.workload, found.present.state, found.system
    running = state.start < found.now
    idle = system.cores - int(w.cores[running].sum())
    lost = sum(
        system.cores if each.cores is None else each.cores
        for each in state.windows
        if each.begin <= found.now and each.queue is None
    )
    begins = ~running & (planned <= found.now)
    idle = max(0, idle - lost - int(w.cores[begins].sum()))
    in_queue = np.bincount(w.queue[running], minlength=len(system.queues))
    cores_in_queue = np.bincount(w.queue[running], w.cores[running], minlength=len(system.queues))
    ends = np.sort(w.walltime[running] + state.start[running])
    for row in range(len(w)):
        queue, cores = system.queues[w.queue[row]], int(w.cores[row])
        if running[row]:
            yield ""
        elif planned[row] <= found.now:
            yield "starts now"
        elif w.submit[row] > found.now:
            yield "asked to start later"
        elif planned[row] >= found.unknown_from:
            yield "needs nodes that are down, their return is unknown"
        elif queue.max_run is not None and in_queue[w.queue[row]] >= queue.max_run:
            yield f"limit: {queue.max_run} running jobs of {queue.name}"
        elif queue.max_run_cores is not None and cores_in_queue[w.queue[row]] + cores > queue.max_run_cores:
            yield f"limit: {queue.max_run_cores} running cores of {queue.name}"
        elif cores > idle:
            yield f"needs {cores} core{'s' * (cores > 1)}, {idle} idle"
        elif any(found.now < each.begin < found.now + w.walltime[row] for each in state.windows):
            yield "would run into a downtime or a reservation"
        elif ends.size:
            yield "would delay a job before it"
        else:
            yield "jobs before it"
