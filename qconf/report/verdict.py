"""The advice on the first screen, and the sections beside it: the same texts for terminal, page and run.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parsim.metrics.nodes import ALL_NODES
from parsim.model.node_types import CORES
from qconf.evaluation.score import means
from qconf.evaluation.targets import TargetResult
from qconf.recommend import Recommendation
from qconf.recommend.decide import on_test
from qconf.recommend.last import Realised
from qconf.report.exported import QUEUES, Exported
from qconf.report.impact import fairness, losers, short
from qconf.report.wording import (
    carried_text,
    date,
    gain_text,
    grade_text,
    hours,
    interval_text,
    longest_text,
    sure_text,
)
from qconf.text import TERMS

FAR = 2.0  # least factor between the mean waits of test period and whole history at which both are shown
MINUTE = 60.0  # seconds, added to both
NAMED = 3  #: most losers in the advice
NO_LOSER = "no queue, size or user class"


@dataclass(frozen=True)
class Advice:
    """The first screen: what to do, the expected gain, who loses, how to load and undo it."""

    verdict: str
    lead: str  #: the sentence after the verdict
    facts: tuple[str, ...]  #: the reasons for the lead, a sentence or two each
    losers: tuple[str, ...]  #: the groups that lose the most hours, a few words each
    queues: tuple[str, ...]  #: the best queue configuration, and what it costs against the recommendation
    load: str
    undo: str

    @property
    def headline(self) -> str:
        """Verdict and lead."""
        return f"{self.verdict}: {self.lead}."


def advise(found: Recommendation, exported: Exported | None = None) -> Advice:
    """Return the advice of a recommendation."""
    facts = [on_test(found, found.row)] if found.proposes else [found.reason]
    lead, harder = found.lead, list(_robustness(found))[-1:]
    near = found.near if not found.doubts else None
    grade = [] if near is None or near.grade is None else [grade_text(near.grade)]
    before = [] if found.last is None else [f"The last recommendation: {'; '.join(last_lines(found.last))}."]
    if found.doubts:
        first, *others = found.doubts
        lead, settle = first.what, f"Likeliest cause: {first.cause}. To settle it: {first.command}"
        also = [f"Also: {each.what}." for each in others]
        facts = [settle, *also, f"If it fits after all, {found.lead}.", *facts]
    worse = [] if found.impact is None else [short(each) for each in found.impact.losers[:NAMED]] or [NO_LOSER]
    return Advice(
        verdict=found.verdict,
        lead=lead,
        facts=tuple(filter(None, [*facts, *harder, *grade, *before])),
        losers=tuple(worse),
        queues=tuple(best_queues(found)),
        load=_load(found, exported),
        undo=_undo(found, exported),
    )


def _load(found: Recommendation, exported: Exported | None) -> str:
    what = "config.yaml" if found.proposes else "nothing: keep what you have"
    if exported is not None and exported.not_exportable:
        return f"{what}; not exportable to {exported.exporter.name}: {exported.not_exportable}"
    if exported is None or not found.proposes:
        return what
    plan = f"{exported.exporter.target}/PLAN.md, step by step"
    return f"not before that is settled; then {plan}" if found.doubts else plan


def _undo(found: Recommendation, exported: Exported | None) -> str:
    if not found.proposes or exported is None or exported.not_exportable:
        return "nothing is loaded"
    target = exported.exporter.target
    if exported.export.rollback:
        return f"{target}/{exported.export.rollback}; {target}/PLAN.md has the steps back"
    return _snapshot(exported) or f"{target}/PLAN.md has the steps back"


def _snapshot(exported: Exported) -> str:
    """Return how to take the snapshot that an undo needs; empty if it exists or is not needed."""
    if not exported.exporter.current_for_rollback or exported.export.rollback or exported.not_exportable:
        return ""
    command = exported.exporter.source.removeprefix("output of ")
    return f"{command} > now.txt, then tune with --current now.txt"


def certainty(found: Recommendation) -> Iterator[str]:
    """Yield how sure the gain is: the interval over the resamples, changed months, the fidelity grade."""
    rows = [found.row] if found.proposes else [row for row in found.candidates if row.bootstrap is not None]
    best = max(rows, key=lambda row: -1.0 if row.bootstrap is None else row.bootstrap.expected, default=None)
    if best is None or best.bootstrap is None:
        yield "Nothing gained on the test period, so no gain was resampled."
    else:
        whose = "" if found.proposes else f" of the best candidate, {best.label},"
        yield (
            f"Over {best.bootstrap.resamples} resamples of the test days the gain{whose} is "
            f"{interval_text(best.bootstrap)} %: {sure_text(best.bootstrap)}."
        )
    yield from _robustness(found)
    if found.near is not None and found.near.grade is not None:
        yield grade_text(found.near.grade)
    if found.graded is not None:
        yield carried_text(found.graded)


def best_queues(found: Recommendation) -> list[str]:
    """Return two sentences on the best queue configuration: its gain, and its cost against the recommendation."""
    what, best = "Best queue configuration", found.queues
    chosen = found.row if found.proposes else None
    recommended = "to keep what you have" if chosen is None else chosen.label
    against = f"{what} against the recommendation, {recommended}:"
    if best is None or best.row.test is None or found.rows[0].test is None:
        tried = [row for row in found.rows if row.of_queues and row.gain is not None]
        most = max(tried, key=lambda row: row.gain or 0.0, default=None)
        if most is None:
            return [f"{what}: none was evaluated, and none is written."]
        if (most.gain or 0.0) <= 0 and not most.ineligible:
            return [f"{what}: of {len(tried)} that were evaluated none gains anything; none is written."]
        why = f"and is ineligible: {most.ineligible}" if most.ineligible else "and nothing over the resamples"
        number = f"of {len(tried)} that were evaluated {most.named} gains the most, {gain_text(most.gain)} %, {why}"
        return [f"{what}: none is better than what you have; {number}; none is written."]
    now, then = (hours(means(test)[0]) for test in (best.row.test, found.rows[0].test))
    sure = "it may be chance" if best.row.bootstrap is None else sure_text(best.row.bootstrap)
    first = (
        f"{what}: {best.row.named} gains {interval_text(best.row.bootstrap)} % over current, {sure}; mean wait "
        f"{then} -> {now} h."
    )
    if found.recommends_queues:
        return [first, f"{what}: it is what is recommended."]
    where = f"see {QUEUES}/PLAN.md"
    if chosen is None or chosen.test is None:
        return [first, f"{against} that gain is not sure, or not worth a change; {where}."]
    cost = f"gain {interval_text(best.step)} %, mean wait {now} in place of {hours(means(chosen.test)[0])} h"
    return [first, f"{against} {cost}; {where}."]


def sections(found: Recommendation, exported: Exported | None = None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the sections beside the advice, each with its title; empty ones are left out."""
    before, after = found.rows[0].test, found.row.test
    alike = "" if not found.proposes or before is None or after is None else fairness(before, after)
    texts = (
        ("The bottleneck", list(_bottleneck(found))),
        ("The whole history", list(_whole(found))),
        ("What it needs", list(needs(found, exported))),
        ("Who waits longer", [] if found.impact is None else losers(found.impact) or [NO_LOSER]),
        ("Fairness", [alike] if alike else []),
        ("What the site wants", list(_targets(found))),
        ("In another month", list(_robustness(found))),
    )
    yield from ((title, lines) for title, lines in texts if lines)


