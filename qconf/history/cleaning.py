"""From records to jobs that a configuration can run; nothing is dropped or changed without being counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from parsim.workload import MAX_DURATION, MAX_SPAN
from qconf.config import SiteConfig, route, too_wide
from qconf.errors import InputError
from qconf.history.history import COLUMNS, History
from qconf.history.names import hashed, legal_names, renamed
from qconf.history.records import Drop, Records, drop_table

#: Limits of a queue that a job can be too wide for, and why it is left out then.
TOO_WIDE = {
    "max_run_cores": "above the running-cores limit of queue",
    "max_user_cores": "above the running-cores limit per user of queue",
}

#: What is counted for jobs that name a queue which the configuration does not have.
UNKNOWN_QUEUE = "routed: named a queue that the configuration lacks"

Column = NDArray[np.int64]
Mask = NDArray[np.bool_]


def clean(records: Records, config: SiteConfig) -> History:
    """Drop what cannot run, route jobs to the queues of `config`, fill in walltimes, round to whole nodes.

    Parameters
    ----------
    records : Records
    config : SiteConfig

    Returns
    -------
    History
        ``read == len(jobs) + len(dropped)``.

    Raises
    ------
    InputError
        No job is left.
    """
    work = _Cleaning(records, config)
    work.drop_unusable()
    work.route()
    work.fill_walltimes()
    work.kill_at_the_limit()
    work.round_to_nodes()
    work.drop_what_never_starts()
    return work.result()


def binding_limits(history: History) -> list[str]:
    """List the limits of the configuration that keep jobs out of this period of a history, by their paths."""
    return [path for path, submits in history.kept_out.items() if submits]


class _Cleaning:
    """The columns on their way; a row leaves by being marked in `reason`."""

    def __init__(self, records: Records, config: SiteConfig) -> None:
        table = records.table
        self.records, self.config = records, config
        self.submit = table["submit"].to_numpy()
        self.runtime = table["runtime"].to_numpy().copy()
        self.walltime = table["walltime"].to_numpy().copy()
        self.cores = table["cores"].to_numpy().copy()
        self.queue: Column = np.full(len(table), -1, dtype=np.int64)
        self.reason = np.zeros(len(table), dtype=np.int8)
        self.reasons = [""]
        self.detail = np.full(len(table), "", dtype=object)
        self.changed: Counter[str] = Counter(records.changed)
        self.kept_out: dict[str, tuple[int, ...]] = {}

    @property
    def alive(self) -> Mask:
        """Rows that are not dropped."""
        return np.asarray(self.reason == 0, dtype=np.bool_)

    def drop(self, rows: Mask, reason: str, field: str, values: Column) -> None:
        rows = rows & self.alive
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.reason[rows] = self.reasons.index(reason)
        self.detail[rows] = [f"{field} {value}" for value in values[rows].tolist()]

    def count(self, rows: Mask, what: str) -> None:
        if rows.any():
            self.changed[what] += int(rows.sum())

    def drop_unusable(self) -> None:
        self.drop(self.submit < 0, "no submit time", "submit", self.submit)
        self.drop(self.cores <= 0, "no cores", "cores", self.cores)
        running = (self.records.table["state"] == "running").to_numpy() & (self.runtime < 0)
        self.drop(running, "still running at the end", "runtime", self.runtime)
        self.drop(self.runtime <= 0, "no run time", "runtime", self.runtime)
        self.drop(self.cores > self.config.machine.cores, "wider than the machine", "cores", self.cores)

    def route(self) -> None:
        """Keep a job in the queue that it names if that takes it, else give it the first that does."""
        queues = self.config.queues
        names = self.records.table["queue"]
        legal = legal_names(self.records.queue_names)
        codes, distinct = pd.factorize(names)
        position = {queue.name: i for i, queue in enumerate(queues)}
        # Another month may have had a name that this one had to be told from.
        forms = {name: [name, *([legal[name], hashed(name)] if name else [])] for name in distinct.tolist()}
        called = {name: next((form for form in of if form in position), "") for name, of in forms.items()}
        known = [position.get(form, -1) for form in called.values()]
        named = np.array(known, dtype=np.int64)[codes] if len(distinct) else self.queue.copy()
        alive = self.alive
        for code, name in enumerate(distinct.tolist()):
            if known[code] >= 0 and name not in position:
                self.count(alive & (codes == code), renamed(name, called[name]))
        self.queue = route(named, [queue.admits(self.cores, self.walltime) for queue in queues])
        moved = alive & (self.queue >= 0) & (self.queue != named)
        silent = (names == "").to_numpy()
        self.count(moved & silent, "routed: named no queue")
        self.count(moved & ~silent & (named < 0), UNKNOWN_QUEUE)
        self.count(moved & (named >= 0), "routed: outside the limits of the queue it named")
        nowhere = alive & (self.queue < 0)
        self.drop(nowhere, "fits no queue", "cores", self.cores)
        self.detail[nowhere] += [f", walltime {seconds}" for seconds in self.walltime[nowhere].tolist()]

    def fill_walltimes(self) -> None:
        missing = self.alive & (self.walltime <= 0)
        most = np.array([queue.walltime[1] for queue in self.config.queues], dtype=np.int64)
        limit = most[self.queue]
        known = missing & (limit < MAX_DURATION)
        self.walltime[known] = limit[known]
        self.walltime[missing & ~known] = self.runtime[missing & ~known]
        self.count(known, "walltime missing: the queue's maximum")
        self.count(missing & ~known, "walltime missing: the run time")

    def kill_at_the_limit(self) -> None:
        over = self.alive & (self.runtime > self.walltime)
        self.runtime[over] = self.walltime[over]
        self.count(over, "run time above the walltime: killed at the limit")

    def round_to_nodes(self) -> None:
        machine = self.config.machine
        if not machine.whole_nodes:
            return
        node = machine.cores_per_node or 1
        whole = -(-self.cores // node) * node
        up = self.alive & (whole != self.cores)
        self.cores[up] = whole[up]
        self.count(up, "cores rounded up to whole nodes")
        self.drop(self.cores > machine.cores, "wider than the machine", "cores in whole nodes", self.cores)

    def drop_what_never_starts(self) -> None:
        has_user = (self.records.table["user"] != "").to_numpy()
        for i, queue in enumerate(self.config.queues):
            mine = self.queue == i
            for name, reason in TOO_WIDE.items():
                over = mine & self.alive & too_wide(queue, name, self.cores, has_user)
                self.drop(over, f"{reason} {queue.name}", "cores", self.cores)
                if over.any():
                    self.kept_out[f"queues.{queue.name}.{name}"] = tuple(self.submit[over].tolist())

    def _check_span(self, order: Column) -> None:
        """Refuse submits too far apart for one machine; the farthest from the middle is the culprit."""
        if not order.size or self.submit[order[-1]] - self.submit[order[0]] <= MAX_SPAN:
            return
        middle = self.submit[order[order.size // 2]]
        row = int(max(order[0], order[-1], key=lambda i: abs(self.submit[i] - middle)))
        job = self.records.table.iloc[row]
        raise InputError(
            f"more than {MAX_SPAN} seconds away from other submits",
            file=self.records.sources[job["file"]].path if self.records.sources else None,
            line=int(job["line"]),
            field="submit",
            value=int(job["submit"]),
            fix="correct or remove the line",
        )

    def result(self) -> History:
        records, alive = self.records, self.alive
        names = np.array([queue.name for queue in self.config.queues], dtype=object)
        rows = np.flatnonzero(alive)
        order = rows[np.argsort(self.submit[rows], kind="stable")]
        self._check_span(order)
        moved = int((order != rows).sum())
        if moved:
            self.changed["put in the order of submission"] += moved
        table = records.table.iloc[order]
        jobs = pd.DataFrame(
            {
                "job_id": table["job_id"].array,
                "submit": self.submit[order],
                "runtime": self.runtime[order],
                "walltime": self.walltime[order],
                "cores": self.cores[order],
                "queue": pd.Series(names[self.queue[order]], dtype="str"),
                "user": table["user"].array,
                "start": table["start"].to_numpy(),
                "end": table["end"].to_numpy(),
                "state": table["state"].array,
                "row": order,
            },
            columns=list(COLUMNS),
        )
        gone = records.table[~alive]
        paths = [source.path for source in records.sources]
        drops = [
            Drop(job, paths[file] if paths else "", line, self.reasons[reason], detail)
            for job, file, line, reason, detail in zip(
                gone["job_id"],
                gone["file"],
                gone["line"],
                self.reason[~alive],
                self.detail[~alive],
                strict=True,
            )
        ]
        dropped = pd.concat([records.dropped, drop_table(drops)], ignore_index=True)
        if not len(jobs):
            why = ", ".join(f"{count} {reason}" for reason, count in dropped["reason"].value_counts().items())
            raise InputError(
                f"no usable job among {records.read} records: {why or 'there is none'}",
                file=paths[0] if paths else None,
                fix="a job needs a submit time, a core, a second of run time and a queue that takes it",
            )
        return History(
            jobs,
            dropped,
            dict(self.changed),
            records.read,
            records.epoch,
            records.timezone,
            tuple(records.sources),
            kept_out=self.kept_out,
        )
