"""What stands beside a verdict before anyone acts on it: doubts, what it needs, who loses, targets, other months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parsim.metrics.nodes import ALL_NODES
from parsim.model.node_types import CORES
from qconf.evaluation.score import OBJECTIVE_TEXTS, means
from qconf.evaluation.targets import TargetResult
from qconf.recommend import Recommendation
from qconf.recommend.fidelity import Fidelity
from qconf.report.exported import QUEUES, Exported
from qconf.report.impact import fairness, losers, short
from qconf.report.last import last_lines
from qconf.report.wording import (
    carried_text,
    fidelity_warning,
    gain_text,
    grade_text,
    hours,
    interval_text,
    number,
)
from qconf.text import TERMS

FAR = 2.0  # factor between the mean waits of the test period and of the whole history from which both are shown
MINUTE = 60.0  # seconds, added to both


def doubts(found: Recommendation, near: Fidelity | None) -> list[str]:
    """Say why the simulation may be far from what the users saw, one sentence each; empty if nothing says so."""
    return [*filter(None, [fidelity_warning(near, found.graded)]), *found.implausible]


def headline(found: Recommendation, near: Fidelity | None) -> list[str]:
    """Write the verdict and its reason; where there is a doubt, that stands between them."""
    why = doubts(found, near)
    return [f"{found.verdict}, in doubt: {why[0]}", found.reason] if why else [f"{found.verdict}: {found.reason}"]


def action(found: Recommendation, exported: Exported | None) -> str:
    """Write what to do in one sentence: what to load, what it changes for all jobs, and who is worse off most."""
    if found.verdict != "CHANGE":
        tried = sum(row.test is not None and row.name != "current" for row in found.rows)
        why = f"of {tried} strategies none does better beyond doubt" if tried else "too little is known to change it"
        return f"Keep what you have: {why}"
    main = "config.yaml"
    if exported is not None and not exported.not_exportable:
        main = f"{exported.exporter.target}/{next(iter(exported.export.loaded), 'PLAN.md')}"
    before, after = found.rows[0].test, found.row.test
    texts = []
    if before is not None and after is not None:
        then, now = means(before), means(after)
        if found.objective != "bounded-slowdown":
            texts.append(f"mean wait {hours(then[0])} -> {hours(now[0])} h")
        if found.objective != "mean-wait":
            texts.append(f"mean bounded slowdown {number(then[1])} -> {number(now[1])}")
    worse = () if found.impact is None else found.impact.losers
    if worse:
        texts.append(short(worse[0]))
    elif found.impact is not None:
        texts.append("no queue, size or user class is worse off")
    return f"Load {main}: {', '.join(texts)}"


def sure(found: Recommendation, near: Fidelity | None = None) -> Iterator[str]:
    """Say how sure that is: the interval over the resamples, the test itself, other months, the grade of fidelity."""
    yield from _gained(found)
    if near is not None and near.grade is not None:
        yield grade_text(near.grade)
    if found.graded is not None:
        yield carried_text(found.graded)


def _gained(found: Recommendation) -> Iterator[str]:
    rows = [found.row] if found.verdict == "CHANGE" else [row for row in found.candidates if row.bootstrap is not None]
    best = max(rows, key=lambda row: -1.0 if row.bootstrap is None else row.bootstrap.expected, default=None)
    if best is None or best.bootstrap is None:
        yield "Nothing gained on the test period, so no gain was resampled." if found.rows[0].test else found.reason
        return
    result, what = best.bootstrap, OBJECTIVE_TEXTS[found.objective]
    whose = "" if found.verdict == "CHANGE" else f" of the best candidate, {best.label},"
    yield (
        f"Over {result.resamples} resamples of the test days the gain{whose} in {what} is "
        f"{100 * result.expected:.1f} % "
        f"(90 % interval {100 * result.low:.1f} to {100 * result.high:.1f} %): "
        f"{'beyond chance' if result.certain else 'it may be chance'}."
    )
    if best.gain is not None:
        yield f"On the test period itself, which it was not trained on, it is {100 * best.gain:.1f} %."
    for text in _robustness(found):
        yield f"In another month: {text}."


def best_queues(found: Recommendation) -> list[str]:
    """Say in two lines what the best queue configuration gains, and what it costs against the recommendation."""
    what, best = "Best queue configuration", found.queues
    chosen = found.row if found.verdict == "CHANGE" else None
    recommended = "to keep what you have" if chosen is None else chosen.named
    against = f"{what} against the recommendation, {recommended}:"
    if best is None or best.row.test is None or found.rows[0].test is None:
        tried = [row for row in found.rows if row.of_queues and row.gain is not None]
        most = max(tried, key=lambda row: row.gain or 0.0, default=None)
        if most is None:
            return [f"{what}: none was evaluated.", f"{against} nothing is written for one."]
        why = f"and is ineligible: {most.ineligible}" if most.ineligible else "and nothing over the resamples"
        number = f"of {len(tried)} that were evaluated {most.named} gains the most, {gain_text(most.gain)} %, {why}."
        return [f"{what}: none is better than what you have; {number}", f"{against} none is written."]
    now, then = (hours(means(test)[0]) for test in (best.row.test, found.rows[0].test))
    sure = "beyond chance" if best.row.bootstrap is not None and best.row.bootstrap.certain else "it may be chance"
    first = (
        f"{what}: {best.row.named} gains {interval_text(best.row.bootstrap)} % over current, {sure}; mean wait "
        f"{then} -> {now} h."
    )
    if found.recommends_queues:
        return [first, f"{what}: it is what is recommended."]
    where = f"It is in {QUEUES}/ (see {QUEUES}/PLAN.md)."
    if chosen is None or chosen.test is None:
        return [first, f"{against} that gain is not sure, or not worth a change. {where}"]
    cost = f"gain {interval_text(best.step)} %, mean wait {now} in place of {hours(means(chosen.test)[0])} h"
    return [first, f"{against} {cost}. {where}"]


def sections(found: Recommendation, near: Fidelity | None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what stands beside a verdict, each with its title; sections without content are left out."""
    texts = (
        ("The bottleneck", list(_bottleneck(found))),
        ("Also in doubt", doubts(found, near)[1:]),
        ("The whole history", list(_whole(found))),
        ("What it needs to run", list(needs(found))),
        ("Who waits longer", [] if found.impact is None else losers(found.impact) or ["no queue, size or user class"]),
        ("Fairness", list(_fairness(found))),
        ("What the site wants", list(_targets(found))),
        ("In another month", list(_robustness(found))),
        ("The last recommendation", [] if found.last is None else list(last_lines(found.last))),
    )
    yield from ((title, lines) for title, lines in texts if lines)


