"""Jobs of higher tiers preempt running ones: rules of "tiers and preemption", by schedules worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from parsim import UNSTARTED, Queue, State, System, Window, Workload, explain, metrics, naive, simulate
from parsim.metrics.nodes import node_use
from parsim.model.node_types import Chunk, NodeType
from parsim.model.schedule import Interruptions, Schedule
from parsim.model.throttles import Throttle
from parsim.verify import check_schedule
from tests import fuzz


def machine(*preempted: str, cores: int = 4, **more) -> System:
    """Return a machine with a queue of each tier from 0 up, the last of which nothing preempts."""
    queues = [Queue(f"q{tier}", tier=tier, preempted=kind) for tier, kind in enumerate((*preempted, "off"))]
    return System(cores, queues, **more)


def jobs(*rows: tuple[int, ...]) -> Workload:
    """Return a workload of (submit, cores, run time, walltime, queue)."""
    return Workload(*zip(*rows, strict=True))


def run(system: System, workload: Workload, state: State | None = None) -> Schedule:
    """Simulate with all three, which must agree."""
    found, slow = simulate(workload, system, state), run_slowly(system, workload, state)
    for name in ("submit", "start", "end"):
        assert getattr(found, name).tolist() == getattr(slow, name).tolist()
    assert stops(found) == stops(slow)
    assert check_schedule(workload, system, found, state) == []
    return found


def run_slowly(system: System, workload: Workload, state: State | None = None) -> Schedule:
    """Simulate with the reference simulator, which the verifier must agree with."""
    found = fuzz.schedule(workload, system.partition_names, naive.simulate(workload, system, state), system)
    assert check_schedule(workload, system, found, state) == []
    return found


def stops(schedule: Schedule) -> list[tuple[int, int, int]]:
    """Return job, begin and end of each interruption."""
    return [*zip(*(column.tolist() for column in schedule.interruptions[:3]), strict=True)]


ONE = jobs((0, 4, 50, 60, 0), (10, 2, 20, 30, 1))


@pytest.mark.parametrize("kind", ["suspend", "checkpoint"])
def test_a_job_goes_on_with_what_is_left_of_it(kind):
    found = run(machine(kind), ONE)
    assert found.start.tolist() == [0, 10]
    assert found.end.tolist() == [70, 30]
    assert stops(found) == [(0, 10, 30)]
    assert found.wait.tolist() == [20, 0]
    assert found.runtime.tolist() == [50, 20]
    assert (found.lost.tolist(), found.preempted.tolist()) == ([0, 0], [20, 0])


def test_a_requeued_job_begins_anew():
    found = run(machine("requeue"), ONE)
    assert found.end.tolist() == [80, 30]
    assert stops(found) == [(0, 10, 30)]
    assert found.wait.tolist() == [30, 0]  # 20 in its list, and 10 of what was lost
    assert (found.lost.tolist(), found.preempted.tolist()) == ([10, 0], [20, 0])


def test_nothing_is_preempted_where_it_is_off_or_of_the_same_tier():
    assert run(machine("off"), ONE).start.tolist() == [0, 50]
    alike = System(4, [Queue("a", preempted="requeue"), Queue("b")])
    assert run(alike, ONE).start.tolist() == [0, 50]


def test_a_higher_tier_goes_first_whatever_the_order():
    waiting = jobs((0, 4, 10, 10, 1), (1, 4, 5, 5, 0), (2, 4, 9, 9, 1))
    assert run(machine("off", order="sjf"), waiting).start.tolist() == [0, 19, 10]
    assert run(machine("off", order="-walltime"), waiting).start.tolist() == [0, 19, 10]


def test_the_lowest_tier_and_then_the_latest_start_is_preempted():
    rows = ((0, 1, 90, 90, 1), (1, 1, 90, 90, 0), (2, 1, 90, 90, 0), (3, 1, 90, 90, 1))
    system = machine("suspend", "suspend")
    assert [job for job, *_ in stops(run(system, jobs(*rows, (9, 1, 5, 5, 2))))] == [2]
    assert [job for job, *_ in stops(run(system, jobs(*rows, (9, 2, 5, 5, 2))))] == [2, 1]
    assert [job for job, *_ in stops(run(system, jobs(*rows, (9, 3, 5, 5, 2))))] == [2, 1, 3]


def test_those_not_needed_are_spared_from_the_last_taken_on():
    # Taken are job 1, of one core, then job 0, of three: with job 0 alone there is room enough.
    assert stops(run(machine("suspend"), jobs((0, 3, 90, 90, 0), (1, 1, 90, 90, 0), (5, 2, 4, 4, 1)))) == [(0, 5, 9)]


def test_none_is_preempted_if_all_together_are_too_few():
    # Job 2 cannot have the core of job 0, of its own tier; it heads the list, and job 3 goes before it.
    rows = ((0, 1, 30, 30, 1), (0, 3, 90, 90, 0), (5, 4, 5, 5, 1))
    found = run(machine("suspend"), jobs(*rows))
    assert found.start.tolist() == [0, 0, 30]
    assert stops(found) == [(1, 30, 35)]
    found = run(machine("suspend"), jobs(*rows, (6, 2, 24, 24, 1)))
    assert found.start.tolist() == [0, 0, 30, 6]  # it ends by then: job 1 makes room behind the head job
    # Job 2 is expected to have its cores at 90, when job 1 ends: what ends later may take none of them.
    found = run(machine("suspend"), jobs(*rows, (6, 2, 85, 85, 1)))
    assert found.start.tolist() == [0, 0, 30, 35]


def test_a_preempted_job_goes_first_in_its_tier_a_second_later_at_the_earliest():
    # At 10 job 0, of 3 cores, makes room for two; at 11 the core that is left goes to job 3 all the same.
    rows = ((0, 3, 30, 30, 0), (1, 3, 9, 9, 0), (2, 2, 9, 9, 0), (10, 3, 5, 5, 1))
    assert run(machine("suspend"), jobs(*rows)).start.tolist() == [0, 35, 35 + 9, 10]
    # Two are preempted one after the other; where the second leaves room for the first, that goes on.
    rows = ((0, 5, 30, 30, 0), (1, 1, 30, 30, 0), (10, 1, 9, 9, 1), (10, 3, 9, 9, 1))
    assert stops(run(machine("suspend", cores=6), jobs(*rows))) == [(1, 10, 11), (0, 10, 19)]


def test_a_plan_counts_a_job_that_might_be_preempted_to_its_end():
    """As PBS plans: the last one may have the low job's core until its end at 17, and the wide one waits for that."""
    low, *high = (1, 1, 16, 16, 0), (3, 3, 6, 6, 1), (5, 4, 7, 7, 1), (5, 1, 11, 11, 1)
    assert run(machine("suspend"), jobs(low, *high)).start.tolist() == [1, 3, 16, 5]
    assert run(machine("suspend"), jobs(*high)).start.tolist() == [3, 9, 16]


