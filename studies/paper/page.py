"""study.md, from the results of the pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median

from qconf.backtest import Average
from qconf.text import markdown_table
from studies.output import paragraph
from studies.paper import by_period, cuts
from studies.paper.pieces import PieceResult
from studies.paper.plan import WIDE

PARTITIONED = ("pp", "static", "dp-nlp", "dqr", "hybrid", "exact")
HEAD = """# The study: trained on one period, evaluated on the next

Written by

    {command}

{scope}
"""
METHOD = """\
Every strategy is trained on one period and evaluated on the next. A period of a log begins with the jobs that ran then,
as the log tells; one of generated months with three days of earlier jobs that fill the machine and are not counted.
`static` is trained on the first period alone, `auto` may follow what all periods so
far have in common. No strategy sees a job of its test period. Ratios are of means over the periods; "worse" is the
share of periods with a longer mean wait than under `fcfs-easy`; "fallbacks" are the periods to which a strategy does
not apply, where the current configuration takes its place. Times are hours. Utilization is that while jobs arrive.
`hybrid` carves and fills its pool as the paper does, which PBS cannot follow; what `qconf` does by default, which PBS
can, is under "What the settings do" and in [partitioning.md](partitioning.md). `dqr` and `hybrid` merge queues
whose ranges of cores are adjacent; the paper's words allow that and its formula does not. Both readings are compared
in [When which wins](when.md).
"""
QUICK = """\
**This is the quick study**: {periods} periods of each log and {sensitivity} for the effect of settings, so each has
much weight. `make study` runs the whole study (all periods; under an hour on two cores), `make study QUICK=1` this one.
Both resume where they were interrupted."""
WHOLE = "`make study QUICK=1` is a short version of it. Both resume where they were interrupted."
DIFFERENT = """\
What the paper claims of its strategies, to the letter and beside ours, is in [paper.md](paper.md). Utilization is
bounded by what was submitted: where no partition is overloaded all strategies reach the same.
"""
PARTITIONS = """\
A core that is idle in one partition cannot serve a job that waits for another. What partitions give in return, cores
that long jobs cannot take from short ones, the order of the waiting list gives for less.
"""
TRIALS = """\
How often KEEP and CHANGE are right where the truth is known, and how large a gain must be for one month to show it:
[trials.md](trials.md).
"""


def write(
    generated: PieceResult | None,
    sensitivity: Sequence[PieceResult],
    logs: Sequence[PieceResult],
    elsewhere: Sequence[PieceResult],
    *,
    command: str,
    scope: str,
) -> str:
    """Return the page as Markdown."""
    parts = [HEAD.format(command=command, scope=paragraph(scope)) + paragraph(METHOD)]
    if generated is not None:
        parts += [_generated(generated)]
    if sensitivity:
        parts += [_sensitivity(sensitivity)]
    parts += [_log(result) for result in logs]
    if elsewhere:
        parts += [cuts.section(elsewhere)]
    if logs:
        parts += [_conclusions(logs if generated is None else [generated, *logs])]
    return "\n".join(parts)


def _generated(found: PieceResult) -> str:
    lines = [
        f"## Generated months: {found.periods[0]} to {found.periods[-1]}, {found.jobs} jobs evaluated\n",
        paragraph(DIFFERENT),
        "### All strategies\n",
        _strategies(found),
        *_surrogates(found),
        *_queues(found),
        by_period.tables(found),
    ]
    return "\n".join(lines)


def _strategies(found: PieceResult) -> str:
    titles = ["strategy", "mean wait", "/ fcfs-easy", "/ shared", "/ static", "bounded slowdown", "/ fcfs-easy"]
    titles += ["max wait", "/ fcfs-easy", "util. %", "worse %", "fallbacks"]
    rows = []
    for name, average in found.averages().items():
        easy, means = average.against["fcfs-easy"], average.means
        cells = [f"{means['mean_wait'] / 3600:.2f}"]
        cells += [_ratio(average, reference, "mean_wait") for reference in ("fcfs-easy", "shared", "static")]
        cells += [f"{means['mean_bounded_slowdown']:.1f}", _ratio(average, "fcfs-easy", "mean_bounded_slowdown")]
        cells += [f"{means['max_wait'] / 3600:.1f}", _ratio(average, "fcfs-easy", "max_wait")]
        cells += [f"{100 * means['utilization_window']:.1f}", f"{100 * easy.worse:.0f}", str(average.fallbacks or "")]
        rows.append([name, *cells])
    return markdown_table(titles, rows) + "\n"


def _ratio(average: Average, reference: str, metric: str) -> str:
    return f"{average.against[reference].ratios[metric]:.3f}"


def _surrogates(found: PieceResult) -> list[str]:
    """Describe how well dp-nlp's surrogates fit, and how far its sizes are from the best ones for its training set."""
    surrogates = list(found.steps("surrogate", "dp-nlp"))
    fits = [step for step in surrogates if step.get("r2") is not None]
    slacks = [step["slack"] for step in found.steps("bounds", "dp-nlp")]
    needless = len(surrogates) - len(fits)
    out = []
    if needless:
        text = (
            f"In {needless} of {len(slacks)} periods the lower bounds and the proportional constraint leave so few "
            f"divisions (slack had to be {min(slacks):.2f} to {max(slacks):.2f} for any to be left) that each was "
            "simulated, and no surrogate could be fitted: neither its samples nor its slack up to that value matter "
            "then."
        )
        out += [paragraph(text)]
    if fits:
        degrees = Counter(int(step["degree"]) for step in fits)
        shown = ", ".join(f"{degrees[degree]} of degree {degree}" for degree in sorted(degrees))
        bad = sum(step["r2"] < 0.5 for step in fits)
        fit = median(step["r2"] for step in fits)
        text = f"dp-nlp's surrogates, one per epoch: {shown}; median R^2 {fit:.2f}, {bad} of {len(fits)} below 0.5."
        out += [paragraph(text)]
    if regrets := _regrets(found):
        constrained, free = (mean(each[k] for each in regrets) for k in (0, 1))
        text = (
            "On the period on which it is trained, dp-nlp's weighted mean wait is on average "
            f"{constrained:.1f} % above the best found under its constraints, {free:.1f} % above the best without them."
        )
        out += [paragraph(text)]
    return out


