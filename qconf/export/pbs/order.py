"""Write the order of waiting jobs as a job_sort_formula, and read it back."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from parsim.model.fairshare import FAIRSHARE
from parsim.model.formula import MOST_CHARACTERS
from qconf.config import ConfigError, SiteConfig
from qconf.errors import ExportError
from qconf.export.pbs.fairshare import by_pbs
from qconf.export.pbs.server import Scheduler, Server, priority_of
from qconf.export.precision import MOST, Jobs, lost
from qconf.export.priorities import Priorities, are_several

# Orders of one list, largest value first; 0 keeps PBS's own order, by submission.
_ALONE = {
    "fcfs": "0",
    "sjf": "-walltime",
    "ljf": "walltime",
    "lxf": "(eligible_time + walltime) / max(walltime, 1)",
    "wfp3": "(eligible_time / max(walltime, 1)) ** 3 * ncpus",
}
# The same orders within equal queue priorities; logarithms keep a job below the next priority. PBS stores the value of
# a formula as a float of 24 bits: large priorities are replaced by their ranks.
_STEP = "queue_priority * 32"
_LARGE = 128  #: with higher priorities, keys that differ by 0.03 % would become equal
_BEHIND_PRIORITY = {
    "fcfs": "queue_priority",
    "sjf": "queue_priority * 32 - log(max(walltime, 1))",
    "ljf": "queue_priority * 32 + log(max(walltime, 1))",
    "lxf": "queue_priority * 32 + log((eligible_time + walltime) / max(walltime, 1))",
    "wfp3": "queue_priority * 32 + log(1 + eligible_time / max(walltime, 1) * ncpus ** (1 / 3))",
}
# No small value is added to a much larger one, so no digits are lost.
_STARVING = "1e28 * (1 + eligible_time)"
_RESERVED = "1e38"
_PRIORITY = re.compile(r"\bqueue_priority\b")
#: PBS's expressions for names in a formula; a job without a prediction has an estimate of 0.
_IN_PBS = {
    "qos_target_factor": (
        "((qos_target > 0) / max(qos_target - (eligible_time + walltime) / max(walltime, 1), 0.0001) ** 2)"
    ),
    "estimate": "(min(estimate, walltime) if estimate > 0 else walltime)",
}
#: Settings of the scheduler without a counterpart in a configuration, with their effect.
_NAMED = {
    "round_robin": "lets the queues take turns",
    "sort_by": "sorts jobs too",
    "peer_queue": "lets jobs of other servers in",
    "server_dyn_res": "asks a script how much there is of a resource",
    "load_balancing": "keeps jobs from nodes that are busy",
}
# job_sort_key -> (order without priorities, order within equal queue priorities).
_SORT_KEYS = {
    "walltime low": ("-walltime", "sjf"),
    "walltime high": ("walltime", "ljf"),
    "ncpus low": ("-ncpus", "queue_priority * 32 - log(ncpus)"),
    "ncpus high": ("ncpus", "queue_priority * 32 + log(ncpus)"),
}


def formula(
    config: SiteConfig, priorities: Priorities, jobs: Jobs | None = None, present: str | None = None
) -> tuple[str | None, list[str]]:
    """Return the formula for the order of `config`, None for PBS's order by submission, and notes on approximations.

    A pool queue has the negative of its queue's Priority, so that the formula can tell the lists apart. The notes
    report how well single precision orders `jobs` (default: `Jobs.of`), unless the formula is `present`, today's.
    """
    text, notes = _formula(config, priorities, jobs, present)
    if text is None or len(text) <= MOST_CHARACTERS or priorities.unit is not None:
        return text, notes
    text, notes = _formula(config, replace(priorities, unit=Fraction(1)), jobs, present)
    return text, [*notes, "So many priorities do not fit a formula in their ratios: it sees whole numbers near them."]


def refuse(config: SiteConfig, priorities: Priorities, jobs: Jobs | None = None, present: str | None = None) -> None:
    """Raise ExportError if single precision loses the order of too many jobs, unless the formula is `present`."""
    if config.order in _ALONE or config.order == FAIRSHARE:
        return  # these formulas suit single precision
    own = _own_formula(config, priorities)
    if own != present and (wrong := lost(own, config, tuple(priorities.values.items()), jobs)) > MOST:
        raise ExportError(
            f"order: PBS keeps the value of a formula in single precision, 24 binary digits, in which {wrong:.1%} of "
            "the pairs of jobs change places: add nothing small to what is large, such as waits to 1e10 * ncpus, but "
            "give the large part a weight that is just large enough"
        )


def _own_formula(config: SiteConfig, priorities: Priorities) -> str:
    """Return the configuration's own formula in PBS's names and exported priorities."""
    text = by_pbs(config, " ".join(config.order.split()))
    return _own_units(re.sub(rf"\b({'|'.join(_IN_PBS)})\b", lambda name: _IN_PBS[name[0]], text), priorities)


def _from_pbs(text: str) -> str:
    for name, own in _IN_PBS.items():
        text = text.replace(own, name)
    return text


def _formula(
    config: SiteConfig, priorities: Priorities, jobs: Jobs | None, present: str | None
) -> tuple[str | None, list[str]]:
    notes: list[str] = []
    if config.order == FAIRSHARE:
        return None, notes
    values = priorities.values
    named = config.order in _ALONE
    behind = config.mode == "shared" and are_several(config.queues)
    table = _BEHIND_PRIORITY if behind else _ALONE
    text = table[config.order] if named else _own_formula(config, priorities)
    if not named:
        wrong = 0.0 if text == present else lost(text, config, tuple(values.items()), jobs)
        if wrong >= 0.001:
            notes.append(
                f"PBS keeps the value of the formula in single precision: {wrong:.1%} of the pairs of jobs that the "
                "simulator keeps apart are equal to it, and go by submission."
            )
    else:
        if max(values.values()) > _LARGE:
            steps = [f"(queue_priority > {value})" for value in sorted({*values.values()})[:-1]]
            places = f"({' + '.join(steps)})" if len(steps) > 1 else "".join(steps)
            text = text.replace(_STEP, f"32 * {places}")
        text = _with_starvation(text, config, values, notes)
    reserved = [queue for queue in config.queues if queue.reservation]
    if config.mode != "shared" and reserved:
        others = {values[queue.name] for queue in config.queues if not queue.reservation}
        if named and all(values[queue.name] not in others for queue in reserved):
            for level in sorted({values[queue.name] for queue in reserved}):
                held = [queue.starvation for queue in reserved if values[queue.name] == level]
                periods = [period for period in held if period is not None]
                # starving jobs have waited longest anyway: the term only stores the period
                starving = f" + (eligible_time >= {min(periods)})" if periods else ""
                text = f"{_RESERVED}{starving} if queue_priority == {level} else {_grouped(text)}"
        else:
            notes.append(
                "A queue with reservations does not go before the others: "
                + ("its priority is that of another queue." if named else "the formula decides.")
            )
    if config.pool is not None and config.pool_cores:
        factor = "-queue_priority * eligible_time / max(walltime, 1)"
        if priorities.unit is None:
            factor = factor.replace("-queue_priority", _exactly(priorities, -1))
        if config.pool.starving_first:
            factor = _with_starvation(factor, config, {name: -value for name, value in values.items()}, notes)
        text = f"{_grouped(factor)} if queue_priority < 0 else {_grouped(text)}"
    return None if text == "0" else text, notes


def _grouped(text: str) -> str:
    """Put an expression in parentheses unless it is a single word."""
    return text if re.fullmatch(r"-?\w+", text) else f"({text})"


def _own_units(text: str, priorities: Priorities) -> str:
    """Rewrite queue_priority in a formula, so that it has the configuration's priority and not the exported one.

    The value is exact, so that comparisons in the formula still hold.
    """
    if by := priorities.raised:
        lowered = f"(queue_priority - {by})"  # as `read_order` writes the server's queue_priority
        own = f"(queue_priority + {by})"
        return re.sub(
            rf"{re.escape(lowered)}|{_PRIORITY.pattern}", lambda m: own if m[0] != lowered else "queue_priority", text
        )
    if (unit := priorities.unit) is None:
        own = _exactly(priorities)
    elif unit == 1:
        return text
    else:
        own = f"(queue_priority * {unit.numerator}{f' / {unit.denominator}' if unit.denominator > 1 else ''})"
    return _PRIORITY.sub(own, text)


def _exactly(priorities: Priorities, sign: int = 1) -> str:
    """Return an expression for the configuration's priority; `sign` -1 for the pool's queues."""
    *others, (_, last) = sorted(priorities.exact.items())
    chain = "".join(f"{_number(own)} if queue_priority == {sign * value} else " for value, own in others)
    return f"({chain}{_number(last)})"


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


def _with_starvation(text: str, config: SiteConfig, values: dict[str, int], notes: list[str]) -> str:
    """Add starvation to a formula: jobs that wait longer than their queue's period go first, by waiting time."""
    periods: dict[int, int | None] = {}
    for queue in config.queues:
        if config.mode != "shared" and queue.reservation:
            continue  # reserved jobs go by submission, starving or not
        value = values[queue.name]
        if value in periods and periods[value] != queue.starvation:
            notes.append(
                f"Queues of one priority ({abs(value)}) have different starvation periods, which a formula "
                "cannot tell apart: the shorter one goes for all of them."
            )
        known = [period for period in (periods.get(value), queue.starvation) if period is not None]
        periods[value] = min(known, default=None)
    starving = {value: period for value, period in periods.items() if period is not None}
    if not starving:
        return text
    lengths = sorted(set(starving.values()))
    if len(lengths) == 1 and len(starving) == len(periods):
        return f"{_STARVING} if eligible_time >= {lengths[0]} else {_grouped(text)}"
    by_value = sorted(starving.items())
    limit = " else ".join(f"{period} if queue_priority == {value}" for value, period in by_value)
    return f"{_STARVING} if eligible_time >= ({limit} else 1e15) else {_grouped(text)}"


