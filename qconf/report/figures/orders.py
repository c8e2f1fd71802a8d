"""Figures of orders: the priority of typical jobs as they wait, and the effect of other weights of long waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from parsim.model.fairshare import FAIRSHARE
from qconf.config import SiteConfig
from qconf.report.charts import DAY, STROKES, Figure, chart, colour, duration, layers, number
from qconf.report.formulas import LENGTH, WIDTH, reading_of
from qconf.report.wording import hours
from qconf.strategies.auto.search import Tails

LONGEST = 10 * DAY
WAITS = np.concatenate([[0.0], np.geomspace(60, LONGEST, 60)])


def formula_figure(config: SiteConfig, name: str = "order") -> Figure | None:
    """Draw the priority of four typical jobs over their waits; None if waiting has no effect or is everything."""
    if config.order in ("fcfs", "sjf", "ljf", FAIRSHARE):
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
    of_job = {"field": "job", "type": "nominal", "title": None, "sort": None, "legend": STROKES}
    x = duration("wait", "wait", 60, LONGEST, grid=True)
    y = number("value", log=log, domain=(low, high), tickCount=4, format="~g")
    line = {"type": "line", "point": "transparent", "strokeWidth": 2}
    encoding = {"x": x, "y": y, "color": of_job, "strokeDash": of_job}
    spec = chart(rows, line, encoding, height=200, title="priority that the order gives")
    text = f"The priority of typical jobs as they wait: of two jobs the one with the higher line goes first.{above}"
    return Figure(name, spec, text)


def tails_figure(decisions: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw the cut of the mean wait against the longest wait for each weight; None if all choose the same order."""
    found = next((step for step in decisions if step["step"] == Tails.title), None)
    if found is None:
        return None
    prices: dict[tuple[float, float], list[float]] = {}  # one mark for prices that choose the same order
    chosen = None
    for price, wait, longest in zip(found["weights"], found["wait_ratios"], found["longest_ratios"], strict=True):
        prices.setdefault((longest, wait), []).append(price)
        if price == found["chosen"]:
            chosen = longest, wait
    if len(prices) == 1:
        return None
    rows: list[dict[str, Any]] = [
        {
            "longest": longest,
            "cut": round(100 * (1 - wait), 1),
            "price": " to ".join(f"{price:g}" for price in sorted({each[0], each[-1]})),
            "kind": "chosen" if (longest, wait) == chosen else "other prices",
        }
        for (longest, wait), each in sorted(prices.items())
    ]
    for row in rows:
        row["says"] = (
            f"--tails {row['price']}: mean wait {row['cut']:g} % shorter, longest wait {row['longest']:g} times as long"
        )
    longests, cuts = [[row[key] for row in rows] for key in ("longest", "cut")]
    place = {
        "x": number("longest", "longest wait, times that of first come, first served", domain=padded(longests)),
        "y": number("cut", domain=padded(cuts)),
    }
    marks = {"color": colour("kind", {"chosen": "after", "other prices": "dim"})}
    spec = layers(
        chart(rows, {"type": "line", "strokeWidth": 1.5, "opacity": 0.5}, place),
        chart(rows, {"type": "point", "filled": True, "size": 90, "opacity": 1}, {**place, **marks}),
        chart(rows, {"type": "text", "dy": -12}, {**place, "text": {"field": "price", "type": "nominal"}}),
        height=200,
        title="mean wait cut, %",
    )
    text = (
        "What long waits cost (--tails) decides: a higher price chooses an order with shorter longest waits and a "
        "smaller gain. Both as they are expected at this site, against first come, first served."
    )
    return Figure("tails", spec, text)


def padded(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of an axis, with room for labels beside marks."""
    found = list(values)
    room = 0.2 * (max(found) - min(found)) or 0.1
    return min(found) - room, max(found) + room
