"""A backtest in cells and sentences, as terminal and page show it."""

from __future__ import annotations

from collections.abc import Iterator

from qconf.backtest import REFERENCES, Average, Backtest
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.report.columns import COLUMNS
from qconf.report.wording import ABSENT, notes
from qconf.text import grouped


def is_comparison(found: Backtest) -> bool:
    """Whether it is of two logs (``qconf compare``) and not of the periods of one (``qconf backtest``)."""
    return "period" not in found.settings


def headings(found: Backtest) -> list[str]:
    """Headings of the summary table; with one period there is no worst one."""
    ratios = [f"/{name.removeprefix('fcfs-')}" for name in REFERENCES]
    slowdown, longest, used = (
        COLUMNS[key].heading for key in ("mean_bounded_slowdown", "max_wait", "utilization_window")
    )
    out = ["wait h", *ratios, slowdown, "/easy", longest, "/easy", used]
    return out if len(found.folds) == 1 else [*out, "worse %", "worst period"]


def cells(found: Backtest, average: Average) -> list[str]:
    """Write the row of a strategy in the summary table."""
    easy = average.against["fcfs-easy"]

    def mean(key: str) -> str:
        return COLUMNS[key].write(average.means[key])

    out = [mean("mean_wait"), *(_ratio(average.against[name].ratios["mean_wait"]) for name in REFERENCES)]
    for key in ("mean_bounded_slowdown", "max_wait"):
        out += [mean(key), _ratio(easy.ratios[key])]
    out.append(mean("utilization_window"))
    if len(found.folds) > 1:
        out += [f"{100 * easy.worse:.0f}", ABSENT if average.strategy == "fcfs-easy" else _period(easy.worst)]
    return out


def against_cells(average: Average, reference: str) -> tuple[str, str, str]:
    """Write the change of the objective against a reference: its mean, best and worst period."""
    if average.strategy == reference:
        return ABSENT, ABSENT, ABSENT
    against = average.against[reference]
    return _change(against.reduction), _period(against.best), _period(against.worst)


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{value:.0f}"


def _change(reduction: float) -> str:
    """Write a reduction as the change it is: less is minus."""
    return f"{-100 * reduction + 0.0:+.0f} %"


def _period(labelled: tuple[str, float]) -> str:
    return f"{labelled[0]} {_change(labelled[1])}"


def mark(found: Backtest, average: Average) -> str:
    """Name a strategy: * where it is not exportable, # where it changes what is fixed."""
    own = [result for result in found.results if result.strategy == average.strategy]
    star = "*" if any(result.not_exportable for result in own) else ""
    return average.strategy + star + ("#" if any(result.fixed for result in own) else "")


def sentences(found: Backtest) -> list[str]:
    """Say what the table does not: its jobs, what was left out, where a strategy made no proposal."""
    folds = found.folds
    jobs = sum(fold.jobs for fold in folds)
    if len(folds) > 1:
        text = (
            f"{len(folds)} test periods, {folds[0].label} to {folds[-1].label}, {jobs} jobs. Columns with / are "
            "ratios of means over the periods, /easy to fcfs-easy; worse % are the periods in which "
            f"{OBJECTIVE_TEXTS[found.objective]} is more than under fcfs-easy."
        )
        out = [text, _best(found)]
    else:
        text = (
            f"{folds[0].training_jobs} training jobs, {jobs} test jobs; {folds[0].warmup_jobs} jobs before these fill "
            "the machine and are not counted. Columns with / are ratios, /easy to fcfs-easy."
        )
        out = [text]
    out += [f"left out: {label}: {why}" for label, why in found.skipped]
    out += found.notes
    out += dict.fromkeys(f"* {result.not_exportable}" for result in found.results if result.not_exportable)
    out += [*_fixed(found), *_noted(found)]
    if all(fold.warmup_jobs == 0 for fold in folds) and found.settings["warmup_days"]:
        out += ["No job was submitted shortly before the test period: the machine is empty at its beginning."]
    return out


def _noted(found: Backtest) -> Iterator[str]:
    """Say what strategies noted, and in how many periods; once for all that noted the same."""
    logs = [(result.period, notes([(result.strategy, result.decisions)])) for result in found.results]
    items = [(note, name, period) for period, noted in logs for name, note in noted]
    periods = grouped((note, period) for note, _, period in items)
    for note, names in grouped((note, name) for note, name, _ in items).items():
        yield f"{', '.join(names)} noted, in {len(periods[note])} of {len(found.folds)} periods: {note}"


def _fixed(found: Backtest) -> Iterator[str]:
    """Say of each strategy what it changes that is fixed; once for all that change the same."""
    paths = grouped((result.strategy, path) for result in found.results for path in result.fixed)
    for changed, names in grouped((", ".join(sorted(each)), name) for name, each in paths.items()).items():
        verb = "changes what is fixed, and is" if len(names) == 1 else "change what is fixed, and are"
        yield f"# {', '.join(names)} {verb} ineligible: {changed}"


def _best(found: Backtest) -> str:
    best = max(found.averages, key=lambda average: average.against["fcfs-easy"].reduction)
    parts = []
    for name in REFERENCES:
        if name != best.strategy:
            change, highest, lowest = against_cells(best, name)
            parts.append(f"{change} against {name} (best {highest}, worst {lowest})")
    what = OBJECTIVE_TEXTS[found.objective]
    return f"Least {what}, as the mean of the periods' changes: {best.strategy}, {'; '.join(parts)}."
