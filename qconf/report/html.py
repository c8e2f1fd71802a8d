"""report.html: one file that opens offline, in light and dark, on paper too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import jinja2
from markupsafe import Markup, escape

from qconf.backtest import REFERENCES, Backtest
from qconf.config import SiteConfig, dump, format_duration
from qconf.errors import ExportError
from qconf.evaluation.impact import Kind, grown
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.history import History
from qconf.inert import inert
from qconf.recommend import Recommendation, Row
from qconf.recommend.fidelity import Fidelity
from qconf.report import backtest, verdict, wording
from qconf.report.changes import definitions, pairs
from qconf.report.columns import BESIDE, COLUMNS, COMPARISON, columns
from qconf.report.drawing import FAINT, INK, PAPER
from qconf.report.exported import Exported
from qconf.report.figures import HIGHEST
from qconf.report.formulas import order_in_words
from qconf.report.frames import period_frame
from qconf.strategies import baselines

GROUPS = columns("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_bounded_slowdown")
KINDS: dict[Kind, str] = {"size": "jobs by their cores", "user": "users by their core-hours"}
LONGEST_FILE = 200  # lines of an export's main file that the page shows
CAPTIONS = {
    "mean-wait": "Mean wait of each strategy in the test period.",
    "wait-by-size": "Mean wait of each queue alone on a partition, against the partition's size.",
    "utilization-by-size": "Utilization of the same partitions: a large one idles, a small one makes jobs wait.",
}
BACKTEST_CAPTIONS = {
    "mean-wait": "Mean wait in each test period.",
    "ratio": "Mean wait in each test period as part of that under fcfs-easy: below the line is better. "
    f"Ratios above {HIGHEST:g} stand at the edge.",
}


def render(
    recommendation: Recommendation,
    figures: Mapping[str, str],
    *,
    history: History | None = None,
    fidelity: Fidelity | None = None,
    warnings: Sequence[str] = (),
    exported: Exported | None = None,
) -> str:
    """Write the report of a recommendation, with `figures` from `qconf.report.figures`.

    The history adds what was dropped and changed, and gives the time zone, else UTC. No other file is referred to
    but the export's PLAN.md.
    """
    return page(
        "report.html.j2",
        figures,
        CAPTIONS,
        r=recommendation,
        change=recommendation.verdict == "CHANGE",
        history=history,
        fidelity=None if fidelity is None else wording.fidelity_text(fidelity),
        zone="UTC" if history is None else history.timezone,
        baselines=("current", *baselines()),
        columns=(*COMPARISON, *BESIDE),
        groups=list(_groups(recommendation)),
        group_columns=GROUPS,
        doubts=verdict.doubts(recommendation, fidelity)[:1],
        beside=list(verdict.sections(recommendation, fidelity)),
        proposals=list(_proposals(recommendation, exported)),
        sites=pairs(wording.site_facts(recommendation.base), wording.site_facts(recommendation.config)),
        order=order_in_words(recommendation.config),
        definitions=definitions(recommendation.base, recommendation.config),
        logs=[(row.label, row.decisions) for row in recommendation.rows if row.decisions],
        settings=settings_rows(recommendation.settings),
        warmup=_setting("warmup_seconds", recommendation.settings.get("warmup_seconds", 0))[1],
        objective=OBJECTIVE_TEXTS[recommendation.objective],
        warnings=list(warnings),
        exported=exported,
    )


def render_backtest(found: Backtest, history: History, figures: Mapping[str, str], warnings: Sequence[str] = ()) -> str:
    """Write the report of a backtest, or of a comparison, with `figures` from `qconf.report.figures`."""
    column = COLUMNS["mean_wait"]
    last = found.folds[-1].label
    return page(
        "backtest.html.j2",
        figures,
        BACKTEST_CAPTIONS,
        found=found,
        view=backtest,
        beside=BESIDE,
        comparison=backtest.is_comparison(found),
        history=history,
        waits=period_frame(found, column.key).map(column.write),
        fallbacks={(result.period, result.strategy) for result in found.results if result.fallback},
        settings=settings_rows(found.settings),
        warnings=list(warnings),
        references=REFERENCES,
        objective=OBJECTIVE_TEXTS[found.objective],
        logs=[(each.strategy, each.decisions) for each in found.results if each.period == last and each.decisions],
    )


def page(template: str, figures: Mapping[str, str], captions: Mapping[str, str], **context: Any) -> str:  # noqa: ANN401
    """Fill in one of the templates; it gets `figures` with name, svg to embed and caption, and the `context`."""
    titled = [(name, svg, captions.get(name, name)) for name, svg in figures.items()]
    drawn = [{"name": name, "svg": inline(svg, name, caption), "caption": caption} for name, svg, caption in titled]
    text = _environment().get_template(template).render(figures=drawn, **context)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"


def settings_shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings on which the result depends, by name: all but the number of workers."""
    return {key: settings[key] for key in sorted(settings) if key != "workers"}