def test_a_preempted_job_may_preempt():
    rows = ((0, 4, 90, 90, 0), (5, 4, 20, 20, 1), (10, 4, 5, 5, 2))
    found = run(machine("suspend", "requeue"), jobs(*rows))
    assert stops(found) == [(0, 5, 35), (1, 10, 15)]
    assert found.end.tolist() == [120, 35, 15]


def test_a_held_job_preempts_none():
    queues = [Queue("a", preempted="suspend"), Queue("b", tier=1, max_run=1)]
    rows = ((0, 2, 90, 90, 0), (0, 2, 90, 90, 0), (5, 2, 9, 9, 1), (6, 2, 9, 9, 1))
    assert run(System(4, queues), jobs(*rows)).start.tolist() == [0, 0, 5, 14]


def test_a_preempted_job_counts_in_limits_no_more():
    # The user's job 0 makes room for that of another, and his job 2 is held by it no more.
    workload = replace(jobs((0, 3, 90, 90, 0), (5, 2, 9, 9, 1), (1, 1, 5, 5, 0)), user=[0, 1, 0])
    system = replace(machine("suspend"), throttles=[Throttle("user", max_run=1)])
    assert run(system, workload).start.tolist() == [0, 5, 5]


def test_a_state_has_running_jobs_that_are_preempted():
    state = State(5, [0, UNSTARTED])
    found = run(machine("suspend"), jobs((0, 4, 50, 60, 0), (3, 2, 20, 30, 1)), state)
    assert found.start.tolist() == [0, 5]
    assert stops(found) == [(0, 5, 25)]


