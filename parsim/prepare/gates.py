"""Lays out gates for the kernels: a record for all jobs that count together, and each job's gates and exemptions.

Gates are quotas (rule "quotas and licences"), throttles (rule "jobs of a throttle"), and the running limits of queues
and of their users (rule "held by limits"). Each counts one resource of its jobs: cores for limits of jobs, cores and
core-seconds, else the resource that is limited (rule "throttled resources").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from parsim.engine.gates.counters import COUNT, GATE, NO_GATE, UNLIMITED, Gates
from parsim.model.qos import QOS
from parsim.model.system import System
from parsim.model.throttles import ENTERING, RESOURCES, THROTTLES, Each, Throttle, whose
from parsim.model.workload import Column, Workload

Users = tuple[int, Column]  #: the number of users, and the user of each job; -1 for none

#: The fields of GATE that are bounds, in the order of the bits of exemptions; and the limits of throttles of cores.
_FIELDS = ("max_run", "max_run_amount", "max_run_work", *ENTERING)
_OF_CORES = dict(zip(_FIELDS, THROTTLES, strict=True))
#: The running limits of a queue, and of each user in it, by fields of GATE.
_OF_QUEUES = {"max_run": "max_run", "max_run_amount": "max_run_cores"}
_OF_USERS = {"max_run": "max_user_run", "max_run_amount": "max_user_cores"}


class Key(NamedTuple):
    """The parts of a system that the layout of its gates depends on."""

    throttles: tuple[Throttle, ...]
    of_queues: bool  #: whether a queue has running limits
    of_users: bool  #: whether a queue has running limits for each user
    exempt: tuple[QOS, ...]  #: those that are exempt from any limit


class _Column(NamedTuple):
    """Gates of which each job counts in at most one."""

    rows: NDArray[np.int32]  # (n,): the gate of each job, or `NO_GATE`
    amount: Column  # (n,): how much each job counts
    limits: dict[str, str]  #: the throttle limit of each field of GATE
    names: dict[str, str]  #: the name of each field, for exemptions; empty where no job is exempt


class _Kind(NamedTuple):
    """Throttles of one kind: each job counts in at most one of their gates, which become one column."""

    throttles: Sequence[Throttle]
    whose: Column
    name: Callable[[int], str]
    limits: dict[str, str]  #: as `_Column` has it
    names: dict[str, str]  #: as `_Column` has it
    amount: Column  #: how much each job counts


class Layout(NamedTuple):
    """The gates of a workload, with nothing counted, and without the bounds of queues and their users."""

    gates: Gates
    limits: list[dict[str, str]]  #: by column of `Gates.rows`: the limit of throttles that each field of GATE holds
    queues: slice  #: gates of the queues
    users: slice  #: gates of a user in each queue, then those of the next user

    def counting(self, system: System) -> Gates:
        """Return a copy for one simulation to count in, with the bounds of a system's queues."""
        gates = self.gates._replace(
            each=self.gates.each.copy(),
            is_out=self.gates.is_out.copy(),
            outside=self.gates.outside.copy(),
            over_time=np.bool_(self.gates.over_time or system.held_jobs == "reserve"),
        )
        for its, names in ((gates.each[self.queues], _OF_QUEUES), (gates.each[self.users], _OF_USERS)):
            for field, name in names.items() if its.size else ():
                limits = [getattr(queue, name) for queue in system.queues[: self.queues.stop - self.queues.start]]
                its[field] = np.resize([UNLIMITED if limit is None else limit for limit in limits], its.size)
        return gates


def key_of(system: System) -> Key:
    """Return the parts of a system that the layout of its gates depends on."""

    def limited(names: dict[str, str]) -> bool:
        return any(getattr(queue, name) is not None for queue in system.queues for name in names.values())

    exempt = tuple(qos for qos in system.qos if qos.exempt)
    return Key(tuple(system.throttles), limited(_OF_QUEUES), limited(_OF_USERS), exempt)


def lay_out(key: Key, workload: Workload, queues: int, users: Users, begin: int) -> Layout:
    """Return the gates of jobs of so many queues and these users, with the quotas of the instant `begin`."""
    n, (count, user) = len(workload), users
    tables, columns = [_quotas(workload, begin)], _of_quotas(workload)
    for kind in _all_kinds(key.throttles, workload):
        table, of = _of_kind(kind, workload)
        of[of >= 0] += sum(each.size for each in tables)
        tables.append(table)
        columns.append(_Column(of, kind.amount, kind.limits, kind.names))
    first = sum(each.size for each in tables)
    of_queues = slice(first, first + queues * (key.of_queues or key.of_users))
    of_users = slice(of_queues.stop, of_queues.stop + count * queues * key.of_users)
    tables.append(_unlimited(of_users.stop - first))
    for rows, number, names in (
        (of_queues, workload.queue, _OF_QUEUES),
        (of_users, np.where(user < 0, NO_GATE, user * queues + workload.queue), _OF_USERS),
    ):
        if rows.stop > rows.start:
            of = np.where(number < 0, NO_GATE, rows.start + number).astype(np.int32)
            limits = {field: _OF_CORES[field] for field in names}
            columns.append(_Column(of, workload.cores, limits, names))
    bits = _stacked([_exemptions(column.names, workload, key.exempt) for column in columns], n, np.uint8)
    keeps_out = any(getattr(throttle, name) is not None for throttle in key.throttles for name in ENTERING)
    gates = Gates(
        each=np.concatenate(tables),
        rows=_stacked([column.rows for column in columns], n, np.int32),
        amounts=_stacked([column.amount for column in columns], n, np.int64),
        is_out=np.zeros(n if keeps_out else 0, dtype=np.uint8),
        outside=np.empty(n if keeps_out else 0, dtype=np.int32),
        exempt=bits if bits.any() else np.empty((0, 0), dtype=np.uint8),
        over_time=np.bool_(keeps_out or any(throttle.max_run_core_seconds for throttle in key.throttles)),
        counts=np.zeros((2, len(columns)), dtype=COUNT),
    )
    return Layout(gates, [column.limits for column in columns], of_queues, of_users)


