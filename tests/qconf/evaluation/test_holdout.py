import numpy as np
import pytest

from parsim import Workload
from qconf.evaluation.feasibility import fixed_text, fixed_violations, never_start
from qconf.evaluation.guard_rails import GuardRails, GuardValues, Seen
from qconf.evaluation.holdout import Holdout
from qconf.evaluation.period import Period
from qconf.strategies import Proposal, propose
from qconf.strategies.plain import undistinguished
from tests.qconf.small import DAY, LONG, SHORT, WIDE, period, site, three, training, two


def held_out(jobs=600, base=None):
    here = period(base or two(), jobs=jobs, span=9 * DAY)
    return Holdout.of(here, 6 * DAY, 9 * DAY, 2 * DAY)


def test_the_warm_up_fills_the_machine_and_is_not_counted():
    here = held_out()
    submit = here.period.workload.submit
    assert submit.min() >= 4 * DAY
    assert (here.counted == (submit >= 6 * DAY)).all()
    summary = here.evaluate(Proposal(here.period.base))
    schedule = here.period.simulate(here.period.base)
    assert summary["mean_wait"] == pytest.approx(schedule.wait[here.counted].mean())


def test_a_resample_has_whole_test_days_in_another_order():
    here = held_out()
    resample = here.resample(np.random.default_rng(7))
    assert (resample.start, resample.end, resample.warmup, resample.days) == (6 * DAY, 9 * DAY, 2 * DAY, 3)
    submit = resample.period.workload.submit
    assert (np.diff(submit) >= 0).all()
    assert submit.min() >= 4 * DAY
    assert submit.max() < 9 * DAY
    assert resample.counted.sum() == (submit >= 6 * DAY).sum() < len(submit)

    def of(period, day):
        w = period.workload
        rows = w.submit // DAY == day
        return [column[rows].tolist() for column in (w.submit - day * DAY, w.cores, w.runtime, w.walltime, w.queue)]

    tested = [of(here.period, day) for day in (6, 7, 8)]
    found = [tested.index(of(resample.period, day)) for day in range(4, 9)]  # raises where a day is none of them
    assert len(set(found)) > 1
    assert (here.resample(np.random.default_rng(7)).period.workload.submit == submit).all()