def test_a_state_says_nothing_of_what_a_preempted_job_has_done():
    found = simulate(ONE, machine("suspend"))
    assert State.at(found, 10).placement == {0: {0: 4}}
    with pytest.raises(ValueError, match="job 0 has been preempted before 15"):
        State.at(found, 15)
    assert State.at(found, 70).placement == {}


def test_no_window_goes_with_tiers():
    with pytest.raises(ValueError, match=r"windows\[0\]: with queues of different tiers no cores"):
        simulate(ONE, machine("suspend"), State(0, [UNSTARTED] * 2, windows=[Window(5, 9)]))


def test_more_interruptions_than_there_was_room_for():
    # A long job makes way for each of many short ones.
    short = [(2 + 3 * k, 1, 1, 1, 1) for k in range(1500)]
    found = run_fast(machine("suspend", cores=1), jobs((0, 1, 9000, 9000, 0), *short))
    assert found.interruptions.job.size == 1500
    assert found.end[0] == 9000 + 1500


def run_fast(system: System, workload: Workload) -> Schedule:
    found = simulate(workload, system)
    assert check_schedule(workload, system, found) == []
    return found


def test_the_verifier_reports_what_cannot_be():
    found, system = simulate(ONE, machine("suspend")), machine("suspend")

    def rules(stops: Interruptions, end: int = 70) -> set[str]:
        wrong = replace(found, interruptions=stops, end=np.array([end, 30]))
        return {violation.rule for violation in check_schedule(ONE, system, wrong)}

    job, begin, end, loses, _ = found.interruptions
    assert rules(found.interruptions) == set()
    assert rules(found.interruptions._replace(begin=begin + 1)) == {"preemption", "end"}
    assert rules(found.interruptions._replace(end=end + 5), 75) == {"waiting"}
    assert rules(found.interruptions._replace(job=job + 1)) == {"end"}  # job 0 ends too late then
    assert rules(found.interruptions._replace(job=job + 7), 50) == {"preemption"}
    assert rules(found.interruptions._replace(loses=~loses)) == {"preemption"}


def test_a_start_that_preempts_is_explained():
    system = machine("suspend")
    reasons = [str(reason) for reason in explain(ONE, system, simulate(ONE, system), 1)]
    assert reasons == ["10: starts on machine as soon as it is submitted, in turn, and preempts job 0"]
    assert [str(reason) for reason in explain(ONE, system, simulate(ONE, system), 0)] == [
        "0: starts on machine as soon as it is submitted, in turn"
    ]


GPUS = NodeType("gpu", 2, 2, {"gpus": 2})
CPUS = NodeType("cpu", 2, 2)


def asking(workload: Workload, *chunks: Chunk | None) -> Workload:
    """Return a workload whose jobs ask for these, or for cores alone."""
    requests = [(chunk,) for chunk in chunks if chunk]
    numbers = [-1 if chunk is None else requests.index((chunk,)) for chunk in chunks]
    return replace(workload, request=numbers, requests=requests)


@pytest.mark.slow
def test_only_those_are_preempted_that_free_what_is_needed():
    # Job 0 has both GPUs of each GPU node and cores to spare; job 1, on CPU nodes, began later and goes on.
    rows = ((0, 2, 50, 60, 0), (1, 4, 50, 60, 0), (5, 1, 10, 20, 1))
    chunks = Chunk(2, 1, {"gpus": 2}), None, Chunk(1, 1, {"gpus": 1})
    found = run(machine("suspend", cores=8, node_types=[CPUS, GPUS]), asking(jobs(*rows), *chunks))
    assert stops(found) == [(0, 5, 15)]
    assert found.end.tolist() == [60, 51, 15]
    assert found.interruptions.place.tolist() == [0]


