"""The jobs that were submitted: parallel columns, one entry per job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parsim.model.needs import NO_PAIRS, Quota, pairs, positions, selected_pairs
from parsim.model.node_types import Request, amounts

Column = NDArray[np.int64]

#: Bounds that keep every sum and product of the kernels inside int64.
MAX_CORES = 2**31 - 1
MAX_DURATION = 2**31 - 1
MAX_SPAN = 2**31 - 1
MAX_SUBMIT = 2**61  #: either side of 0, so that every end of a simulation lies before 2**62

BOUNDS = {
    "submit": (-MAX_SUBMIT, MAX_SUBMIT),
    "cores": (1, MAX_CORES),
    "runtime": (1, MAX_DURATION),
    "walltime": (1, MAX_DURATION),
    "queue": (0, 2**31 - 1),
    "user": (-1, 2**31 - 1),
    "group": (-1, 2**31 - 1),
    "qos": (-1, 2**31 - 1),
    "request": (-1, 2**31 - 1),
    "estimate": (0, MAX_DURATION),
}
#: Defaults of the optional columns: one number for all jobs, broadcast, so that it takes the memory of one.
DEFAULTS = {"queue": 0, "user": -1, "group": -1, "qos": -1, "request": -1, "estimate": 0}


def _column(name: str, values: ArrayLike, length: int) -> Column:
    """Return `values` as a read-only int64 column; ValueError for fractions and values out of bounds."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name}: expected one dimension, got shape {array.shape}")
    numbers = array
    if array.dtype.kind not in "iu":
        try:
            numbers = array.astype(np.float64)
        except OverflowError as error:
            raise ValueError(f"{name}: {error}") from error
        if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
            raise ValueError(f"{name}: expected whole numbers, got {array.dtype} with fractions, NaN or infinity")
    if array.size != length:
        raise ValueError(f"{name}: {array.size} values, but submit has {length}")
    low, high = BOUNDS[name]
    bad = np.flatnonzero((numbers < low) | (numbers > high))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}]: {array[bad[0]]} is outside {low}..{high} ({bad.size} such jobs)")
    if name in DEFAULTS and length and array.strides == (0,):
        return np.broadcast_to(np.int64(array[0]), length)
    column = np.array(array, dtype=np.int64)
    column.flags.writeable = False
    return column


