"""An order's formula as lines: the priority of typical jobs against their wait."""

from __future__ import annotations

import numpy as np

from parsim.model.fairshare import FAIRSHARE
from qconf.config import SiteConfig
from qconf.report.charts import DAY, STROKES, Figure, chart, duration, number
from qconf.report.formulas import LENGTH, WIDTH, reading_of
from qconf.report.wording import hours

LONGEST = 10 * DAY
WAITS = np.concatenate([[0.0], np.geomspace(60, LONGEST, 60)])


def formula_figure(config: SiteConfig, name: str = "order") -> Figure | None:
    """Draw a line for each of four typical jobs; None for an order in which waiting counts nothing or is all."""
    if config.order == "fcfs" or config.order in ("sjf", "ljf", FAIRSHARE):
        return None
    reading = reading_of(config)
    found = [(long, wide, reading.value(reading.job(long, wide), WAITS)) for long in (0, 1) for wide in (0, 1)]
    starving = [min(reading.thresholds(reading.job(long, wide))) for long, wide, _ in found]
    calm = [values[limit > WAITS] for (_, _, values), limit in zip(found, starving, strict=True)]
    finite = np.concatenate([each[np.isfinite(each)] for each in calm])
    if not finite.size or np.ptp(finite) == 0:
        return None
    low, high = float(finite.min()), float(finite.max())
    log = low > 0 and high > 50 * low
    if not log:
        low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    rows = []
    for long, wide, values in found:
        cores = reading.cores[wide]
        job = f"{LENGTH[long]} {WIDTH[wide]}: {reading.walltimes[long] / 3600:g} h, {cores} core{'s' * (cores != 1)}"
        rows += [
            {"job": job, "wait": max(round(wait), 60), "value": float(f"{min(max(value, low), high):.5g}")}
            | {"says": f"{job}\nafter {hours(wait)} h of waiting: {value:.4g}"}
            for wait, value in zip(WAITS.tolist(), values.tolist(), strict=True)
            if np.isfinite(value)
        ]
    above = " At the top a job goes before all that do not starve." if min(starving) < LONGEST else ""
    spec = chart(
        rows,
        {"type": "line", "point": "transparent", "strokeWidth": 2},
        {
            "x": duration("wait", "wait", 60, LONGEST, grid=True),
            "y": number("value", log=log, domain=(low, high), tickCount=4, format="~g"),
            "color": {"field": "job", "type": "nominal", "title": None, "sort": None, "legend": STROKES},
            "strokeDash": {"field": "job", "type": "nominal", "title": None, "sort": None, "legend": STROKES},
        },
        height=200,
        title="priority that the order gives",
    )
    text = f"The priority of typical jobs as they wait: of two jobs the one with the higher line goes first.{above}"
    return Figure(name, spec, text)