@pytest.mark.parametrize(("kind", "goes_on"), [("suspend", 25), ("checkpoint", 11), ("requeue", 11)])
def test_a_suspended_job_goes_on_at_its_own_place(kind, goes_on):
    # Job 1 is on GPU nodes, as job 0 has the others until 11; job 2 has all GPUs, and job 1 waits for these nodes.
    rows = ((0, 4, 11, 20, 1), (0, 2, 50, 60, 0), (5, 4, 20, 30, 1))
    workload = asking(jobs(*rows), None, None, Chunk(2, 2, {"gpus": 2}))
    found = run(machine(kind, cores=8, node_types=[CPUS, GPUS]), workload)
    assert stops(found) == [(1, 5, goes_on)]
    assert found.interruptions.place.tolist() == [1]
    assert found.place.tolist() == [0, 1 if kind == "suspend" else 0, 0]
    assert found.taken_by_run.tolist()[1] != found.taken_by_run.tolist()[2] or kind == "suspend"
    reasons = [str(reason) for reason in explain(workload, machine(kind, cores=8, node_types=[CPUS, GPUS]), found, 2)]
    assert reasons == ["5: starts on machine as soon as it is submitted, in turn, and preempts job 1"]


@pytest.mark.parametrize(("kind", "goes_on", "node"), [("suspend", 30, 0), ("requeue", 10, 1)])
def test_a_suspended_job_goes_on_on_its_own_nodes(kind, goes_on, node):
    # Job 1 takes both nodes from job 0; job 2 then has the first, on which job 0 was.
    system = machine(kind, cores=4, node_types=[CPUS], reserve="nodes")
    found = run(system, jobs((0, 2, 50, 60, 0), (5, 4, 5, 5, 1), (10, 2, 20, 20, 1)))
    assert stops(found) == [(0, 5, goes_on)]
    assert (found.node.tolist(), found.interruptions.place.tolist()) == ([node, 0, 0], [0])
    elsewhere = replace(found, interruptions=found.interruptions._replace(place=np.array([1])))
    workload = jobs((0, 2, 50, 60, 0), (5, 4, 5, 5, 1), (10, 2, 20, 20, 1))
    assert {violation.rule for violation in check_schedule(workload, system, elsewhere)} == {"placement"}


@pytest.mark.parametrize("discipline", ["preempt-nodes", "preempt-nodes-alone", "state:preempt-nodes"])
def test_on_nodes_kernels_preempt_as_the_reference_simulator(discipline):
    assert [seed for seed in range(25) if fuzz.differs(discipline, seed)] == []


def test_runs_on_nodes_are_counted_where_they_were():
    # Job 1 is on GPU nodes from 0 to 5, and on CPU nodes from 11 on; job 0 is there before, job 2 on GPU nodes.
    rows = ((0, 4, 11, 20, 1), (0, 2, 50, 60, 0), (5, 4, 20, 30, 1), (100, 1, 1, 1, 0))
    workload = asking(jobs(*rows), None, None, Chunk(2, 2, {"gpus": 2}), None)
    system = machine("requeue", cores=8, node_types=[CPUS, GPUS])
    use = node_use(workload, simulate(workload, system), system)
    assert use["cpu"].resources["cores"]["used"] == 4 * 11 + 2 * 50
    assert use["gpu"].resources["cores"]["used"] == 2 * 5 + 4 * 20
    assert use["gpu"].resources["gpus"]["used"] == 4 * 20


def test_what_preemption_costs():
    suspended = metrics.summary(ONE, simulate(ONE, machine("suspend")), machine("suspend"))
    # Job 0 runs 50 s on 4 cores, and is away for 20 s; job 1 runs 20 s on 2 cores. Responses 70 and 20, in 70 s.
    assert [suspended[name] for name in ("preempted", "suspended", "work_lost")] == [1, 80 / 240, 0]
    assert suspended["mean_wait"] == 10
    assert suspended["sld"] == (70 / 50 + 1) / 2
    assert suspended["art_wa"] == (70 * 200 + 20 * 40) / 240
    assert suspended["mean_bounded_slowdown"] == suspended["bsld"] == suspended["sld"]
    assert suspended["utilization"] == 240 / 280
    assert suspended["loss_of_capacity"] == 0  # the two cores that idle beside job 1 are too few for job 0
    assert suspended.queues["q0"]["preempted"] == 1
    requeued = metrics.summary(ONE, simulate(ONE, machine("requeue")), machine("requeue"))
    assert requeued["work_lost"] == 40 / 280
    assert requeued["mean_wait"] == 15
    assert requeued["utilization"] == 280 / 320  # what was lost was in use
