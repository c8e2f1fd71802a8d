"""The ladder of changes, from an order of the waiting jobs up to partitions and a pool, and where to stop on it.

A small change is easier to load, explain and undo than a large one. So the row on the lowest rung is recommended over
which no row on a higher rung gains beyond chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from qconf.config import POLICY, SiteConfig
from qconf.config.points import points_of
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.recommend.recommendation import EQUAL, Row, Rung, in_scope
from qconf.strategies import baselines
from qconf.strategies.nodes import given_whole, gives_nodes_alone

#: Kinds of change, from the smallest to the largest; the ground is no change.
RUNGS = ("nothing", "points", "order", "reservation delay", "policy", "boundaries", "partitions and pool")
LOW = 3  #: the highest rung on which a strategy's kinds of search are compared

#: Compares a row with another, or with the current configuration, over the resamples of the test days.
Compare = Callable[[Row, Row | None], BootstrapResult]


def rung_of(base: SiteConfig, config: SiteConfig) -> int:
    """Return the index in `RUNGS` of the largest change; a change of policy that may change counts as order."""
    if (base.mode, base.pool_cores) != (config.mode, config.pool_cores) or (
        base.mode != "shared"
        and (base.pool != config.pool or _partitions(base, base.names) != _partitions(config, base.names))
    ):
        return 6
    bounds, after = ([(q.name, q.cores, q.walltime, q.nodes) for q in each.queues] for each in (base, config))
    if bounds != after or given_whole(base, exclusive=False).nodes != given_whole(config, exclusive=False).nodes:
        return 5
    if given_up(base, config):
        return 4
    reserving = [(each.reservation_delay, each.reserves_nothing) for each in (base, config)]
    if reserving[0] != reserving[1]:
        return 3
    if config == base:
        return 0
    return 1 if config.order != base.order and points_of(config.order) is not None else 2


def given_up(base: SiteConfig, config: SiteConfig) -> list[str]:
    """Name the parts of the policy that `config`, with the same queues, changes although they must stay."""
    return [part for part in POLICY if part not in base.policy and _changes(part, base, config)]


def _partitions(config: SiteConfig, names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the partitions of the queues of these names; fewer if `config` lacks some."""
    return [(queue.name, queue.partition, queue.partition_nodes) for queue in config.queues if queue.name in names]


def _changes(part: str, base: SiteConfig, config: SiteConfig) -> bool:
    """Return whether a part of the policy differs or loses its effect."""
    if part == "priorities":
        if not base.uses_priority or len({queue.priority for queue in base.queues}) == 1:
            return False  # equal priorities are none
        if config.is_formula and not re.search(r"queue_priority(?! ==)", config.order):
            return True  # a condition that names a queue by its priority does not put it before others
    if part == "fairshare":
        return base.is_fair and not config.is_fair
    if part == "qos":
        return base.reads_qos and not config.reads_qos
    if part == "shortpools":
        return base.shortpools != config.shortpools
    if part == "sharing":
        return gives_nodes_alone(base) != gives_nodes_alone(config)
    took_over = base.mode == config.mode == "shared" and config.is_formula and not base.is_formula
    if part == "starvation" and took_over and any(queue.starvation is not None for queue in base.queues):
        return "eligible_time >=" not in config.order  # a formula keeps the starvation periods in this form
    return any(
        getattr(old, field) != getattr(new, field)
        for old, new in zip(base.queues, config.queues, strict=True)
        for field in POLICY[part]
    )


