"""``python -m studies.pools``: compares hybrid's ways to a pool on generated months of several seeds.

Each month is trained on the previous one. Mean waits are ratios to static's, longest waits to dqr's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from qconf.backtest import Backtest, backtest
from qconf.config import PoolConfig, SiteConfig
from qconf.config import load as load_config
from qconf.history import History, clean
from qconf.synth import generate
from qconf.text import markdown_table
from studies import output
from studies.output import ROOT, run
from studies.paper.plan import CRAY, PAPER

FREE = 1e9  # a degradation that no queue reaches


@dataclass(frozen=True)
class Way:
    """A way to a pool: options of hybrid, and the pool of the current configuration."""

    what: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    pool: PoolConfig | None = None  #: the current pool; its threshold stays if the pool is carved
    fixed: tuple[str, ...] = ()


def _carved(what: str, **pool: Any) -> Way:  # noqa: ANN401 - fields of a pool
    return Way(f"the same, {what}", {"carve": "live"}, PoolConfig(placement="combined", **pool))


WAYS = (
    Way("the paper's pool, not for PBS", PAPER),
    Way("carved in use, jobs move into a pool of its own cores", {"carve": "live", "pool_placement": "pool"}),
    Way("carved in use, jobs move, `combined`", {"carve": "live", "pool_placement": "combined"}),
    _carved("starving jobs first", starving_first=True),
    _carved("threshold 1/2", threshold=20.0),
    _carved("threshold 0", threshold=0.0),
    Way("searched, the paper's threshold", {}, PoolConfig(threshold=40.0, placement="combined"), ("pool.threshold",)),
    Way("searched, a queue may lose all", {"degradation": FREE}),
    Way("searched, starving jobs first", {}, PoolConfig(placement="combined", starving_first=True)),
    Way("searched, a pool of its own cores", {"pool_placement": "pool"}),
    Way("**searched, `combined`: the default**"),
)


def measure(history: History, base: SiteConfig, way: Way, workers: int) -> Backtest:
    """Evaluate static, dqr and hybrid on each month after the first."""
    present = base.replace(pool=way.pool, fixed=way.fixed)
    settings = {"workers": workers, **way.settings}
    return backtest(history, present, strategies=("static", "dqr", "hybrid"), settings=settings)


def ratios(found: Backtest, name: str = "hybrid") -> tuple[float, float, float]:
    """Return mean wait over static's, then the mean and the largest monthly longest wait over dqr's."""

    def each(strategy: str, metric: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([result.summary[metric] for result in found.results if result.strategy == strategy])

    longest, before = each(name, "max_wait"), each("dqr", "max_wait")
    wait = each(name, "mean_wait").mean() / each("static", "mean_wait").mean()
    return float(wait), float(longest.mean() / before.mean()), float(longest.max() / before.max())


def row(what: str, found: Sequence[tuple[float, float, float]]) -> list[str]:
    """Return a table row: a column per ratio, with a number per seed."""
    return [what, *(" / ".join(f"{value:.2f}" for value in values) for values in zip(*found, strict=True))]


@click.command("studies.pools")
@click.option("--seeds", default="0,1,2", show_default=True, help="Of the generated months.")
@click.option("--months", default=9, show_default=True, type=click.IntRange(2))
@click.option("--default", is_flag=True, help="Only dqr and the default.")
@output.workers("Threads; no effect on results.")
def command(*, seeds: str, months: int, default: bool, workers: int) -> None:
    """Print the table of the pools as docs/research/partitioning.md has it."""
    base = load_config(ROOT / "configs" / CRAY)
    logs = (output.records_of(generate(months=months, seed=int(seed))) for seed in seeds.split(","))
    histories = [clean(log, base) for log in logs]
    rows = []
    for way in WAYS[-1:] if default else WAYS:
        click.echo(way.what, err=True)
        found = [measure(history, base, way, workers) for history in histories]
        rows.append(row(way.what, [ratios(each) for each in found]))
    rows.insert(0, row("dqr", [ratios(each, "dqr") for each in found]))
    titles = ["pool", "mean wait / static", "longest wait / dqr, mean of months", "longest of all months / dqr"]
    click.echo(markdown_table(titles, rows, left=1))


if __name__ == "__main__":
    run(command)
