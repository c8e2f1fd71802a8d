"""study.md, from what the pieces gave."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from qconf.backtest import Average
from qconf.strategies import Options
from qconf.text import markdown_table
from studies.paper import cuts, monthly
from studies.paper.pieces import Outcome
from studies.paper.plan import CLAIMS, WIDE, Claim

PARTITIONED = ("pp", "static", "dp-nlp", "dqr", "hybrid", "exact")
NAMES = {
    "mean_wait": "mean wait",
    "mean_bounded_slowdown": "bounded slowdown",
    "utilization_window": "utilization",
}
HEAD = """# The study: learned from one month, judged on the next

Written by

    {command}

{scope}

Every strategy learns from one month and is judged on the next, simulated with three days of earlier jobs that
fill the machine and are not counted. `static` learns from the first month and never again, `auto` may follow what all
months so far have in common. Nothing of a judged
month reaches the tuning. Ratios are of means over the months; "worse" is the share of months with a longer mean
wait than under `fcfs-easy`; "no answer" are the months in which a strategy did not apply and the current
configuration stood in. Times are hours. Utilization is that while jobs arrive. `hybrid` carves and fills
its pool as the paper does, which PBS cannot follow; what `qconf` does unless told otherwise is under "What the
settings do".
"""
QUICK = """\
**This is the quick study**: {months} months of each log and {sensitivity} for the effect of settings, so single
months weigh much. `make study` runs the whole one (all months; under an hour on two cores), `make study
QUICK=1` this one. Both go on where they were interrupted."""
WHOLE = "`make study QUICK=1` is a short version of it. Both go on where they were interrupted."
DIFFERENT = """\
The paper's log is not public: ours are months generated to its counts, sizes and shares (docs/workload.md),
with offered loads, priorities and running limits of our choice, so single numbers cannot agree, and what the
shared machine gives depends on these more than on any strategy. The paper does not define its non-partitioned
setting to the letter; ours is one machine with EASY backfilling in the order of priorities, which keeps every
idle core usable by every job and so is a strong opponent. Utilization is bounded by what was submitted: where
no partition is overloaded all strategies reach the same.
"""


def write(generated: Outcome | None, settings: Sequence[Outcome], logs: Sequence[Outcome],
          elsewhere: Sequence[Outcome], *, command: str, scope: str, options: Options) -> str:  # fmt: skip
    """Return the page as Markdown."""
    parts = [HEAD.format(command=command, scope=scope)]
    if generated is not None:
        parts += [_generated(generated, options)]
    if settings:
        parts += [_sensitivity(settings)]
    for outcome in logs:
        parts += [_log(outcome)]
    if elsewhere:
        parts += [cuts.section(elsewhere)]
    if logs:
        parts += [_plainly(logs if generated is None else [generated, *logs])]
    return "\n".join(parts)


def _generated(found: Outcome, options: Options) -> str:
    lines = [
        f"## Generated months: {found.periods[0]} to {found.periods[-1]}, {found.jobs} jobs judged\n",
        monthly.parameters(options),
        "### The paper's claims beside ours\n",
        "Change in per cent, as the mean of the monthly changes; minus is less.\n",
        markdown_table(
            ["", "of", "paper: average", "best month", "ours: average", "best month", "worst month"],
            [_claim(claim, found) for claim in CLAIMS],
            left=2,
        ),
        "",
        DIFFERENT,
        "### All strategies\n",
        _strategies(found),
        _surrogates(found),
        _queues(found),
        monthly.pairs(found, _changes),
        monthly.tables(found),
    ]
    return "\n".join(lines)


def _claim(claim: Claim, found: Outcome) -> list[str]:
    said = claim.text or (f"{claim.average:+.0f}" if claim.average is not None else "")
    best = f"{claim.best:+.0f}" if claim.best is not None else ""
    without = f", without {', '.join(claim.without)}" if claim.without else ""
    row = [f"{claim.strategy} against {claim.reference}{without}", NAMES[claim.metric], said, best]
    changes = _changes(claim, found)
    if not changes:
        return [*row, "not measured", "", ""]
    ordered = sorted(changes.items(), key=lambda item: item[1], reverse=claim.metric == "utilization_window")
    row += [
        f"{mean(changes.values()):+.0f}",
        *(f"{value:+.0f} ({label})" for label, value in (ordered[0], ordered[-1])),
    ]
    return row


def _changes(claim: Claim, found: Outcome) -> dict[str, float]:
    """Per cent by which the strategy's metric differs from the reference's, per month."""
    values = {(v.period, v.strategy): v.summary[claim.metric] for v in found.results}
    out = {}
    for label in found.periods:
        mine, theirs = values.get((label, claim.strategy)), values.get((label, claim.reference))
        if label not in claim.without and mine is not None and theirs:
            out[label] = 100 * (mine / theirs - 1)
    return out


def _strategies(found: Outcome) -> str:
    titles = ["strategy", "mean wait", "/ fcfs-easy", "/ shared", "/ static", "bounded slowdown", "/ fcfs-easy"]
    titles += ["max wait", "/ fcfs-easy", "util. %", "worse %", "no answer"]
    rows = []
    for name, average in found.averages().items():
        easy, means = average.against["fcfs-easy"], average.means
        cells = [f"{means['mean_wait'] / 3600:.2f}"]
        cells += [_ratio(average, reference, "mean_wait") for reference in ("fcfs-easy", "shared", "static")]
        cells += [f"{means['mean_bounded_slowdown']:.1f}", _ratio(average, "fcfs-easy", "mean_bounded_slowdown")]
        cells += [f"{means['max_wait'] / 3600:.1f}", _ratio(average, "fcfs-easy", "max_wait")]
        cells += [f"{100 * means['utilization_window']:.1f}", f"{100 * easy.worse:.0f}", str(average.fell_back or "")]
        rows.append([name, *cells])
    return markdown_table(titles, rows) + "\n"


def _ratio(average: Average, reference: str, metric: str) -> str:
    return f"{average.against[reference].ratios[metric]:.3f}"


def _surrogates(found: Outcome) -> str:
    """Say how well dp-nlp's surrogates fit and how far its sizes were from the best ones for the month learned from."""
    told = _steps(found, "surrogate")
    fits = [step for step in told if step.get("r2") is not None]
    regrets = _regrets(found)
    slacks = [step["slack"] for step in _steps(found, "bounds")]
    poor = sum(step.get("r2") is None for step in told)
    out = []
    if poor:
        text = (
            f"In {poor} of {len(slacks)} months the lower bounds and the proportional constraint leave so few "
            f"divisions (slack had to be {min(slacks):.2f} to {max(slacks):.2f} for any to be left) that each was "
            "simulated, and dp-nlp needed no surrogate: neither its samples nor its slack up to that value matter then."
        )
        out += [text]
    if fits:
        degrees = Counter(int(step["degree"]) for step in fits)
        shown = ", ".join(f"{degrees[degree]} of degree {degree}" for degree in sorted(degrees))
        bad = sum(step["r2"] < 0.5 for step in fits)
        fit = median(step["r2"] for step in fits)
        out += [f"dp-nlp's surrogates, one per epoch: {shown}; median R^2 {fit:.2f}, {bad} of {len(fits)} below 0.5."]
    if regrets:
        constrained, free = (mean(each[k] for each in regrets) for k in (0, 1))
        text = (
            "On the month that it learned from, dp-nlp's weighted mean wait is on average "
            f"{constrained:.1f} % above the best found under its constraints, {free:.1f} % above the best without them."
        )
        out += [text]
    return "\n".join(out) + ("\n" if out else "")


