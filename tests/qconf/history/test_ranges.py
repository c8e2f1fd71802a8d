"""Order and ranges of the queues of a log: a route by size sends the jobs where they went, as far as ranges can."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qconf.config import QueueConfig, route
from qconf.history import clean, derive_config, read, remarks
from qconf.history.deriving import Sizes, arranged
from qconf.history.sample import SAMPLES

CSV = "job_id,submit,runtime,walltime,cores,queue\n"
MACHINE = 64


def history(jobs):
    """Write jobs of (cores, walltime, queue) as a CSV."""
    return CSV + "".join(f"{i},{i},1,{w},{c},{q}\n" for i, (c, w, q) in enumerate(jobs))


def sent(queues, cores, walltime):
    """Name the queue to which a route by size sends each job."""
    admitted = [queue.admits(np.asarray(cores), np.asarray(walltime)) for queue in queues]
    return [queues[i].name if i >= 0 else "" for i in route(np.full(len(cores), -1), admitted)]


def right(queues, jobs):
    cores, walltime, went = zip(*jobs, strict=True)
    return sum(a == b for a, b in zip(sent(queues, cores, walltime), went, strict=True))


def observed(jobs):
    """Return a queue per name with the ranges of its jobs, the narrowest first."""
    table = pd.DataFrame(jobs, columns=["cores", "walltime", "queue"])
    queues = [
        QueueConfig(name=name, cores=(int(own["cores"].min()), int(own["cores"].max())),
                    walltime=(0, int(own["walltime"].max())))
        for name, own in table.groupby("queue")
    ]  # fmt: skip
    queues.sort(key=lambda queue: (queue.cores[1], queue.walltime[1], queue.name))
    return queues, Sizes.of(table, [queue.name for queue in queues])


def interval(least, most, gap):
    return st.tuples(st.integers(least, most), st.integers(least, most)).map(lambda p: (min(p), max(p) + gap))


QUEUES = st.lists(st.tuples(interval(1, MACHINE, 0), interval(0, 40, 1)), min_size=2, max_size=5).map(
    lambda boxes: [QueueConfig(name=f"q{i}", cores=c, walltime=w) for i, (c, w) in enumerate(boxes)]
)
POINTS = st.lists(st.tuples(st.integers(1, MACHINE), st.integers(1, 41)), min_size=5, max_size=60)
SOME_JOBS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from("abcd")), min_size=2, max_size=25
)  # fmt: skip


@given(QUEUES, POINTS)
@settings(max_examples=60)
def test_jobs_that_a_route_sent_are_sent_there_again(queues, points):
    went = sent(queues, *zip(*points, strict=True))
    jobs = [(c, w, name) for (c, w), name in zip(points, went, strict=True) if name]
    if jobs:
        assert right(arranged(*observed(jobs)), jobs) == len(jobs)


@given(SOME_JOBS)
@settings(max_examples=60)
def test_any_jobs_are_admitted_and_no_order_of_their_ranges_is_better(jobs):
    queues, sizes = observed(jobs)
    found = arranged(queues, sizes)
    assert sorted(queue.name for queue in found) == sorted(queue.name for queue in queues)
    assert "" not in sent(found, *list(zip(*jobs, strict=True))[:2])
    kept = sum(queue.admits(c, w) for c, w, q in jobs for queue in found if queue.name == q)
    best = max(right(order, jobs) for order in permutations(queues))
    assert right(found, jobs) + kept >= best + len(jobs)
    assert all(right(found, jobs) >= right(order, jobs) for order in permutations(found))


STRAYS = [(4, 1, "short")] * 50 + [(4, 9, "long")] * 50 + [(4, 1, "long")] * 3 + [(4, 9, "short"), (4, 5, "long")]


def test_a_stray_job_does_not_make_a_queue_take_the_jobs_of_another():
    found = arranged(*observed(STRAYS))
    assert right(found, STRAYS) == 101
    assert [(queue.name, queue.walltime) for queue in found] == [("short", (0, 1)), ("long", (0, 9))]


def test_the_sample_is_routed_where_it_went():
    records = read(SAMPLES[1])
    config = derive_config(records, 35232)
    assert config.names.index("small") < config.names.index("small72")
    assert remarks(records, config) == []


def test_what_ranges_cannot_do_is_counted_queue_by_queue(write):
    jobs = [(4, 5, "normal")] * 5 + [(4, 5, "high")] * 2 + [(4, 9, "normal")] + [(8, 9, "high")]
    records = read(write(history(jobs)))
    config = derive_config(records, MACHINE)
    assert config.names == ("normal", "high")
    assert remarks(records, config) == ["high: by their size alone 2 of its 3 jobs go elsewhere, 2 to normal"]


def test_a_range_that_shuts_jobs_out_is_counted(write):
    records = read(write(history(STRAYS)))
    config = derive_config(records, MACHINE)
    assert remarks(records, config) == [
        "short: by their size alone 1 of its 51 jobs go elsewhere, 1 to long",
        "short: 1 of its 51 jobs are outside its ranges, to take fewer of others",
        "long: by their size alone 3 of its 54 jobs go elsewhere, 3 to short",
    ]
    assert clean(records, config).changed == {"routed: outside the limits of the queue it named": 1}


@pytest.mark.parametrize("count", [12, 40])
def test_many_queues_end(count):
    dice = np.random.default_rng(count)
    names = [f"q{i}" for i in dice.integers(0, count, 3000)]
    jobs = list(zip(dice.integers(1, 99, 3000).tolist(), dice.integers(1, 99, 3000).tolist(), names, strict=True))
    queues, sizes = observed(jobs)
    found = arranged(queues, sizes)
    assert right(found, jobs) >= right(queues, jobs)
    assert "" not in sent(found, *list(zip(*jobs, strict=True))[:2])
