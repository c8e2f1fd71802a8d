"""Figures of the machine: its division before and after, and the effect of a partition's size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from qconf.config import SiteConfig
from qconf.recommend import Curve
from qconf.report.charts import HUES, Figure, before_after, chart, colour, duration, layers, name, number, panels, rule
from qconf.report.story import Story
from qconf.report.wording import count, hours

POOL, SHARED = "common pool", "shared by all queues"


def machine_bar(configs: Sequence[tuple[str, SiteConfig]], looks: Mapping[str, str]) -> Figure:
    """Draw a bar for each named configuration, with panels for types of nodes."""
    rows: list[dict[str, Any]] = []
    notes = []
    for when, config in configs:
        ends: dict[str, int] = {}
        each = list(parts(config))
        for panel, part, size in each:
            low = ends.get(panel, 0)
            ends[panel] = low + size
            unit = "nodes" if config.nodes else "cores"
            says = f"{when}, {panel + ', ' if panel else ''}{part}: {count(size)} {unit}"
            rows.append({"panel": panel, "when": when, "part": part, "low": low, "high": ends[panel], "says": says})
        if config.mode != "shared" and not config.nodes:
            sizes = ", ".join(f"{part} {count(size)}" for _, part, size in each)
            notes.append(f"{when[0].upper()}{when[1:]}: {sizes} cores.")
        reserved = [queue.name for queue in config.queues if queue.reservation and config.mode != "shared"]
        if reserved:
            notes.append(f"Jobs of {', '.join(reserved)} get cores of all parts, by reservation.")
    named = {part: looks.get(part, f"q{HUES - 1}") for part in dict.fromkeys(row["part"] for row in rows)}
    named |= {part: look for part, look in ((POOL, "pool"), (SHARED, "before")) if part in named}
    encoding = {
        "y": name("when", sort=[when for when, _ in configs], domain=False, ticks=False),
        "x": number("low", "nodes" if configs[0][1].nodes else "cores"),
        "x2": {"field": "high"},
        "color": colour("part", named),
        "tooltip": {"field": "says"},
    }
    mark = {"type": "bar", "stroke": "var(--paper)", "strokeWidth": 1.5}
    inner: dict[str, Any] = {"mark": mark, "encoding": encoding, "height": {"step": 30}}
    types = list(dict.fromkeys(row["panel"] for row in rows))
    spec = panels(rows, types, inner, columns=2, resolve={"scale": {"x": "independent"}})
    if types == [""]:
        spec = {"data": {"values": rows}, **inner}
        encoding["x"] = number("low", "cores", domain=(0, configs[0][1].machine.cores))
    return Figure("machine", spec, " ".join(["How the machine is divided.", *notes]))


def parts(config: SiteConfig) -> Iterator[tuple[str, str, int]]:
    """Yield (type of nodes, name, size) of the machine's partitions; sizes are cores, or nodes if there are types."""
    if config.nodes:
        for each in config.nodes:
            left = each.count
            for queue in config.queues if config.mode != "shared" else ():
                if own := queue.partition_nodes.get(each.name, 0):
                    left -= own
                    yield f"nodes {each.name}", queue.name, own
            if left > 0:
                yield f"nodes {each.name}", SHARED if config.mode == "shared" else POOL, left
        return
    if config.mode == "shared":
        yield "", SHARED, config.machine.cores
        return
    for queue in config.queues:
        if queue.partition:
            yield "", queue.name, queue.partition
    if config.pool_cores:
        yield "", POOL, config.pool_cores


