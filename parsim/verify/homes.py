"""Where each job may run: its partition, the pool once it is eligible, or several (rules of "partitions and pool")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from parsim.model.system import System
from parsim.naive.simulator import RESERVED, Simulation
from parsim.verify.running import Runs
from parsim.verify.starts import placement_of
from parsim.verify.violation import Violation


def check_homes(runs: Runs, system: System) -> Iterator[Violation]:
    """Yield the jobs that start where they never may, or in the pool before they may."""
    if system.mode == "shared":
        return
    rules = Simulation(replace(runs.workload.without_needs(), submit=runs.schedule.submit), system)
    for row in np.flatnonzero(runs.held).tolist():
        if problem := _misplaced(rules, row, set(placement_of(runs.schedule, row)), int(runs.schedule.start[row])):
            yield runs.wrong(problem[0], row, problem[1])


def _misplaced(rules: Simulation, j: int, there: set[int], start: int) -> tuple[str, str] | None:
    home, pool, system = rules.home(j), rules.pool, rules.system
    combines = rules.combined and there == {rules.queue_index[j], pool}
    if home == RESERVED:
        return None
    names = " and ".join(system.partition_names[partition] for partition in sorted(there))
    if home == pool:
        return None if there == {pool} or combines else ("placement", f"may run in the pool, but runs on {names}")
    eligible = rules.eligible_from(j)
    entered = eligible is not None and start >= eligible
    moves = rules.move and (rules.cores[j] <= rules.pool_cores or rules.nodes_combined)
    if there == {home} and not (entered and moves and not rules.nodes_combined):  # rule "moves to the pool"
        return None
    if pool not in there or not rules.pool_cores:
        return "placement", f"may not run on {names}"
    if not entered:
        when = "never" if eligible is None else f"from {eligible} on"
        return "pool", f"enters the pool, where it is eligible {when}"
    return None if there == {pool} or combines else ("placement", f"may not run on {names}")
