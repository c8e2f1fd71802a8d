"""The verdict in a sentence and a paragraph: which row is recommended, if any, and why."""

from __future__ import annotations

import re
from dataclasses import replace

from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import CERTAIN, BootstrapResult
from qconf.evaluation.score import OBJECTIVE_TEXTS, WEIGHTED, means
from qconf.recommend.ladder import RUNGS, best_of, given_up
from qconf.recommend.last import Gain
from qconf.recommend.recommendation import Recommendation, Row
from qconf.strategies import baselines

NO_QUEUES = "it is no queue configuration, as --answer queues wants"
HOUR = 3600.0


def decide(recommendation: Recommendation, chosen: Row | None, least_gain: float, quiet: str = "") -> Recommendation:
    """Recommend the chosen row, or nothing, and give the reason.

    A gain below the fraction `least_gain` is not worth it. `quiet` is the sentence that jobs hardly wait, or empty.
    """
    if chosen is None:
        return replace(recommendation, lead=quiet or _kept(recommendation, least_gain), reason="")
    if chosen.config is None or chosen.bootstrap is None or chosen.test is None:
        raise ValueError(f"{chosen.name} was not resampled")
    plain = "The configuration to load was trained on the whole history, the test days included."
    if chosen.fallback:
        plain = (
            "The configuration to load is the one that was evaluated: trained on the whole history, it would break "
            f"a guard rail ({chosen.fallback})."
        )
    if chosen.name in baselines():
        plain = "It is a plain baseline; no tuned strategy is expected to gain a full percent more."
    if chosen.tolerated:
        plain += f" Beyond the guard rails there, but not on average over the resamples: {chosen.tolerated}."
    texts = (
        f"That is the median over {chosen.bootstrap.resamples} resamples of the test days.",
        on_test(recommendation, chosen),
        _given_up(recommendation.base, chosen),
        _smallest(recommendation, chosen),
        plain,
        _surpassed(recommendation, chosen),
    )
    return replace(
        recommendation,
        verdict="CHANGE",
        winner=chosen.name,
        config=chosen.config,
        lead=f"{chosen.named} is expected to lower {_what(recommendation)} by {gain_and_interval(chosen.bootstrap)}",
        reason=" ".join(filter(None, texts)),
    )


def on_test(found: Recommendation, row: Row) -> str:
    """Return a sentence on a row's test period: gain, mean waits and longest waits, before and after."""
    current = found.rows[0].test
    if current is None or row.test is None or row.gain is None:
        return ""
    slower = "" if found.objective == "mean-wait" else f"{_what(found)} {-100 * row.gain:+.1f} %, "
    waits = (*(means(each)[0] for each in (current, row.test)), current["max_wait"], row.test["max_wait"])
    change = 100 * (waits[1] / waits[0] - 1) if waits[0] else 0.0
    before, after, longest, then = (f"{wait / HOUR:.2f}" for wait in waits)
    return (
        f"On the last third of the history, which it was not trained on: {slower}mean wait {before} -> {after} h "
        f"({change:+.1f} %), longest {longest} -> {then} h."
    )


def _what(found: Recommendation) -> str:
    test = found.rows[0].test
    weighted = " (weighted)" if test is not None and WEIGHTED[0] in test.overall else ""
    return OBJECTIVE_TEXTS[found.objective] + weighted


def percent(share: float) -> str:
    """Format a fraction in per cent, without the sign: one decimal below ten, none from ten on."""
    return f"{100 * share + 0.0:.{0 if abs(share) >= 0.095 else 1}f}"


def gain_and_interval(found: BootstrapResult | Gain) -> str:
    """Format an expected gain with its 90 % interval."""
    return f"{percent(found.expected)} % (90 % interval {percent(found.low)} to {percent(found.high)} %)"


def _kept(found: Recommendation, least_gain: float) -> str:
    """Say why nothing is recommended: the gain of the best row, and what rules it out."""
    rows = [row for row in found.rows if row.name != "current" and _expected(row) > 0]
    most = max(rows, key=lambda row: (not row.not_exportable, _expected(row)), default=None)
    stuck = "; everything that could be changed is fixed" if _all_fixed(found) else ""
    if most is None:
        return f"no strategy does better than what you have{stuck}"
    candidates = [row for row in found.candidates if row.eligible]
    best = best_of(candidates)
    also = ""
    if best is not None and best is not most and best.bootstrap is not None:
        also = f"; of what may be loaded {best.named} gains most, {gain_and_interval(best.bootstrap)}: "
        also += _against(found, best, least_gain)
    gained = f"{percent(_expected(most))} %" if most.bootstrap is None else gain_and_interval(most.bootstrap)
    return f"{most.named} would lower {_what(found)} by {gained}, but {_against(found, most, least_gain)}{also}{stuck}"


