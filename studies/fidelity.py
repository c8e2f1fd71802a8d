"""How near simulated starts are to recorded ones: ``python -m studies.fidelity``, for docs/research/fidelity.md.

Windows of the lengths of the eight tests of Karbach's Table 1 (JuFo, section 6.1), eight at a time, and windows of 2 to
24 h; then what calibration makes of the configurations, and of the recommendations of three months.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from qconf.config import SiteConfig, load
from qconf.fidelity.calibrate import calibrate
from qconf.fidelity.errors import Figures, Starts, by_window
from qconf.fidelity.family import Change, Family
from qconf.fidelity.windows import Recorded, cut, spans
from qconf.history import History, clean, read
from qconf.recommend import recommend
from qconf.report.wording import interval_text
from studies.output import TRACES

#: Log file, configuration, and the month for the comparison of recommendations.
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2.yaml", "1997-03"),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", "sdsc-sp2.yaml", "1999-03"),
    "HPC2N": ("HPC2N-2002-2.1-cln.swf.gz", "hpc2n.yaml", "2004-03"),
}
#: Lengths of the paper's eight tests, seconds.
DURATIONS = (6207, 13810, 7921, 15740, 9314, 15937, 11942, 20371)
#: Ranges over the paper's eight tests: jobs, mean, median, standard deviation.
PAPER = "107 to 280 | -774 to 643 | -116 to 76 | 1154 to 4105"
STRATEGIES = ("fcfs-easy", "lxf-easy", "auto")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or those of ``--part``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(PARTS), action="append")
    parser.add_argument("--log", choices=tuple(LOGS), action="append")
    parser.add_argument("--draws", type=int, default=25, help="times that eight windows are drawn")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args(arguments)
    for part in given.part or PARTS:
        for name in given.log or LOGS:
            for line in PARTS[part](name, given):
                click.echo(line)


def loaded(name: str) -> tuple[History, SiteConfig]:
    """Return a log and its configuration."""
    log, config, _ = LOGS[name]
    base = load(Path("configs", config))
    return clean(read([TRACES / log]), base), base


def drawn(recorded: Recorded, draws: int) -> list[tuple[int, int]]:
    """Return random windows (begin, end) of the paper's lengths, `draws` times eight; a job starts in each."""
    submit = recorded.period.workload.submit
    low, high = int(submit[0]) + 3 * 86400, int(submit[-1]) - max(DURATIONS)
    starts = np.sort(recorded.start)
    rng = np.random.default_rng(0)
    found = []
    for length in DURATIONS * draws:
        begin = int(rng.integers(low, high))
        while np.searchsorted(starts, begin) == np.searchsorted(starts, begin + length):
            begin = int(rng.integers(low, high))
        found.append((begin, begin + length))
    return found


