"""report.html of ``qconf backtest`` and ``qconf compare``: what tuning would have brought, strategy by strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qconf.backtest import REFERENCES, Backtest
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.history import History
from qconf.report import backtest
from qconf.report.charts import Figure
from qconf.report.columns import COLUMNS, beside
from qconf.report.frames import period_frame
from qconf.report.html import METHOD, page, settings_rows

SHOWN = ("mean_wait", "mean_bounded_slowdown", "utilization_window")  #: metrics of the tables of periods
LAYERS = (
    (
        "",
        (
            ("warnings", "Warnings"),
            ("figures", "Period by period, as figures"),
            ("strategies", "Strategies"),
            ("notes", "Notes"),
            ("glossary", "Ten terms"),
        ),
    ),
    (
        METHOD,
        (
            ("reductions", "Change against each reference"),
            ("periods", "Period by period, as numbers"),
            ("workload", "What was submitted"),
            ("read", "What was read"),
            ("settings", "How it was evaluated"),
            ("decisions", "Decisions"),
        ),
    ),
)

_AT_ONCE = {"figures": "Strategies, as figures", "periods": "The test period, as numbers"}  #: headings for one period


def render_backtest(
    found: Backtest,
    history: History,
    figures: Mapping[str, Figure],
    warnings: Sequence[str] = (),
    *,
    versions: Mapping[str, str] | None = None,
    inputs: Sequence[Mapping[str, str]] = (),
) -> str:
    """Write the report of a backtest, or of a comparison, with `figures` from `qconf.report.figures`."""
    last, comparison = found.folds[-1].label, backtest.is_comparison(found)
    context: dict[str, Any] = {
        "found": found,
        "resource": found.results[0].summary.resource,
        "view": backtest,
        "beside": beside(each.means for each in found.averages),
        "comparison": comparison,
        "advice": backtest.advise(found),
        "present": backtest.running(found),
        "history": history,
        "tables": [(COLUMNS[key].caption, period_frame(found, key).map(COLUMNS[key].write)) for key in SHOWN],
        "fallbacks": {(result.period, result.strategy) for result in found.results if result.fallback},
        "settings": settings_rows(found.settings),
        "versions": versions,
        "inputs": inputs,
        "warnings": warnings,
        "references": REFERENCES,
        "objective": OBJECTIVE_TEXTS[found.objective],
        "logs": [(each.strategy, each.decisions) for each in found.results if each.period == last and each.decisions],
        "trained": f"for the last period, {last}",
    }
    title = f"{'Comparison' if comparison else 'Backtest'}: queues of {found.base.machine.name}"
    once = _AT_ONCE if len(found.folds) == 1 else {}
    layers = [(layer, [(name, once.get(name, heading)) for name, heading in parts]) for layer, parts in LAYERS]
    return page("backtest", title, layers, figures, context)
