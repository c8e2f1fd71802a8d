"""Short texts for why a job waits now."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from parsim.model.throttles import Whose
from parsim.model.throttles import whose as whose_of
from qconf.prediction.present import Ahead


def reasons(found: Ahead, planned: NDArray[np.int64]) -> Iterator[str]:
    """Yield for each job why it does not start at once; an empty text for a running job."""
    w, state, system, now = found.present.workload, found.present.state, found.system, found.now
    running = state.start < now
    counts, cores = (np.bincount(w.queue[running], of, len(system.queues)) for of in (None, w.cores[running]))
    of_user: dict[tuple[int, int], list[int]] = {}
    for queue, user, size in zip(w.queue[running], w.user[running], w.cores[running], strict=True):
        of_user.setdefault((int(queue), int(user)), []).append(int(size))
    begins = ~running & (planned <= now)
    after, used = dict(w.after.tolist()), [int(q.amounts[running[q.rows]].sum()) for q in w.quotas]
    lacking = {
        row: f"limit: {quota.most} {quota.name}"
        for quota, taken in zip(w.quotas, used, strict=True)
        for row, amount in zip(quota.rows.tolist(), quota.amounts.tolist(), strict=True)
        if taken + amount > quota.most
    }
    idle = max(0, found.idle(now) - int(w.cores[begins].sum()))
    for row, (size, walltime, q, user) in enumerate(
        zip(w.cores.tolist(), w.walltime.tolist(), w.queue.tolist(), w.user.tolist(), strict=True)
    ):
        queue, own = system.queues[q], of_user.get((q, user), []) if user >= 0 else []
        holds = _holding(found, row)
        amounts = {
            "max_run": (counts[q] + 1, "jobs of"),
            "max_run_cores": (cores[q] + size, "cores of"),
            "max_user_run": (len(own) + 1, "jobs of a user in"),
            "max_user_cores": (sum(own) + size if user >= 0 else 0, "cores of a user in"),
        }
        limits = (
            f"limit: {most} running {what} {queue.name}"
            for name, (amount, what) in amounts.items()
            if (most := getattr(queue, name)) is not None and holds(name) and amount > most
        )
        if running[row]:
            yield ""
        elif planned[row] <= now:
            yield "starts now"
        elif w.submit[row] > now:
            yield "asked to start later"
        elif row in after:
            yield f"waits for job {found.jobs[after[row]].job_id} to end"
        elif row in lacking:
            yield lacking[row]
        elif planned[row] >= found.unknown_from:
            yield "needs nodes that are down, their return is unknown"
        elif (text := next(limits, "")) or (text := _throttle(found, running, row)):
            yield text
        elif size > idle:
            yield f"needs {size} core{'s' * (size > 1)}, {idle} idle"
        elif any(now < each.begin < now + walltime for each in state.windows):
            yield "would run into a downtime or a reservation"
        elif system.mode not in ("shared", "multiqueue"):
            yield f"needs {size} core{'s' * (size > 1)} of those that {queue.name} may use"
        elif w.request[row] >= 0:
            yield "needs nodes that have what it asks for, or would delay a job before it"
        else:
            yield "would delay a job before it"


def _throttle(found: Ahead, running: NDArray[np.bool_], row: int) -> str:
    """Name the throttle that a job would exceed beside the running jobs; empty if none."""
    w, now = found.present.workload, found.now
    whose, mates_of = {"": "all"}, {"": np.ones_like(running)}
    for each in get_args(Whose):
        number, name_of = whose_of(w, each)
        whose[each], mates_of[each] = name_of(int(number[row])), number == number[row]
    beside, holds = running.copy(), _holding(found, row)
    beside[row] = True
    left = np.where(running, found.present.state.start + w.walltime - now, w.walltime)
    amounts = {"max_run": np.ones_like(left), "max_run_cores": w.cores, "max_run_core_seconds": w.cores * left}
    own = {(t.each, t.queue, t.qos) for t in found.system.throttles if t.name == whose.get(t.each)}
    for throttle in found.system.throttles:
        name = whose.get(throttle.each, "")  # a snapshot has no groups
        named = (throttle.each, throttle.queue, throttle.qos) in own
        if not name or (throttle.each and throttle.name != (name if named else "")):
            continue
        if throttle.queue not in (None, w.queue[row]) or throttle.qos not in ("", whose["qos"]):
            continue
        mates = beside & mates_of[throttle.each]
        mates &= mates_of["qos"] if throttle.qos else mates_of[""]
        mates = mates if throttle.queue is None else mates & (w.queue == throttle.queue)
        for limit, most in throttle.limits.items():
            field, _, resource = limit.partition(".")
            amount = w.amount(resource) if resource else amounts.get(limit, np.zeros_like(left))
            concerns = amount[row] > 0 and (throttle.is_of_qos or holds(field))
            if concerns and amount[mates].sum() > most:
                of = f"{throttle.each} {name}" if throttle.each else "all jobs"
                return f"limit: {limit} {most} of {of}" + (f" in qos {throttle.qos}" if throttle.qos else "")
    return ""


def _holding(found: Ahead, row: int) -> Callable[[str], bool]:
    """Return a test whether limits of a name apply to a job; its QOS may be exempt."""
    name = found.present.workload.qos_name(int(found.present.workload.qos[row]))
    qos = next((each for each in found.system.qos if each.name == name), None)
    return lambda limit: qos is None or not qos.is_exempt(limit)
