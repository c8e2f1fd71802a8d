"""Throttles as the kernels take them: one record for all that count together, and those of every job (rule 44)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.state import NEVER
from parsim.kernels.throttles import NO_THROTTLE, THROTTLE, Throttles
from parsim.throttles import ENTERING, THROTTLES, Throttle
from parsim.workload import Column, Workload

_NOBODY = (np.zeros(0, dtype=np.bool_), np.empty(0, dtype=np.int32))


def lay_out(throttles: Sequence[Throttle], workload: Workload) -> Throttles | None:
    """Return what the throttles of a system count of a workload; None where there are none."""
    if not throttles:
        return None
    kinds: tuple[tuple[str, Column, Callable[[int], str]], ...] = (
        ("", np.zeros(len(workload), dtype=np.int64), lambda _: ""),
        ("user", workload.user, workload.user_name),
        ("group", workload.group, workload.group_name),
    )
    tables, columns = [np.zeros(0, dtype=THROTTLE)], []
    for each, whose, name in kinds:
        for of_queue in (False, True):
            chosen = [t for t in throttles if t.each == each and (t.queue is not None) == of_queue]
            if chosen:
                table, rows = _column(chosen, workload.queue if of_queue else None, whose, name)
                rows[rows >= 0] += sum(each.size for each in tables)
                tables.append(table)
                columns.append(rows)
    keeps_out = any(getattr(throttle, name) is not None for throttle in throttles for name in ENTERING)
    n = len(workload)
    outside = (np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int32)) if keeps_out else _NOBODY
    return Throttles(np.concatenate(tables), np.stack(columns, axis=1), *outside)


def nothing_throttled(jobs: int) -> Throttles:
    """Return throttles that concern none of so many jobs."""
    return Throttles(np.zeros(0, dtype=THROTTLE), np.empty((jobs, 0), dtype=np.int32), *_NOBODY)


def uncounted(throttles: Throttles) -> Throttles:
    """Return a copy that a simulation may count in."""
    return throttles._replace(
        each=throttles.each.copy(), is_out=throttles.is_out.copy(), outside=throttles.outside.copy()
    )


def _column(
    throttles: Sequence[Throttle], queue: Column | None, whose: Column, name: Callable[[int], str]
) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """Lay out the throttles of one kind: those of each come before those of a name, which take their place."""
    throttles = sorted(throttles, key=lambda throttle: bool(throttle.name))
    place = np.zeros_like(whose) if queue is None else queue
    users = int(whose.max(initial=-1)) + 2
    present, row = np.unique(place * users + whose + 1, return_inverse=True)
    table = np.zeros(present.size, dtype=THROTTLE)
    for field in THROTTLES:
        table[field] = NEVER
    used = np.zeros(present.size, dtype=np.bool_)
    for k, number in enumerate(present.tolist()):
        where, who = number // users, number % users - 1
        for throttle in throttles:
            if who < 0 or throttle.queue not in (None, where) or throttle.name not in ("", name(who)):
                continue
            used[k] = True
            for field in THROTTLES:
                if (limit := getattr(throttle, field)) is not None:
                    table[k][field] = limit
    return table, np.where(used[row], row, NO_THROTTLE).astype(np.int32)