def _expected(row: Row) -> float:
    """Return the expected gain: without resamples, the gain on the test period."""
    return row.bootstrap.expected if row.bootstrap is not None else row.gain or 0.0


def _against(found: Recommendation, row: Row, least_gain: float) -> str:
    """Say why a row with a gain is not recommended."""
    result, before = row.bootstrap, found.rows[0].test
    if row not in found.candidates:
        return NO_QUEUES
    if row.ineligible or result is None:
        return _in_times(row.ineligible)
    if result.expected < least_gain:
        return f"a gain below {percent(least_gain)} % is not worth a change"
    if result.sure < CERTAIN[0]:
        return f"that may be chance: of the resamples {percent(1 - result.sure)} % lose"
    if row.loses and row.gain is not None:
        return f"on the last third of the history it loses {percent(-row.gain)} %"
    text = "slowdowns and longest waits may outweigh that"
    if result.after.longest > result.before.longest > 0:
        return f"{text}: {_grown('the longest wait', result.before.longest / HOUR, result.after.longest / HOUR)}"
    if before is not None and row.test is not None and means(row.test)[1] > means(before)[1] > 0:
        return f"{text}: the mean slowdown would go from {means(before)[1]:.1f} to {means(row.test)[1]:.1f}"
    return text


def _in_times(text: str) -> str:
    """Rewrite "grows from a to b h" of waits that at least double: as how many times as long."""
    grown = re.compile(r"([^;]*?) grows from ([\d.]+) to ([\d.]+) h")
    return grown.sub(lambda each: _grown(each[1], float(each[2]), float(each[3])), text)


def _grown(what: str, before: float, after: float) -> str:
    if not before or after < 2 * before:
        return f"{what} grows from {before:.1f} to {after:.1f} h"
    return f"{what} would be {after / before:.1f} times as long ({before:.1f} -> {after:.1f} h)"


def _all_fixed(found: Recommendation) -> bool:
    """Whether every other configuration that was tried changes something fixed."""
    others = [row for row in found.rows if row.config not in (None, found.base)]
    return bool(found.base.fixed) and all(re.search(r", which (is|are) fixed", row.ineligible) for row in others)


def _given_up(base: SiteConfig, best: Row) -> str:
    """Say which parts of the site's policy the change drops."""
    if best.config is None or RUNGS[best.rung] != "policy":
        return ""
    parts = ", ".join(given_up(base, best.config))
    return f"It gives up what the site's policy has of {parts}; what has to stay, name in `fixed`."


def _smallest(found: Recommendation, best: Row) -> str:
    """Say which rung the change is on, and that no higher one gains beyond chance."""
    above = [
        (each.row.bootstrap.expected, each.row.title or each.row.label, each.row.bootstrap)
        for each in found.ladder
        if each.row.eligible and each.row.rung > best.rung and each.row.bootstrap is not None
    ]
    if not above:
        return ""
    _, largest, result = max(above, key=lambda each: each[0])
    return (
        f"It is the smallest change that brings this ({RUNGS[best.rung]}): no larger one gains beyond chance over it "
        f"(the most, {largest}: {gain_and_interval(result)})."
    )


def _surpassed(found: Recommendation, best: Row) -> str:
    """Name the strategies with a higher expected gain than the best one, and why they are not recommended."""
    return " ".join(
        f"{row.label} would gain {percent(_expected(row))} %, but "
        f"{(row.ineligible or _larger(row, best)) if row in found.candidates else NO_QUEUES}."
        for row in found.rows
        if _expected(row) > max(_expected(best), 0.0) and row.name != best.name
    )


def _larger(row: Row, best: Row) -> str:
    """Return why a row with a higher expected gain than the best is not the best."""
    if row.rung > best.rung:
        return f"it changes more ({RUNGS[row.rung]}) and does not gain beyond chance over it"
    if row.bootstrap is not None and row.bootstrap.certain:
        return "that is less than a percent more than something simpler"
    return "that may be chance"