@dataclass(frozen=True, eq=False)
class Workload:
    """The jobs of a history; every column is int64 of shape (n,).

    Jobs may come in any order: ties of `submit` go by position. `queue` indexes ``System.queues``; `user` and `group`
    are any non-negative number per user and group, -1 for a job without one (exempt from limits of each). By default
    all jobs are of queue 0, without user, group and QOS.

    Parameters
    ----------
    submit : array_like of int, shape (n,)
        Seconds, within 2**61 of 0.
    cores : array_like of int, shape (n,)
        From 1 to 2**31 - 1.
    runtime, walltime : array_like of int, shape (n,)
        Seconds, from 1 to 2**31 - 1: actual and requested. A job ends after the lesser.
    queue, user : array_like of int, shape (n,), optional
    user_names : sequence of str, optional
        Names of users by number, for fairshare and throttles; a user without one goes by the number as text.
    group : array_like of int, shape (n,), optional
    group_names : sequence of str, optional
        The same for the groups.
    after : array_like of int, shape (k, 2), optional
        Pairs of rows: the first job waits until the second has ended.
    quotas : sequence of Quota, optional
        Limited amounts that running jobs share.
    qos : array_like of int, shape (n,), optional
        Number of the quality of service, -1 for a job without one, the default.
    qos_names : sequence of str, optional
        Their names, as ``System.qos`` and throttles have them.
    request : array_like of int, shape (n,), optional
        Index into `requests` of what a job requests of nodes of several types; -1 for cores alone.
    requests : sequence of sequence of Chunk, optional
    estimate : array_like of int, shape (n,), optional
        Predicted run time, seconds; 0 for a job without a prediction, the default. Only formulas read it.

    Raises
    ------
    ValueError
        Names the column, the position and the value that cannot be simulated.
    """

    submit: Column
    cores: Column
    runtime: Column
    walltime: Column
    queue: Column = field(default=None)  # type: ignore[arg-type]
    user: Column = field(default=None)  # type: ignore[arg-type]
    user_names: Sequence[str] = ()
    group: Column = field(default=None)  # type: ignore[arg-type]
    group_names: Sequence[str] = ()
    after: Column = field(default=None)  # type: ignore[arg-type]
    quotas: Sequence[Quota] = ()
    qos: Column = field(default=None)  # type: ignore[arg-type]
    qos_names: Sequence[str] = ()
    request: Column = field(default=None)  # type: ignore[arg-type]
    requests: Sequence[Request] = ()
    estimate: Column = field(default=None)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        n = np.asarray(self.submit).size
        for name in BOUNDS:
            given = getattr(self, name)
            if given is None and name in DEFAULTS:
                given = np.broadcast_to(np.int64(DEFAULTS[name]), n)
            object.__setattr__(self, name, _column(name, given, n))
        for name in ("user_names", "group_names", "qos_names"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "after", pairs(self.after, n))
        object.__setattr__(self, "quotas", tuple(quota for quota in self.quotas if quota.rows.size))
        for quota in self.quotas:
            if not 0 <= quota.rows.min() <= quota.rows.max() < n:
                raise ValueError(f"quota {quota.name}: row {quota.rows.max()} or {quota.rows.min()}, of {n} jobs")
        object.__setattr__(self, "requests", tuple(map(tuple, self.requests)))
        self._check_requests()
        if n and int(self.submit.max()) - int(self.submit.min()) > MAX_SPAN:
            raise ValueError(
                f"submit: spans more than {MAX_SPAN} seconds, from {self.submit.min()} to {self.submit.max()}"
            )

    def _check_requests(self) -> None:
        if int(self.request.max(initial=-1)) >= len(self.requests):
            raise ValueError(f"request: {self.request.max()}, of {len(self.requests)} requests")
        if not self.requests:
            return
        cores = np.array([sum(chunk.count * chunk.cores for chunk in request) for request in self.requests])
        wrong = np.flatnonzero((self.request >= 0) & (cores[self.request] != self.cores))
        if wrong.size:
            row = wrong[0]
            raise ValueError(
                f"request[{row}]: chunks of {cores[self.request[row]]} cores, of a job of {self.cores[row]}"
            )

    def __len__(self) -> int:
        """Return the number of jobs."""
        return self.submit.size

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Workload:
        """Choose jobs.

        Parameters
        ----------
        rows : ndarray(int64) or ndarray(bool) or slice
            Indices, a mask of shape (n,), or a slice.

        Returns
        -------
        Workload
            The jobs at `rows`, in that order. Dependencies on jobs that are left out are dropped. Of a row that is
            chosen twice, only the last copy has dependencies and quotas.
        """
        columns: dict[str, Any] = {name: np.ascontiguousarray(getattr(self, name)[rows]) for name in BOUNDS}
        if self.has_needs:
            to = positions(len(self), rows)
            quotas = [quota.take(to) for quota in self.quotas]
            return replace(self, **columns, after=selected_pairs(self.after, to), quotas=quotas)
        for column in columns.values():
            column.flags.writeable = False
        return self._having(columns)

    def _having(self, values: Mapping[str, object]) -> Workload:
        """Return the jobs with these values of fields, without checks, which would take longer than choosing jobs."""
        made = object.__new__(Workload)
        for each in fields(self):
            object.__setattr__(made, each.name, values.get(each.name, getattr(self, each.name)))
        return made

    @property
    def has_needs(self) -> bool:
        """Whether any job waits for others to end, or takes a part of a quota."""
        return bool(self.after.size or self.quotas)

    def without_needs(self) -> Workload:
        """Return the jobs without dependencies and quotas.

        Returns
        -------
        Workload
        """
        return self._having({"after": NO_PAIRS, "quotas": ()})

    def user_name(self, user: int) -> str:
        """Return the name of a user, or its number as text; empty for -1."""
        if user < 0:
            return ""
        return self.user_names[user] if user < len(self.user_names) else str(user)

    def group_name(self, group: int) -> str:
        """Return the name of a group, or its number as text; empty for -1."""
        if group < 0:
            return ""
        return self.group_names[group] if group < len(self.group_names) else str(group)

    def qos_name(self, qos: int) -> str:
        """Return the name of a quality of service, or its number as text; empty for -1."""
        if qos < 0:
            return ""
        return self.qos_names[qos] if qos < len(self.qos_names) else str(qos)

    def amount(self, resource: str) -> Column:
        """Return the total of a resource over all chunks of each job; 0 for jobs that request only cores.

        Parameters
        ----------
        resource : str
            Not cores.

        Returns
        -------
        ndarray(int64), shape (n,)
        """
        return amounts(self.requests, resource)[self.request]

    @property
    def effective_runtime(self) -> Column:
        """Seconds that each job occupies its cores, ``min(runtime, walltime)``; shape (n,)."""
        return np.minimum(self.runtime, self.walltime)

    @property
    def expected_runtime(self) -> Column:
        """Seconds of each job's estimate up to its walltime, else its walltime; shape (n,) ("predicted run time")."""
        return np.where(self.estimate > 0, np.minimum(self.estimate, self.walltime), self.walltime)
