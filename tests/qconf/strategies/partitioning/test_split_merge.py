import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parsim import Workload
from qconf.config import lost_job
from qconf.config.models import HoursConfig, QOSConfig, ThrottleConfig
from qconf.evaluation.period import Period, TrainingSet
from qconf.strategies.partitioning.split_merge import Layout, free_name, mergeable, merged, splits
from tests.qconf.small import LONG, SHORT, WIDE, site, three, training, two

PBS_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,12}")


def candidates(here, index=1, layout=None, split_on="walltime"):
    return {each.what: each for each in splits(here, layout or Layout.of(here.base), index, split_on, 1)}


def test_three_ways_to_split_a_queue():
    here = training(two(), jobs=500)
    found = candidates(here)
    assert list(found) == ["walltime", "cpu-hours", "jobs"]
    own = here.workload.take(here.workload.queue == 1)
    for kind, candidate in found.items():
        first, second = candidate.layout.config.queues[1:]
        assert (first.name, second.name) == ("long", "long-2")
        assert first.partition + second.partition == 40
        if kind == "walltime":
            assert candidate.rule == "walltime <= 5h"
            assert (first.walltime, second.walltime) == ((0, 18000), (18000, 36000))
            assert first.cores == second.cores == (1, 16)
            continue
        edge = first.cores[1]
        assert (first.cores, second.cores) == ((1, edge), (edge + 1, 16))
        assert first.walltime == second.walltime == (0, 36000)
        load = own.cores * own.effective_runtime if kind == "cpu-hours" else np.ones(len(own))
        assert load[own.cores <= edge].sum() >= load.sum() / 2
        assert load[own.cores < edge].sum() < load.sum() / 2


def test_the_cores_are_divided_by_cpu_hours_and_hold_the_widest_jobs():
    here = training(two(), jobs=500)
    for candidate in candidates(here).values():
        config = candidate.layout.config
        jobs = here.period.routed(config)
        work = np.bincount(jobs.queue, jobs.cores * jobs.effective_runtime)[1:]
        widest = [jobs.cores[jobs.queue == i].max() for i in (1, 2)]
        sizes = [config.queues[1].partition, config.queues[2].partition]
        assert all(size >= wide for size, wide in zip(sizes, widest, strict=True))
        if all(size > wide for size, wide in zip(sizes, widest, strict=True)):
            assert abs(sizes[0] - 40 * work[0] / work.sum()) <= 1


def test_both_parts_inherit_priority_and_starvation_and_share_the_limits_by_their_work():
    base = site(SHORT, {**LONG, "priority": 7.0, "starvation": 3600, "max_run": 9, "max_user_cores": 40})
    here = training(base)
    for candidate in candidates(here).values():
        parts = candidate.layout.config.queues[1:]
        assert {(part.priority, part.starvation) for part in parts} == {(7.0, 3600)}
        jobs = here.period.routed(candidate.layout.config)
        work = np.bincount(jobs.queue, jobs.cores * jobs.effective_runtime)[1:]
        assert sum(part.max_run for part in parts) == 9
        assert sum(part.max_user_cores for part in parts) == 40
        for part, share, i in zip(parts, work / work.sum(), (1, 2), strict=True):
            assert abs(part.max_run - 9 * share) <= 1
            assert part.max_user_cores >= jobs.cores[jobs.queue == i].max()


def test_a_limit_that_cannot_be_shared_out_refuses_the_split():
    found = candidates(training(site(SHORT, {**LONG, "max_run": 1})))["jobs"]
    assert found.layout is None
    assert found.rule == "max_run of 1 cannot be shared out: 2 are needed"


KINDS = ("max_run", "max_run_cores", "max_user_run", "max_user_cores")
amounts = st.one_of(st.none(), st.integers(16, 200))  # a job of 16 cores can start


