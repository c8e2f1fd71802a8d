"""A backtest in cells and sentences, as terminal and page show it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qconf.backtest import CURRENT, REFERENCES, Average, Backtest
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.report.columns import COLUMNS
from qconf.report.wording import ABSENT, merged, notes
from qconf.text import grouped


def is_comparison(found: Backtest) -> bool:
    """Whether it is of two logs (``qconf compare``) and not of the periods of one (``qconf backtest``)."""
    return "period" not in found.settings


def running(found: Backtest) -> str:
    """Name what stands for what the site runs: `current`, or without a configuration the present queues shared."""
    return CURRENT if CURRENT in found.strategies else "shared"


def headline(found: Backtest) -> list[str]:
    """Say what would have served the site best, of what a batch system can do: one sentence, then what qualifies it."""
    here, what = running(found), OBJECTIVE_TEXTS[found.objective]
    ineligible = {each.strategy for each in found.results if each.not_exportable or each.fixed}
    usable = [average for average in found.averages if average.strategy not in ineligible]
    best = max(usable, key=lambda average: average.against[here].reduction)
    several = len(found.folds) > 1
    jobs = sum(fold.jobs for fold in found.folds)
    over = f"{len(found.folds)} test periods, {found.folds[0].label} to {found.folds[-1].label}, {jobs} jobs."
    if best.strategy == here or best.against[here].reduction <= 0:
        return [f"Keep what you have: no strategy makes {what} less than {here}", *([over] if several else [])]
    gains = {name: best.against[name] for name in dict.fromkeys((here, "fcfs-easy")) if name != best.strategy}
    texts = [f"{_change(each.reduction)} against {name}" for name, each in gains.items()]
    out = [f"{best.strategy} would have served you best: {what} {', '.join(texts)}"]
    if several:
        out.append("These are means of the changes of each test period.")
        for name, each in gains.items():
            worse = f"worse than {name} in {round(each.worse * len(found.folds))} of {len(found.folds)} test periods"
            out.append(f"It is {worse}; best {_period(each.best)}, worst {_period(each.worst)}.")
        out.append(over)
    return out


def worse_than(found: Backtest, average: Average) -> str:
    """Write in how many per cent of the periods a strategy is worse than what the site runs."""
    here = running(found)
    return ABSENT if average.strategy == here else f"{100 * average.against[here].worse:.0f}"


def headings() -> list[str]:
    """Headings of the summary table."""
    ratios = [f"/{name.removeprefix('fcfs-')}" for name in REFERENCES]
    mean, slowdown, longest, used = (
        COLUMNS[key].heading for key in ("mean_wait", "mean_bounded_slowdown", "max_wait", "utilization_window")
    )
    return [mean, *ratios, slowdown, "/easy", longest, "/easy", used]


def cells(average: Average) -> list[str]:
    """Write the row of a strategy in the summary table."""
    easy = average.against["fcfs-easy"]

    def mean(key: str) -> str:
        return COLUMNS[key].write(average.means[key])

    out = [mean("mean_wait"), *(_ratio(average.against[name].ratios["mean_wait"]) for name in REFERENCES)]
    for key in ("mean_bounded_slowdown", "max_wait"):
        out += [mean(key), _ratio(easy.ratios[key])]
    return [*out, mean("utilization_window")]


#: Headings of the table of periods, each strategy against fcfs-easy.
PERIOD_HEADINGS = ("worse %", "best period", "worst period")


def period_cells(average: Average) -> list[str]:
    """Write the row of a strategy in the table of periods: with one period there is no best and no worst."""
    if average.strategy == "fcfs-easy":
        return [ABSENT] * len(PERIOD_HEADINGS)
    easy = average.against["fcfs-easy"]
    return [f"{100 * easy.worse:.0f}", _period(easy.best), _period(easy.worst)]


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
    out += dict.fromkeys(f"* {result.not_exportable}" for result in found.results if result.not_exportable)
    out += [*_fixed(found), *_noted(found)]
    if all(fold.warmup_jobs == 0 for fold in folds) and found.settings["warmup_days"]:
        out += ["No job was submitted shortly before the test period: the machine is empty at its beginning."]
    return out


def _noted(found: Backtest) -> Iterator[str]:
    """Say what strategies noted, and where the current configuration stood in for one, and in how many periods."""
    noted = [
        (each.strategy, each.period, text)
        for each in found.results
        for _, text in notes([(each.strategy, each.decisions)])
    ]
    yield from _once("noted", noted, len(found.folds))
    instead = [(each.strategy, each.period, each.fallback) for each in found.results if each.fallback]
    yield from _once("left to the current configuration", instead, len(found.folds))


def _once(what: str, notes: Iterable[tuple[str, str, str]], of: int) -> Iterator[str]:
    """Say a note of strategies in periods once for all in which it is the same, with any one number."""
    periods: dict[str, dict[str, dict[str, None]]] = {}  # strategy, note, period; the last as an ordered set
    for name, period, text in notes:
        periods.setdefault(name, {}).setdefault(text, {})[period] = None
    items = [
        (f"{what}, in {_several(own[text] for text in stands_for)} of {of} periods: {note}", name)
        for name, own in periods.items()
        for note, stands_for in merged(own)
    ]
    for text, names in grouped(items).items():
        yield f"{', '.join(names)} {text}"


def _several(sets: Iterable[Iterable[str]]) -> int:
    """Count the different members of all sets."""
    return len({each for members in sets for each in members})


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