def present_formula(server: Server) -> str | None:
    """Return the present formula: the server's, else the scheduler's, else None."""
    return server.attributes.get("job_sort_formula") or server.scheduler.get("job_sort_formula")


def read_order(config: SiteConfig, server: Server, scheduler: Scheduler, warnings: list[str]) -> SiteConfig:
    """Return `config` with PBS's present order; settings without a counterpart become warnings."""
    text = present_formula(server)
    warnings += [
        f"sched_config: {name} is one thing in prime time and another out of it; that out of it was taken"
        for name in ("by_queue", "job_sort_key", "strict_ordering", "round_robin", "fair_share")
        if scheduler.differs(name)
    ]
    others = {name: scheduler.value(name) or "false" for name in _NAMED}
    warnings += [
        f"sched_config: {name}: {value} {_NAMED[name]}, and has no place in a configuration"
        for name, value in others.items()
        if value.lower() not in ("false", "no", "f", "0", "no_sort")
    ]
    if text is not None and scheduler.on("fair_share"):
        warnings.append("sched_config: fair_share sorts jobs too, and has no place in a configuration")
    if text is None and scheduler.on("fair_share"):
        return config.replace(order=FAIRSHARE)
    several = are_several(config.queues)
    by_queue = scheduler.is_true("by_queue")
    alike = [q.name for q in config.queues if sum(q.priority == each.priority for each in config.queues) > 1]
    if scheduler.settings.get("by_queue") and by_queue and alike and config.mode == "shared":
        warnings.append(
            f"sched_config: by_queue: True: of queues of one Priority ({', '.join(alike)}) PBS takes all jobs of one "
            "before those of the next; they are simulated together"
        )
    if text is None:
        return _by_sort_key(config, scheduler, warnings, behind_priority=several and by_queue)
    threshold = server.scheduler.get("job_sort_formula_threshold")
    if threshold is not None:
        warnings.append(
            f"job_sort_formula_threshold = {threshold}: jobs whose formula is not above it do not start, and a "
            "configuration has no place for it"
        )
    if several and scheduler.settings.get("by_queue") and by_queue:
        warnings.append(
            "by_queue: True: PBS takes one queue after the other, by Priority, and sorts by job_sort_formula within "
            "each; the configuration's formula is over all queues together"
        )
    held = {name: priority_of(server.queues[name]) for name in config.names}
    if (known := _recognise(config, text, held)) is not None:
        return known
    raised = {queue.priority - held[queue.name] for queue in config.queues}
    if len(raised) == 1 and (by := int(raised.pop())):
        text = _PRIORITY.sub(f"(queue_priority - {by})", text)
    try:
        return config.replace(order=re.sub(r"\bfair_share_perc\b", "fairshare_perc", _from_pbs(text)))
    except ConfigError as error:
        reason = "; ".join(problem.message for problem in error.problems)
        warnings.append(f"job_sort_formula was left out, fcfs taken instead: {reason}")
        return config


