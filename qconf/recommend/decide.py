"""The verdict in one plain paragraph: which row is recommended, if any, and why."""

from __future__ import annotations

import re
from dataclasses import replace

from qconf.config import SiteConfig
from qconf.evaluation.bootstrap import BootstrapResult
from qconf.evaluation.score import OBJECTIVE_TEXTS, WEIGHTED, means
from qconf.recommend.ladder import RUNGS, best_of, given_up
from qconf.recommend.recommendation import Recommendation, Row
from qconf.strategies import baselines

NO_QUEUES = "it is no queue configuration, as --answer queues wants"


def decide(recommendation: Recommendation, chosen: Row | None, least_gain: float, quiet: str = "") -> Recommendation:
    """Recommend the chosen row, or nothing, and give the reason in one paragraph.

    `quiet` says that no job waits, where that is so.
    """
    if chosen is None and quiet:
        return _with_reason(recommendation, f"{quiet} Keep what you have.")
    best = chosen or best_of([row for row in recommendation.candidates if row.eligible])
    surpassed = _surpassed(recommendation, best)
    if best is None or best.bootstrap is None or best.test is None or best.config is None:
        what = "strategy" if recommendation.settings.get("answer") != "queues" else "queue configuration"
        why = f"On the test period, which they were not trained on, no eligible {what} does better than the current"
        stuck = "Everything that could be changed is fixed." if _all_fixed(recommendation) else ""
        return _with_reason(recommendation, f"{why} configuration. {stuck} {surpassed} Keep what you have.")
    weighted = " (weighted)" if WEIGHTED[0] in best.test.overall else ""
    what, found = OBJECTIVE_TEXTS[recommendation.objective] + weighted, best.bootstrap
    gained = f"{100 * _gain(best):.1f} %"
    span = f"Over {found.resamples} resamples of the test days the gain is {_interval(found)}"
    if chosen is None:
        why = "may be chance: the interval reaches zero"
        if found.low > 0:
            why = "may be outweighed by slowdowns and longest waits"
        if found.expected < least_gain:
            why = "is not worth a change"
        reason = (
            f"On the last third of the history, which it was not trained on, the best candidate, {best.named}, "
            f"lowers {what} by {gained}. {span}. That {why}. {surpassed} Keep what you have."
        )
        return _with_reason(recommendation, reason)
    plain = "The configuration to load was trained on the whole history, the test days included."
    if best.fallback:
        plain = (
            "The configuration to load is the one that was evaluated: trained on the whole history, it would break "
            f"a guard rail ({best.fallback})."
        )
    if best.name in baselines():
        plain = "It is a plain baseline; no tuned strategy is expected to gain a full percent more."
    if best.tolerated:
        plain += f" Beyond the guard rails there, but not on average over the resamples: {best.tolerated}."
    current = recommendation.rows[0].test
    before = f"{means(current)[0] / 3600:.2f}" if current is not None else "unknown"
    fell = "" if recommendation.objective == "mean-wait" else f"; mean wait{weighted} goes"
    reason = (
        f"On the last third of the history, which it was not trained on, {best.named} lowers {what} by "
        f"{gained}{fell} from {before} to {means(best.test)[0] / 3600:.2f} h. {span}. "
        f"{_given_up(recommendation.base, best)} {_smallest(recommendation, best)} {plain} {surpassed}"
    )
    return _with_reason(replace(recommendation, verdict="CHANGE", winner=best.name, config=best.config), reason)


def _with_reason(recommendation: Recommendation, text: str) -> Recommendation:
    """Give a verdict its reason; parts of it may be empty, and leave no second blank."""
    return replace(recommendation, reason=" ".join(text.split()))


def _all_fixed(recommendation: Recommendation) -> bool:
    """Whether every other configuration that was tried changes something that is fixed."""
    others = [row for row in recommendation.rows if row.config not in (None, recommendation.base)]
    return bool(recommendation.base.fixed) and all(
        re.search(r", which (is|are) fixed", row.ineligible) for row in others
    )


def _interval(found: BootstrapResult) -> str:
    return f"{100 * found.expected:.1f} % (90 % interval {100 * found.low:.1f} to {100 * found.high:.1f} %)"


def _given_up(base: SiteConfig, best: Row) -> str:
    """Say which parts of the site's policy the change drops."""
    if best.config is None or RUNGS[best.rung] != "policy":
        return ""
    parts = ", ".join(given_up(base, best.config))
    return f"It gives up what the site's policy has of {parts}; what has to stay, name in `fixed`."


def _smallest(recommendation: Recommendation, best: Row) -> str:
    """Say where on the ladder the change is, and that nothing above it gains beyond chance."""
    above = [each for each in recommendation.ladder if each.row.eligible and each.row.rung > best.rung]
    if not above:
        return ""
    largest = max(above, key=lambda each: each.row.bootstrap.expected if each.row.bootstrap else 0.0)
    return (
        f"It is the smallest change that brings this ({RUNGS[best.rung]}): no larger one gains beyond chance over it "
        f"(the most, {largest.row.title or largest.row.label}: {_interval(largest.row.bootstrap)})."
        if largest.row.bootstrap is not None
        else ""
    )


def _gain(row: Row) -> float:
    return row.gain if row.gain is not None else 0.0


def _surpassed(recommendation: Recommendation, best: Row | None) -> str:
    """Name the strategies that gain more than the best one but are ineligible, or are expected to gain less."""
    least = max(_gain(best), 0.0) if best is not None else 0.0
    return " ".join(
        f"{row.label} gains {100 * _gain(row):.1f} % there, but "
        f"{row.ineligible or (_compared_with_best(row, best) if row in recommendation.candidates else NO_QUEUES)}."
        for row in recommendation.rows
        if _gain(row) > least and row.name != (best.name if best is not None else "")
    )


def _compared_with_best(row: Row, best: Row | None) -> str:
    """Return why a row that gains more than the best on the test period is not the best."""
    mine, its = row.bootstrap, None if best is None else best.bootstrap
    if mine is not None and its is not None and best is not None and row.rung > best.rung:
        return f"it changes more ({RUNGS[row.rung]}) and does not gain beyond chance over it"
    if mine is not None and its is not None and mine.certain and mine.expected >= its.expected:
        return "over the resamples it gains less than a percent more than something simpler"
    return "over the resamples its gain is smaller or less certain"
