"""Writes study.md from the results of the pieces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import mean, median

from qconf.backtest import Average
from qconf.text import markdown_table
from studies.output import moves, paragraph, unmoved
from studies.paper import by_period, cuts
from studies.paper.pieces import PieceResult

PARTITIONED = ("pp", "static", "dp-nlp", "dqr", "hybrid", "exact")
HEAD = """# The study: trained on one period, evaluated on the next

Written by

    {command}

{scope}
"""
METHOD = """\
Every strategy is trained on one period and evaluated on the next; `static` on the first alone, `auto` on all so far. A
period of a log begins with the jobs that ran then, one of generated months with three days of earlier jobs that are not
counted. Ratios are of means over the periods, to `fcfs-easy` unless named; "worse" is the share of periods with a
longer mean wait than under `fcfs-easy`. Times are hours. `hybrid` fills its pool as the paper does; what PBS can do is
under "What the settings do" and in [partitioning.md](partitioning.md). Queues with adjacent ranges of cores are merged;
the other reading: [When which wins](when.md).
"""
QUICK = """\
**This is the quick study**: {periods} periods of each log and {sensitivity} for the effect of settings, so each has
much weight. `make study` runs the whole study (all periods; under an hour on two cores), `make study QUICK=1` this one.
Both resume where they were interrupted."""
WHOLE = "`make study QUICK=1` is a short version of it. Both resume where they were interrupted."
DIFFERENT = """\
The paper's claims beside ours: [paper.md](paper.md).
"""
LOGS = """\
Logs of the Parallel Workloads Archive. Cells are mean wait / bounded slowdown / longest wait as parts of `fcfs-easy`'s
/ utilization in %.
"""
PARTITIONS = """\
A core that is idle in one partition cannot serve a job that waits for another. What partitions give, cores that long
jobs cannot take from short ones, the order of the waiting list gives for less.
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
    if logs:
        parts += [_logs(logs)]
    if elsewhere:
        parts += [cuts.section(elsewhere)]
    if logs:
        parts += [_conclusions(logs if generated is None else [generated, *logs])]
    return "\n".join(parts)


def _generated(found: PieceResult) -> str:
    lines = [
        f"## Generated months: {found.periods[0]} to {found.periods[-1]}, {found.jobs} jobs evaluated\n",
        paragraph(DIFFERENT),
        _strategies(found),
        *_surrogates(found),
        *_queues(found),
        by_period.shown(),
    ]
    return "\n".join(lines)


def _strategies(found: PieceResult) -> str:
    titles = ["strategy", "mean wait", "ratio", "bounded slowdown", "max wait", "util. %", "worse %"]
    rows = []
    for name, average in found.averages().items():
        means = average.means
        cells = [f"{means['mean_wait'] / 3600:.2f}"]
        cells += _ratios(average)
        worse = average.against["fcfs-easy"].worse
        rows.append([name, *cells, f"{100 * means['utilization_window']:.1f}", f"{100 * worse:.0f}"])
    text = _fallbacks(found)
    return markdown_table(titles, rows) + "\n" + (f"\n{text}\n" if text else "")


def _fallbacks(found: PieceResult) -> str:
    names = [f"{name} in {average.fallbacks}" for name, average in found.averages().items() if average.fallbacks]
    return f"The current configuration stands in for {', '.join(names)} periods." if names else ""


def _ratios(average: Average) -> list[str]:
    """Return mean waits, mean slowdowns and longest waits as ratios to those of fcfs-easy."""
    ratios = average.against["fcfs-easy"].ratios
    return [f"{ratios[each]:.3f}" for each in ("mean_wait", "mean_bounded_slowdown", "max_wait")]


def _surrogates(found: PieceResult) -> list[str]:
    """Return paragraphs on how well dp-nlp's surrogates fit, and how far its divisions are from the best."""
    surrogates = list(found.steps("surrogate", "dp-nlp"))
    fits = [step for step in surrogates if step.get("r2") is not None]
    slacks = [step["slack"] for step in found.steps("bounds", "dp-nlp")]
    needless = len(surrogates) - len(fits)
    out = []
    if needless:
        text = (
            f"In {needless} of {len(slacks)} periods the constraints leave so few divisions (slack had to be "
            f"{min(slacks):.2f} to {max(slacks):.2f} for any to be left) that each was simulated, without a surrogate."
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
            f"On its training periods dp-nlp's weighted mean wait is on average {constrained:.1f} % above the best "
            f"found under its constraints, {free:.1f} % above the best without them."
        )
        out += [paragraph(text)]
    return out


