"""Compares each recommendation's promise with its effect in the next month of the same log.

Runs ``qconf tune --month M`` without a configuration for every month of a log; then the next month is simulated under
the assumed current configuration and under the recommended one. The longest wait is compared with the current
configuration's, or with an hour if that is more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

from parsim.metrics import bounded_slowdown
from qconf.config import SiteConfig
from qconf.evaluation.period import Period
from qconf.evaluation.score import GRACE
from qconf.history import History, clean, derive_config, read
from qconf.history.history import FEWEST
from qconf.parallel import parallel_map
from qconf.recommend import recommend
from qconf.recommend.ladder import best_of
from qconf.strategies.auto.measures import of_base
from qconf.text import markdown_table, write_whole
from studies import output
from studies.output import DOCS, REPORTS, ROOT, fingerprint, hash_of, load, paragraph, run, save

LOGS = ("KTH-SP2", "SDSC-SP2", "HPC2N")
STRATEGIES = ("auto",)  # `recommend` adds the baselines
LONGER = 1.5  # most growth of the longest wait that the guard rail of `qconf tune` allows


@dataclass(frozen=True)
class Followed:
    """The verdict for a month, and its effect in the next month.

    For KEEP the fields from `gain` on describe the best candidate, so what keeping costs; NaN without a candidate.
    """

    label: str  #: the training month, like 1997-03
    winner: str  #: the recommended strategy, ``current`` for KEEP
    order: str = ""  #: the recommended configuration's order
    #: Median gain over the resamples, and the bounds of its 90 % interval; NaN for KEEP.
    promised: tuple[float, float, float] = (np.nan, np.nan, np.nan)
    gain: float = np.nan  #: relative reduction of the mean wait in the next month
    slowdown: float = np.nan  #: relative reduction of the mean bounded slowdown there
    longest: float = np.nan  #: longest wait there, over the larger of the current configuration's and an hour
    waited: float = np.nan  #: longest wait there under the current configuration, hours
    known: float = 0.0  #: longest wait up to the training month, under the current configuration, hours

    @property
    def beyond(self) -> bool:
        """Whether the longest wait is above the guard rails' limit for the next month and the known months."""
        return self.longest > LONGER * max(1.0, self.known / max(self.waited, 1.0))

    @property
    def changed(self) -> bool:
        """Whether the verdict is CHANGE."""
        return self.winner != "current"

    @property
    def inside(self) -> bool:
        """Whether the gain lies in the promised interval."""
        return self.promised[1] <= self.gain <= self.promised[2]

    @property
    def below(self) -> bool:
        """Whether the gain lies below the promised interval."""
        return self.gain < self.promised[1]


def months_of(history: History) -> list[tuple[History, History, tuple[History, ...]]]:
    """Return (month, next month, all months before) for each month with enough jobs in it and in the next."""
    windows = [window for window in history.periods("month") if history.count(window.start, window.end) >= FEWEST]
    months = [history.between(window.start, window.end) for window in windows]
    adjacent = [first.end == second.start for first, second in pairwise(windows)]
    return [(months[i], months[i + 1], tuple(months[:i])) for i, follows in enumerate(adjacent) if follows]


def month_of(history: History, following: History, earlier: Sequence[History], base: SiteConfig) -> Followed:
    """Tune on a month, and simulate the next one."""
    label = history.date(history.span[0])[:7]
    found = recommend(history, base, earlier=earlier, strategies=STRATEGIES)
    kept = found.winner == "current"
    if kept:
        row = best_of([row for row in found.rows if row.config is not None])
    else:
        row = next(row for row in found.rows if row.name == found.winner)
    if row is None or row.bootstrap is None or row.config is None:
        return Followed(label, "current")
    config = row.config if kept else found.config
    period, promised = Period.of(following, base), row.bootstrap
    now = period.simulate(base)
    then = period.simulate(config)
    slowdowns = [bounded_slowdown(each).mean() for each in (then, now)]
    before = [of_base(Period.of(each, base)).longest.max() for each in (*earlier, history)]
    return Followed(
        label,
        found.winner,
        config.order,
        (np.nan,) * 3 if kept else (promised.expected, promised.low, promised.high),
        gain=float(1 - then.wait.mean() / max(now.wait.mean(), 1.0)),
        slowdown=float(1 - slowdowns[0] / slowdowns[1]),
        longest=float(then.wait.max() / max(now.wait.max(), GRACE)),
        waited=float(now.wait.max() / 3600),
        known=float(max(before) / 3600),
    )


def study(name: str, log: Path, work: Path, workers: int, progress: Callable[[str], None]) -> list[Followed]:
    """Follow the months of a log; results are stored in the folder `work`, and read while the code is the same."""
    stored, key = work / f"next-month-{name}.json", fingerprint([hash_of(ROOT / "parsim", ROOT / "qconf"), name])
    kept = load(stored, key)
    if kept is not None:
        return [restored(each) for each in kept["months"]]
    records = read([log])
    base = derive_config(records)
    tasks = [(*each, base) for each in months_of(clean(records, base))]
    progress(f"{name}: {len(tasks)} months")
    # Later months take longer, since more months precede them: they start first.
    found = parallel_map(workers, month_of, tasks[::-1], processes=True)[::-1]
    save(stored, key, {"months": [asdict(month) for month in found]})
    return found


