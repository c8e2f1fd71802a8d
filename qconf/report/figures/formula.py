"""An order's formula as lines: the priority of typical jobs against their wait."""

from __future__ import annotations

import numpy as np

from parsim.model.fairshare import FAIRSHARE
from qconf.config import SiteConfig
from qconf.report.figures.base import Figure
from qconf.report.formulas import LENGTH, WIDTH, reading_of
from qconf.report.svg import DAY, HOUR, Drawing, Scale, plain

LONGEST = 10 * DAY
WAITS = np.concatenate([[0.0], np.geomspace(60, LONGEST, 160)])
TICKS = {60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h", DAY: "1 d", 3 * DAY: "3 d", LONGEST: "10 d"}


def formula_figure(config: SiteConfig, name: str = "order") -> Figure | None:
    """Draw a line for each of four typical jobs; None for an order in which waiting counts nothing or is all."""
    if config.order == "fcfs" or config.order in ("sjf", "ljf", FAIRSHARE):
        return None
    reading = reading_of(config)
    rows = [(long, wide, reading.value(reading.job(long, wide), WAITS)) for long in (0, 1) for wide in (0, 1)]
    starving = [min(reading.thresholds(reading.job(long, wide))) for long, wide, _ in rows]
    calm = [values[limit > WAITS] for (_, _, values), limit in zip(rows, starving, strict=True)]
    finite = np.concatenate([each[np.isfinite(each)] for each in calm])
    if not finite.size or np.ptp(finite) == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    log = low > 0 and high > 50 * low
    if not log:
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    drawing = Drawing(0)
    looks = ("q0", "q1", "q2", "q3")
    times, cores = reading.walltimes, reading.cores
    counts = [f"{n} core{'s' * (n != 1)}" for n in cores]
    entries = [
        (f"line {look}", f"{LENGTH[long]} ({times[long] / 3600:g} h) {WIDTH[wide]} ({counts[wide]})")
        for look, (long, wide, _) in zip(looks, rows, strict=True)
    ]
    top = drawing.legend(entries) + 22
    x = Scale(60, LONGEST, 62, drawing.width - 16, log=True)
    y = Scale(low, high, top + 190, top + 14, log=log)
    marks = [low, high] if not log else _powers(low, high)
    above = "; above the top a job goes before all that do not starve" if min(starving) < LONGEST else ""
    panel = drawing.panel(
        x, y, x_ticks=list(TICKS.items()), y_ticks=[(each, plain(float(f"{each:.3g}"))) for each in marks],
        y_title=f"priority that the formula gives{above}", x_title="wait", grid="xy",
    )  # fmt: skip
    for look, entry, (_, _, values) in zip(looks, entries, rows, strict=True):
        panel.line(np.maximum(WAITS, 60), values, look, entry[1])
    drawing.height = y.start + 42
    text = "The priority of typical jobs as they wait: of two jobs the one with the higher line goes first."
    return Figure(name, drawing.svg(text), text)


def _powers(low: float, high: float) -> list[float]:
    """Return a few powers of ten between two numbers."""
    first, last = int(np.ceil(np.log10(low))), int(np.floor(np.log10(high)))
    step = -(-(last - first + 1) // 6) or 1
    return [10.0**power for power in range(first, last + 1, step)]
