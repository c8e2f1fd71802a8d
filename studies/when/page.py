"""Writes when.md and its figure from the rows; sentences take their numbers from the tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import geometric_mean

from qconf.report.charts import chart, layers, number, panels
from qconf.text import markdown_table
from studies.drawing import COLOURS, DASHES, FAINT, INK, Look, draw, lines
from studies.letter.claims import CLAIMS
from studies.output import paragraph
from studies.when.cells import LIMITS, MERGES, Cell, Row, columns

ROWS, PAGE, FIGURE = "when.csv", "when.md", "when.svg"
#: The paper's mean waits (section IV.B) as ratios, by (strategy, reference).
PAPERS = {
    (each.strategy, each.reference): 1 + each.average / 100
    for each in CLAIMS
    if each.metric == "mean_wait" and each.average is not None
}
PAPERS_LINE = "hybrid in the paper"
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)  #: ticks of the axis of ratios
HEAD = """# When which wins

    python -m studies.when       # writes this page; --quick: four points of it in minutes
    python -m studies.when --table --seeds 5 --loads 0.8,0.95 --limits 0.5 --months 4    # other points

"""
ABOUT = """\
Generated months of the Cray XC40 at {loads} of its core-hours, with every running limit (`max_run`) of
`configs/cray-xc40.yaml` {limits}. At each point {seeds}: each of {months} months but the first is evaluated with what
was trained on the month before, settings being the defaults. The paper's words and its formula differ on which queues
may be merged (`--merge-cores`): those with `adjacent` ranges of cores too, the default, or only those with a size in
`common`.
"""
PARTS = """\
Mean waits as parts of `shared`'s, the present queues on the whole machine under the same limits: geometric means of the
seeds, the shortest of a row bold. The paper has parts of `static`'s: {paper}.
"""
HYBRID = """\
In the paper `hybrid` waits {shared:.2f} of the machine without partitions, and {static:.2f} of `static`, on months,
loads and limits that are not public. Here:
"""
WHY = """\
Limits decide. `shared` and `static` keep the limit of each queue, and under tight ones jobs wait beside idle cores.
Merged queues have the sum of their limits, so a busy queue uses what the other leaves. `fcfs-easy` has no queues and no
limits.
"""


#: Ratios of mean waits, rounded as on the page, by (limits, load), then strategy.
Parts = dict[tuple[float, float], dict[str, float]]


def parts(rows: Iterable[Row], of: str) -> Parts:
    """Return the ratios of mean waits to those of the strategy `of`, geometric means over the seeds."""
    waits = {(Cell(row.seed, row.limits, row.load), row.strategy): row.wait for row in rows}
    found: dict[tuple[float, float], dict[str, list[float]]] = {}
    for (cell, name), wait in waits.items():
        ratios = found.setdefault((cell.limits, cell.load), {}).setdefault(name, [])
        ratios.append(max(wait, 1.0) / max(waits[cell, of], 1.0))  # at least a second, so the ratio is finite
    return {
        point: {name: round(geometric_mean(ratios), 2) for name, ratios in of_point.items()}
        for point, of_point in sorted(found.items(), key=lambda each: (-each[0][0], each[0][1]))
    }


def page(rows: Sequence[Row]) -> str:
    """Return the page as Markdown."""
    seeds, loads = sorted({row.seed for row in rows}), sorted({row.load for row in rows})
    limits, months = (sorted({getattr(row, name) for row in rows}, reverse=True) for name in ("limits", "months"))
    about = ABOUT.format(
        loads=_list([f"{load:g}" for load in loads]),
        limits=_list([_limits(each) for each in limits]),
        seeds=f"{len(seeds)} seeds" if len(seeds) > 1 else "one seed",
        months=" or ".join(map(str, months)),
    )
    of_shared, of_static = parts(rows, "shared"), parts(rows, "static")
    said = _list([f"`{name}` {PAPERS[name, 'static']:.2f}" for name in ("dp-nlp", "dqr", "hybrid")])
    lines = [HEAD, paragraph(about), f"![Mean waits over load, as parts of shared's](figures/{FIGURE})\n"]
    lines += [paragraph(WHY), "## Mean waits\n", paragraph(PARTS.format(paper=said)), waits(rows), winners(of_shared)]
    paper = HYBRID.format(shared=PAPERS["hybrid", "shared"], static=PAPERS["hybrid", "static"])
    lines += ["## Where hybrid wins\n", paragraph(paper)]
    lines += [*(sentence(of_shared, of_static, limit, merge) for limit in limits for merge in MERGES)]
    return "\n".join(lines)


def waits(rows: Sequence[Row]) -> str:
    """Return the table of mean waits at every point, as ratios to shared's."""
    names = [name for name, _, _ in columns() if name != "shared"]
    out = []
    for (limits, load), found in parts(rows, "shared").items():
        best = min(found.values())
        cells = [f"**{part:.2f}**" if (part := found[name]) == best else f"{part:.2f}" for name in names]
        out.append([_limits(limits), f"{load:g}", *cells])
    return markdown_table(["limits", "load", *names], out, left=1) + "\n"