def worthwhile(result: BootstrapResult | None, least_gain: float, *, larger: bool = False) -> bool:
    """Return whether a gain is beyond chance and at least `least_gain`; for a larger change it must be clear."""
    return result is not None and (result.clear if larger else result.certain) and result.expected >= least_gain


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the best row: certain ones first, then by targets met, then by expected gain.

    Among about equal rows the one with the shortest longest wait is best, then a baseline.
    """
    known = [(row, row.bootstrap) for row in rows if row.bootstrap is not None]
    if not known:
        return None
    row, most = max(known, key=lambda each: (each[1].certain, -len(each[0].unmet), each[1].expected))
    equals = [
        (found.after.longest, other.name not in baselines(), -found.expected, other)
        for other, found in known
        if (found.certain, len(other.unmet)) == (most.certain, len(row.unmet))
        and found.expected >= most.expected - EQUAL
    ]
    return min(equals, key=lambda each: each[:3])[-1]


def choose(rows: Sequence[Row], compare: Compare, least_gain: float) -> Row | None:
    """Return the best row of the lowest rung over which no higher one gains beyond chance; None for no change.

    A higher row that gains over the current configuration also counts if it meets a target that the lower one misses.
    """
    unmet = next((row.unmet for row in rows if row.name == "current"), ())
    by_rung = [[row for row in rows if row.rung == i and row.eligible] for i in range(1, len(RUNGS))]
    best = [row for row in map(best_of, by_rung) if row is not None]
    for i, row in enumerate([None, *best]):
        if row is not None and not worthwhile(row.bootstrap, least_gain):
            continue
        missed = set(unmet if row is None else row.unmet)
        if not any(
            worthwhile(compare(higher, row), least_gain, larger=row is not None)
            or (set(higher.unmet) < missed and worthwhile(higher.bootstrap, least_gain))
            for higher in best[i:]
        ):
            return row
    return None


def best_queues(rows: Sequence[Row], chosen: Row | None, compare: Compare, least_gain: float) -> Rung | None:
    """Return the best row that changes queues: that of `choose`, else the highest expected gain; None if none gains."""
    own = in_scope(rows, "queues")
    row = chosen if chosen in own else choose(own, compare, least_gain)
    row = row or best_of([each for each in own if each.eligible and each.bootstrap and each.bootstrap.expected > 0])
    if row is None:
        return None
    return Rung(RUNGS[row.rung], row, None if chosen in (None, row) else compare(row, chosen))


def ladder(rows: Sequence[Row], chosen: Row | None, compare: Compare) -> tuple[Rung, ...]:
    """Return the lines of the ladder: the best row of each rung, and the variants of the chosen kind of search.

    If nothing is recommended, or no variant of `auto`, the kind is that of the best variant.
    """
    tried = [row for row in rows if row.rung and row.bootstrap is not None]
    variants = [row for row in tried if row.variant]
    lead = chosen if chosen is not None and chosen.variant else best_of(variants)
    kind = "" if lead is None else lead.kind
    lines: list[Rung] = []
    for i, name in enumerate(RUNGS):
        here = [row for row in tried if row.rung == i]
        shown = [row for row in here if row.variant and row.kind == kind]
        best = chosen if chosen in here else best_of([row for row in here if row.eligible]) or best_of(here)
        if best is not None and best not in shown:
            shown.append(best)
        below = [line.row for line in lines]
        before = best_of([row for row in below if row.eligible]) or best_of(below)
        lines += [Rung(name, row, None if before is None else compare(row, before)) for row in shown]
    return tuple(lines)


def shown_rows(rows: Sequence[Row], chosen: Row | None) -> list[Row]:
    """Return one row for each strategy: the recommended one, else the best variant, eligible ones first."""
    found = []
    for name in dict.fromkeys(row.name for row in rows):
        own = [row for row in rows if row.name == name]
        eligible = [row for row in own if row.eligible]
        found.append(chosen if chosen in own else best_of(eligible) or best_of(own) or own[0])
    return _one_a_proposal(found)


def _one_a_proposal(rows: list[Row]) -> list[Row]:
    """If `pp` and `static` propose the same, keep only the row of `pp`, labelled with both."""
    own = {row.name: row for row in rows}
    pp, static = own.get("pp"), own.get("static")
    if pp is None or static is None or pp.config != static.config:
        return rows
    return [replace(row, same_as="static") if row is pp else row for row in rows if row is not static]
