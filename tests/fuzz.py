"""Test random cases of every discipline, more than `make test` has time for.

``python -m tests.fuzz --count 5000``
    Check that the simulator's schedules equal those of the reference simulator and pass the verifier.
``python -m tests.fuzz --broken --count 100``
    Check that the verifier rejects every schedule with one deliberate error.
``python -m tests.fuzz --traces``
    Check by the verifier the schedules of whole traces beside the project, under a typical system of each discipline.

With ``--looks -1`` the simulator uses its algorithms for deep queues from the first event on.

Arguments select disciplines by name; with ``--traces`` by the beginning of the name, like ``"hybrid combined"``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from random import Random
from typing import NamedTuple

import numpy as np
import pandas as pd

from parsim import Pool, Queue, Schedule, State, System, Workload, naive, simulate
from parsim.model.schedule import SPANNING, Interruptions
from parsim.naive.multiqueue import simulate_multiqueue
from parsim.naive.planning import naive_plan
from parsim.planning.plan import NAMED, plan
from parsim.prepare import one_list, packing
from parsim.verify import Violation, check_planned, check_schedule
from tests import generate
from tests.beside import REFERENCE

TRACES = {"KTH-SP2": 100, "SDSC-SP2": 128, "HPC2N": 240}  #: trace -> cores; HPC2N is its first 60 000 jobs
BEGUN = "state:"  #: prefix of a discipline: cases with an initial state
NEEDS = "needs:"  #: prefix before `BEGUN`: cases with dependencies of jobs and quotas
LISTS = tuple(generate.DISCIPLINES)
DISCIPLINES = (*LISTS, "multiqueue", "alike-multiqueue", "planned", "alike-planned")
DISCIPLINES += tuple(BEGUN + name for name in DISCIPLINES)
DISCIPLINES += tuple(NEEDS + name for name in (*LISTS, *(BEGUN + name for name in LISTS)))
TESTED = tuple(name for name in DISCIPLINES if name.rpartition(":")[2] not in generate.SELDOM)  #: in `make test`


class Case(NamedTuple):
    """A random workload, with functions to simulate it, to simulate it by the reference, and to verify a schedule."""

    workload: Workload
    simulate: Callable[[], Schedule]
    reference: Callable[[], Schedule]
    check: partial[list[Violation]]  #: takes a schedule


def schedule(
    workload: Workload, names: tuple[str, ...], found: naive.NaiveSchedule, system: System | None = None
) -> Schedule:
    """Convert a schedule of the reference simulator to a `Schedule` of parsim."""
    start = np.array(found.start, dtype=np.int64)
    partition, shares = np.zeros(len(workload), dtype=np.int32), {}
    for job, cores_on in enumerate(found.placement):
        partition[job] = names.index(next(iter(cores_on))) if len(cores_on) == 1 else SPANNING
        if len(cores_on) > 1:
            shares[job] = np.array([cores_on.get(name, 0) for name in names], dtype=np.int64)
    end = start + workload.effective_runtime if found.end is None else np.array(found.end, dtype=np.int64)
    stops = np.array(found.interruptions or [], dtype=np.int64).reshape(-1, 4)
    queues = () if system is None else system.queues
    loses = np.array([queues[q].preempted == "requeue" for q in workload.queue[stops[:, 0]]], dtype=np.bool_)
    came = workload.submit if found.came is None else np.array(found.came, dtype=np.int64)
    place = None if found.place is None else np.array(found.place, dtype=np.int64)
    stopped = Interruptions(*stops.T[:3], loses=loses)
    if system is not None and system.node_types:
        stopped = stopped._replace(place=stops[:, 3])
    node = place if system is not None and system.places_chunks else None
    place = place if node is None else None
    return Schedule(came, start, end, workload.cores, partition, shares, names, place, stopped, node=node)


def afresh(workload: Workload, system: System, state: State | None) -> Schedule:
    """Simulate a copy of the workload, without cached results such as the depth of its queues."""
    return simulate(copy(workload), system, state)


def case(discipline: str, seed: int) -> Case:
    """Return the random case of a discipline and a seed; the name may have the prefixes `NEEDS` and `BEGUN`."""
    rng = Random(seed)
    discipline, needs = discipline.removeprefix(NEEDS), discipline.startswith(NEEDS)
    discipline, begun = discipline.removeprefix(BEGUN), discipline.startswith(BEGUN)
    if discipline in {"planned", "alike-planned"}:
        workload, cores, policy = generate.planned(rng)
        if discipline == "alike-planned":
            workload = generate.few_kinds(rng, workload)
        state = generate.state(rng, workload, System.single(cores)).without_queue_reservations() if begun else None
        return Case(
            workload,
            lambda: plan(copy(workload), cores, policy, state).schedule,
            lambda: schedule(
                workload, ("machine",), naive.on_machine(workload, naive_plan(workload, cores, policy, state).start)
            ),
            partial(check_planned, workload, cores, policy, state=state),
        )
    if discipline in {"multiqueue", "alike-multiqueue"}:
        workload, cores, limits = generate.multiqueue(rng)
        if discipline == "alike-multiqueue":
            workload = generate.few_kinds(rng, workload)
        system = System(cores, mode="multiqueue", class_limits=limits)
        state = generate.state(rng, workload, system) if begun else None
        slow = partial(simulate_multiqueue, workload, cores, limits, state)
    else:
        workload, system = generate.DISCIPLINES[discipline](rng)
        workload = generate.needing(rng, workload) if needs else workload
        state = generate.state(rng, workload, system, windows=rng.random() < 0.7) if begun else None
        slow = partial(naive.simulate, workload, system, state)
    return Case(
        workload,
        partial(afresh, workload, system, state),
        lambda: schedule(workload, system.partition_names, slow(), system),
        partial(check_schedule, workload, system, state=state),
    )


def same(fast: Schedule, slow: Schedule) -> bool:
    """Whether the two schedules are equal."""
    return (
        fast.start.tolist() == slow.start.tolist()
        and fast.submit.tolist() == slow.submit.tolist()
        and fast.end.tolist() == slow.end.tolist()
        and all(map(np.array_equal, fast.interruptions, slow.interruptions))
        and all(fast.placement(job) == slow.placement(job) for job in range(len(fast)))
        and np.array_equal(fast.place, slow.place)
        and np.array_equal(fast.node, slow.node)
    )


def differs(discipline: str, seed: int) -> bool:
    """Whether the simulator's schedule differs from the reference, or fails the verifier."""
    here = case(discipline, seed)
    fast = here.simulate()
    return not same(fast, here.reference()) or bool(here.check(fast))


