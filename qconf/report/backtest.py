"""A backtest as table cells, sentences and advice, for the terminal and for its report.html."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from parsim.metrics import Summary
from qconf.backtest import CURRENT, REFERENCES, Average, Backtest
from qconf.backtest.results import resampled
from qconf.evaluation.guard_rails import GuardRails, GuardValues
from qconf.evaluation.impact import GROWTH, Group, Impact
from qconf.evaluation.score import OBJECTIVE_TEXTS
from qconf.history import History
from qconf.history.history import DAY
from qconf.recommend.decide import gain_and_interval, percent
from qconf.recommend.last import Gain
from qconf.report.charts import Figure
from qconf.report.columns import COLUMNS, further_columns
from qconf.report.frames import period_frame
from qconf.report.html import METHOD, page, settings_rows
from qconf.report.impact import short
from qconf.report.verdict import NAMED, NO_LOSER, Advice
from qconf.report.wording import ABSENT, hours, longest_text, merged, notes
from qconf.text import grouped

LEAST_GAIN = 0.02  #: least gain that is worth a change
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


def is_comparison(found: Backtest) -> bool:
    """Whether the backtest compares two logs (``qconf compare``), not the periods of one (``qconf backtest``)."""
    return "period" not in found.settings


def current_strategy(found: Backtest) -> str:
    """Return the strategy that stands for what the site runs: `current`, or without a configuration `shared`."""
    return CURRENT if CURRENT in found.strategies else "shared"


def advise(found: Backtest) -> Advice:
    """Return the advice: the exportable strategy with the largest gain, that gain, and who would wait longer."""
    here, what = current_strategy(found), OBJECTIVE_TEXTS[found.objective]
    better = [each for each in found.averages if each.strategy != here and each.against[here].reduction > 0]
    better.sort(key=lambda each: -each.against[here].reduction)
    real = [each for each in better if not _results(found, each.strategy, "not_exportable")]
    gains = {each.strategy: resampled(found, each.strategy, here) for each in real}
    against = {name: _against(found, name, here, result) for name, result in gains.items()}
    best = next((each for each in real if not against[each.strategy]), None)
    shown = best or next(iter(real), None)
    if shown is None:
        lead = f"no strategy makes {what} less than {here}"
        return Advice("KEEP", lead, (_tested(found),), (), (), "nothing", "nothing is loaded")
    name, result = shown.strategy, gains[shown.strategy]
    lead = f"{name} would have lowered {what} by {gain_and_interval(result)}, against {here}"
    lead += "" if best else f", but {against[name]}"
    groups = [] if best is None else [short(each) for each in _impact(found, name, here).losers[:NAMED]] or [NO_LOSER]
    facts = (_tested(found), *_facts(found, shown, here))
    return Advice("CHANGE" if best else "KEEP", lead, facts, tuple(groups), (), "nothing", "nothing is loaded")


def _results(found: Backtest, strategy: str, what: str) -> list[Any]:
    """Return the non-empty values of a field in a strategy's results."""
    return [value for each in found.results if each.strategy == strategy and (value := getattr(each, what))]


def _against(found: Backtest, name: str, here: str, result: Gain) -> str:
    """Say why a strategy with a gain is not advised: fixed paths, guard rails on average, chance; empty if nothing."""
    if fixed := _results(found, name, "fixed"):
        return f"it changes what is fixed: {', '.join(sorted({path for each in fixed for path in each}))}"
    days = sum(fold.end - fold.start for fold in found.folds) / len(found.folds) / DAY
    before, after = (_guarded(_results(found, each, "summary")) for each in (here, name))
    broken = GuardRails().broken(before, after, days)
    if broken:
        return "; ".join(broken.values())
    if result.low <= 0:
        return "that may be chance: the interval reaches zero"
    return "" if result.gain >= LEAST_GAIN else f"a gain below {percent(LEAST_GAIN)} % is not worth a change"


def _guarded(summaries: Sequence[Summary]) -> GuardValues:
    """Return the means over the periods of the values that guard rails compare."""
    values = [GuardValues.of(each) for each in summaries]
    p95 = {name: _mean(each.p95[name] for each in values) for name in values[0].p95}
    jobs = {name: sum(each.jobs[name] for each in values) for name in values[0].jobs}
    return GuardValues(p95, _mean(each.longest for each in values), _mean(each.utilization for each in values), jobs)


