"""Merge sacct rows into runs and jobs: duplicates, resized and requeued jobs, heterogeneous jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from qconf.config.routing import Mask, Texts
from qconf.history import times
from qconf.history.chunks import UNREADABLE
from qconf.history.needs import is_chunk
from qconf.history.records import EARLIER, LIMITS, UNKNOWN, kinds

PART = re.compile(r"[0-9]+\+[0-9]+(?:#[0-9]+)?")  #: JobID of a part of a heterogeneous job
ELIGIBLE = "submit: the time from which on the job was eligible to run"
SUSPENDED = "run time: the time in which the job was suspended left out"
RESIZED = "resized while running: of the cores it began with all the time"
RESERVED = "ran in a reservation: simulated as if there were none"
RETURNED = "moved into the pool: back in its queue"
DOUBLED = f"time {times.DOUBLED}"
DELETED = "deleted before start"
WAITING = {"pending", "requeued", "requeue_hold", "requeue_fed", "resv_del_hold", "special_exit"}
ALIVE = {"running", "suspended", "completing", "configuring", "resizing", "signaling", "stage_out", "stopped"}
#: Deviations from the log; `marks` of a run is a sum of powers of two in this order.
MARKS = (UNREADABLE, ELIGIBLE, SUSPENDED, RESERVED, RETURNED, RESIZED, EARLIER, DOUBLED)
BIT = {mark: 1 << place for place, mark in enumerate(MARKS)}


def single_runs(runs: pd.DataFrame, merged: Counter[str]) -> pd.DataFrame:
    """Return one row per run of each job; runs before the last get ids of their own.

    `merged` counts rows that repeat a run: one that was resized (its first cores count), or one in overlapping logs.
    """
    try:
        key = runs["key"].astype(np.int64).to_numpy()  # JobIDRaw: less memory
    except ValueError:
        key = runs["key"].to_numpy(dtype=object)
    if pd.Index(key).is_unique:
        return runs
    first, who = kinds(key, runs["user"].cat.codes, runs["cluster"].cat.codes)
    if first.size == who.size:
        return runs
    numbers = ("start", "queued", "end", "submit", "marks", "cores", "runtime")
    start, queued, end, submit, marks, cores, runtime = (runs[name].to_numpy().copy() for name in numbers)
    resizing, job_id = runs["resizing"].to_numpy(), runs["job_id"].to_numpy(dtype=object).copy()
    order = np.lexsort((end, queued, start, who))
    before, after = order[:-1], order[1:]
    for i in np.flatnonzero(resizing[before] & (who[before] == who[after])).tolist():
        if runtime[after[i]] != UNKNOWN:  # of older Slurm, which writes a start at each resize
            runtime[after[i]] += start[after[i]] - start[before[i]]
        start[after[i]] = start[before[i]]
    begins = np.flatnonzero(np.diff(who[order], prepend=-1) | np.diff(start[order], prepend=-2))
    last = order[np.append(begins[1:], order.size) - 1]  # of each run
    first = order[begins]
    eligible = marks[first] & BIT[ELIGIBLE]
    marks[last] = (np.bitwise_or.reduceat(marks[order], begins) & ~BIT[ELIGIBLE]) | eligible
    resized = resizing[first] & (first != last)
    cores[last[resized]] = cores[first[resized]]
    marks[last[resized]] |= BIT[RESIZED]
    submit[last], queued_first = submit[first], queued[first]
    later = np.lexsort((start[last], queued[last], who[last]))  # sort the runs by job
    last, queued_first = last[later], queued_first[later]
    before = np.append(who[last][1:] == who[last][:-1], False)
    kept = ~before | ((start[last] != UNKNOWN) & (end[last] > start[last]))
    last, queued_first, before = last[kept], queued_first[kept], before[kept]
    queued[last] = queued_first
    place = np.arange(last.size) - np.searchsorted(who[last], who[last])
    job_id[last[before]] = [f"{job_id[row]}#{at + 1}" for row, at in zip(last[before], place[before], strict=True)]
    marks[last[before]] |= BIT[EARLIER]
    merged["further rows of a run, or the same row again"] += who.size - last.size
    runs = runs.assign(
        start=start, runtime=runtime, submit=submit, queued=queued, marks=marks, cores=cores, job_id=job_id
    )
    return runs.iloc[np.sort(last)].reset_index(drop=True)


def problems(runs: pd.DataFrame) -> tuple[Texts, Texts]:
    """Return reason and detail why runs are no rows of a history, shape (n,) each; "" if they are."""
    reason, detail = np.full(len(runs), "", dtype=object), np.full(len(runs), "", dtype=object)

    def note(rows: Mask, why: str, what: Callable[[pd.Series], str]) -> None:
        rows = rows & (reason == "")
        reason[rows] = why
        detail[rows] = [what(row) for _, row in runs[rows].iterrows()] if rows.any() else []

    start, end, state = (runs[name].to_numpy() for name in ("start", "end", "state"))
    never = start == UNKNOWN
    waits = runs["state"].isin(WAITING).to_numpy() & (never | (end == UNKNOWN))  # else a requeued run
    waits |= never & runs["state"].isin(ALIVE).to_numpy()
    for rows, why in ((waits, "waiting at the end of the log"), (never & ~waits, DELETED)):
        reason[rows], detail[rows] = why, state[rows]
    before = (start > end) & (end != UNKNOWN)
    note(before, "ends before it starts", lambda row: f"start {row['start']}, end {row['end']}")
    for name, most in LIMITS.items():
        over = (runs[name] > most).to_numpy()
        note(over, "absurd value", lambda row, name=name, most=most: f"{name} {row[name]} above {most}")  # type: ignore[misc]
    return reason, detail


def whole_jobs(runs: pd.DataFrame, merged: Counter[str]) -> pd.DataFrame:
    """Merge the parts of each heterogeneous job: they start together and share one walltime. `merged` counts them."""
    parts = runs[runs["job_id"].str.contains("+", regex=False)] if len(runs) else runs
    parts = parts[parts["job_id"].str.fullmatch(PART)] if len(parts) else parts
    if parts.empty:
        return runs
    ids = parts["job_id"].str.replace(r"\+[0-9]+", "", regex=True)
    gone = []
    numbers = ("submit", "cores", "end", "runtime", "walltime")
    runs, needs = runs.astype(dict.fromkeys(numbers, np.int64)), runs["needs"].astype(object)
    for _, job in parts.groupby([ids, "user", "start"], sort=False, observed=True):
        first, *others = job.index
        gone += others
        runs.loc[first, "cores"] = job["cores"].sum() if (job["cores"] != UNKNOWN).all() else job["cores"].iloc[0]
        for name in ("end", "runtime", "walltime"):
            runs.loc[first, name] = UNKNOWN if (job[name] == UNKNOWN).any() else job[name].max()
        runs.loc[first, "submit"] = job["submit"].min()
        needs[first] = _together(job["needs"], job["cores"])
        runs.loc[first, "marks"] = np.bitwise_or.reduce(job["marks"].to_numpy())
    if gone:
        merged["further parts of a heterogeneous job"] += len(gone)
    return runs.assign(needs=needs.astype("category")).drop(index=gone)


def _together(needs: pd.Series[Any], cores: pd.Series[Any]) -> str:
    """Merge the `needs` of a job's parts; a part of cores alone becomes single-core chunks if others have chunks."""
    found = [text.split() for text in needs]
    if any(is_chunk(word) for part in found for word in part):
        anywhere = [[f"chunk:{count}:cores=1"] if count > 0 else [] for count in cores]
        found = [part if any(map(is_chunk, part)) else [*part, *of] for part, of in zip(found, anywhere, strict=True)]
    listed = [word for part in found for word in part]
    return " ".join([*dict.fromkeys(word for word in listed if not is_chunk(word)), *filter(is_chunk, listed)])
