"""Who wins and who loses: groups of jobs, their numbers, and the rule by which one is worse."""

import json

import numpy as np
import pytest

from parsim import Workload, simulate
from parsim.model.schedule import Schedule
from qconf.config import MachineConfig, QOSConfig, QueueConfig, SiteConfig
from qconf.evaluation.impact import GROWTH, Group, Impact, impact
from qconf.evaluation.outcome import Outcome
from qconf.evaluation.period import Period
from qconf.text import as_json
from tests.parsim.schedules import schedule
from tests.qconf.small import period, two


def group(kind="queue", name="small", jobs=100, **changes):
    """A group whose waits are an hour and whose slowdown is 10, but for the changes after."""
    before = dict.fromkeys(GROWTH, 3600.0) | {"mean_bounded_slowdown": 10.0}
    return Group(kind, name, jobs, 1e6, 0.5, before, before | changes)


def outcomes(waits, *, cores=None, user=None, queue=None, counted=None, base=None):
    """Jobs of 100 s, one every second; `waits` are those before and those after."""
    base = base or SiteConfig(machine=MachineConfig(cores=10**6), queues=(QueueConfig(name="a"), QueueConfig(name="b")))
    n = len(waits[0])
    w = Workload(
        np.arange(n), np.ones(n) if cores is None else cores, np.full(n, 100), np.full(n, 100), queue=queue, user=user
    )
    mask = None if counted is None else np.array(counted)
    return [Outcome(Period(w, base), schedule(w, base.system(), w.submit + np.array(each)), mask) for each in waits]


def named(found, kind):
    return {each.name: each for each in found.of(kind)}


@pytest.mark.parametrize(
    ("changes", "grown"),
    [
        ({}, ()),
        ({"mean_wait": 3959.0}, ()),
        ({"mean_wait": 3961.0}, ("mean_wait",)),
        ({"median_wait": 4000.0}, ("median_wait",)),
        ({"p95_wait": 4000.0}, ("p95_wait",)),
        ({"max_wait": 7100.0}, ()),
        ({"max_wait": 7201.0}, ("max_wait",)),
        ({"mean_bounded_slowdown": 11.0}, ()),
        ({"mean_bounded_slowdown": 11.1}, ("mean_bounded_slowdown",)),
        ({"mean_wait": 0.0, "p95_wait": 9000.0, "max_wait": 9000.0}, ("p95_wait", "max_wait")),
    ],
)
def test_a_group_is_worse_where_a_metric_grows_by_a_tenth_and_some_minutes(changes, grown):
    assert group(**changes).grown == grown
    assert group(**changes).worse == bool(grown)


def test_a_few_minutes_are_no_harm_where_there_was_no_wait():
    before = dict.fromkeys(GROWTH, 0.0) | {"mean_bounded_slowdown": 1.0}
    assert not Group("queue", "a", 5, 1.0, 1.0, before, before | {"mean_wait": 300.0, "max_wait": 3600.0}).worse
    assert Group("queue", "a", 5, 1.0, 1.0, before, before | {"mean_wait": 301.0}).worse


def test_losers_come_by_the_hours_lost_times_jobs():
    small, large = group(jobs=1000, mean_wait=4000.0), group(name="large", jobs=1, mean_wait=40000.0)
    tail = group(name="tail", mean_wait=0.0, p95_wait=9000.0)
    wide = group("size", "jobs of 9 cores", jobs=10**6, mean_wait=9000.0)
    slow = group(name="slow", mean_bounded_slowdown=90.0)
    found = Impact((slow, wide, tail, group(name="same"), large, small))
    assert [each.name for each in found.losers] == ["jobs of 9 cores", "tail", "small", "large", "slow"]
    assert (small.harm, large.harm, slow.harm) == (400_000.0, 36_400.0, 0.0)


def test_a_longest_wait_of_many_jobs_is_more_harm_than_a_longer_mean_of_few():
    """A queue of 526 jobs waits up to 118 in place of 41 h, its mean falls; 51 jobs wait 69 % longer."""
    before = dict.fromkeys(GROWTH, 4 * 3600.0) | {"max_wait": 41 * 3600.0}
    after = before | {"mean_wait": 3 * 3600.0, "max_wait": 118 * 3600.0}
    many = Group("queue", "many", 526, 1e6, 0.5, before, after)
    few = group(name="few", jobs=51, mean_wait=1.69 * 3600)
    assert [each.name for each in Impact((few, many)).losers] == ["many", "few"]
    assert (many.worst, many.harm) == ("max_wait", 526 * 77 * 3600.0)


def test_a_qos_is_charged_by_its_usage_factor_and_the_weights_of_queues():
    queues = (QueueConfig(name="a"), QueueConfig(name="b", billing="CPU=3.0"))
    qos = (QOSConfig(name="half", usage_factor=0.5), QOSConfig(name="full"))
    base = SiteConfig(machine=MachineConfig(cores=64), queues=queues, qos=qos)
    w = Workload(
        [0, 1, 2],
        [4, 2, 1],
        [100] * 3,
        [100] * 3,
        queue=[0, 1, 0],
        user=[0] * 3,
        qos=[0, 0, 1],
        qos_names=("half", "full"),
    )
    found = impact(*[Outcome(Period(w, base), simulate(w, base.system()), None) for _ in range(2)])
    assert {each.name: each.charged for each in found.of("qos")} == {"QOS half": (4 + 3 * 2) * 50.0, "QOS full": 100.0}
    assert {each.charged for each in found.of("queue")} == {None}


