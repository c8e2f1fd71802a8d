"""The exported route and the simulator send jobs to the same queues, on random configurations and histories."""

import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from parsim.model.workload import MAX_DURATION
from qconf.errors import InputError
from qconf.history import Records, clean, derive_config
from qconf.history.records import SourceInfo, drop_table, job_table
from tests.qconf.export.pbs.model import PbsServer
from tests.qconf.export.sites import QUICK, exportable, exported


def records(jobs):
    """Return the records of jobs of (cores, walltime, queue)."""
    cores, walltime, queue = (list(column) for column in zip(*jobs, strict=True))
    numbers = list(range(len(jobs)))
    columns = {"job_id": list(map(str, numbers)), "submit": numbers, "runtime": [1] * len(jobs), "line": numbers}
    table = job_table(
        columns | {"cores": cores, "walltime": walltime, "queue": queue, "file": [0] * len(jobs)}, len(jobs)
    )
    return Records(table=table, dropped=drop_table([]), sources=[SourceInfo("log", "0")])


def simulated(jobs, config):
    """Return the queue that each job is cleaned into, None where none admits it."""
    log = records(jobs)
    try:
        history = clean(log, config)
    except InputError:
        return None
    found = dict(zip(history.jobs["job_id"].astype(int), history.jobs["queue"], strict=True))
    for job, reason in history.dropped[["job_id", "reason"]].itertuples(index=False):
        # A job above a limit of its queue is let in by PBS, and never starts.
        found[int(job)] = reason.split()[-1] if "limit" in reason else None
    return [found[i] for i in range(len(jobs))]


def edges(config):
    """Return cores and walltimes at the edges of the queues' ranges, on the machine."""
    cores = {edge + d for q in config.queues for edge in q.cores for d in (-1, 0, 1)}
    walltimes = {edge + d for q in config.queues for edge in q.walltime for d in (0, 1)}
    grid = config.grid
    return (
        [c for c in sorted(cores) if 0 < c <= config.machine.cores // grid * grid],
        [w for w in sorted(walltimes) if 0 < w <= MAX_DURATION],
    )


@settings(QUICK, max_examples=40)
@given(exportable())
def test_jobs_that_name_no_queue(config):
    """At each boundary, and without a walltime, where they go by their cores."""
    server = PbsServer(exported(config)["queues.qmgr"])
    assert "resources_default.walltime" not in server.server
    cores, walltimes = edges(config)
    jobs = [(c, w, "") for c in cores for w in (*walltimes, -1)]
    assume(jobs)
    found = simulated(jobs, config)
    assume(found is not None)
    route = server.server["default_queue"]
    assert found == [server.route(c, None if w < 0 else w, route) for c, w, _ in jobs]


@settings(QUICK, max_examples=20)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.sampled_from(["a", "b", "c"])), min_size=1))
def test_jobs_of_a_history_under_the_configuration_derived_from_it(jobs):
    config = derive_config(records(jobs), 32)
    server = PbsServer(exported(config)["queues.qmgr"])
    sent = [server.route(c, w, server.server["default_queue"]) for c, w, _ in jobs]
    assert simulated([(c, w, "") for c, w, _ in jobs], config) == sent
    assert None not in sent
    named = pd.Series(simulated(jobs, config))
    ranges = {queue.name: queue for queue in config.queues}
    stays = [ranges[q].admits(c, w) for c, w, q in jobs]
    assert named.tolist() == [q if stay else other for (_, _, q), stay, other in zip(jobs, stays, sent, strict=True)]