def _queues(found: PieceResult) -> list[str]:
    """Describe what dqr does to the queues."""
    splits, merges = ([bool(step["kept"]) for step in found.steps(name, "dqr")] for name in ("split", "merge"))
    if not splits:
        return []
    text = (
        f"dqr kept {sum(splits)} of the {len(splits)} splits that it tried, and {sum(merges)} of {len(merges)} merges."
    )
    if not any(splits):
        text += " Without a split it does not matter in which order it visits the queues."
    return [paragraph(text)]


def _regrets(found: PieceResult) -> list[tuple[float, float]]:
    """Per cent by which dp-nlp is above the best divisions, with and without its constraints, period by period."""
    steps = found.steps("regret", "dp-nlp")
    pairs = [(step.get("above_constrained_percent"), step.get("above_free_percent")) for step in steps]
    return [(float(a), float(b)) for a, b in pairs if _finite(a) and _finite(b) and a is not None and b is not None]


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _sensitivity(found: Sequence[PieceResult]) -> str:
    periods = found[0].periods
    span = periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"
    text = (
        f"Generated months, evaluated on {span}; one setting changed at a time. Ratios of means: waits, one "
        "of slowdowns. R^2 is the median of dp-nlp's surrogates; regret is how far, in per cent, dp-nlp's weighted "
        "wait is above the best under its constraints on the periods on which it is trained. The default slack "
        "leaves a narrow range of divisions, so samples, degree and weights are shown at slack "
        f"{WIDE:g} too, which leaves many."
    )
    titles = ("setting", "dp-nlp / static", "dqr / static", "hybrid / static", "hybrid / shared",
              "hybrid / shared, slowdown", "R^2", "regret %")  # fmt: skip
    rows = []
    for result in found:
        averages = result.averages()
        cells = [_ratio(averages[name], "static", "mean_wait") for name in ("dp-nlp", "dqr", "hybrid")]
        cells += [_ratio(averages["hybrid"], "shared", metric) for metric in ("mean_wait", "mean_bounded_slowdown")]
        fits = [step["r2"] for step in result.steps("surrogate", "dp-nlp") if step.get("r2") is not None]
        regrets = _regrets(result)
        cells += [f"{median(fits):.2f}" if fits else "", f"{mean(a for a, _ in regrets):.1f}" if regrets else ""]
        rows.append([result.piece.what, *cells])
    note = "\nchunkSize is rounded up to whole nodes of 24 cores, so the paper's 5 cores are a node here.\n"
    return "\n".join(["## What the settings do\n", paragraph(text), markdown_table(titles, rows), note])


def _log(found: PieceResult) -> str:
    left = "".join(f" {label} is left out: {why}." for label, why in found.skipped)
    text = f"{found.piece.source}, Parallel Workloads Archive, with the queues of configs/{found.piece.config}.{left}"
    return "\n".join(
        [
            f"## {found.piece.what}: {found.periods[0]} to {found.periods[-1]}, {found.jobs} jobs evaluated\n",
            paragraph(text),
            _strategies(found),
        ]
    )


def _conclusions(logs: Sequence[PieceResult]) -> str:
    """Name the best strategy of each log, and whether partitioning is a bad idea there."""
    lines = ["## In plain words\n"]
    for result in logs:
        averages = result.averages()
        waits = {name: average.against["fcfs-easy"].ratios["mean_wait"] for name, average in averages.items()}
        partitioned = {name: waits[name] for name in PARTITIONED if name in waits}
        best, kindest = min(waits, key=waits.__getitem__), min(partitioned, key=partitioned.__getitem__)
        text = f"* {result.piece.what}: {best} has the shortest mean wait, {waits[best]:.3f} of fcfs-easy's. "
        if partitioned[kindest] > 1:
            text += (
                f"Partitioning is a bad idea: the best of the partitioned strategies, {kindest}, makes jobs wait "
                f"{partitioned[kindest]:.2f} times as long as one shared machine without any queue, strict `pp` "
                f"{partitioned['pp']:.1f} times."
            )
        else:
            text += f"The best of the partitioned strategies, {kindest}, has {partitioned[kindest]:.3f}."
        lines.append(paragraph(text, indent="  ").rstrip())
    return "\n".join([*lines, "", paragraph(PARTITIONS), paragraph(TRIALS)])
