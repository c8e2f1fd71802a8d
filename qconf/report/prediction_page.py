"""The page of ``qconf predict --html``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from qconf.config import format_duration
from qconf.history.times import zone
from qconf.prediction.results import Prediction
from qconf.report.figures.ahead import ahead_figures
from qconf.report.html import page
from qconf.report.prediction import Loaded, clocks, idle, rests

MOST = 1000  #: jobs in the table
SECTIONS = (
    ("warnings", "Warnings"),
    ("starts", "When the jobs that wait will start"),
    ("plan", "The plan"),
    ("jobs", "Jobs that wait"),
    ("left_out", "Not predicted"),
    ("then", "After the recommendation is loaded"),
)


def render_prediction(found: Prediction, timezone: str, loaded: Loaded | None = None) -> str:
    """Write the page of a prediction."""
    now = datetime.fromtimestamp(found.ahead.now, zone(timezone))
    context: dict[str, Any] = {
        "found": found,
        "loaded": loaded,
        "clock": clocks(found, timezone, "%H:%M"),
        "duration": format_duration,
        "now": f"{now:%A, %d %B %Y, %H:%M:%S} ({timezone})",
        "running": int((~found.ahead.present.waiting).sum()),
        "shown": found.starts[:MOST],
        "more": max(0, len(found.starts) - MOST),
        "idle": idle(found),
        "rests": rests(found) if found.runs else "",
        "warnings": found.ahead.warnings,
    }
    return page("predict", "When jobs will start", [("", SECTIONS)], ahead_figures(found, timezone), context)