def test_days_that_are_not_whole_are_not_resampled():
    here = Holdout.of(period(two(), jobs=600, span=9 * DAY), 6 * DAY, 8 * DAY + DAY // 2, DAY // 3)
    resample = here.resample(np.random.default_rng(1))
    assert (here.days, resample.end, resample.warmup) == (2, 8 * DAY, 0)
    assert resample.counted.all()


def summaries():
    here = held_out()
    good = here.evaluate(Proposal(here.period.base.with_partitions([16, 48])))
    bad = here.evaluate(Proposal(here.period.base.with_partitions([48, 16])))
    return good, bad


def broken(guards, before, after):
    return list(guards.broken(GuardValues.of(before), GuardValues.of(after), 30).values())


def test_broken_guard_rails_are_named():
    good, bad = summaries()
    texts = broken(GuardRails(), good, bad)
    assert any(text.startswith("95 % wait of queue long grows") for text in texts)
    assert any(text.startswith("longest wait grows") for text in texts)
    assert not broken(GuardRails(), good, good)
    assert not broken(GuardRails(factor=1e9, utilization=1), good, bad)
    assert not broken(GuardRails(factor=1, grace=10**9, utilization=1), good, bad)  # by the grace in any case
    (text,) = broken(GuardRails(factor=1e9, utilization=-1), good, bad)
    assert text.startswith("utilization falls from")


def test_waits_may_grow_to_what_the_site_has_seen_in_any_known_month():
    """A quiet test period after a month of long waits: what is well below these is no reason to keep."""
    hour = 3600.0
    before, after = GuardValues({"a": hour}, 7.9 * hour, 0.8), GuardValues({"a": 5 * hour}, 16.7 * hour, 0.8)
    assert set(GuardRails().broken(before, after, 30)) == {"95 % wait of queue a", "longest wait"}
    assert not GuardRails().broken(before, after, 30, Seen({"a": 6 * hour}, 91 * hour))
    assert set(GuardRails().broken(before, after, 30, Seen({"a": 6 * hour}, 16 * hour))) == {"longest wait"}


@pytest.mark.parametrize(("days", "fall", "breaks"), [(30, 0.006, True), (30, 0.004, False), (10, 0.014, False)])
@pytest.mark.parametrize("factor", [1, 3])
def test_utilization_may_fall_by_half_a_point_in_thirty_days(days, fall, breaks, factor):
    """In fewer days it may fall by as much work; in more days it may not fall by more."""
    before, after = GuardValues({}, 0.0, 0.8), GuardValues({}, 0.0, 0.8 - fall)
    assert bool(GuardRails().broken(before, after, days)) is breaks
    assert bool(GuardRails().broken(before, after, days * factor)) is (breaks or (days == 10 and factor == 3))


def test_violations_of_fixed_are_found():
    base = two(fixed=("queues.long", "order", "queues.*.max_user_run"))
    long_only = base.queues[1].model_copy(update={"priority": 3.0})
    for config, violated in (
        (base, []),
        (base.with_partitions([20, 44]), ["queues.long.partition"]),
        (base.replace(order="lxf"), ["order"]),
        (base.replace(queues=(base.queues[0], long_only)), ["queues.long.priority"]),
    ):
        assert fixed_violations(base, config) == violated
    assert fixed_text(["mode"], base.names) == "changes mode, which is fixed"
    paths = ["order", "queues.short.cores", *(f"queues.{name}.priority" for name in base.names)]
    said = "changes order, queues.short.cores, queues.*.priority, which are fixed"
    assert fixed_text(paths, base.names) == said


def test_a_fixed_reservation_delay_keeps_its_value_and_its_effect():
    base = two(mode="shared", reserve_after=7200, fixed=("reserve_after",))
    assert fixed_violations(base, base.replace(reserve_after=3600)) == ["reserve_after"]
    divided = base.with_partitions([40, 24])
    assert (divided.reserve_after, divided.reservation_delay) == (7200, 0)
    assert fixed_violations(base, divided) == ["reserve_after"]
    assert fixed_violations(base, base.replace(backfill=False)) == ["reserve_after"]
    assert fixed_violations(divided, base) == []
    assert propose("shared", training(divided)).config.reserve_after == 7200
    free = base.replace(fixed=())
    assert free.with_partitions([40, 24]).reserve_after == 0
    dormant = two(reserve_after=7200)
    assert propose("shared", training(dormant)).config.reserve_after == 0
    assert propose("shared", training(free)).config.reserve_after == 7200
    assert propose("fcfs-easy", training(free)).config.reserve_after == 0


def test_a_fixed_field_that_loses_its_effect_is_changed():
    pool = {"cores": 16, "threshold": 0.25}
    pooled = site(SHORT, {**LONG, "partition": 24}, mode="hybrid", pool=pool, fixed=("pool.threshold", "*.cores"))
    assert fixed_violations(pooled, pooled) == []
    assert "pool.threshold" in fixed_violations(pooled, pooled.replace(pool={**pool, "threshold": 0.5}))
    alone = pooled.with_partitions([24, 40])
    assert {"pool.cores", "pool.threshold"} <= set(fixed_violations(pooled, alone))
    sized = two(fixed=("queues.long.partition",))
    assert fixed_violations(sized, sized.replace(mode="shared")) == ["queues.long.partition"]
    ranked = two(mode="shared", fixed=("queues.*.priority",))
    formula = "eligible_time / max(walltime, 1)"
    assert fixed_violations(ranked, ranked.replace(order=formula)) == ["queues.short.priority", "queues.long.priority"]
    assert fixed_violations(ranked, ranked.replace(order=f"queue_priority * {formula}")) == []
    twin = ranked.with_queues([ranked.queues[0], ranked.queues[1].model_copy(update={"name": "other"})])
    assert fixed_violations(ranked, twin.replace(order=formula)) == ["queues.short.priority", "queues.long.priority"]
    reserved = three(fixed=("queues.wide",))
    assert fixed_violations(reserved, reserved.replace(order=formula)) == []  # goes by submission in any order
    shared = reserved.replace(mode="shared")
    # On a shared machine the reserved queue has no list of its own.
    assert fixed_violations(shared, shared.replace(order=formula)) == ["queues.wide.priority"]
    half = two(fixed=("pool.threshold",)).replace(
        mode="hybrid", queues=[queue.model_copy(update={"partition": 24}) for queue in two().queues],
        pool={"cores": 16, "reference": "long"},
    )  # fmt: skip
    assert fixed_violations(half, half.replace(pool={"cores": 16, "threshold": half.threshold})) == []
    assert fixed_violations(half, half.replace(pool={"cores": 16, "threshold": 77.0})) == ["pool.threshold"]


def test_a_removed_queue_keeps_the_fields_that_its_successors_have():
    base = two(fixed=("queues.*.max_user_run",))
    both = base.queues[1].model_copy(update={"partition": 64})
    assert fixed_violations(base, base.with_queues([both])) == []
    limited = base.with_queues([both.model_copy(update={"max_user_run": 2})])
    assert {*fixed_violations(base, limited)} == {f"queues.{name}.max_user_run" for name in ("short", "long")}
    named = two(fixed=("queues.short",))
    assert "queues.short.name" in fixed_violations(named, named.with_queues([both]))


def test_a_second_queue_for_the_same_jobs_changes_a_fixed_limit():
    base = site({**SHORT, "partition": 0, "max_user_run": 3}, mode="shared", fixed=("queues.*.max_user_run",))
    (short,) = base.queues
    parts = [
        short.model_copy(update={"name": name, "walltime": span})
        for name, span in (("short", (0, 3600)), ("longer", (3600, 7200)))
    ]
    assert fixed_violations(base, base.with_queues(parts)) == ["queues.short.max_user_run"]
    other = {**LONG, "partition": 0, "cores": (1, 16)}
    mixed = site({**SHORT, "partition": 0, "max_run": 5}, other, mode="shared", fixed=("queues.*.max_run",))
    halves = [mixed.queues[1].model_copy(update={"name": "long", "walltime": (18000, 36000)})]
    halves += [mixed.queues[1].model_copy(update={"name": "new", "walltime": (0, 18000)})]
    assert fixed_violations(mixed, mixed.with_queues([mixed.queues[0], *halves])) == []  # long took these jobs before
    free = base.with_queues([short.model_copy(update={"max_user_run": None})])
    assert (
        fixed_violations(free, free.with_queues([part.model_copy(update={"max_user_run": None}) for part in parts]))
        == []
    )


@pytest.mark.parametrize(
    ("changes", "reach"),
    [
        ({"mode": "partitioned", "partitions": (24, 40)}, None),
        ({"mode": "partitioned", "partitions": (50, 14)}, 14),
        ({"mode": "hybrid", "partitions": (20, 20), "pool": {"cores": 24}}, None),
        ({"mode": "hybrid", "partitions": (44, 10), "pool": {"cores": 10}}, 10),
        ({"mode": "hybrid", "partitions": (44, 10), "pool": {"cores": 10, "placement": "combined"}}, None),
        ({"mode": "shared", "max_run_cores": 16}, None),
        ({"mode": "shared", "max_run_cores": 15}, 15),
        ({"mode": "shared", "max_user_cores": 12}, 12),
    ],
)
def test_jobs_that_would_never_start_are_found(changes, reach):
    base = site({**SHORT, "partition": 0}, {**LONG, "partition": 0}, {**WIDE, "partition": 0}, mode="shared")
    sizes = changes.get("partitions", (0, 0))
    limits = {name: value for name, value in changes.items() if name.startswith("max")}
    short, long, wide = base.queues  # the last has reservations
    long = long.model_copy(update={"partition": sizes[1], **limits})
    queues = (short.model_copy(update={"partition": sizes[0]}), long, wide)
    other = base.replace(mode=changes["mode"], queues=queues, pool=changes.get("pool"))
    expected = [] if reach is None else [f"jobs of long wider than {reach} cores would never start"]
    assert never_start(base, other) == expected
    assert never_start(other, other) == []  # only jobs that start under the base count


def test_a_job_that_stays_in_its_queue_needs_no_other_queue_that_can_start_it():
    wide = {"cores": (1, 64)}
    base = site({**SHORT, **wide, "partition": 24}, {**LONG, **wide, "walltime": (0, 36000), "partition": 40})
    assert never_start(base, base) == []
    assert never_start(base, base.with_partitions([25, 39])) == ["jobs of long wider than 39 cores would never start"]
    (merged,) = (base.queues[1].model_copy(update={"partition": 64, "max_run_cores": 30}),)
    assert never_start(base, base.with_queues([merged])) == ["jobs of long wider than 30 cores would never start"]


def test_the_summary_is_by_the_queues_of_the_base():
    here = held_out(base=three())
    other = undistinguished(here.period.base, "lxf")
    other = other.with_queues([queue.model_copy(update={"name": f"new-{queue.name}"}) for queue in other.queues[::-1]])
    summary = here.evaluate(Proposal(other))
    wait, queue = here.period.simulate(other).wait[here.counted], here.period.workload.queue[here.counted]
    expected = {name: wait[queue == i].mean() for i, name in enumerate(("short", "long", "wide"))}
    assert {name: values["mean_wait"] for name, values in summary.queues.items()} == pytest.approx(expected)


def test_a_proposal_with_fewer_queues_is_summarised_by_those_of_the_base():
    here = held_out()
    base = here.period.base
    one = base.with_queues([base.queues[1].model_copy(update={"partition": 64})])
    summary = here.evaluate(Proposal(one))
    assert set(summary.queues) == {"short", "long"}
    assert np.isfinite(summary["mean_wait"])


def test_what_fills_the_machine_by_the_log_is_not_counted():
    jobs = Workload([0, DAY - 9, DAY, 2 * DAY], [2] * 4, [DAY + 60] * 4, [2 * DAY] * 4)
    whole = Period(jobs, two(), started=np.array([5, DAY + 30, DAY, 2 * DAY]))
    held = Holdout(whole.beginning(DAY, 3 * DAY, DAY), DAY, 3 * DAY, DAY)
    assert held.period.workload.submit.tolist() == [0, DAY, DAY + 30, 2 * DAY]
    assert held.counted.tolist() == [False, True, False, True]
    assert held.jobs.workload.submit.tolist() == [DAY, 2 * DAY]
    assert set(held.resample(np.random.default_rng(1)).period.workload.submit % DAY) == {0}