@given(
    st.lists(st.fixed_dictionaries(dict.fromkeys(KINDS, amounts)), min_size=2, max_size=2),
    st.lists(
        st.tuples(st.sampled_from([0, 1]), st.sampled_from(["user", "group", None]), st.integers(2, 90)), max_size=3
    ),
    st.lists(st.tuples(st.booleans(), st.integers(0, 7)), min_size=1, max_size=4),
)
@settings(max_examples=25)
def test_the_total_of_every_limit_stays_through_splits_and_merges(limits, throttles, moves):
    names = ("short", "long")
    base = site(
        *({**queue, **own} for queue, own in zip((SHORT, LONG), limits, strict=True)),
        throttles=tuple(
            ThrottleConfig(queue=names[q], each=each, max_run=most, max_queued=most + 1)
            for q, each, most in {(q, each): (q, each, most) for q, each, most in throttles}.values()
        ),
        hours=(HoursConfig(queue="long", begin="08:00", end="18:00", max_run=0, max_run_cores=50),),
        qos=(QOSConfig(name="urgent", queues=("long",)),),
    )
    here, layout = training(base, jobs=120), None
    for number, (split, which) in enumerate(moves, 1):
        layout = layout or Layout.of(base)
        if split:
            index = which % len(layout.config.queues)
            found = [each.layout for each in splits(here, layout, index, "walltime", number) if each.layout]
        else:
            found = [each.layout for pair in mergeable(layout) if (each := merged(here, layout, pair)).layout]
        for each in found:
            gone = [queue for queue in layout.config.queues if queue not in each.config.queues]
            new = [queue for queue in each.config.queues if queue not in layout.config.queues]
            assert totals(layout.config, gone) == totals(each.config, new)
        layout = found[which % len(found)] if found else layout
    of_urgent = set(layout.config.qos[0].queues)
    assert of_urgent == {queue.name for queue in layout.config.queues if queue.name.startswith("long")}


def totals(config, queues):
    """Return the sum of each kind of limit over `queues`; a kind that one of them lacks has none."""
    kept = {}
    for queue in queues:
        own = {kind: getattr(queue, kind) for kind in KINDS}
        for each in config.throttles:
            own |= {(each.each, kind): most for kind, most in each.limits.items() if each.queue == queue.name}
        for each in config.hours:
            own |= {("hours", kind): getattr(each, kind) for kind in KINDS if each.queue == queue.name}
        kept[queue.name] = {kind: most for kind, most in own.items() if most is not None}
    common = set.intersection(*map(set, kept.values())) if kept else set()
    return {kind: sum(own[kind] for own in kept.values()) for kind in common}


def test_a_queue_without_jobs_or_with_one_size_is_not_split_with_the_reason():
    here = training(two(), only=[1])
    assert {each.rule for each in candidates(here, 0).values()} == {"no job is in it"}
    base = site({**SHORT, "cores": (8, 8)}, LONG)
    found = candidates(training(base), 0)
    assert found["walltime"].layout is not None
    assert "no job is left for the second" in found["jobs"].rule
    assert found["jobs"].layout is None


def test_a_limit_whose_half_lies_below_the_least_walltime_is_not_split_by_time():
    base = site(SHORT, {**LONG, "walltime": (20000, 36000)})
    assert candidates(training(base))["walltime"].rule == "half of its limit, 5h, is not above its least, 5h33m20s"


def test_parts_whose_widest_jobs_do_not_fit_at_once_are_refused():
    base = site({**SHORT, "partition": 48}, {**LONG, "partition": 16})
    found = candidates(training(base))["walltime"]
    assert found.layout is None
    assert "cores at once" in found.rule


def test_new_names_are_unused_and_valid_in_pbs():
    assert free_name("small", ["small"]) == "small-2"
    assert free_name("small", ["small", "SMALL-2"]) == "small-3"
    assert free_name("a.very.long.queue.name", []) == "a_very_long-2"
    assert free_name("1day", []) == "q1day-2"


@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=64), st.integers(0, 30))
@settings(max_examples=100)
def test_parts_of_a_queue_of_any_name_can_be_exported(name, count):
    taken = [name]
    for _ in range(count):
        taken.append(free_name(name, taken))
        assert PBS_NAME.fullmatch(taken[-1])
    assert len({each.lower() for each in taken[1:]}) == count


def test_a_split_by_actual_run_time_keeps_the_admission_keys_and_records_the_run_times():
    here = training(site(SHORT, {**LONG, "cores": (1, 4)}), jobs=400)
    found = candidates(here, split_on="runtime")
    layout = found["runtime"].layout
    first, second = layout.config.queues[1:]
    assert (first.cores, first.walltime) == (second.cores, second.walltime)
    assert layout.runtimes[1:] == ((0, 18000), (18000, 2**31 - 1))
    jobs = here.period.routed(layout.config, layout.runtimes)
    assert jobs.effective_runtime[jobs.queue == 1].max() <= 18000 < jobs.effective_runtime[jobs.queue == 2].min()
    again = candidates(here, 1, layout, "runtime")["runtime"].layout
    assert again.runtimes[1:3] == ((0, 9000), (9000, 18000))


def test_pairs_that_may_be_merged():
    base = site(
        {"name": "a", "cores": (1, 8), "walltime": (0, 100), "partition": 16},
        {"name": "b", "cores": (9, 16), "walltime": (100, 200), "partition": 16},  # touches a in both
        {"name": "c", "cores": (18, 20), "walltime": (0, 200), "partition": 16},  # a gap of one core to b
        {"name": "d", "cores": (1, 16), "walltime": (201, 300), "partition": 16},  # a gap of a second to b
        {"name": "r", "cores": (1, 64), "walltime": (0, 300), "reservation": True},
    )
    assert list(mergeable(Layout.of(base))) == [(0, 1)]