def _mean(values: Iterable[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _impact(found: Backtest, name: str, here: str) -> Impact:
    """Compare the queues over all periods: the longest wait of all, other metrics as means over the jobs."""
    before, after = (_results(found, each, "summary") for each in (here, name))
    groups = []
    for queue in before[0].queues:
        jobs = [int(each.queues[queue]["jobs"]) for each in before]
        if sum(jobs):
            then, now = (_over_periods([s.queues[queue] for s in side], jobs) for side in (before, after))
            groups.append(Group("queue", queue, sum(jobs), 0.0, 0.0, then, now))
    return Impact(tuple(groups))


def _over_periods(queues: Sequence[Mapping[str, float]], jobs: Sequence[int]) -> dict[str, float]:
    pairs = [(queue, count) for queue, count in zip(queues, jobs, strict=True) if count]
    found = {key: sum(queue[key] * count for queue, count in pairs) / sum(jobs) for key in GROWTH}
    return found | {"max_wait": max(queue["max_wait"] for queue, _ in pairs)}


def _tested(found: Backtest) -> str:
    folds, jobs = found.folds, sum(fold.jobs for fold in found.folds)
    if len(folds) == 1:
        return f"Trained on {folds[0].training_jobs} jobs, evaluated on {jobs} later ones."
    return f"{len(folds)} test periods, {folds[0].label} to {folds[-1].label}, {jobs} jobs."


def _facts(found: Backtest, average: Average, here: str) -> Iterator[str]:
    """Yield sentences: waits before and after, the worst period, and the change against fcfs-easy."""
    own = next(each for each in found.averages if each.strategy == here)
    (then, longest), (now, long) = ([each.means[key] for key in ("mean_wait", "max_wait")] for each in (own, average))
    several = ", on average over the periods" * (len(found.folds) > 1)
    yield f"Mean wait {hours(then)} -> {hours(now)} h, {longest_text(longest, long)}{several}."
    for name in dict.fromkeys((here, "fcfs-easy")):
        against = average.against[name]
        if name == average.strategy:
            continue
        if len(found.folds) == 1:
            yield from [f"Against fcfs-easy: {_change(against.reduction)}."] if name != here else []
        else:
            worse = f"worse in {round(against.worse * len(found.folds))} of {len(found.folds)} periods"
            ends = f"best {_period(against.best)}, worst {_period(against.worst)}"
            yield f"Against {name}: {_change(against.reduction)}, {worse}; {ends}."


def headings() -> list[str]:
    """Return the headings of the summary table."""
    ratios = [f"/{name.removeprefix('fcfs-')}" for name in REFERENCES]
    mean, slowdown, longest, used = (
        COLUMNS[key].heading for key in ("mean_wait", "mean_bounded_slowdown", "max_wait", "utilization_window")
    )
    return [mean, *ratios, slowdown, "/easy", longest, "/easy", used]


def cells(average: Average) -> list[str]:
    """Return a strategy's row of the summary table."""
    easy = average.against["fcfs-easy"]

    def mean(key: str) -> str:
        return COLUMNS[key].write(average.means[key])

    out = [mean("mean_wait"), *(_ratio(average.against[name].ratios["mean_wait"]) for name in REFERENCES)]
    for key in ("mean_bounded_slowdown", "max_wait"):
        out += [mean(key), _ratio(easy.ratios[key])]
    return [*out, mean("utilization_window")]


#: Headings of `against` but its mean.
PERIOD_HEADINGS = ("worse %", "best period", "worst period")


def against(average: Average, reference: str) -> list[str]:
    """Return the change of the objective against a reference: mean, worse periods, best and worst period."""
    if average.strategy == reference:
        return [ABSENT] * 4
    found = average.against[reference]
    return [_change(found.reduction), f"{100 * found.worse:.0f}", _period(found.best), _period(found.worst)]


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{value:.0f}"


def _change(reduction: float) -> str:
    """Format a reduction as a change: a lower value has a minus."""
    return f"{-100 * reduction + 0.0:+.0f} %"


def _period(labelled: tuple[str, float]) -> str:
    return f"{labelled[0]} {_change(labelled[1])}"


def mark(found: Backtest, average: Average) -> str:
    """Return a strategy's name with its marks: * not exportable, # changes something fixed."""
    own = [result for result in found.results if result.strategy == average.strategy]
    star = "*" if any(result.not_exportable for result in own) else ""
    return average.strategy + star + ("#" if any(result.fixed for result in own) else "")


def qualifications(found: Backtest) -> list[str]:
    """Return sentences for the table's marks and the skipped periods."""
    marks = dict.fromkeys(f"* {result.not_exportable}" for result in found.results if result.not_exportable)
    return [*(f"left out: {label}: {why}" for label, why in found.skipped), *marks, *_fixed(found)]


def sentences(found: Backtest) -> list[str]:
    """Return sentences for the table's columns, its marks, and periods in which a strategy made no proposal."""
    folds = found.folds
    if len(folds) > 1:
        text = (
            "Columns with / are ratios of means over the periods, /easy to fcfs-easy; worse % are the periods in which "
            f"{OBJECTIVE_TEXTS[found.objective]} is more than under fcfs-easy."
        )
    else:
        text = (
            f"{folds[0].warmup_jobs} jobs before these fill the machine and are not counted. Columns with / are "
            "ratios, /easy to fcfs-easy."
        )
    out = [text, *qualifications(found), *_noted(found)]
    if all(fold.warmup_jobs == 0 for fold in folds) and found.settings["warmup_days"]:
        out += ["No job was submitted shortly before the test period: the machine is empty at its beginning."]
    return out


def _noted(found: Backtest) -> Iterator[str]:
    """Yield the strategies' notes and fallbacks, each with its number of periods, texts with other numbers merged."""
    noted = [
        ((each.strategy, text), each.period)
        for each in found.results
        for _, text in notes([(each.strategy, each.decisions)])
    ]
    instead = [((each.strategy, each.fallback), each.period) for each in found.results if each.fallback]
    for what, pairs in (("noted", noted), ("left to the current configuration", instead)):
        periods = grouped(pairs)
        items = []
        for name, own in grouped(periods).items():
            for note, texts in merged(own):
                several = len({period for text in texts for period in periods[name, text]})
                items.append((f"{what}, in {several} of {len(found.folds)} periods: {note}", name))
        yield from (f"{', '.join(names)} {text}" for text, names in grouped(items).items())


def _fixed(found: Backtest) -> Iterator[str]:
    """Yield sentences on the fixed paths that strategies change, one for all with the same paths."""
    paths = grouped((result.strategy, path) for result in found.results for path in result.fixed)
    for changed, names in grouped((", ".join(sorted(each)), name) for name, each in paths.items()).items():
        verb = "changes what is fixed, and is" if len(names) == 1 else "change what is fixed, and are"
        yield f"# {', '.join(names)} {verb} ineligible: {changed}"


def render_backtest(
    found: Backtest,
    history: History,
    figures: Mapping[str, Figure],
    warnings: Sequence[str] = (),
    *,
    versions: Mapping[str, str] | None = None,
    inputs: Sequence[Mapping[str, str]] = (),
) -> str:
    """Return the page of a backtest or a comparison, with `figures` from `qconf.report.figures`."""
    last, comparison, here = found.folds[-1].label, is_comparison(found), current_strategy(found)
    columns = further_columns(each.means for each in found.averages)

    def shown(average: Average) -> list[str]:
        (change, worse, *_), easy = against(average, here), against(average, "fcfs-easy")
        beside = [column.write(average.means[column.key]) for column in columns]
        return [*cells(average), *([change, easy[0]] if comparison else [worse, *easy[1:]]), *beside]

    context: dict[str, Any] = {
        "found": found,
        "resource": found.results[0].summary.resource,
        "columns": columns,
        "comparison": comparison,
        "advice": advise(found),
        "present": here,
        "headings": headings(),
        "strategies": [(mark(found, each), each.strategy, shown(each)) for each in found.averages],
        "reductions": [
            (each.strategy, [against(each, name)[i] for name in REFERENCES for i in (0, 2, 3)])
            for each in found.averages
        ],
        "notes": sentences(found),
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