def _queues(found: PieceResult) -> list[str]:
    """Return a paragraph on the splits and merges of dqr."""
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
    """Return per period how far dp-nlp is above the best division with and without constraints, per cent."""
    steps = found.steps("regret", "dp-nlp")
    pairs = [(step.get("above_constrained_percent"), step.get("above_free_percent")) for step in steps]
    return [(float(a), float(b)) for a, b in pairs if _finite(a) and _finite(b) and a is not None and b is not None]


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _sensitivity(found: Sequence[PieceResult]) -> str:
    periods = found[0].periods
    span = periods[0] if len(periods) == 1 else f"{periods[0]} to {periods[-1]}"
    text = (
        f"Generated months, evaluated on {span}; one setting changed at a time. Ratios of mean waits. chunkSize is "
        "rounded up to whole nodes of 24 cores."
    )
    titles = ("setting", "dp-nlp / static", "dqr / static", "hybrid / static", "hybrid / shared")
    rows, first, others = [], None, []
    for result in found:
        averages = result.averages()
        pairs = [*((name, "static") for name in ("dp-nlp", "dqr", "hybrid")), ("hybrid", "shared")]
        ratios = [averages[name].against[reference].ratios["mean_wait"] for name, reference in pairs]
        if first is not None and not moves(ratios, first):
            others.append(result.piece.what)
            continue
        first = first or ratios
        rows.append([result.piece.what, *(f"{ratio:.3f}" for ratio in ratios)])
    lines = ["## What the settings do\n", paragraph(text), markdown_table(titles, rows)]
    return "\n".join([*lines, "", *filter(None, [unmoved("Settings", others)])])


def _logs(found: Sequence[PieceResult]) -> str:
    """Return the section of the public logs: a row per strategy, a column per log."""
    averages = [result.averages() for result in found]
    rows = [[name, *(_cell(each.get(name)) for each in averages)] for name in averages[0]]
    lines = [paragraph(_source(result), indent="  ").rstrip() for result in found]
    table = markdown_table(["strategy", *(result.piece.what for result in found)], rows)
    return "\n".join(["## Public logs\n", paragraph(LOGS), *lines, "", table, ""])


def _source(found: PieceResult) -> str:
    hours = found.averages()["fcfs-easy"].means["mean_wait"] / 3600
    text = (
        f"* {found.piece.what}: {found.piece.source}, configs/{found.piece.config}, {found.periods[0]} to "
        f"{found.periods[-1]}, {found.jobs} jobs evaluated. `fcfs-easy` waits {hours:.2f} h."
    )
    left = (f"{label} is left out: {why}." for label, why in found.skipped)
    return " ".join(filter(None, [text, *left, _fallbacks(found)]))


def _cell(average: Average | None) -> str:
    if average is None:
        return "-"
    return " / ".join([*_ratios(average), f"{100 * average.means['utilization_window']:.1f}"])


def _conclusions(logs: Sequence[PieceResult]) -> str:
    """Return the section that names each log's best strategy, and the best one with partitions."""
    lines = ["## In plain words\n"]
    for result in logs:
        averages = result.averages()
        waits = {name: average.against["fcfs-easy"].ratios["mean_wait"] for name, average in averages.items()}
        partitioned = {name: waits[name] for name in PARTITIONED if name in waits}
        best, kindest = min(waits, key=waits.__getitem__), min(partitioned, key=partitioned.__getitem__)
        text = (
            f"* {result.piece.what}: {best} has the shortest mean wait, {waits[best]:.3f} of fcfs-easy's; the best "
            f"with partitions, {kindest}, {partitioned[kindest]:.2f}, strict `pp` {partitioned['pp']:.1f}."
        )
        lines.append(paragraph(text, indent="  ").rstrip())
    return "\n".join([*lines, "", paragraph(PARTITIONS)])
