"""What other prices of long waits would choose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from qconf.report.charts import Figure, chart, layers, number
from qconf.strategies.auto.search import Tails


def tails_figure(decisions: Sequence[Mapping[str, Any]]) -> Figure | None:
    """Draw the cut of the mean wait over the longest wait, a mark for each price; None where prices choose alike."""
    found = next((step for step in decisions if step["step"] == Tails.title), None)
    if found is None:
        return None
    prices: dict[tuple[float, float], list[float]] = {}  # of orders that several prices choose one mark
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
        "x": number("longest", "longest wait, times that of first come, first served", domain=around(longests)),
        "y": number("cut", domain=around(cuts)),
    }
    colours = {"domain": ["chosen", "other prices"], "range": ["var(--after)", "var(--dim)"]}
    marks = {"color": {"field": "kind", "type": "nominal", "title": None, "scale": colours}}
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


def around(values: Iterable[float]) -> tuple[float, float]:
    """Return the ends of an axis, with room for what is written beside marks."""
    found = list(values)
    room = 0.2 * (max(found) - min(found)) or 0.1
    return min(found) - room, max(found) + room