def _queues(found: Outcome) -> str:
    """Say what dqr did to the queues."""
    splits, merges = (_steps(found, name, "dqr") for name in ("split", "merge"))
    kept, joined = (sum(bool(step["kept"]) for step in steps) for steps in (splits, merges))
    if not splits:
        return ""
    text = f"dqr kept {kept} of the {len(splits)} splits that it looked at, and {joined} of {len(merges)} merges."
    return text + ("\n" if kept else " Without a split it does not matter in which order it visits the queues.\n")


def _steps(found: Outcome, name: str, strategy: str = "dp-nlp") -> list[dict[str, Any]]:
    """List the entries of this name in a strategy's logs."""
    return [
        step
        for verdict in found.results
        if verdict.strategy == strategy
        for step in verdict.decisions
        if step.get("step") == name
    ]


def _regrets(found: Outcome) -> list[tuple[float, float]]:
    """Per cent by which dp-nlp was above the best divisions, with and without its constraints, month by month."""
    steps = _steps(found, "regret")
    pairs = [(step.get("above_constrained_percent"), step.get("above_free_percent")) for step in steps]
    return [(float(a), float(b)) for a, b in pairs if _finite(a) and _finite(b) and a is not None and b is not None]


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _sensitivity(found: Sequence[Outcome]) -> str:
    months = found[0].periods
    span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
    told = (
        f"Generated months, judged {span}; one setting changed at a time. Ratios of means: waits, one of slowdowns. "
        "R^2 is the median of dp-nlp's surrogates; regret is how far, in per cent, dp-nlp's weighted wait is above the "
        "best under its constraints on the months that it learned from. The default slack leaves a narrow "
        f"range of divisions, so samples, degree and weights are shown at slack {WIDE:g} too, which leaves many.\n"
    )
    titles = ("setting", "dp-nlp / static", "dqr / static", "hybrid / static", "hybrid / shared",
              "hybrid / shared, slowdown", "R^2", "regret %")  # fmt: skip
    rows = []
    for outcome in found:
        each = outcome.averages()
        cells = [_ratio(each[name], "static", "mean_wait") for name in ("dp-nlp", "dqr", "hybrid")]
        cells += [_ratio(each["hybrid"], "shared", metric) for metric in ("mean_wait", "mean_bounded_slowdown")]
        fits = [step["r2"] for step in _steps(outcome, "surrogate") if step.get("r2") is not None]
        regrets = _regrets(outcome)
        cells += [f"{median(fits):.2f}" if fits else "", f"{mean(a for a, _ in regrets):.1f}" if regrets else ""]
        rows.append([outcome.piece.what, *cells])
    note = "\nchunkSize is rounded up to whole nodes of 24 cores, so the paper's 5 cores are a node here.\n"
    return "\n".join(["## What the settings do\n", told, markdown_table(titles, rows), note])