def test_what_is_recorded_is_json():
    (found,) = json.loads(as_json(Impact((group(mean_wait=9000.0),)).record()))
    assert found["grown"] == ["mean_wait"]
    assert (found["kind"], found["name"], found["jobs"], found["core_seconds"]) == ("queue", "small", 100, 1e6)
    assert (found["before"]["mean_wait"], found["after"]["mean_wait"]) == (3600.0, 9000.0)


def test_numbers_of_the_queues_computed_by_hand():
    counted = [True, True, True, False]
    before, after = outcomes(([0, 100, 900, 50], [0, 300, 900, 50]), queue=[0, 0, 1, 0], counted=counted)
    a, b = impact(before, after).of("queue")
    assert (a.name, a.jobs, a.core_seconds, a.share) == ("a", 2, 200.0, 2 / 3)
    # waits 0 and 100 of runs of 100 s, then 0 and 300
    assert a.before == pytest.approx(
        {"mean_wait": 50, "median_wait": 50, "p95_wait": 95, "max_wait": 100, "mean_bounded_slowdown": 1.5}
    )
    assert a.difference == pytest.approx(
        {"mean_wait": 100, "median_wait": 100, "p95_wait": 190, "max_wait": 200, "mean_bounded_slowdown": 1.0}
    )
    assert set(b.difference.values()) == {0.0}
    assert b.jobs == 1


def test_queues_agree_with_the_summary():
    jobs = period(two())
    before, after = (Outcome(jobs, jobs.simulate(two(order=order))) for order in ("fcfs", "lxf"))
    found = impact(before, after)
    for mine in found.of("queue"):
        theirs = after.summary.queues[mine.name]
        assert mine.jobs == theirs["jobs"]
        assert {key: theirs[key] for key in GROWTH} == pytest.approx(dict(mine.after))
    assert not found.of("user")  # each of the five has about a fifth of the core-hours
    for kind in ("queue", "size"):
        assert sum(each.jobs for each in found.of(kind)) == len(jobs)
        assert sum(each.share for each in found.of(kind)) == pytest.approx(1)


def sizes(machine, cores):
    base = SiteConfig(machine=machine, queues=(QueueConfig(name="a"),))
    found = impact(*outcomes(([0] * len(cores),) * 2, cores=cores, base=base))
    return [(each.name, each.jobs) for each in found.of("size")]


def test_size_classes_go_in_powers_from_a_node_to_the_machine():
    machine = MachineConfig(cores=35232, cores_per_node=24)
    assert sizes(machine, [1, 2, 24, 25, 192, 193, 1537, 35232]) == [
        ("jobs of 1 core", 1),
        ("jobs of 2 to 24 cores", 2),
        ("jobs of 25 to 192 cores", 2),
        ("jobs of 193 to 1536 cores", 1),
        ("jobs of 1537 to 12288 cores", 1),
        ("jobs of 12289 to 35232 cores", 1),
    ]
    assert sizes(MachineConfig(cores=128), [1, 3, 128]) == [
        ("jobs of 1 core", 1),
        ("jobs of 2 to 4 cores", 1),
        ("jobs of 65 to 128 cores", 1),
    ]
    assert sizes(MachineConfig(cores=2), [1, 2]) == [("jobs of 1 core", 1), ("jobs of 2 cores", 1)]


def test_size_classes_of_whole_nodes_are_whole_nodes():
    machine = MachineConfig(cores=96, cores_per_node=24, whole_nodes=True)
    assert sizes(machine, [24, 48, 96]) == [
        ("jobs of 24 cores", 1),
        ("jobs of 48 cores", 1),
        ("jobs of 72 to 96 cores", 1),
    ]
    assert sizes(machine, [24, 24]) == []  # all in one class


def test_user_classes_go_by_shares_of_the_core_hours():
    # core-seconds: user 7 has 800, user 3 100 in two jobs, users 1 and 0 5 and 4 of 909; one job has no user
    cores = [800, 60, 40, 5, 4, 5000]
    before, after = outcomes(([0] * 6, [0, 900, 1100, 0, 0, 0]), cores=cores, user=[7, 3, 3, 1, 0, -1])
    found = named(impact(before, after), "user")
    assert {name: each.jobs for name, each in found.items()} == {
        "2 users with over 10 % of the core-hours each": 3,
        "2 users with up to 1 % of the core-hours each": 2,
    }
    assert found["2 users with over 10 % of the core-hours each"].worse
    assert not impact(*outcomes(([0, 0], [0, 0]))).of("user")  # the log names no user
    assert not impact(*outcomes(([0, 0], [0, 0]), user=[5, 5])).of("user")  # one user is the whole


def test_outcomes_of_other_jobs_are_refused():
    (before, _), (_, after) = outcomes(([0, 0],) * 2), outcomes(([0, 0],) * 2, cores=[1, 2])
    with pytest.raises(ValueError, match="different jobs"):
        impact(before, after)
    with pytest.raises(ValueError, match="different jobs"):
        impact(before, outcomes(([0],) * 2)[0])


def test_without_jobs_there_is_no_group():
    base = two()
    none = period(base, jobs=0)
    empty = Outcome(none, simulate(none.workload, base.system()))
    assert isinstance(empty.schedule, Schedule)
    assert impact(empty, empty).groups == ()