def _stacked(columns: Sequence[NDArray[Any]], n: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return columns of n rows as one table."""
    return np.stack(columns, axis=1).astype(dtype) if columns else np.empty((n, 0), dtype)


def _unlimited(size: int) -> NDArray[np.void]:
    gates = np.zeros(size, dtype=GATE)
    for field in _FIELDS:
        gates[field] = UNLIMITED
    return gates


def _quotas(workload: Workload, begin: int) -> NDArray[np.void]:
    """Return the gate of each quota, with its amount at an instant."""
    gates = _unlimited(len(workload.quotas))
    gates["max_run_amount"] = [quota.most_at(begin) for quota in workload.quotas]
    return gates


def _of_quotas(workload: Workload) -> list[_Column]:
    """Return the columns of the quotas; quotas without a job in common share a column."""
    columns: list[_Column] = []
    for k, quota in enumerate(workload.quotas):
        column = next((each for each in columns if (each.rows[quota.rows] < 0).all()), None)
        if column is None:
            n = len(workload)
            column = _Column(np.full(n, NO_GATE, dtype=np.int32), np.zeros(n, dtype=np.int64), {}, {})
            columns.append(column)
        column.rows[quota.rows], column.amount[quota.rows] = k, quota.amounts
    return columns


def _all_kinds(throttles: Sequence[Throttle], workload: Workload) -> list[_Kind]:
    found = _kinds(throttles, workload, _OF_CORES, workload.cores)
    for resource in sorted({name for throttle in throttles for name in dict(throttle.max_run_resources)}):
        limit = {"max_run_amount": f"{RESOURCES}.{resource}"}
        found += _kinds(throttles, workload, limit, workload.amount(resource))
    return found


def _kinds(throttles: Sequence[Throttle], workload: Workload, limits: dict[str, str], amount: Column) -> list[_Kind]:
    """Return the kinds of the throttles that have one of these limits."""
    found = []
    for each, of_queue, of_qos in product(get_args(Each), (False, True), (False, True)):
        chosen = [
            t
            for t in throttles
            if t.each == each and (t.queue is not None) == of_queue and bool(t.qos) == of_qos
            if not t.limits.keys().isdisjoint(limits.values())
        ]
        if chosen:
            names = {field: limit.partition(".")[0] for field, limit in limits.items()}
            exempt = {} if chosen[0].is_of_qos else names
            found.append(_Kind(chosen, *whose(workload, each), limits, exempt, amount))
    return found


def _of_kind(kind: _Kind, workload: Workload) -> tuple[NDArray[np.void], NDArray[np.int32]]:
    """Return the gates of one kind, and the gate of each job; a throttle with a name overrides that of each."""
    throttles = sorted(kind.throttles, key=lambda throttle: bool(throttle.name))
    queue = workload.queue if throttles[0].queue is not None else np.zeros_like(workload.queue)
    classes, users = int(workload.qos.max(initial=-1)) + 2, int(kind.whose.max(initial=-1)) + 2
    place = queue * classes + (workload.qos + 1 if throttles[0].qos else 0)
    present, row = np.unique(place * users + kind.whose + 1, return_inverse=True)
    table = _unlimited(present.size)
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
    return table, np.where(used[row] & (kind.amount > 0), row, NO_GATE).astype(np.int32)


def _exemptions(names: dict[str, str], workload: Workload, exempt: Sequence[QOS]) -> NDArray[np.uint8]:
    """Return the bits of the limits of these names from which each job is exempt (rule "exemptions by QOS")."""
    if not (names and exempt):
        return np.zeros(len(workload), dtype=np.uint8)
    places = {_FIELDS.index(field): name for field, name in names.items()}
    bits = {qos.name: sum(1 << place for place, name in places.items() if qos.is_exempt(name)) for qos in exempt}
    present, row = np.unique(workload.qos, return_inverse=True)
    of = [bits.get(workload.qos_name(number), 0) if number >= 0 else 0 for number in present.tolist()]
    return np.array(of, dtype=np.uint8)[row]
