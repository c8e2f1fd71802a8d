"""Losers in words: a line for each group of jobs that a change makes worse, the one with most lost hours first."""

from __future__ import annotations

import math

from parsim.metrics import Summary
from parsim.model.node_types import CORES
from qconf.evaluation.impact import Group, Impact
from qconf.report.columns import COLUMNS
from qconf.report.wording import number
from qconf.text import in_terms_of

ALIKE = 0.1  #: relative change of the spread among users below which it is as before

#: The metrics of a line, in its order.
_NAMES = {
    "mean_wait": "mean wait",
    "median_wait": "median wait",
    "p95_wait": "95 % wait",
    "max_wait": "longest wait",
    "mean_bounded_slowdown": "slowdown",
}


def losers(found: Impact) -> list[str]:
    """Return a line for each group that is worse, by descending harm."""
    return [line(group, found.resource) for group in found.losers]


def short(group: Group) -> str:
    """Return a few words on a group that is worse: the metric that grows most, before and after."""
    key = group.worst or "mean_bounded_slowdown"
    jobs = f"{group.jobs} job{'s' * (group.jobs != 1)}"
    return f"{_named(group)}, {jobs}: {_fact(group, key, _NAMES[key])}"


def _named(group: Group) -> str:
    return f"queue {group.name}" if group.kind == "queue" else group.name


def line(group: Group, resource: str = CORES) -> str:
    """Return a line on a group: how much it is worse, if it is, and its waits before and after."""
    facts = ", ".join(_fact(group, key, text.removesuffix(" wait")) for key, text in _NAMES.items())
    share = f"{100 * group.share:.0f} %" if group.share >= 0.01 else "under 1 %"
    of = f"{share} {in_terms_of(resource, 'of the core-hours')}"
    return f"{_named(group)} {_lead(group)}: {facts} ({group.jobs} job{'s' * (group.jobs != 1)}, {of})"


def _lead(group: Group) -> str:
    many = group.kind in ("size", "nodes") or (group.kind == "user" and not group.name.startswith("1 "))
    if not group.grown:
        return "are not worse" if many else "is not worse"
    key = group.worst or group.grown[0]
    more = "longer" if key.endswith("_wait") else "larger"
    verb = f"{'have' if many else 'has'} a {_NAMES[key]}" if key != "mean_wait" else "wait" if many else "waits"
    return f"{verb} {_growth(group.before[key], group.after[key], more)}"


def _growth(before: float, after: float, more: str) -> str:
    """Format a growth: per cent more, times as much, or only "longer" if there was next to nothing before."""
    if before < 60 and more == "longer":
        return more
    ratio = after / before
    if ratio < 2:
        return f"{100 * (ratio - 1):.0f} % {more}"
    return f"{ratio:.1f} times as {'long' if more == 'longer' else 'large'}"


def _fact(group: Group, key: str, name: str) -> str:
    column = COLUMNS[key]
    values = [column.scaled(of[key]) for of in (group.before, group.after)]
    then, now = (number(value, 2 if abs(value) < 9.995 else 1) for value in values)
    return f"{name} {then} -> {now}{' h' if column.unit == 'h' else ''}"


def fairness(before: Summary, after: Summary) -> str:
    """Return a sentence on how equally users are served, before and after; empty if the log names too few."""
    then, now = before["spread_users"], after["spread_users"]
    if not (math.isfinite(then) and math.isfinite(now)):
        return ""
    how = "as alike as before" if abs(now - then) < ALIKE * then else "more alike" if now < then else "less alike"
    column = COLUMNS["spread_users"]
    return (
        f"users are served {how}: the slowdown that one in ten exceeds is {column.write(now, 1)} times that which one "
        f"in ten stays below, {column.write(then, 1)} times before"
    )