def curves_figure(
    curves: Sequence[Curve],
    what: Literal["waits", "utilizations"],
    marks: Mapping[str, SiteConfig],
    looks: Mapping[str, str],
) -> Figure:
    """Draw mean wait or utilization of each queue alone against its partition's size; sizes of `marks` are marked.

    As Figures 1 and 2 of Kondameedi and Vadhiyar, CCGrid 2017.
    """
    waits = what == "waits"
    rows: list[dict[str, Any]] = []
    sizes: list[dict[str, Any]] = []
    for curve in curves:
        values = np.array(curve.waits if waits else [100 * use for use in curve.utilizations])
        finite = np.isfinite(values)

        def row(size: int, value: float, queue: str = curve.queue, about: str = "") -> dict[str, Any]:
            text = f"{hours(value)} h" if waits else f"{value:.0f} %"
            says = f"{queue}{about}: {count(size)} cores, {text}"
            return {"queue": queue, "size": size, "value": max(value, 60.0) if waits else value, "says": says}

        points = zip(np.array(curve.sizes)[finite].tolist(), values[finite].tolist(), strict=True)
        rows += [row(size, value) for size, value in points if size > 0]
        for when, config in marks.items():
            size = next((queue.partition for queue in config.queues if queue.name == curve.queue), 0)
            if config.mode != "shared" and finite.any() and min(curve.sizes) <= size <= max(curve.sizes) and size > 0:
                at = float(np.interp(size, np.array(curve.sizes)[finite], values[finite]))
                sizes.append({**row(size, at, about=f", {when}"), "when": when})
    high = max((each["value"] for each in rows), default=1.0)
    y = duration("value", None, 60.0, max(high, 600.0), grid=True) if waits else number("value", domain=(0, 100))
    x = number("size", "partition size, cores", log=True, grid=True, format="~s")
    x["scale"] |= {"nice": False}
    colours = colour("queue", {curve.queue: looks[curve.queue] for curve in curves})
    line = chart(rows, {"type": "line", "point": "transparent", "strokeWidth": 1.8}, {"x": x, "y": y, "color": colours})
    ring = {"type": "point", "size": 140, "strokeWidth": 2.2}
    marked = chart(sizes, ring, {"x": x, "y": y, "stroke": before_after()["color"]})
    text = (
        "Mean wait of each queue alone on a partition, against its size; what is below a minute stands at the edge. "
        if waits
        else "Utilization of the same partitions: a large one idles, a small one makes jobs wait. "
    )
    title = "mean wait of the queue alone" if waits else "utilization of the partition, %"
    spec = layers(line, *([marked] if sizes else []), height=240, title=title)
    return Figure("wait-by-size" if waits else "utilization-by-size", spec, text + "Rings: sizes." * bool(sizes))


def path_figure(found: Story) -> Figure | None:
    """Draw the mean wait after each stage of a story; rejected attempts are rings."""
    stages = [chapter for chapter in found.chapters if chapter.wait is not None or chapter.rejected]
    if sum(chapter.wait is not None for chapter in stages) < 2:
        return None
    titles = [f"{i}. {stage.title}" for i, stage in enumerate(stages, 1)]
    rows = [
        {"stage": title, "wait": wait / 3600, "kind": kind, "says": f"{title}, {kind}: {hours(wait)} h"}
        for title, stage in zip(titles, stages, strict=True)
        for kind, waits in (("kept", [stage.wait]), ("tried, not kept", stage.rejected))
        for wait in waits
        if wait is not None and math.isfinite(wait)
    ]
    place = {
        "x": number("wait", "mean wait on the training set, h", grid=True),
        "y": name("stage", sort=titles, domain=False, ticks=False),
        "color": colour("kind", {"kept": "after", "tried, not kept": "before"}),
    }
    kept = [row for row in rows if row["kind"] == "kept"]
    parts_ = [
        chart(kept, {"type": "line"}, {**place, "order": {"field": "stage", "sort": None}}),
        chart(kept, {"type": "point", "filled": True, "size": 70, "opacity": 1}, place),
        chart([row for row in rows if row["kind"] != "kept"], {"type": "point", "size": 30}, place),
    ]
    text = "What each stage made of the mean wait of the training set, epochs weighted."
    if found.current is not None:
        parts_.append(rule("x", found.current / 3600, strokeDash=[5, 3]))
        text += " Dashed: the current configuration."
    return Figure("partition-path", layers(*parts_, height={"step": 22}), text)