def settings_rows(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the settings on which the result depends."""
    return [_setting(*item) for item in settings_shown(settings).items()]


def _setting(name: str, value: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever was set
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
        finalize=lambda value: inert(value, lines=True) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "hours": wording.hours,
        "number": wording.number,
        "count": wording.count,
        "gain": wording.gain_text,
        "interval": wording.interval_text,
        "date": wording.date,
        "sense": _sense,
        "steps": steps,
    }
    return environment


def inline(svg: str, name: str, label: str) -> Markup:
    """Make an SVG file a part of a page: no prologue, ids of its own, the page's colours, and a label.

    `svg` is trusted: matplotlib draws text as outlines and escapes what it writes.
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)  # comments repeat every text
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href=", "href=")
    prefix = re.sub(r"[^a-z0-9]+", "-", name.lower())
    text = re.sub(r'\bid="([^"]*)"', rf'id="{prefix}-\1"', text)
    text = text.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    for colour, variable in ((INK, "ink"), (FAINT, "faint"), (PAPER, "paper")):
        text = re.sub(rf"(?<=[:\"] ){colour}|(?<=[:\"]){colour}", f"var(--{variable})", text)
    # A presentation attribute knows no variable, a style does.
    text = re.sub(r'\b(fill|stroke)="(var\(--\w+\))"', r'style="\1: \2"', text)
    for size in ("width", "height"):
        text = re.sub(rf'(<svg\b[^>]*?)\s+{size}="[^"]*"', r"\1", text, count=1)
    text = text.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    return Markup("\n".join(line for line in text.splitlines() if line.strip()))  # noqa: S704


def _sense(row: Row) -> str:
    """Tell whether a gain is a certain one, or a loss."""
    if row.gain is not None and row.gain < 0:
        return "worse"
    return "better" if row.bootstrap is not None and row.bootstrap.certain else ""


def _groups(recommendation: Recommendation) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield what groups are of, and the groups: numbers of current, those of the winner, and their differences."""
    found = {row.name: row.test.queues for row in recommendation.rows if row.test is not None}
    before = found.pop("current", {})  # so that there is no after where current is kept
    yield "queue", [_group(**each) for each in pairs(before, found.get(recommendation.winner, {}))]
    for kind, title in KINDS.items():
        groups = () if recommendation.impact is None else recommendation.impact.of(kind)
        if groups:
            yield (
                title,
                [
                    _group(each.name, {"jobs": each.jobs, **each.before}, {"jobs": each.jobs, **each.after})
                    for each in groups
                ],
            )


def _group(name: str, before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> dict[str, Any]:
    """Return a group's rows, and by metric the differences with their senses."""
    differences = {}
    if before is not None and after is not None:
        senses = dict.fromkeys(grown(after, before), "better") | dict.fromkeys(grown(before, after), "worse")
        for column in GROUPS:
            text = column.write(after[column.key] - before[column.key])
            plus = "" if text.startswith("-") or not text.strip("0.") else "+"
            differences[column.key] = (plus + text, senses.get(column.key, ""))
    return {"name": name, "before": before, "after": after, "differences": differences}


def _proposals(recommendation: Recommendation, exported: Exported | None) -> Iterator[dict[str, Any]]:
    """Yield what every strategy proposes: its definitions and the export's main file, or why there is none."""
    first: dict[str, str] = {}
    for row in recommendation.rows:
        found: dict[str, Any] = {
            "name": row.label,
            "note": "",
            "site": {},
            "queues": [],
            "file": "",
            "text": "",
            "cut": 0,
        }
        text = "" if row.config is None else dump(row.config)
        if row.config is None:
            found["note"] = f"It proposes nothing: {row.ineligible}"
        elif text in first:
            found["note"] = f"The same configuration as {first[text]}."
        else:
            found["site"] = wording.site_facts(row.config)
            found["queues"] = [(queue.name, wording.queue_facts(queue, row.config)) for queue in row.config.queues]
        if row.not_exportable:
            found["note"] = f"No batch system can do what was simulated: {row.not_exportable}"
        elif found["site"]:
            first[text] = row.label
            found |= _main_file(row.config, exported)
        yield found


def _main_file(config: SiteConfig | None, exported: Exported | None) -> dict[str, Any]:
    """Return the export's first file to load, cut where it is long, or the reason why there is none."""
    if config is None or exported is None:
        return {}
    try:
        export = exported.exporter.export(config)
    except ExportError as error:
        return {"note": f"Not exportable to {exported.exporter.name}: {error}"}
    name = next(iter(export.loaded), "PLAN.md")
    lines = export.files[name].splitlines()
    cut = max(len(lines) - LONGEST_FILE, 0)
    return {"file": name, "text": "\n".join(lines[:LONGEST_FILE]), "cut": cut}


def steps(decisions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Write a strategy's log for a person: each step, and its facts by name."""
    for step in decisions:
        texts = {str(key).replace("_", " "): wording.value_text(value) for key, value in step.items() if key != "step"}
        yield wording.value_text(step.get("step", "")), [fact for fact in texts.items() if fact[1] != wording.ABSENT]
