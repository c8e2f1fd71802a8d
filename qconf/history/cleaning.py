"""Turn records into jobs that a configuration can run; every drop and every change is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from parsim.model.node_types import Request
from parsim.model.workload import MAX_DURATION, MAX_SPAN
from qconf.config import SiteConfig, kept_off, over_limit, qos_of, route, throttled
from qconf.config.routing import Column, Mask, Texts
from qconf.errors import InputError
from qconf.history import chunks
from qconf.history.history import COLUMNS, History
from qconf.history.names import alike, hashed, legal_names, renamed
from qconf.history.needs import wanted
from qconf.history.records import UNKNOWN, Records, drop_table

#: Limits of a queue that a wide job can exceed, each with the reason for leaving the job out.
TOO_WIDE = {
    "max_run_cores": "above the running-cores limit of queue",
    "max_user_cores": "above the running-cores limit per user of queue",
}

#: Beginnings of the reasons for leaving out jobs that the configuration cannot run.
TOO_LARGE = ("wider than", "fits no", "above ", "finds no time", "asks for more licences")

#: Change that is counted for jobs that name a queue unknown to the configuration.
UNKNOWN_QUEUE = "routed: named a queue that the configuration lacks"


def clean(records: Records, config: SiteConfig) -> History:
    """Drop jobs that cannot run, route the others to the queues of `config`, fill in walltimes, round to whole nodes.

    Raises `InputError` if no job is left.
    """
    waited = records.deleted.reset_index(drop=True)
    waited["runtime"] = MAX_DURATION  # cut to the walltime later
    return _Cleaning(records, config).result(_Cleaning(replace(records, table=waited), config))


def binding_limits(history: History) -> list[str]:
    """List the paths of the limits in the configuration that exclude jobs of this history's period."""
    return [path for path, submits in history.excluded.items() if submits]