def table1(name: str, given: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of the paper's table for the first eight windows, then statistics over all windows."""
    history, config = loaded(name)
    recorded = Recorded.of(history, config)
    windows = cut(recorded, drawn(recorded, given.draws))
    starts = Starts.of(windows, config)
    figures = by_window(starts, len(windows))
    yield f"{name}: window | duration s | jobs | mean | median | min | max | deviation | same wait %"
    for window, each in list(zip(windows, figures, strict=True))[:8]:
        yield f"{history.date(window.begin)[:16]} | {window.end - window.begin} | {_row(each)}"
    filled = [each for each in figures if each.counted.jobs > 1]
    keys = ("mean", "median", "deviation")
    spread = [np.quantile([getattr(each.counted, key) for each in filled], (0.1, 0.5, 0.9)) for key in keys]
    texts = [f"{low:.0f}, {middle:.0f}, {high:.0f}" for low, middle, high in spread]
    yield f"{name}, {len(filled)} windows with two jobs or more, tenth, middle, nine tenths | {' | '.join(texts)}"
    counted = [each.counted for each in filled]
    means, medians = [-774 <= each.mean <= 643 for each in counted], [-116 <= each.median <= 76 for each in counted]
    shares = [f"{100 * np.mean(each):.0f} %" for each in (means, medians, [each.deviation <= 4105 for each in counted])]
    yield f"{name}, inside the paper's ranges ({PAPER}): mean {shares[0]}, median {shares[1]}, deviation {shares[2]}"
    yield f"{name}, all together | {_row(Figures.of(starts))}"


def _row(found: Figures) -> str:
    each = found.counted
    values = (each.mean, each.median, each.least, each.most, each.deviation)
    return f"{each.jobs} | " + " | ".join(f"{value:.0f}" for value in values) + f" | {100 * found.agreement:.1f}"


def wrong(name: str, _: argparse.Namespace) -> Iterator[str]:
    """Yield the agreement on windows of 2 to 24 h, for the configuration as given and without backfilling."""
    history, config = loaded(name)
    recorded = Recorded.of(history, config)
    windows = cut(recorded, spans(recorded))
    for what, each in (("given", config), ("without backfilling", config.replace(backfill=False))):
        yield f"{name} | {what} | {100 * Figures.of(Starts.of(windows, each)).agreement:.1f}"


def calibrated(name: str, given: argparse.Namespace) -> Iterator[str]:
    """Yield the steps of a calibration, and the figures before and after on the held-out windows."""
    history, config = loaded(name)
    found = calibrate(history, config, workers=given.workers)
    yield f"{name}: {found.tried} configurations, {len(found.given.windows)} windows between"
    for step in found.steps:
        yield f"{name} | {step.part}: {step.text} | {100 * step.agreement:.1f}"
    if found.rejected:
        yield f"{name}: not proposed: {found.rejected}"
    for what, each in (("given", found.given), ("found", found.found)):
        grade = "-" if each.grade is None else each.grade.letter
        one = f"{each.total.only_recorded} | {each.total.only_simulated}"
        yield f"{name} | {what} | {_row(each.total)} | {one} | {grade} | held {each.held}"


def depth(name: str, given: argparse.Namespace) -> Iterator[str]:
    """Yield the agreement on the 60 windows for each number of reservations and of jobs considered."""
    history, config = loaded(name)
    recorded = Recorded.of(history, config)
    windows = cut(recorded, spans(recorded))
    family = Family.of(config, recorded, windows, history)
    found = calibrate(history, config, workers=given.workers).verification.config
    for what, base in (("given", config), ("found", found)):
        for change in [Change("", "as it is", base), *family.changes(base, ("backfill",))]:
            figures = Figures.of(Starts.of(windows, change.config))
            yield f"{name} | {what} | {change.text} | {100 * figures.agreement:.1f}"


def deletions(name: str, _: argparse.Namespace) -> Iterator[str]:
    """Yield the figures with and without the jobs that were deleted while they waited."""
    history, config = loaded(name)
    for what, each in (("without", replace(history, deleted=history.deleted.iloc[:0])), ("with", history)):
        recorded = Recorded.of(each, config)
        for count, begins in (("60", spans(recorded)), ("200", drawn(recorded, 25))):
            starts = Starts.of(cut(recorded, begins), config)
            total, began = Figures.of(starts), starts.began
            early = int((~began & (starts.simulated < starts.until)).sum())
            yield (
                f"{name} | {count} windows, {what} | {_row(total)} | {total.only_recorded} | {total.only_simulated}"
                f" | {int((~began).sum())} deleted, {early} simulated to start"
            )


def months(name: str, given: argparse.Namespace) -> Iterator[str]:
    """Yield the recommendation for a month from the given configuration, and from one calibrated on earlier months."""
    history, config = loaded(name)
    month = history.month(LOGS[name][2])
    found = calibrate(history.between(None, month.span[0]), config, workers=given.workers)
    settings = {"workers": given.workers}
    for what, base in (("given", config), ("calibrated", found.verification.config)):
        result = recommend(month, base, strategies=STRATEGIES, settings=settings)
        row = result.row
        gain = interval_text(row.bootstrap)
        current = result.rows[0].test
        wait = float("nan") if current is None else current["mean_wait"] / 3600
        yield f"{name} {LOGS[name][2]} | {what} | {wait:.2f} h | {result.verdict} | {row.label} {row.title} | {gain}"


PARTS = {
    "table1": table1,
    "wrong": wrong,
    "deletions": deletions,
    "calibrate": calibrated,
    "depth": depth,
    "months": months,
}

if __name__ == "__main__":
    main()