def misses(here: Case, right: Schedule, seed: int) -> bool:
    """Whether the verifier accepts a random change of the right schedule."""
    state = here.check.keywords.get("state")
    return not here.check(generate.broken(Random(seed), right, None if state is None else state.begin))


def unnoticed(discipline: str, seed: int) -> bool:
    """Whether the verifier accepts a random change of the case's right schedule."""
    here = case(discipline, seed)
    return misses(here, here.reference(), seed)


def systems(cores: int) -> Iterator[tuple[str, System]]:
    """Yield name and typical system of each discipline, with the four queues of `trace`."""
    queues = [Queue(name=name, priority=1 + i, starvation=86400) for i, name in enumerate("abcd")]
    alike = [Queue(name=queue.name) for queue in queues]
    limited = [replace(queue, max_run=cores // 4, max_user_cores=cores) for queue in queues]
    sizes = [cores // 10, cores // 5, cores // 5, 0]
    divided = [replace(queue, partition=size) for queue, size in zip(queues, sizes, strict=True)]
    whole = [replace(queue, partition=size) for queue, size in zip(queues, [0, 0, cores, 0], strict=True)]
    pool = Pool(cores - sum(sizes), threshold=1.5)
    yield "easy", System(cores, alike)
    yield "fcfs", System(cores, alike, backfill=False)
    for order in ("fcfs", "sjf", "ljf", "lxf", "wfp3"):
        yield f"shared {order}", System(cores, queues, order=order)
    yield "shared limits", System(cores, limited)
    yield (
        "shared formula",
        System(cores, limited, order="queue_priority * (eligible_time + walltime) / walltime ** 1.3"),
    )
    rest = replace(divided[2], partition=cores - sizes[0] - sizes[1])
    yield "reservations", System(cores, [divided[0], divided[1], rest, divided[3]], "partitioned")
    yield "reserved and whole", System(cores, whole, "partitioned")
    for placement in ("pool", "combined"):
        for entry in ("either", "move"):
            chosen = replace(pool, placement=placement, entry=entry)
            yield f"hybrid {placement} {entry}", System(cores, divided, "hybrid", pool=chosen)
    yield "multiqueue", System(cores, alike, "multiqueue")


def trace(name: str) -> Workload:
    """Return a trace with its jobs routed to four queues by cores, and random users."""
    table = pd.read_csv(REFERENCE / f"{name}_easy.csv.gz")
    users = np.random.default_rng(0).integers(0, 300, len(table))
    queue = np.digitize(table["cores"], [2, 9, 33])
    return Workload(table["submit"], table["cores"], table["runtime"], table["walltime"], queue, users)


def trace_checks(name: str) -> Iterator[tuple[str, Callable[[], list[Violation]]]]:
    """Yield for each discipline its name, and a function to simulate the trace and verify the schedule."""
    workload, cores = trace(name), TRACES[name]
    for label, system in systems(cores):
        yield label, lambda system=system: check_schedule(workload, system, simulate(workload, system))
    for label, policy in NAMED.items():
        yield (
            label,
            lambda policy=policy: check_planned(workload, cores, policy, plan(workload, cores, policy).schedule),
        )


def check_traces(chosen: tuple[str, ...]) -> int:
    """Print a line per trace and discipline; return the number of wrong schedules."""
    wrong = 0
    for name in (name for name in TRACES if (REFERENCE / f"{name}_easy.csv.gz").exists()):
        for label, check in trace_checks(name):
            if label.startswith(chosen):
                began = time.perf_counter()
                found = check()
                seconds = time.perf_counter() - began
                print(f"{name} {label}: {len(found)} violations, {seconds:.0f} s", *found[:1], flush=True)
                wrong += bool(found)
    return wrong


def main() -> int:
    """Print a line per discipline and a total; return 0 if no case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="seeds per discipline")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--broken", action="store_true", help="check broken schedules")
    what.add_argument("--traces", action="store_true", help="check schedules of whole traces")
    parser.add_argument(
        "--looks", type=int, default=packing.LOOKS, help="at waiting jobs, a job, until queues are deep"
    )
    parser.add_argument("disciplines", nargs="*", metavar="DISCIPLINE")
    chosen = parser.parse_args()
    packing.LOOKS = chosen.looks
    one_list.MANY = one_list.MANY if chosen.looks >= 0 else 0
    if chosen.traces:
        return check_traces(tuple(chosen.disciplines or ("",)))
    if unknown := [name for name in chosen.disciplines if name not in DISCIPLINES]:
        near = [close for name in unknown for close in get_close_matches(name, DISCIPLINES)]
        parser.error(f"no such discipline: {', '.join(unknown)}; near are {', '.join(near) or 'none'}")
    fails, result = (unnoticed, "broken schedules unnoticed") if chosen.broken else (differs, "differ")
    total, disciplines = 0, chosen.disciplines or DISCIPLINES
    for discipline in disciplines:
        began = time.perf_counter()
        wrong = [seed for seed in range(chosen.count) if fails(discipline, seed)]
        seconds = time.perf_counter() - began
        print(f"{discipline}: {len(wrong)} of {chosen.count} {result}, {seconds:.0f} s", *wrong[:5], flush=True)
        total += len(wrong)
    print(f"in all: {total} of {chosen.count * len(disciplines)} {result}")
    return min(total, 1)


if __name__ == "__main__":
    sys.exit(main())
