"""The page of ``qconf tune``: first what to do, how sure that is and who loses, then the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parsim.model.node_types import GPUS
from qconf.config import SiteConfig, dump
from qconf.errors import ExportError
from qconf.evaluation.impact import Kind, grown
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.export.directory import blocks
from qconf.history import History
from qconf.recommend import Recommendation
from qconf.report import verdict, wording
from qconf.report.changes import definitions, site_pairs
from qconf.report.charts import Figure
from qconf.report.columns import COMPARISON, columns, further_columns
from qconf.report.exported import Exported
from qconf.report.formulas import order_in_words
from qconf.report.html import METHOD, page, setting, settings_rows
from qconf.report.impact import losers
from qconf.report.nodes import node_tables
from qconf.report.points import in_points, typical_table
from qconf.report.story import story
from qconf.strategies import baselines
from qconf.text import in_terms_of

GROUPS = columns("mean_wait", "median_wait", "p95_wait", "max_wait", "mean_bounded_slowdown")
KINDS: dict[Kind, str] = {
    "nodes": "jobs by the nodes that they are meant for",
    "size": "jobs by their cores",
    "user": "users by their core-hours",
    "qos": "qualities of service",
}
LONGEST_FILE = 200  # most lines of an export's main file on the page
LAYERS = (
    ("", (("warnings", "Warnings"),)),
    ("For the boss", (("boss", "In short"),)),
    (
        "For the administrator",
        (
            ("load", "How to load it"),
            ("changes", "What changes"),
            ("winners", "Who wins and who loses"),
            ("queues", "The best queue configuration"),
            ("beside", "What else there is to know"),
            ("glossary", "Ten terms"),
        ),
    ),
    (
        METHOD,
        (
            ("ladder", "From small to large changes"),
            ("strategies", "Strategies"),
            ("time", "The test period as time goes by"),
            ("waits", "How long jobs wait"),
            ("jobs", "Every job"),
            ("nodes", "Nodes by type and resource"),
            ("workload", "What was submitted"),
            ("sizes", "What a partition's size does"),
            ("partitions", "How the partitions came about"),
            ("recorded", "Recorded against simulated"),
            ("read", "What was read"),
            ("evaluation", "How it was evaluated"),
            ("proposals", "What each strategy proposes"),
            ("decisions", "Decisions"),
        ),
    ),
)


def render(
    recommendation: Recommendation,
    figures: Mapping[str, Figure],
    *,
    history: History | None = None,
    warnings: Sequence[str] = (),
    exported: Exported | None = None,
    versions: Mapping[str, str] | None = None,
    inputs: Sequence[Mapping[str, str]] = (),
) -> str:
    """Return the page of a recommendation, with `figures` from `qconf.report.figures`.

    With a history the page also shows what was dropped and changed, and uses its time zone instead of UTC. It refers to
    no file except the export's PLAN.md.
    """
    r, first = recommendation, verdict.advise(recommendation, exported)
    plan = "" if exported is None else exported.export.files.get("PLAN.md", "")
    context = {
        "r": r,
        "resource": r.resource,
        "advice": first,
        "change": r.proposes,
        "sure": list(verdict.certainty(r)),
        "needs": list(verdict.needs(r, exported)) or ["nothing beside the batch system"],
        "losers": [] if r.impact is None else losers(r.impact),
        "history": history,
        "fidelity": None if r.near is None else wording.fidelity_text(r.near),
        "zone": "UTC" if history is None else history.timezone,
        "baselines": ("current", *baselines(r.base)),
        "columns": (*COMPARISON, *further_columns(row.test.overall for row in r.rows if row.test is not None)),
        "groups": list(_groups(r)),
        "group_columns": GROUPS,
        "node_tables": list(node_tables(r)),
        "beside": [each for each in verdict.sections(r, exported) if each[0] not in _ELSEWHERE],
        "proposals": list(_proposals(r, exported)),
        "sites": site_pairs(r.base, r.config),
        "order": in_points(r.config) or order_in_words(r.config),
        "points": typical_table(r.config),
        "definitions": definitions(r.base, r.config),
        "queues_apart": definitions(r.base, r.queues.row.config)
        if r.queues is not None and r.queues.row.config is not None and not r.recommends_queues
        else [],
        "story": story(r),
        "logs": [(row.label, row.decisions) for row in r.rows if row.decisions],
        "trained": "on the whole history",
        "settings": settings_rows(r.settings),
        "versions": versions,
        "inputs": inputs,
        "warmup": setting("warmup_seconds", r.settings.get("warmup_seconds", 0))[1],
        "objective": OBJECTIVE_TEXTS[r.objective],
        "warnings": warnings,
        "exported": exported,
        "commands": [(title, block.rstrip()) for title, block in blocks(plan) if not title.startswith("Undo")],
    }
    return page("tune", f"{r.verdict}: {r.base.machine.name}", LAYERS, figures, context)


#: Sections of `verdict.sections` that this page shows elsewhere.
_ELSEWHERE = ("What it needs", "Who waits longer", "In another month")


def _groups(recommendation: Recommendation) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each kind of groups with its groups: values of the base, of the winner, and differences."""
    if recommendation.impact is None:
        row = recommendation.rows[0]
        queues = {} if row.test is None else row.test.queues
        yield "queue", [_group(name, values["jobs"], None, values, None) for name, values in queues.items()]
        return
    for kind, title in ({"queue": "queue"} | KINDS).items():
        members = recommendation.impact.of(kind)  # type: ignore[arg-type]
        of_gpus = kind == "size" and recommendation.resource == GPUS
        yield (
            "jobs by their GPUs" if of_gpus else in_terms_of(recommendation.resource, title),
            [_group(each.name, each.jobs, each.share, each.before, each.after, each.charged) for each in members],
        )


