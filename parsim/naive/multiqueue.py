"""Multiple-queue backfilling of the reference simulator."""

from __future__ import annotations

from parsim.naive.simulator import (
    Block,
    NaiveSchedule,
    downtimes,
    earliest,
    fits,
    on_machine,
    runs_at,
    simulate_apart,
    started_before,
)
from parsim.state import State
from parsim.system import System
from parsim.workload import Workload


def simulate_multiqueue(
    workload: Workload, cores: int, limits: tuple[int, ...], state: State | None = None
) -> NaiveSchedule:
    """Simulate multiple-queue backfilling, with len(limits) + 1 classes that meet at ``limits``.

    References
    ----------
    Lawson and Smirni, JSSPP 2002.
    """
    if state is not None and any(window.queue is not None for window in state.windows):
        system = System(cores, mode="multiqueue", class_limits=limits)
        return simulate_apart(
            workload, system, state, lambda jobs, alone, inner: simulate_multiqueue(jobs, alone.cores, limits, inner)
        )
    n = len(workload)
    submit = [int(x) for x in workload.submit]
    width = [int(x) for x in workload.cores]
    walltime = [int(x) for x in workload.walltime]
    runtime = [min(int(r), w) for r, w in zip(workload.runtime, walltime, strict=True)]
    job_class = [sum(limit < w for limit in limits) for w in walltime]
    start = [0] * n
    began = started_before(workload, state)
    for j, instant in began.items():
        start[j] = instant
    pending = sorted((j for j in range(n) if j not in began), key=lambda j: (submit[j], j), reverse=True)
    waiting: list[int] = []
    running = runs_at(workload, state)
    windows = downtimes(System.single(cores), state)
    begin = min(submit) if state is None else state.begin
    now = begin - 1

    def block(j: int, begin: int) -> Block:
        return Block(0, begin, begin + walltime[j], width[j])

    def out_of_service(now: int) -> list[Block]:
        known = [d for d in windows if d.known_from <= now < d.end]
        return [Block(0, d.begin, d.known_end, d.cores_of[0]) for d in known]

    def planned_pivots(now: int) -> list[tuple[int, Block]]:
        first: dict[int, int] = {}
        for j in sorted(waiting, key=lambda j: (submit[j], j)):
            first.setdefault(job_class[j], j)
        plans: list[tuple[int, Block]] = []
        for j in sorted(first.values(), key=lambda j: (submit[j], j)):
            blocks = [block(k, start[k]) for k in running] + [b for _, b in plans] + out_of_service(now)
            plans.append((j, block(j, earliest(cores, blocks, width[j], now, walltime[j]))))
        return plans

    def begin_job(j: int, now: int) -> None:
        start[j] = now
        waiting.remove(j)
        running.append(j)

    while pending or running or waiting:
        instants = [start[k] + runtime[k] for k in running] + [max(begin, submit[j]) for j in pending[-1:]]
        instants += [t for d in windows for t in (d.known_from, d.end) if t > now]
        now = min(instants)
        running = [k for k in running if start[k] + runtime[k] > now]
        while pending and submit[pending[-1]] <= now:
            waiting.append(pending.pop())

        plans = planned_pivots(now)
        while any(b.begin == now for _, b in plans):
            begin_job(next(j for j, b in plans if b.begin == now), now)
            plans = planned_pivots(now)
        pivots = {j for j, _ in plans}
        others = [j for j in waiting if j not in pivots]
        for j in sorted(others, key=lambda j: (job_class[j], submit[j], j)):
            blocks = [block(k, start[k]) for k in running] + [b for _, b in plans] + out_of_service(now)
            if fits(cores, blocks, width[j], now, walltime[j]):
                begin_job(j, now)
    return on_machine(workload, start)
