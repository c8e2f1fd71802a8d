"""Walk-forwards of several sites in one table: each strategy over all sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from qconf import __version__
from qconf.backtest import CURRENT, Backtest
from qconf.backtest.results import COMPARED
from qconf.errors import InputError
from qconf.report.layout import console, new_table, print_table, print_text
from qconf.text import as_json, refuse_outside, refuse_overwrite, write_whole

NAMES = ("sites.csv", "sites.json")
REFERENCE = "fcfs-easy"


@dataclass(frozen=True)
class AcrossSites:
    """One strategy over all sites that have it, against fcfs-easy: geometric means with equal weights."""

    strategy: str
    sites: int
    ratios: dict[str, float]  #: by `COMPARED` metric: below 1 is less than under fcfs-easy
    best: tuple[str, float]  #: the site with the smallest ratio of mean waits, and the ratio
    worst: tuple[str, float]


def across(found: Mapping[str, Backtest]) -> list[AcrossSites]:
    """Compare the strategies over all sites, in the order of their first site."""
    rows = []
    for name, own in sites_frame(found).groupby("strategy", sort=False):
        ratios = own.set_index("site")[[f"{key}_against_fcfs_easy" for key in COMPARED]].set_axis(COMPARED, axis=1)
        waits = ratios["mean_wait"]
        best, worst = (str(waits.idxmin()), float(waits.min())), (str(waits.idxmax()), float(waits.max()))
        rows.append(AcrossSites(str(name), len(own), {key: _geometric(ratios[key]) for key in COMPARED}, best, worst))
    return rows


def _geometric(ratios: pd.Series[float]) -> float:
    return float(np.exp(np.log(ratios.to_numpy()).mean())) if (ratios > 0).all() else 0.0


def sites_frame(found: Mapping[str, Backtest]) -> pd.DataFrame:
    """Return a row for each strategy of each site: ratios to fcfs-easy, and to `current` if evaluated."""
    rows = []
    for site, each in found.items():
        for average in each.averages:
            row: dict[str, Any] = {"site": site, "strategy": average.strategy, "periods": average.periods}
            row |= {"jobs": sum(fold.jobs for fold in each.folds), "fallbacks": average.fallbacks}
            for name, key in ((REFERENCE, "fcfs_easy"), (CURRENT, "current")):
                against = average.against.get(name)
                for metric in COMPARED:
                    row[f"{metric}_against_{key}"] = None if against is None else against.ratios[metric]
            rows.append(row)
    return pd.DataFrame(rows)


def write_sites(directory: Path, found: Mapping[str, Backtest], inputs: Iterable[Path]) -> Path:
    """Write sites.csv and sites.json, and return the latter's path; each site has a directory beside them.

    Raises InputError as `check_sites` does.
    """
    check_sites(directory, inputs)
    text = sites_frame(found).to_csv(index=False, lineterminator="\n")
    write_whole(directory / NAMES[0], text)
    record = {
        "qconf": __version__,
        "sites": {site: {"directory": site, "periods": len(each.folds)} for site, each in found.items()},
        "strategies": [asdict(each) for each in across(found)],
    }
    write_whole(directory / NAMES[1], as_json(record))
    return directory / NAMES[1]


def check_sites(directory: Path, inputs: Iterable[Path]) -> None:
    """Raise InputError if one of the files is an input, or exists without the other; also called before long work."""
    paths = [directory / name for name in NAMES]
    fix = "choose another directory with --out"
    refuse_outside(directory, paths)
    refuse_overwrite(inputs, paths, fix)
    there = [path for path in paths if path.exists()]
    if len(there) == 1:
        raise InputError("is there already and not from an earlier run", file=there[0], fix=fix)


def print_sites(found: Mapping[str, Backtest]) -> None:
    """Print a row for each strategy over all sites."""
    to = console()
    table = new_table(("strategy",), ("sites", "wait", "slowdown", "longest", "least wait at", "most wait at"))
    for each in across(found):
        ratios = [f"{each.ratios[key]:.3f}" for key in ("mean_wait", "mean_bounded_slowdown", "max_wait")]
        ends = [f"{site} {ratio:.2f}" for site, ratio in (each.best, each.worst)]
        table.add_row(each.strategy, str(each.sites), *ratios, *ends)
    print_table(to, table)
    to.print()
    print_text(to, "Each is divided by that of fcfs-easy: geometric means, in which every site counts alike.", "  ")