def _by_sort_key(config: SiteConfig, scheduler: Scheduler, warnings: list[str], *, behind_priority: bool) -> SiteConfig:
    """Return `config` with the order of job_sort_key; `behind_priority`: queue priorities come first."""
    first, _, others = (scheduler.value("job_sort_key") or "").partition(", ")
    key = _SORT_KEYS.get(" ".join(first.lower().split()))
    if (first and key is None) or others:
        left = others if key else scheduler.value("job_sort_key")
        warnings.append(f"sched_config: job_sort_key {left} has no place in a configuration; it was left out")
    if config.mode != "shared":
        return config if key is None else config.replace(order=key[0])
    several = are_several(config.queues)
    if key is None:
        return config if behind_priority or not several else config.replace(order="0")  # by submission only
    return config.replace(order=key[1] if behind_priority or (not several and key[1] in _ALONE) else key[0])


def _recognise(config: SiteConfig, text: str, values: dict[str, int]) -> SiteConfig | None:
    """Return `config` with the order, priorities and starvation for which `formula` returns `text`, else None.

    `values` are the Priorities of the server's queues, by name.
    """
    own, priorities = _own_priorities(text, values, {values[q.name]: q.priority for q in config.queues})
    pool_part, found, order = text.partition(" if queue_priority < 0 else ")
    periods = " ".join(re.findall(r"eligible_time >= \(([^()]*) else 1e15\)", text))
    levels_of = {*values.values()}
    by_value = {
        (int(value) if int(value) in levels_of else -int(value)): int(length)
        for length, value in re.findall(r"([0-9]+) if \S+ == (-?[0-9]+)", periods)
    }
    single = re.search(r"1e28 \* \(1 \+ eligible_time\) if eligible_time >= ([0-9]+) else", text)
    levels = re.findall(r"1e38 \+ \(eligible_time >= ([0-9]+)\) if queue_priority == (-?[0-9]+)\b", text)
    reserved = {int(value): int(length) for length, value in levels}
    queues = []
    for queue in config.queues:
        period = int(single[1]) if single else by_value.get(values[queue.name])
        if config.mode != "shared" and queue.reservation:
            period = reserved.get(values[queue.name])
        update = {"starvation": period, "priority": priorities.exact[values[queue.name]]}
        queues.append(queue.model_copy(update=update))
    pool = config.pool
    if pool is not None and found and "1e28" in pool_part:
        pool = pool.model_copy(update={"starving_first": True})
    order = (order if config.mode == "hybrid" and found else text).replace(own, "queue_priority")
    order = _from_pbs(order)
    for candidate_order in (*_ALONE, order, order[1:-1]):
        try:
            candidate = config.replace(queues=tuple(queues), order=candidate_order, pool=pool)
        except ConfigError:
            continue
        if formula(candidate, priorities)[0] == text:
            return candidate
    return None