def test_the_parts_of_one_split_are_merged_with_other_queues_only():
    here = training(two(), jobs=400)
    layout = candidates(here)["walltime"].layout
    assert layout.origin == (0, 1, 1)
    assert list(mergeable(layout)) == [(0, 1)]  # `short` ends at two hours: `long-2` begins at five


def test_a_merged_queue_admits_the_jobs_of_both():
    base = site(
        {**SHORT, "priority": 10.0, "starvation": 7200, "max_run": 5, "max_run_cores": 30},
        {**LONG, "priority": 20.0, "max_run": 9},
    )
    here = training(base, jobs=300)
    candidate = merged(here, Layout.of(base), (0, 1))
    (queue,) = candidate.layout.config.queues
    work = here.period.core_seconds
    assert queue.name == "long"
    assert (queue.cores, queue.walltime, queue.partition) == ((1, 16), (0, 36000), 64)
    assert queue.priority == pytest.approx((10 * work[0] + 20 * work[1]) / work.sum(), abs=1e-5)
    assert (queue.starvation, queue.max_run, queue.max_run_cores) == (7200, 14, None)


def test_jobs_of_a_merged_queue_starve_as_soon_as_those_of_either():
    base = site({**SHORT, "starvation": 7200}, {**LONG, "starvation": 3600})
    (queue,) = merged(training(base), Layout.of(base), (0, 1)).layout.config.queues
    assert queue.starvation == 3600


def test_splits_and_merges_that_violate_fixed_are_refused():
    here = training(two(fixed=("queues.long.cores", "queues.short.name")))
    found = candidates(here)
    assert found["walltime"].layout is None or found["walltime"].layout.config.queues[1].cores == (1, 16)
    assert found["jobs"].rule == "changes queues.long.cores, which is fixed"
    assert "fixed" in merged(here, Layout.of(here.base), (0, 1)).rule
    patterned = training(two(fixed=("queues.*.max_user_run",)))
    assert merged(patterned, Layout.of(patterned.base), (0, 1)).layout is not None


def test_a_split_that_moves_wide_jobs_into_a_partition_too_small_is_refused():
    # `other` overlaps `long` and comes first: jobs that leave `long` are routed there.
    base = site(
        {"name": "other", "cores": (9, 16), "walltime": (0, 36000), "partition": 8}, LONG, {**SHORT, "partition": 16}
    )
    rows = [(4, 20000, 1)] * 6 + [(16, 30000, 1)] * 2 + [(4, 3600, 2)]
    cores, walltime, queue = np.array(rows).T
    here = TrainingSet(Period(Workload(np.arange(len(rows)) * 60, cores, walltime, walltime, queue=queue), base))
    found = candidates(here)["jobs"]
    assert found.layout is None
    assert found.rule == "no job would be in long-2"


def test_a_job_that_the_base_admits_and_another_configuration_does_not_is_found():
    base = three()
    assert lost_job(base.queues, base.queues) is None
    narrow = base.queues[0].model_copy(update={"cores": (2, 8)})
    rest = (base.queues[1].model_copy(update={"walltime": (7000, 36000)}), base.queues[2])
    assert lost_job(base.queues, [narrow, *rest]) == (1, 1)
    assert lost_job(base.queues, [base.queues[0], *rest]) is not None
    open_ended = site({"name": "all"}, mode="shared")
    capped = site({"name": "all", "cores": (1, 64), "walltime": (0, 2**31 - 2)}, mode="shared")
    assert lost_job(capped.queues, open_ended.queues) is None
    assert lost_job(open_ended.queues, capped.queues) is not None


@pytest.mark.parametrize("seed", range(4))
def test_every_candidate_routes_all_jobs_and_sums_to_the_machine(seed):
    here = training(site(SHORT, LONG, WIDE), jobs=200, seed=seed)
    layout = Layout.of(here.base)
    found = [c for i in (0, 1) for c in splits(here, layout, i, "walltime", 1)]
    found += [merged(here, layout, pair) for pair in mergeable(layout)]
    assert any(each.layout for each in found)
    for each in found:
        if each.layout:
            config = each.layout.config
            assert sum(queue.partition for queue in config.queues) == 64
            assert lost_job(here.base.queues, config.queues) is None
            jobs = here.period.routed(config)
            assert all(
                config.queues[q].admits(int(c), int(w))
                for q, c, w in zip(jobs.queue, jobs.cores, jobs.walltime, strict=True)
            )
