"""report.html: one file that opens offline, in light and dark, on paper too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from qconf.config import format_duration
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.export import Export, Exporter
from qconf.history import History
from qconf.recommend import Recommendation, Row
from qconf.recommend.fidelity import Fidelity
from qconf.report import wording
from qconf.report.changes import definitions, pairs
from qconf.report.drawing import FAINT, INK, PAPER
from qconf.report.figures import is_baseline

CAPTIONS = {
    "mean-wait": "Mean wait of each strategy on the judged part of the history.",
    "wait-by-size": "Mean wait of each queue alone on a partition, against the partition's size.",
    "utilization-by-size": "Utilization of the same partitions: a large one idles, a small one makes jobs wait.",
}
STRATEGY_COLUMNS = (
    ("mean wait, h", "mean_wait", wording.hours),
    ("p95 wait, h", "p95_wait", wording.hours),
    ("max wait, h", "max_wait", wording.hours),
    ("bounded slowdown", "mean_bounded_slowdown", wording.number),
    ("utilization, %", "utilization_window", wording.percent),
)
QUEUE_COLUMNS = (("jobs", "jobs", wording.count), *STRATEGY_COLUMNS[:4])


def render(
    recommendation: Recommendation,
    figures: Mapping[str, str],
    *,
    history: History | None = None,
    fidelity: Fidelity | None = None,
    warnings: Sequence[str] = (),
    exporter: Exporter | None = None,
    export: Export | None = None,
    refused: str = "",
) -> str:
    """Write the report.

    Parameters
    ----------
    recommendation : Recommendation
    figures : dict of str to str
        Name to SVG text, from `qconf.report.figures.figures`.
    history : History, optional
        What was read: adds what was dropped and changed, and gives the time zone, else UTC.
    fidelity : Fidelity, optional
        How near the simulated present is to what happened.
    warnings : sequence of str
    exporter : Exporter, optional
        Of the batch system that the configuration is for.
    export : Export, optional
        What it wrote.
    refused : str
        Why there is no export.

    Returns
    -------
    str
        HTML without any reference to another file but the export's PLAN.md.
    """
    zone = "UTC" if history is None else history.timezone
    return page(
        "report.html.j2",
        figures,
        CAPTIONS,
        r=recommendation,
        change=recommendation.verdict == "CHANGE",
        history=history,
        fidelity=None if fidelity is None else wording.fidelity_text(fidelity),
        parts=[
            {"name": name, "jobs": jobs, "first": wording.date(low, zone), "last": wording.date(high, zone)}
            for name, (jobs, low, high) in recommendation.spans.items()
        ],
        earlier="earlier periods" in recommendation.spans,
        zone=zone,
        strategies=[_strategy(recommendation, row) for row in recommendation.rows],
        columns=STRATEGY_COLUMNS,
        flattering=[row for row in recommendation.rows if row.test is not None and row.in_sample is not None],
        queues=_queues(recommendation),
        queue_columns=QUEUE_COLUMNS,
        sites=pairs(wording.site_facts(recommendation.base), wording.site_facts(recommendation.config)),
        definitions=definitions(recommendation.base, recommendation.config),
        decisions=[(row.name, steps(row.decisions)) for row in recommendation.rows if row.decisions],
        settings=settings_rows(recommendation.settings),
        warmup=_setting("warmup_seconds", recommendation.settings.get("warmup_seconds", 0))[1],
        objective=OBJECTIVE_TEXTS[recommendation.objective],
        warnings=list(warnings),
        exporter=exporter,
        export=export,
        refused=refused,
    )


def page(template: str, figures: Mapping[str, str], captions: Mapping[str, str], **context: Any) -> str:  # noqa: ANN401
    """Fill in one of the templates; it gets `figures` with name, svg to embed and caption, and the `context`."""
    drawn = [
        {"name": name, "svg": inline(svg, name, captions.get(name, name)), "caption": captions.get(name, name)}
        for name, svg in figures.items()
    ]
    text = _environment().get_template(template).render(figures=drawn, **context)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


def settings_shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings on which the answer depends, by name: all but how many workers there were."""
    return {key: settings[key] for key in sorted(settings) if key != "workers"}


def settings_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the settings on which the answer depends."""
    return [_setting(*item) for item in settings_shown(settings).items()]


def _setting(name: str, value: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever was asked
    """Write a setting; what counts seconds as a duration."""
    if name.endswith("_seconds") and isinstance(value, int):
        return name.removesuffix("_seconds").replace("_", " "), format_duration(value) if value else "none"
    return name.replace("_", " "), wording.value_text(value)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qconf.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "hours": wording.hours,
        "number": wording.number,
        "percent": wording.percent,
        "count": wording.count,
        "gain": wording.gain_text,
        "expected": wording.expected_text,
    }
    return environment


def inline(svg: str, name: str, label: str) -> Markup:
    """Make an SVG file a part of a page: no prologue, ids of its own, the page's colours, and a label.

    `svg` is trusted: matplotlib draws text as outlines and escapes what it writes.
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)  # matplotlib repeats every text in a comment
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    prefix = re.sub(r"[^a-z0-9]+", "-", name.lower())
    text = re.sub(r'\bid="([^"]*)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    for colour, variable in ((INK, "ink"), (FAINT, "faint"), (PAPER, "paper")):
        text = re.sub(rf"(?<=[:\"] ){colour}|(?<=[:\"]){colour}", f"var(--{variable})", text)
    # A presentation attribute knows no variable, a style does.
    text = re.sub(r'\b(fill|stroke)="(var\(--\w+\))"', r'style="\1: \2"', text)
    text = re.sub(r'(<svg\b[^>]*?)\s+width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg\b[^>]*?)\s+height="[^"]*"', r"\1", text, count=1)
    text = text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    return Markup("\n".join(line for line in text.splitlines() if line.strip()))  # noqa: S704


def _strategy(recommendation: Recommendation, row: Row) -> dict[str, Any]:
    sense = "better" if row.bootstrap is not None and row.bootstrap.certain else ""
    if row.gain is not None and row.gain < 0:
        sense = "worse"
    return {
        "row": row,
        "winner": row.name == recommendation.winner,
        "baseline": is_baseline(row.name),
        "sense": sense,
    }


def _queues(recommendation: Recommendation) -> list[dict[str, Any]]:
    """Pair the winner's numbers of each queue with the current ones."""
    found = {row.name: row.test for row in recommendation.rows if row.test is not None}
    before, after = found.get("current"), found.get(recommendation.winner)
    names = list(dict.fromkeys([*(before.queues if before else ()), *(after.queues if after else ())]))
    return [
        {
            "name": name,
            "before": before.queues.get(name) if before else None,
            "after": after.queues.get(name) if after and recommendation.winner != "current" else None,
        }
        for name in names
    ]


def steps(decisions: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Write a strategy's log for a person: each step, and its facts by name."""
    return [
        (
            wording.value_text(step.get("step", "")),
            [
                (str(key).replace("_", " "), wording.value_text(value))
                for key, value in step.items()
                if key != "step" and wording.value_text(value) != wording.ABSENT
            ],
        )
        for step in decisions
    ]
