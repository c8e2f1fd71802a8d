import numpy as np
import pytest

from parsim import metrics
from parsim.metrics import bounded_slowdown
from qconf.strategies import Proposal
from qconf.strategies.fcfs_easy import undistinguished
from qconf.tuning.judging import Guards, Trial, touched
from qconf.tuning.month import Month
from tests.qconf.tuning.small import DAY, month, three, two


def trial(jobs=600, base=None):
    here = month(base or two(), jobs=jobs, span=9 * DAY)
    return Trial.of(here, 6 * DAY, 9 * DAY, 2 * DAY)


def test_the_warm_up_fills_the_machine_and_is_not_counted():
    here = trial()
    submit = here.month.workload.submit
    assert submit.min() >= 4 * DAY
    assert (here.counted == (submit >= 6 * DAY)).all()
    schedule, summary = here.run(Proposal(here.month.base))
    assert summary["mean_wait"] == pytest.approx(schedule.wait[here.counted].mean())


def test_a_gain_is_the_share_by_which_the_mean_falls():
    here = trial()
    before, _ = here.run(Proposal(here.month.base.with_partitions([8, 56])))
    after, _ = here.run(Proposal(undistinguished(here.month.base, "fcfs")))
    gain = here.gain(before, after, "mean-wait", 0)
    means = [schedule.wait[here.counted].mean() for schedule in (before, after)]
    assert gain.gain == pytest.approx(1 - means[1] / means[0])
    assert gain.low <= gain.gain <= gain.high
    slower = here.gain(before, after, "bounded-slowdown", 0)
    slow = [bounded_slowdown(schedule)[here.counted].mean() for schedule in (before, after)]
    assert slower.gain == pytest.approx(1 - slow[1] / slow[0])
    mixed = here.gain(before, after, "mixed", 0)
    assert min(gain.gain, slower.gain) - 0.2 < mixed.gain < max(gain.gain, slower.gain) + 0.2


def test_against_itself_nothing_is_gained():
    here = trial()
    schedule, _ = here.run(Proposal(here.month.base))
    gain = here.gain(schedule, schedule, "mean-wait", 3)
    assert (gain.gain, gain.low, gain.high) == (0, 0, 0)


def test_the_interval_depends_on_the_seed_only():
    here = trial()
    a, _ = here.run(Proposal(here.month.base))
    b, _ = here.run(Proposal(here.month.base.with_partitions([10, 54])))
    assert here.gain(a, b, "mean-wait", 1) == here.gain(a, b, "mean-wait", 1)


def test_where_there_was_nothing_to_wait_for_a_wait_is_a_loss():
    here = trial(jobs=20)
    none, _ = here.run(Proposal(undistinguished(here.month.base, "fcfs")))
    if none.wait[here.counted].sum() == 0:
        assert here.gain(none, none, "mean-wait", 0).gain == 0


def summaries():
    here = trial()
    _, good = here.run(Proposal(here.month.base.with_partitions([16, 48])))
    _, bad = here.run(Proposal(here.month.base.with_partitions([48, 16])))
    return good, bad


def test_guards_name_what_gets_worse():
    good, bad = summaries()
    said = list(Guards().broken(good, bad))
    assert any(line.startswith("95 % wait of queue long grows") for line in said)
    assert any(line.startswith("longest wait grows") for line in said)
    assert not list(Guards().broken(good, good))
    assert not list(Guards(factor=1e9, utilization=1).broken(good, bad))


def test_guards_forgive_what_is_short():
    good, bad = summaries()
    assert not list(Guards(factor=1, grace=10**9, utilization=1).broken(good, bad))
    assert any("utilization" in line for line in Guards(factor=1e9, utilization=-1).broken(good, bad))


def test_a_change_of_what_is_fixed_is_found():
    base = two(fixed=("queues.long", "order", "queues.*.max_user_run"))
    long_only = base.queues[1].model_copy(update={"priority": 3.0})
    assert touched(base, base) == []
    assert touched(base, base.with_partitions([20, 44])) == ["queues.long.partition"]
    assert touched(base, base.replace(order="lxf")) == ["order"]
    assert touched(base, base.replace(queues=(base.queues[0], long_only))) == ["queues.long.priority"]


def test_a_queue_that_is_gone_keeps_what_its_heirs_have():
    base = two(fixed=("queues.*.max_user_run",))
    both = base.queues[1].model_copy(update={"partition": 64})
    assert touched(base, base.with_queues([both])) == []
    limited = both.model_copy(update={"max_user_run": 2})
    assert set(touched(base, base.with_queues([limited]))) == {
        "queues.short.max_user_run",
        "queues.long.max_user_run",
    }
    named = two(fixed=("queues.short",))
    assert "queues.short.name" in touched(named, named.with_queues([both]))


def test_queues_of_the_base_are_what_is_summed_up():
    here = trial(base=three())
    _, summary = here.run(Proposal(undistinguished(here.month.base, "lxf")))
    assert set(summary.queues) == {"short", "long", "wide"}
    assert isinstance(summary, metrics.Summary)


def test_a_month_of_other_queues_is_judged_by_the_base():
    here = trial()
    base = here.month.base
    one = base.with_queues([base.queues[1].model_copy(update={"partition": 64})])
    _, summary = here.run(Proposal(one))
    assert set(summary.queues) == {"short", "long"}
    assert isinstance(here.month, Month)
    assert np.isfinite(summary["mean_wait"])
