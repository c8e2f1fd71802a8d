"""The fidelity of a configuration, and a calibration, for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from qconf.config import dump, format_clock, format_duration
from qconf.fidelity.calibrate import Calibration
from qconf.fidelity.errors import Errors, Figures
from qconf.fidelity.verify import Group, Verification
from qconf.report.figures.checks import agreement_figure
from qconf.report.html import page
from qconf.report.layout import new_table, print_lines, print_table, print_text
from qconf.report.wording import date, grade_text, hours, number, queue_label

WINDOWS = 12  #: windows shown in a terminal
USERS = 5
#: Columns of the paper's Table 1, in hours.
ERRORS = ("jobs", "mean", "median", "min", "max", "\N{GREEK SMALL LETTER SIGMA}")
SHARES = ("<1 min", "<10", "<1 h")  #: of these jobs, per cent
AGREEMENT = "same %"
HEADINGS = (*ERRORS, "within 1 min, %", "10 min, %", "1 h, %", "the same, %")  #: the same on a page
KINDS = {"queue": "By queue", "user": "By user, the farthest off", "hour": "By hour of day of the start"}
SECTIONS = (
    ("warnings", "Notes"),
    ("calibration", "What was calibrated"),
    ("total", "How far off starts are"),
    ("windows", "Windows"),
    ("groups", "Queues, users, hours of the day"),
    ("farthest", "The jobs farthest off"),
    ("configuration", "The configuration"),
)


def print_fidelity(found: Verification | Calibration, to: Console, *, verbose: bool = False) -> None:
    """Print a verification, and the calibration if there is one; windows and groups only if `verbose`."""
    if isinstance(found, Calibration):
        _print_calibration(found, to)
    _print_verification(found.verification, to, verbose=verbose)


def print_grade(found: Verification | Calibration, to: Console) -> None:
    """Print the grade, and the result of a calibration, in a few sentences."""
    if isinstance(found, Calibration):
        print_text(to, verdict(found))
    print_text(to, " ".join(summary(found.verification)))


def render_fidelity(found: Verification | Calibration, warnings: Sequence[str] = ()) -> str:
    """Return the page of a verification or a calibration."""
    shown, search = found.verification, found if isinstance(found, Calibration) else None
    context = {
        "search": search,
        "letter": "-" if shown.grade is None else shown.grade.letter,
        "sentences": [*([] if search is None else [verdict(search)]), *summary(shown)],
        "agrees": shown.total.agreement,
        "machine": shown.config.machine,
        "headings": HEADINGS,
        "rows": totals(shown),
        "windows": [
            (date(each.begin, shown.timezone), [format_clock(each.end - each.begin), *row(each.figures)])
            for each in shown.windows
        ],
        "kinds": [
            (title, [(_name(each), row(each.figures)) for each in shown.groups if each.kind == kind])
            for kind, title in (KINDS | {"user": f"{KINDS['user']} first"}).items()
        ],
        "row": row,
        "share": share,
        "jobs": list(farthest_lines(shown)),
        "text": dump(shown.config),
        "warnings": [*warnings, *shown.warnings],
    }
    drawn = agreement_figure(shown)
    figures = {drawn.name: drawn} if drawn else {}
    return page("fidelity", f"Fidelity of {shown.config.machine.name}", [("", SECTIONS)], figures, context)


def _print_verification(found: Verification, to: Console, *, verbose: bool) -> None:
    """Print the grade, the totals and the jobs farthest off; if `verbose`, some windows and groups too."""
    to.print()
    print_text(to, " ".join(summary(found)))
    for text in found.warnings:
        print_text(to, f"note: {text}", "  ")
    to.print()
    table = new_table(("jobs that",), (*ERRORS, *SHARES, AGREEMENT), title="Recorded minus simulated start, hours:")
    for i, (name, cells) in enumerate(totals(found)):
        table.add_row(name, *cells, style="" if i else "bold")
    print_table(to, table)
    if verbose:
        to.print()
        table = new_table(("window", "length"), (*ERRORS, AGREEMENT))
        table.columns[0].min_width = 16
        for window in found.windows[:WINDOWS]:
            length, cells = format_clock(window.end - window.begin), differences(window.figures.counted)
            table.add_row(date(window.begin, found.timezone), length, *cells, share(window.figures.agreement))
        print_table(to, table)
        if len(found.windows) > WINDOWS:
            print_text(to, f"{len(found.windows) - WINDOWS} more windows: --json and --out have them all")
    for kind, title in KINDS.items() if verbose else ():
        groups = [group for group in found.groups if group.kind == kind]
        rows = [[_name(group), *row(group.figures)] for group in groups[: USERS if kind == "user" else None]]
        to.print()
        print_table(to, new_table(("",), (*ERRORS, *SHARES, AGREEMENT), rows, title=f"{title}:"))
    if found.farthest:
        print_lines(to, "Farthest off:", list(farthest_lines(found)))


def _print_calibration(found: Calibration, to: Console) -> None:
    """Print the search, its result, and the agreement before and after."""
    to.print()
    print_text(to, verdict(found))
    if found.steps:
        steps = [f"{step.text} (to {share(step.agreement)} % on the training windows)" for step in found.steps]
        print_lines(to, "Changed:" if not found.rejected else "Tried in vain:", steps)
    between = (found.given.total, found.found.total)
    rows = [
        [on, name, *row(figures)]
        for on, pair in (("training", found.trained), ("between", between))
        for name, figures in zip(("given", "found"), pair, strict=True)
    ]
    to.print()
    print_table(to, new_table(("windows", "config"), (*ERRORS, *SHARES, AGREEMENT), rows))


def verdict(found: Calibration) -> str:
    """Return the result of a calibration in a few sentences."""
    tried = f"{found.tried} configurations were simulated on {len(found.given.windows)} windows"
    if found.rejected:
        return f"{tried}. What was best there is not proposed: {found.rejected}. Keep what is given."
    if not found.steps:
        return f"{tried}. None is nearer to the log beyond chance: keep what is given."
    before, after = (each.total.agreement for each in (found.given, found.found))
    return (
        f"{tried}. On the windows between, which no choice was made on, the waiting that is the same rises from "
        f"{share(before)} to {share(after)} %."
    )


def summary(found: Verification) -> list[str]:
    """Return sentences on the grade and the errors of starts."""
    total = found.total
    return [
        "Too few jobs start in windows for a grade." if found.grade is None else grade_text(found.grade),
        (
            f"{total.counted.jobs} jobs start there in the log and in the simulation, {total.only_recorded} in the log "
            f"only, {total.only_simulated} in the simulation only."
        ),
        (
            f"{found.held} jobs wait an hour or more although they fit on idle cores and later ones, no smaller, "
            "start: something held them that no scheduler decides."
        ),
    ]


def share(value: float) -> str:
    """Format a fraction in per cent."""
    return number(100 * value, 1)


def cells(errors: Errors) -> list[str]:
    """Return the cells of `ERRORS` and `SHARES`."""
    return [*differences(errors), *map(share, (errors.within_minute, errors.within_ten_minutes, errors.within_hour))]


def differences(errors: Errors) -> list[str]:
    """Return the cells of `ERRORS`: number of jobs, then hours."""
    values = (errors.mean, errors.median, errors.least, errors.most, errors.deviation)
    return [str(errors.jobs), *map(hours, values)]


def row(figures: Figures) -> list[str]:
    """Return the cells of a row, with the agreement."""
    return [*cells(figures.counted), share(figures.agreement)]


def totals(found: Verification) -> list[tuple[str, list[str]]]:
    """Return the rows over all windows."""
    total = found.total
    every, without = [*cells(total.every), ""], row(found.without_held)
    return [("start in both", row(total)), ("wait, all", every), ("are not held", without)]


def _name(group: Group) -> str:
    return queue_label(group.name) if group.kind == "queue" else group.name or "unknown"


def farthest_lines(found: Verification) -> Iterator[str]:
    """Yield a line for each job farthest off: its start, the error, and possible causes."""
    for job in found.farthest:
        late = job.recorded - job.simulated
        text = f"{format_duration(abs(late))} {'later' if late > 0 else 'earlier'} than simulated"
        of = f"{job.cores} cores, {queue_label(job.queue)}" + (f", user {job.user}" if job.user else "")
        more = f"; {job.alike} more of the user are alike" if job.alike else ""
        why = "; ".join(job.causes) or "nothing in the log explains it"
        yield f"{job.job_id} ({of}): {date(job.recorded, found.timezone)}, {text}{more}. {why}"
