"""The order of the waiting list as a job_sort_formula, and back."""

from __future__ import annotations

import re

from qconf.config import ConfigError, SiteConfig
from qconf.export.priorities import Priorities, scale

# Orders within one list, largest value first; 0 leaves PBS's own order, by submission.
_ALONE = {
    "fcfs": "0",
    "sjf": "-walltime",
    "ljf": "walltime",
    "lxf": "(eligible_time + walltime) / max(walltime, 1)",
    "wfp3": "(eligible_time / max(walltime, 1)) ** 3 * ncpus",
}
# The same behind the queue's priority; logarithms let no ratio reach the next priority.
_BEHIND_PRIORITY = {
    "fcfs": "queue_priority",
    "sjf": "queue_priority * 1e10 - walltime",
    "ljf": "queue_priority * 1e10 + walltime",
    "lxf": "queue_priority * 100 + log((eligible_time + walltime) / max(walltime, 1))",
    "wfp3": "queue_priority * 1000 + log(1 + (eligible_time / max(walltime, 1)) ** 3 * ncpus)",
}
_STARVING = "2e15 + eligible_time"
_RESERVED = "4e15"
_RATIOS = "The priorities do not fit PBS's -1024..1023 in their ratios:"


def formula(config: SiteConfig, priorities: Priorities) -> tuple[str | None, list[str]]:
    """Write the order of `config` as a formula, None for PBS's own order by submission; note what it approximates.

    Queues of the pool have the negative of their queue's Priority, by which the formula knows a job's list.
    """
    notes: list[str] = []
    values = priorities.values
    named = config.order in _ALONE
    table = _BEHIND_PRIORITY if config.mode == "shared" and len(set(values.values())) > 1 else _ALONE
    text = table[config.order] if named else _own_units(config.order, priorities, notes)
    if named:
        text = _with_starvation(text, config, values, notes)
    reserved = [queue for queue in config.queues if queue.reservation]
    if config.mode != "shared" and reserved:
        others = {values[queue.name] for queue in config.queues if not queue.reservation}
        if named and all(values[queue.name] not in others for queue in reserved):
            levels = sorted({values[queue.name] for queue in reserved})
            for level in levels:
                text = f"{_RESERVED} if queue_priority == {level} else {_grouped(text)}"
        else:
            notes.append(
                "A queue with reservations does not go before the others: "
                + ("its priority is that of another queue." if named else "the formula decides.")
            )
    if config.pool is not None and config.pool_cores:
        factor = "-queue_priority * eligible_time / max(walltime, 1)"
        if priorities.unit is None and len(set(values.values())) > 1:
            notes.append(f"{_RATIOS} the pool's priority factors see whole numbers near them.")
        if config.pool.starving_first:
            factor = _with_starvation(factor, config, {name: -value for name, value in values.items()}, notes)
        text = f"{_grouped(factor)} if queue_priority < 0 else {_grouped(text)}"
    return None if text == "0" else text, notes


def _grouped(text: str) -> str:
    """Put what is no single word between parentheses."""
    return text if re.fullmatch(r"-?\w+", text) else f"({text})"


def _own_units(text: str, priorities: Priorities, notes: list[str]) -> str:
    """Write a formula of the configuration for its own priorities, not the scaled ones."""
    text = " ".join(text.split())
    if priorities.unit == 1 or "queue_priority" not in text:
        return text
    if priorities.unit is None:
        notes.append(f"{_RATIOS} the formula sees whole numbers near them.")
        return text
    unit = priorities.unit
    factor = f"{unit.numerator} / {unit.denominator}" if unit.denominator > 1 else f"{unit.numerator}"
    return re.sub(r"\bqueue_priority\b", f"(queue_priority * {factor})", text)


def _with_starvation(text: str, config: SiteConfig, values: dict[str, int], notes: list[str]) -> str:
    """Put the jobs that wait longer than their queue's starvation period first, by their waiting time."""
    periods: dict[int, int | None] = {}
    for queue in config.queues:
        if config.mode != "shared" and queue.reservation:
            continue  # its order is by submission, starving or not
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


def recognise(config: SiteConfig, text: str | None) -> SiteConfig | None:
    """Return `config` with the order and starvation periods with which `formula` writes `text`; None without any."""
    if text is None:
        return config
    values = scale(config.queues).values
    pool_part, found, own = text.partition(" if queue_priority < 0 else ")
    starving = r"(?<![0-9e])([0-9]+) if queue_priority == -?([0-9]+)\b"
    by_value = {int(value): int(length) for length, value in re.findall(starving, text)}
    single = re.search(r"2e15 \+ eligible_time if eligible_time >= ([0-9]+) else", text)
    queues = []
    for queue in config.queues:
        period = int(single[1]) if single else by_value.get(values[queue.name])
        if config.mode != "shared" and queue.reservation:
            period = queue.starvation
        queues.append(queue.model_copy(update={"starvation": period}))
    pool = config.pool
    if pool is not None and found and "2e15" in pool_part:
        pool = pool.model_copy(update={"starving_first": True})
    for order in (*_ALONE, *((own, own[1:-1]) if config.mode == "hybrid" and found else ())):
        try:
            candidate = config.replace(queues=tuple(queues), order=order, pool=pool)
        except ConfigError:
            continue
        if formula(candidate, scale(candidate.queues))[0] == text:
            return candidate
    return None