def _group(
    name: str,
    jobs: float,
    share: float | None,
    before: Mapping[str, float],
    after: Mapping[str, float] | None,
    charged: float | None = None,
) -> dict[str, Any]:
    """Return a group with a cell for each metric: before, after, and the difference with its sense."""
    senses = {}
    if after is not None:
        senses = dict.fromkeys(grown(after, before), "better") | dict.fromkeys(grown(before, after), "worse")
    cells = []
    for column in GROUPS:
        then = before[column.key]
        cell = {"before": column.write(then), "value": then, "difference": "", "after": ""}
        if after is not None:
            now = after[column.key]
            text = column.write(now - then)
            plus = "" if text.startswith("-") or not text.strip("0.") else "+"
            cell |= {"after": column.write(now), "difference": plus + text, "value": now - then}
            cell["sense"] = senses.get(column.key, "")
        cells.append(cell)
    return {
        "name": name,
        "jobs": jobs,
        "share": wording.ABSENT if share is None else wording.number(100 * share, 1),
        "charged": "" if charged is None else wording.count(charged / 3600),
        "cells": cells,
    }


def _proposals(recommendation: Recommendation, exported: Exported | None) -> Iterator[dict[str, Any]]:
    """Yield each strategy's proposal: definitions and the export's main file, or why there is none."""
    first: dict[str, str] = {}
    for row in recommendation.rows:
        found: dict[str, Any] = {"name": row.label, "note": "", "site": {}, "file": ""}
        if row.config is None:
            found["note"] = f"It proposes nothing: {row.ineligible}"
        elif (text := dump(row.config)) in first:
            found["note"] = f"The same configuration as {first[text]}."
        else:
            found["site"] = wording.site_facts(row.config)
            found["order"] = "by a formula" if row.config.is_formula else row.config.order
            found["queues"] = [(queue.name, wording.queue_facts(queue, row.config)) for queue in row.config.queues]
        if row.not_exportable:
            found["note"] = f"No batch system can do what was simulated: {row.not_exportable}"
        elif row.config is not None and found["site"]:
            first[text] = row.label
            found |= {} if exported is None else _main_file(row.config, exported)
        yield found


def _main_file(config: SiteConfig, exported: Exported) -> dict[str, Any]:
    """Return the export's first file to load, cut if long, or the reason why there is none."""
    try:
        export = exported.exporter.export(config)
    except ExportError as error:
        return {"note": f"Not exportable to {exported.exporter.name}: {error}"}
    name = next(iter(export.loaded), "PLAN.md")
    lines = export.files[name].splitlines()
    cut = max(len(lines) - LONGEST_FILE, 0)
    return {"file": name, "text": "\n".join(lines[:LONGEST_FILE]), "cut": cut}
