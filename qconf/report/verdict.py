"""What stands beside a verdict before anyone acts on it: doubts, what it needs, who loses, targets, other months."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qconf.evaluation.score import means
from qconf.evaluation.targets import TargetResult
from qconf.recommend import Recommendation
from qconf.recommend.fidelity import Fidelity
from qconf.report.impact import fairness, losers
from qconf.report.wording import fidelity_warning, gain_text, hours, interval_text

FAR = 2.0  # factor between the mean waits of the test period and of the whole history from which both are shown
MINUTE = 60.0  # seconds, added to both


def doubts(found: Recommendation, near: Fidelity | None) -> list[str]:
    """Say why the simulation may be far from what the users saw, one sentence each; empty if nothing says so."""
    return [*filter(None, ["" if near is None else fidelity_warning(near)]), *found.implausible]


def headline(found: Recommendation, near: Fidelity | None) -> list[str]:
    """Write the verdict and its reason; where there is a doubt, that stands between them."""
    why = doubts(found, near)
    return [f"{found.verdict}, in doubt: {why[0]}", found.reason] if why else [f"{found.verdict}: {found.reason}"]


def sections(found: Recommendation, near: Fidelity | None) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what stands beside a verdict, each with its title; sections without content are left out."""
    texts = (
        ("Also in doubt", doubts(found, near)[1:]),
        ("The whole history", list(_whole(found))),
        ("What it needs to run", list(_needs(found))),
        ("Who waits longer", [] if found.impact is None else losers(found.impact) or ["no queue, size or user class"]),
        ("Fairness", list(_fairness(found))),
        ("What the site wants", list(_targets(found))),
        ("In another month", list(_robustness(found))),
    )
    yield from ((title, lines) for title, lines in texts if lines)


def _whole(found: Recommendation) -> Iterator[str]:
    """Say the mean waits of the whole history where they are far from those of the test period."""
    for row in found.rows:
        if row.name not in ("current", found.winner) or row.test is None or row.in_sample is None:
            continue
        here, there = means(row.test)[0], means(row.in_sample)[0]
        low, high = sorted((here, there))
        if high + MINUTE > FAR * (low + MINUTE):
            yield f"{row.label}: mean wait {hours(there)} h, in the test period {hours(here)} h"


def _needs(found: Recommendation) -> Iterator[str]:
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
    """Say which targets are met now, and by what is recommended, and which are missed by how much."""
    if not found.targets:
        return
    after = found.targets_met or found.targets
    counts = [f"{sum(each.met for each in results)} of {len(results)}" for results in (found.targets, after)]
    yield f"met: {counts[0]} now" + (f", {counts[1]} by the change" if found.targets_met else "")
    yield from (_missed(each) for each in after if not each.met)
    met = {line.name: len(after) - len(line.row.unmet) for line in reversed(found.ladder)}
    if met:
        yield "by rung: " + ", ".join(f"{name} {count}" for name, count in reversed(met.items()))


def _missed(each: TargetResult) -> str:
    return f"{each.what}: 95 % wait {hours(each.p95_wait)} h, wanted {hours(each.wanted)} h"


def _robustness(found: Recommendation) -> Iterator[str]:
    """Say the gain with more load and with longer run times."""
    if found.robustness:
        yield "gain " + ", ".join(f"{gain_text(each.gain)} % at {each.name}" for each in found.robustness)
