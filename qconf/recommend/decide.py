"""Which of the evaluated strategies is recommended, if any, and why in one plain paragraph."""

from __future__ import annotations

from dataclasses import replace

from qconf.evaluation.bootstrap import RESAMPLES, BootstrapResult
from qconf.evaluation.score import OBJECTIVE_TEXTS, WEIGHTED, means
from qconf.recommend.recommendation import Recommendation, Row
from qconf.strategies import baselines

EQUAL = 0.01  # of the objective; a strategy that gains this little more than a simpler one is no better


def decide(recommendation: Recommendation, least_gain: float) -> Recommendation:
    """Choose the best eligible row, and give the reason in one paragraph."""
    best, found = _best(recommendation, least_gain)
    surpassed = _surpassed(recommendation, best)
    if best is None or found is None or best.test is None or best.config is None:
        why = "On the test period, which they were not trained on, no eligible strategy does better than the current"
        return _with_reason(recommendation, f"{why} configuration. {surpassed} Keep what you have.")
    weighted = " (weighted)" if WEIGHTED[0] in best.test.overall else ""
    what = OBJECTIVE_TEXTS[recommendation.objective] + weighted
    gained = f"{100 * _gain(best):.1f} %"
    span = (
        f"Over {RESAMPLES} resamples of the test days the gain is {100 * found.expected:.1f} % "
        f"(90 % interval {100 * found.low:.1f} to {100 * found.high:.1f} %)"
    )
    if found.expected < least_gain or not found.certain:
        why = "may be chance: the interval reaches zero"
        if found.low > 0:
            why = "may be outweighed by slowdowns and longest waits"
        if found.expected < least_gain:
            why = "is not worth a change"
        reason = (
            f"On the last third of the history, which it was not trained on, the best candidate, {best.name}, lowers "
            f"{what} by {gained}. {span}. That {why}. {surpassed} Keep what you have."
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
        f"On the last third of the history, which it was not trained on, {best.name} lowers {what} by {gained}{fell} "
        f"from {before} to {means(best.test)[0] / 3600:.2f} h. {span}. {plain} {surpassed}"
    )
    return _with_reason(replace(recommendation, verdict="CHANGE", winner=best.name, config=best.config), reason)


def _with_reason(recommendation: Recommendation, text: str) -> Recommendation:
    """Give a verdict its reason; parts of it may be empty, and leave no second blank."""
    return replace(recommendation, reason=" ".join(text.split()))


def _best(recommendation: Recommendation, least_gain: float) -> tuple[Row | None, BootstrapResult | None]:
    """Find the eligible row with the largest expected gain, the certain ones first.

    Of equals that are worth a change the first is taken: baselines come before tuned strategies.
    """
    eligible = [(row, row.bootstrap) for row in recommendation.rows if row.bootstrap is not None and not row.ineligible]
    best = max(eligible, key=lambda each: (each[1].certain, each[1].expected), default=(None, None))
    if best[1] is None:
        return best
    least = max(best[1].expected - EQUAL, min(least_gain, best[1].expected))
    return next(each for each in eligible if each[1].certain == best[1].certain and each[1].expected >= least)


def _gain(row: Row) -> float:
    return row.gain if row.gain is not None else 0.0


def _surpassed(recommendation: Recommendation, best: Row | None) -> str:
    """Name the strategies that gain more than the best one but are ineligible, or are expected to gain less."""
    least = max(_gain(best), 0.0) if best is not None else 0.0
    return " ".join(
        f"{row.name} gains {100 * _gain(row):.1f} % there, but {row.ineligible or _compared_with_best(row, best)}."
        for row in recommendation.rows
        if _gain(row) > least
    )


def _compared_with_best(row: Row, best: Row | None) -> str:
    """Return why a row that gains more than the best on the test period is not the best."""
    mine, its = row.bootstrap, None if best is None else best.bootstrap
    if mine is not None and its is not None and mine.certain and mine.expected >= its.expected:
        return "over the resamples it gains less than a percent more than something simpler"
    return "over the resamples its gain is smaller or less certain"