def winners(of_shared: Parts) -> str:
    """Return a paragraph with the number of points at which each strategy has the shortest mean wait."""
    won: dict[str, int] = {}
    for found in of_shared.values():
        best = min(part for part in found.values())
        for name, part in found.items():
            won[name] = won.get(name, 0) + (part == best)
    ranked = sorted((name for name in won if won[name]), key=lambda name: -won[name])
    shown = _list([f"{name} at {won[name]}" for name in ranked])
    return paragraph(
        f"Of {len(of_shared)} points the shortest mean wait has {shown}; more than one where they are alike."
    )


def sentence(of_shared: Parts, of_static: Parts, limits: float, merge: str) -> str:
    """Return the loads at which hybrid waits less than shared and static under some limits, and by how much."""
    text = []
    for other, found in (("shared", of_shared), ("static", of_static)):
        here = {load: found[limit, load][f"hybrid {merge}"] for limit, load in found if limit == limits}
        less = {load: 100 * (1 - part) for load, part in here.items() if part < 1}
        if not less:
            text.append(
                f"than {other} at none of {len(here)} loads ({_span(100 * (p - 1) for p in here.values())} % more)"
            )
        else:
            at = (
                "every load"
                if len(less) == len(here)
                else f"load{'s' * (len(less) > 1)} {_list([f'{load:g}' for load in less])}"
            )
            text.append(f"than {other} at {at}, by {_span(less.values())} %")
    return paragraph(
        f"* Limits {_limits(limits)}, `{merge}`: it waits less {', and '.join(text)}.", indent="  "
    ).rstrip()


def _span(values: Iterable[float]) -> str:
    least, *_, most = [*(found := sorted(round(each) for each in values)), found[-1]]
    return f"{least}" if least == most else f"{least} to {most}"


def _limits(factor: float) -> str:
    return LIMITS.get(factor, f"times {factor:g}")


def _list(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def figure(rows: Sequence[Row]) -> str:
    """Draw a panel per limit: mean wait over load as a ratio to shared's, a line per strategy; as SVG text."""
    found = parts(rows, "shared")
    strategies = {name: strategy for name, strategy, _ in columns() if name != "shared"}
    hues = list(dict.fromkeys(strategies.values()))
    every: dict[str, Look] = {
        name: (COLOURS[hues.index(strategy)], "stroke", DASHES[i])
        for i, (name, strategy) in enumerate(strategies.items())
    }
    every[PAPERS_LINE] = (INK, "stroke", [1, 5])
    values = [
        {
            "panel": f"limits {_limits(limits)}",
            "x": load,
            "line": name,
            "y": of_point.get(name, PAPERS["hybrid", "shared"]),
        }
        for (limits, load), of_point in found.items()
        for name in every
    ]
    drawn_parts = [of_point[name] for of_point in found.values() for name in strategies]
    low, high = min(0.9, *drawn_parts) * 0.9, max(1.1, *drawn_parts) * 1.1
    loads = sorted({load for _, load in found})
    x = number("x", "load", domain=(loads[0], loads[-1]), values=loads, format=".2f")
    y = number(
        "y",
        "wait / shared's",
        log=True,
        domain=(low, high),
        values=[at for at in TICKS if low <= at <= high],
        labelOverlap=False,
    )
    one = chart([{}], {"type": "rule", "color": FAINT, "strokeWidth": 2}, {"y": {"datum": 1}})
    drawn = layers(one, lines(x, y, every, 220, beside=3), height=250)
    spec = panels(values, [f"limits {_limits(each)}" for each in dict.fromkeys(limit for limit, _ in found)], drawn)
    return draw(spec, "Mean waits over load, as parts of shared's, by limits; a line for each strategy.")
