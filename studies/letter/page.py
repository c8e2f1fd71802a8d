"""Writes paper.md from the results of the pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean

from qconf.strategies.presets import PAPER
from qconf.text import markdown_table
from studies.letter import claims
from studies.letter.plan import DIVIDED, FIXED, MONTHS, OPEN, Reading
from studies.output import moves, paragraph, unmoved
from studies.paper.pieces import PieceResult

HEAD = """# The paper to the letter

Written by

    {command}

"""
ABOUT = f"""\
"The paper" is Kondameedi and Vadhiyar, "Adaptive Hybrid Queue Configuration for Supercomputer Systems", CCGrid 2017.
Its log is not public: the months are those of `qconf synth --preset {MONTHS}`, 2015-07 to 2016-03, with our loads,
priorities and running limits. Each month is reconfigured from the result of the month before, and evaluated on the
next. By hand:
"""
BY_HAND = f"""\
    qconf synth --preset {MONTHS} --months 9 --seed 0 -o log
    qconf backtest $(printf -- ' --history %s' log/*) --config configs/cray-xc40.yaml \\
        --strategies pp,dp-nlp,dqr,hybrid,mqb --preset paper --chain
"""
QUICK = "**This is the quick version**: four months, one seed, one load, few readings.\n"
#: Settings, their options, and the section of the paper for each.
TEXT: tuple[tuple[str, str, str], ...] = (
    ("samples", "100 sets of partition sizes are simulated", "II.A"),
    ("simulations", "once, and nothing after them", "II.A"),
    ("surrogate", "a polynomial, no penalty named", "II.A"),
    ("degree", "at most 3", "II.A"),
    ("slack", "the constraint has none", "II.A, (6)"),
    ("proportions", "one constraint for a pair of queues", "II.A, (6)"),
    ("decide_by", "the solver returns the sizes", "II.A, IV.A"),
    ("weights", "1/3, 2/3, 3/3 for three epochs", "Table III"),
    ("epoch_days", "ten days each, of the month before", "Table III"),
    (
        "tau_util",
        "90 % of the most utilization; a bound is the size above which it falls below",
        "II.A, Figure 2, Table III",
    ),
    ("excess", "not said of bounds beyond the machine", "open"),
    ("rounding", "not said", "open"),
    ("least_size", "at least the largest request of the queue; II.A: of the jobs submitted", "IV.A"),
    ("partition_limits", "the Cray's queues limit running jobs; not said of partitions", "open"),
    ("partition_starvation", "24 hours", "IV.A"),
    ("split_on", "half of the queue's limit, which is on what a job requests (I)", "II.B.1"),
    ("half_walltime", "less than half in the first part, the others in the second", "II.B.1"),
    ("split_parts", "the figure splits the first part on, the text both", "II.B.1, Figure 3"),
    ("visit_order", "at random, or by adjacency", "II.B.1"),
    ("merge_cores", "adjacent or overlapping; the formula beside it admits no adjacent ranges", "II.B.2, open"),
    ("measured_on", "the simulator runs the history; weights are in the program only", "II.A, II.B, III"),
    ("carve", "the new partitions are evaluated, without the pool", "III"),
    ("chunk", "5 processors; whole nodes are off", "Table III"),
    ("degradation", "30 %", "Table III"),
    ("pool_entry", "its partition first, else the pool", "III"),
    ("pool_placement", "on nodes of the pool", "III"),
)
OTHERWISE = """\
What no setting changes: a part of a split is at least as large as its widest job. tau is half the priority of the
queue with most core-hours, medium (Table III). The program's searches begin from the ten best samples. Of fewer than 20
divisions the best is taken, without a polynomial. Jobs of `large` are reserved (IV.A), on the whole machine.
"""
CLAIMS = """\
Change in per cent: the mean over the months and, in brackets, the best month; minus is less. Columns: seeds at the
months' own loads (0.58 to 0.90), from the least mean to the greatest; seed 0 by the other reading of a merge,
`adjacent`; seed 0 with every month at one load, as near to it as its walltimes allow (January 2016 ends at 0.61). Other
loads and limits: [When which wins](when.md).
"""
JANUARY = """\
In January 2016 the paper's dynamic strategies lose to static, since medium's fall leaves December's partitions wrong.
Here medium falls too, but static is as wrong: the hours of July, by which it is divided, are nearly December's (medium
59 and 56 %, small 21 and 22 %, small72 16 and 21 %).
"""
FIGURES = """\
Seed 0, to the letter. The paper prints no numbers of Figures 2 and 4, and says: utilization stays, then falls (2);
days differ much (4), ten days as much (6a), months less, with a pattern (6b); core-hours change drastically from
November to December, from January to February (5, IV.A), and of medium in January (IV.B.1).
"""
READINGS = """\
One reading switched at a time, month to month from 2015-07 to 2015-11. Ratios of mean waits over the months, the
geometric mean of the seeds.
"""


def write(
    columns: Mapping[str, PieceResult],
    readings: Sequence[tuple[Reading, Sequence[PieceResult]]],
    figures: Sequence[tuple[str, str]],
    *,
    command: str,
    quick: bool,
    left: Sequence[str] = (),
) -> str:
    """Return the page as Markdown; `figures` are (file, title), `left` names pieces that have not run."""
    parts = [HEAD.format(command=command), QUICK if quick else "", paragraph(ABOUT), BY_HAND]
    if left:
        unrun = list(dict.fromkeys(left))
        parts += [paragraph(f"Not run yet, so not on this page ({len(unrun)} pieces): {'; '.join(unrun)}.")]
    parts += ["## What the text says, and the settings of `--preset paper`\n", _settings(), paragraph(OTHERWISE)]
    parts += ["## The paper's numbers beside ours\n", paragraph(CLAIMS), claims.numbers(columns)]
    parts += ["## The paper's sentences beside ours\n", "In how many of all months of a column a sentence holds.\n"]
    parts += [claims.sentences(columns), paragraph(JANUARY)]
    parts += ["## What each reading changes\n", paragraph(READINGS), _readings(readings)]
    parts += ["## The paper's figures\n", paragraph(FIGURES)]
    parts += [f"![{title}](figures/{file})\n" for file, title in figures]
    return "\n".join(part for part in parts if part)


def _settings() -> str:
    rows = [[f"`--{name.replace('_', '-')}`", _shown(PAPER.settings[name]), text, where] for name, text, where in TEXT]
    return markdown_table(["option", "preset", "the paper", "where"], rows, left=4) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{each:.3g}" for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _readings(found: Sequence[tuple[Reading, Sequence[PieceResult]]]) -> str:
    """Return the table of readings that change something, and a list of the others."""
    titles = ["reading", "where", "dp-nlp / static", "dqr / static", "hybrid / static", "hybrid / shared"]
    rows, letter, others = [], None, []
    for reading, results in found:
        waits = [result.by_period("mean_wait").mean() for result in results]
        ratios = [geometric_mean([means[name] / means["static"] for means in waits]) for name in DIVIDED]
        ratios.append(geometric_mean([means["hybrid"] / means["shared"] for means in waits]))
        shown = [round(float(ratio), 2) for ratio in ratios]
        if letter is not None and not moves(shown, letter):
            others.append(reading.what)
            continue
        letter = letter or shown
        kind = "fixed" if reading in FIXED else "open" if reading in OPEN else ""
        where = ", ".join(filter(None, (kind, reading.where)))
        rows.append([reading.what, where, *(f"{ratio:.2f}" for ratio in shown)])
    table = markdown_table(titles, rows, left=2) + "\n"
    return table + ("\n" + unmoved("Readings", others) if others else "")
