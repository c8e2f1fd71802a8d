"""Shortpools of a configuration: windows by the calendar, kept in every simulation."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from parsim import Workload, naive, simulate
from parsim.model.node_types import Chunk
from qconf.config import PoolConfig, ShortpoolConfig, dump, kept_off, parse
from qconf.config.routing import beside_shortpools, shortpool_gaps, shortpool_gaps_of_types
from qconf.errors import ExportError
from qconf.evaluation.evaluator import CachedEvaluator
from qconf.evaluation.feasibility import fixed_violations, never_start
from qconf.evaluation.period import Period, TrainingSet
from qconf.export import exporter
from qconf.history.chunks import without_time
from qconf.strategies.auto.measures import of_base, of_configs
from qconf.strategies.base import Options, Proposal
from qconf.strategies.mqb import Mqb
from qconf.strategies.plain import undistinguished
from tests.qconf.small import site

HOUR, DAY = 3600, 86400
WORK = ("mon", "tue", "wed", "thu", "fri")
POOL = ShortpoolConfig(cores=4, walltime=2 * HOUR, days=WORK, begin="08:00", end="18:00")
MONDAY = int(datetime(2026, 3, 23, tzinfo=ZoneInfo("Europe/Berlin")).timestamp())  # the clock changes on the 29th


def whole(*pools, **changes):
    return site({"name": "all", "cores": (1, 8), "walltime": (0, 60 * HOUR)}, cores=8, mode="shared", shortpools=pools,
                **changes)  # fmt: skip


def jobs(submit, cores, walltime, base):
    """A period that begins on a Monday at midnight in Berlin."""
    return Period(Workload(submit, cores, walltime, walltime), base, epoch=MONDAY, timezone="Europe/Berlin")


def test_it_is_read_and_written():
    config = whole(POOL, ShortpoolConfig(cores=1, walltime=600))
    assert parse(dump(config)) == config
    assert '{cores: 4, walltime: 2h, days: [mon, tue, wed, thu, fri], begin: "08:00", end: "18:00"}' in dump(config)
    assert "{cores: 1, walltime: 10m}" in dump(config)


def test_the_longest_gap_is_the_weekend():
    assert shortpool_gaps(whole(POOL)) == [(4, 62 * HOUR)]
    assert shortpool_gaps(whole(ShortpoolConfig(cores=1, walltime=1))) == [(1, 1)]
    sunday = ShortpoolConfig(cores=1, walltime=1, days=("sun",), begin="22:00", end="06:00")
    assert shortpool_gaps(whole(sunday)) == [(1, 160 * HOUR)]


def test_shortpools_leave_no_gap_together():
    day, night = (
        ShortpoolConfig(cores=4, walltime=HOUR, begin=begin, end=end)
        for begin, end in (("08:00", "20:00"), ("20:00", "08:00"))
    )
    config = whole(day, night)
    assert kept_off(config, np.array([5, 5, 4]), np.array([HOUR, 2 * HOUR, 2 * HOUR])).tolist() == [False, True, False]
    assert any("wider than 4 cores and longer than 1h never start" in warning for warning in config.warnings())
    assert never_start(whole(day), config)


def test_cores_of_shortpools_that_overlap_add_up():
    config = whole(ShortpoolConfig(cores=3, walltime=HOUR), ShortpoolConfig(cores=3, walltime=2 * HOUR))
    assert shortpool_gaps(config) == [(3, HOUR), (6, 2 * HOUR)]


def test_on_a_divided_machine_each_part_keeps_its_share():
    """Of 4 of 12 cores a partition of 6 keeps 2, one of 3 and a pool of 3 each 1."""
    queues = [
        {"name": name, "cores": (1, 12), "walltime": (0, 60 * HOUR), "partition": partition}
        for name, partition in (("large", 6), ("small", 3))
    ]
    day = ShortpoolConfig(cores=4, walltime=HOUR)
    config = site(*queues, cores=12, mode="hybrid", pool=PoolConfig(cores=3, entry="move"), shortpools=(day,))
    cores = np.array([4, 5, 6, 7, 8, 9, 2, 3, 9])
    queue = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    assert beside_shortpools(config, 4, cores, queue).tolist() == [4, 4, 4, 8, 8, 8, 2, 2, 8]
    off = [False, True, True, False, False, True, False, True, True]
    long = np.full(cores.size, 2 * HOUR)
    assert kept_off(config, cores, long, queue).tolist() == off
    assert not kept_off(config, cores, np.full(cores.size, HOUR), queue).any()
    assert kept_off(config, cores, long).tolist() == [cores > 8 for cores in cores]
    workload = Workload(np.zeros(9), cores, long, long, queue=queue)
    system = Period(workload, config, epoch=MONDAY, timezone="Europe/Berlin").system(config)
    starts = simulate(workload, system).start
    assert (starts > 300 * DAY).tolist() == off


def test_windows_follow_the_clock_of_the_site():
    config = whole(POOL)
    windows = jobs([0, 7 * DAY], [1, 1], [60, 60], config).system(config).windows
    assert [(w.begin / HOUR, w.end / HOUR) for w in windows[:2]] == [(8, 18), (32, 42)]
    assert windows[5].begin / HOUR == 7 * 24 + 7  # the Monday after has an hour less before it
    assert {(w.cores, w.walltime) for w in windows} == {(4, 2 * HOUR)}
    assert windows[-1].begin > 372 * DAY
    assert (
        len(jobs([0, 7 * DAY], [1, 1], [60, 60], config).system(whole(ShortpoolConfig(cores=1, walltime=1))).windows)
        == 1
    )


@pytest.mark.parametrize("reserving", [{}, {"reserve": "queues"}, {"reservation_depth": 3}])
def test_every_simulation_keeps_it(reserving):
    config = whole(POOL, **reserving)
    # The first would run into Monday's hours, the second ends by 8, the third is short.
    period = jobs([7 * HOUR] * 3, [5, 3, 4], [3 * HOUR, HOUR, 2 * HOUR], config)
    expected = [11 * HOUR, 0, 0]
    assert period.simulate(config).wait.tolist() == expected
    proposal = Proposal(config)
    schedule = proposal.simulate(period)
    assert schedule.wait.tolist() == expected
    assert not proposal.verify(period, schedule)
    assert proposal.explain(period, schedule, 0, ["a", "b", "c"])[-1].begin == 18 * HOUR
    mean = float(np.mean(expected))
    assert of_base(period).means[0, 0] == of_configs(period, [config], 1)[0].means[0, 0] == mean
    training = TrainingSet(period, weights=(1.0,))
    assert CachedEvaluator(training).measure(config).overall == mean
    partitioned = config.with_partitions([8])
    assert CachedEvaluator(training).measure(partitioned).overall == mean


def test_jobs_that_would_never_start():
    config = whole(POOL)
    assert not never_start(whole(), config)  # at most 60 hours, less than a weekend
    always = whole(ShortpoolConfig(cores=4, walltime=2 * HOUR))
    never = (
        "jobs wider than 4 cores and longer than 2h would never start: they find no time between those of a shortpool"
    )
    assert never_start(whole(), always) == [f"of all, {never}"]
    assert "never start" in always.warnings()[0]
    assert not never_start(always, always)


def test_it_can_be_fixed():
    config = whole(POOL, fixed=("shortpools",))
    assert fixed_violations(config, config.replace(shortpools=())) == ["shortpools"]
    assert undistinguished(config, "fcfs").shortpools == (POOL,)
    assert undistinguished(whole(POOL), "fcfs").shortpools == ()


def test_multiple_queue_backfilling_is_shown_without():
    config = whole(POOL)
    period = jobs([7 * HOUR], [5], [3 * HOUR], config)
    proposal = Mqb().propose(TrainingSet(period), Options())
    assert proposal.simulate(period).wait.tolist() == [0]


GPUS = """\
machine: {cores: 8}
nodes: [{name: cpu, count: 2, cores: 2}, {name: gpu, count: 2, cores: 2, gpus: 1}]
queues: [{name: one}]
shortpools: [{types: {gpu: 1}, walltime: 2h, days: [mon, tue, wed, thu, fri], begin: "08:00", end: "18:00"}]
"""


def test_it_keeps_nodes_of_a_type():
    base = parse(GPUS)
    assert parse(dump(base)) == base
    assert shortpool_gaps_of_types(base) == [({"cpu": 0, "gpu": 1}, 62 * HOUR)]
    chunk = (Chunk(1, 2, {"gpus": 1}),)
    both = (Chunk(2, 2, {"gpus": 1}),)
    work = Workload([9 * HOUR, 9 * HOUR, 9 * HOUR, 9 * HOUR], [2, 2, 2, 4], [3 * HOUR] * 2 + [HOUR] * 2,
                    [3 * HOUR] * 2 + [HOUR] * 2, request=[0, 0, 0, 1], requests=[chunk, both])  # fmt: skip
    period = Period(work, base, epoch=MONDAY, timezone="Europe/Berlin")
    schedule = naive.simulate(work, period.system(base))
    # The second long one waits for the first; the short one has the node that is kept; the widest waits for both.
    assert [start // HOUR for start in schedule.start] == [9, 12, 9, 15]
    many = np.array([2, 2, 4])
    times = np.array([63, 61, 63]) * HOUR
    never = without_time(np.array([0, 1, 1]), [chunk, both], many, times, np.zeros(3, dtype=np.int64), base)
    assert never.tolist() == [False, False, True]


def test_types_are_cores_where_all_are_alike():
    assert [(each.cores, each.types) for each in parse(GPUS).with_all_alike().shortpools] == [(2, {})]


@pytest.mark.parametrize("target", ["pbs", "slurm"])
def test_no_export_has_a_form_for_types(target):
    with pytest.raises(ExportError, match="shortpools: nodes of several types have no form in an export"):
        exporter(target)().export(parse(GPUS))