class _Cleaning:
    """The columns of the records during cleaning; a dropped row gets a reason."""

    def __init__(self, records: Records, config: SiteConfig) -> None:
        self.records, self.config, self.table = records, config, records.table
        self.submit = self.table["submit"].to_numpy()
        self.runtime, self.walltime, self.cores = (
            self.table[name].to_numpy(copy=True) for name in ("runtime", "walltime", "cores")
        )
        size = len(self.table)
        self.queue: Column = np.full(size, -1, dtype=np.int64)
        self.alive: Mask = np.ones(size, dtype=np.bool_)
        self.reason, self.detail = np.full(size, "", dtype=object), np.full(size, "", dtype=object)
        self.changed: Counter[str] = Counter(records.changed)
        self.excluded: dict[str, tuple[int, ...]] = {}
        self.drop_unusable()
        self.route()
        self.fill_walltimes()
        self.kill_at_the_limit()
        self.round_to_nodes()
        self.drop_excluded()

    def drop(self, rows: Mask, reason: str, field: str, values: Column) -> None:
        rows = rows & self.alive
        self.alive &= ~rows
        self.reason[rows] = reason
        self.detail[rows] = [f"{field} {self.text(value)}" for value in values[rows].tolist()]

    def text(self, value: int) -> str:
        """Write a value as in the log; an unknown one is "empty", in SWF -1."""
        return "empty" if value == UNKNOWN and self.records.format != "swf" else str(value)

    def count(self, rows: Mask, what: str) -> None:
        if rows.any():
            self.changed[what] += int(rows.sum())

    def drop_unusable(self) -> None:
        self.drop(self.submit < 0, "no submit time", "submit", self.submit)
        self.drop(self.cores <= 0, "no cores", "cores", self.cores)
        running = (self.table["state"] == "running").to_numpy() & (self.runtime < 0)
        self.drop(running, "still running at the end", "runtime", self.runtime)
        self.drop(self.runtime <= 0, "no run time", "runtime", self.runtime)
        self.drop(self.cores > self.config.machine.cores, "wider than the machine", "cores", self.cores)

    def route(self) -> None:
        """Keep a job in the queue that it names if that queue admits it, else use the first queue that does."""
        codes, distinct = pd.factorize(self.table["queue"])
        legal = legal_names(self.records.queue_names)
        position = {queue: i for i, queue in enumerate(self.config.names)} | {"": -1}
        known = np.full(len(distinct), -1, dtype=np.int64)
        for code, name in enumerate(distinct.tolist()):
            # The log of another period may have needed the longer of a name's two legal forms.
            form = next((form for form in (name, name and legal[name], name and hashed(name)) if form in position), "")
            known[code] = position[form]
            if form and form != name:
                self.count(self.alive & (codes == code), renamed(name, form))
        named = known[codes]
        self.queue = route(named, [queue.admits(self.cores, self.walltime) for queue in self.config.queues])
        moved = self.alive & (self.queue >= 0) & (self.queue != named)
        nameless = (self.table["queue"] == "").to_numpy()
        self.count(moved & nameless, "routed: named no queue")
        self.count(moved & ~nameless & (named < 0), UNKNOWN_QUEUE)
        self.count(moved & (named >= 0), "routed: outside the limits of the queue it named")
        for text, names in alike({*distinct.tolist(), *self.config.names}).items():
            self.count(self.alive & self.table["queue"].isin(names).to_numpy(), text)
        nowhere = self.alive & (self.queue < 0)
        self.drop(nowhere, "fits no queue", "cores", self.cores)
        self.detail[nowhere] += [f", walltime {self.text(seconds)}" for seconds in self.walltime[nowhere].tolist()]

    def fill_walltimes(self) -> None:
        missing = self.alive & (self.walltime <= 0)
        most = np.array([queue.walltime[1] for queue in self.config.queues], dtype=np.int64)[self.queue]
        limited = missing & (most < MAX_DURATION)
        endless = missing & ~limited
        self.walltime[limited] = most[limited]
        self.walltime[endless] = self.runtime[endless]
        self.count(limited, "walltime missing: the queue's maximum")
        self.count(endless, "walltime missing: the run time")

    def kill_at_the_limit(self) -> None:
        over = self.alive & (self.runtime > self.walltime)
        self.runtime[over] = self.walltime[over]
        self.count(over, "run time above the walltime: killed at the limit")

    def round_to_nodes(self) -> None:
        grid, most = self.config.grid, self.config.machine.cores
        whole = -(-self.cores // grid) * grid
        up = self.alive & (whole != self.cores)
        self.cores[up] = whole[up]
        self.count(up, "cores rounded up to whole nodes")
        self.drop(self.cores > most, "wider than the machine", "cores in whole nodes", self.cores)

    def drop_excluded(self) -> None:
        """Drop the jobs that a limit on running cores never lets start; note their submits under the limit's path."""
        has_user, qos = (self.table["user"] != "").to_numpy(), self.qos()
        for i, queue in enumerate(self.config.queues):
            for limit, reason in TOO_WIDE.items():
                over = self.alive & (self.queue == i) & over_limit(self.config, queue, limit, self.cores, has_user, qos)
                self.drop(over, f"{reason} {queue.name}", "cores", self.cores)
                if over.any():
                    self.excluded[f"queues.{queue.name}.{limit}"] = tuple(self.submit[over].tolist())
        if self.config.throttles:
            names = {each: self.table[each].to_numpy(dtype=object) for each in ("user", "group")}
            names |= {} if qos is None else {"qos": qos}
            number, of_jobs = self.requests
            taken = partial(chunks.taken, np.maximum(number, -1), of_jobs)
            for i, queue in enumerate(self.config.queues):
                never = throttled(self.config, queue.name, self.cores, self.walltime, names, taken)
                self.drop(never & (self.queue == i), "above a limit of throttles", "cores", self.cores)
        self.drop_without_place()
        of_cores = not self.config.nodes
        never = kept_off(self.config, self.cores, self.walltime, self.queue) if of_cores else self.without_time()
        never = self.alive & never
        self.drop(never, "finds no time between those of a shortpool", "cores", self.cores)
        if never.any():
            self.excluded["shortpools"] = tuple(self.submit[never].tolist())
        for name, most in self.config.licences.items():
            counts = np.array([dict(wanted(text)).get(name, 0) for text in self.table["needs"]], dtype=np.int64)
            self.drop(counts > most, f"asks for more licences than there are: {name}", "licences", counts)

    def without_time(self) -> Mask:
        """Mark the jobs that shortpools never let start, on nodes of several types."""
        if not self.config.shortpools:
            return np.zeros(self.cores.size, dtype=np.bool_)
        number, of_jobs = self.requests
        number, of_jobs = chunks.with_kept_cores(np.maximum(number, -1), self.cores, of_jobs, self.config)
        queue = np.maximum(self.queue, 0)
        return chunks.without_time(number, of_jobs, self.cores, self.walltime, queue, self.config)

    def qos(self) -> Texts | None:
        """Return the name of each job's QOS; None where the configuration has none."""
        if not self.config.qos:
            return None
        qos, user, account, group = (
            self.table[name].to_numpy(dtype=object) for name in ("qos", "user", "account", "group")
        )
        queue = np.array([*self.config.names, ""], dtype=object)[self.queue]
        return qos_of(self.config, qos, user, account, group, queue)

    @cached_property
    def requests(self) -> tuple[Column, list[Request]]:
        """The jobs' node requests, from `chunks.requests`."""
        return chunks.requests(self.table["needs"].to_numpy(dtype=object), self.cores, self.config)

    def drop_without_place(self) -> None:
        """Drop the jobs that do not fit on the nodes of their queue; count those simulated by their cores alone."""
        codes, found = pd.factorize(self.table["needs"])
        if not self.config.nodes:
            had = np.array([bool(chunks.GPUS.search(text)) for text in found], dtype=np.bool_)[codes]
            self.count(self.alive & had, chunks.WITH_GPUS)
            return
        if not any(":" in name for each in self.config.nodes for name in (*each.features, *each.resources)):
            of_type = np.array([bool(chunks.OF_TYPE.search(text)) for text in found], dtype=np.bool_)[codes]
            self.count(self.alive & of_type, chunks.ANY_TYPE)
        if any(each.memory for each in self.config.nodes):
            self.changed.update(self.records.of_memory)
        number, of_jobs = self.requests
        self.count(self.alive & (number == -2), chunks.OTHER_CORES)
        self.count(self.alive & (number == -1), chunks.CORES_ALONE)
        number, of_jobs = chunks.with_kept_cores(np.maximum(number, -1), self.cores, of_jobs, self.config)
        queue = np.maximum(self.queue, 0)
        never = chunks.without_place(number, of_jobs, self.cores, queue, self.config.system())
        self.drop(never, "fits no nodes of its queue", "cores", self.cores)

    def _check_span(self, order: Column) -> None:
        """Refuse submits too far apart for one machine; the error names the one farthest from the middle."""
        if not order.size or self.submit[order[-1]] - self.submit[order[0]] <= MAX_SPAN:
            return
        middle = self.submit[order[order.size // 2]]
        row = int(max(order[0], order[-1], key=lambda i: abs(self.submit[i] - middle)))
        job = self.table.iloc[row]
        file = self.records.sources[job["file"]].path if self.records.sources else None
        line, value = int(job["line"]), int(job["submit"])
        message, fix = f"more than {MAX_SPAN} seconds away from other submits", "correct or remove the line"
        raise InputError(message, file=file, line=line, field="submit", value=value, fix=fix)

    def _dropped(self) -> pd.DataFrame:
        gone = self.table.loc[~self.alive, ["job_id", "file", "line"]]
        paths = [source.path for source in self.records.sources]
        files = [paths[file] if paths else "" for file in gone["file"]]
        gone = gone.assign(file=files, reason=self.reason[~self.alive], detail=self.detail[~self.alive])
        return pd.concat([self.records.dropped, drop_table(gone)], ignore_index=True)

    def jobs(self, order: Column) -> pd.DataFrame:
        numbers = {name: getattr(self, name)[order] for name in ("runtime", "walltime", "cores")}
        queue = pd.array(np.array(self.config.names, dtype=object)[self.queue[order]], dtype="str")
        return self.table.iloc[order].reset_index(drop=True).assign(**numbers, queue=queue, row=order)[list(COLUMNS)]

    def result(self, deleted: _Cleaning) -> History:
        """Return the history; `deleted` has the jobs that were deleted while waiting."""
        records = self.records
        rows = np.flatnonzero(self.alive)
        order = rows[np.argsort(self.submit[rows], kind="stable")]
        self._check_span(order)
        self.count(order != rows, "put in the order of submission")
        dropped, jobs = self._dropped(), self.jobs(order)
        if jobs.empty:
            raise records.no_job(records.read, Counter(dropped["reason"]), dropped)
        return History(
            jobs=jobs,
            deleted=deleted.jobs(np.flatnonzero(deleted.alive)),
            read=records.read,
            excluded=self.excluded,
            dropped=dropped,
            changed=dict(self.changed),
            epoch=records.epoch,
            timezone=records.timezone,
            sources=tuple(records.sources),
        )
