"""Derive a configuration for a history without one: a queue per queue name, on one shared machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from parsim.model.workload import MAX_DURATION
from qconf.config import MachineConfig, QueueConfig, SiteConfig, route
from qconf.errors import InputError
from qconf.history.chunks import GPUS
from qconf.history.names import alike, legal_names, renamed
from qconf.history.ranges import Sizes, arranged
from qconf.history.records import Records, most_at_once

GUESSED = 2.0  # if this many times the machine's cores ran at once, its size can only be a guess
NAMELESS = "all"  #: queue of the jobs that name none


def derive_config(records: Records, cores: int | None = None) -> SiteConfig:
    """Return the plainest configuration that takes every job: one shared machine, fcfs-easy, no limits.

    A queue's ranges span its jobs, narrowed and ordered by `arranged`; it has no walltime maximum if one of its jobs
    has no walltime. Without `cores`, the machine has the size in the log's header, else the most cores that ran at
    once. Raises `InputError` if the machine's size is unknown or no job is usable on it.
    """
    size = cores or records.machine_cores or most_at_once(records.table)
    if not size and len(records.table):
        raise InputError("the size of the machine is unknown", file=records.first_file, fix="give it with --cores")
    table = records.table
    lacks = _lacks(table) | {f"more than {size} cores": table["cores"] > size}
    usable = table.loc[~np.any(list(lacks.values()), axis=0), ["queue", "cores", "walltime"]]
    if usable.empty:
        counts = records.reasons | {what: int(rows.sum()) for what, rows in lacks.items()}
        raise records.no_job(records.read, counts, records.dropped)
    legal = legal_names(records.queue_names)
    nameless = NAMELESS
    while nameless in legal.values():
        nameless += "-"
    queues = [
        QueueConfig(
            name=legal.get(str(name), nameless),
            cores=(int(jobs["cores"].min()), int(jobs["cores"].max())),
            walltime=(0, int(jobs["walltime"].max()) if (jobs["walltime"] > 0).all() else MAX_DURATION),
        )
        for name, jobs in usable.groupby("queue", sort=False, observed=True)
    ]
    queues.sort(key=lambda queue: (queue.cores[1], queue.walltime[1], queue.name))
    known = {legal.get(name, nameless): name for name in usable["queue"].unique().tolist()}
    queues = arranged(queues, Sizes.of(usable, [known[queue.name] for queue in queues]))
    node = min(records.cores_per_node or 1, size)
    machine = MachineConfig(name="derived", cores=size, cores_per_node=node, whole_nodes=node > 1 and not size % node)
    return SiteConfig.build(machine=machine, queues=tuple(queues))


def check_size(records: Records, base: SiteConfig) -> None:
    """Raise InputError if twice the cores of `base` or more ran at once in the log."""
    cores, most = base.machine.cores, most_at_once(records.table)
    if most >= GUESSED * cores:
        raise InputError(
            f"{most} cores ran at once in the log",
            file=records.first_file,
            field="machine.cores",
            value=cores,
            fix=f"write the machine's size into the configuration, {most} cores or more",
        )


def remarks(records: Records, config: SiteConfig) -> list[str]:
    """List remarks on a derived configuration: renamed queues, and jobs too wide, with GPUs or routed elsewhere."""
    table, size = records.table, config.machine.cores
    legal = legal_names(records.queue_names)
    found = [renamed(name, new) for name, new in legal.items() if name != new and new in config.names]
    found += alike(legal)
    wide = table[~np.any(list(_lacks(table).values()), axis=0) & (table["cores"] > size)]
    if len(wide):
        counts = wide["queue"].value_counts(sort=False)
        queues = ", ".join(f"{count} of {legal.get(str(name), 'no queue')}" for name, count in counts.items())
        found.append(f"jobs wider than the machine of {size} cores are left out: {queues}")
    if gpus := sum(bool(GPUS.search(text)) for text in table["needs"].tolist()):
        found.append(
            f"{gpus} jobs had GPUs: cores alone are counted; init from what the batch system holds writes nodes: with "
            "theirs, or write them yourself"
        )
    usable = table[~np.any(list(_lacks(table).values()), axis=0) & (table["cores"] <= size)]
    return [*found, *_routed_elsewhere(usable, legal, config)]


def _routed_elsewhere(jobs: pd.DataFrame, legal: Mapping[str, str], config: SiteConfig) -> Iterator[str]:
    """Count for each queue the jobs that a route by size sends elsewhere, and those outside its ranges."""
    admitted = [queue.admits(jobs["cores"].to_numpy(), jobs["walltime"].to_numpy()) for queue in config.queues]
    sent = route(np.full(len(jobs), -1, dtype=np.int64), admitted)
    nameless = next((name for name in config.names if name not in legal.values()), NAMELESS)
    names = [legal.get(name, nameless) for name in jobs["queue"].tolist()]
    went = pd.Index(config.names).get_indexer(pd.Index(names))
    for i, name in enumerate(config.names):
        mine = went == i
        others = Counter(config.names[other] for other in sent[mine & (sent != i)].tolist())
        if others:
            where = ", ".join(f"{count} to {other}" for other, count in others.most_common())
            yield f"{name}: by their size alone {others.total()} of its {mine.sum()} jobs go elsewhere, {where}"
        if outside := int((mine & ~admitted[i]).sum()):
            yield f"{name}: {outside} of its {mine.sum()} jobs are outside its ranges, to take fewer of others"


def _lacks(table: pd.DataFrame) -> dict[str, pd.Series[bool]]:
    """Return the masks of jobs that no machine could run, by reason."""
    return {
        "no submit time": table["submit"] < 0,
        "no cores": table["cores"] < 1,
        "no run time": table["runtime"] <= 0,
    }