def _own_priorities(text: str, values: dict[str, int], own: dict[int, float]) -> tuple[str, Priorities]:
    """Return the expression in place of queue_priority in an exported formula, and the priorities that it encodes.

    Without such an expression the priorities are `own`, by the server's Priority.
    """
    numbers = {*values.values()}
    if found := re.search(r"\(queue_priority \* ([0-9]+)(?: / ([0-9]+))?\)", text):
        unit = Fraction(int(found[1]), int(found[2] or 1))
        return found[0], Priorities(values, unit, {value: float(value * unit) for value in numbers})
    number = r"[0-9.]+(?:e[+-]?[0-9]+)?"
    for found in re.finditer(rf"\((?:{number} if queue_priority == -?[0-9]+ else )+({number})\)", text):
        exact = {
            (int(value) if int(value) in numbers else -int(value)): float(stands)
            for stands, value in re.findall(rf"({number}) if \S+ == (-?[0-9]+)", found[0])
        }
        if len(left := numbers - {*exact}) == 1 and {*exact} < numbers and found[1] != "1e15":  # 1e15 is of starvation
            priorities = Priorities(values, None, exact | {left.pop(): float(found[1])})
            return _exactly(priorities), priorities
    same = all(value == priority for value, priority in own.items())
    return "queue_priority", Priorities(values, Fraction(1) if same else None, own)
