"""Throttles as the kernels take them: one record for all that count together, those of every job, and its exemptions.

Where a QOS is exempt from limits of queues, these are laid out as throttles are (rules 44 and 51). Each counts one
resource: limits of jobs, cores and core-seconds the cores, those of another resource what jobs take of it (rule 73).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parsim.kernels.throttles import NO_THROTTLE, THROTTLE, UNLIMITED, Throttles
from parsim.qos import QOS
from parsim.system import System
from parsim.throttles import ENTERING, RESOURCES, THROTTLES, Throttle
from parsim.workload import Column, Workload

_NOBODY = (np.zeros(0, dtype=np.bool_), np.empty(0, dtype=np.int32))
_NO_EXEMPTIONS = np.empty((0, 0), dtype=np.uint8)
_OF_USERS = {"max_run": "max_user_run", "max_run_cores": "max_user_cores"}

#: The fields of THROTTLE that are limits, in the order of the bits of exemptions; and which limits they are of cores.
_FIELDS = ("max_run", "max_run_amount", "max_run_work", *ENTERING)
_OF_CORES = dict(zip(_FIELDS, THROTTLES, strict=True))

Key = tuple[tuple[Throttle, ...], tuple[Throttle, ...], tuple[QOS, ...]]


class _Kind(NamedTuple):
    """Throttles that no job counts twice in: of each record one column has those of its jobs."""

    throttles: Sequence[Throttle]
    whose: Column
    name: Callable[[int], str]
    limits: dict[str, str]  #: which limits the fields of THROTTLE are
    names: dict[str, str]  #: of these, for exemptions; empty where no job is exempt
    amount: Column  #: how much each job counts


def key_of(system: System) -> Key:
    """Return what decides about the layout: throttles, limits of queues that are laid out as such, and exemptions."""
    queues = []
    for i, queue in enumerate(system.queues if system.frees_from_queues else ()):
        queues.append(Throttle("", "", i, queue.max_run, queue.max_run_cores))
        queues.append(Throttle("user", "", i, queue.max_user_run, queue.max_user_cores))
    limiting = (throttle for throttle in queues if throttle.max_run or throttle.max_run_cores)
    return tuple(system.throttles), tuple(limiting), tuple(qos for qos in system.qos if qos.exempt)


def lay_out(key: Key, workload: Workload) -> Throttles | None:
    """Return what the throttles of a system count of a workload; None where there are none."""
    throttles, queues, exempt = key
    if not (throttles or queues):
        return None
    kinds = _all_kinds(key, workload)
    tables, columns, exemptions = [np.zeros(0, dtype=THROTTLE)], [], []
    for kind in kinds:
        table, rows = _column(kind, workload)
        rows[rows >= 0] += sum(each.size for each in tables)
        tables.append(table)
        columns.append(rows)
        exemptions.append(_exemptions(kind.names, workload, exempt))
    keeps_out = any(getattr(throttle, name) is not None for throttle in throttles for name in ENTERING)
    n = len(workload)
    outside = (np.zeros(n, dtype=np.bool_), np.empty(n, dtype=np.int32)) if keeps_out else _NOBODY
    bits = np.stack(exemptions, axis=1)
    rows, amounts = np.stack(columns, axis=1), np.stack([kind.amount for kind in kinds], axis=1)
    return Throttles(np.concatenate(tables), rows, amounts, *outside, bits if bits.any() else _NO_EXEMPTIONS)


def limits_of_columns(key: Key, workload: Workload) -> list[dict[str, str]]:
    """Return which limits the fields of THROTTLE are in each column of what is laid out."""
    return [kind.limits for kind in _all_kinds(key, workload)]


def nothing_throttled(jobs: int) -> Throttles:
    """Return throttles that concern none of so many jobs."""
    rows, amounts = np.empty((jobs, 0), dtype=np.int32), np.empty((jobs, 0), dtype=np.int64)
    return Throttles(np.zeros(0, dtype=THROTTLE), rows, amounts, *_NOBODY, _NO_EXEMPTIONS)


def uncounted(throttles: Throttles) -> Throttles:
    """Return a copy that a simulation may count in."""
    return throttles._replace(
        each=throttles.each.copy(), is_out=throttles.is_out.copy(), outside=throttles.outside.copy()
    )


def _all_kinds(key: Key, workload: Workload) -> list[_Kind]:
    throttles, queues, _ = key
    cores = workload.cores
    found = _kinds(throttles, workload, _OF_CORES, cores) + _kinds(queues, workload, _OF_CORES, cores, _OF_USERS)
    for resource in sorted({name for throttle in throttles for name in dict(throttle.max_run_resources)}):
        limit = {"max_run_amount": f"{RESOURCES}.{resource}"}
        found += _kinds(throttles, workload, limit, workload.amount(resource))
    return found


def _kinds(
    throttles: Sequence[Throttle],
    workload: Workload,
    limits: dict[str, str],
    amount: Column,
    of_users: dict[str, str] | None = None,
) -> list[_Kind]:
    """Sort throttles with one of these limits into kinds; `of_users` has other names of limits of each user."""
    who: tuple[tuple[str, Column, Callable[[int], str]], ...] = (
        ("", np.zeros(len(workload), dtype=np.int64), lambda _: ""),
        ("user", workload.user, workload.user_name),
        ("group", workload.group, workload.group_name),
        ("qos", workload.qos, workload.qos_name),
    )
    found = []
    for (each, whose, name), of_queue, of_qos in product(who, (False, True), (False, True)):
        chosen = [
            t
            for t in throttles
            if t.each == each and (t.queue is not None) == of_queue and bool(t.qos) == of_qos
            if not t.limits.keys().isdisjoint(limits.values())
        ]
        if chosen:
            names = {field: limit.partition(".")[0] for field, limit in limits.items()}
            if each == "user" and of_users is not None:
                names = {field: of_users.get(limit, limit) for field, limit in names.items()}
            found.append(_Kind(chosen, whose, name, limits, {} if chosen[0].is_of_qos else names, amount))
    return found


def _column(kind: _Kind, workload: Workload) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """Lay out the throttles of one kind: those of each come before those of a name, which take their place."""
    throttles = sorted(kind.throttles, key=lambda throttle: bool(throttle.name))
    queue = workload.queue if throttles[0].queue is not None else np.zeros_like(workload.queue)
    classes, users = int(workload.qos.max(initial=-1)) + 2, int(kind.whose.max(initial=-1)) + 2
    place = queue * classes + (workload.qos + 1 if throttles[0].qos else 0)
    present, row = np.unique(place * users + kind.whose + 1, return_inverse=True)
    table = np.zeros(present.size, dtype=THROTTLE)
    for field in _FIELDS:
        table[field] = UNLIMITED
    used = np.zeros(present.size, dtype=np.bool_)
    for k, number in enumerate(present.tolist()):
        (where, of), who = divmod(number // users, classes), number % users - 1
        for throttle in throttles:
            if who < 0 or throttle.queue not in (None, where) or throttle.name not in ("", kind.name(who)):
                continue
            if throttle.qos not in ("", workload.qos_name(of - 1)):
                continue
            used[k] = True
            for field, name in kind.limits.items():
                if (limit := throttle.limits.get(name)) is not None:
                    table[k][field] = limit
    return table, np.where(used[row] & (kind.amount > 0), row, NO_THROTTLE).astype(np.int32)


def _exemptions(names: dict[str, str], workload: Workload, exempt: Sequence[QOS]) -> NDArray[np.uint8]:
    """Return the bits of the limits of these names from which each job is exempt (rule 51)."""
    if not (names and exempt):
        return np.zeros(len(workload), dtype=np.uint8)
    places = {_FIELDS.index(field): name for field, name in names.items()}
    bits = {qos.name: sum(1 << place for place, name in places.items() if qos.is_exempt(name)) for qos in exempt}
    present, row = np.unique(workload.qos, return_inverse=True)
    of = [bits.get(workload.qos_name(number), 0) if number >= 0 else 0 for number in present.tolist()]
    return np.array(of, dtype=np.uint8)[row]