def _bottleneck(found: Recommendation) -> Iterator[str]:
    """Yield which resource jobs wait for, and the use of it and others, unless it is cores."""
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
    """Yield the waits over the whole history, if they differ much from those of the test period."""
    rows = [row for row in found.rows if row.name in ("current", found.winner)]
    shown = [(row, row.test, row.in_sample) for row in rows if row.test is not None and row.in_sample is not None]
    pairs = [(means(test)[0] + MINUTE, means(whole)[0] + MINUTE) for _, test, whole in shown]
    if any(max(pair) > FAR * min(pair) for pair in pairs):
        for row, test, whole in shown:
            here, there = (
                f"mean wait {hours(means(each)[0])} h, longest {hours(each['max_wait'])} h" for each in (test, whole)
            )
            yield f"{row.label}: {there}; in the test period {here}"


def needs(found: Recommendation, exported: Exported | None = None) -> Iterator[str]:
    """Yield the needs of a change: the snapshot for its undo, services beside the batch system, the change without."""
    if not found.proposes:
        return
    if exported is not None and (snapshot := _snapshot(exported)):
        yield f"{snapshot}: without it nothing can be undone"
    if not found.row.needs:
        return
    yield from found.row.needs
    row = found.without_scripts
    if row is None:
        yield "without it: keep what you have"
    else:
        what = f"{row.label}: {row.title}" if row.title else row.label
        yield f"without it: {what}, gain {interval_text(row.bootstrap)} % (qconf export --strategy without-scripts)"


def _targets(found: Recommendation) -> Iterator[str]:
    """Yield for each target whether it is met now, by the recommendation, and by which rungs."""
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
    """Yield gain and longest wait with more load and with longer run times; the worst gain comes last."""
    for each in sorted(found.robustness, key=lambda scenario: -scenario.gain):
        yield f"At {each.name}: gain {gain_text(each.gain)} %, {longest_text(each.longest_before, each.longest_after)}."


def last_lines(found: Realised) -> Iterator[str]:
    """Yield what an earlier run promised, and the gain since."""
    promise, promised = found.promise, found.promise.gain
    first, last = (date(second, found.timezone)[:10] for second in promise.span[1:])
    if promised is None:
        yield f"{first} to {last}: {promise.verdict}, so nothing was promised"
        return
    what = f"{promise.winner} ({promise.title})" if promise.title else promise.winner
    yield f"{first} to {last}: {promise.verdict} to {what}, promised gain {interval_text(promised)} %"
    if found.gain is None or found.before is None or found.after is None:
        yield f"on the jobs of this log it cannot be evaluated: {found.not_evaluated}"
    else:
        where = "inside" if found.inside else "below" if found.gain < promised.low else "above"
        waits = " -> ".join(hours(means(each)[0]) for each in (found.before, found.after))
        yield (
            f"on {found.span[0]} jobs since: gain {gain_text(found.gain)} %, {where} the interval; mean wait {waits} h"
            ", " + longest_text(found.before["max_wait"], found.after["max_wait"])
        )
    yield {
        True: "it is in force: the configuration given is the one that was recommended",
        False: "it is not in force: the configuration given is the one from before it",
        None: "whether it was loaded cannot be told from the configuration of this run",
    }[found.loaded]