def restored(stored: Mapping[str, Any]) -> Followed:
    """Return a stored month; JSON's null becomes NaN."""
    fields: dict[str, Any] = {name: np.nan if value is None else value for name, value in stored.items()}
    return Followed(**fields)


def total(months: Sequence[Followed]) -> list[str]:
    """Return the cells of a summary row."""
    changes = [month for month in months if month.changed]
    kept = [month.gain for month in months if not month.changed and np.isfinite(month.gain)]
    cost = f"{np.mean(kept):.3f}" if kept else ""
    if not changes:
        return [str(len(months)), "0", *[""] * 10, cost]
    longest = np.array([month.longest for month in changes])
    return [
        str(len(months)),
        str(len(changes)),
        f"{np.mean([month.promised[0] for month in changes]):.3f}",
        f"{np.mean([month.gain for month in changes]):.3f}",
        f"{np.mean([month.slowdown for month in changes]):.3f}",
        str(sum(month.gain < 0 for month in changes)),
        str(sum(month.inside for month in changes)),
        str(sum(month.below for month in changes)),
        f"{np.exp(np.log(longest).mean()):.2f}",
        f"{longest.max():.2f}",
        f"{(longest > LONGER).sum()}",
        str(sum(month.beyond for month in changes)),
        cost,
    ]


TOTALS = ["log", "months", "changes", "promised", "gain", "of slowdown", "losses", "inside", "below"]
TOTALS += ["longest wait", "at most", f"above {LONGER:g}", "of what was known", "KEEP costs"]


def listed(
    found: Mapping[str, Sequence[Followed]], wanted: Callable[[Followed], bool], value: Callable[[Followed], float]
) -> str:
    """Return the changes that are `wanted`, by log, each with its `value`, as text."""
    months = {
        log: ", ".join(f"{each.label} ({value(each):.2f})" for each in of_log if each.changed and wanted(each))
        for log, of_log in found.items()
    }
    return "; ".join(f"{log} {text}" for log, text in months.items() if text) or "none"


def page(found: dict[str, list[Followed]], name: str) -> str:
    """Return the page as Markdown."""
    everything = [month for months in found.values() for month in months]
    rows = [[log, *total(months)] for log, months in found.items()]
    if len(found) > 1:
        rows.append(["all", *total(everything)])
    below = listed(found, lambda each: each.below, lambda each: each.gain)
    longer = listed(found, lambda each: each.longest > LONGER, lambda each: each.longest)
    return TEXT.format(
        command=name,
        about="\n".join(map(paragraph, ABOUT.split("\n\n"))),
        totals=markdown_table(TOTALS, rows),
        noted=paragraph(f"Gains below the interval: {below}. Longest waits above {LONGER:g}: {longer}."),
    )


ABOUT = f"""\
Every month of a log is tuned on as `qconf tune --month` does, without a configuration: current is one shared machine,
first come, first served, and the months before are known. Then the next month is simulated under the current and under
the recommended configuration.

Promised is the median gain over the resamples, gain that of the next month's mean wait; inside and below count gains by
the 90 % interval. The longest wait is in parts of the current one's (an hour at least): geometric mean, most, and how
often it is above {LONGER:g}; then how often it is so in parts of the longest of all months known before, which the
guard rails of `qconf tune` look at. A KEEP costs the gain in the next month of the best that was not recommended, the
mean over these months.
"""
TEXT = """# The next month: what a recommendation promises and what becomes of it

Written by

    {command}

{about}
{totals}

{noted}"""


@click.command("studies.next_month")
@click.option("--logs", default=",".join(LOGS), show_default=True, help="Beginnings of file names, with commas.")
@output.folder("--out", DOCS, "Folder of next_month.md.")
@output.traces
@output.folder("--work", REPORTS / "study", "Where finished logs are stored.", "reports/study")
@output.workers()
def command(*, logs: str, out: Path, traces: Path, work: Path, workers: int) -> None:
    """Tune on every month of public logs, and simulate the next; some minutes on two cores."""
    work.mkdir(parents=True, exist_ok=True)
    found = {}
    for name in logs.split(","):
        for path in sorted(traces.glob(f"{name}*.swf*"))[:1]:
            found[name] = study(name, path, work, workers, lambda text: click.echo(text, err=True))
    wanted = "" if logs == ",".join(LOGS) else f" --logs {logs}"
    write_whole(out / "next_month.md", page(found, f"python -m studies.next_month{wanted}"))
    click.echo(f"written: {out / 'next_month.md'}")


if __name__ == "__main__":
    run(command)