def _log(found: Outcome) -> str:
    source = found.piece.source
    left = "".join(f" {label} is left out: {why}." for label, why in found.skipped)
    return "\n".join(
        [
            f"## {found.piece.what}: {found.periods[0]} to {found.periods[-1]}, {found.jobs} jobs judged\n",
            f"{source}, Parallel Workloads Archive, with the queues of configs/{found.piece.config}.{left}\n",
            _strategies(found),
            monthly.folded(found),
        ]
    )


def _plainly(logs: Sequence[Outcome]) -> str:
    """Say plainly when partitioning is a bad idea, and what was best."""
    lines = ["## In plain words\n"]
    for outcome in logs:
        each = outcome.averages()
        waits = {name: average.against["fcfs-easy"].ratios["mean_wait"] for name, average in each.items()}
        parts = {name: waits[name] for name in PARTITIONED if name in waits}
        best, kindest = min(waits, key=waits.__getitem__), min(parts, key=parts.__getitem__)
        text = f"* {outcome.piece.what}: {best} has the shortest mean wait, {waits[best]:.3f} of fcfs-easy's. "
        if parts[kindest] > 1:
            text += (
                f"Partitioning is a bad idea: the best of the partitioned strategies, {kindest}, makes jobs wait "
                f"{parts[kindest]:.2f} times as long as one shared machine without any queue, strict `pp` "
                f"{parts['pp']:.1f} times."
            )
        else:
            text += f"The best of the partitioned strategies, {kindest}, has {parts[kindest]:.3f}."
        lines.append(text)
    lines += [
        "",
        "A core that is idle in one partition cannot serve a job that waits for another. What partitions give in",
        "return, a place that long jobs cannot take from short ones, the order of the waiting list gives for less.",
        "",
        "How often KEEP and CHANGE are right where the truth is known, and how much must be to gain for one month to",
        "show it: [trials.md](trials.md).",
        "",
    ]
    return "\n".join(lines)