def _bottleneck(found: Recommendation) -> Iterator[str]:
    """Say which resource jobs wait for, and how much of it and of the others is in use, unless it is cores."""
    test = found.rows[0].test if found.rows else None
    if test is None or test.resource == CORES:
        return
    name, hours = TERMS[test.resource]
    others = [
        f"{100 * values['utilization']:.1f} % of the {TERMS[other][0]}"
        for other, values in test.nodes[ALL_NODES].resources.items()
        if other in TERMS and other != test.resource
    ]
    yield f"{name}: {100 * test['utilization_window']:.1f} % in use, {', '.join(others)}"
    yield f"utilization and the shares of users and groups are those of {hours}"
    configs = [row.config for row in found.rows if row.config is not None]
    if any(config.is_fair and test.resource not in config.charged_for for config in configs):
        yield f"fair share charges jobs by other things than {name}: fairshare.charges and billing of queues say what"


def _whole(found: Recommendation) -> Iterator[str]:
    """Say the mean waits of the whole history where they are far from those of the test period."""
    for row in found.rows:
        if row.name not in ("current", found.winner) or row.test is None or row.in_sample is None:
            continue
        here, there = means(row.test)[0], means(row.in_sample)[0]
        low, high = sorted((here, there))
        if high + MINUTE > FAR * (low + MINUTE):
            yield f"{row.label}: mean wait {hours(there)} h, in the test period {hours(here)} h"


def needs(found: Recommendation) -> Iterator[str]:
    """Say what must be installed beside the batch system, and what the recommendation would be without."""
    if found.verdict != "CHANGE" or not found.row.needs:
        return
    yield from found.row.needs
    row = found.without_scripts
    if row is None:
        yield "without it: keep what you have"
    else:
        what = f"{row.label}: {row.title}" if row.title else row.label
        yield f"without it: {what}, gain {interval_text(row.bootstrap)} % (qconf export --strategy without-scripts)"


def _fairness(found: Recommendation) -> Iterator[str]:
    """Compare the fairness among users on the test period."""
    before, after = found.rows[0].test, found.row.test
    if found.verdict == "CHANGE" and before is not None and after is not None and (text := fairness(before, after)):
        yield text


def _targets(found: Recommendation) -> Iterator[str]:
    """Say of each target whether it is met now and by what is recommended, and by which rungs of the ladder."""
    if not found.targets:
        return
    measured = [each for each in found.targets if each.jobs]
    counts = [f"{sum(each.met for each in measured)} of {len(measured)} now"]
    if found.targets_met:
        counts.append(f"{sum(each.met for each in found.targets_met if each.jobs)} by the change")
    yield f"met: {', '.join(counts)}"
    after = {each.what: each for each in found.targets_met}
    for now in found.targets:
        wanted = f"{now.what}, 95 % wait of at most {hours(now.wanted)} h"
        if not now.jobs:
            yield f"{wanted}: no job in the test period"
            continue
        texts = [f"{_kept(now)} now"]
        if now.what in after:
            texts.append(f"{_kept(after[now.what])} by the change")
        lines = [line for line in found.ladder if line.row.eligible and now.what not in line.row.unmet]
        rungs = ", ".join(dict.fromkeys(line.name for line in lines)) or "no rung that is eligible"
        yield f"{wanted}: {', '.join(texts)}" + (f"; met by {rungs}" if found.ladder else "")


def _kept(each: TargetResult) -> str:
    return f"{'met' if each.met else 'missed'} ({hours(each.p95_wait)} h)"


def _robustness(found: Recommendation) -> Iterator[str]:
    """Say the gain with more load and with longer run times."""
    if found.robustness:
        yield "gain " + ", ".join(f"{gain_text(each.gain)} % at {each.name}" for each in found.robustness)
