"""report.html of ``qconf fidelity``: the grade, how far off starts are, and the jobs farthest off."""

from __future__ import annotations

from collections.abc import Sequence

from qconf.config import dump, format_clock
from qconf.fidelity.calibrate import Calibration
from qconf.fidelity.verify import Verification
from qconf.report import fidelity, wording
from qconf.report.figures.checks import agreement_figure
from qconf.report.html import page

HEADINGS = (*fidelity.ERRORS, "within 1 min, %", "10 min, %", "1 h, %", "the same, %")
SECTIONS = (
    ("warnings", "Notes"),
    ("calibration", "What was calibrated"),
    ("total", "How far off starts are"),
    ("windows", "Windows"),
    ("groups", "Queues, users, hours of the day"),
    ("farthest", "The jobs farthest off"),
    ("configuration", "The configuration"),
)


def render_fidelity(found: Verification | Calibration, warnings: Sequence[str] = ()) -> str:
    """Write the report of a verification, or of a calibration."""
    shown, search = found.verification, found if isinstance(found, Calibration) else None
    total, without = shown.total, shown.without_held
    kinds = [(title, kind, [each for each in shown.groups if each.kind == kind]) for kind, title in _KINDS.items()]
    context = {
        "found": shown,
        "search": search,
        "letter": "-" if shown.grade is None else shown.grade.letter,
        "sentences": [*([] if search is None else [fidelity.verdict(search)]), *fidelity.summary(shown)],
        "agrees": total.agreement,
        "machine": shown.config.machine,
        "headings": HEADINGS,
        "rows": [
            ("start in both", [*fidelity.cells(total.counted), fidelity.share(total.agreement)]),
            ("wait, all", [*fidelity.cells(total.every), ""]),
            ("are not held", [*fidelity.cells(without.counted), fidelity.share(without.agreement)]),
        ],
        "windows": [
            (wording.date(each.begin, shown.timezone), format_clock(each.end - each.begin), fidelity.row(each.figures))
            for each in shown.windows
        ],
        "kinds": [
            (title, [(wording.queue_label(each.name) if kind == "queue" else each.name, each) for each in groups])
            for title, kind, groups in kinds
        ],
        "row": fidelity.row,
        "share": fidelity.share,
        "jobs": list(fidelity.farthest_lines(shown)),
        "text": dump(shown.config),
        "warnings": [*warnings, *shown.warnings],
    }
    drawn = agreement_figure(shown)
    return page(
        "fidelity",
        f"Fidelity of {shown.config.machine.name}",
        [("", SECTIONS)],
        {drawn.name: drawn} if drawn else {},
        context,
    )


_KINDS = {"queue": "By queue", "user": "By user, the farthest off first", "hour": "By hour of day of the start"}
