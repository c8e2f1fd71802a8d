"""Simulations that begin with a state: jobs that run already, and cores that are out of service."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from parsim import UNSTARTED, Queue, State, System, Window, Workload, explain, plan, simulate
from parsim.verify import check_schedule
from tests import fuzz, generate

DISCIPLINES = [name for name in fuzz.TESTED if name.startswith(fuzz.BEGUN)]


def test_head_jobs_of_queues_go_round_a_downtime():
    queues = [Queue("a"), Queue("b")]
    jobs = Workload([0, 0, 0], [8, 4, 2], [30, 20, 5], [30, 20, 5], queue=[0, 1, 1])
    down = State(0, [UNSTARTED] * 3, windows=[Window(10, 50, 4)])
    # Job 0 is planned at 50. Job 1 runs into the downtime, and leaves two cores idle, as a node has.
    assert simulate(jobs, System(10, queues, reserve="queues", cores_per_node=2), down).start.tolist() == [50, 0, 0]


@pytest.mark.parametrize(
    ("discipline", "seed"),
    [
        ("state:entering-all", 3911),  # a job that is kept out starves: another has waited for its reservation by then
        ("state:period-alike", 1186),  # the last start of all is at a multiple of the period
    ],
)
def test_rare_cases(discipline, seed):
    assert not fuzz.differs(discipline, seed)


def one(submit, cores, walltime, state, *, machine=10, runtime=None, **system):
    jobs = Workload(submit, cores, walltime if runtime is None else runtime, walltime)
    return simulate(jobs, System(machine, **system), state).start.tolist()


def test_a_running_job_keeps_its_cores_until_it_ends():
    assert one([0, 5], [8, 4], [30, 10], State(10, [2, UNSTARTED])) == [2, 32]


def test_a_job_that_ended_before_plays_no_part():
    assert one([0, 5], [8, 4], [6, 10], State(10, [2, UNSTARTED])) == [2, 10]


def test_nothing_is_decided_before_the_begin():
    assert one([0, 1], [4, 4], [5, 5], State(7, [UNSTARTED] * 2)) == [7, 7]


@pytest.mark.parametrize("reserve", ["cores", "nodes"])
def test_no_job_starts_that_would_run_into_a_downtime(reserve):
    down = State(0, [UNSTARTED] * 2, windows=[Window(20, 50)])
    assert one([0, 0], [4, 4], [30, 20], down, reserve=reserve) == [50, 0]


def test_a_downtime_that_is_not_known_yet_stops_no_job_that_runs():
    down = State(0, [UNSTARTED] * 2, windows=[Window(20, 50, known_from=20)])
    assert one([0, 21], [4, 4], [30, 5], down) == [0, 50]


def test_a_job_passes_one_that_waits_for_nodes_whose_return_is_unknown():
    # Job 0 needs what is down; it is passed over, and does not hold back job 1, which would end after it could start.
    down = State(0, [UNSTARTED] * 3, windows=[Window(0, 100, 4, known_end=False)])
    assert one([0, 0, 0], [10, 6, 6], [10, 90, 50], down) == [140, 0, 90]


def test_cores_that_come_later_are_a_window_before():
    later = State(0, [UNSTARTED] * 2, windows=[Window(0, 40, 6)])
    assert one([0, 0], [10, 4], [5, 5], later) == [40, 0]


def test_a_reservation_is_for_the_jobs_of_its_queue_alone():
    queues = [Queue("all"), Queue("course")]
    jobs = Workload([0, 0, 0], [10, 4, 4], [30, 10, 10], [30, 10, 10], queue=[0, 1, 1])
    state = State(0, [UNSTARTED] * 3, windows=[Window(5, 17, 4, queue=1)])
    # The first job of the course has the reservation from 5 on; the second does not fit in what is left of it.
    assert simulate(jobs, System(10, queues), state).start.tolist() == [17, 5, 47]


def test_running_nodes_are_as_named():
    queues = [Queue()]
    jobs = Workload([0, 0, 1], [2, 2, 2], [50, 9, 9], [50, 9, 9])
    down = Window(10, 90, nodes=[0])
    system = System(4, queues, reserve="nodes", cores_per_node=2)
    named = State(5, [0, 0, UNSTARTED], nodes={0: {1: 2}, 1: {0: 2}}, windows=[down])
    assert simulate(jobs, system, named).start.tolist() == [0, 0, 50]  # node 0 is about to go, node 1 is busy until 50


def windows_of_a_number(rng: Random) -> list[Window]:
    """Return windows that never take more than the 8 cores that there are: servers refuse more."""
    found: list[Window] = []
    for _ in range(6):
        one = Window(*sorted(rng.sample(range(40), 2)), rng.randint(1, 5))
        if all(sum(each.cores for each in [*found, one] if each.begin <= at < each.end) <= 8 for at in range(40)):
            found.append(one)
    return found


@pytest.mark.parametrize("cores_per_node", [1, 3])
def test_windows_of_a_number_take_as_many_cores_of_nodes_as_of_partitions(cores_per_node):
    """Jobs of one second see how many are left at each instant."""
    rng = Random(cores_per_node)
    jobs = Workload(range(40), [8] * 40, [1] * 40, [1] * 40)
    for _ in range(30):
        windows, wide = windows_of_a_number(rng), rng.randint(1, 8)
        narrow = replace(jobs, cores=np.full(40, wide))
        begun = State(0, [UNSTARTED] * 40, windows=windows)
        by_nodes = System(8, reserve="nodes", cores_per_node=cores_per_node)
        assert (simulate(narrow, System(8), begun).start == simulate(narrow, by_nodes, begun).start).all()


def test_two_windows_of_three_cores_take_six():
    down = State(0, [UNSTARTED] * 2, windows=[Window(0, 20, 3), Window(5, 30, 3), Window(0, 40, nodes=[7])])
    jobs = Workload([5, 5], [1, 2], [5, 5], [5, 5])
    for settings in ({}, {"reserve": "nodes"}):
        assert simulate(jobs, System(8, **settings), down).start.tolist() == [5, 20]


def test_a_state_of_a_schedule_names_the_nodes_of_its_jobs():
    """The second job is not on the first node alone, where it would begin now."""
    jobs = Workload([0, 0, 1, 2], [2, 3, 1, 3], [4, 9, 20, 5], [4, 9, 20, 5])
    system = System(6, reserve="nodes", cores_per_node=3)
    whole = simulate(jobs, system)
    begun = State.at(whole, 8)
    assert begun.nodes == {1: {0: 1, 1: 2}, 2: {1: 1}}
    assert simulate(jobs, system, begun).start.tolist() == whole.start.tolist()


@pytest.mark.parametrize("name", generate.TESTED)
def test_a_schedule_goes_on_from_any_of_its_states(name):
    for seed in range(10):
        rng = Random(seed)
        jobs, system = generate.DISCIPLINES[name](rng)
        if system.is_fair or (system.has_limits and system.formula is not None):
            continue  # what users used, and what limits held before, is forgotten
        if system.windows and system.reserve == "nothing":
            continue  # which has an effect once they are past (rule "nothing reserved")
        if any(throttle.max_queued for throttle in system.throttles):
            continue  # a state does not say when jobs entered (rule "admission to lists")
        whole = simulate(jobs, system)
        begin = rng.choice(jobs.submit.tolist())
        stops = whole.interruptions
        if ((stops.begin < begin) & (whole.end[stops.job] > begin)).any():
            continue
        again = simulate(jobs, system, State.at(whole, begin))
        if not np.isin(begin, np.concatenate((jobs.submit, whole.end))).all():
            continue
        assert again.start.tolist() == whole.start.tolist(), seed


def test_the_verifier_reports_a_start_into_a_downtime():
    jobs, system = Workload([0], [4], [30], [30]), System(10)
    state = State(0, [UNSTARTED], windows=[Window(20, 50)])
    wrong = simulate(jobs, system)
    assert wrong.start.tolist() == [0]
    assert check_schedule(jobs, system, wrong, state)
    assert not check_schedule(jobs, system, simulate(jobs, system, state), state)


@pytest.mark.parametrize("policy", ["planned-fcfs", "planned-sjf", "conservative", "dynp"])
def test_planners_go_round_a_downtime(policy):
    jobs = Workload([0, 0], [4, 4], [30, 20], [30, 20])
    down = State(0, [UNSTARTED] * 2, windows=[Window(20, 50)])
    assert plan(jobs, 10, policy, down).schedule.start.tolist() == [50, 0]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State(5, [0]), r"state: start: shape \(1,\), for 2 jobs"),
        (State(5, [-3, 9]), r"start\[0\]: -3 is before its submit 0"),
        (State(5, [0, 1]), r"start\[1\]: it runs at 5, but 6 cores are not idle"),
        (State(5, [9, 9], windows=[Window(4, 4)]), r"windows\[0\].end: 4 does not come after"),
        (State(5, [9, 9], windows=[Window(4, 6, 0)]), r"windows\[0\].cores: 0 is not"),
        (State(5, [9, 9], windows=[Window(4, 6, partition=1)]), r"windows\[0\].partition: 1, of 1"),
        (State(5, [9, 9], windows=[Window(4, 6, nodes=[10])]), r"windows\[0\].nodes: 10, of 10"),
        (State(5, [9, 9], windows=[Window(4, 6, queue=2)]), r"windows\[0\].queue: 2, of 1"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(state, message):
    with pytest.raises(ValueError, match=message):
        one([0, 0], [6, 6], [30, 30], state)


@pytest.mark.parametrize("name", [name for name in DISCIPLINES if "planned" not in name])
def test_each_start_after_a_state_has_its_reasons(name):
    case = fuzz.case(name, 1)
    workload, system, state = case.simulate.args
    schedule = case.simulate()
    for job in range(0, len(workload), 3):
        reasons = explain(workload, system, schedule, job, state=state)
        assert reasons[-1].end == schedule.start[job]
