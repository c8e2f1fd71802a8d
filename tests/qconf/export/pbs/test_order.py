import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from parsim.model.formula import parse as parse_formula
from qconf.config import MachineConfig, PoolConfig, QueueConfig, SiteConfig
from qconf.export.pbs.order import formula
from qconf.export.priorities import scale


def site(priorities, starvations=None, *, order="fcfs", mode="shared", **pool):
    starvations = starvations or [None] * len(priorities)
    partition = {} if mode == "shared" else {"partition": 10}
    queues = [
        QueueConfig(name=f"q{i}", cores=(1, 10), priority=p, starvation=s, **partition)
        for i, (p, s) in enumerate(zip(priorities, starvations, strict=True))
    ]
    return SiteConfig(
        machine=MachineConfig(cores=10 * len(priorities) + (10 if pool else 0)),
        mode=mode,
        order=order,
        queues=queues,
        pool=PoolConfig(cores=10, **pool) if pool else None,
    )


def value(text, *, queue_priority, eligible_time, walltime, ncpus):
    names = {"max": max, "log": math.log, "queue_priority": queue_priority, "eligible_time": eligible_time}
    held = 0 if text is None else eval(text, {"__builtins__": {}}, {**names, "walltime": walltime, "ncpus": ncpus})
    return float(np.float32(held))  # PBS keeps it as a float


ORDER_KEYS = {
    "fcfs": lambda wait, w, c: 0,
    "sjf": lambda wait, w, c: -w,
    "ljf": lambda wait, w, c: w,
    "lxf": lambda wait, w, c: Fraction(wait + w, w),
    "wfp3": lambda wait, w, c: Fraction(wait, w) ** 3 * c,
}

TIES = {"fcfs": 0, "sjf": 2e-3, "ljf": 2e-3, "lxf": 2e-3, "wfp3": 6e-3}

jobs = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 20000)),
    min_size=2,
    max_size=6,
)


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 149).map(float), min_size=3, max_size=3, unique=True) | st.just([7.0, 7.0, 7.0]),
    st.lists(st.none() | st.integers(1, 10**6), min_size=3, max_size=3),
    st.sampled_from(sorted(ORDER_KEYS)),
    jobs,
)
def test_formula_sorts_like_the_simulator_on_a_shared_machine(priorities, starvations, order, jobs):
    if len(set(priorities)) == 1:
        starvations = [starvations[0]] * 3
    config = site(priorities, starvations, order=order)
    text, notes = formula(config, scale(config.queues))
    assert notes == []
    if text is not None:
        parse_formula(text)

    def mine(job):
        q, wait, w, c = job
        return value(text, queue_priority=int(priorities[q]), eligible_time=wait, walltime=w, ncpus=c)

    def theirs(job):
        q, wait, w, c = job
        starving = starvations[q] is not None and wait >= starvations[q]
        return (1, wait, 0) if starving else (0, priorities[q], ORDER_KEYS[order](wait, w, c))

    for a in jobs:
        for b in jobs:
            if theirs(a) > theirs(b):
                assert mine(a) >= mine(b)
                # a float has 24 binary digits: of what starves 1e-7 is equal, of one priority 0.1 % (of a cube 0.3 %)
                one, other = theirs(a), theirs(b)
                starving = one[0] == other[0] == 1 and one[1] - other[1] <= 1e-7 * one[1]
                near = one[:2] == other[:2] and abs(one[2] - other[2]) <= TIES[order] * max(abs(one[2]), TIES[order])
                assert starving or near or mine(a) > mine(b)


def test_the_servers_own_order_is_no_formula():
    assert formula(site([3.0, 3.0]), scale(site([3.0, 3.0]).queues)) == (None, [])


def test_pool_goes_by_priority_factor_and_partitions_by_their_order():
    config = site([40.0, 50.0], [86400, None], order="sjf", mode="hybrid", entry="move")
    text, _ = formula(config, scale(config.queues))
    parse_formula(text)
    pooled = value(text, queue_priority=-40, eligible_time=100, walltime=50, ncpus=1)
    assert pooled == 80
    assert value(text, queue_priority=-50, eligible_time=90000, walltime=90000, ncpus=1) == 50
    assert value(text, queue_priority=50, eligible_time=90000, walltime=60, ncpus=1) == -60
    assert value(text, queue_priority=40, eligible_time=90000, walltime=60, ncpus=1) > 1e15


def test_starving_first_in_the_pool():
    config = site([40.0, 50.0], [86400, 86400], mode="hybrid", entry="move", starving_first=True)
    text, _ = formula(config, scale(config.queues))
    assert value(text, queue_priority=-40, eligible_time=86400, walltime=5, ncpus=1) > 1e15


def test_reserved_queue_goes_first():
    config = site([40.0, 50.0, 60.0], mode="partitioned", order="lxf")
    queues = [q.model_copy(update={"partition": 15}) for q in config.queues[:2]]
    reserved = config.queues[2].model_copy(update={"partition": 0, "reservation": True})
    config = config.with_queues([*queues, reserved])
    text, notes = formula(config, scale(config.queues))
    assert notes == []
    first = value(text, queue_priority=60, eligible_time=0, walltime=5, ncpus=1)
    assert first > value(text, queue_priority=50, eligible_time=10**6, walltime=1, ncpus=1)
    same = config.with_queues([*queues, reserved.model_copy(update={"priority": 50.0})])
    assert "does not go before" in formula(same, scale(same.queues))[1][0]


def test_own_formula_sees_its_own_priorities():
    config = site([0.5, 2.5], order="queue_priority * eligible_time / max(walltime, 1)")
    priorities = scale(config.queues)
    assert priorities.values == {"q0": 1, "q1": 5}
    text, notes = formula(config, priorities)
    assert notes == []
    assert text == "(queue_priority * 1 / 2) * eligible_time / max(walltime, 1)"


def test_starvation_periods_of_queues_with_one_priority():
    config = site([3.0, 3.0], [3600, 7200])
    text, notes = formula(config, scale(config.queues))
    assert text == "1e28 * (1 + eligible_time) if eligible_time >= 3600 else 0"
    assert "cannot tell apart" in notes[0]
